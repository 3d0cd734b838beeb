# SPDX-License-Identifier: Apache-2.0
"""A file that is not the same any more when the process that is to load it is resumed: that is said, and no more."""

import os
import re
import shutil
import signal

import pytest
from apps import CORECLR, told
from harness import CLSID, rule

#: What each kind of step has besides the variables, and which command is the last one of it.
POINTS = {"profiler": "startup-profiler", "primer": "startup-profiler@2", "hook": "hook"}


def plan(folder, kind, **keys):
    """A plan whose last step is of that kind, and the path of its file."""
    if kind == "hook":
        path = folder.hook()
        return rule(env={"A": "1"}, startup_hooks=[{"path": path}], **keys), path
    path = folder.profiler()
    profilers = [{"clsid": CLSID, "path": path}]
    if kind == "profiler":
        return rule(env={"A": "1"}, profilers=profilers, **keys), path
    primer = folder.profiler("primer.so", "notify")
    return rule(env={"A": "1"}, profilers=profilers, primer="always", primer_path=primer, **keys), primer


def put_anew(path):
    """As packages are installed: another file of the same content takes its name."""
    shutil.copy(path, f"{path}.new")
    os.rename(f"{path}.new", path)


def write_again(path):
    """In place."""
    with open(path, "r+b") as file:
        file.write(file.read(16))


WAYS = {"put-anew": put_anew, "written": write_again, "linked": lambda path: os.link(path, f"{path}.too")}


def held_before_its_answer(daemon, fake, folder, kind, **keys):
    """A runtime that stands between its last step and the answer to it."""
    the_rule, path = plan(folder, kind, **keys)
    one = daemon([the_rule])
    runtime = fake(one.socket, f"stop-before-reply={POINTS[kind]}")
    runtime.stands()
    return one, runtime, path


def codes(receipt):
    return {step["kind"]: step["code"] for step in receipt["steps"] if "code" in step}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", POINTS)
def test_a_file_that_is_replaced_is_said_to_be(daemon, fake, folder, kind, way):
    one, runtime, path = held_before_its_answer(daemon, fake, folder, kind)
    WAYS[way](path)
    runtime.thaw()
    assert runtime.commands()[-1] == "resume"
    line = one.wait(rf"diagportd: step {kind} ok .*name=\"{re.escape(path)}\".*: was replaced or changed after it was checked")
    assert f"pid={runtime.pid} " in line.string
    receipt = one.receipt(runtime.pid, "running")
    step = receipt.step(kind)
    assert (receipt.outcome, step["result"], step["code"], step["attempts"]) == ("applied", "ok", "replaced", 1)
    assert step["why"] == "was replaced or changed after it was checked" and step["remedy"]
    assert {code for other, code in codes(receipt).items() if other != kind} <= {None}
    assert one.metric(f'diagport_steps_total{{kind="{kind}",result="ok"}}') == 1
    assert runtime.finish() == []


@pytest.mark.parametrize("kind", POINTS)
def test_a_file_that_is_the_same_is_no_news(daemon, fake, folder, kind):
    """One that was only read, too."""
    one, runtime, path = held_before_its_answer(daemon, fake, folder, kind)
    with open(path, "rb") as file:
        file.read()
    runtime.thaw()
    assert runtime.commands()[-1] == "resume"
    assert set(codes(one.receipt(runtime.pid, "running")).values()) == {None}
    assert runtime.finish() == []


def test_a_file_that_is_removed_is_said_to_be(daemon, fake, folder):
    """A hook that is not there ends the process, and why stays to be read."""
    one, runtime, path = held_before_its_answer(daemon, fake, folder, "hook")
    os.unlink(path)
    runtime.thaw()
    assert runtime.wait() == -signal.SIGABRT
    receipt = one.receipt(runtime.pid, "gone")
    assert (receipt.outcome, receipt.step("hook")["result"], codes(receipt)["hook"]) == ("applied", "ok", "removed")


@pytest.mark.parametrize("on_failure", ["hold", "kill"])
def test_it_is_no_failure(daemon, fake, folder, on_failure):
    """Whoever installs an agent anew must not take programs down with it."""
    one, runtime, path = held_before_its_answer(daemon, fake, folder, "profiler", on_failure=on_failure)
    put_anew(path)
    runtime.thaw()
    assert runtime.commands()[-1] == "resume"
    receipt = one.receipt(runtime.pid, "running")
    assert (receipt.outcome, codes(receipt)["profiler"]) == ("applied", "replaced")
    assert runtime.finish() == []


def test_it_is_looked_at_when_a_hold_ends(daemon, fake, folder):
    the_rule, path = plan(folder, "hook")
    one = daemon([the_rule])
    runtime = fake(one.socket, "stop-before-reply=set-env")
    runtime.stands()
    assert one.post(f"/v1/runtimes/pid:{runtime.pid}/hold", {})["verdict"] == "done"
    runtime.thaw()
    assert codes(one.receipt(runtime.pid, "held"))["hook"] is None
    put_anew(path)
    assert one.post(f"/v1/runtimes/pid:{runtime.pid}/resume", {})["verdict"] == "done"
    assert runtime.commands()[-1] == "resume"
    assert codes(one.receipt(runtime.pid, "running"))["hook"] == "replaced"
    assert runtime.finish() == []


def test_what_another_daemon_has_checked_is_no_news(daemon, fake, folder):
    """Nobody wrote down what it was."""
    one, runtime, path = held_before_its_answer(daemon, fake, folder, "hook", on_lost="skip")
    one.kill()
    put_anew(path)
    one.start()
    runtime.thaw()
    assert runtime.commands()[-1] == "resume"
    receipt = one.receipt(runtime.pid, "running")
    assert (receipt.step("hook")["attempts"], codes(receipt)["hook"]) == (1, None)
    assert runtime.finish() == []


# Real programs. So many variables come before that there is time to stop one in the middle.

MANY = {f"DIAGPORT_TEST_MANY_{n}": "new" for n in range(1000)}


def stopped_in_its_plan(daemon, start, name, the_rule):
    one = daemon([{**the_rule, "env": MANY}])
    app = start(name, one.socket)
    one.wait(rf"diagportd: step env ok .*\bpid={app.pid} ")
    app.freeze()
    return one, app


@pytest.mark.dotnet
@pytest.mark.parametrize("name", CORECLR)
def test_a_real_program_loads_the_new_profiler_and_it_is_said(daemon, start, rig, folder, name):
    path = str(folder / "profiler.so")
    shutil.copy(rig.profiler, path)
    one, app = stopped_in_its_plan(
        daemon, start, name, rule(profilers=[{"clsid": rig.profiler_clsid, "path": path}])
    )
    put_anew(path)
    app.thaw()
    assert told(app)["profiler"].startswith("1:")
    receipt = one.receipt(app.pid, "running")
    step = receipt.step("profiler")
    assert (receipt.outcome, step["result"], step["code"], step["attempts"] > 0) == ("applied", "ok", "replaced", True)
    app.finish()


@pytest.mark.dotnet
@pytest.mark.parametrize("name", CORECLR)
def test_a_real_program_runs_the_new_hook_and_it_is_said(daemon, start, rig, folder, name):
    path = str(folder / "Hook.dll")
    shutil.copy(rig.hook_a, path)
    one, app = stopped_in_its_plan(daemon, start, name, rule(startup_hooks=[{"path": path}]))
    shutil.copy(rig.hook_b, f"{path}.new")
    os.rename(f"{path}.new", path)
    app.thaw()
    assert told(app)["hooks"] == ["HookB"]
    receipt = one.receipt(app.pid, "running")
    step = receipt.step("hook")
    assert (receipt.outcome, step["result"], step["code"], step["attempts"]) == ("applied", "ok", "replaced", 1)
    app.finish()
