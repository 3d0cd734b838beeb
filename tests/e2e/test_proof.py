# SPDX-License-Identifier: Apache-2.0
"""The session in which a runtime says what it loaded: where it comes, and that nothing hangs on it."""

import json

import pytest
from plans import plan, whole

#: CollectTracing2.
OPEN = "0203"


def proved(one, runtime):
    """The receipt, once its session is over."""
    return one.until(
        runtime.pid,
        lambda seen: all(step["proof"] != "unknown" or step["proof_detail"] for step in seen["steps"] if "proof" in step),
    )


def proofs(receipt):
    return [step["proof"] for step in receipt["steps"] if "proof" in step]


@pytest.mark.parametrize("version", ["8", "9", "10", "11"])
def test_it_is_the_last_before_resume(daemon, fake, folder, version):
    one = daemon([plan(folder, verify="receipt")])
    runtime = fake(one.socket, f"kind=coreclr,version={version}")
    receipt = proved(one, runtime)
    assert proofs(receipt) == ["loaded", "loaded"], receipt
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
    assert receipt.outcome == "applied" and proofs(receipt) == ["unknown", "unknown"]
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
