# SPDX-License-Identifier: Apache-2.0
"""A plan with a step of every kind, and what a runtime is told that gets it."""

from harness import CLSID, rule

OLD = {"OLD": "x"}
#: What takes its variables back.
BACK = ["env OLD=x", "unset A"]


def plan(folder, **keys):
    return rule(
        env={"A": "1", "OLD": "new"},
        profilers=[{"clsid": CLSID, "path": folder.profiler()}],
        startup_hooks=[{"path": folder.hook()}],
        **{"primer": "never", **keys},
    )


def whole(folder):
    return [
        "kind",
        "info3",
        "env A=1",
        "env OLD=new",
        f"profiler {folder / 'profiler.so'}",
        f"hook {folder / 'Hook.dll'}",
    ]
