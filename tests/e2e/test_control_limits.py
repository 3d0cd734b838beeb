# SPDX-License-Identifier: Apache-2.0
"""Clients that take their time, take every place, or take nothing: others are served meanwhile."""

import json
import os
import resource
import selectors
import time

import pytest
from clients import Identity, ask_over, client_of, read_all
from harness import Http, needs_root, until
from lines import TIMEOUT

POLICY = """
version: 1
listen:
  - { name: runtime, path: "{folder}/runtime.sock" }
control: { path: "{folder}/control.sock", mode: "0666", read: { users: ["61002"] } }
"""

TLS_HELLO = bytes.fromhex("16030100c8010000c40303a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90")
STATUS = b"GET /v1/status HTTP/1.1\r\nHost: d\r\n\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: d\r\n"
CHECK = b"POST /v1/policy/check HTTP/1.1\r\nHost: d\r\n"

#: What is sent at first, what once a second, and whether a 408 says why it ends.
SLOW = {
    "silent": (b"", b"", False),
    "TLS": (TLS_HELLO, b"", False),
    "garbage": (b"\xff" * 100, b"\xff", False),
    "zeros": (b"\0" * 100 + b"\r\n\r\n", b"\0", False),
    "half a line": (b"GET /v1/st", b"", False),
    "a line byte a second": (b"GET /", b"a", False),
    "a header byte a second": (HEALTH + b"X: ", b"x", False),
    "a header a second": (HEALTH, b"X: x\r\n", False),
    "ten of a thousand bytes": (CHECK + b"Content-Length: 1000\r\n\r\n0123456789", b"", True),
    "a body byte a second": (CHECK + b"Content-Length: 1000\r\n\r\n", b"#", True),
    "a chunk a second": (CHECK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n#\r\n", True),
    "nothing after 100": (CHECK + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n", b"", True),
    "nothing after an answer": (HEALTH + b"\r\n", b"", False),
    "a header byte a second after an answer": (HEALTH + b"\r\n" + HEALTH + b"X: ", b"x", False),
}


@pytest.fixture
def client(daemon):
    return client_of(daemon, POLICY)


class Slow:
    """A client that sends a piece a second and never comes to an end."""

    def __init__(self, client, name):
        self.name = name
        first, self.piece, self.is_told = SLOW[name]
        self.raw = client.raw()
        self.raw.sendall(first)
        self.answer = b""
        self.has_ended = False

    def tick(self):
        try:
            self.raw.sendall(self.piece)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def read(self):
        try:
            part = self.raw.recv(65536)
        except ConnectionResetError:
            part = b""
        self.answer += part
        self.has_ended = part == b""


def test_slow_clients_are_cut_off(client):
    """All at once, and others are served meanwhile. The daemon gives each of them ten seconds."""
    slow = [Slow(client, name) for name in SLOW]
    # Who asks for much and reads nothing is cut off a little later.
    unread = client.raw()
    body = b"version: 1\nrules:\n" + b"".join(b"  - { name: r%d, match: all, ignore: true }\n" % i for i in range(3000))
    unread.sendall(CHECK + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    end = time.monotonic() + TIMEOUT
    with selectors.DefaultSelector() as selector:
        for one in slow:
            selector.register(one.raw, selectors.EVENT_READ, one)
        while selector.get_map():
            assert time.monotonic() < end, [key.data.name for key in selector.get_map().values()]
            ready = selector.select(1)
            for key, _ in ready:
                key.data.read()
                if key.data.has_ended:
                    selector.unregister(key.fileobj)
            for one in slow:
                if not ready and not one.has_ended:
                    one.tick()
            assert client.get("/v1/status").status == 200
    for one in slow:
        one.raw.close()
        assert (b"HTTP/1.1 408 " in one.answer) == one.is_told, (one.name, one.answer)
        assert (b"HTTP/1.1 200 OK" in one.answer) == one.name.endswith("after an answer"), one.name
    client.wait_for_connections(1)
    answer = read_all(unread)
    assert answer.startswith(b"HTTP/1.1 200 OK") and not answer.endswith(b"}\n")
    unread.close()


def test_one_that_asks_much_and_reads_nothing(client):
    raw = client.raw()
    raw.sendall(b"GET /metrics HTTP/1.1\r\nHost: d\r\n\r\n" * 200)
    for _ in range(20):
        assert client.get("/v1/status").status == 200
    raw.close()
    client.wait_for_connections(1)


# Places.

FLOOD = """
clients, answers = [], []
for _ in range(200):
    try:
        client = connect()
        clients.append(client)
        client.sendall(b"GET /v1/status HTTP/1.1\\r\\nHost: d\\r\\n\\r\\n")
    except OSError:
        pass
for client in clients:
    try:
        answers.append(client.recv(65536).decode())
    except OSError:
        answers.append("")
print(json.dumps(answers), flush=True)
sys.stdin.readline()
"""


class Flood:
    """A user who opens two hundred connections at once, and keeps those that he gets."""

    def __init__(self, client, uid):
        self.process = Identity(client, uid, 61010).run(FLOOD)

    def answers(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.communicate("done\n", timeout=TIMEOUT)
        assert self.process.returncode == 0


@needs_root
def test_one_user_cannot_take_all_places(client):
    flood = Flood(client, 61002)
    answers = flood.answers()
    served = [answer for answer in answers if answer.startswith("HTTP/1.1 200 ")]
    refused = [answer for answer in answers if answer.startswith("HTTP/1.1 503 ")]
    assert len(served) == 16
    assert len(served) + len(refused) + answers.count("") == len(answers)
    assert all("application/problem+json" in answer for answer in refused)
    assert any("of this user" in answer for answer in refused)
    # The sixteen are still there; others get in.
    client.wait_for_connections(17)
    assert Identity(client, 61003, 61010).ask("GET", "/v1/status").status == 403
    flood.end()
    client.wait_for_connections(1)


@needs_root
def test_root_gets_in_whatever_others_do(client):
    floods = [Flood(client, 61100 + i) for i in range(5)]
    for flood in floods:
        flood.answers()
    client.wait_for_connections(57)
    for flood in floods:
        flood.end()


@needs_root
def test_without_descriptors_clients_wait(client):
    """And those that are connected are served."""
    pid = client.daemon.process.pid
    early = Http(client.daemon.control)
    # Twice, since who is not counted any more may only be about to be closed.
    for _ in range(2):
        until(lambda: ask_over(early, "GET", "/v1/status").json["control"]["connections"], lambda n: n == 1)
    usual = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    # The limit is one of numbers: a descriptor that is not there leaves room below as many as are.
    taken = {int(number) for number in os.listdir(f"/proc/{pid}/fd")}
    first_free = min(set(range(len(taken) + 1)) - taken)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (first_free, usual[1]))
    late = client.raw()
    late.sendall(STATUS)
    assert ask_over(early, "GET", "/healthz").status == 200
    late.setblocking(False)
    with pytest.raises(BlockingIOError):
        late.recv(1)
    late.settimeout(TIMEOUT)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, usual)
    assert late.recv(65536).startswith(b"HTTP/1.1 200 OK")
    early.close()
    late.close()
