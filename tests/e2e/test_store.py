# SPDX-License-Identifier: Apache-2.0
"""SIGKILL for a daemon whose service manager keeps connections: the next one reads the answers that it did not."""

import os
import select
import socket

import manager as managers
import pytest
from harness import listen, rule
from lines import TIMEOUT
from plans import BACK, OLD, plan, whole

HELD = rule("held", {"args": "held"}, env={"A": "1"}, on_failure="hold")


@pytest.fixture
def manager(folder):
    one = managers.Manager(folder)
    yield one
    one.close()


@pytest.fixture
def daemon(daemon, manager, folder):
    """With sockets that outlive it, as systemd's do."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / "runtime.sock"))
        os.chmod(folder / "runtime.sock", 0o666)
        listener.listen(100)

        def make(*arguments, **options):
            return daemon(*arguments, **{"manager": manager, "passed": {"runtime": listener}, **options})

        yield make


def stands_at(one, fake, step, *behaviours):
    """A runtime that has taken that step and not answered it."""
    runtime = fake(one.socket, f"stop-before-reply={step}@1", *behaviours, environment=OLD)
    runtime.stands()
    return runtime


def has_answered(kept):
    """Waits until there is an answer on the one that is kept, and its end."""
    (connection,) = kept.values()
    ready = select.poll()
    ready.register(connection, select.POLLRDHUP)
    assert ready.poll(1000 * TIMEOUT)
    assert len(connection.recv(100, socket.MSG_PEEK)) == 24


POINTS = {"startup-profiler": 5, "hook": 6}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("is_before", [False, True])
def test_the_answer_in_flight_is_read(daemon, manager, fake, folder, point, is_before):
    """It may come before the next daemon is there, with the end of its connection and the next one."""
    one = daemon([plan(folder, on_lost="fail")])
    runtime = stands_at(one, fake, point)
    one.kill()
    manager.drain()
    assert len(manager.kept) == 1
    if is_before:
        runtime.thaw()
        has_answered(manager.kept)
    one.start()
    assert one.log.count("of 1 connections that were kept for this daemon 1 are gone on with")
    runtime.thaw()
    n = POINTS[point]
    assert runtime.commands() == [*whole(folder)[:n], "kind", "info3", *whole(folder)[n:], "resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert receipt.outcome == "applied" and set(receipt.results().values()) == {"ok"}
    assert receipt["exe"].endswith("fake-runtime")
    manager.until(lambda kept: not kept)
    # A name is never given twice, whoever gives it.
    asked = [entry for entry in manager.asked if entry.startswith("keep")]
    assert len(asked) == len(set(asked)) == 2


def test_it_is_awaited_like_any_other(daemon, manager, fake, folder):
    """Until its time is over: then it is lost, and it is hung up on who has it."""
    one = daemon([plan(folder, on_lost="fail", deadline="3s")])
    runtime = stands_at(one, fake, "hook")
    one.kill()
    one.start()
    receipt = one.receipt(runtime.pid, "resuming")
    assert receipt.step("hook")["result"] == "lost"
    manager.until(lambda kept: not kept)
    runtime.thaw()
    assert runtime.commands()[-1] == "resume"


def test_whoever_dies_meanwhile_is_forgotten(daemon, manager, fake, folder):
    one = daemon([plan(folder)])
    runtime = stands_at(one, fake, "hook")
    one.kill()
    runtime.kill()
    one.start()
    assert one.log.count("of 1 connections that were kept for this daemon 0 are gone on with")
    manager.until(lambda kept: not kept)
    assert one.get("/v1/runtimes")["runtimes"] == []


@pytest.mark.parametrize("ends", ["kill", "stop"])
def test_who_is_held_does_not_notice(daemon, manager, fake, ends):
    one = daemon([HELD])
    runtime = fake(one.socket, "refuse=set-env@1:80004005", arguments=["held"])
    one.receipt(runtime.pid, "held")
    manager.until(lambda kept: len(kept) == 1)
    # Its record names the connection by the end of the turn in which that was given away.
    one.get("/v1/status")
    for _ in range(2):
        getattr(one, ends)()
        one.start()
        seen = one.until(runtime.pid, lambda seen: seen["exe"])
        assert seen["state"] == "held" and seen["cmdline"][1:] == ["held"]
    assert len(manager.asked) == 1
    one.post(f"/v1/runtimes/pid:{runtime.pid}/resume", {})
    # Each of its commands came by the connection after that of the one before.
    assert [command["connection"] for command in runtime.report()["commands"]] == [1, 2, 3, 4]
    one.receipt(runtime.pid, "running")
    manager.until(lambda kept: not kept)


def test_what_nobody_knows_is_hung_up(daemon, manager, folder):
    ends = []
    for name in ("r-", "r-0", "r-x", "r-7x", "r-77", "r-18446744073709551616"):
        end, manager.kept[name] = socket.socketpair()
        ends.append(end)
    one = daemon([])
    for end in ends:
        assert end.recv(1) == b""
        end.close()
    manager.until(lambda kept: not kept)
    assert one.is_alive()


def test_without_its_record_it_is_hung_up(daemon, manager, fake, folder):
    """And connects again, and gets Resume."""
    one = daemon([plan(folder)])
    runtime = stands_at(one, fake, "hook")
    one.kill()
    (one.state / "records").unlink()
    (one.state / "something").touch()
    one.start()
    manager.until(lambda kept: not kept)
    runtime.thaw()
    assert runtime.commands() == [*whole(folder), "resume"]
    assert one.receipt(runtime.pid, "running").outcome == "unknown"


def test_a_manager_that_is_deaf_keeps_nobody_waiting(daemon, manager, fake, folder):
    """Nothing is kept, and what is in flight at the end is lost as without one."""
    one = daemon([plan(folder, on_lost="fail")])
    manager.be_deaf()
    first = fake(one.socket, environment=OLD)
    assert first.commands() == [*whole(folder), "resume"]
    runtime = stands_at(one, fake, "hook")
    one.kill()
    manager.read()
    manager.drain()
    assert manager.asked == []
    one.start()
    runtime.thaw()
    assert runtime.commands() == [*whole(folder), "kind", "info3", *BACK, "resume"]
    assert one.receipt(runtime.pid, "running").outcome == "partial"


def test_a_removal_is_told_when_somebody_listens(daemon, manager, fake, folder):
    one = daemon([plan(folder)])
    runtime = stands_at(one, fake, "hook")
    manager.until(lambda kept: len(kept) == 1)
    manager.be_deaf()
    runtime.thaw()
    one.receipt(runtime.pid, "running")
    assert len(manager.kept) == 1
    manager.read()
    manager.until(lambda kept: not kept)


def test_a_hang_up_is_one_whoever_else_has_it(daemon, manager, fake, folder):
    """After an error of the profiler set the runtime waits for us to close."""
    one = daemon([plan(folder)])
    runtime = stands_at(one, fake, "startup-profiler", "refuse=startup-profiler@1:80004005", "leave-open=startup-profiler@1")
    manager.until(lambda kept: len(kept) == 1)
    manager.be_deaf()
    runtime.thaw()
    # Refused unread, it has no arguments.
    assert runtime.commands() == [*whole(folder)[:4], "profiler", *BACK, "resume"]
    (connection,) = manager.kept.values()
    assert connection.recv(1) == b""
    manager.read()
    manager.until(lambda kept: not kept)


def test_a_listener_that_is_gone_keeps_nobody(daemon, manager, fake, folder):
    """Its connections cannot be made anew; so they had better not be lost."""
    one = daemon([HELD], listen=[listen(folder), listen(folder, "second")])
    runtime = fake(str(folder / "second.sock"), "refuse=set-env@1:80004005", arguments=["held"])
    one.receipt(runtime.pid, "held")
    # It comes back after its answer, and is kept then.
    manager.until(lambda kept: len(kept) == 1)
    one.get("/v1/status")
    one.kill()
    one.policy([HELD])
    one.start()
    one.until(runtime.pid, lambda seen: seen["state"] == "held")
    one.post(f"/v1/runtimes/pid:{runtime.pid}/resume", {})
    assert runtime.commands()[-1] == "resume"
