# SPDX-License-Identifier: Apache-2.0
"""What some do costs the others nothing but their share: every neighbour gets its plan, in time."""

import errno
import pathlib
import socket

import pytest
from harness import CLSID, needs_namespaces, rule, until

pytestmark = pytest.mark.crowd

NO_USER_LIMIT = {"connections_per_user": 100000}
PLANNED = ("--expect", "SetEnvironmentVariable=1", "--expect", "StartupProfiler=1", "--expect", "ApplyStartupHook=1")


def plan(folder):
    return rule(
        env={"A": "1"},
        profilers=[{"clsid": CLSID, "path": folder.profiler()}],
        startup_hooks=[{"path": folder.hook()}],
    )


def outcomes(one):
    return {entry["outcome"] for entry in one.get("/v1/runtimes")["runtimes"]}


# Who is there beside them: options of fake-abuse.
RUDE = {
    "nobody": None,
    "eight that say nothing": ("--connections", "8"),
    "a stream of those": ("--connections", "8", "--again"),
    "ten that come back": ("--connections", "10", "--again", "--send", "garbage"),
    "ten that say half": ("--connections", "10", "--again", "--send", "half"),
}


@pytest.mark.parametrize("who", RUDE)
def test_two_hundred_beside(daemon, fleet, abuse, folder, who):
    one = daemon([plan(folder)], limits={**NO_USER_LIMIT, "hello": "100ms"})
    rude = RUDE[who] and abuse(one.socket, *RUDE[who])
    if rude:
        rude.opened()
    assert fleet(one.socket, 200, "--together", *PLANNED).summary()["resumed"] == 200
    one.wait("diagportd: gone ", times=200)
    assert outcomes(one) == {"applied"}
    if rude:
        rude.finish()


def test_two_hundred_beside_ten_that_are_slow(daemon, fleet, fake, folder):
    one = daemon([plan(folder)], limits=NO_USER_LIMIT)
    slow = [fake(one.socket, "slow-bytes=5") for _ in range(10)]
    assert fleet(one.socket, 200, "--together", *PLANNED).summary()["resumed"] == 200
    for runtime in slow:
        assert runtime.commands()[-1] == "resume"
        assert runtime.end() == 0
    one.wait("diagportd: gone ", times=210)
    assert outcomes(one) == {"applied"}


FEW = ["prlimit", "--nofile=256:256"]


def test_all_descriptors_are_those_of_programs_that_run(daemon, fake, folder):
    """Who is met before they are all taken is served to its end, although its next connection has to queue."""
    one = daemon([plan(folder)], prefix=["prlimit", "--nofile=64:64"], limits=NO_USER_LIMIT)
    usable = one.status()["connections"]["usable"]
    running = [fake(one.socket) for _ in range(usable - 2)]
    for runtime in running:
        one.wait(rf"diagportd: running .*pid={runtime.pid} ")
    until(lambda: one.status()["connections"]["open"], lambda n: n == usable - 2)
    planned = fake(one.socket, "stop-after-reply=info3@1")
    planned.stands()
    # They come while it stands, and are before it in the queue.
    behind = [fake(one.socket) for _ in range(3 * usable)]
    one.wait("alarm descriptors on")
    planned.thaw()
    commands = planned.commands()
    assert commands[-1] == "resume" and commands[2] == "env A=1", commands
    assert one.receipt(planned.pid, "running").outcome == "applied"
    # And everybody else as soon as there is room.
    for runtime in running:
        assert runtime.end() == 0
    waiting = list(behind)
    while waiting:
        at = next(i for i, runtime in enumerate(waiting) if runtime.lines.wait('"event":"start"'))
        assert waiting.pop(at).end() == 0


def test_one_process_that_parks_with_few_descriptors(daemon, fleet, abuse, folder):
    """It has over a thousand connections, more than a user may; the listener is not paused for others."""
    one = daemon([plan(folder)], prefix=FEW)
    many = abuse(one.socket, "--connections", "1000", "--send", "advertise", "--cookies", "1000", "--again")
    many.opened()
    assert fleet(one.socket, 20).summary()["resumed"] == 20
    assert one.is_alive()
    many.process.kill()


# The queue of a listener is as long as its network's limit: thousands of processes here would take what other tests on
# this machine need.
SHORT_QUEUE = ["unshare", "--net", "sh", "-c", 'echo 256 > /proc/sys/net/core/somaxconn && exec "$@"', "sh"]


def queue_is_full(path):
    """A place that is found free is taken by that."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path) == errno.EAGAIN


@needs_namespaces
def test_more_than_the_queue_holds_while_the_daemon_stands(daemon, fleet, folder):
    one = daemon([plan(folder)], prefix=SHORT_QUEUE, limits=NO_USER_LIMIT)
    one.freeze()
    many = fleet(one.socket, 1000, "--together", *PLANNED)
    children = pathlib.Path(f"/proc/{many.process.pid}/task/{many.process.pid}/children")
    until(lambda: len(children.read_text().split()), lambda started: started == 1000)
    until(lambda: queue_is_full(one.socket), bool)
    one.thaw()
    assert many.summary()["resumed"] == 1000


def test_killed_amid_two_thousand(daemon, fleet, folder):
    one = daemon([plan(folder)], limits={**NO_USER_LIMIT, "runtimes_per_user": 100000})
    many = fleet(one.socket, 2000, "--together", "--may-repeat", behaviours=["delay=any:5"])
    one.wait("step env ok ", times=300)
    one.kill()
    one.start()
    # Nothing twice and nothing after Resume: any of it would be an anomaly.
    assert many.summary()["resumed"] == 2000
