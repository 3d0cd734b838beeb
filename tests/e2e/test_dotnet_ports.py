# SPDX-License-Identifier: Apache-2.0
"""Real programs with several ports, with ports that do not suspend, and with somebody else on one of them."""

import contextlib
import os
import socket

import pytest
from apps import CORECLR, EVERY, NATIVEAOT, UNTOUCHED, WHOLE, check_applied, check_resumed_only, told, whole_rule
from harness import listen, until
from others import Elsewhere, Full, Tool

pytestmark = pytest.mark.dotnet

planned = pytest.mark.parametrize("is_planned", [True, False], ids=["matched", "unmatched"])
coreclr = pytest.mark.parametrize("name", CORECLR)
every = pytest.mark.parametrize("name", EVERY)


def rules(rig, is_planned, **keys):
    return [whole_rule(rig, **keys)] if is_planned else []


def is_running(app):
    return bool(app.lines.matches("^{"))


def is_suspended(app):
    """Whether its diagnostic server is there, which comes before it is held: long before the program's own code."""
    with contextlib.suppress(FileNotFoundError):
        threads = os.listdir(f"/proc/{app.pid}/task")
        return any("EventPipe" in open(f"/proc/{app.pid}/task/{thread}/comm").read() for thread in threads)
    return False


def default_port(app, folder):
    """The socket that the runtime itself listens on, as soon as it is there."""
    (path,) = until(lambda: list(folder.path.glob(f"dotnet-diagnostic-{app.pid}-*-socket")), lambda found: found)
    return path


def resumes(receipt):
    """How often Resume was sent, and how often it was answered."""
    steps = [step for step in receipt["steps"] if step["kind"] == "resume"]
    return sum(step["attempts"] for step in steps), sum(step["result"] == "ok" for step in steps)


def check_once(receipt, is_planned, n_ports):
    """The plan once, and a Resume for each port; one more goes to a port that is taken for another one."""
    steps = [step for step in receipt["steps"] if step["kind"] != "resume"]
    assert receipt.outcome == ("applied" if is_planned else "untouched"), receipt
    assert {step["result"] for step in steps} == ({"ok"} if is_planned else set())
    assert resumes(receipt)[1] >= n_ports, receipt


# Several ports of ours.


@planned
@every
def test_two_listeners(daemon, start, rig, folder, name, is_planned):
    is_planned = is_planned and name not in NATIVEAOT
    one = daemon(rules(rig, is_planned), listen=[listen(folder), listen(folder, "second")])
    app = start(name, f"{one.socket};{folder / 'second.sock'}")
    assert told(app) == (WHOLE if is_planned else UNTOUCHED)
    check_once(one.receipt(app.pid, "running"), is_planned, 2)
    app.finish()


@planned
@every
def test_the_same_path_twice(daemon, start, rig, name, is_planned):
    is_planned = is_planned and name not in NATIVEAOT
    one = daemon(rules(rig, is_planned))
    app = start(name, f"{one.socket};{one.socket}")
    assert told(app) == (WHOLE if is_planned else UNTOUCHED)
    check_once(one.receipt(app.pid, "running"), is_planned, 2)
    app.finish()


@pytest.mark.parametrize("how", ["stop", "kill"])
@coreclr
def test_the_same_path_twice_after_a_restart(daemon, start, rig, name, how):
    """The first Resume is out, and the second one may be, when the next daemon starts to count anew."""
    one = daemon([whole_rule(rig)])
    app = start(name, f"{one.socket};{one.socket}")
    one.wait(rf"step resume ok .*pid={app.pid} ")
    one.stop() if how == "stop" else one.kill()
    one.start()
    assert told(app) == WHOLE
    assert one.receipt(app.pid, "running").outcome == "late"
    app.finish()


@coreclr
def test_the_same_path_twice_held_over_a_restart(daemon, start, rig, name):
    """Nothing was sent, so the next daemon tries the plan anew, and then both ports are resumed."""
    one = daemon([whole_rule(rig, startup_hooks=[{"path": "/nowhere/Absent.dll"}], on_failure="hold")])
    app = start(name, f"{one.socket};{one.socket}")
    one.receipt(app.pid, "held")
    one.kill()
    one.start()
    held = one.receipt(app.pid, "held")
    assert not is_running(app)
    one.post(f"/v1/runtimes/{held['id']}/resume", {})
    assert told(app) == UNTOUCHED
    receipt = one.receipt(app.pid, "running")
    assert (receipt.outcome, resumes(receipt)[1] >= 2) == ("failed", True), receipt
    app.finish()


# Ports that do not suspend, and programs that run already.


@every
def test_a_port_that_does_not_suspend(daemon, start, rig, name):
    one = daemon([whole_rule(rig)])
    app = start(name, f"{one.socket},nosuspend")
    assert told(app) == UNTOUCHED
    check_resumed_only(one.receipt(app.pid, "running"), "late")
    app.finish()


@every
def test_it_runs_before_the_daemon_does(daemon, start, rig, folder, name):
    one = daemon([whole_rule(rig)], start=False, limits={"late_after": "10ms"})
    app = start(name, f"{one.socket},nosuspend")
    assert told(app) == UNTOUCHED
    one.start()
    check_resumed_only(one.receipt(app.pid, "running"), "late")
    app.finish()


@pytest.mark.parametrize("is_passed", [False, True], ids=["absent", "queued"])
@every
def test_it_waits_before_the_first_daemon_starts(daemon, start, rig, folder, name, is_passed):
    """For a socket that is not there, or in the queue of one that a service manager has opened. NativeAOT 8 does not
    show that it waits."""
    with contextlib.ExitStack() as stack:
        passed = {}
        if is_passed:
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listener.bind(str(folder / "runtime.sock"))
            listener.listen()
            passed = {"runtime": listener}
        one = daemon([whole_rule(rig)], start=False, passed=passed, limits={"late_after": "10ms"})
        app = start(name, one.socket)
        if name == "nativeaot-8":
            default_port(app, folder)
        else:
            until(lambda: is_suspended(app), lambda it_is: it_is)
        assert not is_running(app)
        one.start()
        if name in NATIVEAOT:
            assert told(app) == UNTOUCHED
            receipt = one.receipt(app.pid, "running")
            assert receipt.outcome == ("unknown" if name == "nativeaot-8" else "failed"), receipt
        else:
            assert told(app) == WHOLE
            check_applied(one.receipt(app.pid, "running"), rig)
        app.finish()
        one.stop()


# Somebody else's.


@planned
@coreclr
def test_a_port_of_somebody_else_holds_it(daemon, start, rig, folder, name, is_planned):
    one = daemon(rules(rig, is_planned))
    with contextlib.closing(Elsewhere(folder / "other.sock")) as other:
        app = start(name, f"{one.socket};{folder / 'other.sock'}")
        other.accept()
        one.wait(rf"step resume ok .*pid={app.pid} ")
        held = one.until(app.pid, lambda receipt: receipt["blocked"])
        assert (held["state"], held["blocked"]) == ("resuming", "other_port")
        assert held["blocked_ports"] == [str(folder / "other.sock")]
        assert not is_running(app)
        other.resume()
        assert told(app) == (WHOLE if is_planned else UNTOUCHED)
        receipt = one.receipt(app.pid, "running")
        assert (receipt["blocked"], receipt.outcome) == (None, "applied" if is_planned else "untouched")
        app.finish()


@every
def test_its_own_default_port_holds_it(daemon, start, folder, name):
    one = daemon([])
    app = start(name, one.socket, environment={"DOTNET_DefaultDiagnosticPortSuspend": "1"})
    one.wait(rf"step resume ok .*pid={app.pid} ")
    # NativeAOT 8 does not show that it waits.
    if name != "nativeaot-8":
        held = one.until(app.pid, lambda receipt: receipt["blocked"])
        assert (held["state"], held["blocked"]) == ("resuming", "other_port")
    assert not is_running(app)
    with contextlib.closing(Tool(default_port(app, folder))) as tool:
        tool.resume()
        assert told(app) == UNTOUCHED
    one.receipt(app.pid, "running")
    app.finish()


@planned
@coreclr
def test_another_tool_blocks_it_on_its_own_port(daemon, start, rig, folder, name, is_planned):
    """Its deadline comes, or no rule matches: Resume is the next that it is sent, and is waited for without limit."""
    one = daemon(rules(rig, is_planned, deadline="200ms", command_timeout="50ms"))
    one.freeze()
    app = start(name, one.socket)
    with contextlib.closing(Tool(default_port(app, folder))) as tool:
        tool.block()
        one.thaw()
        one.wait(rf"resuming .*pid={app.pid} ")
        held = one.until(app.pid, lambda receipt: receipt["blocked"])
        assert (held["state"], held["blocked"]) == ("resuming", "server_busy")
        assert not is_running(app)
    assert told(app) == UNTOUCHED
    receipt = one.receipt(app.pid, "running")
    assert (receipt["blocked"], receipt.outcome) == (None, "failed" if is_planned else "untouched")
    assert resumes(receipt) == (1, 1), receipt
    app.finish()


@planned
@coreclr
def test_a_full_socket_of_somebody_else_blocks_it(daemon, start, rig, folder, name, is_planned):
    """A runtime connects to the last of its ports first: it has come to us, and does not answer."""
    one = daemon(rules(rig, is_planned, deadline="200ms", command_timeout="50ms"))
    with contextlib.closing(Full(folder / "full.sock")) as full:
        app = start(name, f"{folder / 'full.sock'},nosuspend;{one.socket}")
        one.wait(rf"resuming .*pid={app.pid} ")
        held = one.until(app.pid, lambda receipt: receipt["blocked"])
        assert (held["state"], held["blocked"]) == ("resuming", "server_busy")
        assert not is_running(app)
        full.make_room()
        assert told(app) == UNTOUCHED
        receipt = one.receipt(app.pid, "running")
        assert receipt.outcome == ("failed" if is_planned else "untouched"), receipt
        assert resumes(receipt) == (1, 1), receipt
        app.finish()


@planned
@coreclr
def test_a_full_socket_of_somebody_else_keeps_it_away(daemon, start, rig, folder, name, is_planned):
    """The other way round it comes to us when there is room, and gets what it would have got before."""
    one = daemon(rules(rig, is_planned))
    with contextlib.closing(Full(folder / "full.sock")) as full:
        app = start(name, f"{one.socket};{folder / 'full.sock'},nosuspend")
        until(lambda: is_suspended(app), lambda it_is: it_is)
        full.make_room()
        assert told(app) == (WHOLE if is_planned else UNTOUCHED)
        check_once(one.receipt(app.pid, "running"), is_planned, 1)
        app.finish()
