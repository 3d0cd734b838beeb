# SPDX-License-Identifier: Apache-2.0
"""The part of selftest.py about fake-fleet and fake-abuse."""

import contextlib
import json
import os
import selectors
import socket
import subprocess
import threading

from selftest_common import FAKE, expect
from toolside import *  # noqa: F403

FLEET = os.path.join(os.path.dirname(FAKE), "fake-fleet")
ABUSE = os.path.join(os.path.dirname(FAKE), "fake-abuse")


class Resumer:
    """A tool for many runtimes: sends each what it is told, one command a connection, Resume last."""

    def __init__(self, path, *plan):
        self.plan = [*plan, message(RESUME)]
        self.steps = {}
        self.buffers = {}
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(4096)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.wake, self.woken = socket.socketpair()
        self.selector.register(self.woken, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wake.send(b"x")
        self.thread.join()
        for sock in [*self.buffers, self.listener, self.wake, self.woken]:
            sock.close()
        self.selector.close()

    def run(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.woken:
                    return
                if key.fileobj is self.listener:
                    connection = self.listener.accept()[0]
                    self.buffers[connection] = b""
                    self.selector.register(connection, selectors.EVENT_READ)
                else:
                    self.read(key.fileobj)

    def read(self, connection):
        try:
            data = connection.recv(4096)
        except ConnectionResetError:
            data = b""
        if not data:
            self.selector.unregister(connection)
            del self.buffers[connection]
            connection.close()
            return
        self.buffers[connection] += data
        if len(self.buffers[connection]) == ADVERTISE.size:
            cookie = self.buffers[connection][8:24]
            step = self.steps.get(cookie, 0)
            self.steps[cookie] = step + 1
            if step < len(self.plan):
                with contextlib.suppress(BrokenPipeError):
                    connection.sendall(self.plan[step])


def fleet(folder, *options, status=0):
    environment = clean_environment(DOTNET_DiagnosticPorts=str(folder / "p"))
    done = subprocess.run([FLEET, *options], env=environment, capture_output=True, check=False, timeout=4 * TIME_LIMIT)
    summary = json.loads(done.stdout)
    expect(f"exit status with {summary}", done.returncode, status)
    return summary


def test_fleet():
    with Folder() as folder, Resumer(folder / "p", message(SET_ENV, text("A") + text("B"))):
        for options in ([], ["--together"], ["--terminate", "--", "--run-for", "signal"]):
            expectations = ["--expect", "ResumeRuntime=1", "--expect", "SetEnvironmentVariable=1", "--expect-env", "A=B"]
            summary = fleet(folder, "--count", "40", *expectations, *options)
            expect("counts", [summary[key] for key in ("count", "started", "resumed")], [40] * 3)
            expect("commands", summary["commands"], {"SetEnvironmentVariable": 40, "ResumeRuntime": 40})
            expect("anomalies", set(summary["anomalies"].values()), {0})


def test_fleet_template():
    with Folder() as folder, Resumer(folder / "p"):
        reports = folder / "reports"
        fleet(folder, "--count", "3", "--reports", str(reports), "--env", "NUMBER=%d",
              "--", "--entry", "app%d", "--", "100%%", "%d")
        lines = [json.loads(line) for line in reports.read_text().splitlines()]
        expect("arguments", sorted(line["arguments"] for line in lines), [["100%", str(n)] for n in range(3)])


def test_fleet_anomalies():
    """Each anomaly is seen, and alone."""
    for options, plan, key in [
        (["--", "--die-after-reply=resume:11", "--start-delay", "10000"], [], "died"),
        (["--", "--exit-status", "3"], [], "failed"),
        (["--timeout", "1", "--", "--stuck", "any"], [], "unfinished"),
        ([], [message(SET_ENV, text("A") + text("B"))] * 2, "twice"),
        (["--expect", "StopTracing=1"], [], "unexpected"),
        (["--expect-env", "A=C"], [message(SET_ENV, text("A") + text("B"))], "unexpected"),
    ]:
        with Folder() as folder, Resumer(folder / "p", *plan):
            anomalies = fleet(folder, "--count", "2", *options, status=1)["anomalies"]
            if key in ("died", "unfinished"):
                expect(f"no report with {options}", anomalies.pop("no_report"), 2)
            expect(f"anomalies of {options}", {name for name, count in anomalies.items() if count}, {key})


def test_abuse():
    for what, first in [("nothing", b""), ("half", b"ADVR_V1\0"), ("http", b"GET /metrics HTTP"), ("garbage", None),
                        ("advertise", b"ADVR_V1\0")]:
        with Folder() as folder, Listener(folder / "p") as port:
            command = [ABUSE, "--socket", port.path, "--connections", "200", "--send", what, "--cookies", "3"]
            with Process(command) as abuse:
                connections = [port.accept_raw() for _ in range(200)]
                opened = json.loads(abuse.line())
                expect("opened", (opened["event"], opened["opened"], opened["open"]), ("open", 200, 200))
                if first is not None:
                    expect(what, {c.read(len(first)) for c in connections}, {first})
                if what == "advertise":
                    expect("cookies", len({c.read(16) for c in connections}), 3)
                for connection in connections[:50]:
                    connection.close()
                abuse.end_of_input()
                abuse.process.wait(TIME_LIMIT)
                expect("event", json.loads(abuse.line())["event"], "end")
                expect("status", abuse.status(), 0)


def test_abuse_answers():
    with Folder() as folder, Listener(folder / "p") as port:
        command = [ABUSE, "--socket", port.path, "--connections", "1", "--send", "advertise", "--answer", "--again"]
        with Process(command) as abuse:
            for _ in range(3):
                expect("Resume", port.ask(RESUME), "ok")
            last = port.accept()
            expect("event", json.loads(abuse.line())["event"], "open")
            abuse.end_of_input()
            end = json.loads(abuse.line())
            expect("commands", (end["commands"], end["resumes"], end["opened"], end["closed"]), (3, 3, 4, 3))
            last.close()


def test_abuse_without_a_listener():
    with Folder() as folder:
        with Process([ABUSE, "--socket", str(folder / "p"), "--connections", "5", "--hold", "0"]) as abuse:
            expect("refused", json.loads(abuse.line())["refused"], 5)
            expect("status", abuse.status(), 1)


def test_usage():
    for command in ([FLEET], [FLEET, "--count", "1", "--env", "FAKE_BEHAVE=entry=x"], [FLEET, "--count", "x"], [FLEET, "--count", "1", "--expect", "x"], [ABUSE],
                    [ABUSE, "--socket", "p", "--send", "love"], [ABUSE, "--socket", "p", "--rate", "0"], [ABUSE, "--socket", "x" * 108]):
        done = subprocess.run(command, capture_output=True, check=False)
        expect(f"{command}", (done.returncode, done.stderr != b""), (2, True))
    for command in ([FLEET, "--help"], [ABUSE, "--help"]):
        done = subprocess.run(command, capture_output=True, check=False)
        expect(f"{command}", (done.returncode, b"usage: " in done.stdout), (0, True))
