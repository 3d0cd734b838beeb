# SPDX-License-Identifier: Apache-2.0
"""Whole plans for real programs: what each version and kind gets, and what none of them is ever sent."""

import signal

import pytest
from apps import (
    CORECLR,
    EVERY,
    GONE,
    NATIVEAOT,
    ONE,
    ONLY_VARIABLES,
    PORTS,
    SINGLE_FILE,
    UNTOUCHED,
    WHOLE,
    check_applied,
    check_resumed_only,
    told,
    whole_rule,
)
from harness import rule

pytestmark = pytest.mark.dotnet

ABSENT = "/nowhere/Absent.dll"


def test_twenty_at_once(daemon, start, rig):
    one = daemon([whole_rule(rig)])
    apps = [start(CORECLR[n % len(CORECLR)], one.socket) for n in range(20)]
    for app in apps:
        assert told(app) == WHOLE
        check_applied(one.receipt(app.pid, "running"), rig)
    for app in apps:
        app.finish()
        assert one.receipt(app.pid, "gone").outcome == "applied"
    assert one.status()["runtimes_seen"] == 20


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("name", [*CORECLR, *SINGLE_FILE])
def test_coreclr_gets_everything(daemon, start, rig, name, required):
    one = daemon([whole_rule(rig, required)])
    app = start(name, one.socket)
    assert told(app) == WHOLE
    receipt = one.receipt(app.pid, "running")
    check_applied(receipt, rig)
    assert (receipt["kind"], receipt["runtime_version"].split(".")[0]) == ("coreclr", name.split("-")[-1])
    app.finish()


@pytest.mark.parametrize("name", NATIVEAOT)
def test_nativeaot_gets_its_variables(daemon, start, rig, name):
    one = daemon([whole_rule(rig, required=False)])
    app = start(name, one.socket)
    assert told(app) == ONLY_VARIABLES
    receipt = one.receipt(app.pid, "running")
    assert (receipt["kind"], receipt.outcome) == ("nativeaot", "applied"), receipt
    assert {step["result"] for step in receipt["steps"] if step["required"]} == {"ok"}
    assert {(step["result"], step["attempts"]) for step in receipt["steps"] if not step["required"]} == {("refused", 0)}
    app.finish()


# What NativeAOT does not do, each alone beside a variable.
ONLY_CORECLR = {
    "unset": lambda rig: rule(env={ONE: "one", GONE: None}),
    "profiler": lambda rig: rule(env={ONE: "one"}, profilers=whole_rule(rig)["profilers"][:1]),
    "hook": lambda rig: rule(env={ONE: "one"}, startup_hooks=[{"path": rig.hook_a}]),
}


@pytest.mark.parametrize("what", ONLY_CORECLR)
@pytest.mark.parametrize("name", NATIVEAOT)
def test_nativeaot_is_left_alone_when_it_cannot_do_what_is_required(daemon, start, rig, name, what):
    one = daemon([ONLY_CORECLR[what](rig)])
    app = start(name, one.socket)
    assert told(app) == UNTOUCHED
    receipt = one.receipt(app.pid, "running")
    assert receipt.outcome == "failed", receipt
    assert {step["attempts"] for step in receipt["steps"] if step["kind"] != "resume"} == {0}, receipt
    assert receipt["steps"][-1]["kind"] == "resume"
    app.finish()


# So many that their time can be over in the middle; every third was there before.
MANY = [f"DIAGPORT_TEST_MANY_{n}" for n in range(1000)]
BEFORE = dict.fromkeys(MANY[::3], "old")


def check_told(step, value, may_be_undone):
    """A variable is in the program what the receipt says it is."""
    possible = {"ok": ["new"], "lost": ["new", BEFORE.get(step["name"])]}
    assert value in (possible.get(step["result"], [BEFORE.get(step["name"])]) + may_be_undone), step


@pytest.mark.parametrize("name", EVERY)
def test_a_plan_is_taken_back(daemon, start, name):
    """Its time is over in the middle. NativeAOT is left with what was not there before: taking it away would kill."""
    one = daemon([])
    results = {}
    for ms in (50, 100, 200, 400, 800):
        one.policy([rule(env=dict.fromkeys(MANY, "new"), deadline=f"{ms}ms")])
        assert one.reload()
        app = start(name, one.socket, "--names", ",".join(MANY), environment=BEFORE)
        values = app.report()["managed"]
        receipt = one.receipt(app.pid, "running")
        steps = [step for step in receipt["steps"] if step["kind"] == "env"]
        # The answer to the last one that is taken back may come after Resume is sent.
        last = [step["name"] for step in steps if step["result"] in ("ok", "lost")][-1:]
        for step in steps:
            check_told(step, values[step["name"]], [BEFORE.get(step["name"])] if step["name"] in last else [])
        results = {step["name"]: step["result"] for step in steps}
        app.finish()
        if "rolled_back" in results.values():
            break
    assert receipt.outcome in ("rolled_back", "partial")
    undone = {variable for variable, result in results.items() if result == "rolled_back"}
    assert undone
    assert name not in NATIVEAOT or undone <= set(BEFORE)


# Rules, and whether anything but Resume comes out of them.
NOTHING = {
    "none": lambda rig: [],
    "another": lambda rig: [whole_rule(rig, match={"args": "--other*"})],
    "ignore": lambda rig: [rule("ignored", {"args": "--names"}, ignore=True), whole_rule(rig)],
    "observe": lambda rig: [whole_rule(rig, mode="observe")],
}


@pytest.mark.parametrize("rules", NOTHING)
@pytest.mark.parametrize("name", EVERY)
def test_nothing_but_resume(daemon, start, rig, name, rules):
    one = daemon(NOTHING[rules](rig))
    app = start(name, one.socket)
    assert told(app) == UNTOUCHED
    check_resumed_only(one.receipt(app.pid, "running"), "untouched")
    app.finish()


# Selectors that hold for a program of the host `dotnet`, and for one of its own.
SELECTORS = {
    "assembly": ({"assembly": "probe"}, {"assembly": "probe-*"}),
    "exe": ({"exe": "*/dotnet/dotnet"}, {"exe": "*/probe-*"}),
    "args": ({"args": "*/probe.dll"}, {"all": [{"args": "--wait"}, {"not": {"args": "*/probe.dll"}}]}),
    "env": ({"env": {"TEST_KIND": "host"}}, {"env": {"TEST_KIND": "own"}}),
}


@pytest.mark.parametrize("selector", SELECTORS)
def test_real_programs_are_told_apart(daemon, start, selector):
    host, own = SELECTORS[selector]
    one = daemon([rule("host", host, env={ONE: "host"}), rule("own", own, env={ONE: "own"})])
    for name, wanted in [("10", "host"), ("single-file-10", "own"), ("nativeaot-10", "own")]:
        app = start(name, one.socket, environment={"TEST_KIND": wanted})
        assert app.report()["managed"][ONE] == wanted
        assert one.receipt(app.pid, "running")["rule"] == wanted
        app.finish()


@pytest.mark.parametrize("children", ["inherit", "detach"])
@pytest.mark.parametrize("name", EVERY)
def test_children_of_managed_code_connect_or_do_not(daemon, start, name, children):
    """NativeAOT has no environment of its own, so what is set is there for every child."""
    one = daemon([rule(env={ONE: "one"}, children=children)])
    app = start(name, one.socket, "--children", "--names", f"{PORTS},COMPlus_DiagnosticPorts")
    report = app.report()
    left = {PORTS: one.socket, "COMPlus_DiagnosticPorts": None}
    wanted = left if children == "inherit" else dict.fromkeys(left, "")
    assert (report["managed"], report["child"]) == (wanted, wanted)
    assert report["native_child"] == (wanted if name in NATIVEAOT else left)
    assert one.receipt(app.pid, "running").outcome == "applied"
    app.finish()


# Failures.


@pytest.mark.parametrize("what", ["profilers", "startup_hooks"])
@pytest.mark.parametrize("name", EVERY)
def test_a_file_is_missing(daemon, start, rig, name, what):
    """It is looked for before the first command. A hook that is not there would kill the program."""
    missing = {"path": ABSENT, **({"clsid": rig.profiler_clsid} if what == "profilers" else {})}
    one = daemon([whole_rule(rig, **{what: [missing]})])
    app = start(name, one.socket)
    assert told(app) == UNTOUCHED
    receipt = one.receipt(app.pid, "running")
    assert receipt.outcome == "failed", receipt
    step = receipt.step(what[:-1].replace("startup_", ""))
    assert (step["name"], step["result"], step["attempts"]) == (ABSENT, "refused", 0)
    app.finish()


@pytest.mark.parametrize("name", CORECLR)
def test_it_is_held_until_an_operator_resumes_it(daemon, start, rig, name):
    one = daemon([whole_rule(rig, startup_hooks=[{"path": ABSENT}], on_failure="hold")])
    app = start(name, one.socket)
    held = one.receipt(app.pid, "held")
    assert (held.outcome, held["resumed_at"]) == ("failed", None)
    assert not app.lines.matches("^{")
    assert one.post(f"/v1/runtimes/{held['id']}/resume", {})["verdict"] == "done"
    assert told(app) == UNTOUCHED
    assert one.receipt(app.pid, "running").outcome == "failed"
    app.finish()


@pytest.mark.parametrize("name", EVERY)
def test_it_is_killed(daemon, start, rig, name):
    one = daemon([whole_rule(rig, startup_hooks=[{"path": ABSENT}], on_failure="kill")])
    app = start(name, one.socket)
    assert app.wait() == -signal.SIGKILL
    assert one.receipt(app.pid, "killed")["resumed_at"] is None
    # It never ran.
    assert not app.lines.matches("^{")


@pytest.mark.parametrize("name", CORECLR)
def test_a_hook_that_throws_ends_the_program(daemon, start, rig, name):
    """A runtime runs hooks only once it is resumed, so its answer says nothing about that."""
    one = daemon([whole_rule(rig, startup_hooks=[{"path": rig.hook_throws}])])
    app = start(name, one.socket)
    assert app.wait() == -signal.SIGABRT
    receipt = one.receipt(app.pid, "gone")
    assert receipt.outcome == "applied"
    assert receipt.step("hook")["proof"] == "unknown"


@pytest.mark.parametrize("name", CORECLR)
def test_a_profiler_that_cannot_load_is_left_out(daemon, start, rig, folder, name):
    """A runtime would answer that all is well; the ones after it are loaded."""
    none = folder.file("none.so", "no library")
    profilers = [
        {"clsid": rig.profiler_clsid, "path": none, "required": False},
        {"clsid": rig.profiler_notify_clsid, "path": rig.profiler_notify},
    ]
    one = daemon([whole_rule(rig, profilers=profilers)])
    app = start(name, one.socket)
    assert told(app) == {**WHOLE, "profiler": None}
    receipt = one.receipt(app.pid, "running")
    step = receipt.step("profiler", none)
    assert (receipt.outcome, step["result"], step["code"], step["attempts"]) == ("applied", "refused", "not-elf", 0)
    app.finish()
