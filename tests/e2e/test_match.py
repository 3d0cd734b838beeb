# SPDX-License-Identifier: Apache-2.0
"""Which rule a runtime gets, and what `explain` and the receipt say about it."""

import pytest
from harness import NOBODY, needs_root, rule


def verdicts(answer):
    return [(entry["rule"], entry["verdict"]) for entry in answer["trace"]]


@pytest.mark.parametrize("rules", [[], [rule("other", {"exe": "/no/such/*"}, env={"A": "1"})]], ids=["none", "other"])
def test_whom_no_rule_matches_gets_one_command(daemon, fake, rules):
    one = daemon(rules)
    runtime = fake(one.socket)
    assert runtime.commands() == ["resume"]
    receipt = one.receipt(runtime.pid)
    assert (receipt.outcome, receipt["rule"], receipt["why"]) == ("untouched", None, "no rule matches")
    assert verdicts(receipt) == [(entry["name"], "no") for entry in rules]
    assert runtime.finish() == []


def test_the_first_of_two_that_match_decides(daemon, fake):
    one = daemon([rule("first", {"args": "app.dll"}, env={"A": "1"}), rule("second", env={"A": "2", "B": "2"})])
    runtime = fake(one.socket, arguments=["app.dll"])
    other = fake(one.socket, arguments=["else.dll"])
    assert runtime.commands()[-2:] == ["env A=1", "resume"]
    assert other.commands()[-3:] == ["env A=2", "env B=2", "resume"]
    receipt = one.receipt(runtime.pid)
    assert verdicts(receipt) == [("first", "yes"), ("second", "not_asked")]
    explained = one.post("/v1/explain", {"pid": runtime.pid})
    assert (explained["rule"], explained["action"], explained["id"]) == ("first", "apply", receipt["id"])
    assert verdicts(explained) == [("first", "yes"), ("second", "not_asked")]
    explained = one.post("/v1/explain", {"pid": other.pid})
    assert explained["rule"] == "second"
    assert explained["trace"][0]["why"] == 'args "else.dll" is none of "app.dll"'


@pytest.mark.parametrize(
    ("keys", "commands", "action"),
    [
        ({"ignore": True}, ["resume"], "ignore"),
        ({"mode": "observe", "env": {"A": "1"}}, ["resume"], "observe"),
        ({"children": "detach", "mode": "observe"}, ["resume"], "observe"),
    ],
)
def test_rules_that_apply_nothing(daemon, fake, keys, commands, action):
    one = daemon([rule(**keys), rule("never", {"exe": "/never"}, env={"A": "1"})])
    runtime = fake(one.socket)
    assert runtime.commands() == commands
    receipt = one.receipt(runtime.pid)
    assert (receipt.outcome, receipt["rule"]) == ("untouched", "all")
    explained = one.post("/v1/explain", {"pid": runtime.pid})
    assert explained["action"] == action
    # What is only observed is shown all the same.
    planned = {"env": ["A"], "children": ["DOTNET_DiagnosticPorts", "COMPlus_DiagnosticPorts"]}
    names = [name for key in keys for name in planned.get(key, [])]
    assert [step["name"] for step in explained["steps"]] == names
    assert {(step["name"], step["result"]) for step in receipt["steps"] if step["kind"] == "env"} == {
        (name, "skipped") for name in names
    }


# A daemon without rights cannot read the programs of root's processes, nor their environments.
UNKNOWN = {"exe": "/no/such/*"}


def unknown(daemon, fake, folder, first, second):
    """A runtime of which the first rule's selector is unknown: what it was told, and its receipt."""
    one = daemon([first, second], user=NOBODY)
    runtime = fake(one.socket)
    commands = runtime.commands()
    # Nothing shows the daemon that it runs, so that one Resume may be followed by more.
    while commands[-2:] == ["resume", "resume"]:
        commands.pop()
    receipt = one.receipt(runtime.pid)
    explained = one.post("/v1/explain", {"pid": runtime.pid})
    assert receipt["exe"] is None and receipt["attributes"]["exe"]["state"] == "unknown"
    assert "could not be read" in receipt["trace"][0]["why"]
    assert verdicts(explained) == verdicts(receipt)
    assert explained["rule"] == receipt["rule"]
    assert runtime.finish() == []
    return commands, receipt, explained


def with_hook(folder, required=True):
    return rule("hook", startup_hooks=[{"path": folder.hook(), "required": required}], env={"A": "1"})


@needs_root
def test_unknown_stops_hooks(daemon, fake, folder):
    commands, receipt, _ = unknown(daemon, fake, folder, rule("first", UNKNOWN, env={"B": "1"}), with_hook(folder))
    assert commands == ["resume"]
    assert (receipt.outcome, receipt["rule"]) == ("untouched", None)
    assert verdicts(receipt) == [("first", "unknown"), ("hook", "barred")]


@needs_root
def test_unknown_does_not_stop_variables(daemon, fake, folder):
    commands, receipt, _ = unknown(
        daemon, fake, folder, rule("first", UNKNOWN, env={"B": "1"}), rule("second", env={"A": "1"})
    )
    # What A was before, only the runtime can tell.
    assert commands == ["kind", "info3", "environment", "env A=1", "resume"]
    assert (receipt.outcome, receipt["rule"]) == ("applied", "second")
    assert verdicts(receipt) == [("first", "unknown"), ("second", "yes")]


@needs_root
def test_unknown_and_next_goes_on(daemon, fake, folder):
    """The rule with the hook matches; but nothing says that its port suspends, so the hook is refused."""
    first = rule("first", UNKNOWN, match_unknown="next", env={"B": "1"})
    commands, receipt, _ = unknown(daemon, fake, folder, first, with_hook(folder, required=False))
    assert commands[-2:] == ["env A=1", "resume"]
    assert (receipt.outcome, receipt["rule"]) == ("applied", "hook")
    assert verdicts(receipt) == [("first", "unknown"), ("hook", "yes")]
    assert receipt.step("hook")["result"] == "refused"


@needs_root
def test_unknown_next_and_a_required_hook(daemon, fake, folder):
    first = rule("first", UNKNOWN, match_unknown="next", env={"B": "1"})
    commands, receipt, _ = unknown(daemon, fake, folder, first, with_hook(folder))
    assert commands == ["resume"]
    assert (receipt.outcome, receipt["rule"]) == ("failed", "hook")


@needs_root
def test_an_unknown_ignore_rule_ignores(daemon, fake, folder):
    first = rule("first", UNKNOWN, ignore=True)
    commands, receipt, explained = unknown(daemon, fake, folder, first, rule("second", env={"A": "1"}))
    assert commands == ["resume"]
    assert (receipt.outcome, receipt["rule"]) == ("untouched", "first")
    assert (explained["action"], explained["by_unknown"]) == ("ignore", True)


@needs_root
def test_an_unknown_ignore_rule_that_says_next_is_passed_over(daemon, fake, folder):
    first = rule("first", UNKNOWN, ignore=True, match_unknown="next")
    commands, receipt, explained = unknown(daemon, fake, folder, first, rule("second", env={"A": "1"}))
    assert commands[-2:] == ["env A=1", "resume"]
    assert (receipt.outcome, receipt["rule"]) == ("applied", "second")
    assert (explained["action"], explained["by_unknown"]) == ("apply", False)
