# SPDX-License-Identifier: Apache-2.0
"""Whole plans, for every kind and version of runtime that can be played."""

import pytest
from harness import CLSID, OTHER_CLSID, PRIMER_CLSID, rule

# Kind and version; whether it has hooks and profilers, and by what questions it is known.
RUNTIMES = [
    ("coreclr", "5", (), ["kind", "info3", "info2", "info1"]),
    ("coreclr", "6", ("profiler",), ["kind", "info3", "info2"]),
    ("coreclr", "7", ("profiler",), ["kind", "info3", "info2"]),
    ("coreclr", "8", ("profiler", "hook"), ["kind", "info3"]),
    ("coreclr", "9", ("profiler", "hook"), ["kind", "info3"]),
    ("coreclr", "10", ("profiler", "hook"), ["kind", "info3"]),
    ("coreclr", "11", ("profiler", "hook"), ["kind", "info3"]),
    ("nativeaot", "8", (), ["kind", "info3"]),
    ("nativeaot", "9", (), ["kind", "info3"]),
    ("nativeaot", "10", (), ["kind", "info3"]),
    ("nativeaot", "11", (), ["kind", "info3"]),
]
OLD = {"OLD": "x", "GONE": "y"}


def ids(value):
    return value if isinstance(value, str) else ""


def whole_rule(folder, required):
    """Everything that a rule can ask for; what only CoreCLR of a late version does is `required` or not."""
    return rule(
        env={"A": "1", "OLD": "new", "GONE": {"value": None, "required": required}},
        profilers=[{"clsid": CLSID, "path": folder.profiler(), "required": required}],
        startup_hooks=[
            {"path": folder.hook("One.dll"), "required": required},
            {"path": folder.hook("Two.dll"), "required": required},
        ],
    )


@pytest.mark.parametrize(("kind", "version", "abilities", "questions"), RUNTIMES, ids=ids)
def test_what_can_be_done_is_done(daemon, fake, folder, kind, version, abilities, questions):
    one = daemon([whole_rule(folder, required=False)])
    runtime = fake(one.socket, f"kind={kind},version={version}", environment=OLD)
    wanted = {
        "unset": "unset GONE",
        "profiler": f"profiler {folder / 'profiler.so'}",
        "hook": f"hook {folder / 'One.dll'}:{folder / 'Two.dll'}",
    }
    can_unset = kind == "coreclr" and version != "5"
    variables = [] if (kind, version) == ("coreclr", "5") else ["env A=1", "env OLD=new"]
    assert runtime.commands() == [
        *questions,
        *variables,
        *(["unset GONE"] if can_unset else []),
        *(wanted[ability] for ability in abilities),
        "resume",
    ]
    receipt = one.receipt(runtime.pid)
    results = receipt.results()
    assert results["env", "GONE"] == ("ok" if can_unset else "refused")
    assert results["profiler", str(folder / "profiler.so")] == ("ok" if "profiler" in abilities else "refused")
    assert results["hook", str(folder / "Two.dll")] == ("ok" if "hook" in abilities else "refused")
    assert results["resume", None] == "ok"
    # .NET 5 knows no command for variables, and they are required.
    assert receipt.outcome == ("failed" if not variables else "applied"), receipt
    assert runtime.finish() == []


NAMES, LIBRARIES = "DIAGPORT_PRIMER_NAMES", "DIAGPORT_PRIMER_PROBE"


def test_the_primer_comes_behind_all_that_it_loads_before(daemon, fake, folder):
    profilers = [
        {"clsid": CLSID, "path": folder.profiler("a.so"), "primer": "auto"},
        {"clsid": OTHER_CLSID, "path": folder.profiler("b.so"), "primer": "never"},
    ]
    one = daemon([rule(env={"A": "1", "OLD": None}, profilers=profilers, primer_path=folder.profiler("primer.so"))])
    runtime = fake(one.socket, "kind=coreclr,version=10", environment=OLD)
    told = [command for command in runtime.commands() if not command.startswith(("kind", "info"))]
    assert told == [
        "env A=1",
        "unset OLD",
        f"env {NAMES}=A\nOLD",
        f"env {LIBRARIES}={folder / 'a.so'}",
        f"profiler {folder / 'b.so'}",
        f"profiler {folder / 'a.so'}",
        f"profiler {folder / 'primer.so'}",
        "resume",
    ]
    receipt = one.receipt(runtime.pid)
    assert receipt.outcome == "applied"
    assert receipt.step("primer")["clsid"] == PRIMER_CLSID.strip("{}")
    assert runtime.finish() == []


@pytest.mark.parametrize("primer", ["auto", "always"])
def test_a_primer_that_is_missing_is_said_to_be(daemon, fake, folder, primer):
    profilers = [{"clsid": CLSID, "path": folder.profiler(), "primer": primer}]
    one = daemon([rule(env={"A": "1"}, profilers=profilers, primer_path="/nowhere/primer.so")])
    runtime = fake(one.socket, "kind=coreclr,version=10")
    told = [command for command in runtime.commands() if not command.startswith(("kind", "info"))]
    receipt = one.receipt(runtime.pid)
    assert receipt.step("primer")["result"] == "refused"
    assert receipt.step("primer")["why"] == "does not exist as the process sees it"
    if primer == "auto":
        assert told == ["env A=1", f"profiler {folder / 'profiler.so'}", "resume"]
        assert (receipt.outcome, receipt.step("profiler")["result"]) == ("applied", "ok")
    else:
        assert told == ["resume"]
        assert (receipt.outcome, receipt.step("profiler")["result"]) == ("failed", "refused")
    assert "primer" in receipt.step("profiler")["why"]
    one.wait(r"step primer refused.*/nowhere/primer\.so")
    assert runtime.finish() == []


@pytest.mark.parametrize(("kind", "version", "abilities", "questions"), RUNTIMES, ids=ids)
def test_what_is_required_and_cannot_be_done_is_not_begun(daemon, fake, folder, kind, version, abilities, questions):
    one = daemon([whole_rule(folder, required=True)])
    runtime = fake(one.socket, f"kind={kind},version={version}", environment=OLD)
    commands = runtime.commands()
    if set(abilities) == {"profiler", "hook"}:
        assert commands[-1] == "resume" and len(commands) == len(questions) + 6
        assert one.receipt(runtime.pid).outcome == "applied"
    else:
        assert commands == [*questions, "resume"]
        assert one.receipt(runtime.pid).outcome == "failed"
    assert runtime.finish() == []


def test_variables_alone_that_were_there_need_no_question(daemon, fake):
    one = daemon([rule(env={"OLD": "new"})])
    runtime = fake(one.socket, environment=OLD)
    assert runtime.commands() == ["env OLD=new", "resume"]
    assert one.receipt(runtime.pid).outcome == "applied"


@pytest.mark.parametrize("version", ["8", "9", "10", "11"])
def test_a_rollback_never_unsets_in_nativeaot(daemon, fake, version):
    """A variable that was not there stays, since taking it away would kill the program."""
    one = daemon([rule(env={"OLD": "new", "NEW": "1", "LAST": "2"})])
    runtime = fake(one.socket, f"kind=nativeaot,version={version}", "refuse=set-env@3:80004005", environment=OLD)
    commands = runtime.commands()
    assert commands == ["kind", "info3", "env OLD=new", "env NEW=1", "env", "env OLD=x", "resume"]
    receipt = one.receipt(runtime.pid)
    assert receipt.outcome == "partial", receipt
    assert receipt.results()["env", "OLD"] == "rolled_back"
    assert runtime.finish() == []


def test_the_first_profiler_loads_first(daemon, fake, folder):
    """Runtimes load the one that was sent last first."""
    one = daemon(
        [
            rule(
                profilers=[
                    {"clsid": CLSID, "path": folder.profiler("a.so")},
                    {"clsid": OTHER_CLSID, "path": folder.profiler("b.so", "notify")},
                ],
                startup_hooks=[{"path": folder.hook("A.dll")}, {"path": folder.hook("B.dll")}],
            )
        ]
    )
    runtime = fake(one.socket)
    report = runtime.report()
    assert [profiler["path"] for profiler in report["profilers"]] == [str(folder / "a.so"), str(folder / "b.so")]
    assert report["hooks"] == [str(folder / "A.dll"), str(folder / "B.dll")]
    assert report["twice"] == [] and report["after_resume"] == []
