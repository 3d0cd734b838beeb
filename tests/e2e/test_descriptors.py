# SPDX-License-Identifier: Apache-2.0
"""With few descriptors: the daemon never ends, says so, and serves the rest as soon as others end."""

from harness import rule, until

LIMITED = ["prlimit", "--nofile=96:96"]
NO_USER_LIMIT = {"connections_per_user": 1000}


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
