# SPDX-License-Identifier: Apache-2.0
"""What clients send that they should not: the right status or the end, and nothing else happens."""

import json
import os
import selectors
import socket
import time

import pytest

import harness

POLICY = """
version: 1
listen:
  - { name: runtime, path: "{folder}/runtime.sock" }
control: { path: "{folder}/control.sock", mode: "0666", read: { users: ["61002"] } }
"""

TLS_HELLO = bytes.fromhex(
    "16030100c8010000c40303a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90"
)
HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"


@pytest.fixture
def daemon(start):
    return start(POLICY)


def head(line, *headers):
    return "\r\n".join([line, "Host: d", *headers, "", ""]).encode()


def status_of(answer):
    """Of the first answer in these bytes; None when they are none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else None


def final(daemon, data):
    """The status of a request after which the connection is closed."""
    return status_of(daemon.exchange(data))


def serves(daemon):
    assert daemon.get("/v1/status").status == 200


# Heads.


@pytest.mark.parametrize(
    "line, status",
    [
        ("GET /v1/status HTTP/1.1", 200),
        ("GET /v1/st%61tus HTTP/1.1", 200),
        ("HEAD /v1/status HTTP/1.1", 200),
        ("GET /v1/status HTTP/1.0", 200),
        ("GET / HTTP/1.1", 404),
        ("GET /v1/status/ HTTP/1.1", 404),
        ("GET /v1/runtimes/ HTTP/1.1", 404),
        ("GET //v1/status HTTP/1.1", 404),
        ("GET /v1/../v1/status HTTP/1.1", 404),
        ("GET http://d/v1/status HTTP/1.1", 404),
        ("GET /v1/runtimes/x/resume/y HTTP/1.1", 404),
        ("GET /v1/runtimes/" + "a" * 100 + " HTTP/1.1", 404),
        ("POST /v1/status HTTP/1.1", 405),
        ("DELETE /v1/events HTTP/1.1", 405),
        ("GET /v1/policy/reload HTTP/1.1", 405),
        ("BREW /v1/status HTTP/1.1", 405),
        ("GET /v1/status%00 HTTP/1.1", 400),
        ("GET /v1/status%0 HTTP/1.1", 400),
        ("GET /v1/status?%zz=1 HTTP/1.1", 400),
        ("GET /v1/status?a=1 HTTP/1.1", 400),
        ("GET /v1/runtimes?state=up HTTP/1.1", 400),
        ("GET /v1/runtimes?pid=x HTTP/1.1", 400),
        ("GET /v1/runtimes?pid=1&pid=2 HTTP/1.1", 400),
        ("GET /v1/runtimes?unit=[ HTTP/1.1", 400),
        (
            "GET /v1/runtimes?" + "&".join("abc"[i % 3] * (i + 1) for i in range(20)) + " HTTP/1.1",
            400,
        ),
        ("GET /v1/events?since=-1 HTTP/1.1", 400),
        ("GET /v1/events?follow=yes HTTP/1.1", 400),
        ("GET /v1/status", 400),
        ("GET /v1/status HTTP/3.0", 505),
        ("GET /v1/status HTTP/0.9", 505),
        ("GET /v1/status SMTP/1.1", 400),
    ],
)
def test_request_lines(daemon, line, status):
    assert final(daemon, head(line, "Connection: close")) == status
    serves(daemon)


@pytest.mark.parametrize(
    "headers, status",
    [
        (["Host: "], 200),
        (["Host: /run/diagport/control.sock"], 200),
        (["Host: " + "h" * 8192], 200),
        ([], 400),
        (["Host: d", "X: " + "x" * 15000], 200),
        (["Host: d", "X: " + "x" * 17000], 431),
        (["Host: d", "X: " + "x" * 100000], 431),
        (["Host: d", *(f"X-{i}: x" for i in range(2000))], 431),
        (["Host: d", "no colon here"], 400),
        (["Host: d", "Content-Length: -1"], 400),
        (["Host: d", "Content-Length: many"], 400),
        (["Host: d", "Content-Length: 99999999999999999999999"], 413),
    ],
)
def test_headers(daemon, headers, status):
    request = "\r\n".join(["GET /v1/status HTTP/1.1", *headers, "Connection: close", "", ""])
    assert final(daemon, request.encode()) == status
    serves(daemon)


def test_a_target_that_is_too_long(daemon):
    assert final(daemon, head("GET /" + "a" * 40000 + " HTTP/1.1")) in (414, 431)
    assert final(daemon, head("GET /" + "a" * 15000 + " HTTP/1.1", "Connection: close")) == 404
    serves(daemon)


def test_errors_are_problems(daemon):
    answer = daemon.get("/nowhere")
    assert answer.status == 404 and answer.detail == "there is no such route"
    assert answer.json["title"] == "Not Found" and answer.json["type"] == "about:blank"
    answer = daemon.ask("DELETE", "/v1/runtimes")
    assert answer.status == 405 and answer.headers["allow"] == "GET, HEAD"
    answer = daemon.ask("GET", "/v1/explain")
    assert answer.status == 405 and answer.headers["allow"] == "POST"
    answer = daemon.get("/v1/status?a%0Ab=1")
    assert answer.detail == '"a\\x0ab" is not a query key of this route'


@pytest.mark.parametrize("data", [b"\xff\xfe\r\n\r\n", b"hello\r\n\r\n", HTTP_2])
def test_other_languages(daemon, data):
    assert final(daemon, data) in (None, 400, 505)
    serves(daemon)


# Bodies.


def post(path, *headers):
    return head(f"POST {path} HTTP/1.1", "Connection: close", *headers)


def chunked(parts):
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


@pytest.mark.parametrize("expects", [True, False])
def test_a_body_that_is_too_long(daemon, expects):
    """The refusal can be read, whether or not the client asks before it sends."""
    body = b"#" * (2 * 1024 * 1024)
    headers = [f"Content-Length: {len(body)}"] + ["Expect: 100-continue"] * expects
    client = daemon.raw()
    client.sendall(post("/v1/policy/check", *headers))
    if not expects:
        client.sendall(body)
    answer = harness.read_all(client)
    assert status_of(answer) == 413 and b"1048576" in answer
    client.close()
    serves(daemon)


def test_the_longest_body(daemon):
    body = "version: 1\n" + "#" * (1024 * 1024 - 11)
    assert daemon.ask("POST", "/v1/policy/check", body).json["ok"]
    answer = daemon.ask("POST", "/v1/policy/check", body + "#")
    assert answer.status == 413 and "1048576" in answer.detail


def test_chunked_bodies(daemon):
    request = post("/v1/policy/check", "Transfer-Encoding: chunked")
    answer = daemon.exchange(request + chunked([b"version", b": ", b"1\n", b""]))
    assert status_of(answer) == 200 and b'"ok":true' in answer
    answer = daemon.exchange(request + chunked([b"#" * 100000] * 20 + [b""]))
    assert status_of(answer) == 413
    # A client that never stops is not listened to for ever.
    assert final(daemon, request + chunked([b"#" * 1000000] * 40)) in (None, 413)
    for malformed in b"x\r\n", b"-1\r\n", b"5\r\nversion: 1\r\n0\r\n\r\n", b"fffffffffffffffff\r\n":
        assert final(daemon, request + malformed) in (400, 413)
    serves(daemon)


def test_expectations(daemon):
    client = daemon.raw()
    body = b"version: 1\n"
    client.sendall(post("/v1/policy/check", "Expect: 100-continue", f"Content-Length: {len(body)}"))
    assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(body)
    assert status_of(harness.read_all(client)) == 200
    client.close()
    # What will be refused is refused before the body.
    answer = daemon.exchange(post("/nowhere", "Expect: 100-continue", "Content-Length: 10"))
    assert status_of(answer) == 404


@pytest.mark.parametrize(
    "body, where",
    [
        ("{", "line 1, column 1"),
        ('{"for": }', "line 1, column 9"),
        ("{}\n}", "line 2, column 1"),
        ('{"for": "1s", "for": "2s"}', "duplicate"),
        ("[]", "object"),
        ('"text"', "object"),
        ("null", "object"),
        ('{"until": "10m"}', '"until"'),
        ('{"f\\u000Ar": 1}', '"f\\x0ar"'),
        (b'{"for": "\xff"}', "line 1"),
        (b'{"for": "a\0b"}', "line 1"),
        ('{"for": "\\u0000"}', "line 1"),
        ("[" * 100000, "line 1"),
        ("{" * 100000, "line 1"),
    ],
)
def test_bodies_that_are_not_what_is_wanted(daemon, body, where):
    answer = daemon.ask("POST", "/v1/runtimes/pid:1/hold", body)
    assert answer.status == 400 and where in answer.detail, answer
    serves(daemon)


@pytest.mark.parametrize(
    "body, where",
    [
        ({}, '"pid" or "attributes"'),
        ({"pid": 1, "attributes": {}}, '"pid" or "attributes"'),
        ({"pid": "1"}, '"pid"'),
        ({"pid": 1.5}, '"pid"'),
        ({"pid": 0}, '"pid"'),
        ({"pid": -1}, '"pid"'),
        ({"pid": 2**31}, '"pid"'),
        ({"pid": True}, '"pid"'),
        ({"attributes": []}, '"attributes"'),
        ({"attributes": {"exe": 1}}, '"exe"'),
        ({"attributes": {"args": ["a", None]}}, '"args"'),
        ({"attributes": {"env": ["A=1"]}}, '"env"'),
        ({"attributes": {"env": {"A=": "1"}}}, '"env"'),
        ({"attributes": {"env": {"A": 1}}}, '"env"'),
        ({"attributes": {"colour": "red"}}, "attribute"),
    ],
)
def test_questions_that_are_none(daemon, body, where):
    answer = daemon.post("/v1/explain", body)
    assert answer.status == 400 and where in answer.detail, answer


# Connections.


def test_two_requests_in_one_write(daemon):
    answer = daemon.exchange(
        head("GET /healthz HTTP/1.1") + head("GET /readyz HTTP/1.1", "Connection: close")
    )
    assert answer.count(b"HTTP/1.1 200 OK") == 2 and answer.count(b'{"ok":true') == 2
    body = b'{"attributes": {}}'
    request = head("POST /v1/explain HTTP/1.1", f"Content-Length: {len(body)}") + body
    answer = daemon.exchange(request * 20 + head("GET /healthz HTTP/1.1", "Connection: close"))
    assert answer.count(b"HTTP/1.1 200 OK") == 21


def test_one_byte_at_a_time(daemon):
    body = b'{"attributes": {}}'
    request = post("/v1/explain", f"Content-Length: {len(body)}") + body
    client = daemon.raw()
    for i in range(len(request)):
        client.sendall(request[i : i + 1])
    assert status_of(harness.read_all(client)) == 200
    client.close()


def test_an_end_anywhere(daemon):
    """A client may go away after any byte, and while it is answered."""
    body = b'{"attributes": {}}'
    request = post("/v1/explain", f"Content-Length: {len(body)}") + body
    for length in range(len(request)):
        client = daemon.raw()
        client.sendall(request[:length])
        client.close()
    for follow in 0, 1:
        client = daemon.raw()
        client.sendall(head(f"GET /v1/events?since=0&follow={follow} HTTP/1.1"))
        client.close()
    serves(daemon)
    daemon.wait_for_connections(1)


def test_half_an_end(daemon):
    """Who has said all may close that direction and still reads the answer."""
    client = daemon.raw()
    client.sendall(head("GET /healthz HTTP/1.1", "Connection: close"))
    client.shutdown(socket.SHUT_WR)
    assert status_of(harness.read_all(client)) == 200
    client.close()


class Slow:
    """A client that sends a piece a second and never comes to an end."""

    def __init__(self, daemon, name, first, piece, told):
        self.name, self.piece, self.told = name, piece, told
        self.client = daemon.raw()
        self.client.sendall(first)
        self.answer = b""

    def tick(self):
        try:
            self.client.sendall(self.piece)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def read(self):
        """False at the end."""
        try:
            part = self.client.recv(65536)
        except ConnectionResetError:
            part = b""
        self.answer += part
        return part != b""


def test_slow_clients_are_cut_off(daemon):
    """All at once, and others are served meanwhile."""
    body = post("/v1/policy/check", "Content-Length: 1000")
    clients = [
        Slow(daemon, "silent", b"", b"", False),
        Slow(daemon, "TLS", TLS_HELLO, b"", False),
        Slow(daemon, "garbage", b"\xff" * 100, b"\xff", False),
        Slow(daemon, "zeros", b"\0" * 100 + b"\r\n\r\n", b"\0", False),
        Slow(daemon, "half a line", b"GET /v1/st", b"", False),
        Slow(
            daemon,
            "a header byte a second",
            head("GET /healthz HTTP/1.1")[:-2] + b"X: ",
            b"x",
            False,
        ),
        Slow(daemon, "a header a second", head("GET /healthz HTTP/1.1")[:-2], b"X: x\r\n", False),
        Slow(daemon, "ten of a thousand bytes", body + b"0123456789", b"", True),
        Slow(daemon, "a body byte a second", body, b"#", True),
        Slow(
            daemon,
            "a chunk a second",
            post("/v1/policy/check", "Transfer-Encoding: chunked"),
            b"1\r\n#\r\n",
            True,
        ),
        Slow(
            daemon,
            "no body after Expect",
            post("/v1/policy/check", "Content-Length: 9", "Expect: 100-continue"),
            b"",
            True,
        ),
        Slow(daemon, "nothing after an answer", head("GET /healthz HTTP/1.1"), b"", False),
    ]
    limit = time.monotonic() + harness.PATIENCE
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.client, selectors.EVENT_READ, client)
        while selector.get_map():
            assert time.monotonic() < limit, [key.data.name for key in selector.get_map().values()]
            ready = selector.select(1)
            for key, _ in ready:
                if not key.data.read():
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
            for client in clients if not ready else []:
                if client.client.fileno() >= 0:
                    client.tick()
            serves(daemon)
    for client in clients:
        assert (b"HTTP/1.1 408 " in client.answer) == client.told, (client.name, client.answer)
    assert b"HTTP/1.1 200 OK" in clients[-1].answer
    daemon.wait_for_connections(1)


def test_a_reader_that_stops_reading_a_list_holds_up_nobody(daemon):
    client = daemon.raw()
    client.sendall(head("GET /metrics HTTP/1.1") * 200)
    for _ in range(20):
        serves(daemon)
    client.close()
    daemon.wait_for_connections(1)


FLOOD = """
import harness, json
clients = []
for _ in range(200):
    try:
        client = harness.connect(sys.argv[1])
        client.sendall(b"GET /v1/status HTTP/1.1\\r\\nHost: d\\r\\n\\r\\n")
    except OSError:
        pass
    clients.append(client)
answers = []
for client in clients:
    try:
        answers.append(client.recv(65536).decode())
    except OSError:
        answers.append("")
print(json.dumps(answers), flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: cannot ask as another user")
def test_one_user_cannot_take_all_connections(daemon):
    flood = harness.Identity(daemon, 61002, 61010).run(FLOOD, daemon.control)
    answers = json.loads(flood.stdout.readline())
    n_served = sum(answer.startswith("HTTP/1.1 200") for answer in answers)
    assert n_served == 16
    for answer in answers:
        assert answer == "" or answer.startswith(("HTTP/1.1 200", "HTTP/1.1 503 ")), answer
    refused = next(answer for answer in answers if answer.startswith("HTTP/1.1 503 "))
    assert "application/problem+json" in refused and "of this user" in refused
    # The sixteen are still there; others get in.
    daemon.wait_for_connections(17)
    assert harness.Identity(daemon, 61003, 61010).ask("GET", "/v1/status").status == 403
    flood.communicate("done\n", timeout=harness.PATIENCE)
    daemon.wait_for_connections(1)


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: cannot ask as other users")
def test_root_gets_in_whatever_others_do(daemon):
    floods = [
        harness.Identity(daemon, 61100 + i, 61010).run(FLOOD, daemon.control) for i in range(5)
    ]
    for flood in floods:
        flood.stdout.readline()
    daemon.wait_for_connections(57)
    for flood in floods:
        flood.communicate("done\n", timeout=harness.PATIENCE)
