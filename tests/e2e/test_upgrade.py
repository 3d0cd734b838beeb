# SPDX-License-Identifier: Apache-2.0
"""Another version of the daemon takes over: what the version before recorded is gone on with, what a newer one did is not."""

import pathlib

import pytest
import records
from harness import rule
from plans import OLD, plan, whole


def strict(folder):
    """Holds whoever it matches."""
    return rule("strict", match={"args": "strict"}, startup_hooks=[{"path": str(folder / "missing.dll")}],
                on_failure="hold", hold_limit="forever")


def change_version(one, make):
    """A daemon of another version dies, and this one is the next."""
    one.kill()
    make(one.state / "records")
    one.start()


@pytest.mark.parametrize("point", ["set-env@1", "startup-profiler@1", "hook@1"])
def test_plans_of_the_version_before_go_on(daemon, fake, folder, point):
    one = daemon([plan(folder)])
    runtime = fake(one.socket, f"stop-before-reply={point}", environment=OLD)
    runtime.stands()
    change_version(one, records.make_older)
    assert records.version(one.state / "records") == records.VERSION
    assert one.status()["records"] == "trusted"
    runtime.thaw()
    commands = runtime.commands()
    assert commands[-1] == "resume"
    # No profiler and no hook twice; an answer that was not read is lost.
    assert not [subject for subject in runtime.report()["twice"] if "/" in subject]
    assert [command for command in commands if command.startswith(("profiler", "hook"))] == whole(folder)[4:]
    assert one.receipt(runtime.pid, "running").outcome == ("applied" if point == "set-env@1" else "partial")


def test_who_was_held_by_the_version_before_is_held(daemon, fake, folder):
    one = daemon([strict(folder), plan(folder)])
    held = fake(one.socket, arguments=["strict"])
    assert one.receipt(held.pid, "held")["rule"] == "strict"
    done = fake(one.socket, environment=OLD)
    assert done.commands() == [*whole(folder), "resume"]
    one.receipt(done.pid, "running")
    change_version(one, records.make_older)
    assert one.receipt(held.pid, "held")["rule"] == "strict"
    one.receipt(done.pid, "running")
    one.post(f"/v1/runtimes/pid:{held.pid}/resume", {})
    assert held.commands()[-1] == "resume"
    # Who had his plan has had it.
    assert set(done.finish()) <= {"resume"}


def test_what_a_newer_version_recorded_is_not_guessed(daemon, fake, folder):
    """Put back to an older version: everybody is served, nobody is set up again, and it is said."""
    one = daemon([strict(folder), plan(folder)])
    held = fake(one.socket, arguments=["strict"])
    one.receipt(held.pid, "held")
    stands = fake(one.socket, "stop-before-reply=hook@1", environment=OLD)
    stands.stands()
    change_version(one, records.make_newer)
    assert one.log.count("which a newer diagportd wrote, and this one knows none after") == 1
    assert one.status()["records"] == "distrusted"
    stands.thaw()
    assert held.commands()[-1] == "resume"
    assert stands.commands() == [*whole(folder), "resume"]
    assert one.receipt(held.pid, "running").outcome == "unknown"
    assert one.receipt(stands.pid, "running").outcome == "unknown"
    # What it wrote is still there, for people.
    assert records.version(one.state / "records.newer") == records.VERSION + 1
    later = fake(one.socket, environment=OLD)
    assert later.commands() == [*whole(folder), "resume"]
    # The newer version comes back, and finds a file of this one: nothing of before is done again.
    one.kill()
    one.start()
    assert one.status()["records"] == "distrusted"
    one.receipt(later.pid, "running")
    for runtime in (held, stands, later):
        assert set(runtime.finish()) <= {"resume"}


def test_the_version_before_is_written_as_it_was(daemon):
    """What is made here for a file of version 2 is like the one that was kept, but for its boot."""
    one = daemon()
    one.kill()
    records.make_older(one.state / "records")
    kept = (pathlib.Path(__file__).parents[1] / "fixtures/records-2").read_bytes()
    made = (one.state / "records").read_bytes()
    assert (made[:20], len(made)) == (kept[:20], 64 + records.SLOTS * 256)
    for start, end in ((0, 64), (64, 192), (192, 320)):
        assert records.with_sum(kept[start : end - 8]) == kept[start:end]
