# SPDX-License-Identifier: Apache-2.0
"""Peers that are no runtimes, or lie: closed or resumed, counted, and nobody else waits for it."""

import contextlib
import os
import pathlib
import re
import resource
import socket
import struct
import uuid

import clients
import pytest
from harness import CLSID, NOBODY, needs_root, rule, until

ADVERTISE = struct.Struct("<8s16sQH")


#: Descriptors of a daemon that is flooded, and what it may need for all of them and for who is over a limit.
FEW = 2048
MEMORY_KB = 16 * 1024


def plan(folder):
    return rule(
        env={"A": "1"},
        profilers=[{"clsid": CLSID, "path": folder.profiler()}],
        startup_hooks=[{"path": folder.hook()}],
    )


def a_fleet_runs(fleet, one, n=50):
    """Nobody is delayed: no runtime has to wait for its plan until somebody else is gone."""
    expected = ("--expect", "SetEnvironmentVariable=1", "--expect", "StartupProfiler=1", "--expect", "ApplyStartupHook=1")
    summary = fleet(one.socket, n, "--together", *expected).summary()
    assert summary["resumed"] == n


class Cost:
    """What a daemon takes of the machine while others are rude; the most it ever took, where the kernel keeps that."""

    def __init__(self, one):
        self.one = one
        self.descriptors = one.descriptors()
        self.before = self._memory("VmRSS")

    def _memory(self, key):
        status = pathlib.Path(f"/proc/{self.one.process.pid}/status").read_text()
        return int(re.search(rf"^{key}:\s*(\d+) kB$", status, re.MULTILINE).group(1))

    def is_bounded(self):
        """While it lasts: what is open has a place, and is open."""
        connections = self.one.status()["connections"]
        assert connections["open"] <= connections["usable"], connections
        assert len(self.one._descriptors()) <= FEW, len(self.one._descriptors())
        # A sanitizer keeps for a while what was freed.
        assert "ASAN_OPTIONS" in os.environ or self._memory("VmHWM") - self.before <= MEMORY_KB

    def is_as_before(self):
        self.one.has_descriptors(self.descriptors)


def errors(one, kind):
    return one.metric(f'diagport_peer_errors_total{{kind="{kind}"}}')


def connect(one):
    return contextlib.closing(clients.connect(one.socket))


def has_room_for(n):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return hard >= n + 1000


@pytest.mark.crowd
def test_ten_thousand_that_say_nothing(daemon, fleet, abuse, folder):
    """They are let go after `hello`; the oldest ones before that where there are too many."""
    n = 10000 if has_room_for(10000) else 1000
    one = daemon([plan(folder)], limits={"hello": "1s", "silent": 1000, "connections_per_user": 100000})
    before = one.descriptors()
    silent = abuse(one.socket, "--connections", str(n))
    assert silent.opened()["opened"] == n
    a_fleet_runs(fleet, one)
    status = until(one.status, lambda status: status["connections"]["silent"] == 0)
    assert status["connections"]["open"] <= 50
    # A runtime that gets no processor for `hello` is let go, too, and comes again.
    assert n <= errors(one, "evicted") + errors(one, "no_advertise") <= n + 50
    end = silent.finish()
    assert (end["closed"], end["commands"]) == (n, 0)
    one.wait("gone ", times=50)
    one.has_descriptors(before)


@pytest.mark.parametrize(("what", "kind"), [("half", "no_advertise"), ("garbage", "garbage"), ("http", "garbage")])
def test_what_is_no_advertise(daemon, fleet, abuse, folder, what, kind):
    one = daemon([plan(folder)], limits={"hello": "500ms", "silent": 10000})
    before = one.descriptors()
    rude = abuse(one.socket, "--connections", "1000", "--send", what)
    assert rude.opened()["opened"] == 1000
    a_fleet_runs(fleet, one)
    until(lambda: errors(one, kind), lambda n: n >= 1000)
    end = rude.finish()
    assert (end["closed"], end["commands"], end["bytes"]) == (1000, 0, 0)
    one.wait("gone ", times=50)
    one.has_descriptors(before)
    # What peers do wrong is told, but never without bound.
    assert 1 <= one.log.count(f"peer {kind} ") < 500


def test_they_come_again_and_again(daemon, fleet, abuse, folder):
    one = daemon([plan(folder)], limits={"hello": "50ms"})
    for what in ("nothing", "garbage", "http"):
        rude = abuse(one.socket, "--connections", "100", "--again", "--send", what)
        rude.opened()
        a_fleet_runs(fleet, one)
        assert rude.finish()["commands"] == 0


TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(189)
TEXTS = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": TLS_HELLO,
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "zeros": bytes(100),
    "a command": b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0",
    "other version": b"ADVR_V2\0" + bytes(26),
    "too much": ADVERTISE.pack(b"ADVR_V1\0", uuid.uuid4().bytes_le, 1, 0) + b"x",
}


@pytest.mark.parametrize("name", TEXTS)
def test_other_protocols_are_let_go(daemon, name):
    one = daemon([])
    with connect(one) as sock:
        sock.sendall(TEXTS[name])
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(4096) == b""
    assert errors(one, "garbage") == 1


@pytest.mark.parametrize("length", [0, 1, 7, 8, 33])
def test_a_peer_that_ends_in_the_middle(daemon, length):
    one = daemon([])
    before = one.descriptors()
    with connect(one) as sock:
        sock.sendall(ADVERTISE.pack(b"ADVR_V1\0", uuid.uuid4().bytes_le, 1, 0)[:length])
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(4096) == b""
    assert errors(one, "no_advertise") == 1
    one.has_descriptors(before)


def test_the_advertise_comes_byte_by_byte(daemon, fake):
    one = daemon([rule(env={"A": "1"})])
    runtime = fake(one.socket, "slow-bytes=2")
    assert runtime.commands()[-2:] == ["env A=1", "resume"]
    assert errors(one, "garbage") == 0


def test_one_process_with_a_thousand_cookies(daemon, fleet, abuse, folder):
    """The first ones might be a runtime and what it became; what else it says is only resumed, and never in a tight
    circle."""
    one = daemon([plan(folder)], limits={"connections_per_user": 100000})
    before = one.descriptors()
    liar = abuse(one.socket, "--connections", "1000", "--cookies", "1000", "--send", "advertise", "--answer")
    assert liar.opened()["opened"] == 1000
    a_fleet_runs(fleet, one)
    # Every one of them gets what lets a runtime go on.
    until(lambda: errors(one, "over_limit"), lambda n: n == 996)
    end = liar.finish()
    assert end["resumes"] >= 16
    mine = until(lambda: one.get(f"/v1/runtimes?pid={liar.pid}")["runtimes"],
                 lambda entries: all(entry["outcome"] for entry in entries))
    assert len(mine) == 4
    # Beside an open connection of another one; what comes when the one before has closed its own is an exec.
    assert any(entry["outcome"] == "unknown" for entry in mine)
    assert all(entry["outcome"] in ("unknown", "failed", "partial") for entry in mine)
    one.wait("gone ", times=54)
    one.has_descriptors(before)


def test_a_runtime_with_another_cookie_each_time(daemon, fake, folder):
    one = daemon([plan(folder)])
    runtime = fake(one.socket, "new-cookie-per-connection=1000")
    commands = runtime.commands()
    assert commands[-1] == "resume"
    assert not runtime.report()["twice"]
    # What it takes for its plan is that of the first one it was.
    assert commands.count("env A=1") <= 1


def test_a_cookie_of_another_process(daemon, fake, folder):
    cookie = str(uuid.uuid4())
    one = daemon([plan(folder)])
    first = fake(one.socket, f"cookie={cookie}")
    assert f"hook {folder / 'Hook.dll'}" in first.commands()
    one.receipt(first.pid, "running")
    second = fake(one.socket, f"cookie={cookie}")
    assert second.commands() == ["resume"]
    receipt = one.receipt(second.pid, "running")
    assert (receipt.outcome, receipt["why"]) == ("unknown", "its cookie is that of a runtime in another process")
    assert errors(one, "wrong_claim") == 1
    # An id that means both is not guessed.
    status, _ = one.request("GET", f"/v1/runtimes/{cookie}")
    assert status == 409


def test_a_pid_of_another_process(daemon, fake, folder):
    one = daemon([plan(folder)])
    runtime = fake(one.socket, f"claim-pid={one.process.pid}")
    assert runtime.commands() == ["resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert (receipt.outcome, receipt["claimed_pid"]) == ("unknown", one.process.pid)
    assert receipt["why"] == "the pid in its advertise is not that of its process"
    assert errors(one, "wrong_claim") == 1


def test_noise_in_the_middle_of_a_plan(daemon, fake, folder):
    """Bytes that nobody asked for cost the connection, not the runtime."""
    one = daemon([plan(folder)])
    runtime = fake(one.socket, r"garbage-advertise=@3:hello", "hooks=checked")
    commands = runtime.commands()
    assert commands[-1] == "resume"
    assert commands.count(f"hook {folder / 'Hook.dll'}") == 1
    assert errors(one, "garbage") == 1
    assert one.receipt(runtime.pid, "running").outcome == "applied"


def test_over_its_connections_a_user_is_resumed(daemon, abuse, folder):
    one = daemon([plan(folder)], limits={"connections_per_user": 20})
    many = abuse(one.socket, "--connections", "60", "--send", "advertise", "--cookies", "60", "--answer")
    assert many.opened()["opened"] == 60
    until(lambda: errors(one, "over_limit"), lambda n: n >= 40)
    until(lambda: one.status()["connections"]["open"], lambda n: n <= 20)
    assert many.finish()["resumes"] >= 40


@needs_root
def test_one_user_does_not_cost_another(daemon, fake, abuse, fleet, folder):
    """Somebody without rights fills what he may have; root's runtimes get their plans."""
    one = daemon([plan(folder)], limits={"connections_per_user": 200, "silent": 300})
    many = abuse(one.socket, "--connections", "1000", "--send", "advertise", "--cookies", "3", "--again", user=65534)
    many.opened()
    a_fleet_runs(fleet, one)
    many.finish()


# What one user opens a thousand of a second, the kinds of error that it is counted as, and how many runtimes it may be.
FLOODS = {
    "silence": ((), ("no_advertise", "evicted"), 0),
    "garbage": (("--send", "garbage"), ("garbage",), 0),
    "cookies": (("--send", "advertise", "--cookies", "100000"), ("over_limit", "wrong_claim"), 4),
    "answers": (("--send", "advertise", "--cookies", "100000", "--answer"), ("over_limit", "wrong_claim"), 4),
}


@pytest.mark.crowd
@needs_root
@pytest.mark.parametrize("flood", FLOODS)
def test_a_thousand_connections_a_second_of_one_user(daemon, fleet, abuse, folder, flood):
    """Two hundred runtimes of another one get their plans meanwhile; it is counted, and his, and costs little."""
    options, kinds, n_runtimes = FLOODS[flood]
    one = daemon([plan(folder)], prefix=["prlimit", f"--nofile={FEW}:{FEW}"])
    cost = Cost(one)
    rude = abuse(one.socket, "--rate", "1000", "--connections", "1000", *options, user=NOBODY, group=NOBODY)
    rude.opened()
    cost.is_bounded()
    a_fleet_runs(fleet, one, 200)
    # For some seconds, whenever that was.
    rude.lines.wait('"event":"open"', times=4)
    cost.is_bounded()
    end = rude.finish()
    assert end["opened"] >= 4000 and end["refused"] == 0
    until(lambda: sum(errors(one, kind) for kind in kinds), lambda n: n >= end["opened"] - n_runtimes)
    # Of what is told of him, and never without bound, it is told that it is he.
    told = one.log.matches(r"diagportd: peer (\w+) .*\buid=(\d+)")
    assert str(NOBODY) in {match.group(2) for match in told}
    # A program that ends as soon as it has connected once more says nothing, whoever it is.
    assert {match.group(2) for match in told if match.group(1) != "no_advertise"} <= {str(NOBODY)}
    assert {match.group(1) for match in told} <= {*kinds, "no_advertise"}
    runtimes = one.get("/v1/runtimes")["runtimes"]
    assert sum(entry["uid"] == NOBODY for entry in runtimes) <= n_runtimes
    assert {entry["outcome"] for entry in runtimes if entry["uid"] == 0} == {"applied"}
    one.wait("diagportd: gone .* uid=0 ", times=200)
    cost.is_as_before()
