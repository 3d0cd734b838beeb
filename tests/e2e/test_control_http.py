# SPDX-License-Identifier: Apache-2.0
"""What clients send that they should not: the right status or the end, and nothing else happens."""

import socket

import pytest
from clients import client_of, read_all

POLICY = """
version: 1
listen:
  - { name: runtime, path: "{folder}/runtime.sock" }
control: { path: "{folder}/control.sock", mode: "0666", read: { users: ["61002"] } }
"""

HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"


@pytest.fixture
def client(daemon):
    return client_of(daemon, POLICY)


def head(line, *headers):
    return "\r\n".join([line, "Host: d", *headers, "", ""]).encode()


def status_of(answer):
    """Of the first answer in these bytes; None when they are none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else None


def final(client, data):
    """The status of a request after which the connection is closed."""
    return status_of(client.exchange(data))


def short(value):
    """What a case is called."""
    return repr(value)[:60]


def serves(client):
    assert client.get("/v1/status").status == 200


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
    ids=short,
)
def test_request_lines(client, line, status):
    assert final(client, head(line, "Connection: close")) == status
    serves(client)


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
    ids=short,
)
def test_headers(client, headers, status):
    request = "\r\n".join(["GET /v1/status HTTP/1.1", *headers, "Connection: close", "", ""])
    assert final(client, request.encode()) == status
    serves(client)


def test_a_target_that_is_too_long(client):
    assert final(client, head("GET /" + "a" * 40000 + " HTTP/1.1")) in (414, 431)
    assert final(client, head("GET /" + "a" * 15000 + " HTTP/1.1", "Connection: close")) == 404
    serves(client)


def test_errors_are_problems(client):
    answer = client.get("/nowhere")
    assert answer.status == 404 and answer.detail == "there is no such route"
    assert answer.json["title"] == "Not Found" and answer.json["type"] == "about:blank"
    answer = client.ask("DELETE", "/v1/runtimes")
    assert answer.status == 405 and answer.headers["allow"] == "GET, HEAD"
    answer = client.ask("GET", "/v1/explain")
    assert answer.status == 405 and answer.headers["allow"] == "POST"
    answer = client.get("/v1/status?a%0Ab=1")
    assert answer.detail == '"a\\x0ab" is not a query key of this route'


@pytest.mark.parametrize("data", [b"\xff\xfe\r\n\r\n", b"hello\r\n\r\n", HTTP_2], ids=short)
def test_other_languages(client, data):
    assert final(client, data) in (None, 400, 505)
    serves(client)


# Bodies.


def post(path, *headers):
    return head(f"POST {path} HTTP/1.1", "Connection: close", *headers)


def chunked(parts):
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


@pytest.mark.parametrize("expects", [True, False])
def test_a_body_that_is_too_long(client, expects):
    """The refusal can be read, whether or not the client asks before it sends."""
    body = b"#" * (2 * 1024 * 1024)
    headers = [f"Content-Length: {len(body)}"] + ["Expect: 100-continue"] * expects
    raw = client.raw()
    raw.sendall(post("/v1/policy/check", *headers))
    if not expects:
        raw.sendall(body)
    answer = read_all(raw)
    assert status_of(answer) == 413 and b"1048576" in answer
    raw.close()
    serves(client)


def test_the_longest_body(client):
    body = "version: 1\n" + "#" * (1024 * 1024 - 11)
    assert client.ask("POST", "/v1/policy/check", body).json["ok"]
    answer = client.ask("POST", "/v1/policy/check", body + "#")
    assert answer.status == 413 and "1048576" in answer.detail


def test_chunked_bodies(client):
    request = post("/v1/policy/check", "Transfer-Encoding: chunked")
    answer = client.exchange(request + chunked([b"version", b": ", b"1\n", b""]))
    assert status_of(answer) == 200 and b'"ok":true' in answer
    answer = client.exchange(request + chunked([b"#" * 100000] * 20 + [b""]))
    assert status_of(answer) == 413
    # A client that never stops is not listened to for ever.
    assert final(client, request + chunked([b"#" * 1000000] * 40)) in (None, 413)
    for malformed in b"x\r\n", b"-1\r\n", b"5\r\nversion: 1\r\n0\r\n\r\n", b"fffffffffffffffff\r\n":
        assert final(client, request + malformed) in (400, 413)
    serves(client)


def test_expectations(client):
    raw = client.raw()
    body = b"version: 1\n"
    raw.sendall(post("/v1/policy/check", "Expect: 100-continue", f"Content-Length: {len(body)}"))
    assert raw.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    raw.sendall(body)
    assert status_of(read_all(raw)) == 200
    raw.close()
    # What will be refused is refused before the body.
    answer = client.exchange(post("/nowhere", "Expect: 100-continue", "Content-Length: 10"))
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
    ids=short,
)
def test_bodies_that_are_not_what_is_wanted(client, body, where):
    answer = client.ask("POST", "/v1/runtimes/pid:1/hold", body)
    assert answer.status == 400 and where in answer.detail, answer
    serves(client)


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
    ids=short,
)
def test_questions_that_are_none(client, body, where):
    answer = client.post("/v1/explain", body)
    assert answer.status == 400 and where in answer.detail, answer


# Connections.


def test_two_requests_in_one_write(client):
    answer = client.exchange(head("GET /healthz HTTP/1.1") + head("GET /readyz HTTP/1.1", "Connection: close"))
    assert answer.count(b"HTTP/1.1 200 OK") == 2 and answer.count(b'{"ok":true') == 2
    body = b'{"attributes": {}}'
    request = head("POST /v1/explain HTTP/1.1", f"Content-Length: {len(body)}") + body
    answer = client.exchange(request * 20 + head("GET /healthz HTTP/1.1", "Connection: close"))
    assert answer.count(b"HTTP/1.1 200 OK") == 21


def test_one_byte_at_a_time(client):
    body = b'{"attributes": {}}'
    request = post("/v1/explain", f"Content-Length: {len(body)}") + body
    raw = client.raw()
    for i in range(len(request)):
        raw.sendall(request[i : i + 1])
    assert status_of(read_all(raw)) == 200
    raw.close()


def test_an_end_anywhere(client):
    """A client may go away after any byte, and while it is answered."""
    body = b'{"attributes": {}}'
    request = post("/v1/explain", f"Content-Length: {len(body)}") + body
    for length in range(len(request)):
        raw = client.raw()
        raw.sendall(request[:length])
        raw.close()
    for follow in 0, 1:
        raw = client.raw()
        raw.sendall(head(f"GET /v1/events?since=0&follow={follow} HTTP/1.1"))
        raw.close()
    serves(client)
    client.wait_for_connections(1)


def test_half_an_end(client):
    """Who has said all may close that direction and still reads the answer."""
    raw = client.raw()
    raw.sendall(head("GET /healthz HTTP/1.1", "Connection: close"))
    raw.shutdown(socket.SHUT_WR)
    assert status_of(read_all(raw)) == 200
    raw.close()
