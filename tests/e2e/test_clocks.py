# SPDX-License-Identifier: Apache-2.0
"""Clocks that jump: the calendar means nothing, and time that was slept over counts without being waited for."""

import pytest
from faults import Faults
from harness import CLSID, UNDER, rule, until

pytestmark = pytest.mark.skipif(bool(UNDER), reason="what the daemon runs under looks at the clocks too")

OLD = {"OLD": "x"}


@pytest.fixture
def shifted(daemon, folder):
    """A daemon whose clocks tests move."""
    faults = Faults(folder)
    whole = rule(
        env={"A": "1", "OLD": "new"},
        profilers=[{"clsid": CLSID, "path": folder.profiler()}],
        startup_hooks=[{"path": folder.hook()}],
        deadline="8s",
    )
    one = daemon([whole], environment=faults.environment, limits={"late_after": "1h", "hello": "5s"})
    one.faults = faults
    return one


@pytest.mark.parametrize("seconds", [-86400 * 400, -3600, -1, 1, 3600, 86400 * 4000])
def test_the_calendar_jumps(shifted, fake, seconds):
    """In the middle of a plan; it is only what is shown that changes."""
    runtime = fake(shifted.socket, "stop-before-reply=set-env@1", environment=OLD)
    runtime.stands()
    before = shifted.runtime(runtime.pid)["connected_at"]
    shifted.faults.move_clocks(calendar=seconds)
    runtime.thaw()
    assert runtime.commands()[-1] == "resume"
    receipt = shifted.receipt(runtime.pid, "running")
    assert receipt.outcome == "applied"
    assert receipt["connected_at"] != before
    assert shifted.metric("diagport_deadline_total") == 0


@pytest.mark.parametrize("point", ["0300@1", "set-env@1", "set-env@2", "startup-profiler@1", "hook@1"])
def test_it_sleeps_over_a_deadline(shifted, fake, point):
    """Who did not answer by then gets Resume next; who comes after that, a plan with all its time."""
    runtime = fake(shifted.socket, f"stop-before-reply={point}", environment=OLD)
    runtime.stands()
    shifted.freeze()
    shifted.faults.move_clocks(since_boot=10)
    shifted.thaw()
    later = fake(shifted.socket, environment=OLD)
    assert "resume" in later.commands()
    assert shifted.receipt(later.pid, "running").outcome == "applied"
    assert shifted.metric("diagport_deadline_total") == 1
    runtime.thaw()
    assert runtime.commands()[-1] == "resume"
    receipt = shifted.receipt(runtime.pid, "running")
    assert receipt.outcome in ("failed", "partial", "rolled_back"), receipt
    assert receipt["why"] == "its deadline came"


def test_what_is_there_after_a_sleep_counts(shifted, fake):
    """An answer that came while nobody looked is an answer, and an advertise is one."""
    runtime = fake(shifted.socket, "stop-before-reply=hook@1", environment=OLD)
    runtime.stands()
    shifted.freeze()
    runtime.thaw()
    later = fake(shifted.socket, "message-after=300", environment=OLD)
    later.told_pause()
    shifted.faults.move_clocks(since_boot=10)
    shifted.thaw()
    assert runtime.commands()[-1] == "resume"
    assert shifted.receipt(runtime.pid, "running").results()["hook", str(shifted.folder / "Hook.dll")] == "ok"
    assert "env A=1" in later.commands()
    assert shifted.receipt(later.pid, "running").outcome == "applied"


def test_a_whole_machine_sleeps(shifted, fake):
    """For years: nothing overflows, and ended runtimes are forgotten by their age."""
    runtime = fake(shifted.socket, environment=OLD)
    assert runtime.commands()[-1] == "resume"
    shifted.receipt(runtime.pid, "running")
    assert runtime.end() == 0
    shifted.receipt(runtime.pid, "gone")
    shifted.faults.move_clocks(since_boot=86400 * 365 * 30)
    until(lambda: shifted.get("/v1/runtimes")["runtimes"], lambda seen: seen == [])
    again = fake(shifted.socket, environment=OLD)
    assert again.commands()[-1] == "resume"
    assert shifted.receipt(again.pid, "running|gone").outcome in ("applied", "unknown")
