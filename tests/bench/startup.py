#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What diagport adds to the start of real .NET apps: a report, not a test.

    tests/bench/startup.py RIG [ROUNDS]

Each round starts the probe program once and twenty times at once, in turn
without a port, held and resumed untouched, and with a whole plan (four
variables, a hook, a profiler); the order changes from round to round. Time is
from the start of the process to its first line, which it prints as soon as Main
begins. Ratios are to "no port" of the same round, so that whatever else the
machine does hits all of them; what is printed is the median over the rounds.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "dotnet"))

import harness  # noqa: E402
from rig import Rig  # noqa: E402

KINDS = {
    "no port": (False, []),
    "no rule matches": (True, []),
    "whole plan": (True, ["--planned"]),
}


def start_all(rig, version, count, socket, arguments):
    """Starts `count` apps at once and gives the seconds until each has reached Main."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    if socket:
        environment["DOTNET_DiagnosticPorts"] = socket
    began, apps = [], []
    for _ in range(count):
        began.append(time.monotonic())
        apps.append(
            subprocess.Popen(
                rig.command(version, "--names", "ONE", *arguments),
                stdout=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        )
    seconds = []
    for start, app in zip(began, apps):
        line = app.stdout.readline()
        seconds.append(time.monotonic() - start)
        assert line, "an app ended without a word"
    for app in apps:
        app.stdout.close()
        assert app.wait() == 0
    return seconds


def report(name, ratios, added):
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"  {name:<16} {statistics.median(ratios):.3f} times no port ({spread}), "
          f"{1000 * statistics.median(added):+.1f} ms")


def measure(rig, version, daemon, count, rounds):
    taken = {kind: [] for kind in KINDS}
    for number in range(rounds):
        order = list(KINDS)
        order = order[number % len(order):] + order[: number % len(order)]
        for kind in order:
            through, arguments = KINDS[kind]
            seconds = start_all(rig, version, count, daemon.socket if through else None, arguments)
            taken[kind].append(statistics.median(seconds))
    print(f".NET {version}, {count} at once, {rounds} rounds: no port {1000 * statistics.median(taken['no port']):.1f} ms")
    for kind in list(KINDS)[1:]:
        ratios = [mine / base for mine, base in zip(taken[kind], taken["no port"])]
        added = [mine - base for mine, base in zip(taken[kind], taken["no port"])]
        report(kind, ratios, added)


def main():
    rig = Rig(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    folder = harness.Folder()
    plan = harness.rule(
        "plan",
        {"args": "--planned"},
        env={"ONE": "1", "TWO": "2", "THREE": "3", "DIAGPORT_TEST_ONE": "4"},
        startup_hooks=[{"path": rig.hook_a}],
        profilers=[{"clsid": rig.profiler_clsid, "path": rig.profiler}],
    )
    daemon = harness.Daemon(folder, [plan])
    try:
        for version in rig.versions:
            measure(rig, version, daemon, 1, rounds)
            measure(rig, version, daemon, 20, max(3, rounds // 3))
        outcomes = [runtime["outcome"] for runtime in daemon.get("/v1/runtimes")["runtimes"]]
        print("outcomes:", {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))})
    finally:
        daemon.stop()
        folder.remove()


if __name__ == "__main__":
    main()
