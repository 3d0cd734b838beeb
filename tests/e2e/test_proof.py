# SPDX-License-Identifier: Apache-2.0
"""The session in which a runtime says what it loaded: where it comes, and that nothing hangs on it."""

import json

import pytest
from plans import plan, whole

#: CollectTracing2.
OPEN = "0203"


@pytest.mark.parametrize("version", ["8", "9", "10", "11"])
def test_it_is_the_last_before_resume(daemon, fake, folder, version):
    one = daemon([plan(folder, verify="receipt")])
    runtime = fake(one.socket, f"kind=coreclr,version={version}")
    receipt = one.proved(runtime.pid)
    assert list(receipt.proofs().values()) == ["loaded", "loaded"], receipt
    one.wait("proof hook loaded")
    # It may be stopped before the program says what it got by then.
    assert runtime.commands()[: len(whole(folder)) + 2] == [*whole(folder), OPEN, "resume"]
    _, body = one.request("GET", "/v1/events")
    events = [event for event in map(json.loads, body.splitlines()) if event["kind"] == "proof"]
    assert [(event["step"], event["proof"], event["hresult"]) for event in events] == [
        ("profiler", "loaded", None),
        ("hook", "loaded", None),
    ]


@pytest.mark.parametrize("fault", ["refuse=collect2@1:80131385", "silent=collect2@1"])
def test_without_one_nothing_is_missed(daemon, fake, folder, fault):
    one = daemon([plan(folder, verify="receipt", command_timeout="1s")])
    runtime = fake(one.socket, fault)
    receipt = one.receipt(runtime.pid, "running")
    assert receipt.outcome == "applied" and list(receipt.proofs().values()) == ["unknown", "unknown"]
    assert runtime.commands() == [*whole(folder), OPEN, "resume"]


@pytest.mark.parametrize("step", ["hook", "resume"])
def test_it_does_not_outlive_its_daemon(daemon, fake, folder, step):
    """Whose next one resumes the runtime, where that is left to do, and does not ask what it loaded."""
    one = daemon([plan(folder, verify="receipt")])
    runtime = fake(one.socket)
    one.wait(rf"step {step} ok ")
    one.kill()
    one.start()
    receipt = one.receipt(runtime.pid, "running")
    assert receipt.outcome in ("applied", "late"), receipt
    assert runtime.commands().count(f"hook {folder / 'Hook.dll'}") == 1
    runtime.finish()
