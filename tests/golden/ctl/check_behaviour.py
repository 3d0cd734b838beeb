#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What diagportctl does that is more than an answer on a page.

Where it finds the daemon, what it makes of one that is not there, dies or babbles,
how it follows events, what it starts, and what shells make of its lines. From the
build folder; nothing here waits for time to pass.
"""

import contextlib
import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness  # noqa: E402
from answers import ANSWERS, EVENTS, HEARTBEAT, STATUS  # noqa: E402

# What was ignored where the tests were started, as in the background of a shell, is not what they are about.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

DONE, NO, USAGE, REFUSED, NO_DAEMON = range(5)
NOBODY = 65534
STATUS_ROUTE = {"GET /v1/status": "status"}


def line(value):
    return (json.dumps(value) + "\n").encode()


def listen(path, mode=0o777):
    """A socket that somebody listens on, and nobody comes to."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    os.chmod(path, mode)
    listener.listen()
    listener.setblocking(False)
    return listener


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "control.sock"

    def daemon(self, routes, path=None):
        return harness.Daemon(str(path or self.path), routes)

    def run_ctl(self, *arguments, **env):
        env.setdefault("DIAGPORT_CONTROL", str(self.path))
        return harness.run(arguments, self.folder, **env)

    def run_as_nobody(self, *arguments):
        # The build may be in a folder that only its owner may enter.
        program = shutil.copy(harness.PROGRAM, self.folder)
        self.folder.chmod(0o755)
        return subprocess.run([program, *arguments], user=NOBODY, group=NOBODY, extra_groups=[],
                              cwd="/", capture_output=True, check=False,
                              env=harness.environment(DIAGPORT_CONTROL=str(self.path)))

    def check(self, ended, status, *texts):
        """The status, and texts on standard error, or nothing there."""
        self.assertEqual(ended.status, status, ended.err)
        for text in texts:
            self.assertIn(text, ended.err.decode())
        if not texts:
            self.assertEqual(ended.err, b"")


class Attach(Case):
    """A profiler that takes its time."""

    TARGET = "/v1/runtimes/1f3a5c7e-0000-4000-8000-000000000001"
    WORDS = ("attach-profiler", "1f3a", "--clsid", "x", "--path", "/opt/p.so")

    def routes(self, *names):
        left = list(names)

        def answer(handler):
            handler.send(200, ANSWERS[left.pop(0)])

        return {"POST /v1/runtimes/1f3a/attach-profiler": (202, "attach-begun"), f"GET {self.TARGET}": answer}

    def test_it_is_looked_for_until_something_came_of_it(self):
        with self.daemon(self.routes("attach-pending", "attach-pending", "attach-ok")) as daemon:
            ended = self.run_ctl(*self.WORDS)
        self.check(ended, DONE)
        self.assertIn(b"has loaded /opt/p.so", ended.out)
        self.assertEqual([request.split(" ")[:2] for request in daemon.requests[1:]], [["GET", self.TARGET]] * 3)

    def test_what_fails_after_a_while(self):
        with self.daemon(self.routes("attach-pending", "attach-lost")):
            ended = self.run_ctl(*self.WORDS)
        self.assertEqual(ended.status, NO)
        self.assertIn(b"may be loaded or not", ended.out)

    def test_bytes_of_a_file(self):
        (self.folder / "data").write_bytes(bytes(range(256)) * 256)
        with self.daemon(self.routes("attach-ok")) as daemon:
            self.check(self.run_ctl(*self.WORDS, "--data-file", str(self.folder / "data")), DONE)
        body = json.loads(daemon.requests[0].split(" ", 2)[2])
        self.assertEqual(bytes.fromhex(body["data_hex"]), bytes(range(256)) * 256)
        (self.folder / "data").write_bytes(bytes(65537))
        ended = self.run_ctl(*self.WORDS, "--data-file", str(self.folder / "data"))
        self.check(ended, NO, "File too large")


# What node_exporter reads is the older text format: no info, no units, and samples have the
# names of their families. Its own process_* are not to be there twice.
TEXTFILE = b"""# TYPE diagport_runtimes gauge
# HELP diagport_runtimes Runtimes that are known, by state.
diagport_runtimes{state="running"} 41
# TYPE diagport_runtimes_seen_total counter
# HELP diagport_runtimes_seen_total Runtimes that came.
diagport_runtimes_seen_total 49
# TYPE diagport_hold_seconds histogram
# HELP diagport_hold_seconds How long.
diagport_hold_seconds_bucket{le="+Inf"} 1
diagport_hold_seconds_count 1
diagport_hold_seconds_sum 0.041000
# TYPE diagport_rule_matches_total counter
# HELP diagport_rule_matches_total Runtimes that a rule matched.
diagport_rule_matches_total{rule="caf\xc3\xa9 \\\\x0a \\"x\\""} 3
# TYPE diagport_policy_info gauge
# HELP diagport_policy_info The policy in force.
diagport_policy_info{hash="9f86",origin="files"} 1
"""


class Metrics(Case):
    """The file that node_exporter reads."""

    def setUp(self):
        super().setUp()
        self.file = self.folder / "diagport.prom"

    def write(self, answer="metrics", **env):
        with self.daemon({"GET /metrics": answer}):
            return self.run_ctl("metrics", "--textfile", str(self.file), **env)

    def check_no_leftovers(self, *names):
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(names))

    def test_it_is_written_for_everybody(self):
        before = os.umask(0o077)
        self.addCleanup(os.umask, before)
        ended = self.write()
        self.check(ended, DONE)
        self.assertEqual(ended.out, b"")
        self.assertEqual(self.file.read_bytes(), TEXTFILE)
        self.assertEqual(self.file.stat().st_mode & 0o7777, 0o644)
        self.check_no_leftovers("diagport.prom")

    def test_it_is_another_file_each_time(self):
        """Whoever reads the old one reads all of it."""
        self.file.write_bytes(b"old")
        with self.file.open("rb") as old:
            self.check(self.write(), DONE)
            self.assertEqual(old.read(), b"old")
        self.assertEqual(self.file.read_bytes(), TEXTFILE)

    def test_what_fails_leaves_the_old_one(self):
        self.file.write_bytes(b"old")
        self.check(self.write((403, "problem-403")), REFUSED, "the right read is missing")
        self.check(self.write("metrics-cut"), NO, "no metrics")
        self.assertEqual(self.file.read_bytes(), b"old")
        self.check_no_leftovers("diagport.prom")

    def test_a_link_is_replaced_and_not_followed(self):
        target = self.folder / "target"
        target.write_bytes(b"old")
        self.file.symlink_to(target)
        self.check(self.write(), DONE)
        self.assertFalse(self.file.is_symlink())
        self.assertEqual(target.read_bytes(), b"old")

    def test_a_folder_in_its_place_is_left_alone(self):
        self.file.mkdir()
        self.check(self.write(), NO, "diagport.prom cannot be written: ")
        self.check_no_leftovers("diagport.prom")

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_full_output_is_no_success(self):
        with self.daemon({"GET /metrics": "metrics"}), open("/dev/full", "wb") as full:
            ended = subprocess.run([harness.PROGRAM, "metrics"], stdout=full, check=False,
                                   stderr=subprocess.PIPE,
                                   env=harness.environment(DIAGPORT_CONTROL=str(self.path)))
        self.assertEqual(ended.returncode, NO, ended.stderr)


class Finding(Case):
    """Which socket is asked."""

    def own(self, parent, name="diagport", mode=0o700):
        folder = parent / name
        folder.mkdir(mode=mode, parents=True)
        folder.chmod(mode)
        return folder / "control.sock"

    def is_default(self, answer):
        """Nobody is there, unless a daemon of this machine is."""
        self.assertNotIn(answer, ("own", "variable", "option"))
        if not os.path.exists("/run/diagport/control.sock"):
            self.assertIn("(named by default)", answer)

    def asked(self, **env):
        """The version that the daemon said which was asked."""
        ended = harness.run(["--json", "status"], self.folder, **env)
        return json.loads(ended.out)["version"] if ended.status == DONE else ended.err.decode()

    def test_option_before_variable_before_own(self):
        with contextlib.ExitStack() as stack:
            for name in ("option", "variable"):
                ANSWERS[name] = line({"version": name})
                stack.enter_context(self.daemon({"GET /v1/status": name}, self.folder / name))
            ANSWERS["own"] = line({"version": "own"})
            own = self.own(self.folder)
            stack.enter_context(self.daemon({"GET /v1/status": "own"}, own))
            env = {"XDG_RUNTIME_DIR": str(self.folder)}
            ended = harness.run(["status", "--json", "--socket", "option"], self.folder,
                                DIAGPORT_CONTROL="variable", **env)
            self.assertEqual(json.loads(ended.out)["version"], "option")
            self.assertEqual(self.asked(DIAGPORT_CONTROL="variable", **env), "variable")
            self.assertEqual(self.asked(DIAGPORT_CONTROL="", **env), "own")
            self.assertEqual(self.asked(**env), "own")
            own.parent.chmod(0o770)
            self.is_default(self.asked(**env))
            own.parent.chmod(0o707)
            self.is_default(self.asked(**env))

    def test_own_is_left_out_when_nobody_is_there(self):
        listen(self.own(self.folder)).close()
        self.is_default(self.asked(XDG_RUNTIME_DIR=str(self.folder)))

    @unittest.skipIf(os.path.exists("/run/diagport/control.sock"),
                     "the daemon of this machine would be told what to do")
    def test_who_tells_another_daemon_what_to_do_hears_of_it(self):
        env = {"XDG_RUNTIME_DIR": str(self.folder)}
        listen(self.own(self.folder)).close()
        for words, is_weighty in ((["resume", "1f3a"], True), (["reload"], True),
                                  (["run", "true"], True), (["list"], False)):
            with self.subTest(words=words):
                ended = harness.run(words, self.folder, **env)
                self.assertEqual(ended.status, NO_DAEMON)
                self.assertEqual(b"your own instance does not run, so the daemon at "
                                 b"/run/diagport/control.sock is asked" in ended.err, is_weighty)
                self.assertIn(b"systemctl start diagportd", ended.err)
        with self.daemon(STATUS_ROUTE):
            self.check(self.run_ctl("env", **env), DONE, "warning: with it an app waits")

    def test_own_is_left_out_when_a_link_leads_there(self):
        with self.daemon(STATUS_ROUTE, self.own(self.folder, "real")):
            (self.folder / "diagport").symlink_to(self.folder / "real")
            self.is_default(self.asked(XDG_RUNTIME_DIR=str(self.folder)))

    def test_relative_runtime_folder_is_ignored(self):
        with self.daemon(STATUS_ROUTE, self.own(self.folder)):
            self.is_default(self.asked(XDG_RUNTIME_DIR="."))

    @unittest.skipIf(os.path.exists("/run/diagport/control.sock"),
                     "the daemon of this machine would be asked")
    def test_a_runtime_folder_that_is_none_is_named(self):
        (self.folder / "file").write_text("", encoding="ascii")
        for name, why in (("none", "No such file or directory"), ("file", "Not a directory")):
            with self.subTest(name=name):
                wrong = f"{self.folder}/{name}"
                self.assertIn(f"XDG_RUNTIME_DIR says {wrong}, which cannot be used: {why}; set it to",
                              self.asked(XDG_RUNTIME_DIR=wrong))
        self.assertNotIn("XDG_RUNTIME_DIR", self.asked(XDG_RUNTIME_DIR=str(self.folder)))
        self.assertNotIn("XDG_RUNTIME_DIR", self.asked())
        # Who says where it is did not look there.
        self.assertNotIn("XDG_RUNTIME_DIR", self.asked(XDG_RUNTIME_DIR="/none",
                                                       DIAGPORT_CONTROL="/none/control.sock"))

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a folder away")
    def test_own_is_left_out_when_it_is_somebody_elses(self):
        own = self.own(self.folder)
        with self.daemon(STATUS_ROUTE, own):
            os.chown(own.parent, NOBODY, NOBODY)
            self.is_default(self.asked(XDG_RUNTIME_DIR=str(self.folder)))
            os.chown(own.parent, 0, 0)
            os.chown(own, NOBODY, NOBODY)
            self.is_default(self.asked(XDG_RUNTIME_DIR=str(self.folder)))

    def test_nothing_else_of_the_environment_matters(self):
        proxies = {name: "http://127.0.0.1:1" for name in (
            "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy")}
        (self.folder / ".netrc").write_text("default login a password b\n", encoding="ascii")
        (self.folder / ".curlrc").write_text("proxy = http://127.0.0.1:1\n", encoding="ascii")
        with self.daemon(STATUS_ROUTE) as daemon:
            self.check(self.run_ctl("status", HOME=str(self.folder), **proxies), DONE)
        self.assertEqual(daemon.requests, ["GET /v1/status"])


class NoDaemon(Case):
    """Exit status 4, and 3 for those who may not."""

    def test_no_socket(self):
        ended = self.run_ctl("status")
        self.check(ended, NO_DAEMON, "no daemon listens at", "$DIAGPORT_CONTROL",
                   "diagportd --user")
        self.assertNotIn(b"systemctl", ended.err)

    def test_left_over(self):
        listen(self.path).close()
        self.check(self.run_ctl("list"), NO_DAEMON, "no daemon listens at")

    def test_no_socket_but_a_file(self):
        self.path.touch()
        self.check(self.run_ctl("rules"), NO_DAEMON, "no daemon listens at")

    def test_no_folder(self):
        self.check(self.run_ctl("reload", DIAGPORT_CONTROL="/dev/null/x"), NO_DAEMON,
                   "no daemon listens at")

    def test_full_queue(self):
        with socket.socket(socket.AF_UNIX) as stuck, socket.socket(socket.AF_UNIX) as first:
            stuck.bind(str(self.path))
            stuck.listen(0)
            first.connect(str(self.path))
            self.check(self.run_ctl("status"), NO_DAEMON, "accepts nobody")

    def test_datagrams(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(str(self.path))
            self.check(self.run_ctl("status"), NO_DAEMON, "cannot be connected to")

    def test_long_path(self):
        self.check(self.run_ctl("status", DIAGPORT_CONTROL="/" + "x" * 107), USAGE, "too long")

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_not_for_us(self):
        with self.daemon(STATUS_ROUTE):
            self.path.chmod(0o600)
            ended = self.run_as_nobody("status")
        self.assertEqual(ended.returncode, REFUSED, ended.stderr)
        self.assertIn(b"you may not write to", ended.stderr)


class Dying(Case):
    """Daemons that end in the middle, or say more than anybody wants to know."""

    def answer(self, *parts, **env):
        """What comes of `status` when those bytes are the whole of what is said."""
        def talk(handler):
            for part in parts:
                handler.wfile.write(part)
            handler.close_connection = True

        with self.daemon({"GET /v1/status": talk}):
            return self.run_ctl("status", **env)

    def test_nothing(self):
        self.check(self.answer(), NO_DAEMON, "closed the connection")

    def test_cut_everywhere(self):
        body = ANSWERS["status"]
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        whole = head + body
        for length in [*range(0, len(head) + 8), len(whole) - 1]:
            with self.subTest(length=length):
                ended = self.answer(whole[:length])
                self.assertIn(ended.status, (NO, NO_DAEMON))
                self.assertEqual(ended.out, b"")
        self.check(self.answer(whole), DONE)

    def test_byte_by_byte(self):
        body = ANSWERS["status"]

        def talk(handler):
            handler.begin_stream()
            for byte in body:
                handler.send_chunk(bytes([byte]))
            handler.send_chunk(b"")

        with self.daemon({"GET /v1/status": talk}):
            self.check(self.run_ctl("status"), DONE)

    def test_no_http(self):
        self.check(self.answer(b"220 mail.example ESMTP\r\n"), NO_DAEMON,
                   "cannot be asked")

    def test_broken_encoding(self):
        self.check(self.answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
                   NO_DAEMON, "closed the connection")

    def test_somewhere_else(self):
        with self.daemon(STATUS_ROUTE, self.folder / "other"):
            ended = self.answer(b"HTTP/1.1 302 Found\r\nLocation: http://localhost/v1/x\r\n"
                                b"Content-Length: 0\r\n\r\n")
        self.check(ended, NO, "answered with the status 302")

    def test_deep(self):
        body = b"[" * 1000000
        self.check(self.answer(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body), body),
                   NO, "no diagportd")


class Slow(Case):
    """Daemons that are there and take their time."""

    def wait_for_note(self, path, *words):
        """Lets the daemon answer when the command has said that it waits."""
        go_on = queue.Queue()

        def answer(handler):
            go_on.get()
            handler.send(404, ANSWERS["problem-404"])

        with self.daemon({"GET " + path: answer}):
            with subprocess.Popen(
                    [harness.PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    env=harness.environment(DIAGPORT_CONTROL=str(self.path))) as process:
                said = process.stderr.readline()
                go_on.put(None)
                self.assertEqual(process.stderr.read().count(b"\n"), 1)
        self.assertEqual(said, f"diagportctl: note: waiting for the daemon at {self.path}\n".encode())
        self.assertEqual(process.returncode, NO)

    def test_an_answer(self):
        self.wait_for_note("/v1/status", "status")

    def test_a_start(self):
        self.wait_for_note("/v1/status", "run", "true")

    def test_a_stream(self):
        self.wait_for_note("/v1/events?follow=1", "events", "-f")


class Following(Case):
    """`events` and `list --watch`."""

    def follow(self, *parts, wait=None):
        """A route that says those parts of a stream, waits, and ends the stream."""
        def talk(handler):
            handler.begin_stream()
            for part in parts:
                handler.send_chunk(part)
            if wait:
                wait(handler)
            handler.send_chunk(b"")

        return {"GET /v1/events?follow=1": talk}

    def start(self, *arguments, **more):
        process = subprocess.Popen(
            [harness.PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=harness.environment(DIAGPORT_CONTROL=str(self.path)), **more)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_lines_that_come_in_pieces(self):
        data = line(EVENTS[0]) + line(EVENTS[1]) + line(EVENTS[2])
        routes = self.follow(*(data[at:at + 1] for at in range(len(data))))
        with self.daemon(routes):
            ended = self.run_ctl("events", "-f", "--json")
        self.check(ended, NO_DAEMON, "the daemon has stopped")
        self.assertEqual([json.loads(part) for part in ended.out.splitlines()], EVENTS[:3])

    def test_dropped(self):
        def drop(handler):
            handler.close_connection = True
            handler.wfile.flush()
            handler.connection.shutdown(socket.SHUT_RDWR)

        with self.daemon(self.follow(line(EVENTS[0]), wait=drop)):
            ended = self.run_ctl("events", "-f")
        self.check(ended, NO_DAEMON, "closed the connection before its answer was complete")
        self.assertEqual(ended.out.count(b"\n"), 1)

    def test_endless_line(self):
        with self.daemon(self.follow(*[b"x" * 65536] * 32)):
            self.check(self.run_ctl("events", "-f"), NO, "longer than it may be")

    def test_interrupt_ends_events(self):
        ended = queue.Queue()
        with self.daemon(self.follow(line(EVENTS[0]), wait=lambda _: ended.get())):
            process = self.start("events", "-f")
            self.assertIn(b"known", process.stdout.readline())
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(), DONE)
            self.assertEqual(process.stderr.read(), b"")
            ended.put(None)

    def test_ignored_interrupt_stays_ignored(self):
        go_on = queue.Queue()
        with self.daemon(self.follow(line(EVENTS[0]), wait=lambda _: go_on.get())):
            process = self.start(
                "events", "-f",
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
            self.assertIn(b"known", process.stdout.readline())
            process.send_signal(signal.SIGINT)
            go_on.put(None)
            self.assertEqual(process.wait(), NO_DAEMON)

    def watch(self, *arguments, events, read):
        """Runs `list --watch`; whatever `events` yields is sent when `read` has seen a picture."""
        seen = queue.Queue()

        def talk(handler):
            handler.begin_stream()
            for event in events:
                seen.get()
                handler.send_chunk(line(event))
            seen.get()

        pictures = iter(["runtimes-unblocked", "runtimes-none", "runtimes"])
        routes = {"GET /v1/events?follow=1": talk}
        routes["GET /v1/runtimes"] = lambda handler: handler.send(200, ANSWERS[next(pictures)])
        with self.daemon(routes) as daemon:
            read(*arguments, saw=lambda: seen.put(None))
            seen.put(None)
        return daemon.requests

    def test_watch_as_lines(self):
        def read(*arguments, saw):
            process = self.start(*arguments)
            pictures = []
            for _ in range(3):
                pictures.append(json.loads(process.stdout.readline()))
                saw()
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(), DONE)
            self.assertEqual([len(picture["runtimes"]) for picture in pictures], [2, 0, 5])

        requests = self.watch("list", "--watch", "--json", events=EVENTS[:2], read=read)
        self.assertEqual(requests, ["GET /v1/events?follow=1"] + ["GET /v1/runtimes"] * 3)

    def test_watch_on_paper(self):
        def read(*arguments, saw):
            process = self.start(*arguments)
            for n_runtimes in (2, 0, 5):
                self.assertRegex(process.stdout.readline(),
                                 rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n$")
                self.assertRegex(process.stdout.readline(), rb"^ID +PID .*COMMAND\n$")
                for _ in range(n_runtimes):
                    self.assertNotIn(b"ID", process.stdout.readline())
                saw()
                if n_runtimes != 5:
                    self.assertEqual(process.stdout.readline(), b"\n")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(), DONE)

        self.watch("list", "--watch", events=EVENTS[:2], read=read)

    def test_heartbeats_draw_nothing(self):
        """What came before the end of the answer has been drawn when it ends."""
        for event, n_pictures in ((HEARTBEAT, 1), (EVENTS[0], 2)):
            go_on = queue.Queue()
            routes = self.follow(wait=lambda handler, event=event, go_on=go_on: (
                go_on.get(), handler.send_chunk(line(event))))
            routes["GET /v1/runtimes"] = "runtimes"
            with self.subTest(kind=event["kind"]), self.daemon(routes) as daemon:
                process = self.start("list", "--watch", "--json")
                process.stdout.readline()
                go_on.put(None)
                self.assertEqual(process.wait(), NO_DAEMON)
                self.assertEqual(daemon.requests.count("GET /v1/runtimes"), n_pictures)

    def test_watch_on_a_screen(self):
        """Drawn over, and cut to the newest ones that fit."""
        def talk(handler):
            handler.begin_stream()
            handler.send_chunk(b"")

        with self.daemon({"GET /v1/events?follow=1": talk, "GET /v1/runtimes": "runtimes-many"}):
            ended = harness.run(["list", "-w"], self.folder, columns=80, rows=10,
                                DIAGPORT_CONTROL=str(self.path))
        self.assertEqual(ended.status, NO_DAEMON)
        lines = ended.out.decode().splitlines()
        self.assertTrue(lines[0].startswith("\033[H\033[2J"))
        self.assertIn("33 earlier ones", lines[0])
        self.assertEqual([row.split()[1] for row in lines[2:]], [str(n) for n in range(34, 41)])
        self.assertLess(len(lines), 10)


class Running(Case):
    """`run` and what it leaves to the app."""

    COMMAND = ("--", "sh", "-c", 'echo "$DOTNET_DiagnosticPorts"; exit 7')

    def setUp(self):
        super().setUp()
        self.port = self.folder / "runtime.sock"
        ANSWERS["here"] = line(STATUS | {"listeners": [
            {"name": "runtime", "path": str(self.port), "passed_in": False, "in_place": True}]})

    def run_app(self, *arguments, **env):
        with self.daemon({"GET /v1/status": "here"}):
            return self.run_ctl("run", *(arguments or self.COMMAND), **env)

    def test_runs_where_somebody_listens(self):
        with listen(self.port) as port:
            ended = self.run_app()
            self.assertEqual((ended.status, ended.out), (7, f"{self.port}\n".encode()))
            with self.assertRaises(BlockingIOError):
                port.accept()

    def test_options_of_the_app_are_its_own(self):
        with listen(self.port):
            for words in (["printf", "%s.", "--json", "--help"],
                          ["--", "printf", "%s.", "--json", "--help"],
                          ["--port", "runtime", "--", "printf", "%s.", "--json", "--help"]):
                self.assertEqual(self.run_app(*words).out, b"--json.--help.")
            self.assertEqual(self.run_app("--", "printf", "%s.", "--", "-x").out, b"--.-x.")

    def test_refuses_a_left_over(self):
        listen(self.port).close()
        ended = self.run_app()
        self.check(ended, NO, "nobody listens on", "would wait for ever")
        self.assertEqual(ended.out, b"")

    def test_refuses_when_there_is_none(self):
        self.check(self.run_app(), NO, "nobody listens on")

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_refuses_what_the_app_may_not_write_to(self):
        with listen(self.port, mode=0o600), self.daemon({"GET /v1/status": "here"}):
            self.path.chmod(0o666)
            ended = self.run_as_nobody("run", *self.COMMAND)
        self.assertEqual(ended.returncode, REFUSED, ended.stderr)
        self.assertIn(b"you may not write to", ended.stderr)

    def test_what_is_set_already(self):
        with listen(self.port):
            for value, status in ((str(self.port), 7), ("", 7), ("/other", NO),
                                  (f"{self.port},nosuspend", NO)):
                with self.subTest(value=value):
                    ended = self.run_app(DOTNET_DiagnosticPorts=value)
                    self.assertEqual(ended.status, status)
            self.assertIn(b"is set to something else", ended.err)
            self.assertNotIn(b"nosuspend", ended.err)

    def test_warns_when_diagnostics_are_off(self):
        with listen(self.port):
            ended = self.run_app(DOTNET_EnableDiagnostics="0")
            self.assertEqual(ended.status, 7)
            self.assertIn(b"DOTNET_EnableDiagnostics=0", ended.err)
            self.check(self.run_app(DOTNET_EnableDiagnostics="1"), 7)

    def test_no_such_command(self):
        with listen(self.port):
            self.check(self.run_app("--", "./missing"), 127, "./missing cannot be run")
            self.check(self.run_app("--", "/"), 126, "/ cannot be run")

    def test_no_daemon(self):
        self.check(self.run_ctl("run", *self.COMMAND), NO_DAEMON, "no daemon listens at")


class Lines(Case):
    """What others make of the lines of `env`."""

    def value(self, *arguments):
        with self.daemon({"GET /v1/status": "status-odd-path"}):
            return self.run_ctl("env", *arguments).out

    def test_shells_take_it_as_it_is(self):
        script = self.value() + b'printf %s "$DOTNET_DiagnosticPorts"'
        for shell in ("sh", "bash"):
            ended = subprocess.run([shell], input=script, capture_output=True, check=True)
            self.assertEqual(ended.stdout, b"/run/o'b\\r%i\"$(id)`.sock")

    def test_bytes_that_are_no_utf8(self):
        with self.daemon({"GET /v1/status": "status-latin"}):
            for name in ("shell", "docker", "systemd"):
                self.assertIn(b"/run/caf\xe9.sock", self.run_ctl("env", "--format", name).out)


class Writing(Case):
    """Output that nobody takes."""

    def test_full(self):
        with self.daemon(STATUS_ROUTE), open("/dev/full", "wb") as full:
            ended = subprocess.run([harness.PROGRAM, "status"], stdout=full,
                                   stderr=subprocess.PIPE, check=False,
                                   env=harness.environment(DIAGPORT_CONTROL=str(self.path)))
        self.assertEqual(ended.returncode, NO)
        self.assertIn(b"standard output could not be written", ended.stderr)

    def test_closed(self):
        with self.daemon(STATUS_ROUTE):
            ended = subprocess.run([harness.PROGRAM, "status"], stderr=subprocess.PIPE,
                                   preexec_fn=lambda: os.close(1), check=False,
                                   env=harness.environment(DIAGPORT_CONTROL=str(self.path)))
        self.assertEqual(ended.returncode, NO)


class Checking(Case):
    """`check` and files."""

    def test_main_file_then_drop_ins(self):
        main, one, two = (self.folder / name for name in ("main", "one", "two"))
        main.write_text("version: 1\nrules: [{name: a, match: {exe: /a}, ignore: true}]\n")
        one.write_text("rules: [{name: b, match: {exe: /b}, ignore: true}]\n")
        two.write_text("disable: [a]\n")
        ended = self.run_ctl("check", "--print", "main", "one", "two")
        self.check(ended, DONE)
        self.assertIn(b'"b"', ended.out)
        self.assertNotIn(b'"a"', ended.out)
        self.assertEqual(self.run_ctl("check", "one", "main").status, NO)

    def test_form_is_read_again(self):
        conf = pathlib.Path(__file__).parents[3] / "conf"
        for sample in sorted(conf.glob("*.yaml")):
            with self.subTest(sample=sample.name):
                form = self.run_ctl("check", "--print", str(sample)).out
                again = harness.run(["check", "--print", "-"], self.folder, given=form)
                self.assertTrue(form)
                self.assertEqual((again.status, again.out), (DONE, form))

    def test_pipes_are_fine(self):
        read, write = os.pipe()
        os.write(write, b"version: 1\n")
        os.close(write)
        ended = subprocess.run([harness.PROGRAM, "check", f"/dev/fd/{read}"], pass_fds=[read],
                               capture_output=True, check=False, env=harness.environment())
        os.close(read)
        self.assertEqual(ended.returncode, DONE, ended.stderr)

    def test_too_long(self):
        (self.folder / "long").write_bytes(b"#" * (1024 * 1024 + 1))
        self.check(self.run_ctl("check", "long"), NO, "long")


if __name__ == "__main__":
    unittest.main()
