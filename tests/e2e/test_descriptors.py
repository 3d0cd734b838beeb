# SPDX-License-Identifier: Apache-2.0
"""With few descriptors: the daemon never ends, says so, and serves the rest as soon as others end."""

import json
import os
import signal

import pytest
from harness import CLSID, rule, until

LIMITED = ["prlimit", "--nofile=96:96"]
NO_USER_LIMIT = {"connections_per_user": 1000}

#: The whole plan, and that each who gets it gets it whole.
STEPS = ("SetEnvironmentVariable", "StartupProfiler", "ApplyStartupHook")


def test_more_plans_than_descriptors(daemon, fleet):
    """A plan costs descriptors to its end: there are only so many at a time, and the others are resumed without."""
    one = daemon([rule(env={"OLD": "new"})], prefix=LIMITED, limits=NO_USER_LIMIT)
    many = fleet(one.socket, 200, "--together", environment={"OLD": "x"})
    one.wait("alarm descriptors on")
    # Those that got a descriptor are served, end, and make room for the next ones.
    assert many.summary()["resumed"] == 200
    one.wait("diagportd: gone ", times=200)
    until(one.alarms, lambda alarms: alarms == [])
    runtimes = one.get("/v1/runtimes")["runtimes"]
    assert {entry["outcome"] for entry in runtimes} <= {"applied", "unknown"}
    assert "applied" in {entry["outcome"] for entry in runtimes}
    whys = {entry["why"] for entry in runtimes if entry["outcome"] == "unknown"}
    assert whys <= {"more runtimes wait than descriptors last for"}


def test_as_many_as_there_may_be(daemon):
    """Few of them are no news where nobody asked for more: the status says what they last for."""
    one = daemon([], prefix=["prlimit", "--nofile=64:4096"])
    assert one.metric("process_max_fds") == 4096
    assert one.log.count("limits.runtimes") == 0
    status = one.status()
    assert status["limits"]["runtimes"] == status["connections"]["usable"] // 2 < 2048
    # Where somebody did, they are, at every reload.
    one.policy(limits={"runtimes": 3000})
    start = one.mark()
    assert one.reload()
    assert one.log.count("limits.runtimes is 3000, but descriptors last for [0-9]+ that wait", start) == 1
    assert one.status()["limits"]["runtimes"] == status["limits"]["runtimes"]
    one.policy(limits={"runtimes": 100})
    start = one.mark()
    assert one.reload()
    assert one.log.count("limits.runtimes", start) == 0
    assert one.status()["limits"]["runtimes"] == 100


def test_over_what_one_user_may_have(daemon, fleet):
    """By default that is a quarter: who is over it is resumed, and gets nothing else, not even later."""
    one = daemon([rule(env={"OLD": "new"})], prefix=LIMITED)
    many = fleet(one.socket, 40, "--together", environment={"OLD": "x"})
    assert many.summary()["resumed"] == 40
    assert one.is_alive()


def test_runtimes_that_stay(daemon, fake):
    """Nobody is let go for somebody new: who came too late waits until another one ends."""
    one = daemon([], prefix=LIMITED, limits=NO_USER_LIMIT)
    runtimes = {}
    for _ in range(200):
        runtime = fake(one.socket)
        runtimes[runtime.pid] = runtime
    one.wait("alarm descriptors on")
    assert one.is_alive()
    n_running = 0
    while runtimes:
        # End whoever runs; each end makes room for one more.
        n_running += 1
        pid = int(one.wait(r"diagportd: running .*pid=(\d+) ", times=n_running).group(1))
        assert runtimes.pop(pid).end() == 0
    one.wait("alarm descriptors off")
    one.wait("diagportd: gone ", times=200)
    assert one.status()["runtimes_seen"] == 200


def test_who_says_nothing_makes_room(daemon, fleet, abuse):
    """Long before `hello` has passed."""
    one = daemon([rule(env={"OLD": "new"})], prefix=LIMITED)
    silent = abuse(one.socket, "--connections", "300")
    assert silent.opened()["opened"] == 300
    assert fleet(one.socket, 20, environment={"OLD": "x"}).summary()["resumed"] == 20
    assert one.metric('diagport_peer_errors_total{kind="evicted"}') > 0
    silent.finish()


# With 256 of them.

SMALL = ["prlimit", "--nofile=256:256"]


def plan(folder):
    return rule(
        env={"A": "1"},
        profilers=[{"clsid": CLSID, "path": folder.profiler()}],
        startup_hooks=[{"path": folder.hook()}],
    )


def has_whole_plans(summary, n):
    """Whoever got one step got them all."""
    assert [summary["commands"].get(step, 0) for step in STEPS] == [n] * len(STEPS), summary


def outcomes(one):
    """{outcome: how many runtimes}; who was resumed without a plan was so for one reason."""
    runtimes = one.get("/v1/runtimes")["runtimes"]
    whys = {entry["why"] for entry in runtimes if entry["outcome"] == "unknown"}
    assert whys <= {"more runtimes wait than descriptors last for"}, whys
    found = [entry["outcome"] for entry in runtimes]
    return {outcome: found.count(outcome) for outcome in set(found)}


class Staying:
    """Many runtimes that stay until each is told to end."""

    def __init__(self, fleet, folder, port, count, *options):
        reports = folder.file("reports", "")
        self.fleet = fleet(port, count, "--reports", reports, *options, run_for="signal")
        self._reports = open(reports)
        self._rest = ""
        self._started = set()

    def _read(self):
        *lines, self._rest = (self._rest + self._reports.read()).split("\n")
        self._started |= {json.loads(line)["pid"] for line in lines}
        return self._started

    def end(self, pid):
        """Once its managed code runs: before that a runtime does not take the signal."""
        until(self._read, lambda started: pid in started)
        os.kill(pid, signal.SIGTERM)

    def summary(self):
        """With the exit status of who is told to end."""
        self._reports.close()
        return self.fleet.summary(["failed"])


@pytest.mark.crowd
def test_a_thousand_at_once(daemon, fleet, folder):
    one = daemon([plan(folder)], prefix=SMALL, limits=NO_USER_LIMIT)
    many = fleet(one.socket, 1000, "--together")
    one.wait("alarm descriptors on")
    summary = many.summary()
    assert summary["resumed"] == 1000
    one.wait("diagportd: gone ", times=1000)
    one.wait("alarm descriptors off")
    found = outcomes(one)
    assert set(found) == {"applied", "unknown"} and sum(found.values()) == 1000, found
    # As many plans at a time as may wait: half of the places.
    assert found["applied"] >= one.status()["connections"]["usable"] // 2
    has_whole_plans(summary, found["applied"])


@pytest.mark.crowd
def test_a_thousand_at_once_that_stay(daemon, fleet, folder):
    """All run although none of them ends: those with a plan to the end of it, those without one at once."""
    one = daemon([plan(folder)], prefix=SMALL, limits=NO_USER_LIMIT)
    many = Staying(fleet, folder, one.socket, 1000, "--together")
    one.wait("alarm descriptors on")
    until(lambda: one.status()["runtimes"]["running"], lambda n: n == 1000)
    found = outcomes(one)
    connections = one.status()["connections"]
    assert found["applied"] >= connections["usable"] // 2, found
    # They run, more of them than there are places; the rest of their connections are in the queue.
    assert connections["open"] <= connections["usable"] and one.alarms() == ["descriptors"]
    assert one.is_alive()
    for entry in one.get("/v1/runtimes")["runtimes"]:
        many.end(entry["pid"])
    summary = many.summary()
    assert summary["resumed"] == 1000
    has_whole_plans(summary, found["applied"])
    one.wait("diagportd: gone ", times=1000)
    until(one.alarms, lambda alarms: alarms == [])


@pytest.mark.crowd
def test_a_thousand_in_turn_that_stay(daemon, fleet, folder):
    """Whoever comes while there is a place gets its whole plan; then each end lets the next one in."""
    one = daemon([plan(folder)], prefix=SMALL, limits=NO_USER_LIMIT)
    many = Staying(fleet, folder, one.socket, 1000)
    one.wait("alarm descriptors on")
    ended, n = set(), 0
    while len(ended) < 1000:
        # Some run, are taken for suspended for a moment, and run again.
        n += 1
        pid = int(one.wait(r"diagportd: running .*pid=(\d+) ", times=n).group(1))
        if pid not in ended:
            many.end(pid)
            ended.add(pid)
    summary = many.summary()
    assert summary["resumed"] == 1000
    one.wait("diagportd: gone ", times=1000)
    one.wait("alarm descriptors off")
    has_whole_plans(summary, outcomes(one)["applied"])


def test_three_hundred_silent_first(daemon, fleet, abuse, folder):
    """Who says nothing has a place only as long as nobody else wants it, long before `hello` is over."""
    one = daemon([plan(folder)], prefix=SMALL, limits={**NO_USER_LIMIT})
    silent = abuse(one.socket, "--connections", "300")
    assert silent.opened()["opened"] == 300
    assert one.is_alive()
    summary = fleet(one.socket, 50, "--together", run_for="stdin").summary()
    assert summary["resumed"] == 50
    has_whole_plans(summary, 50)
    one.wait("diagportd: gone ", times=50)
    assert outcomes(one) == {"applied": 50}
    assert one.metric('diagport_peer_errors_total{kind="evicted"}') >= 300 + 50 - one.status()["connections"]["usable"]
    silent.finish()
