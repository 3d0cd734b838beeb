# SPDX-License-Identifier: Apache-2.0
"""The rig's programs by name, rules for them, and what they print then: for tests with real .NET."""

from harness import rule

CORECLR = ["8", "9", "10", "11"]
SINGLE_FILE = ["single-file-8", "single-file-10"]
NATIVEAOT = ["nativeaot-8", "nativeaot-10"]
EVERY = [*CORECLR, *SINGLE_FILE, *NATIVEAOT]

# The profilers tell what they see of the first one.
ONE, EMPTY, OLD, GONE = (f"DIAGPORT_TEST_{name}" for name in ("ONE", "EMPTY", "OLD", "GONE"))
PORTS = "DOTNET_DiagnosticPorts"

#: What every app starts with.
LAUNCH = {OLD: "old", GONE: "gone"}
VARIABLES = {ONE: "one", EMPTY: "", OLD: "new"}
UNTOUCHED_VARIABLES = {ONE: None, EMPTY: None, OLD: "old", GONE: "gone"}

UNTOUCHED = {"managed": UNTOUCHED_VARIABLES, "hooks": [], "profiler": None, "profiler_notify": None}
ONLY_VARIABLES = {**UNTOUCHED, "managed": {**VARIABLES, GONE: "gone"}}
#: Each hook and profiler once, and both profilers, which see variables only as managed code does.
WHOLE = {
    "managed": {**VARIABLES, GONE: None},
    "hooks": ["HookA", "HookB"],
    "profiler": "1:one:-",
    "profiler_notify": "1:one:-",
}


def command(rig, name):
    """The argument list of the program of that name, whose versions are the rig's."""
    programs = {
        **{f"single-file-{label.split('-')[-1].split('.')[0]}": [path] for label, path in rig.single_file},
        **{f"nativeaot-{label.split('-')[-1].split('.')[0]}": [path] for label, path in rig.aot},
        **{version.split(".")[0]: rig.command(version) for version in rig.versions},
    }
    return programs[name]


def whole_rule(rig, required=True, **keys):
    """Everything that a rule can ask for; what only CoreCLR does is `required` or not."""
    return rule(
        **{
            "env": {**VARIABLES, GONE: {"value": None, "required": required}},
            "profilers": [
                {"clsid": rig.profiler_clsid, "path": rig.profiler, "required": required},
                {"clsid": rig.profiler_notify_clsid, "path": rig.profiler_notify, "required": required},
            ],
            "startup_hooks": [{"path": path, "required": required} for path in (rig.hook_a, rig.hook_b)],
            **keys,
        }
    )


def told(app):
    """What reached an app, by what it prints."""
    report = app.report()
    return {name: report[name] for name in UNTOUCHED}


def check_applied(receipt, rig):
    """Each step of the whole rule once, and Resume last."""
    assert [(step["kind"], step["name"], step["result"]) for step in receipt["steps"]] == [
        *(("env", name, "ok") for name in (*VARIABLES, GONE)),
        # The last one that is sent loads first.
        ("profiler", rig.profiler_notify, "ok"),
        ("profiler", rig.profiler, "ok"),
        ("hook", rig.hook_a, "ok"),
        ("hook", rig.hook_b, "ok"),
        ("resume", None, "ok"),
    ], receipt
    # A profiler that comes before the runtime says that it pauses is sent again.
    assert [step["attempts"] for step in receipt["steps"] if step["kind"] != "profiler"] == [1] * 7, receipt
    assert receipt.outcome == "applied", receipt


def check_resumed_only(receipt, outcome, n_resumes=1):
    """Nothing was asked, and nothing but Resume was sent."""
    assert receipt.outcome == outcome, receipt
    assert (receipt["kind"], receipt["runtime_version"]) == (None, None), receipt
    # Where the machine is too busy to look at it in time, it gets one too many, which does nothing.
    resumes = [step["result"] for step in receipt["steps"] if step["kind"] == "resume"]
    assert set(resumes) == {"ok"} and len(resumes) >= n_resumes, receipt
    others = {(step["result"], step["attempts"]) for step in receipt["steps"] if step["kind"] != "resume"}
    assert others <= {("skipped", 0)}, receipt
