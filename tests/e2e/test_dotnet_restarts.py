# SPDX-License-Identifier: Apache-2.0
"""Daemons that go and come while real programs wait or run: each runs in the end, and nothing is applied twice."""

import os
import signal

import pytest
from apps import CORECLR, EVERY, NATIVEAOT, ONE, ONLY_VARIABLES, UNTOUCHED, WHOLE, check_resumed_only, told, whole_rule

pytestmark = pytest.mark.dotnet

ABSENT = [{"path": "/nowhere/Absent.dll"}]


def went(one, how):
    one.stop() if how == "stop" else one.kill()
    one.start()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_programs_that_run_are_only_resumed(daemon, start, rig, how):
    one = daemon([whole_rule(rig, required=False)])
    apps = {name: start(name, one.socket) for name in EVERY}
    for name, app in apps.items():
        assert told(app) == (ONLY_VARIABLES if name in NATIVEAOT else WHOLE)
        one.receipt(app.pid, "running")
    for _ in range(2):
        went(one, how)
        for app in apps.values():
            receipt = one.receipt(app.pid, "running")
            check_resumed_only(receipt, "late")
            assert receipt["why"] == "it was resumed before the daemon was started anew"
    for app in apps.values():
        # A hook that came now would run at once, and a program that fails in one would not end well.
        app.finish()


def held_after_its_plan(one, start, name):
    """An app with all of its plan and no Resume: an operator asks for that in time, at the latest for a later app."""
    for _ in range(10):
        app = start(name, one.socket)
        one.wait(rf"step env ok .*pid={app.pid} ")
        status, _ = one.request("POST", f"/v1/runtimes/pid:{app.pid}/hold", "{}")
        if status == 200:
            return app
        app.finish()
    raise AssertionError("every plan was over first")


@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("name", CORECLR)
def test_a_plan_that_is_there_does_not_come_again(daemon, start, rig, name, how):
    """It would show: hooks would run twice, and the notification profiler counts."""
    whole = whole_rule(rig)
    whole["env"] = {**{f"DIAGPORT_TEST_MANY_{n}": "x" for n in range(1000)}, **whole["env"]}
    one = daemon([whole], on_stop="keep")
    app = held_after_its_plan(one, start, name)
    assert one.receipt(app.pid, "held").outcome == "applied"
    went(one, how)
    # It is held by the next one too, and has had every step.
    assert one.receipt(app.pid, "held").outcome == "applied"
    one.post(f"/v1/runtimes/pid:{app.pid}/resume", {})
    assert told(app) == WHOLE
    assert one.receipt(app.pid, "running").outcome == "applied"
    app.finish()


def check_half_told(app, receipt):
    """Of an app whose daemon may have died in the middle of its plan: nothing is there twice."""
    report = told(app)
    said = report, receipt.outcome, receipt.results()
    assert report["managed"][ONE] in ("one", None), said
    assert report["hooks"] in ([], WHOLE["hooks"]), said
    # What cannot be taken back stays without the variables, which can. Late is who was resumed by
    # an earlier daemon, whose plan may have been partial.
    stayed = ["1:-:-"] if receipt.outcome in ("partial", "late") else []
    assert report["profiler"] in (None, WHOLE["profiler"], *stayed), said
    assert report["profiler_notify"] in (None, WHOLE["profiler_notify"], *stayed), said
    if receipt.outcome == "applied":
        assert report == WHOLE, said
    if report["hooks"] and receipt.outcome not in ("partial", "late"):
        # They are sent last, so all else is there.
        assert report == WHOLE, said


@pytest.mark.parametrize("step", ["env", "profiler", "hook", "resume"])
def test_it_is_killed_in_the_middle_of_ten_plans(daemon, start, rig, step):
    """At the first such step of any of them, so that the others are before it, or not much behind."""
    one = daemon([whole_rule(rig)])
    apps = [start(CORECLR[n % len(CORECLR)], one.socket) for n in range(10)]
    one.wait(rf"step {step} ok ")
    one.kill()
    one.start()
    for app in apps:
        receipt = one.receipt(app.pid, "running")
        assert receipt.outcome in ("applied", "partial", "late"), receipt
        check_half_told(app, receipt)
    for app in apps:
        app.finish()


def test_it_is_killed_again_and_again(daemon, start, rig):
    """Whatever each daemon gets to do, no two do the same."""
    one = daemon([whole_rule(rig)])
    apps = [start(CORECLR[n % len(CORECLR)], one.socket) for n in range(10)]
    for times in (1, 5, 10):
        one.wait(r"step \w+ ok ", times=times)
        one.kill()
        one.start()
    for app in apps:
        check_half_told(app, one.receipt(app.pid, "running"))
        app.finish()


@pytest.mark.parametrize("on_stop", ["keep", "resume"])
def test_it_is_stopped_in_the_middle_of_ten_plans(daemon, start, rig, on_stop):
    one = daemon([whole_rule(rig)], on_stop=on_stop)
    apps = [start(CORECLR[n % len(CORECLR)], one.socket) for n in range(10)]
    one.wait("step env ok ")
    one.stop()
    one.start()
    for app in apps:
        check_half_told(app, one.receipt(app.pid, "running"))
        app.finish()


@pytest.mark.parametrize("name", EVERY)
def test_a_hold_is_over_with_its_daemon_or_is_not(daemon, start, rig, name):
    """`keep` leaves it waiting for the next daemon, whose policy counts; `resume` resumes it before the end."""
    one = daemon([whole_rule(rig, startup_hooks=ABSENT, on_failure="hold")], on_stop="keep")
    app = start(name, one.socket)
    one.receipt(app.pid, "held")
    one.stop()
    assert not app.lines.matches("^{")
    one.policy([whole_rule(rig, startup_hooks=ABSENT, on_failure="hold")], on_stop="resume")
    one.start()
    one.receipt(app.pid, "held")
    assert not app.lines.matches("^{")
    one.stop()
    assert told(app) == UNTOUCHED
    app.finish()


@pytest.mark.parametrize("name", EVERY)
def test_who_stands_is_shown_and_waited_for(daemon, start, rig, name):
    """Its Resume is written, and read when it goes on."""
    one = daemon([whole_rule(rig, startup_hooks=ABSENT, on_failure="hold")])
    app = start(name, one.socket)
    held = one.receipt(app.pid, "held")
    app.freeze()
    one.post(f"/v1/runtimes/{held['id']}/resume", {})
    seen = one.until(app.pid, lambda receipt: receipt["blocked"])
    assert (seen["state"], seen["blocked"]) == ("resuming", "stopped")
    app.thaw()
    assert told(app) == UNTOUCHED
    assert one.receipt(app.pid, "running")["blocked"] is None
    app.finish()


def test_its_end_is_seen(daemon, start, rig):
    """By a signal while it is held, and by its own will."""
    one = daemon([whole_rule(rig, startup_hooks=ABSENT, on_failure="hold")])
    before = one.descriptors()
    apps = [start(name, one.socket) for name in EVERY]
    for app in apps:
        one.receipt(app.pid, "held")
        os.kill(app.pid, signal.SIGKILL)
        assert app.wait() == -signal.SIGKILL
        assert one.receipt(app.pid, "gone")["resumed_at"] is None
    one.has_descriptors(before)
