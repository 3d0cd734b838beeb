# SPDX-License-Identifier: Apache-2.0
"""Runtimes with several ports: every one of ours is resumed after the plan, and none hangs."""

import contextlib
import os

import pytest
from harness import listen, rule
from others import Elsewhere, Tool

PLAN = [rule(env={"A": "1"})]
NO_PLAN = []


def resumes(runtime):
    """How many Resumes each of its ports got."""
    return [port["resumes"] for port in runtime.report()["ports"]]


def check_applied_once(runtime, is_planned):
    report = runtime.report()
    assert report["twice"] == []
    assert report["environment"] == ({"A": "1"} if is_planned else {})
    commands = runtime.commands()
    plan = [command for command in commands if command == "env A=1"]
    assert plan == (["env A=1"] if is_planned else [])
    # Nothing but Resume once the first of them is out.
    assert set(commands[commands.index("resume") :]) == {"resume"}


@pytest.mark.parametrize("rules", [PLAN, NO_PLAN], ids=["matched", "unmatched"])
@pytest.mark.parametrize("picture", ["honest", "bare"])
def test_two_listeners(daemon, fake, folder, rules, picture):
    one = daemon(rules, listen=[listen(folder), listen(folder, "second")])
    runtime = fake(f"{one.socket};{folder / 'second.sock'}", f"picture={picture}")
    check_applied_once(runtime, bool(rules))
    assert min(resumes(runtime)) >= 1
    assert one.receipt(runtime.pid, "running").outcome == ("applied" if rules else "untouched")
    assert set(runtime.finish()) <= {"resume"}


@pytest.mark.parametrize("rules", [PLAN, NO_PLAN], ids=["matched", "unmatched"])
@pytest.mark.parametrize("picture", ["honest", "bare"])
@pytest.mark.parametrize("n", [2, 3])
def test_the_same_path_several_times(daemon, fake, rules, picture, n):
    one = daemon(rules)
    runtime = fake(";".join([one.socket] * n), f"picture={picture}")
    check_applied_once(runtime, bool(rules))
    assert min(resumes(runtime)) >= 1
    assert one.receipt(runtime.pid, "running").outcome == ("applied" if rules else "untouched")
    assert set(runtime.finish()) <= {"resume"}


@pytest.mark.parametrize("picture", ["honest", "bare"])
def test_the_same_path_twice_after_a_restart(daemon, fake, picture):
    """One of two Resumes is out when the daemon dies; the next one knows neither which nor how many."""
    one = daemon(PLAN)
    # The second Resume is not read before the daemon is gone.
    runtime = fake(f"{one.socket};{one.socket}", f"picture={picture}", "stop-after-reply=resume@1")
    one.wait(rf"step resume ok .*pid={runtime.pid} ")
    runtime.stands()
    one.kill()
    one.start()
    runtime.thaw()
    check_applied_once(runtime, True)
    assert min(resumes(runtime)) >= 1
    assert one.receipt(runtime.pid, "running").outcome == "late"


@pytest.mark.parametrize("n", [2, 3])
def test_the_same_path_several_times_for_many(daemon, fleet, n):
    """What the next arrival is, the second port or the first one again, differs from one to the other."""
    one = daemon(PLAN)
    many = fleet(";".join([one.socket] * n), 100, "--together", "--expect", "SetEnvironmentVariable=1")
    summary = many.summary()
    assert summary["resumed"] == 100
    assert summary["commands"]["ResumeRuntime"] >= 100 * n


@pytest.mark.parametrize("rules", [PLAN, NO_PLAN], ids=["matched", "unmatched"])
def test_a_port_of_somebody_else_holds_it(daemon, fake, folder, rules):
    one = daemon(rules)
    with contextlib.closing(Elsewhere(folder / "other.sock")) as other:
        runtime = fake(f"{one.socket};{folder / 'other.sock'}")
        other.accept()
        one.wait(rf"step resume ok .*pid={runtime.pid} ")
        held = one.until(runtime.pid, lambda receipt: receipt["blocked"])
        assert (held["state"], held["blocked"]) == ("resuming", "other_port")
        assert held["blocked_ports"] == [str(folder / "other.sock")]
        assert held["ports"] == {"suspending": 2, "other": [str(folder / "other.sock")]}
        assert held.outcome == ("applied" if rules else "untouched")
        other.resume()
        check_applied_once(runtime, bool(rules))
        assert one.receipt(runtime.pid, "running")["blocked"] is None


def test_its_own_default_port_holds_it(daemon, fake, folder):
    one = daemon(PLAN)
    path = str(folder / "default.sock")
    runtime = fake(one.socket, f"default-port={path}", environment={"DOTNET_DefaultDiagnosticPortSuspend": "1"})
    one.wait(rf"step resume ok .*pid={runtime.pid} ")
    held = one.until(runtime.pid, lambda receipt: receipt["blocked"])
    assert (held["state"], held["blocked"]) == ("resuming", "other_port")
    with contextlib.closing(Tool(path)) as tool:
        tool.resume()
        check_applied_once(runtime, True)
    one.receipt(runtime.pid, "running")


def test_more_ports_than_any_runtime_has(daemon, fake):
    """Past the places for connections each still gets its Resume."""
    one = daemon(NO_PLAN)
    runtime = fake(";".join([one.socket] * 40))
    assert min(resumes(runtime)) >= 1
    assert one.receipt(runtime.pid, "running").outcome == "untouched"
    assert one.log.count("peer over_limit .*more connections than any runtime has ports") >= 1


def test_descriptors_come_back(daemon, fake, folder):
    one = daemon(PLAN, listen=[listen(folder), listen(folder, "second")])
    before = one.descriptors()
    for _ in range(5):
        runtime = fake(f"{one.socket};{folder / 'second.sock'};{one.socket}")
        runtime.report()
        assert runtime.end() == 0
        one.receipt(runtime.pid, "gone")
    one.has_descriptors(before)
    assert os.path.exists(folder / "second.sock")
