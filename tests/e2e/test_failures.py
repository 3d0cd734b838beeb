# SPDX-License-Identifier: Apache-2.0
"""Plans that fail in the middle: what is taken back, what is never repeated, and what is said about it."""

import signal

import pytest
from harness import CLSID, rule

QUESTIONS = ["kind", "info3"]
OLD = {"OLD": "x"}


def plan(folder, **keys):
    return rule(
        env={"A": "1", "OLD": "new"},
        profilers=[{"clsid": CLSID, "path": folder.profiler()}],
        startup_hooks=[{"path": folder.hook()}],
        **keys,
    )


def told(folder, commands):
    """Commands in their short form: "profiler" for the whole of it."""
    return [
        command.replace(f" {folder / 'profiler.so'}", "").replace(f" {folder / 'Hook.dll'}", "") for command in commands
    ]


SET = ["env A=1", "env OLD=new"]
BACK = ["env OLD=x", "unset A"]
# Behaviour; what the runtime is told after the questions; the outcome; what became of A, OLD, profiler and hook.
FAULTS = {
    "first variable refused": ("refuse=set-env@1:80004005", ["env", "resume"], "rolled_back", "refused skipped skipped skipped"),
    "second variable refused": ("refuse=set-env@2:80070057", ["env A=1", "env", "unset A", "resume"], "rolled_back", "rolled_back refused skipped skipped"),
    "profiler refused": ("refuse=startup-profiler:80004005", [*SET, "profiler", *BACK, "resume"], "rolled_back", "rolled_back rolled_back refused skipped"),
    "profiler not supported": ("refuse=startup-profiler:80131515", [*SET, "profiler", *BACK, "resume"], "rolled_back", "rolled_back rolled_back refused skipped"),
    "hook refused": ("refuse=hook:80131515", [*SET, "profiler", "hook", *BACK, "resume"], "partial", "rolled_back rolled_back ok refused"),
    "rollback refused": ("refuse=startup-profiler:80004005,refuse=set-env@3:80004005", [*SET, "profiler", "env", "unset A", "resume"], "partial", "rolled_back ok refused skipped"),
    "rollback lost twice": ("refuse=startup-profiler:80004005,close-before-reply=set-env@3-4", [*SET, "profiler", "env OLD=x", "env OLD=x", "unset A", "resume"], "partial", "rolled_back lost refused skipped"),
    "variable lost once": ("close-before-reply=set-env@1", ["env A=1", *SET, "profiler", "hook", "resume"], "applied", "ok ok ok ok"),
    "variable lost for good": ("close-before-reply=set-env@1-3", ["env A=1"] * 3 + ["unset A", "resume"], "rolled_back", "rolled_back skipped skipped skipped"),
    "profiler lost": ("close-before-reply=startup-profiler", [*SET, "profiler", *BACK, "resume"], "partial", "rolled_back rolled_back lost skipped"),
    "profiler reset": ("reset=startup-profiler", [*SET, *BACK, "resume"], "partial", "rolled_back rolled_back lost skipped"),
    "hook lost": ("close-before-reply=hook", [*SET, "profiler", "hook", *BACK, "resume"], "partial", "rolled_back rolled_back ok lost"),
    "wrong magic": ("wrong-magic=startup-profiler", [*SET, "profiler", *BACK, "resume"], "partial", "rolled_back rolled_back lost skipped"),
    "wrong set": ("reply-set=hook:4", [*SET, "profiler", "hook", *BACK, "resume"], "partial", "rolled_back rolled_back ok lost"),
    "size too small": ("reply-size=hook:7", [*SET, "profiler", "hook", *BACK, "resume"], "partial", "rolled_back rolled_back ok lost"),
    "more than a reply": ("extra-bytes=startup-profiler:5", [*SET, "profiler", *BACK, "resume"], "partial", "rolled_back rolled_back lost skipped"),
    "wrong magic for a variable": ("wrong-magic=set-env@2", [*SET, "env OLD=new", "profiler", "hook", "resume"], "applied", "ok ok ok ok"),
    "Resume lost": ("close-before-reply=resume@1", [*SET, "profiler", "hook", "resume"], "applied", "ok ok ok ok"),
    "slow bytes": ("slow-bytes=1", [*SET, "profiler", "hook", "resume"], "applied", "ok ok ok ok"),
}  # fmt: skip


def check(daemon, fake, folder, fault, **defaults):
    behaviour, commands, outcome, results = fault
    one = daemon([plan(folder)], defaults=defaults)
    before = one.descriptors()
    runtime = fake(one.socket, behaviour, environment=OLD)
    report = runtime.report()
    taken = told(folder, runtime.commands())
    # Resume comes again when its answer was lost.
    assert taken[: taken.index("resume") + 1] == QUESTIONS + commands
    assert set(taken[taken.index("resume") :]) == {"resume"}
    receipt = one.receipt(runtime.pid, "running")
    assert receipt.outcome == outcome, receipt
    assert " ".join(step["result"] for step in receipt["steps"] if step["kind"] != "resume") == results
    # A variable may come twice, a profiler or a hook never.
    assert not [subject for subject in report["twice"] if "/" in subject]
    assert set(runtime.finish()) <= {"resume"}
    one.receipt(runtime.pid, "gone")
    one.has_descriptors(before)
    return one, receipt


@pytest.mark.parametrize("name", FAULTS)
def test_a_step_fails(daemon, fake, folder, name):
    check(daemon, fake, folder, FAULTS[name])


# The same, where only the end of the time for a command says that there will be no answer.
SILENCE = {
    "profiler": ("silent=startup-profiler", FAULTS["profiler lost"]),
    "hook": ("half-reply=hook", FAULTS["hook lost"]),
    "variable": ("silent=set-env@1", FAULTS["variable lost once"]),
    "variable half": ("half-reply=set-env@1:23", FAULTS["variable lost once"]),
    "left open": ("leave-open=set-env@1", FAULTS["slow bytes"]),
}


@pytest.mark.parametrize("name", SILENCE)
def test_there_is_no_answer(daemon, fake, folder, name):
    behaviour, fault = SILENCE[name]
    check(daemon, fake, folder, (behaviour, *fault[1:]), command_timeout="1s")


@pytest.mark.parametrize("question", ["0300", "info3"])
def test_a_question_is_asked_twice(daemon, fake, folder, question):
    one = daemon([plan(folder)])
    runtime = fake(one.socket, f"close-before-reply={question}@1", environment=OLD)
    commands = told(folder, runtime.commands())
    name = {"0300": "kind"}.get(question, question)
    assert commands.count(name) == 2
    assert [command for command in commands if command not in QUESTIONS] == [*SET, "profiler", "hook", "resume"]
    assert one.receipt(runtime.pid, "running").outcome == "applied"


def test_who_does_not_say_what_it_is_gets_no_profiler(daemon, fake, folder):
    one = daemon([plan(folder)])
    runtime = fake(one.socket, "close-before-reply=0300", environment=OLD)
    assert runtime.commands() == ["kind", "kind", "info3", "resume"]
    assert one.receipt(runtime.pid, "running").outcome == "failed"


POINTS = ["0300", "info3", "set-env@1", "set-env@2", "startup-profiler", "hook", "resume"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", range(len(POINTS)), ids=POINTS)
def test_the_runtime_dies(daemon, fake, folder, when, point):
    one = daemon([plan(folder)])
    before = one.descriptors()
    runtime = fake(one.socket, f"die-{when}-reply={POINTS[point]}", "start-delay=10000", environment=OLD)
    assert runtime.wait() == -signal.SIGKILL
    receipt = one.receipt(runtime.pid, "gone")
    assert receipt["ended_at"] is not None
    if point < 2:
        assert receipt.outcome == "failed"
    else:
        # Its last answer and its end may be seen in either order.
        is_complete = POINTS[point] == "resume" or (POINTS[point], when) == ("hook", "after")
        assert receipt.outcome in ({"applied", "partial"} if is_complete else {"partial"}), receipt
    one.has_descriptors(before)
    assert one.status()["runtimes"]["gone"] == 1
    assert one.status()["connections"]["open"] == 0


def test_optional_steps_may_fail(daemon, fake, folder):
    one = daemon(
        [
            rule(
                env={"A": {"value": "1", "required": False}, "B": "2"},
                profilers=[{"clsid": CLSID, "path": folder.profiler(), "required": False}],
                startup_hooks=[{"path": folder.hook(), "required": False}],
            )
        ]
    )
    runtime = fake(
        one.socket, "refuse=set-env@1:80004005,close-before-reply=startup-profiler,refuse=hook:80131515"
    )
    assert told(folder, runtime.commands()) == [*QUESTIONS, "env", "env B=2", "profiler", "hook", "resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert receipt.outcome == "applied"
    assert [step["result"] for step in receipt["steps"]] == ["refused", "ok", "lost", "refused", "ok"]
    assert runtime.report()["environment"] == {"B": "2"}


def test_it_is_held_until_an_operator_resumes_it(daemon, fake, folder):
    one = daemon([plan(folder, on_failure="hold")])
    runtime = fake(one.socket, "refuse=startup-profiler:80004005", environment=OLD)
    held = one.receipt(runtime.pid, "held")
    assert (held["state"], held.outcome, held["resumed_at"]) == ("held", "rolled_back", None)
    assert held["hold_until"] is not None
    assert one.post(f"/v1/runtimes/{held['id']}/resume", {})["verdict"] == "done"
    assert told(folder, runtime.commands()) == [*QUESTIONS, *SET, "profiler", *BACK, "resume"]
    assert one.receipt(runtime.pid, "running").outcome == "rolled_back"


def test_it_is_held_until_the_hold_ends(daemon, fake, folder):
    one = daemon([plan(folder, on_failure="hold", hold_limit="200ms")])
    runtime = fake(one.socket, "refuse=hook:80131515", environment=OLD)
    one.receipt(runtime.pid, "held")
    assert told(folder, runtime.commands()) == [*QUESTIONS, *SET, "profiler", "hook", *BACK, "resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert (receipt.outcome, receipt["why"]) == ("partial", "its hold ended")


@pytest.mark.parametrize("fault", ["refuse=startup-profiler:80004005", "close-before-reply=hook"])
def test_it_is_killed(daemon, fake, folder, fault):
    one = daemon([plan(folder, on_failure="kill")])
    before = one.descriptors()
    runtime = fake(one.socket, fault, environment=OLD)
    assert runtime.wait() == -signal.SIGKILL
    print(one.last_lines())
    assert one.receipt(runtime.pid, "killed")["state"] == "killed"
    # It never ran.
    assert not runtime.lines.count('"event":"start"')
    one.wait(rf"killed .*pid={runtime.pid} ")
    one.has_descriptors(before)


def test_many_failures_leave_nothing_behind(daemon, fake, fleet, folder):
    """Descriptors are counted here; memory is counted by the sanitizer's leak check at the end of every daemon."""
    one = daemon([plan(folder)])
    before = one.descriptors()
    for behaviour, resumes in [
        ("refuse=hook:80131515", True),
        ("close-before-reply=startup-profiler", True),
        ("wrong-magic=hook", True),
        ("die-before-reply=hook,start-delay=10000", False),
    ]:
        anomalies = () if resumes else ("died", "no_report")
        many = fleet(one.socket, 50, behaviours=[behaviour], environment=OLD)
        output = many.summary(anomalies, started=50 if resumes else 0)
        assert output["resumed"] == (50 if resumes else 0)
    one.wait("diagportd: gone ", times=200)
    one.has_descriptors(before)
    assert one.status()["runtimes"]["gone"] == 200
