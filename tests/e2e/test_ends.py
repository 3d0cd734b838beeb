# SPDX-License-Identifier: Apache-2.0
"""Programs that end, at once or in time, and programs that become others."""

import json

import pytest
from harness import CLSID, rule, until


def plan(folder):
    return rule(
        env={"A": "1"},
        profilers=[{"clsid": CLSID, "path": folder.profiler()}],
        startup_hooks=[{"path": folder.hook()}],
    )


@pytest.mark.parametrize("is_planned", [False, True])
def test_short_programs_are_one_runtime_each(daemon, fleet, folder, is_planned):
    """They come back once more after Resume, and are over before that is looked at."""
    one = daemon([plan(folder)] if is_planned else [])
    before = one.descriptors()
    fleet(one.socket, 200, "--together").summary()
    one.wait("diagportd: gone ", times=200)
    status = one.status()
    assert status["runtimes_seen"] == 200
    assert status["runtimes"] == {**dict.fromkeys(status["runtimes"], 0), "gone": 200}
    assert not one.log.count("outcome=unknown")
    one.has_descriptors(before)


def test_it_ends_while_it_is_held(daemon, fake, folder):
    """Before Resume it is told nothing more, and what it was given counts."""
    one = daemon([plan(folder)])
    before = one.descriptors()
    runtime = fake(one.socket, "stuck=hook")
    one.wait(rf"step profiler ok .*pid={runtime.pid} ")
    runtime.kill()
    receipt = one.receipt(runtime.pid, "gone")
    assert receipt.outcome == "partial"
    assert receipt.results()["env", "A"] == "ok"
    one.has_descriptors(before)


@pytest.mark.parametrize("point", ["start", "set-env", "startup-profiler", "hook", "resume"])
def test_a_program_becomes_another_in_the_same_process(daemon, fake, folder, point):
    """Own entry, own plan: what the first one was given is gone with it."""
    one = daemon([plan(folder)])
    runtime = fake(one.socket, f"exec-after={point}")
    has_started = point == "start"
    last = runtime.report()
    # Who is resumed may come to its managed code before it becomes another.
    assert last["generation"] == 0 or not has_started
    if last["generation"] == 0:
        assert has_started or point == "resume"
        last = runtime.report(times=2)
    assert last["generation"] == 1
    assert last["environment"] == {"A": "1"}
    assert [profiler["path"] for profiler in last["profilers"]] == [str(folder / "profiler.so")]
    assert last["hooks"] == [str(folder / "Hook.dll")]
    assert last["twice"] == [] and last["after_resume"] == []
    one.wait(rf"gone .*pid={runtime.pid} .*: its process started another program")
    both = until(
        lambda: one.get(f"/v1/runtimes?pid={runtime.pid}")["runtimes"],
        lambda entries: [entry["state"] for entry in entries] == ["gone", "running"],
    )
    assert both[0]["cookie"] != both[1]["cookie"]
    assert both[1]["outcome"] == "applied"
    # The one that lives is meant.
    assert one.runtime(runtime.pid)["cookie"] == both[1]["cookie"]
    assert runtime.finish() == []


def test_many_programs_one_after_the_other_in_a_process(daemon, fake, folder):
    """Past the limit of cookies that are remembered a process is only resumed."""
    one = daemon([plan(folder)], limits={"cookies_per_process": 1})
    runtime = fake(one.socket, "exec-after=start")
    first, second = runtime.report(times=1), runtime.report(times=2)
    assert first["environment"] == {"A": "1"}
    assert second["environment"] == {}
    # Nobody remembers whether it had its Resume, so it gets one each time that it comes, at a pace.
    assert {command["name"] for command in second["commands"]} == {"ResumeRuntime"}
    assert one.log.count("peer over_limit .*more cookies than limits.cookies_per_process") >= 1


def test_history_is_bounded(daemon, fleet):
    one = daemon([], limits={"history": {"records": 5}})
    fleet(one.socket, 20).summary()
    one.wait("diagportd: gone ", times=20)
    assert len(one.get("/v1/runtimes?state=gone")["runtimes"]) == 5
    assert one.status()["runtimes_seen"] == 20


def test_what_happened_is_told_to_followers(daemon, fake, folder):
    one = daemon([plan(folder)])
    runtime = fake(one.socket)
    runtime.report()
    one.receipt(runtime.pid, "running")
    _, body = one.request("GET", "/v1/events?since=0")
    events = [json.loads(line) for line in body.splitlines()]
    steps = [(event["step"], event["result"]) for event in events if event["kind"] == "step"]
    assert steps == [("env", "ok"), ("profiler", "ok"), ("hook", "ok"), ("resume", "ok")]
    states = [event["state"] for event in events if event["kind"] == "runtime"]
    assert states == ["applying", "resuming", "running"]
