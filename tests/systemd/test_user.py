# SPDX-License-Identifier: Apache-2.0
"""An instance of a user's own, under the manager of a user who lingers: for his apps, and for nobody else's."""

import json
import pathlib
import shutil
import signal
import stat

import inside
import pytest
from apps import CORECLR, WHOLE, told, whole_rule
from inside import SERVICE, run

HELD = {"name": "held", "match": {"args": "held"}, "startup_hooks": [{"path": "/nowhere/Hook.dll"}],
        "on_failure": "hold", "hold_limit": "10m"}
SLOW = {"name": "slow", "match": {"args": "slow"}, "env": {"A": "1", "B": "2", "C": "3"}, "deadline": "5m",
        "command_timeout": "1m"}


@pytest.fixture
def user(service, somebody):
    """The system's instance does not run."""
    yield somebody
    somebody.systemctl("stop", SERVICE, status=None)
    somebody.systemctl("reset-failed", status=None)
    shutil.rmtree(somebody.units / f"{SERVICE}.d", ignore_errors=True)
    shutil.rmtree(somebody.folder_of_sockets, ignore_errors=True)
    somebody.systemctl("daemon-reload")


def test_it_is_ready_when_it_is_started(user, fake):
    """Without a policy: everybody who comes is listed and resumed. It needs no right and no root."""
    daemon = inside.status_of(user.start())
    assert user.is_active()
    assert {int(one) for one in daemon["Uid"].split()} == {user.uid}
    assert (int(daemon["CapEff"], 16), daemon["NoNewPrivs"]) == (0, "1")
    assert json.loads(user.ctl("--json", "status"))["user_instance"] is True
    runtime = fake(user.port, **user.own)
    assert runtime.commands() == ["resume"]
    assert inside.until(lambda: user.runtimes(pid=runtime.pid, state="running"))[0]["outcome"] == "untouched"
    inside.until(lambda: user.prop(SERVICE, "StatusText"), lambda text: text.startswith("0 runtimes wait, 1 run; "))
    assert user.as_himself("systemd-analyze", "--user", "verify", "--man=no", SERVICE) == ""


def test_it_is_for_nobody_else(user, fake):
    """Others do not reach its sockets."""
    user.start()
    assert stat.S_IMODE(user.folder_of_sockets.stat().st_mode) == 0o700
    for name in ("runtime.sock", "control.sock"):
        assert stat.S_IMODE((user.folder_of_sockets / name).stat().st_mode) == 0o600
    ask = ["diagportctl", "--socket", str(user.folder_of_sockets / "control.sock"), "status"]
    user.as_himself(*ask)
    run("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", *ask, status=3)
    other = fake(user.port, "message-after=100", user=65534, group=65534, extra_groups=[])
    other.told_pause()
    assert fake(user.port, **user.own).commands() == ["resume"]
    assert json.loads(user.ctl("--json", "status"))["runtimes_seen"] == 1


def test_real_programs_as_units_of_his(user, start, rig):
    user.start(whole_rule(rig, name="planned", primer="never", match={"exe": "*/dotnet"}))
    for app in [start(name, f"app-{name}", manager=user, ports=user.port) for name in CORECLR]:
        assert told(app) == WHOLE
        (seen,) = user.runtimes(pid=app.pid)
        assert (seen["rule"], seen["outcome"], seen["unit"]) == ("planned", "applied", f"user@{user.uid}.service")
        app.finish()


ENDS = {
    "killed": lambda user, pid: inside.signal(signal.SIGKILL, pid),
    "restarted": lambda user, pid: user.systemctl("restart", SERVICE),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_plan_goes_on(user, fake, how):
    """After a crash, or a restart where the policy says so, each step comes once."""
    before = user.start(SLOW, HELD, on_stop="keep")
    runtime = fake(user.port, "stop-before-reply=set-env@2", arguments=["slow"], **user.own)
    runtime.stands()
    held = fake(user.port, arguments=["held"], **user.own)
    inside.until(lambda: user.runtimes(pid=held.pid, state="held"))
    inside.until(lambda: int(user.prop(SERVICE, "NFileDescriptorStore")), lambda n: n == 1)
    ENDS[how](user, before)
    user.next_pid(before)
    runtime.thaw()
    commands = [command for command in runtime.commands() if command.startswith("env")]
    # The answer that was not read is asked for again, and nothing else.
    assert commands in (["env A=1", "env B=2", "env C=3"], ["env A=1", "env B=2", "env B=2", "env C=3"])
    seen = inside.until(lambda: user.runtimes(pid=runtime.pid, state="running"))
    assert seen[0]["outcome"] == "applied"
    inside.until(lambda: user.runtimes(pid=held.pid, state="held"))
    user.ctl("resume", f"pid:{held.pid}")
    assert [command["connection"] for command in held.report()["commands"]] == [1]


@pytest.mark.parametrize("how", ["stop", "restart"])
def test_who_waits_is_resumed_at_a_stop(user, fake, how):
    """Its sockets are its own and go with it, so nobody may wait for the next one."""
    user.start(HELD)
    held = fake(user.port, arguments=["held"], **user.own)
    inside.until(lambda: user.runtimes(pid=held.pid, state="held"))
    user.systemctl(how, SERVICE)
    assert held.commands()[-1] == "resume"
    assert user.is_active() == (how == "restart") == pathlib.Path(user.port).exists()


def test_many_restarts_are_no_failure(user, fake):
    user.start()
    for _ in range(12):
        user.systemctl("restart", SERVICE)
    assert user.is_active()
    assert fake(user.port, **user.own).commands() == ["resume"]


def test_a_loop_that_stands_is_started_anew(user, fake):
    before = user.start(SLOW)
    inside.signal(signal.SIGSTOP, before)
    runtime = fake(user.port, arguments=["slow"], **user.own)
    user.next_pid(before)
    assert runtime.commands()[-4:] == ["env A=1", "env B=2", "env C=3", "resume"]


def test_reload_gives_the_verdict(user):
    user.start(SLOW)
    user.systemctl("reload", SERVICE)
    user.policy.write_text("version: 1\nrules: 3\n")
    user.systemctl("reload", SERVICE, status=1)
    assert user.is_active()
