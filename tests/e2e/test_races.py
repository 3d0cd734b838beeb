# SPDX-License-Identifier: Apache-2.0
"""What comes too early, or all at once: the start-up race, and messages that queue."""

import pytest
from harness import CLSID, rule


def plan(folder):
    return rule(
        env={"A": "1", "B": "2"},
        profilers=[{"clsid": CLSID, "path": folder.profiler()}],
        startup_hooks=[{"path": folder.hook()}],
    )


def test_two_hundred_in_the_start_up_race(daemon, fleet, folder):
    """StartupProfiler is refused until the runtime pauses: it is sent again, taken once, and never in a tight circle."""
    one = daemon([plan(folder)])
    summary = fleet(
        one.socket,
        200,
        "--together",
        *("--expect", "StartupProfiler=1", "--expect", "ApplyStartupHook=1", "--expect", "SetEnvironmentVariable=2"),
        behaviours=["profiler-race=200"],
    ).summary()
    assert summary["resumed"] == 200
    one.wait("diagportd: gone ", times=200)
    runtimes = one.get("/v1/runtimes")["runtimes"]
    assert {entry["outcome"] for entry in runtimes} == {"applied"}
    attempts = [step["attempts"] for entry in runtimes for step in entry["steps"] if step["kind"] == "profiler"]
    # 1, 2, 4, 8, 16, 32 ms and then every 50 ms: who was refused for long was not asked often.
    assert sum(attempts) == summary["commands"]["StartupProfiler"]
    for entry, tried in zip(runtimes, attempts):
        assert tried <= 8 + 20 * entry["hold_seconds"], entry


def test_it_is_sent_again(daemon, fake, folder):
    one = daemon([plan(folder)])
    runtime = fake(one.socket, "profiler-race=500")
    report = runtime.report()
    tried = [command["result"] for command in report["commands"] if command["name"] == "StartupProfiler"]
    assert 2 <= len(tried) <= 20
    assert tried[-1] == "0x00000000" and set(tried[:-1]) == {"0x80070057"}
    assert [profiler["path"] for profiler in report["profilers"]] == [str(folder / "profiler.so")]
    receipt = one.receipt(runtime.pid, "running")
    assert (receipt.outcome, receipt.step("profiler")["attempts"]) == ("applied", len(tried))


def test_a_refusal_that_lasts_is_one(daemon, fake, folder):
    one = daemon([plan(folder)])
    runtime = fake(one.socket, "profiler-race=3000")
    commands = runtime.report()["commands"]
    tried = [command["result"] for command in commands if command["name"] == "StartupProfiler"]
    assert set(tried) == {"0x80070057"} and 6 <= len(tried) <= 30
    receipt = one.receipt(runtime.pid, "running")
    assert receipt.outcome == "rolled_back"
    assert receipt.step("profiler")["hresult"] == "0x80070057"


@pytest.mark.parametrize("kind", ["coreclr", "nativeaot"])
def test_answer_close_and_next_advertise_at_once(daemon, fake, folder, kind):
    """The daemon is stopped while all of it is queued: it must not take the new connection before the old answer."""
    one = daemon([plan(folder) if kind == "coreclr" else rule(env={"A": "1", "B": "2"})])
    runtime = fake(one.socket, f"kind={kind},version=10,queue-next=any")
    expected = ["kind", "info3", "env A=1", "env B=2"]
    if kind == "coreclr":
        expected += [f"profiler {folder / 'profiler.so'}", f"hook {folder / 'Hook.dll'}"]
    assert runtime.commands() == [*expected, "resume"]
    assert runtime.report()["twice"] == []
    assert one.receipt(runtime.pid, "running").outcome == "applied"
    assert runtime.finish() == []


def test_the_same_on_two_ports(daemon, fake, folder):
    one = daemon([plan(folder)])
    runtime = fake(f"{one.socket};{one.socket}", "queue-next=any")
    commands = runtime.commands()
    first = commands.index("resume")
    assert commands[2:first] == [
        "env A=1",
        "env B=2",
        f"profiler {folder / 'profiler.so'}",
        f"hook {folder / 'Hook.dll'}",
    ]
    assert set(commands[first:]) == {"resume"}
    assert runtime.report()["twice"] == []
