# SPDX-License-Identifier: Apache-2.0
"""SIGKILL for the daemon: plans go on where they were, and nothing is applied twice."""

import pytest
from harness import CLSID, rule, until

OLD = {"OLD": "x"}


def plan(folder, n_variables=1):
    return rule(
        env={**{f"A{n}": str(n) for n in range(n_variables)}, "OLD": "new"},
        profilers=[{"clsid": CLSID, "path": folder.profiler()}],
        startup_hooks=[{"path": folder.hook()}],
    )


def test_in_the_middle_of_fifty_plans(daemon, fleet, folder):
    one = daemon([plan(folder, 20)])
    many = fleet(one.socket, 50, "--together", "--may-repeat", behaviours=["delay=any:20"], environment=OLD)
    one.wait("step env ok ", times=200)
    one.kill()
    one.start()
    # No profiler and no hook twice, nothing after Resume, everybody runs: any of it would be an anomaly.
    summary = many.summary()
    assert summary["resumed"] == 50
    runtimes = all_gone(one)
    assert {entry["outcome"] for entry in runtimes} <= {"applied", "partial", "late"}
    # With 200 answers out of 1200 there are some who were in the middle of theirs, and got the rest.
    assert "applied" in {entry["outcome"] for entry in runtimes}
    lost = sum(entry["outcome"] == "partial" for entry in runtimes)
    assert summary["commands"]["StartupProfiler"] >= 50 - lost
    assert summary["commands"]["ApplyStartupHook"] >= 50 - lost


def all_gone(one):
    """Those that a daemon has met, once all have ended: of fifty, those that the one before it did not see to their end."""
    return until(lambda: one.get("/v1/runtimes")["runtimes"],
                 lambda runtimes: runtimes and {entry["state"] for entry in runtimes} == {"gone"})


def damage(records, how):
    content = bytearray(records.read_bytes())
    if how == "deleted":
        # An empty folder would be that of a first start.
        (records.parent / "something").touch()
        records.unlink()
    elif how == "cut":
        records.write_bytes(content[:-1])
    elif how == "emptied":
        records.write_bytes(b"")
    else:
        # Of the first slot, which is in use: both halves, which no death does.
        content[70] ^= 0x10
        content[70 + 136] ^= 0x10
        records.write_bytes(content)


@pytest.mark.parametrize("how", ["deleted", "cut", "emptied", "corrupt"])
def test_the_records_are_damaged_meanwhile(daemon, fleet, folder, how):
    one = daemon([plan(folder, 20)])
    many = fleet(one.socket, 50, "--together", behaviours=["delay=any:20"], environment=OLD)
    one.wait("step env ok ", times=200)
    one.kill()
    damage(one.state / "records", how)
    one.start()
    assert one.status()["records"] == "distrusted"
    assert many.summary()["resumed"] == 50
    runtimes = all_gone(one)
    assert {entry["outcome"] for entry in runtimes} == {"unknown"}
    steps = [step for entry in runtimes for step in entry["steps"] if step["kind"] != "resume"]
    assert {step["result"] for step in steps} == {"skipped"}


def test_again_and_again(daemon, fleet, folder):
    """Whatever each daemon gets to do, no two do the same."""
    one = daemon([plan(folder, 20)])
    fleets = []
    for _ in range(5):
        fleets.append(fleet(one.socket, 20, "--together", "--may-repeat", behaviours=["delay=any:10"], environment=OLD))
        one.wait("step env ok ", times=50)
        one.kill()
        one.start()
    for many in fleets:
        assert many.summary()["resumed"] == 20


# Where the runtime is when the daemon dies, and what it has been told by then.
POINTS = {
    "0300@1": ["kind"],
    "info3@1": ["kind", "info3"],
    "set-env@1": ["kind", "info3", "env A0=0"],
    "startup-profiler@1": ["kind", "info3", "env A0=0", "env OLD=new", "profiler"],
    "hook@1": ["kind", "info3", "env A0=0", "env OLD=new", "profiler", "hook"],
    "resume@1": ["kind", "info3", "env A0=0", "env OLD=new", "profiler", "hook", "resume"],
}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("is_answered", [False, True])
def test_at_any_point_of_a_plan(daemon, fake, folder, point, is_answered):
    """The next daemon goes on: a variable whose answer was not read is sent again, a profiler or hook is lost."""
    one = daemon([plan(folder)])
    when = "after" if is_answered else "before"
    runtime = fake(one.socket, f"stop-{when}-reply={point}", environment=OLD)
    runtime.stands()
    one.kill()
    one.start()
    runtime.thaw()
    paths = {"profiler": f"profiler {folder / 'profiler.so'}", "hook": f"hook {folder / 'Hook.dll'}"}
    before = [paths.get(command, command) for command in POINTS[point]]
    whole = [paths.get(command, command) for command in POINTS["resume@1"]]
    commands = runtime.commands()
    receipt = one.receipt(runtime.pid, "running|gone")
    if point == "resume@1":
        # Its last answer may start it before the next daemon is met, which it has to be before it ends.
        commands += runtime.finish()
        assert commands[: len(before)] == before and set(commands[len(before) :]) <= {"resume"}
        assert receipt.outcome == "late"
        return
    rest = whole[len(before) :] if len(before) > 2 else whole[2:]
    again = [*before[2:], *rest] if point == "set-env@1" else rest
    # Whether an answer that came was read before the end is nobody's choice.
    possible = [again, rest] if is_answered else [again]
    assert commands in [[*before, "kind", "info3", *end] for end in possible]
    assert not [subject for subject in runtime.report()["twice"] if "/" in subject]
    is_lost = point in ("startup-profiler@1", "hook@1")
    assert receipt.outcome in (["partial", "applied"] if is_lost and is_answered else ["partial"] if is_lost else ["applied"])


def test_who_was_not_met_yet_gets_its_plan_from_the_next_daemon(daemon, fleet, folder):
    """Their connections wait in the queue of a daemon that never looks."""
    one = daemon([plan(folder)])
    one.freeze()
    many = fleet(
        one.socket, 30, "--together", "--expect", "StartupProfiler=1", behaviours=["message-after=300"], environment=OLD
    )
    one.kill()
    one.start()
    assert many.summary()["resumed"] == 30
    one.wait("gone ", times=30)
    assert {entry["outcome"] for entry in one.get("/v1/runtimes")["runtimes"]} == {"applied"}
