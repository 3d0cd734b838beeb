# SPDX-License-Identifier: Apache-2.0
"""At its deadline nothing of ours keeps a runtime: Resume is the next message that it reads, and nothing else is."""

import contextlib
import signal

import pytest
from others import Full, Tool
from plans import BACK, OLD, plan, whole

# Commands of the whole plan, and at which one the runtime is caught.
POINTS = ["0300", "info3", "set-env@1", "set-env@2", "startup-profiler", "hook"]


class Timer:
    """A runtime that nobody serves: it tells when so many milliseconds are over."""

    def __init__(self, fake, ms):
        self.runtime = fake("/nobody/listens/here", f"message-after={ms}")

    def is_over(self):
        self.runtime.told_pause()
        self.runtime.kill()


def check_story(folder, commands, n_planned):
    """The plan up to its `n_planned`th command, some of what takes it back, then Resume and nothing else."""
    at = commands.index("resume")
    assert set(commands[at:]) == {"resume"}
    assert commands[:n_planned] == whole(folder)[:n_planned], commands
    assert set(commands[n_planned:at]) <= {*BACK, *whole(folder)[:2]}, commands


def test_there_is_no_answer_at_any_point(daemon, fake, folder):
    """Each of these runtimes is silent at another point, and at the next one that takes something back, too."""
    one = daemon([plan(folder, deadline="3s")])
    before = one.descriptors()
    runtimes = [fake(one.socket, f"silent={point}", environment=OLD) for point in POINTS]
    deaf = fake(one.socket, "silent=startup-profiler", "silent=set-env@3+", environment=OLD)
    for n, runtime in enumerate(runtimes):
        check_story(folder, runtime.commands(), n + 1)
    # The first try to take back is never answered: no second one comes, since it ends with the deadline. Who is woken
    # only after that has not even a first one.
    commands = deaf.commands()
    assert commands in ([*whole(folder)[:5], *tries, "resume"] for tries in (["env OLD=x"], [])), commands
    for runtime in [*runtimes, deaf]:
        one.receipt(runtime.pid, "running")
        assert set(runtime.finish()) <= {"resume"}
        one.receipt(runtime.pid, "gone")
    outcomes = [one.runtime(runtime.pid).outcome for runtime in runtimes]
    assert outcomes == ["failed", "failed", "rolled_back", "rolled_back", "partial", "partial"]
    assert one.metric("diagport_deadline_total") >= 1
    one.has_descriptors(before)


def test_a_stop_of_the_daemon_at_any_point(daemon, fake, folder):
    """It sleeps over the deadlines. On waking it reads what was answered in time, and then sends Resume first."""
    one = daemon([plan(folder, deadline="3s")])
    runtimes = [fake(one.socket, f"stop-before-reply={point}", environment=OLD) for point in POINTS]
    for runtime in runtimes:
        runtime.stands()
    one.freeze()
    timer = Timer(fake, 3500)
    for runtime in runtimes:
        runtime.thaw()
    timer.is_over()
    one.thaw()
    for n, runtime in enumerate(runtimes):
        assert runtime.commands() == [*whole(folder)[: n + 1], "resume"]
    outcomes = [one.receipt(runtime.pid, "running").outcome for runtime in runtimes]
    assert outcomes == ["failed", "failed", "partial", "partial", "partial", "applied"]
    for runtime in runtimes:
        assert runtime.finish() == []


def test_who_comes_while_the_daemon_stands_gets_its_plan(daemon, fake, folder):
    """The deadline counts from when the daemon meets it."""
    one = daemon([plan(folder, deadline="2s")])
    one.freeze()
    runtime = fake(one.socket, "message-after=2500", environment=OLD)
    runtime.told_pause()
    one.thaw()
    assert runtime.commands() == [*whole(folder), "resume"]


@pytest.mark.parametrize("is_planned", [True, False])
def test_another_tool_blocks_it_on_its_own_port(daemon, fake, folder, is_planned):
    one = daemon([plan(folder, deadline="1s")] if is_planned else [])
    one.freeze()
    path = str(folder / "default.sock")
    runtime = fake(one.socket, f"default-port={path}", environment=OLD)
    with contextlib.closing(Tool(path)) as tool:
        tool.block()
        one.thaw()
        one.wait(rf"resuming .*pid={runtime.pid} ")
        held = one.until(runtime.pid, lambda receipt: receipt["blocked"])
        assert (held["state"], held["blocked"]) == ("resuming", "server_busy")
    # The tool is gone, and what it sent is a command of its own to the runtime; what we sent before was taken back.
    assert runtime.commands() == ["0000", "resume"]
    assert one.receipt(runtime.pid, "running")["blocked"] is None
    assert set(runtime.finish()) <= {"resume"}


@pytest.mark.parametrize("is_planned", [True, False])
def test_a_full_socket_of_somebody_else_blocks_it(daemon, fake, folder, is_planned):
    one = daemon([plan(folder, deadline="1s")] if is_planned else [])
    before = one.descriptors()
    with contextlib.closing(Full(folder / "full.sock")) as full:
        runtime = fake(f"{folder / 'full.sock'},nosuspend;{one.socket}", environment=OLD)
        one.wait(rf"resuming .*pid={runtime.pid} ")
        held = one.until(runtime.pid, lambda receipt: receipt["blocked"])
        assert (held["state"], held["blocked"]) == ("resuming", "server_busy")
        full.make_room()
        commands = runtime.commands()
    assert set(commands) == {"resume"}
    receipt = one.receipt(runtime.pid, "running")
    assert receipt.outcome == ("failed" if is_planned else "untouched")
    assert set(runtime.finish()) <= {"resume"}
    one.receipt(runtime.pid, "gone")
    one.has_descriptors(before)


def test_a_resume_is_never_closed(daemon, fake, folder):
    """However long nobody answers it. What else is not answered is, and then there may be nothing to write it on."""
    one = daemon([plan(folder, deadline="500ms", command_timeout="100ms")])
    silent = fake(one.socket, "silent=resume", environment=OLD)
    assert silent.commands()[-1] == "resume"
    stuck = fake(one.socket, "stuck=resume", environment=OLD)
    deaf = fake(one.socket, "unread=0300", environment=OLD)
    one.wait(rf"resuming .*pid={stuck.pid} ")
    one.wait(rf"resuming .*pid={deaf.pid} ")
    Timer(fake, 1500).is_over()
    assert [one.runtime(runtime.pid)["connections"] for runtime in (silent, stuck, deaf)] == [1, 1, 0]
    assert [one.runtime(runtime.pid)["state"] for runtime in (stuck, deaf)] == ["resuming", "resuming"]


def test_it_is_read_late(daemon, fake, folder):
    one = daemon([])
    runtime = fake(one.socket, "unread=resume:1500")
    assert runtime.commands() == ["resume"]
    assert one.receipt(runtime.pid, "running").outcome == "untouched"
    assert runtime.finish() == []


def test_reloads_do_not_delay_it(daemon, fake, folder):
    one = daemon([plan(folder, deadline="2s")])
    runtimes = [fake(one.socket, f"silent={point}", environment=OLD) for point in POINTS]
    while any(not runtime.lines.count('"event":"start"') for runtime in runtimes):
        assert one.reload()
    for n, runtime in enumerate(runtimes):
        check_story(folder, runtime.commands(), n + 1)


@pytest.mark.crowd
def test_a_thousand_others_do_not_delay_it(daemon, fake, abuse, folder):
    one = daemon([plan(folder, deadline="2s")], limits={"hello": "50ms"})
    runtimes = [fake(one.socket, f"silent={point}", environment=OLD) for point in POINTS]
    others = [
        abuse(one.socket, "--connections", "500", "--again", "--send", what) for what in ("nothing", "advertise")
    ]
    for n, runtime in enumerate(runtimes):
        check_story(folder, runtime.commands(), n + 1)
    for other in others:
        other.finish()
    assert one.status()["runtimes"]["held"] == 0


def test_a_stopped_runtime_is_shown_as_such(daemon, fake, folder):
    one = daemon([plan(folder, deadline="500ms")])
    runtime = fake(one.socket, "stop-after-advertise=@1", environment=OLD)
    runtime.stands()
    one.wait(rf"resuming .*pid={runtime.pid} ")
    held = one.until(runtime.pid, lambda receipt: receipt["blocked"])
    assert (held["state"], held["blocked"]) == ("resuming", "stopped")
    runtime.process.send_signal(signal.SIGCONT)
    assert set(runtime.commands()) == {"resume"}
    assert one.receipt(runtime.pid, "running")["blocked"] is None
