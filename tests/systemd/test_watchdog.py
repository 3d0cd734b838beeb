# SPDX-License-Identifier: Apache-2.0
"""A daemon whose loop does not turn is ended and started anew, and no app notices; one that only has much to do is not."""

import json
import pathlib
import signal

import faulty
import images
import inside
import pytest
from harness import Http
from inside import CONTROL, PORT, SERVICE, systemctl
from plans import OLD, plan, whole

GROUPS = pathlib.Path("/sys/fs/cgroup/cgroup.controllers")

HELD = {"name": "held", "match": {"args": "held"}, "startup_hooks": [{"path": "/nowhere/Hook.dll"}], "on_failure": "hold",
        "hold_limit": "10m"}


class Files:
    """Of a plan, where every daemon and every runtime sees them."""

    def __init__(self, path):
        self.path = path
        path.chmod(0o755)

    def __truediv__(self, name):
        return self.path / name

    def _file(self, name, content):
        (self.path / name).write_bytes(content)
        return str(self.path / name)

    def hook(self):
        return self._file("Hook.dll", images.hook())

    def profiler(self):
        return self._file("profiler.so", images.profiler())


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


def started_anew(before):
    inside.until(inside.main_pid, lambda pid: pid not in (0, before))
    inside.until(lambda: inside.is_active(SERVICE))


def is_held(runtime):
    return inside.runtimes(pid=runtime.pid, state="held")


class Waiting:
    """One who is held, and two with a step in flight: a variable, and a hook."""

    def __init__(self, fake):
        self.held = fake(PORT, arguments=["held"])
        inside.until(lambda: is_held(self.held))
        self.stopped = [fake(PORT, f"stop-before-reply={step}@1", arguments=["planned"], environment=OLD)
                        for step in ("set-env", "hook")]
        for runtime in self.stopped:
            runtime.stands()

    def go_on(self, files):
        """Each step once, but for a variable whose answer nobody has read; and nobody was resumed early."""
        inside.until(lambda: is_held(self.held))
        for runtime in self.stopped:
            runtime.thaw()
            commands = runtime.commands()
            steps = [command for command in commands if not command.startswith(("kind", "info", "env A=1"))]
            assert steps == [*whole(files)[3:], "resume"], commands
            (seen,) = inside.until(lambda pid=runtime.pid: inside.runtimes(pid=pid, state="running"))
            assert seen["outcome"] == "applied"
        inside.ctl("resume", f"pid:{self.held.pid}")
        assert self.held.commands() == ["resume"]


def write_policy(files):
    inside.write_rules(HELD, {**plan(files), "name": "planned", "match": {"args": "planned"}, "on_lost": "fail",
                              "deadline": "5m", "command_timeout": "1m"})


def is_stopped(_, daemon):
    inside.signal(signal.SIGSTOP, daemon)


def blocks(faults, _):
    """A call of the next turn that never returns."""
    faults.hang_next("accept4")


def spins(faults, _):
    faults.spin_next("accept4")


@pytest.mark.parametrize("stands", [is_stopped, blocks, spins], ids=lambda stands: stands.__name__)
def test_a_loop_that_stands_is_started_anew(service, fake, files, stands):
    write_policy(files)
    service(None)
    faults = faulty.install()
    systemctl("restart", SERVICE)
    before = inside.main_pid()
    waiting = Waiting(fake)
    journal = inside.Journal()
    stands(faults, before)
    # It is the one who comes that it stands at.
    runtime = fake(PORT, arguments=["planned"], environment=OLD)
    started_anew(before)
    assert inside.prop(SERVICE, "NRestarts") == "1"
    messages = "\n".join(journal.messages("UNIT=" + SERVICE))
    assert "Watchdog timeout" in messages and "status=6/ABRT" in messages and "result 'watchdog'" in messages
    assert runtime.commands() == [*whole(files), "resume"]
    waiting.go_on(files)


def test_a_quiet_daemon_is_not_taken_for_one_that_stands(service):
    """Longer than the watchdog waits, with nothing to do."""
    inside.write_rules(HELD)
    before = service(None)
    journal = inside.Journal()
    first = inside.until(fed_at)
    inside.until(fed_at, lambda at: at > first + 3_000_000)
    assert inside.main_pid() == before
    assert not journal.messages("UNIT=" + SERVICE)


def fed_at():
    return int(inside.prop(SERVICE, "WatchdogTimestampMonotonic"))


@pytest.mark.skipif(not GROUPS.exists() or "memory" not in GROUPS.read_text().split(),
                    reason="the control groups here are not of version 2 with a memory controller, so nothing is ended by Result=oom-kill")
def test_memory_that_runs_out_is_a_restart_like_any_other(service, fake, files):
    write_policy(files)
    before = service(None)
    waiting = Waiting(fake)
    journal = inside.Journal()
    systemctl("set-property", "--runtime", SERVICE, "MemoryMax=64K")
    inside.until(inside.main_pid, lambda pid: pid != before)
    systemctl("set-property", "--runtime", SERVICE, "MemoryMax=infinity")
    started_anew(before)
    assert "result 'oom-kill'" in "\n".join(journal.messages("UNIT=" + SERVICE))
    waiting.go_on(files)


# Much to do.


def planned(name, value):
    return {"name": name, "match": {"args": name}, "env": {"A": value}, "deadline": "5m", "command_timeout": "1m"}


def rules():
    return [rule["name"] for rule in inside.ctl_json("rules")["rules"]]


def resume_all(pids):
    connection = Http(CONTROL)
    for pid in pids:
        connection.request("POST", f"/v1/runtimes/pid:{pid}/resume", "{}")
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
    connection.close()


def n_held():
    return inside.ctl_json("status")["runtimes"]["held"]


def test_a_reload_with_a_thousand_held(service, fake, fleet):
    """All of the new policy or nothing; ready and fed again, and nobody is resumed by it."""
    crowd = {**HELD, "name": "crowd", "match": {"env": {"CROWD": "yes"}}}
    inside.write_rules(crowd, planned("old", "1"))
    before = service(None)
    many = fleet(PORT, 1000, environment={"CROWD": "yes"})
    inside.until(n_held, lambda n: n == 1000)
    # Not even one of the rules of a policy with an error in another one.
    inside.write_policy(json.dumps({"version": 1, "rules": [planned("new", "2"), {"name": "bad"}]}))
    systemctl("reload", SERVICE, status=1)
    assert rules() == ["crowd", "old"] and n_held() == 1000
    fresh = [planned(f"new{n}", "2") for n in range(200)]
    inside.write_rules(*fresh)
    systemctl("reload", SERVICE)
    assert inside.prop(SERVICE, "ActiveState") == "active" and inside.prop(SERVICE, "SubState") == "running"
    assert rules() == [rule["name"] for rule in fresh] and n_held() == 1000
    assert fake(PORT, arguments=["new199"]).commands()[-2:] == ["env A=2", "resume"]
    assert fake(PORT, arguments=["old"]).commands() == ["resume"]
    # The manager hears of it that it goes on, beyond the time that it waits for that.
    first = fed_at()
    inside.until(fed_at, lambda at: at > first + 3_000_000)
    assert inside.main_pid() == before and inside.prop(SERVICE, "NRestarts") == "0"
    assert n_held() == 1000
    resume_all([one["pid"] for one in inside.runtimes(state="held")])
    summary = many.summary()
    assert summary["resumed"] == 1000 and set(summary["commands"]) == {"ResumeRuntime"}
