# SPDX-License-Identifier: Apache-2.0
"""What end-to-end tests share: a real daemon in a private folder, and runtimes.

Nothing here waits for time. The daemon's log and the runtimes' reports come in
through pipes, and a test waits for the line that says what it wants to know;
TIMEOUT only ends a test that would wait for ever.
"""

import http.client
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

TIMEOUT = 60.0 * float(os.environ.get("DIAGPORT_PATIENCE", "1"))

# What the daemon is run under: valgrind, say.
UNDER = os.environ.get("DIAGPORT_UNDER", "").split()

BUILD = pathlib.Path(os.environ.get("DIAGPORT_BUILD", "build/gcc")).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]

#: What a sanitizer says when it found something.
FINDINGS = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|this must hold and does not")


class Lines:
    """The lines of a pipe, as they come. Waiting for one keeps those that were not wanted."""

    def __init__(self, stream):
        self.stream = stream
        self.seen = []
        self._rest = b""
        self._ended = False
        os.set_blocking(stream.fileno(), False)

    def read(self, seconds):
        """Takes what is there, waiting at most so long for the first of it; False at the end."""
        if self._ended:
            return False
        ready, _, _ = select.select([self.stream], [], [], max(0.0, seconds))
        if not ready:
            return True
        data = os.read(self.stream.fileno(), 1 << 20)
        if not data:
            self._ended = True
            if self._rest:
                self.seen.append(self._rest.decode("utf-8", "replace"))
                self._rest = b""
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.seen += [line.decode("utf-8", "replace") for line in lines]
        return True

    def wait(self, pattern, start=0, what=None):
        """The match of the first line from number `start` on that has the pattern."""
        wanted = re.compile(pattern)
        deadline = time.monotonic() + TIMEOUT
        at = start
        while True:
            while at < len(self.seen):
                match = wanted.search(self.seen[at])
                if match:
                    return match
                at += 1
            more = self.read(deadline - time.monotonic())
            if at < len(self.seen):
                continue
            if not more or time.monotonic() > deadline:
                raise AssertionError(
                    f"no line with {what or pattern!r} came; the last ones:\n" + "\n".join(self.seen[-40:])
                )

    def count(self, pattern):
        self.read(0)
        return sum(1 for line in self.seen if re.search(pattern, line))


class Folder:
    """A private folder whose name is short enough for sockets in it."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="dp-", dir="/tmp"))
        os.chmod(self.path, 0o755)

    def __truediv__(self, name):
        return self.path / name

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


LISTEN = """version: 1
listen:
  - {{ name: runtime, path: {folder}/runtime.sock, mode: "0666" }}
control: {{ path: {folder}/control.sock, mode: "0666" }}
"""


class Daemon:
    """diagportd with a policy of the test's own; `{folder}` in it is the test's folder."""

    def __init__(self, folder, rules="", head=LISTEN, start=True, arguments=(), environment=None, program=None):
        self.folder = folder
        self.config = folder / "diagport.yaml"
        self.arguments = list(arguments)
        self.environment = environment
        self.program = program or [*UNDER, str(BUILD / "diagportd")]
        self.process = None
        self.log = None
        self.policy(head + rules)
        if start:
            self.start()

    @property
    def socket(self):
        return str(self.folder / "runtime.sock")

    @property
    def control(self):
        return str(self.folder / "control.sock")

    def policy(self, text):
        """Writes the policy file, as one step for whoever reads it."""
        new = self.folder / "diagport.yaml.new"
        new.write_text(text.replace("{folder}", str(self.folder.path)).replace("{{", "{").replace("}}", "}"))
        new.rename(self.config)

    def start(self, ready=r"ready|listening on .*runtime.sock", **options):
        self.process = subprocess.Popen(
            [*self.program, "--config", str(self.config), "--state", str(self.folder / "state"), *self.arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=self.environment,
            **options,
        )
        self.log = Lines(self.process.stderr)
        if ready:
            self.log.wait(ready, what="the daemon to listen")
        return self

    def mark(self):
        """Where the log is now, for waiting for what comes after."""
        self.log.read(0)
        return len(self.log.seen)

    def wait(self, pattern, start=0):
        return self.log.wait(pattern, start)

    def signal(self, number):
        self.process.send_signal(number)

    def reload(self):
        start = self.mark()
        self.signal(signal.SIGHUP)
        return self.wait(r"(not )?reloaded: ", start).group(1) is None

    def kill(self):
        self.process.kill()
        self.process.wait(TIMEOUT)
        self._drain()

    def stop(self, status=0):
        """SIGTERM, and that it ends as it should."""
        if self.process.poll() is None:
            # In this order: one that comes while the leak checker stops the process undoes that.
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        self.process.wait(TIMEOUT)
        self._drain()
        assert self.process.returncode == status, f"status {self.process.returncode}:\n" + "\n".join(
            self.log.seen[-60:]
        )

    def _drain(self):
        while self.log.read(TIMEOUT):
            pass
        self.process.stderr.close()
        findings = [line for line in self.log.seen if FINDINGS.search(line)]
        assert not findings, "\n".join(self.log.seen[-200:])

    def alive(self):
        return self.process is not None and self.process.poll() is None

    # What it says over its control socket.

    def request(self, method, path, body=None, headers=None):
        connection = Http(self.control)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, body = self.request("GET", path)
        assert status == 200, (status, body)
        return json.loads(body)

    def runtimes(self, query=""):
        return self.get("/v1/runtimes" + query)["runtimes"]

    def runtime(self, pid):
        return self.get(f"/v1/runtimes/pid:{pid}")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Http(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(self.path)


class Fake:
    """One fake runtime; its report lines say what it was told."""

    def __init__(self, ports, *behaviours, arguments=(), environment=None, program=None, run_for="exit", **options):
        self.process = subprocess.Popen(
            [
                program or str(BUILD / "tests/fake/fake-runtime"),
                *(item for behaviour in behaviours for item in ("--behave", behaviour)),
                "--run-for",
                run_for,
                "--",
                *arguments,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "DOTNET_DiagnosticPorts": ports, **(environment or {})},
            **options,
        )
        self.pid = self.process.pid
        self.lines = Lines(self.process.stdout)

    def report(self, event="start"):
        """What it was told before its managed code started, or, for "end", in all."""
        line = self.lines.wait(r'^\{"event":"%s"' % event).string
        return json.loads(line)

    def commands(self, event="start"):
        """The commands that it took, in order, as short texts."""
        return [story(command) for command in self.report(event)["commands"]]

    def end(self):
        """Lets it end, and gives its exit status."""
        self.process.stdin.close()
        while self.lines.read(TIMEOUT):
            pass
        self.process.stdout.close()
        return self.process.wait(TIMEOUT)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT)


def story(command):
    """One command of a report as text: "env A=1", "hook /a:/b", "resume"."""
    name = command["name"]
    short = {
        "SetEnvironmentVariable": "env",
        "StartupProfiler": "profiler",
        "ApplyStartupHook": "hook",
        "ResumeRuntime": "resume",
        "ProcessInfo3": "info3",
        "ProcessInfo2": "info2",
        "ProcessInfo": "info1",
        "ProcessEnvironment": "environment",
    }.get(name, f"{command['set']:02x}{command['id']:02x}")
    if short == "env":
        value = command["arguments"].get("value")
        key = command["arguments"].get("name")
        return f"unset {key}" if value is None else f"env {key}={value}"
    if short in ("profiler", "hook"):
        return f"{short} {command['arguments']['path']}"
    return "kind" if short == "0300" else short


def processes_are_gone(pids):
    """Waits until none of the processes is left."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        select.select([handle], [], [], TIMEOUT)
        os.close(handle)
