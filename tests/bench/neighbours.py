#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What rude neighbours cost the others: a report, not a test.

    DIAGPORT_BUILD=BUILD tests/bench/neighbours.py [ROUNDS]

Two hundred fake runtimes with a whole plan, started at once: the median time
from advertise to Resume, in turn alone and beside each kind of neighbour. What
is printed is the median, over the rounds, of the ratio to "alone" of the same
round.
"""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))

import harness  # noqa: E402
from runtimes import Abuse, Fake, Fleet  # noqa: E402

N = 200
NEIGHBOURS = {
    "alone": lambda one: [],
    "8 silent ones": lambda one: [Abuse(one.socket, "--connections", "8")],
    "a stream of silent ones": lambda one: [Abuse(one.socket, "--connections", "8", "--again")],
    "10 that come back": lambda one: [Abuse(one.socket, "--connections", "10", "--again", "--send", "garbage")],
    "10 that send byte by byte": lambda one: [Fake(one.socket, "slow-bytes=20") for _ in range(10)],
}


def measure(one, kind):
    there = NEIGHBOURS[kind](one)
    try:
        for neighbour in there:
            if isinstance(neighbour, Abuse):
                neighbour.opened()
        return Fleet(one.socket, N, "--together").summary()["ms_to_resume"]["median"]
    finally:
        for neighbour in there:
            neighbour.kill()


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    folder = harness.Folder()
    one = harness.Daemon(
        folder,
        [harness.rule(env={"A": "1"}, startup_hooks=[{"path": folder.hook()}])],
        limits={"hello": "100ms", "connections_per_user": 100000},
    )
    try:
        taken = {kind: [] for kind in NEIGHBOURS}
        measure(one, "alone")
        for _ in range(rounds):
            for kind in NEIGHBOURS:
                taken[kind].append(measure(one, kind))
    finally:
        one.stop()
        folder.remove()
    print(f"{N} at once, {rounds} rounds: alone {statistics.median(taken['alone']):.0f} ms from advertise to Resume")
    for kind in list(NEIGHBOURS)[1:]:
        ratios = [mine / max(base, 1) for mine, base in zip(taken[kind], taken["alone"])]
        print(f"  {kind:<26} {statistics.median(ratios):.2f} times alone ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
