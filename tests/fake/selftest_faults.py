# SPDX-License-Identifier: Apache-2.0
"""The part of selftest.py about faults: each is shown to do what --help says."""

import contextlib
import os
import signal
import subprocess

from selftest_common import *  # noqa: F403
from toolside import *  # noqa: F403


# Faults of commands.


def test_refuse():
    with fake("--refuse", "startup-profiler:80070057:2", "--refuse", "set-env@2-3:80004005") as (runtime, port):
        expect("profiler", [port.ask(STARTUP_PROFILER, GUID + text("/a")) for _ in range(2)], [INVALID] * 2)
        expect("profiler in the end", startup_profiler(port, "/a"), "ok")
        results = [port.ask(SET_ENV, text(f"V{n}") + text("")) for n in range(4)]
        expect("variables", results, ["ok", FAILS, FAILS, "ok"])
        report = resumed(runtime, port)
        expect("environment", list(report["environment"]), ["V0", "V3"])
        expect("faults", {c["fault"] for c in report["commands"]}, {None, "refuse"})


def test_refuse_success():
    """An error that carries the number of a success: the id decides."""
    with fake("--refuse", "any:0") as (_, port):
        connection = port.accept()
        connection.send(INFO)
        expect("reply", connection.read_reply(), (0xFF, b"\0\0\0\0"))


def test_silent():
    """Done, not answered; when the tool has closed it goes on."""
    with fake("--silent", "set-env") as (runtime, port):
        connection = port.accept()
        connection.send(SET_ENV, text("A") + text("B"))
        shake_hands(connection)
        expect("an answer", connection.is_silent(), True)
        connection.close()
        expect("environment", resumed(runtime, port)["environment"], {"A": "B"})


def test_stuck():
    with fake("--stuck", "set-env") as (runtime, port):
        connection = port.accept()
        connection.send(SET_ENV, text("A") + text("B"))
        shake_hands(connection)
        connection.close()
        expect("somebody new", port.has_waiting(), False)


def test_unread():
    """For a time: a tool that closes meanwhile has never asked; for ever: nothing is read."""
    with fake("--unread", "set-env@1:50") as (runtime, port):
        connection = port.accept()
        connection.send(SET_ENV, text("A") + text("B"))
        connection.close()
        expect("the second", port.ask(SET_ENV, text("C") + text("D")), "ok")
        expect("environment", resumed(runtime, port)["environment"], {"C": "D"})
    with fake("--unread", "set-env:10") as (_, port):
        expect("a patient tool", port.ask(SET_ENV, text("A") + text("B")), "ok")
    with fake("--unread", "any") as (_, port):
        connection = port.accept()
        connection.send(INFO)
        expect("an answer", connection.is_silent(), True)


def test_reset():
    with fake("--reset", "resume@1") as (runtime, port):
        expect("the first", port.ask(RESUME), "reset")
        expect("the second", port.ask(RESUME), "ok")
        expect("resumes", runtime.report()["ports"][0]["resumes"], 1)


def test_close_before_reply():
    with fake("--close-before-reply", "set-env") as (runtime, port):
        expect("the answer", port.ask(SET_ENV, text("A") + text("B")), "eof")
        expect("environment", resumed(runtime, port)["environment"], {"A": "B"})


def test_half_reply():
    """So many bytes and nothing more, not even an end, until the tool closes."""
    for rule, count in (("resume", 12), ("resume:7", 7)):
        with fake("--half-reply", rule, "--start-delay", "10000") as (runtime, port):
            connection = port.accept()
            connection.send(RESUME)
            expect("the beginning", connection.read(count), message(0xFF00, b"\0\0\0\0")[:count])
            runtime.stop()
            expect("nothing more", (connection.is_silent(), port.has_waiting()), (True, False))
            runtime.go_on()
            connection.close()
            port.accept()


def test_bent_replies():
    for option, changed in [("--wrong-magic=resume", 12), ("--reply-size=resume:20", 14), ("--reply-set=resume:4", 16)]:
        with fake(option) as (_, port):
            connection = port.accept()
            connection.send(RESUME)
            reply = connection.read_rest()[0]
            good = message(0xFF00, b"\0\0\0\0")
            expect(option, [i for i in range(len(good)) if good[i] != reply[i]], [changed])


def test_extra_bytes():
    with fake("--extra-bytes", "resume:5") as (_, port):
        connection = port.accept()
        connection.send(RESUME)
        expect("reply", connection.read_rest()[0], message(0xFF00, b"\0\0\0\0") + b"xxxxx")


def test_leave_open():
    with fake("--leave-open", "info") as (_, port):
        connection = port.accept()
        connection.send(INFO)
        connection.read_reply()
        port.accept()
        expect("the end", connection.is_silent(), True)


def test_slow_reply():
    with fake("--slow-reply", "info:1", "--slow-bytes", "1") as (_, port):
        expect("slow", port.ask(INFO), "ok")


def test_delay():
    with fake("--delay", "resume:30") as (runtime, port):
        connection = port.accept()
        connection.send(RESUME)
        runtime.report()  # the deed comes before the answer
        expect("the answer", connection.result(), "ok")


def test_deaths():
    for option, result, status in [
        ("--die-before-reply=resume", "eof", -9),
        ("--die-before-reply=resume:11", "eof", -11),
        ("--die-before-reply=resume:0", "eof", 0),
        ("--die-after-reply=resume:6", "ok", -6),
    ]:
        with fake(option, "--start-delay", "10000") as (runtime, port):
            expect(option, (port.ask(RESUME), runtime.status()), (result, status))


def test_stops():
    with fake("--stop-before-reply", "info@1", "--stop-after-reply", "info@2") as (runtime, port):
        connection = port.accept()
        connection.send(INFO)
        runtime.wait_until(lambda: runtime.state() == "T")
        expect("an answer", connection.is_silent(), True)
        runtime.go_on()
        expect("the answer", connection.result(), "ok")
        expect("the answer", port.ask(INFO), "ok")
        runtime.wait_until(lambda: runtime.state() == "T")
        expect("somebody new", port.has_waiting(), False)
        runtime.go_on()
        expect("the answer", port.ask(INFO), "ok")


def test_queue_next():
    """When the tool comes to look, everything is there: the reply, the end, and the next advertise."""
    with fake("--queue-next", "info") as (runtime, port):
        connection = port.accept()
        # We are the peer: stopped by the runtime, and continued when it is done.
        connection.send(INFO)
        with subprocess.Popen(["true"]) as other:
            other.wait()
        connection.read_reply()
        expect("the end is there", connection.is_silent(), False)
        expect("somebody is there", port.has_waiting(), True)
        follower = port.accept_raw()
        expect("the advertise is there", follower.is_silent(), False)


def test_queue_next_names_another():
    with subprocess.Popen(["sleep", "1000"]) as other:
        try:
            with fake("--queue-next", f"info:{other.pid}") as (_, port):
                expect("the answer", port.ask(INFO), "ok")
                port.accept()
        finally:
            other.kill()


def test_everything_queued_by_stops():
    """The same without a right to stop the tool: the runtime stands still while the test stops it."""
    with fake("--stop-before-reply", "info", "--stop-after-advertise=@2") as (runtime, port):
        connection = port.accept()
        connection.send(INFO)
        runtime.wait_until(lambda: runtime.state() == "T")
        expect("an answer", connection.is_silent(), True)
        runtime.go_on()
        runtime.wait_until(lambda: port.has_waiting() and runtime.state() == "T")
        connection.read_reply()
        expect("the end is there", connection.read_rest(), (b"", "eof"))
        expect("the advertise is there", port.accept_raw().is_silent(), False)


def test_exec():
    """The same process, another runtime; a given cookie is another one too."""
    cookie = "123e4567-e89b-12d3-a456-426614174000"
    for rule, delay in [("resume", "10000"), ("start", "0")]:
        with fake("--exec-after", rule, "--start-delay", delay, "--cookie", cookie) as (runtime, port):
            first = port.accept()
            first.ask(RESUME)
            while True:
                second = port.accept()
                if second.cookie != first.cookie:
                    break
                with contextlib.suppress(Closed):
                    second.read(1)
            expect("pid", second.pid, first.pid)
            expect("Resume", second.ask(RESUME), "ok")
            if rule == "start":
                expect("generations", [runtime.report()["generation"] for _ in range(2)], [0, 1])


def test_read_timeout():
    with fake("--read-timeout", "20") as (_, port):
        connection = port.accept()
        connection.socket.sendall(message(INFO)[:10])
        expect("the answer", connection.result(), ENCODING)


# Faults of connections.


def test_advertises():
    with fake("--no-advertise=@1", "--half-advertise=@2", "--garbage-advertise", "@3:GET /\\x0d\\x0a") as (_, port):
        connection = port.accept_raw()
        expect("nothing", connection.is_silent(), True)
        connection.close()
        connection = port.accept_raw()
        expect("half", connection.read(17)[:8], b"ADVR_V1\0")
        expect("the rest", connection.is_silent(), True)
        connection.close()
        connection = port.accept_raw()
        expect("garbage", connection.read(7), b"GET /\r\n")
        connection.close()
        port.accept()


def test_cut_advertise():
    with fake("--cut-advertise=@1:3") as (_, port):
        expect("three bytes", port.accept_raw().read_rest(), (b"ADV", "eof"))
        port.accept()


def test_stop_after_advertise():
    with fake("--stop-after-advertise=@1") as (runtime, port):
        port.accept()
        runtime.wait_until(lambda: runtime.state() == "T")
        runtime.go_on()
