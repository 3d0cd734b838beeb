# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: who waits is resumed or kept, and socket files go only where they were made here."""

import contextlib
import os
import signal
import socket

import pytest
from harness import listen, rule
from plans import OLD, plan, whole
from runtimes import QUESTIONS

# Whether who waits is kept, by `on_stop` and by whether the socket was handed in.
KEEPS = {
    ("auto", False): False,
    ("auto", True): True,
    ("keep", False): True,
    ("keep", True): True,
    ("resume", False): False,
    ("resume", True): False,
}

STOPPED_EARLY = "diagportd: stopped without waiting any longer"


@contextlib.contextmanager
def handed_in(folder, is_passed, name="runtime"):
    """A listening socket for the daemon to be given, as a service manager does."""
    if not is_passed:
        yield {}
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / f"{name}.sock"))
        os.chmod(folder / f"{name}.sock", 0o666)
        listener.listen(100)
        yield {name: listener}


def steps(commands):
    """Without questions: a daemon may have asked some before it went away, and the next one asks again."""
    return [command for command in commands if command not in QUESTIONS]


def is_beginning(commands, folder):
    """Whether these are the plan up to some step, once, and then Resume."""
    plan_steps = steps(whole(folder))
    return commands[-1] == "resume" and commands[:-1] == plan_steps[: len(commands) - 1]


@pytest.mark.parametrize(("on_stop", "is_passed"), KEEPS, ids=lambda value: str(value))
def test_who_waits_is_resumed_or_kept(daemon, fake, folder, on_stop, is_passed):
    """One is held by its rule, one is in the middle of its plan and stands, one comes at the same time as the signal."""
    held_rule = rule("held", {"args": "held"}, env={"A": "1"}, on_failure="hold")
    with handed_in(folder, is_passed) as passed:
        one = daemon([held_rule, plan(folder)], passed=passed, on_stop=on_stop)
        held = fake(one.socket, "refuse=set-env@1:80004005", arguments=["held"])
        one.receipt(held.pid, "held")
        middle = fake(one.socket, "stop-before-reply=set-env@1", environment=OLD)
        middle.stands()
        one.freeze()
        new = fake(one.socket, "message-after=100", environment=OLD)
        new.told_pause()
        one.signal(signal.SIGTERM)
        one.thaw()
        one.end(0)
        assert os.path.exists(one.socket) == is_passed
        if KEEPS[on_stop, is_passed]:
            assert one.log.count("runtimes that wait stay suspended")
        else:
            assert one.log.count("runtimes that wait are resumed")
            # Without another daemon.
            assert held.commands()[-1] == "resume"
            assert is_beginning(steps(new.commands()), folder)
        middle.thaw()
        one.start()
        if KEEPS[on_stop, is_passed]:
            # Its answer was not read, and a variable may be sent again.
            assert steps(middle.commands()) == ["env A=1", *steps(whole(folder)), "resume"]
            assert one.receipt(middle.pid, "running").outcome == "applied"
            assert set(steps(new.commands())) == {*steps(whole(folder)), "resume"}
            assert one.receipt(new.pid, "running").outcome in ("applied", "late")
            # A hold goes on too.
            one.receipt(held.pid, "held")
            one.post(f"/v1/runtimes/pid:{held.pid}/resume", {})
            assert held.commands()[-1] == "resume"
            assert one.receipt(held.pid, "running").outcome == "rolled_back"
        else:
            # Its plan had ended with the daemon, and is taken back by the next one.
            assert steps(middle.commands()) == ["env A=1", "unset A", "resume"]
            assert one.receipt(middle.pid, "running").outcome == "rolled_back"
        one.stop()


@pytest.mark.parametrize("n_ports", [1, 2, 3])
@pytest.mark.parametrize("picture", ["honest", "bare"])
def test_everybody_is_resumed_in_the_middle_of_plans(daemon, fleet, folder, n_ports, picture):
    """Without another daemon: also those whose connection had to be given up, and who have to come back first."""
    one = daemon([plan(folder)], on_stop="resume")
    behaviours = ["delay=any:20", f"picture={picture}"]
    many = fleet(";".join([one.socket] * n_ports), 30, "--together", behaviours=behaviours, environment=OLD)
    # Who comes only when it is gone waits for the next one.
    one.wait("diagportd: applying ", times=30)
    one.stop()
    # On a machine that is so loaded that some do not come back in the time that stopping may take, it says so.
    if one.log.count(STOPPED_EARLY):
        one.start()
    assert many.summary()["resumed"] == 30


def test_a_last_answer_is_waited_for(daemon, fake, folder):
    """The daemon that goes away sends nothing new, and does not leave before what it sent is answered."""
    one = daemon([plan(folder)], on_stop="keep")
    runtime = fake(one.socket, "stop-before-reply=startup-profiler", environment=OLD)
    runtime.stands()
    one.signal(signal.SIGTERM)
    one.wait("runtimes that wait stay suspended")
    runtime.thaw()
    one.end(0)
    assert one.log.count("step profiler ok") == 1 and not one.log.count(STOPPED_EARLY)
    assert not one.log.count("step hook")
    one.start()
    # The next daemon asks again what it has to know, and goes on.
    assert runtime.commands() == [*whole(folder)[:5], "kind", "info3", *whole(folder)[5:], "resume"]
    assert one.receipt(runtime.pid, "running").outcome == "applied"


def test_who_does_not_answer_does_not_keep_the_daemon(daemon, fake, folder):
    one = daemon([plan(folder)], on_stop="keep")
    runtime = fake(one.socket, "stop-before-reply=startup-profiler", "silent=startup-profiler", environment=OLD)
    runtime.stands()
    runtime.thaw()
    one.stop()
    assert one.log.count(STOPPED_EARLY) == 1
    one.start()
    assert runtime.commands() == [*whole(folder)[:5], "kind", "info3", *whole(folder)[5:], "resume"]
    assert one.receipt(runtime.pid, "running").outcome == "partial"


def test_running_programs_do_not_notice(daemon, fake, folder):
    one = daemon([plan(folder)])
    runtime = fake(one.socket, environment=OLD)
    assert runtime.commands() == [*whole(folder), "resume"]
    for _ in range(3):
        one.stop()
        one.start()
        one.receipt(runtime.pid, "running")
    assert runtime.finish() == ["resume"] * 3


def test_files_of_others_stay(daemon, folder):
    """Where somebody has put something else at the path, it is his."""
    one = daemon([], listen=[listen(folder), listen(folder, "second")])
    os.unlink(one.socket)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(one.socket)
        one.stop()
        assert os.path.exists(one.socket)
    assert not os.path.exists(folder / "second.sock")
    assert not os.path.exists(one.control)


def test_one_of_two_is_handed_in(daemon, fake, folder):
    with handed_in(folder, True, "second") as passed:
        one = daemon([plan(folder)], passed=passed, listen=[listen(folder), listen(folder, "second")])
        assert {(entry["name"], entry["passed_in"]) for entry in one.status()["listeners"]} == {
            ("runtime", False),
            ("second", True),
        }
        runtimes = [fake(path, environment=OLD) for path in (one.socket, str(folder / "second.sock"))]
        assert [runtime.commands() for runtime in runtimes] == [[*whole(folder), "resume"]] * 2
        assert [one.receipt(runtime.pid, "running")["port"] for runtime in runtimes] == ["runtime", "second"]
        one.stop()
        assert os.path.exists(folder / "second.sock")
        assert not os.path.exists(one.socket)


def test_connections_wait_in_a_socket_that_was_handed_in(daemon, fake, folder):
    with handed_in(folder, True) as passed:
        runtime = fake(str(folder / "runtime.sock"), "message-after=100", environment=OLD)
        runtime.told_pause()
        one = daemon([plan(folder)], passed=passed)
        assert runtime.commands() == [*whole(folder), "resume"]
        one.stop()


def test_what_is_handed_in_and_is_no_listener_is_refused(daemon, folder):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other:
        one = daemon([], start=False, passed={"runtime": other})
        one.spawn()
        one.end(1)
        assert one.log.count("not a listening Unix stream socket")
