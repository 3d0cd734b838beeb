# SPDX-License-Identifier: Apache-2.0
"""The real daemon in a private folder, with clients and runtimes around it.

Everything waits for facts: an answer, an end of file, a line. The one time-out
is a safety net for what never comes.
"""

import http.client
import json
import os
import pathlib
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 60
HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", "."))
SOURCE = HERE.parent.parent


class Answer:
    """What a client was told."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def detail(self):
        """The sentence of an error, which has to be one as of RFC 9457."""
        assert self.headers["content-type"] == "application/problem+json", self
        problem = self.json
        assert problem["status"] == self.status and problem["title"], self
        return problem["detail"]

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:2000]!r}>"


class UnixConnection(http.client.HTTPConnection):
    """http.client over a Unix socket."""

    def __init__(self, path):
        super().__init__("diagport", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = connect(self.path)

    def ask(self, method, target, body=None, headers=None):
        self.request(method, target, body=body, headers=headers or {})
        response = self.getresponse()
        return Answer(response.status, response.getheaders(), response.read())


def connect(path):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(PATIENCE)
    client.connect(str(path))
    return client


def read_all(client):
    """Everything up to the end, however it ends."""
    parts = []
    while True:
        try:
            part = client.recv(65536)
        except ConnectionResetError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def wait_for(condition, what):
    """Asks until the answer is true. For facts that nobody announces."""
    limit = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < limit, f"never came: {what}"
        time.sleep(0.01)


class Folder:
    """A private folder whose name is short: a socket's path has 107 bytes."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="dp-", dir="/tmp"))
        self.path.chmod(0o755)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


class Daemon:
    """One diagportd. `policy` is the text of its main file, in which {folder} is replaced."""

    def __init__(self, folder, policy, arguments=(), environment=None):
        self.folder = folder.path
        self.config = self.folder / "diagport.yaml"
        self.control = self.folder / "control.sock"
        self.port = self.folder / "runtime.sock"
        self.log = self.folder / "log"
        self.reports = self.folder / "report"
        self.arguments = list(arguments)
        self.environment = environment or {}
        self.process = None
        self.write_policy(policy)

    def fill(self, policy):
        return policy.replace("{folder}", str(self.folder))

    def write_policy(self, policy):
        self.config.write_text(self.fill(policy))
        self.config.chmod(0o644)

    def start(self):
        environment = dict(os.environ, **self.environment)
        for sanitizer in "ASAN", "UBSAN":
            environment[f"{sanitizer}_OPTIONS"] = f"log_path={self.reports}:abort_on_error=0"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [BUILD / "diagportd", "--config", self.config, "--state", self.folder / "state"]
                + self.arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        wait_for(self.is_up, "the control socket")
        return self

    def is_up(self):
        assert self.process.poll() is None, self.log_text()
        try:
            connect(self.control).close()
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def stop(self):
        """Ends it in good order, which has to work."""
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        reports = [path.read_text() for path in self.folder.glob("report.*")]
        assert not reports, "\n".join(reports)
        assert status == 0, self.log_text()

    def log_text(self):
        return self.log.read_text(errors="replace")

    # Clients.

    def connection(self):
        return UnixConnection(self.control)

    def raw(self):
        return connect(self.control)

    def ask(self, method, target, body=None, headers=None):
        connection = self.connection()
        try:
            return connection.ask(method, target, body, headers)
        finally:
            connection.close()

    def get(self, target):
        return self.ask("GET", target)

    def post(self, target, body=None):
        return self.ask("POST", target, None if body is None else json.dumps(body))

    def exchange(self, data):
        """Sends bytes as they are, and returns all that comes back up to the end."""
        client = self.raw()
        try:
            client.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = read_all(client)
        client.close()
        return answer

    # Questions that tests have all the time.

    def status(self):
        answer = self.get("/v1/status")
        assert answer.status == 200, answer
        return answer.json

    def wait_for_connections(self, count):
        """The one that asks is among them."""
        wait_for(lambda: self.status()["control"]["connections"] == count, f"{count} connections")

    def wait_for_followers(self, count):
        wait_for(lambda: self.status()["control"]["followers"] == count, f"{count} followers")

    def runtimes(self, query=""):
        answer = self.get("/v1/runtimes" + query)
        assert answer.status == 200, answer
        return answer.json["runtimes"]

    def runtime(self, name):
        answer = self.get(f"/v1/runtimes/{name}")
        assert answer.status == 200, answer
        return answer.json

    def wait_for_state(self, name, state):
        def is_there():
            answer = self.get(f"/v1/runtimes/{name}")
            return answer.status == 200 and answer.json["state"] == state and answer.json

        return wait_for(is_there, f"{name} in state {state}")

    def events(self, query=""):
        answer = self.get("/v1/events" + query)
        assert answer.status == 200, answer
        return [json.loads(line) for line in answer.body.splitlines()]


class Identity:
    """Somebody else, who asks from a process of his own."""

    def __init__(self, daemon, uid, gid, groups=()):
        self.daemon = daemon
        self.credentials = dict(user=uid, group=gid, extra_groups=list(groups))

    def run(self, program, *arguments, **options):
        """Starts a Python program, which finds this module's folder in its path."""
        return subprocess.Popen(
            [
                sys.executable,
                "-B",
                "-c",
                f"import sys; sys.path.insert(0, {str(HERE)!r})\n{program}",
            ]
            + [str(argument) for argument in arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **self.credentials,
            **options,
        )

    def ask_all(self, requests):
        """[(method, target, body)] -> [Answer], one connection each."""
        process = self.run(ASK_ALL, self.daemon.control)
        output, _ = process.communicate(json.dumps(requests), timeout=PATIENCE)
        assert process.returncode == 0
        return [Answer(status, headers, body) for status, headers, body in json.loads(output)]

    def ask(self, method, target, body=None):
        return self.ask_all([(method, target, body)])[0]


ASK_ALL = """
import json, harness
answers = []
for method, target, body in json.load(sys.stdin):
    connection = harness.UnixConnection(sys.argv[1])
    answer = connection.ask(method, target, body)
    answers.append((answer.status, list(answer.headers.items()), answer.body.decode()))
json.dump(answers, sys.stdout)
"""


class Lines:
    """What a program says, line by line, with an end to waiting."""

    def __init__(self, stream):
        self.stream = stream
        self.rest = b""
        self.lines = []

    def next(self):
        """None at the end."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.stream, selectors.EVENT_READ)
            while b"\n" not in self.rest:
                assert selector.select(PATIENCE), f"nothing more after {self.lines}"
                part = os.read(self.stream.fileno(), 65536)
                if not part:
                    return None
                self.rest += part
        line, self.rest = self.rest.split(b"\n", 1)
        self.lines.append(line.decode())
        return self.lines[-1]

    def wait(self, wanted):
        """Reads up to a line that matches, and returns it."""
        while True:
            line = self.next()
            assert line is not None, f"it ended without {wanted!r} after {self.lines}"
            if re.fullmatch(wanted, line):
                return line


class Runtime:
    """One fake runtime in a process of its own; what it does, it says in lines."""

    def __init__(self, daemon, cookie, *options, environment=None):
        ports = {"DOTNET_DiagnosticPorts": str(daemon.port)}
        self.cookie = cookie
        self.process = subprocess.Popen(
            [sys.executable, "-B", HERE / "fake_runtime.py", daemon.port, cookie, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=dict(os.environ, **ports, **(environment or {})),
        )
        self.pid = self.process.pid
        self.said = Lines(self.process.stdout)

    def wait_line(self, wanted):
        return self.said.wait(wanted)

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        status = self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        return status
