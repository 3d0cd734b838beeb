# SPDX-License-Identifier: Apache-2.0
"""The probe: what rights its processes and the daemon have, what the end of each means, and what hangs."""

import os
import pathlib
import shutil
import signal
import stat

import pytest
from clients import Client
from faults import Faults
from harness import CLSID, NOBODY, NOGROUP, UNDER, listen, needs_namespaces, needs_root, rule, until
from runtimes import FAKE
from stuck import Stuck, StuckFiles, needs_fuse

pytestmark = pytest.mark.skipif(bool(UNDER), reason="the daemon's process is that of what it runs under")

KILL, SYS_PTRACE, DAC_READ_SEARCH = 1 << 5, 1 << 19, 1 << 2
TO_LOOK = SYS_PTRACE | DAC_READ_SEARCH
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")

OLD = {"OLD": "x"}


def status(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def capabilities(pid):
    return {name: int(status(pid)[name], 16) for name in SETS}


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def parent_of_workers(one):
    (parent,) = children(one.process.pid)
    assert status(parent)["Name"] == "diagport-probe"
    return parent


def workers(one):
    return children(parent_of_workers(one))


def descriptors(pid):
    folder = pathlib.Path(f"/proc/{pid}/fd")
    return sorted(os.readlink(name).split(":")[0] for name in folder.iterdir())


def is_gone(pid):
    return lambda: not os.path.exists(f"/proc/{pid}") or status(pid)["State"][0] in "ZX"


def is_planned(one, fake, **options):
    """A runtime that comes now gets its plan."""
    runtime = fake(one.socket, environment=OLD, **options)
    return "env OLD=new" in runtime.commands() and one.receipt(runtime.pid, "running").outcome == "applied"


@pytest.fixture
def planner(daemon):
    """A daemon that plans for everybody."""
    return daemon([rule(env={"OLD": "new"})])


# Rights.


@needs_root
def test_rights_of_root(planner, fake):
    assert is_planned(planner, fake)
    own = capabilities(os.getpid())
    assert capabilities(planner.process.pid) == dict.fromkeys(SETS, 0)
    parent = parent_of_workers(planner)
    kept = own["CapPrm"] & (TO_LOOK | KILL)
    assert capabilities(parent) == {**dict.fromkeys(SETS, 0), "CapPrm": kept, "CapEff": kept}
    (worker,) = children(parent)
    kept = own["CapPrm"] & TO_LOOK
    assert capabilities(worker) == {**dict.fromkeys(SETS, 0), "CapPrm": kept, "CapEff": kept}
    for pid in planner.process.pid, parent, worker:
        assert status(pid)["NoNewPrivs"] == "1"


@needs_root
def test_somebody_without_rights(daemon, fake):
    """It works as far as the kernel lets it: with processes of the same user."""
    one = daemon([rule(env={"OLD": "new"})], user=NOBODY)
    assert is_planned(one, fake, program=one.folder.program(FAKE), user=NOBODY, group=NOGROUP, extra_groups=[])
    for pid in one.process.pid, parent_of_workers(one), *workers(one):
        found = capabilities(pid)
        assert {found[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
        assert status(pid)["NoNewPrivs"] == "1"


def test_nothing_of_the_daemon_is_in_it(planner, fake):
    assert is_planned(planner, fake)
    nothing = ["/dev/null"] * 3
    parent = parent_of_workers(planner)
    assert descriptors(parent) == sorted([*nothing, "anon_inode", "socket"])
    (worker,) = children(parent)
    assert descriptors(worker) == [*nothing, "socket"]
    for pid in parent, worker:
        assert pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().strip(b"\0") == b"diagport-probe"


# A user of its own.

AS_IF = """
set -e
mount --bind "$1" /etc/passwd
mount --bind "$2" /etc/group
shift 2
exec "$@"
"""


@pytest.fixture
def with_user(daemon, folder):
    """Makes daemons on a host that has the user diagport, 4711, in a group of that number and another one."""

    def make(*arguments, **options):
        passwd, group = (pathlib.Path(name).read_text(encoding="utf-8") for name in ("/etc/passwd", "/etc/group"))
        names = [
            folder.file("passwd", passwd + "diagport:x:4711:4712::/nonexistent:/bin/false\n"),
            folder.file("group", group + "diagport:x:4712:\nwatchers:x:4713:diagport\n"),
        ]
        return daemon(*arguments, prefix=["unshare", "--mount", "sh", "-c", AS_IF, "sh", *names], **options)

    return make


def owner(path):
    found = os.lstat(path)
    return found.st_uid, found.st_gid


@needs_namespaces
def test_it_becomes_its_user(with_user, fake):
    one = with_user([rule(env={"OLD": "new"})])
    assert is_planned(one, fake)
    (worker,) = workers(one)
    for pid in one.process.pid, parent_of_workers(one), worker:
        assert status(pid)["Uid"].split() == ["4711"] * 4
        assert status(pid)["Gid"].split() == ["4712"] * 4
        assert status(pid)["Groups"].split() == ["4712", "4713"]
    assert capabilities(one.process.pid) == dict.fromkeys(SETS, 0)
    assert capabilities(worker)["CapEff"] == TO_LOOK
    assert one.status()["uid"] == 4711
    for path in one.socket, one.control, one.state, one.state / "records":
        assert owner(path) == (4711, 4712), path
    assert one.log.count("stays root") == 0


@needs_namespaces
def test_its_user_goes_on_with_what_root_began(with_user, fake):
    """State of an earlier start without the user, reloads, restarts."""
    one = with_user([rule(env={"OLD": "new"})], start=False)
    one.state.mkdir(mode=0o700)
    one.start()
    assert owner(one.state) == (4711, 4712)
    one.policy([rule(env={"OLD": "newer"})], listen=[listen(one.folder, mode="0660")])
    assert one.reload()
    assert stat.S_IMODE(os.stat(one.socket).st_mode) == 0o660
    one.policy([rule(env={"OLD": "new"})])
    assert one.reload()
    assert is_planned(one, fake)
    one.kill()
    one.start()
    assert one.status()["records"] == "trusted"
    assert is_planned(one, fake)


@needs_namespaces
@pytest.mark.parametrize("what", ["owner", "new"])
def test_a_reload_that_needs_a_right_is_refused(with_user, fake, what):
    one = with_user([rule(env={"OLD": "new"})])
    if what == "owner":
        one.policy(listen=[listen(one.folder, owner="nobody")])
    else:
        one.policy(listen=[listen(one.folder), listen(one.folder, "other")])
    assert not one.reload()
    one.wait("no right to do that once it runs, so restart it" if what == "owner" else "may not write to the folder")
    assert is_planned(one, fake)


@needs_namespaces
def test_a_policy_that_its_user_cannot_read(with_user, fake):
    one = with_user([rule(env={"OLD": "new"})], start=False)
    os.chmod(one.config, 0o600)
    one.start()
    one.wait("cannot read the policy .* any more")
    assert is_planned(one, fake)
    assert not one.reload()
    assert is_planned(one, fake)


# Ends.


def test_a_worker_is_killed(planner, fake):
    assert is_planned(planner, fake)
    (worker,) = workers(planner)
    os.kill(worker, signal.SIGKILL)
    planner.wait("a worker of diagport-probe was ended by signal 9; another one takes its place")
    assert is_planned(planner, fake)
    assert worker not in workers(planner)


def test_the_parent_is_killed(planner, fake):
    """Nobody could be looked at any more, so the daemon ends, as a crash would end it but in good order."""
    assert is_planned(planner, fake)
    held = fake(planner.socket, "delay=any:60000", environment=OLD)
    planner.wait(rf"applying .*\bpid={held.pid} ")
    processes = [parent_of_workers(planner), *workers(planner)]
    os.kill(processes[0], signal.SIGKILL)
    planner.end(1)
    planner.wait("diagport-probe has ended, and the daemon with it")
    for pid in processes:
        until(is_gone(pid), bool)
    held.kill()


def test_the_daemon_is_killed(planner, fake):
    assert is_planned(planner, fake)
    processes = [parent_of_workers(planner), *workers(planner)]
    planner.kill()
    for pid in processes:
        until(is_gone(pid), bool)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_to_all_are_for_the_daemon(planner, fake, number):
    assert is_planned(planner, fake)
    parent = parent_of_workers(planner)
    for pid in parent, *workers(planner):
        os.kill(pid, number)
    assert is_planned(planner, fake)
    assert parent_of_workers(planner) == parent
    assert planner.log.count("was ended by signal") == 0


def test_a_stopped_worker_counts_as_one_that_hangs(planner, fake):
    """Nobody can tell the difference, and it is no matter: what it was asked is unknown, and others go on."""
    assert is_planned(planner, fake)
    (worker,) = workers(planner)
    os.kill(worker, signal.SIGSTOP)
    runtime = fake(planner.socket, environment=OLD)
    assert "resume" in runtime.commands()
    until(is_gone(worker), bool)
    # It never began, so nobody's process is to blame for it.
    assert is_planned(planner, fake)


# What hangs.


@pytest.fixture
def files(daemon, folder):
    """They end before the daemon is told to, and before its folder is removed."""
    del daemon
    made = StuckFiles(folder / "files")
    yield made
    made.end()


@pytest.fixture
def stuck(files):
    """Makes runtimes that nobody can look at, of the user nobody."""
    made = []

    def make(one):
        made.append(Stuck(one.socket, files, user=NOBODY, group=NOGROUP, extra_groups=[]))
        return made[-1]

    yield make
    files.end()
    for one in made:
        one.kill()


def as_nobody(folder):
    return {"program": folder.program(FAKE), "user": NOBODY, "group": NOGROUP, "extra_groups": []}


@needs_fuse
def test_arguments_that_hang(planner, stuck, fake, folder):
    assert is_planned(planner, fake)
    first = stuck(planner).start()
    # While it hangs, and afterwards: others are looked at as ever.
    assert is_planned(planner, fake)
    assert first.is_resumed()
    attributes = planner.receipt(first.pid, "resuming")["attributes"]
    assert attributes["args"]["state"] == "unknown"
    # What was there before it hung is known.
    assert attributes["exe"]["state"] == "present"
    # Its user gets unknown at once, whatever his other processes are.
    own = fake(planner.socket, environment=OLD, **as_nobody(folder))
    assert set(own.commands()) == {"resume"}
    assert planner.receipt(own.pid, "resuming").outcome == "unknown"
    assert is_planned(planner, fake)
    assert planner.alarms() == []


@needs_fuse
def test_its_user_is_forgiven(daemon, stuck, fake, folder):
    faults = Faults(folder)
    one = daemon([rule(env={"OLD": "new"})], environment=faults.environment)
    assert stuck(one).start().is_resumed()
    own = fake(one.socket, environment=OLD, **as_nobody(folder))
    assert set(own.commands()) == {"resume"}
    faults.move_clocks(since_boot=11)
    assert is_planned(one, fake, **as_nobody(folder))


@needs_fuse
def test_a_profiler_that_hangs(daemon, files, fake, folder):
    one = daemon([
        rule("stuck", {"args": "--stuck"}, profilers=[{"clsid": CLSID, "path": str(files.stuck)}]),
        rule("others", env={"OLD": "new"}),
    ])
    runtime = fake(one.socket, arguments=("--", "--stuck"), environment=OLD, **as_nobody(folder))
    files.wait()
    assert is_planned(one, fake)
    assert [command for command in runtime.commands() if command not in ("kind", "info3")] == ["resume"]
    receipt = one.receipt(runtime.pid, "resuming|running")
    assert (receipt["rule"], receipt.outcome) == ("stuck", "failed")
    assert receipt.step("profiler")["result"] == "refused"
    assert is_planned(one, fake)


@needs_fuse
def test_explaining_one_that_hangs(planner, stuck, fake):
    """It tells what is known, and is nobody's fault."""
    process = stuck(planner)
    explained = Client(planner).post("/v1/explain", {"pid": process.pid})
    assert explained.status == 200, explained
    assert explained.json["attributes"]["args"]["state"] == "unknown"
    assert explained.json["attributes"]["exe"]["state"] == "present"
    answer = Client(planner).post("/v1/explain", {"pid": process.pid})
    assert answer.status == 503 and "cannot be looked at now" in answer.detail
    assert is_planned(planner, fake, **as_nobody(planner.folder))


@needs_fuse
def test_too_many_that_hang(daemon, files, fake, folder):
    """Then nobody is looked at, with an alarm, until one of the workers is gone."""
    profiler = {"clsid": CLSID, "path": str(files.stuck)}
    one = daemon([rule("stuck", {"args": "--stuck"}, profilers=[profiler]), rule("others", env={"OLD": "new"})])
    program = folder.program(FAKE)
    many = [fake(one.socket, arguments=("--", "--stuck"), environment=OLD, program=program, user=20000 + n,
                 group=NOGROUP, extra_groups=[]) for n in range(8)]
    for runtime in many:
        assert runtime.commands()[-1] == "resume"
    until(one.alarms, lambda alarms: alarms == ["probe"])
    runtime = fake(one.socket, environment=OLD)
    assert set(runtime.commands()) == {"resume"}
    assert one.receipt(runtime.pid, "resuming").outcome == "unknown"
    files.end()
    until(one.alarms, lambda alarms: alarms == [])
    assert is_planned(one, fake)


@needs_fuse
def test_it_stops_while_a_worker_hangs(daemon, files, fake, folder):
    """For good, but in good order; the worker ends when the kernel lets it."""
    one = daemon([rule(profilers=[{"clsid": CLSID, "path": str(files.stuck)}])])
    runtime = fake(one.socket, environment=OLD, **as_nobody(folder))
    files.wait()
    worker = [pid for pid in workers(one) if status(pid)["State"][0] in "DS"]
    one.stop()
    assert runtime.commands()[-1] == "resume"
    files.end()
    for pid in worker:
        until(is_gone(pid), bool)


# Kills.

HELD = rule(env={"OLD": "new"}, on_failure="hold", startup_hooks=[{"path": "/nowhere/Hook.dll"}])


@needs_root
def test_a_kill_goes_through_a_worker(daemon, fake, folder):
    """The daemon itself may not, of another user."""
    killer = {**HELD, "on_failure": "kill"}
    one = daemon([killer])
    runtime = fake(one.socket, environment=OLD, **as_nobody(folder))
    assert runtime.wait() == -signal.SIGKILL
    one.receipt(runtime.pid, "killed")
    assert one.log.count("a worker of diagport-probe") == 0


@needs_root
def test_many_kills(daemon, fake, folder):
    one = daemon([{**HELD, "on_failure": "kill"}])
    options = as_nobody(folder)
    for runtime in [fake(one.socket, environment=OLD, **options) for _ in range(20)]:
        assert runtime.wait() == -signal.SIGKILL


@needs_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not there")
def test_without_the_right_to_kill(daemon, fake, folder):
    """A policy that kills is not loaded, and an operator is refused."""
    one = daemon([HELD], start=False, prefix=["setpriv", "--bounding-set", "-kill"])
    one.start()
    assert capabilities(parent_of_workers(one))["CapPrm"] & KILL == 0
    runtime = fake(one.socket, environment=OLD, **as_nobody(folder))
    one.receipt(runtime.pid, "held")
    assert Client(one).post(f"/v1/runtimes/pid:{runtime.pid}/kill").status == 501
    one.policy([{**HELD, "on_failure": "kill"}])
    assert not one.reload()
    assert runtime.is_alive()
