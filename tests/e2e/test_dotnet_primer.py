# SPDX-License-Identifier: Apache-2.0
"""The primer in real runtimes: native code sees the variables of a rule, and without it does not."""

import pytest
from apps import CORECLR, EMPTY, GONE, OLD, ONE, PORTS, SINGLE_FILE
from harness import BUILD, PRIMER_CLSID, rule

pytestmark = pytest.mark.dotnet

NAMES, LIBRARIES, RESULT = "DIAGPORT_PRIMER_NAMES", "DIAGPORT_PRIMER_PROBE", "DIAGPORT_PRIMER_RESULT"
PRIMER = {"clsid": PRIMER_CLSID, "path": str(BUILD / "shim/libdiagport-primer.so")}

VARIABLES = {ONE: "gr\u00fc\u00dfe \u4e2d \U0001f600", EMPTY: "", OLD: "new", GONE: None}
#: What a program that nobody primed has natively: what it was started with.
LAUNCHED = {ONE: None, EMPTY: None, OLD: "old", GONE: "gone"}
EVERY = [*CORECLR, *SINGLE_FILE]


def main(rig, **keys):
    return {"clsid": rig.profiler_clsid, "path": rig.profiler, **keys}


def notify(rig, **keys):
    return {"clsid": rig.profiler_notify_clsid, "path": rig.profiler_notify, **keys}


def primed(profilers, env=None, libraries=None):
    """A rule with the primer in front of its profilers."""
    env = VARIABLES if env is None else env
    lists = {NAMES: "\n".join(env), LIBRARIES: None if libraries is None else "\n".join(libraries)}
    return rule(
        env={**env, **{name: value for name, value in lists.items() if value is not None}},
        profilers=[PRIMER, *profilers],
    )


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
    told = report(daemon, start, name, rule(env=VARIABLES, profilers=[main(rig), notify(rig)]))
    assert {variable: told["managed"][variable] for variable in VARIABLES} == VARIABLES
    assert {variable: told["native"][variable] for variable in VARIABLES} == LAUNCHED
    # The profilers show what is not ASCII as question marks.
    assert told["profiler"].endswith(":-") and told["profiler_notify"].endswith(":-")


@pytest.mark.parametrize("name", EVERY)
def test_with_it_native_code_sees_what_managed_code_sees(daemon, start, rig, name):
    """One primer for two profilers: it was there before either."""
    told = report(daemon, start, name, primed([main(rig), notify(rig)], libraries=[rig.profiler, rig.profiler_notify]))
    assert {variable: told["managed"][variable] for variable in VARIABLES} == VARIABLES
    assert {variable: told["native"][variable] for variable in VARIABLES} == VARIABLES
    for profiler in ("profiler", "profiler_notify"):
        assert told[profiler].startswith("1:") and told[profiler].endswith(f":{VARIABLES[ONE]}"), told[profiler]
    assert told["managed"][RESULT] == result(3, 1, "ok", "ok")
    # What was for the primer is gone, from either environment; its result never was in the native one.
    assert [told["managed"][NAMES], told["managed"][LIBRARIES]] == [None, None]
    assert [told["native"][NAMES], told["native"][LIBRARIES], told["native"][RESULT]] == [None, None, None]


@pytest.mark.parametrize("name", EVERY)
def test_it_stays_out_of_the_way_of_a_profiler_that_was_there(daemon, start, rig, name):
    """The program was started with a main profiler: the primer is loaded all the same, and before it."""
    one = daemon([primed([], {ONE: "one"})])
    app = start(
        name,
        one.socket,
        environment={
            "CORECLR_ENABLE_PROFILING": "1",
            "CORECLR_PROFILER": rig.profiler_clsid,
            "CORECLR_PROFILER_PATH": rig.profiler,
        },
    )
    told = app.report()
    assert (told["native"][ONE], told["profiler"].split(":")[0]) == ("one", "1")
    app.finish()


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
    """And the program runs. What cannot be opened is in the loader's words."""
    text = folder.file("text.so", "no library")
    none = folder.file("none.so", "")
    told = report(daemon, start, name, primed([main(rig)], {ONE: "one"}, [text, none, "/nowhere/absent.so", rig.probe]))
    lines = told["managed"][RESULT].splitlines()
    assert lines[:4] == result(1, 0).splitlines()[:4]
    assert [line.split(":")[0] for line in lines[4:-1]] == [
        f"library failed {path}" for path in (text, none, "/nowhere/absent.so", rig.probe)
    ]
    assert lines[6].endswith("No such file or directory")
    assert told["profiler"] == "1:one:one"


@pytest.mark.parametrize("name", EVERY)
def test_a_list_and_a_value_as_long_as_a_message(daemon, start, rig, name):
    value = "\u4e2d" * 32000
    names = [f"DIAGPORT_TEST_MANY_{n:04}" for n in range(1200)]
    env = {ONE: value, **dict.fromkeys(names[:200], "x")}
    one = daemon([rule(env={**env, NAMES: "\n".join([ONE, *names])}, profilers=[PRIMER, main(rig)])])
    app = start(name, one.socket, "--names", f"{ONE},{names[0]},{names[199]},{RESULT}")
    told = app.report()
    assert told["native"] == {ONE: value, names[0]: "x", names[199]: "x", RESULT: None}
    assert told["managed"][RESULT] == result(201, 1000)
    app.finish()


@pytest.mark.parametrize("name", EVERY)
def test_a_missing_primer_is_only_not_there(daemon, start, rig, folder, name):
    """A runtime goes on to the real profiler, which then sees nothing."""
    a_rule = primed([main(rig)], {ONE: "one"})
    a_rule["profilers"][0] = {**PRIMER, "path": folder.file("none.so", "no library")}
    told = report(daemon, start, name, a_rule)
    assert told["profiler"] == "1:one:-"
    assert told["managed"][RESULT] is None


