# SPDX-License-Identifier: Apache-2.0
"""What happened, and those who follow it."""

import re
import select

import pytest
from clients import Follower, client_of, connect, read_all
from harness import until

POLICY = """
version: 1
listen:
  - { name: runtime, path: "{folder}/runtime.sock", mode: "0600" }
control: { path: "{folder}/control.sock", mode: "0600" }
limits: { hello: 10s }
"""

KEPT = 4096
FOLLOW_ALL = b"GET /v1/events?since=0&follow=1 HTTP/1.1\r\nHost: d\r\n\r\n"
COOKIE = "cccccccc-0000-4000-8000-000000000003"


@pytest.fixture
def client(daemon):
    return client_of(daemon, POLICY)


def make_events(client, count):
    """So many peers that send garbage, each of which is an event."""

    def newest():
        return client.status()["events"]["newest"]

    wanted = newest() + count
    for _ in range(count):
        peer = connect(client.daemon.socket)
        peer.sendall(b"garbage" * 10)
        peer.close()
    until(newest, lambda seen: seen >= wanted)


def test_numbers_and_since(client):
    assert client.events() == []
    make_events(client, 10)
    events = client.events()
    assert [event["seq"] for event in events] == list(range(1, 11))
    assert {(event["kind"], event["error"]) for event in events} == {("peer_error", "garbage")}
    assert client.events("?since=0") == events
    assert client.events("?since=7") == events[7:]
    assert client.events("?since=10") == []
    gap, *rest = client.events("?since=11")
    assert (gap["kind"], gap["lost"], gap["oldest"], gap["seq"]) == ("gap", None, 1, None)
    assert gap["since"] == 11
    assert rest == events


def test_a_runtime_in_events(client, fake):
    runtime = fake(client.daemon.socket, f"cookie={COOKIE}")
    assert runtime.commands() == ["resume"]
    client.wait_for_state(COOKIE, "running")
    events = client.events()
    assert {event["cookie"] for event in events} == {COOKIE}
    assert {event["pid"] for event in events} == {runtime.pid}
    states = [event["state"] for event in events if event["kind"] == "runtime"]
    assert states == ["resuming", "running"]
    (step,) = [event for event in events if event["kind"] == "step"]
    assert (step["step"], step["result"], step["hresult"]) == ("resume", "ok", "0x00000000")


def test_following(client, fake):
    make_events(client, 3)
    new, all_of_them = Follower(client), Follower(client, "?since=0&follow=1")
    assert client.status()["control"]["followers"] == 2
    assert [all_of_them.next_event()["seq"] for _ in range(3)] == [1, 2, 3]
    make_events(client, 1)
    assert new.next_event()["seq"] == 4 and all_of_them.next_event()["seq"] == 4
    fake(client.daemon.socket, f"cookie={COOKIE}")
    event = new.next_event()
    assert (event["kind"], event["cookie"], event["old_state"]) == ("runtime", COOKIE, "known")
    new.close()
    all_of_them.close()
    client.wait_for_followers(0)


def test_heartbeat(client):
    follower = Follower(client)
    line = follower.next()
    assert line == {"seq": None, "at": line["at"], "kind": "heartbeat", "newest": 0}
    follower.close()


def test_the_end_of_the_daemon_ends_a_follower(client):
    follower = Follower(client)
    client.daemon.stop()
    assert follower.next_event() is None
    follower.close()


def test_the_ring(client):
    make_events(client, KEPT + 100)
    gap, *events = client.events("?since=50")
    newest = client.status()["events"]["newest"]
    assert (gap["kind"], gap["lost"]) == ("gap", newest - KEPT - 50)
    assert [event["seq"] for event in events] == list(range(newest - KEPT + 1, newest + 1))


def numbers(answer):
    """Of the events in a chunked answer."""
    return [int(number) for number in re.findall(rb'"seq":(\d+)', answer)]


def has_hung_up(raw):
    """Whether the other end is closed, however much there is to read."""
    poll = select.poll()
    poll.register(raw, 0)
    return bool(poll.poll(0))


def test_a_follower_that_does_not_read(client):
    """It is dropped, and others are served meanwhile; its answer has no proper end."""
    # Who reads nothing of another answer has more time.
    patient = client.raw()
    patient.sendall(b"GET /metrics HTTP/1.1\r\nHost: d\r\n\r\n" * 200)
    raw = client.raw()
    raw.sendall(FOLLOW_ALL)
    client.wait_for_followers(1)
    reader = Follower(client)
    make_events(client, 3000)
    assert [reader.next_event()["seq"] for _ in range(3000)] == list(range(1, 3001))
    client.wait_for_followers(1)
    assert not has_hung_up(patient)
    answer = read_all(raw)
    assert answer.startswith(b"HTTP/1.1 200 OK") and not answer.endswith(b"\r\n0\r\n\r\n")
    raw.close()
    patient.close()
    make_events(client, 1)
    assert reader.next_event()["seq"] == 3001
    reader.close()


def test_a_follower_that_falls_behind(client):
    """What is not kept any more is not left out in silence."""
    raw = client.raw()
    raw.sendall(FOLLOW_ALL)
    client.wait_for_followers(1)
    make_events(client, KEPT + 3000)
    answer = read_all(raw)
    seen = numbers(answer)
    assert seen == list(range(1, len(seen) + 1)) and len(seen) < KEPT + 3000
    assert not answer.endswith(b"\r\n0\r\n\r\n")
    raw.close()


def test_a_follower_that_goes_away(client):
    """It is noticed at once, not with the next event: its place is free again."""
    for _ in range(100):
        Follower(client).close()
    client.wait_for_connections(1)


def test_a_follower_that_sends(client):
    """What it sends is read after the answer, which is never; it costs nothing."""
    raw = client.raw()
    raw.sendall(b"GET /v1/events?follow=1 HTTP/1.1\r\nHost: d\r\n\r\n" * 2)
    client.wait_for_followers(1)
    make_events(client, 1)
    answer = b""
    while b'"seq":1' not in answer:
        answer += raw.recv(65536)
    raw.close()
    client.wait_for_connections(1)


def test_head_of_events_does_not_follow(client):
    answer = client.ask("HEAD", "/v1/events?follow=1")
    assert answer.status == 200 and answer.body == b""
    client.wait_for_followers(0)
