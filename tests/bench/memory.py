#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What each runtime, connection and record of history costs the daemon in memory: a report, not a test.

    DIAGPORT_BUILD=BUILD tests/bench/memory.py [COUNT]

The private memory of a daemon before and after so many of them. Fake runtimes
have short command lines; of longer ones the first 4096 bytes are kept.
"""

import contextlib
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))

import harness  # noqa: E402
from runtimes import Abuse, Fleet  # noqa: E402

LIMITS = {"connections_per_user": 100000, "silent": 100000, "hello": "1m", "runtimes_per_user": 100000}


def private(one):
    text = pathlib.Path(f"/proc/{one.process.pid}/smaps_rollup").read_text()
    return 1024 * sum(map(int, re.findall(r"^Private_\w+: +(\d+)", text, re.MULTILINE)))


def each(name, before, after, n):
    print(f"  {name:<44} {(after - before) / n:8.0f} bytes")


@contextlib.contextmanager
def daemon(**limits):
    folder = harness.Folder()
    one = harness.Daemon(folder, [harness.rule(env={"A": "1"})], limits={**LIMITS, **limits})
    try:
        yield one
    finally:
        one.stop()
        folder.remove()


def silent_connections(n):
    with daemon() as one:
        before = private(one)
        many = Abuse(one.socket, "--connections", str(n))
        many.opened()
        harness.until(lambda: one.status()["connections"]["silent"], lambda count: count == n)
        each("a connection without an advertise", before, private(one), n)
        many.kill()


def running(n):
    with daemon() as one:
        before = private(one)
        many = Fleet(one.socket, n, run_for="signal")
        one.wait("diagportd: running ", times=n)
        harness.until(lambda: one.status()["connections"]["open"], lambda count: count >= n)
        each("a runtime that runs, with its connection", before, private(one), n)
        many.kill()


def ended(n):
    with daemon(history={"records": n}) as one:
        before = private(one)
        # One after the other, so that what each needed while it lived is used again.
        Fleet(one.socket, n).summary()
        one.wait("diagportd: gone ", times=n)
        each("an ended runtime in the history", before, private(one), n)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"private memory, each of {n}:")
    for measure in (silent_connections, running, ended):
        measure(n)


if __name__ == "__main__":
    main()
