# SPDX-License-Identifier: Apache-2.0
"""What a process has in its own environment is seen before anything is sent that it would make vain, or twice."""

import pytest
from harness import CLSID, rule

OWN = {"CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": "{00000000-0000-0000-0000-000000000001}"}
LEFT_OVERS = {"CORECLR_PROFILER": OWN["CORECLR_PROFILER"], "CORECLR_PROFILER_PATH": "/nowhere/other.so"}
OFF = {"DOTNET_EnableDiagnostics_Profiler": "0"}


def plan(folder, **keys):
    return rule(env={"A": "1"}, profilers=[{"clsid": CLSID, "path": folder.profiler()}], **keys)


def commands(runtime):
    """Without questions."""
    return [command for command in runtime.commands() if command not in ("kind", "info3")]


def result_of_profiler(one, runtime):
    step = one.receipt(runtime.pid, "running").step("profiler")
    return step["result"], step["why"]


def test_another_profiler_is_left_alone(daemon, fake, folder):
    """By default: the rest of the plan is applied, and the outcome says that something is missing."""
    one = daemon([plan(folder)])
    runtime = fake(one.socket, environment=OWN)
    assert commands(runtime) == ["env A=1", "resume"]
    result, why = result_of_profiler(one, runtime)
    assert result == "skipped" and "another profiler" in why
    assert one.receipt(runtime.pid, "running").outcome == "partial"


def test_a_rule_of_which_nothing_is_left(daemon, fake, folder):
    one = daemon([rule(profilers=[{"clsid": CLSID, "path": folder.profiler()}])])
    runtime = fake(one.socket, environment=OWN)
    assert commands(runtime) == ["resume"]
    assert one.receipt(runtime.pid, "running").outcome == "untouched"


def test_another_profiler_is_replaced(daemon, fake, folder):
    one = daemon([plan(folder, on_conflict="replace")])
    runtime = fake(one.socket, environment=OWN)
    assert commands(runtime) == ["env A=1", "env CORECLR_ENABLE_PROFILING=0", f"profiler {folder.profiler()}", "resume"]
    assert one.receipt(runtime.pid, "running").outcome == "applied"
    # And nothing is sent to whom has none.
    other = fake(one.socket, environment=LEFT_OVERS)
    assert commands(other) == ["env A=1", f"profiler {folder.profiler()}", "resume"]
    assert one.receipt(other.pid, "running").outcome == "applied"


def test_another_profiler_is_a_failure(daemon, fake, folder):
    one = daemon([plan(folder, on_conflict="fail")])
    runtime = fake(one.socket, environment=OWN)
    assert commands(runtime) == ["resume"]
    result, why = result_of_profiler(one, runtime)
    assert result == "refused" and "another profiler" in why
    assert one.receipt(runtime.pid, "running").outcome == "failed"


@pytest.mark.parametrize("on_conflict", ["skip", "replace", "fail"])
def test_profilers_are_switched_off(daemon, fake, folder, on_conflict):
    one = daemon([plan(folder, on_conflict=on_conflict)])
    runtime = fake(one.socket, environment={**OWN, **OFF})
    assert commands(runtime) == ["resume"]
    result, why = result_of_profiler(one, runtime)
    assert result == "refused" and "DOTNET_EnableDiagnostics_Profiler=0" in why


def test_a_hook_that_it_has_already(daemon, fake, folder):
    one = daemon([rule(startup_hooks=[{"path": folder.hook()}, {"path": folder.hook("Other.dll")}])])
    runtime = fake(one.socket, environment={"DOTNET_STARTUP_HOOKS": f"{folder.hook('Third.dll')}:{folder.hook()}"})
    assert commands(runtime) == [f"hook {folder.hook('Other.dll')}", "resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert [step["result"] for step in receipt["steps"]] == ["skipped", "ok", "ok"]
    # What was wished is so.
    assert receipt.outcome == "applied"


def test_what_was_left_out_stays_so_over_a_restart(daemon, fake, folder):
    """Of another daemon's plan, too, the profiler that was left out is no failure."""
    one = daemon([plan(folder, startup_hooks=[{"path": folder.hook()}])])
    runtime = fake(one.socket, "stop-before-reply=set-env@1", environment=OWN)
    runtime.stands()
    one.kill()
    one.start()
    runtime.thaw()
    assert commands(runtime) == ["env A=1", "env A=1", f"hook {folder.hook()}", "resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert [step["result"] for step in receipt["steps"]] == ["ok", "skipped", "ok", "ok"]
    assert receipt.outcome == "partial"
