# SPDX-License-Identifier: Apache-2.0
"""The primer in real runtimes: native code sees the variables of a rule, and without it does not."""

import pytest
from apps import CORECLR, EMPTY, GONE, NATIVEAOT, OLD, ONE, PORTS, SINGLE_FILE
from harness import BUILD, rule

pytestmark = pytest.mark.dotnet

NAMES, LIBRARIES, RESULT = "DIAGPORT_PRIMER_NAMES", "DIAGPORT_PRIMER_PROBE", "DIAGPORT_PRIMER_RESULT"
PRIMER = str(BUILD / "shim/libdiagport-primer.so")

VARIABLES = {ONE: "gr\u00fc\u00dfe \u4e2d \U0001f600", EMPTY: "", OLD: "new", GONE: None}
#: What a program that nobody primed has natively: what it was started with.
LAUNCHED = {ONE: None, EMPTY: None, OLD: "old", GONE: "gone"}
EVERY = [*CORECLR, *SINGLE_FILE]


def main(rig, **keys):
    return {"clsid": rig.profiler_clsid, "path": rig.profiler, **keys}


def notify(rig, **keys):
    return {"clsid": rig.profiler_notify_clsid, "path": rig.profiler_notify, **keys}


def primed(profilers, env=None, **keys):
    """A rule whose profilers get the primer."""
    every = {"env": VARIABLES if env is None else env, "profilers": profilers}
    return rule(**{**every, "primer": "auto", "primer_path": PRIMER, **keys})


def result(n_set, n_unset, *libraries):
    """The text that the primer leaves."""
    counts = ["diagport-primer 1", f"set {n_set}", f"unset {n_unset}", "failed 0"]
    return "\n".join([*counts, *(f"library {library}" for library in libraries), "end", ""])


def report(daemon, start, name, a_rule, *arguments):
    """What a program tells that gets this rule."""
    one = daemon([a_rule])
    names = [*VARIABLES, NAMES, LIBRARIES, RESULT]
    app = start(name, one.socket, "--names", ",".join(names), *arguments)
    told = app.report()
    assert one.receipt(app.pid, "running").outcome == "applied"
    app.finish()
    return told


@pytest.mark.parametrize("name", EVERY)
def test_without_it_native_code_sees_nothing(daemon, start, rig, name):
    told = report(daemon, start, name, primed([main(rig), notify(rig)], primer="never"))
    assert {variable: told["managed"][variable] for variable in VARIABLES} == VARIABLES
    assert {variable: told["native"][variable] for variable in VARIABLES} == LAUNCHED
    # The profilers show what is not ASCII as question marks.
    assert told["profiler"].endswith(":-") and told["profiler_notify"].endswith(":-")


@pytest.mark.parametrize("name", EVERY)
def test_with_it_native_code_sees_what_managed_code_sees(daemon, start, rig, name):
    """One primer for two profilers: it was there before either."""
    told = report(daemon, start, name, primed([main(rig), notify(rig)]))
    assert {variable: told["managed"][variable] for variable in VARIABLES} == VARIABLES
    assert {variable: told["native"][variable] for variable in VARIABLES} == VARIABLES
    for profiler in ("profiler", "profiler_notify"):
        assert told[profiler].startswith("1:") and told[profiler].endswith(f":{VARIABLES[ONE]}"), told[profiler]
    assert told["managed"][RESULT] == result(3, 1, "ok", "ok")
    # What was for the primer is gone, from either environment; its result never was in the native one.
    assert [told["managed"][NAMES], told["managed"][LIBRARIES]] == [None, None]
    assert [told["native"][NAMES], told["native"][LIBRARIES], told["native"][RESULT]] == [None, None, None]


@pytest.mark.parametrize("name", EVERY)
def test_children_of_native_code_get_what_managed_ones_get(daemon, start, rig, name):
    """With the ports blanked in either environment no child connects."""
    env = {ONE: "one", PORTS: "", GONE: None}
    one = daemon([primed([main(rig)], env)])
    app = start(name, one.socket, "--children", "--names", ",".join(env))
    told = app.report()
    assert told["native_child"] == told["child"] == env
    app.finish()


@pytest.mark.parametrize("name", EVERY)
def test_it_says_why_a_library_does_not_open(daemon, start, rig, folder, name):
    """In the loader's words; and the program runs, and so does the other profiler."""
    text = folder.file("text.so", "no library")
    broken = {"clsid": rig.profiler_clsid, "path": text, "required": False}
    told = report(daemon, start, name, primed([broken, notify(rig)], {ONE: "one"}))
    lines = told["managed"][RESULT].splitlines()
    assert [lines[:4], lines[5:]] == [result(1, 0).splitlines()[:4], ["library ok", "end"]]
    assert lines[4].startswith(f"library failed {text}: ")
    assert told["profiler_notify"] == "1:one:one"


@pytest.mark.parametrize("name", EVERY)
def test_a_list_and_a_value_as_long_as_a_message(daemon, start, rig, name):
    value = "\u4e2d" * 32000
    names = [f"DIAGPORT_TEST_MANY_{n:04}" for n in range(1200)]
    env = {ONE: value, **dict.fromkeys(names[:200], "x"), **dict.fromkeys(names[200:])}
    one = daemon([primed([main(rig)], env)])
    app = start(name, one.socket, "--names", f"{ONE},{names[0]},{names[199]},{names[200]},{RESULT}")
    told = app.report()
    assert told["native"] == {ONE: value, names[0]: "x", names[199]: "x", names[200]: None, RESULT: None}
    assert told["managed"][RESULT] == result(201, 1000, "ok")
    app.finish()


@pytest.mark.parametrize("name", EVERY)
def test_a_file_that_is_no_primer_is_only_not_there(daemon, start, rig, folder, name):
    """A runtime goes on to the real profiler, which then sees nothing."""
    no_primer = primed([main(rig)], {ONE: "one"})
    no_primer["primer_path"] = folder.file("none.so", "no library")
    told = report(daemon, start, name, no_primer)
    assert told["profiler"] == "1:one:-"
    assert told["managed"][RESULT] is None


@pytest.mark.parametrize("name", NATIVEAOT)
def test_nativeaot_needs_none(daemon, start, rig, name):
    """It has one environment, and no profilers."""
    one = daemon([primed([main(rig, required=False)], {ONE: "one"})])
    app = start(name, one.socket, "--names", f"{ONE},{NAMES}")
    told = app.report()
    assert told["native"] == told["managed"] == {ONE: "one", NAMES: None}
    receipt = one.receipt(app.pid, "running")
    assert receipt.outcome == "applied"
    assert {(step["kind"], step["result"]) for step in receipt["steps"] if step["name"] != ONE} == {
        ("env", "skipped"), ("profiler", "refused"), ("primer", "refused"), ("resume", "ok")
    }
    app.finish()
