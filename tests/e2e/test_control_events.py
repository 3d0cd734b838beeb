# SPDX-License-Identifier: Apache-2.0
"""What happened, and those who follow it."""

import json

import pytest

import harness

POLICY = """
version: 1
listen:
  - { name: runtime, path: "{folder}/runtime.sock", mode: "0600" }
control: { path: "{folder}/control.sock", mode: "0600" }
limits: { hello: 10s }
"""

KEPT = 4096
COOKIE = "cccccccc-0000-4000-8000-000000000003"


@pytest.fixture
def daemon(start):
    return start(POLICY)


def make_events(daemon, count):
    """So many peers that send garbage, each of which is an event."""
    before = daemon.status()["events"]["newest"]
    for _ in range(count):
        peer = harness.connect(daemon.port)
        peer.sendall(b"garbage" * 10)
        peer.close()
    harness.wait_for(lambda: daemon.status()["events"]["newest"] >= before + count, "all of them")


class Follower:
    """Reads lines of a chunked answer as they come."""

    def __init__(self, daemon, query="?follow=1"):
        self.connection = daemon.connection()
        self.connection.request("GET", "/v1/events" + query)
        self.response = self.connection.getresponse()
        assert self.response.status == 200
        assert self.response.headers["content-type"] == "application/x-ndjson"

    def next(self):
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


def test_numbers_and_since(daemon):
    assert daemon.events() == []
    make_events(daemon, 10)
    events = daemon.events()
    assert [event["seq"] for event in events] == list(range(1, 11))
    assert {(event["kind"], event["error"]) for event in events} == {("peer_error", "garbage")}
    assert daemon.events("?since=0") == events
    assert daemon.events("?since=7") == events[7:]
    assert daemon.events("?since=10") == []
    gap, *rest = daemon.events("?since=11")
    assert (gap["kind"], gap["lost"], gap["oldest"], gap["seq"]) == ("gap", None, 1, None)
    assert rest == events


def test_a_runtime_in_events(daemon, spawn):
    fake = spawn(daemon, COOKIE)
    fake.wait_line("0401")
    daemon.wait_for_state(COOKIE, "running")
    events = daemon.events()
    assert {event["cookie"] for event in events} == {COOKIE}
    assert {event["pid"] for event in events} == {fake.pid}
    states = [event["state"] for event in events if event["kind"] == "runtime"]
    assert states == ["resuming", "running"]
    (step,) = [event for event in events if event["kind"] == "step"]
    assert (step["step"], step["result"], step["hresult"]) == ("resume", "ok", "0x00000000")


def test_following(daemon, spawn):
    make_events(daemon, 3)
    new, all_of_them = Follower(daemon), Follower(daemon, "?since=0&follow=1")
    assert daemon.status()["control"]["followers"] == 2
    assert [all_of_them.next_event()["seq"] for _ in range(3)] == [1, 2, 3]
    make_events(daemon, 1)
    assert new.next_event()["seq"] == 4 and all_of_them.next_event()["seq"] == 4
    spawn(daemon, COOKIE).wait_line("0401")
    event = new.next_event()
    assert (event["kind"], event["cookie"], event["old_state"]) == ("runtime", COOKIE, "known")
    new.close()
    all_of_them.close()
    daemon.wait_for_followers(0)


def test_heartbeat(daemon):
    follower = Follower(daemon)
    line = follower.next()
    assert line == {"seq": None, "at": line["at"], "kind": "heartbeat", "newest": 0}
    follower.close()


def test_the_end_of_the_daemon_ends_a_follower(daemon):
    follower = Follower(daemon)
    daemon.stop()
    assert follower.next_event() is None
    follower.close()


def test_the_ring(daemon):
    make_events(daemon, KEPT + 100)
    gap, *events = daemon.events("?since=50")
    newest = daemon.status()["events"]["newest"]
    assert (gap["kind"], gap["lost"]) == ("gap", newest - KEPT - 50)
    assert [event["seq"] for event in events] == list(range(newest - KEPT + 1, newest + 1))


def test_a_follower_that_does_not_read(daemon):
    """It is dropped, and others are served meanwhile; its answer has no proper end."""
    client = daemon.raw()
    client.sendall(b"GET /v1/events?since=0&follow=1 HTTP/1.1\r\nHost: d\r\n\r\n")
    daemon.wait_for_followers(1)
    reader = Follower(daemon)
    make_events(daemon, 3000)
    assert [reader.next_event()["seq"] for _ in range(3000)] == list(range(1, 3001))
    daemon.wait_for_followers(1)
    answer = harness.read_all(client)
    assert answer.startswith(b"HTTP/1.1 200 OK") and not answer.endswith(b"\r\n0\r\n\r\n")
    client.close()
    make_events(daemon, 1)
    assert reader.next_event()["seq"] == 3001
    reader.close()


def test_a_follower_that_goes_away(daemon):
    """It is noticed at once, not with the next event: its place is free again."""
    for _ in range(100):
        Follower(daemon).close()
    daemon.wait_for_connections(1)


def test_a_follower_that_sends(daemon):
    """What it sends is read after the answer, which is never; it costs nothing."""
    client = daemon.raw()
    client.sendall(b"GET /v1/events?follow=1 HTTP/1.1\r\nHost: d\r\n\r\n" * 2)
    daemon.wait_for_followers(1)
    make_events(daemon, 1)
    answer = b""
    while b'"seq":1' not in answer:
        answer += client.recv(65536)
    client.close()
    daemon.wait_for_connections(1)


def test_head_of_events_does_not_follow(daemon):
    answer = daemon.ask("HEAD", "/v1/events?follow=1")
    assert answer.status == 200 and answer.body == b""
    daemon.wait_for_followers(0)
