# SPDX-License-Identifier: Apache-2.0
"""A policy that is broken on disk when the service is restarted: the last good one stays in force."""

import pathlib
import re

import inside
from inside import PORT, SERVICE, systemctl

STRICT = """version: 1
rules:
  - name: strict
    match: { container: any, args: strict }
    startup_hooks: [ { path: /nowhere/Hook.dll } ]
    on_failure: hold
    hold_limit: forever
  - name: planned
    match: { container: any, args: planned }
    env: { A: "1" }
    deadline: 30s
"""

WHOLE = ["env A=1", "resume"]


def last_good_id():
    """Of the entries that say so, as the manual page has it."""
    manual = (pathlib.Path(__file__).parents[2] / "docs/diagportd.8").read_text()
    return re.search(r"\.It Cm last_good\n\.Li (\w{32})", manual).group(1)


def held(runtime):
    return inside.until(lambda: inside.runtimes(pid=runtime.pid, state="held"))


def restart_with(text):
    inside.write_policy(text)
    before = inside.main_pid()
    systemctl("restart", SERVICE)
    assert inside.main_pid() != before


def status_text():
    return inside.prop(SERVICE, "StatusText")


def test_it_stays_in_force_over_a_restart(service, fake):
    service(STRICT)
    before = fake(PORT, arguments=["strict"])
    held(before)
    journal = inside.Journal()
    restart_with("version: 1\nrules: [ {")
    assert inside.ctl_json("status")["policy"]["origin"] == "last_good"
    assert fake(PORT, arguments=["planned"]).commands()[-2:] == WHOLE
    # Nobody who is to be held is let go, whether he came before or after.
    after = fake(PORT, arguments=["strict"])
    for runtime in (before, after):
        assert held(runtime)[0]["rule"] == "strict"
    inside.until(status_text, lambda text: "the LAST GOOD policy" in text and "ALARM" in text)
    assert len(journal.entries(f"MESSAGE_ID={last_good_id()}")) == 1
    # Until it is corrected and reloaded.
    systemctl("reload", SERVICE, status=None)
    assert inside.ctl_json("status")["policy"]["origin"] == "last_good"
    inside.write_policy(STRICT)
    systemctl("reload", SERVICE)
    assert inside.ctl_json("status")["policy"]["origin"] == "files"
    inside.until(status_text, lambda text: "ALARM" not in text)
    for runtime in (before, after):
        inside.resume(runtime.pid)
        assert runtime.commands()[-1] == "resume"


def test_and_over_a_crash(service, fake):
    pid = service(STRICT)
    inside.POLICY.unlink()
    inside.signal(9, pid)
    inside.until(inside.main_pid, lambda now: now not in (0, pid))
    inside.until(lambda: inside.is_active(SERVICE))
    assert fake(PORT, arguments=["planned"]).commands()[-2:] == WHOLE


def test_after_a_boot_there_is_none(service, fake):
    """The state folder goes with /run."""
    service(STRICT)
    systemctl("stop", inside.SOCKET, inside.CONTROL_SOCKET, SERVICE)
    for file in inside.STATE.iterdir():
        file.unlink()
    inside.write_policy("version: 1\nrules: [ {")
    systemctl("start", inside.SOCKET, inside.CONTROL_SOCKET, SERVICE)
    assert fake(PORT, arguments=["planned"]).commands() == ["resume"]
    assert inside.ctl_json("status")["policy"]["origin"] == "salvaged"
