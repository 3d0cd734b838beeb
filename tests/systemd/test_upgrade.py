# SPDX-License-Identifier: Apache-2.0
"""The programs are replaced on disk while runtimes wait, and the service is restarted: plans go on."""

import os
import pathlib
import shutil

import inside
import pytest
import records
from inside import PORT, SERVICE, systemctl

PROGRAM = pathlib.Path("/usr/local/sbin/diagportd")
RECORDS = inside.STATE / "records"

POLICY = """version: 1
rules:
  - name: strict
    match: { container: any, args: strict }
    startup_hooks: [ { path: /nowhere/Hook.dll } ]
    on_failure: hold
    hold_limit: forever
  - name: planned
    match: { container: any, args: planned }
    env: { A: "1", B: "2", C: "3" }
    deadline: 10m
    command_timeout: 5m
"""

#: What happens to the file of records between the two.
BETWEEN = """[Service]
ExecStartPre=+/usr/bin/python3 -B -c "import sys, pathlib; sys.path.insert(0, '{tests}'); import records; \
records.{function}(pathlib.Path('{path}'))"
"""


@pytest.fixture
def other_version():
    """Installs what another build gave, as a package manager does it: in the place of what runs."""
    kept = PROGRAM.with_suffix(".kept")
    shutil.copy2(PROGRAM, kept)

    def install():
        ours = inside.ctl_json("status")["version"].encode()
        theirs = b"9" + ours[1:]
        content = PROGRAM.read_bytes()
        assert content.count(ours) > 0
        new = PROGRAM.with_suffix(".new")
        new.write_bytes(content.replace(ours, theirs))
        new.chmod(0o755)
        new.rename(PROGRAM)
        return theirs.decode()

    yield install
    systemctl("stop", inside.SOCKET, inside.CONTROL_SOCKET, SERVICE)
    os.replace(kept, PROGRAM)


def records_become(function):
    text = BETWEEN.format(tests=pathlib.Path(records.__file__).parent, function=function, path=RECORDS)
    inside.drop_in(SERVICE, "50-test", text)


def waits(runtime):
    return inside.until(lambda: inside.runtimes(pid=runtime.pid, state="held"))[0]


@pytest.mark.parametrize("is_older", [False, True], ids=["same records", "older records"])
def test_plans_go_on(service, fake, other_version, is_older):
    before = service(POLICY)
    held = fake(PORT, arguments=["strict"])
    waits(held)
    stands = fake(PORT, "stop-before-reply=set-env@2", arguments=["planned"])
    stands.stands()
    done = fake(PORT, arguments=["planned"])
    whole = done.commands()
    if is_older:
        records_become("make_older")
    version = other_version()
    systemctl("restart", SERVICE)
    status = inside.ctl_json("status")
    assert (status["version"], status["records"]) == (version, "trusted")
    assert inside.main_pid() != before
    stands.thaw()
    # The answer that was not read is asked for again, and nothing else.
    commands = [command for command in stands.commands() if command.startswith("env")]
    assert commands in (["env A=1", "env B=2", "env C=3"], ["env A=1", "env B=2", "env B=2", "env C=3"])
    assert waits(held)["rule"] == "strict"
    inside.resume(held.pid)
    assert held.commands()[-1] == "resume"
    assert whole[-1] == "resume" and set(done.finish()) <= {"resume"}
    assert records.version(RECORDS) == records.VERSION


def test_what_a_newer_version_recorded_is_put_aside(service, fake, other_version):
    """Put back to an older version: nobody hangs, and nobody is set up again."""
    service(POLICY)
    held = fake(PORT, arguments=["strict"])
    waits(held)
    done = fake(PORT, arguments=["planned"])
    done.commands()
    journal = inside.Journal()
    records_become("make_newer")
    other_version()
    systemctl("restart", SERVICE)
    assert held.commands()[-1] == "resume"
    assert inside.ctl_json("status")["records"] == "distrusted"
    assert [text for text in journal.messages(f"_SYSTEMD_UNIT={SERVICE}") if "which a newer diagportd wrote" in text]
    assert records.version(inside.STATE / "records.newer") == records.VERSION + 1
    inside.until(lambda: inside.runtimes(pid=done.pid, state="running"))
    assert set(done.finish()) <= {"resume"}
