# SPDX-License-Identifier: Apache-2.0
"""Records that somebody takes away while the daemon runs: it is said, put right where it can be, and nobody is forgotten."""

import os
import pathlib
import shutil
import socket

import manager as managers
import pytest
from harness import NOBODY, listen, needs_root, rule
from plans import OLD, plan, whole

HELD = rule("held", {"args": "held"}, env={"A": "1"}, on_failure="hold")


def held(one, fake):
    runtime = fake(one.socket, "refuse=set-env@1:80004005", arguments=["held"])
    one.receipt(runtime.pid, "held")
    return runtime


def file_removed(state):
    (state / "records").unlink()


def file_replaced(state):
    (state / "other").write_bytes(b"nonsense")
    (state / "other").rename(state / "records")


def all_files_removed(state):
    for file in state.iterdir():
        file.unlink()


def folder_removed(state):
    shutil.rmtree(state)


def folder_replaced(state):
    state.rename(state.with_name("away"))
    state.mkdir(mode=0o700)


def made_read_only(state):
    (state / "records").chmod(0o400)
    state.chmod(0o500)


@pytest.mark.parametrize("happens", [file_removed, file_replaced, all_files_removed, folder_removed, folder_replaced,
                                     made_read_only], ids=lambda happens: happens.__name__)
def test_what_can_be_put_right(daemon, fake, folder, happens):
    """The next daemon goes on with everybody, by the policy that was in force."""
    one = daemon([HELD, plan(folder, on_lost="fail")], on_stop="keep")
    waiting = held(one, fake)
    planned = fake(one.socket, "stop-before-reply=set-env@1", environment=OLD)
    planned.stands()
    happens(one.state)
    one.wait("alarm records on: of the state folder .*; it was put right")
    one.kill()
    # Without the policy on disk the last good one is what they go on by.
    one.policy_text("version: 1\nrules: [ {")
    one.start(policy_is_good=False)
    assert one.status()["records"] == "trusted"
    one.until(waiting.pid, lambda seen: seen["state"] == "held")
    planned.thaw()
    commands = planned.commands()
    assert commands[-1] == "resume" and [commands.count(step) for step in whole(folder)[-3:]] == [1, 1, 1]
    one.post(f"/v1/runtimes/pid:{waiting.pid}/resume", {})
    assert waiting.commands()[-1] == "resume"


def test_a_file_that_is_cut_ends_nobody(daemon, fake, folder):
    """Not the daemon, which writes on, and no plan; but of who was there before, the next daemon knows nothing."""
    one = daemon([HELD, plan(folder)], on_stop="keep")
    waiting = held(one, fake)
    planned = fake(one.socket, "stop-before-reply=set-env@1", environment=OLD)
    planned.stands()
    os.truncate(one.state / "records", 0)
    planned.thaw()
    assert planned.commands() == [*whole(folder), "resume"]
    one.wait("alarm records on: of the state folder .* was cut, .*; it was put right")
    one.kill()
    one.start()
    assert one.status()["records"] == "distrusted"
    assert waiting.commands()[-1] == "resume"
    assert one.receipt(waiting.pid, "running").outcome == "unknown"


def test_it_is_told_until_all_is_well(daemon):
    """A reload looks at once."""
    one = daemon([HELD])
    file_removed(one.state)
    assert one.reload()
    (alarm,) = one.status()["alarms"]
    assert alarm["name"] == "records"
    assert alarm["why"] == f"of the state folder {one.state}: the file of records was removed; it was put right"
    assert one.metric('diagport_alarm{alarm="records"}') == 1
    assert one.reload()
    assert one.alarms() == [] and one.metric('diagport_alarm{alarm="records"}') == 0


@pytest.fixture
def manager(folder):
    one = managers.Manager(folder)
    yield one
    one.close()


def is_made(state, owner):
    state.mkdir(mode=0o700)
    os.chown(state, owner, owner)


@needs_root
def test_what_cannot_is_kept_for_the_next_daemon(daemon, manager, fake, folder):
    """Who may not make the folder anew has the file itself kept, and the next daemon goes on with that."""
    parent = pathlib.Path(folder.path / "parent")
    parent.mkdir(mode=0o755)
    state = parent / "state"
    is_made(state, NOBODY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / "runtime.sock"))
        os.chmod(folder / "runtime.sock", 0o666)
        listener.listen(100)
        one = daemon([HELD], state=state, user=NOBODY, manager=manager, passed={"runtime": listener},
                     listen=[listen(folder)])
        runtime = held(one, fake)
        shutil.rmtree(state)
        one.wait("alarm records on: .*the folder was removed, and it cannot be put right .*systemd-tmpfiles --create")
        manager.until(lambda kept: "r-records" in kept)
        # Who comes meanwhile is served, and remembered.
        other = held(one, fake)
        start = one.mark()
        is_made(state, 0)
        one.wait("another one than before, and it cannot be put right .*: it has to belong to the daemon's user", start)
        one.kill()
        os.chown(state, NOBODY, NOBODY)
        one.start()
        assert one.status()["records"] == "trusted"
        for each in (runtime, other):
            one.until(each.pid, lambda seen: seen["state"] == "held")
        manager.until(lambda kept: "r-records" not in kept)
        assert one.alarms() == []
        for each in (runtime, other):
            one.post(f"/v1/runtimes/pid:{each.pid}/resume", {})
            assert each.commands()[-1] == "resume"


def test_plans_by_earlier_policies_go_on(daemon, fake):
    """What was in force when a runtime came is with the records again, however often there was another one since."""
    one = daemon([HELD], on_stop="keep")
    waiting = held(one, fake)
    one.policy([])
    assert one.reload()
    one.kill()
    one.start()
    one.receipt(waiting.pid, "held")
    one.policy([rule("other", {"args": "other"}, env={"A": "2"})])
    assert one.reload()
    folder_removed(one.state)
    one.wait("alarm records on: of the state folder .*; it was put right")
    one.kill()
    one.start()
    one.receipt(waiting.pid, "held")
    one.post(f"/v1/runtimes/pid:{waiting.pid}/resume", {})
    assert waiting.commands()[-1] == "resume"
