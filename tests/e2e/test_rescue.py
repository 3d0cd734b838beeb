# SPDX-License-Identifier: Apache-2.0
"""diagport-rescue: whoever waits is resumed, runs on undisturbed, and is set up by no later daemon."""

import contextlib
import os
import shutil
import re
import signal
import socket
import stat
import subprocess
import sys

import pytest
from harness import BUILD, FINDINGS, NOBODY, PASS_SOCKETS, UNDER, Folder, needs_namespaces, needs_root, rule, until
from lines import TIMEOUT, Lines
from runtimes import QUESTIONS

PLAN = [rule(env={"A": "1"})]

#: One for each port, and what it gets when nothing tells the second port from the first one coming back.
MOST_RESUMES = 1 + 1 + 5

END = re.compile(
    r"the end: (?P<runtimes>\d+) runtimes resumed with (?P<messages>\d+) messages; (?P<connections>\d+) connections, "
    r"of which (?P<open>\d+) are open, (?P<strangers>\d+) never said who they are and (?P<evicted>\d+) had to make "
    r"room; (?P<unmarked>\d+) runtimes are not in the records, which (?P<records>.*)$"
)


class Rescue:
    """The program, on the socket and with the records of the daemon of that folder."""

    def __init__(self, folder, *arguments, prefix=(), environment=None, state=None, passed=(), sockets=None):
        self.folder = folder
        sockets = [str(folder / "runtime.sock")] if sockets is None else sockets
        command = [str(BUILD / "diagport-rescue"), "--state", str(state or folder / "state")]
        for path in sockets:
            command += ["--socket", path]
        command += arguments
        if passed:
            fds = ",".join(str(one.fileno()) for one in passed)
            command = [sys.executable, "-c", PASS_SOCKETS, ":".join("x" for _ in passed), fds, *command]
        self.process = subprocess.Popen(
            [*UNDER, *prefix, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], **(environment or {})},
            pass_fds=[one.fileno() for one in passed],
        )
        self.pid = self.process.pid
        self.log = Lines(self.process.stderr)

    @property
    def socket(self):
        return str(self.folder / "runtime.sock")

    def begins(self):
        """Waits until it listens."""
        self.log.wait("no daemon runs: every runtime that connects")
        return self

    def ends(self, status=0):
        """Waits for its end; its sum, where it came so far."""
        self.process.wait(TIMEOUT)
        self.log.end()
        assert self.process.returncode == status, self.log.seen
        assert not any(map(FINDINGS.search, self.log.seen)), self.log.seen
        found = [match for match in map(END.search, self.log.seen) if match]
        return {key: value if key == "records" else int(value) for key, value in found[0].groupdict().items()} if found else {}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.ends()

    def n_descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(TIMEOUT)


@pytest.fixture
def rescue(folder):
    made = []

    def make(*arguments, begins=True, in_folder=None, **options):
        made.append(Rescue(in_folder or folder, *arguments, **options))
        return made[-1].begins() if begins else made[-1]

    yield make
    for one in made:
        one.kill()


def resumes(runtime):
    return [port["resumes"] for port in runtime.report()["ports"]]


def is_undisturbed(runtime):
    """Nothing was applied to it, before its start or after it."""
    assert runtime.report()["environment"] == {}
    assert set(runtime.commands()) == {"resume"}
    assert set(runtime.finish()) <= {"resume"}
    assert runtime.report("end")["environment"] == {}


def gets_its_plan(runtime):
    return [command for command in runtime.commands() if command not in QUESTIONS] == ["env A=1", "resume"]


# Who waits.


def test_who_was_held_by_a_daemon_that_was_killed(daemon, fake, folder, rescue):
    missing = rule(startup_hooks=[{"path": str(folder / "missing.dll")}], on_failure="hold", hold_limit="forever")
    one = daemon([missing])
    runtimes = [fake(one.socket) for _ in range(5)]
    one.wait("diagportd: held ", times=5)
    one.kill()
    other = rescue()
    for runtime in runtimes:
        assert [command for command in runtime.commands() if command == "resume"] == ["resume"]
    end = other.stop()
    assert (end["runtimes"], end["messages"], end["unmarked"]) == (5, 5, 0)


@pytest.mark.parametrize("ended_by", ["kill", "stop"])
def test_who_was_in_the_middle_of_a_plan(daemon, fake, rescue, ended_by):
    one = daemon([rule(env={"A": "1", "B": "2"})], on_stop="keep")
    runtime = fake(one.socket, "stop-after-reply=set-env@1")
    runtime.stands()
    one.kill() if ended_by == "kill" else (one.signal(signal.SIGTERM), one.end(0))
    other = rescue()
    runtime.thaw()
    assert [command for command in runtime.commands() if command == "resume"] == ["resume"]
    assert other.stop()["unmarked"] == 0
    one.start()
    assert one.receipt(runtime.pid, "running").outcome == "late"
    assert set(runtime.finish()) <= {"resume"}


def test_nobody_is_resumed_again_and_again(fake, folder, rescue):
    """Its answer ends a connection, and the next one of the same runtime is left alone."""
    (folder / "state").mkdir(mode=0o700)
    one = rescue()
    before = one.n_descriptors()
    runtimes = [fake(one.socket) for _ in range(5)]
    assert [runtime.commands() for runtime in runtimes] == [["resume"]] * 5
    until(one.n_descriptors, lambda n: n == before + 5)
    end = one.stop()
    assert (end["runtimes"], end["messages"], end["connections"], end["open"]) == (5, 5, 10, 5)
    for runtime in runtimes:
        assert runtime.finish() == []


def test_two_hundred_at_once(fleet, rescue):
    one = rescue()
    summary = fleet(one.socket, 200, "--together", "--expect", "ResumeRuntime=1").summary()
    assert summary["resumed"] == 200
    assert summary["commands"] == {"ResumeRuntime": 200}
    assert one.stop()["messages"] == 200


@pytest.mark.parametrize("n", [2, 3])
def test_the_same_path_several_times(fake, fleet, rescue, n):
    one = rescue()
    runtime = fake(";".join([one.socket] * n))
    assert 1 <= min(resumes(runtime)) and max(resumes(runtime)) <= MOST_RESUMES
    summary = fleet(";".join([one.socket] * n), 50, "--together").summary()
    assert summary["resumed"] == 50
    assert 50 * n <= summary["commands"]["ResumeRuntime"] <= 50 * n * MOST_RESUMES


def test_two_sockets(fake, folder, rescue):
    second = str(folder / "second.sock")
    one = rescue(sockets=[str(folder / "runtime.sock"), second])
    runtime = fake(f"{one.socket};{second}")
    assert resumes(runtime) == [1, 1]
    # One that cannot be had costs only its own runtimes.
    other = rescue(sockets=[second, str(folder / "third.sock")])
    assert other.log.count(f"nobody is resumed on {second}: .* owns it") == 1
    assert fake(str(folder / "third.sock")).commands() == ["resume"]


def test_sockets_that_are_passed_in(fake, folder, rescue):
    path = str(folder / "passed.sock")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener, open("/dev/null") as other:
        listener.bind(path)
        listener.listen()
        runtime = fake(path)
        one = rescue(passed=[other, listener], sockets=[])
        assert one.log.count("of 2 descriptors that were passed in 1 are listening Unix sockets") == 1
        assert runtime.commands() == ["resume"]
        one.stop()
    assert os.path.exists(path)


def test_one_that_is_stopped_is_waited_for(fake, rescue):
    one = rescue()
    runtime = fake(one.socket, "stop-before-reply=resume@1")
    runtime.stands()
    others = [fake(one.socket) for _ in range(3)]
    assert [other.commands() for other in others] == [["resume"]] * 3
    runtime.thaw()
    assert runtime.commands() == ["resume"]
    assert one.stop()["messages"] == 4


# The next daemon.


@pytest.mark.parametrize("picture", ["honest", "suspended", "bare"])
def test_the_next_daemon_sets_up_nobody_who_was_resumed(daemon, fake, rescue, picture):
    one = daemon(PLAN)
    one.stop()
    other = rescue()
    runtimes = [fake(other.socket, f"picture={picture}") for _ in range(5)]
    assert [runtime.commands() for runtime in runtimes] == [["resume"]] * 5
    assert other.stop()["records"] == "are kept"
    one.start()
    assert [one.receipt(runtime.pid, "running").outcome for runtime in runtimes] == ["late"] * 5
    for runtime in runtimes:
        is_undisturbed(runtime)
    # And whoever comes from then on gets its plan.
    assert gets_its_plan(fake(one.socket))
    assert one.status()["records"] == "trusted"


def damage(state, how):
    records = state / "records"
    content = bytearray(records.read_bytes())
    if how == "first start":
        records.unlink()
    elif how == "no folder":
        records.unlink()
        shutil.rmtree(state)
    elif how == "deleted":
        (state / "something").touch()
        records.unlink()
    elif how == "cut":
        records.write_bytes(content[:-1])
    elif how == "emptied":
        records.write_bytes(b"")
    elif how == "other version":
        content[8] ^= 0xFF
        records.write_bytes(content)
    elif how == "corrupt":
        content[70] ^= 0x10
        content[70 + 136] ^= 0x10
        records.write_bytes(content)


DAMAGES = ["first start", "no folder", "deleted", "cut", "emptied", "other version", "corrupt"]


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("ended_by", ["stop", "kill"])
def test_records_that_cannot_be_believed(daemon, fake, rescue, how, ended_by):
    """Nobody is in them who was resumed, and so nobody may be set up who is older than the next daemon."""
    one = daemon(PLAN)
    one.stop()
    damage(one.state, how)
    other = rescue()
    runtimes = [fake(other.socket, "picture=suspended") for _ in range(3)]
    assert [runtime.commands() for runtime in runtimes] == [["resume"]] * 3
    if ended_by == "stop":
        assert other.stop()["messages"] == 3
    else:
        other.kill()
    one.start()
    assert one.status()["records"] == "distrusted"
    assert [one.receipt(runtime.pid, "running").outcome for runtime in runtimes] == ["unknown"] * 3
    for runtime in runtimes:
        is_undisturbed(runtime)


def test_a_daemon_that_lives_in_the_folder_is_not_written_to(daemon, fake, folder, rescue):
    one = daemon(PLAN)
    with contextlib.ExitStack() as stack:
        elsewhere = Folder()
        stack.callback(elsewhere.remove)
        before = (one.state / "records").read_bytes()
        other = rescue(in_folder=elsewhere, state=one.state)
        runtime = fake(other.socket)
        assert runtime.commands() == ["resume"]
        assert other.log.count("which has them|has locked them") == 1
        end = other.stop()
        assert end["unmarked"] == 1 and "has locked them" in end["records"]
        assert (one.state / "records").read_bytes() == before
        assert [name for name in os.listdir(one.state) if not name.startswith("policy-")] == ["records"]


@needs_root
@pytest.mark.parametrize("how", ["whole", "first start", "corrupt"])
def test_root_rescues_for_the_daemon_of_somebody_else(daemon, fake, rescue, how):
    """What it leaves in that user's folders can be used by his daemon."""
    one = daemon(PLAN, user=NOBODY)
    one.stop()
    (one.folder / ".runtime.sock.lock").unlink(missing_ok=True)
    damage(one.state, how)
    other = rescue()
    runtime = fake(other.socket, "picture=bare")
    assert runtime.commands() == ["resume"]
    other.kill()
    one.start()
    assert one.receipt(runtime.pid, "running").outcome == ("late" if how == "whole" else "unknown")
    assert one.alarms() == []
    is_undisturbed(runtime)


IN_MOUNT = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]


@needs_namespaces
@pytest.mark.parametrize("disk", ["ro", "nr_inodes=1", "size=64k"])
def test_a_disk_that_takes_nothing(daemon, fake, folder, rescue, disk):
    """Everybody is resumed all the same; a daemon on the same disk applies nothing to anybody."""
    (folder / "state").mkdir(mode=0o700)
    script = f'mount -t tmpfs -o {disk},mode=0700 none {folder / "state"} && exec "$@"'
    one = rescue(prefix=[*IN_MOUNT, script, "sh"])
    runtime = fake(one.socket, "picture=suspended")
    assert runtime.commands() == ["resume"]
    assert one.stop()["unmarked"] == 1
    # The mount was its own.
    after = daemon(PLAN, prefix=[*IN_MOUNT, script, "sh"])
    assert after.receipt(runtime.pid, "running").outcome == "unknown"
    is_undisturbed(runtime)


# Its socket.


def test_a_left_over_is_replaced_and_taken_away_again(daemon, fake, rescue):
    one = daemon()
    one.kill()
    assert os.path.exists(one.socket)
    other = rescue()
    assert stat.S_IMODE(os.stat(one.socket).st_mode) == 0o666
    assert fake(other.socket).commands() == ["resume"]
    other.stop()
    assert not os.path.exists(one.socket)


def test_what_belongs_to_somebody_else_is_left_alone(daemon, folder, rescue):
    one = daemon()
    inode = os.stat(one.socket).st_ino
    other = rescue(begins=False)
    assert other.ends(1) == {}
    assert other.log.count("a diagportd, or another rescue, owns it") == 1
    # Somebody who has no lock.
    path = str(folder / "foreign.sock")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(path)
        listener.listen()
        other = rescue(begins=False, sockets=[path])
        assert other.ends(1) == {}
        assert other.log.count("somebody listens there") == 1
        assert os.path.exists(path)
    # Something that is no socket.
    other = rescue(begins=False, sockets=[folder.file("file", "content")])
    assert other.ends(1) == {}
    assert (folder / "file").read_text() == "content"
    assert os.stat(one.socket).st_ino == inode


# Its end.


def test_it_ends_by_itself(daemon, fake, rescue):
    one = daemon(PLAN)
    one.freeze()
    runtimes = [fake(one.socket, "picture=suspended", "message-after=300") for _ in range(5)]
    for runtime in runtimes:
        runtime.told_pause()
    one.kill()
    end = rescue("1").ends()
    assert (end["runtimes"], end["messages"]) == (5, 5)
    assert [runtime.commands() for runtime in runtimes] == [["resume"]] * 5
    # On the same path, right after it.
    one.start()
    assert [one.receipt(runtime.pid, "running").outcome for runtime in runtimes] == ["late"] * 5
    assert gets_its_plan(fake(one.socket))
    for runtime in runtimes:
        is_undisturbed(runtime)


def test_it_is_told_to_end(fake, rescue):
    one = rescue()
    runtime = fake(one.socket)
    runtime.report()
    one.process.send_signal(signal.SIGHUP)
    assert fake(one.socket).commands() == ["resume"]
    one.process.send_signal(signal.SIGINT)
    assert one.ends()["runtimes"] == 2
    # A runtime that is left alone goes on.
    assert runtime.is_alive()


def ignored_signals(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"^SigIgn:\s*(\w+)", status.read(), re.MULTILINE).group(1), 16)


def test_a_hang_up_ends_it_at_no_time(rescue):
    for _ in range(20):
        one = rescue(begins=False)
        # Who sends it earlier sends it to somebody else: before its exec, its parent's child.
        until(lambda: ignored_signals(one.pid), lambda signals: signals & 1 << signal.SIGHUP - 1)
        one.process.send_signal(signal.SIGHUP)
        one.begins()
        one.stop()


def test_where_it_writes_to_the_journal(folder, rescue):
    script = 'exec 2>&1; export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2); exec "$@"'
    one = rescue(prefix=["sh", "-c", script.replace("exec 2>&1; ", ""), "sh"], begins=False)
    one.log.wait("^<[45]>no daemon runs")
    one.stop()
    assert one.log.count("^<[45]>the end: ") == 1


# Those who are no runtimes.

FEW = ["prlimit", "--nofile=64:64"]


@pytest.mark.parametrize("send", ["nothing", "half", "garbage", "http"])
def test_who_is_no_runtime(abuse, fleet, rescue, send):
    one = rescue(prefix=FEW)
    strange = abuse(one.socket, "--connections", "500", "--send", send)
    strange.opened()
    assert fleet(one.socket, 50, "--together").summary()["commands"] == {"ResumeRuntime": 50}
    until(one.n_descriptors, lambda n: n < 16)
    assert strange.finish()["commands"] == 0
    end = one.stop()
    # Some of the fleet are dead when they come again.
    assert end["runtimes"] == 50 and end["strangers"] >= 500


def test_who_comes_again_and_again(abuse, fleet, rescue):
    one = rescue(prefix=FEW)
    silent = abuse(one.socket, "--connections", "200", "--again")
    silent.opened()
    assert fleet(one.socket, 50).summary()["commands"] == {"ResumeRuntime": 50}
    silent.kill()


@pytest.mark.parametrize("answer", [[], ["--answer"], ["--answer", "--again"]])
@pytest.mark.parametrize("cookies", ["1", "300"])
def test_who_only_says_that_it_is_a_runtime(abuse, fleet, rescue, answer, cookies):
    """It may have every descriptor, but not for long."""
    one = rescue(prefix=FEW)
    other = abuse(one.socket, "--connections", "300", "--send", "advertise", "--cookies", cookies, *answer)
    other.opened()
    summary = fleet(one.socket, 20, "--together").summary()
    assert summary["resumed"] == 20
    other.kill()


def test_more_runtimes_than_descriptors(fake, rescue):
    """Who runs makes room for who waits, and is not let in and out without end."""
    one = rescue(prefix=FEW)
    runtimes = [fake(one.socket) for _ in range(100)]
    for runtime in runtimes:
        assert runtime.commands() == ["resume"]
    assert one.process.poll() is None
    for runtime in runtimes:
        assert set(runtime.finish()) <= {"resume"}
    assert one.stop()["runtimes"] == 100
