# SPDX-License-Identifier: Apache-2.0
"""Clients of the control socket: well-behaved ones, ones that send raw bytes, and other users."""

import json
import subprocess
import sys

from harness import Http, connect, until
from lines import TIMEOUT


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


def ask_over(connection, method, target, body=None, headers=None):
    connection.request(method, target, body, headers or {})
    response = connection.getresponse()
    return Answer(response.status, response.getheaders(), response.read())


class Client:
    """Somebody who asks a daemon over its control socket."""

    def __init__(self, daemon):
        self.daemon = daemon

    def ask(self, method, target, body=None, headers=None):
        connection = Http(self.daemon.control)
        try:
            return ask_over(connection, method, target, body, headers)
        finally:
            connection.close()

    def get(self, target):
        return self.ask("GET", target)

    def post(self, target, body=None):
        return self.ask("POST", target, None if body is None else json.dumps(body))

    def raw(self):
        return connect(self.daemon.control)

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

    def _answer(self, target):
        answer = self.get(target)
        assert answer.status == 200, answer
        return answer

    def status(self):
        return self._answer("/v1/status").json

    def runtimes(self, query=""):
        return self._answer("/v1/runtimes" + query).json["runtimes"]

    def runtime(self, name):
        return self._answer(f"/v1/runtimes/{name}").json

    def rules(self):
        return {rule["name"]: rule for rule in self._answer("/v1/rules").json["rules"]}

    def events(self, query=""):
        return [json.loads(line) for line in self._answer("/v1/events" + query).body.splitlines()]

    def explain(self, **attributes):
        answer = self.post("/v1/explain", {"attributes": attributes})
        assert answer.status == 200, answer
        return answer.json

    def check(self, text, query=""):
        answer = self.ask("POST", "/v1/policy/check" + query, text)
        assert answer.status == 200, answer
        return answer.json

    def reload(self, text):
        """The verdict on a new policy file."""
        self.daemon.policy_text(fill(self.daemon, text))
        answer = self.post("/v1/policy/reload")
        assert answer.status == 200, answer
        return answer.json

    # Waiting for what nobody tells unasked.

    def wait_for_state(self, name, state):
        def look():
            answer = self.get(f"/v1/runtimes/{name}")
            return answer.json if answer.status == 200 else {"state": None}

        return until(look, lambda runtime: runtime["state"] == state)

    def wait_for_connections(self, count):
        """The one that asks is among them."""
        until(lambda: self.status()["control"]["connections"], lambda seen: seen == count)

    def wait_for_followers(self, count):
        until(lambda: self.status()["control"]["followers"], lambda seen: seen == count)


def fill(daemon, text):
    """A policy in which {folder} is the test's."""
    return text.replace("{folder}", str(daemon.folder.path))


def client_of(daemon, text, policy_is_good=True, **options):
    """A client of a new daemon with that text as its policy; `daemon` is the fixture."""
    one = daemon(start=False, **options)
    one.policy_text(fill(one, text))
    one.start(policy_is_good)
    return Client(one)


class Identity:
    """Another user, who asks from a process of his own. It needs nothing of this folder, which may be root's alone."""

    def __init__(self, client, uid, gid, groups=()):
        self.path = client.daemon.control
        self.credentials = {"user": uid, "group": gid, "extra_groups": list(groups)}

    def run(self, program):
        """Starts a Python program, which finds the path of the socket in `path`."""
        return subprocess.Popen(
            [sys.executable, "-c", PRELUDE + program, self.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd="/",
            **self.credentials,
        )

    def ask_all(self, requests):
        """[(method, target, body)] -> [Answer], one connection each."""
        process = self.run(ASK_ALL)
        output, _ = process.communicate(json.dumps(requests), timeout=TIMEOUT)
        assert process.returncode == 0
        return [Answer(status, headers, body) for status, headers, body in json.loads(output)]

    def ask(self, method, target, body=None):
        return self.ask_all([(method, target, body)])[0]


PRELUDE = f"""
import http.client, json, socket, sys
path = sys.argv[1]

def connect():
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout({TIMEOUT})
    client.connect(path)
    return client

class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = connect()
"""

ASK_ALL = """
answers = []
for method, target, body in json.load(sys.stdin):
    connection = Connection("localhost")
    connection.request(method, target, body)
    response = connection.getresponse()
    answers.append((response.status, response.getheaders(), response.read().decode()))
    connection.close()
json.dump(answers, sys.stdout)
"""


class Follower:
    """Reads the lines of a chunked answer as they come."""

    def __init__(self, client, query="?follow=1"):
        self.connection = Http(client.daemon.control)
        self.connection.request("GET", "/v1/events" + query)
        self.response = self.connection.getresponse()
        assert self.response.status == 200
        assert self.response.headers["content-type"] == "application/x-ndjson"

    def next(self):
        """None at the end, if it is a proper one."""
        line = self.response.readline()
        return json.loads(line) if line else None

    def next_event(self):
        """The next line that is no heartbeat."""
        while True:
            event = self.next()
            if event is None or event["kind"] != "heartbeat":
                return event

    def close(self):
        self.response.close()
        self.connection.close()
