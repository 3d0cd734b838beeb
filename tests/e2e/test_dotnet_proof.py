# SPDX-License-Identifier: Apache-2.0
"""What real runtimes say they loaded of what they were sent, and what becomes of those that do not."""

import pytest
from apps import CORECLR, SINGLE_FILE, WHOLE, check_applied, told, whole_rule
from harness import rule

pytestmark = pytest.mark.dotnet

EVERY = [*CORECLR, *SINGLE_FILE]
WAY = "DIAGPORT_TEST_INITIALIZE"


def main_profiler(rig, **keys):
    return rule(profilers=[{"clsid": rig.profiler_clsid, "path": rig.profiler}], **{"verify": "receipt", **keys})


@pytest.mark.parametrize("is_over_at_once", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_what_is_loaded_is_proved(daemon, start, rig, name, is_over_at_once):
    """Where the program goes on, the session is stopped."""
    one = daemon([whole_rule(rig, verify="receipt")])
    app = start(name, one.socket)
    if is_over_at_once:
        app.process.stdin.close()
    receipt = one.proved(app.pid)
    assert set(receipt.proofs().values()) == {"loaded"} and len(receipt.proofs()) == 4, receipt
    assert told(app) == WHOLE
    check_applied(receipt, rig)
    assert one.metric('diagport_proof_total{result="loaded"}') == 4
    for kind in ("profiler", "hook"):
        assert one.log.count(f"proof {kind} loaded") == 2
    app.finish()


@pytest.mark.parametrize("name", EVERY)
def test_beside_a_profiler_on_8_only_where_it_is_asked_for(daemon, start, rig, name):
    one = daemon([main_profiler(rig, verify="auto")])
    app = start(name, one.socket)
    (step,) = [step for step in one.proved(app.pid)["steps"] if step["kind"] == "profiler"]
    if name.endswith("8"):
        assert step["proof"] == "unknown" and "may block each other" in step["proof_detail"]
    else:
        assert step["proof"] == "loaded"
    app.report()
    app.finish()


@pytest.mark.parametrize("name", EVERY)
def test_hooks_alone_are_proved_on_all(daemon, start, rig, name):
    one = daemon([rule(startup_hooks=[{"path": rig.hook_a}], verify="auto")])
    app = start(name, one.socket)
    assert one.proved(app.pid).proofs() == {rig.hook_a: "loaded"}
    assert app.report()["hooks"] == ["HookA"]
    app.finish()


@pytest.mark.parametrize(("way", "code", "detail"), [
    ("fails", "0x80004005", "was loaded, and its Initialize failed"),
    ("cancels", None, "wants no part in this process"),
])
@pytest.mark.parametrize("name", EVERY)
def test_who_will_not_be_initialized_is_not_loaded(daemon, start, rig, name, way, code, detail):
    one = daemon([main_profiler(rig)])
    app = start(name, one.socket, environment={WAY: way})
    receipt = one.proved(app.pid)
    step = receipt.step("profiler")
    assert (step["result"], step["proof"], step["proof_hresult"]) == ("ok", "not_loaded", code), step
    assert step["proof_detail"] == detail
    assert one.metric('diagport_proof_total{result="not_loaded"}') == 1
    app.report()
    app.finish()


@pytest.mark.parametrize("way", ["aborts", "exits"])
@pytest.mark.parametrize("name", CORECLR)
def test_who_ends_the_program_is_not_taken_for_loaded(daemon, start, rig, name, way):
    """It is gone, with what it got; and others are served as ever."""
    one = daemon([main_profiler(rig)])
    app = start(name, one.socket, environment={WAY: way})
    app.process.wait()
    receipt = one.receipt(app.pid, "gone")
    receipt = one.proved(app.pid)
    step = receipt.step("profiler")
    assert step["proof"] == "unknown" and "ended" in step["proof_detail"], step
    other = start(name, one.socket)
    assert one.proved(other.pid).proofs() == {rig.profiler: "loaded"}
    other.report()
    other.finish()


def test_nobody_waits_for_who_hangs(daemon, start, rig):
    """Ten seconds in Initialize, longer than it is listened to: unknown, while others come and go."""
    one = daemon([main_profiler(rig)])
    stuck = start("10", one.socket, environment={WAY: "hangs"})
    one.receipt(stuck.pid, "running|resuming")
    for name in CORECLR:
        app = start(name, one.socket)
        assert one.proved(app.pid).proofs() == {rig.profiler: "loaded"}
        app.report()
        app.finish()
    step = one.proved(stuck.pid).step("profiler")
    assert step["proof"] == "unknown" and "not spoken of" in step["proof_detail"], step
    stuck.report()
    stuck.finish()


@pytest.mark.parametrize("name", EVERY)
def test_two_main_profilers_are_one_too_many(daemon, start, rig, name):
    """The last one that is sent is first, and wins; the other is refused without its name."""
    notify = {"clsid": rig.profiler_notify_clsid, "path": rig.profiler_notify}
    main = {"clsid": rig.profiler_clsid, "path": rig.profiler}
    again = {"clsid": "{d1a60d3b-7e57-4c0d-9a3e-5b1f0c2d4e60}", "path": rig.profiler}
    one = daemon([rule(profilers=[main, notify, again], verify="receipt")])
    app = start(name, one.socket)
    receipt = one.proved(app.pid)
    assert {(step["clsid"], step["proof"]) for step in receipt["steps"] if step["kind"] == "profiler"} == {
        (rig.profiler_clsid.strip("{}").lower(), "loaded"),
        (rig.profiler_notify_clsid.strip("{}").lower(), "loaded"),
        ("d1a60d3b-7e57-4c0d-9a3e-5b1f0c2d4e60", "not_loaded"),
    }
    app.report()
    app.finish()
