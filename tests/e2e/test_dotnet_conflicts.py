# SPDX-License-Identifier: Apache-2.0
"""Profilers and hooks that a real program has of its own, in each version's real order of loading."""

import pathlib
import shutil

import pytest
from apps import CORECLR, ONE, SINGLE_FILE, told
from harness import rule

pytestmark = pytest.mark.dotnet


class Own:
    """A profiler that is configured at launch: a copy, so that maps tell it from ours."""

    def __init__(self, folder, rig, prefix="CORECLR_"):
        self.path = str(folder / "own.so")
        shutil.copy(rig.profiler, self.path)
        self.environment = {
            f"{prefix}ENABLE_PROFILING": "1",
            f"{prefix}PROFILER": rig.profiler_clsid,
            f"{prefix}PROFILER_PATH": self.path,
        }


def plan(rig, **keys):
    return rule(env={ONE: "one"}, profilers=[{"clsid": rig.profiler_clsid, "path": rig.profiler}], **keys)


def loaded(app, *paths):
    maps = pathlib.Path(f"/proc/{app.pid}/maps").read_text()
    return [path in maps for path in paths]


def profiler_step(one, app):
    step = one.receipt(app.pid, "running").step("profiler")
    return step["result"]


#: Of which versions read which names.
NAMES = [(name, "CORECLR_") for name in [*CORECLR, *SINGLE_FILE]] + [("11", "DOTNET_")]


@pytest.mark.parametrize(("name", "prefix"), NAMES)
@pytest.mark.parametrize(("on_conflict", "result"), [("skip", "skipped"), ("fail", "refused")])
def test_its_own_stays(daemon, start, rig, folder, name, prefix, on_conflict, result):
    own = Own(folder, rig, prefix)
    one = daemon([plan(rig, on_conflict=on_conflict)])
    app = start(name, one.socket, environment=own.environment)
    assert told(app)["profiler"] == ("1:one:-" if on_conflict == "skip" else "1:-:-")
    assert loaded(app, own.path, rig.profiler) == [True, False]
    assert profiler_step(one, app) == result
    app.finish()


@pytest.mark.parametrize(("name", "prefix"), NAMES)
def test_its_own_is_replaced(daemon, start, rig, folder, name, prefix):
    own = Own(folder, rig, prefix)
    one = daemon([plan(rig, on_conflict="replace")])
    app = start(name, one.socket, environment=own.environment)
    assert told(app)["profiler"] == "1:one:-"
    assert loaded(app, own.path, rig.profiler) == [False, True]
    assert one.receipt(app.pid, "running").outcome == "applied"
    app.finish()


@pytest.mark.parametrize("name", ["8", "9", "10"])
def test_names_that_it_does_not_read(daemon, start, rig, folder, name):
    own = Own(folder, rig, "DOTNET_")
    one = daemon([plan(rig)])
    app = start(name, one.socket, environment=own.environment)
    assert told(app)["profiler"] == "1:one:-"
    assert loaded(app, own.path, rig.profiler) == [False, True]
    assert one.receipt(app.pid, "running").outcome == "applied"
    app.finish()


@pytest.mark.parametrize("name", [*CORECLR, *SINGLE_FILE])
@pytest.mark.parametrize("variable", ["CORECLR_ENABLE_PROFILING", "CORECLR_PROFILER_PATH"])
def test_one_of_the_names_alone(daemon, start, rig, folder, name, variable):
    """Agents look for these by themselves: a rule may give them one, and managed code sees it; no other profiler
    comes of it."""
    value = "1" if variable == "CORECLR_ENABLE_PROFILING" else Own(folder, rig).path
    profilers = [{"clsid": rig.profiler_clsid, "path": rig.profiler}]
    one = daemon([rule(env={ONE: "one", variable: value}, profilers=profilers)])
    app = start(name, one.socket, "--names", variable)
    report = app.report()
    assert (report["profiler"], report["managed"]) == ("1:one:-", {variable: value})
    assert loaded(app, str(folder / "own.so"), rig.profiler) == [False, True]
    assert one.receipt(app.pid, "running").outcome == "applied"
    app.finish()


@pytest.mark.parametrize("name", [*CORECLR, *SINGLE_FILE])
def test_switched_off(daemon, start, rig, name):
    """Ours would be answered with OK, and not be there."""
    one = daemon([plan(rig)])
    app = start(name, one.socket, environment={"DOTNET_EnableDiagnostics_Profiler": "0"})
    assert told(app)["profiler"] is None
    assert profiler_step(one, app) == "refused"
    app.finish()


@pytest.mark.parametrize("name", [*CORECLR, *SINGLE_FILE])
def test_a_hook_runs_once(daemon, start, rig, name):
    one = daemon([rule(startup_hooks=[{"path": rig.hook_a}, {"path": rig.hook_b}])])
    app = start(name, one.socket, environment={"DOTNET_STARTUP_HOOKS": rig.hook_a})
    assert told(app)["hooks"] == ["HookB", "HookA"]
    receipt = one.receipt(app.pid, "running")
    assert [step["result"] for step in receipt["steps"]] == ["skipped", "ok", "ok"]
    assert receipt.outcome == "applied"
    app.finish()
