# SPDX-License-Identifier: Apache-2.0
"""A host on which every service has the port from the boot on: who is .NET gets his plan, nobody else notices."""

import json
import os
import pathlib

import inside
import pytest
from apps import UNTOUCHED, WHOLE, told, whole_rule
from inside import CONTROL_SOCKET, PORT, SERVICE, SOCKET, run, systemctl
from services import PORTS

#: What tests/systemd/run has put there, with a rule for it in the policy.
AT_BOOT = "boot-app.service"

#: The primer is found where it was installed, so native code sees the variables, too.
PRIMED = {**WHOLE, "profiler": "1:one:one", "profiler_notify": "1:one:one"}
RULE = {"name": "everybody", "match": {"exe": "*"}}


@pytest.fixture
def plan(service, rig):
    """A daemon that sets up everybody."""
    inside.write_rules(whole_rule(rig, **RULE))
    service(None)


def environment_of(pid):
    pairs = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(pair.decode().split("=", 1) for pair in pairs if pair)


def of_the_system():
    """Services that run and are neither ours nor of a test."""
    listed = json.loads(systemctl("list-units", "--type=service", "--state=running", "-o", "json"))
    return {one["unit"] for one in listed} - {SERVICE, AT_BOOT, "boot-test.service"}


def verified():
    """What systemd says of the whole boot."""
    return run("sh", "-c", "systemd-analyze verify --man=no multi-user.target 2>&1", status=None)


# The first test, since the others have the daemon stopped.
def test_the_boot():
    """Nothing failed and nothing was left out, and an app that is started by it, without an ordering, has its plan."""
    assert (pathlib.Path(os.environ["BOOT_OUT"]) / "boot-state").read_text().strip() == "running"
    assert systemctl("list-units", "--failed", "--no-legend") == ""
    for unit in (SOCKET, CONTROL_SOCKET, SERVICE, AT_BOOT):
        assert inside.is_active(unit), unit
    journal = run("journalctl", "-b", "--no-pager")
    assert "ordering cycle" not in journal and "deleted to break" not in journal
    (app,) = inside.runtimes()
    assert (app["unit"], app["rule"], app["outcome"]) == (AT_BOOT, "booted", "applied")


def test_nobody_else_notices():
    """Those that are not .NET have the variable, and that is all."""
    others = of_the_system()
    assert {"dbus.service", "systemd-journald.service", "systemd-logind.service"} <= others
    for unit in others:
        assert inside.prop(unit, "NRestarts") == "0", unit
    # This one was certainly started by a manager that had read its configuration.
    logind = int(inside.prop("systemd-logind.service", "MainPID"))
    assert environment_of(logind)[PORTS] == PORT
    assert inside.ctl_json("status")["runtimes_seen"] == 1


def test_there_is_no_ordering_cycle(service):
    assert "ordering cycle" not in verified()
    # It would be seen: this is what must not be done.
    inside.drop_in("service", "10-diagport", f"[Unit]\nWants={SOCKET}\nAfter={SOCKET}\n")
    assert "ordering cycle" in verified()


def test_an_app_that_says_nothing_has_its_plan(plan, start):
    app = start("10", "app", "DynamicUser=yes", ports=None)
    assert told(app) == PRIMED
    (seen,) = inside.runtimes(pid=app.pid)
    assert (seen["rule"], seen["outcome"]) == ("everybody", "applied")
    app.finish()


def test_an_app_with_a_port_of_its_own_keeps_it(plan, start):
    """As one that some other tool looks after, which is not there now."""
    own = "/run/of-another-tool.sock,nosuspend"
    app = start("10", "app", ports=own)
    assert told(app) == UNTOUCHED
    assert environment_of(app.pid)[PORTS] == own
    # The next one has come, and it has not.
    assert told(start("10", "next", ports=None)) == PRIMED
    assert not inside.runtimes(pid=app.pid)
    app.finish()


def test_an_app_is_left_out(plan, start):
    app = start("10", "app", f"UnsetEnvironment={PORTS}", ports=None)
    assert told(app) == UNTOUCHED
    assert PORTS not in environment_of(app.pid)
    # By a drop-in too, as its operator would do it.
    app.finish()
    inside.drop_in("app.service", "50-diagport", f"[Service]\nUnsetEnvironment={PORTS}\n")
    app = start("10", "app", ports=None)
    assert told(app) == UNTOUCHED
    assert not inside.runtimes(pid=app.pid)
    app.finish()


def test_apps_of_users_have_it_too(plan, start, somebody):
    """Their managers are services of the host, and hand on what those have."""
    app = start("10", "app-own", manager=somebody, ports=None)
    assert told(app) == PRIMED
    (seen,) = inside.runtimes(pid=app.pid)
    assert (seen["unit"], seen["uid"]) == (f"user@{somebody.uid}.service", somebody.uid)
    app.finish()


def test_it_is_switched_off_again(plan, start):
    """Without the file and with a reload of the manager, for whoever is started then; who runs is not touched."""
    switch = pathlib.Path("/etc/systemd/system.conf.d/50-diagport.conf")
    text = switch.read_text()
    before = start("10", "before", ports=None)
    assert told(before) == PRIMED
    switch.unlink()
    try:
        systemctl("daemon-reload")
        after = start("10", "after", ports=None)
        assert told(after) == UNTOUCHED
        assert not inside.runtimes(pid=after.pid)
        assert before.prop("ActiveState") == "active"
    finally:
        switch.write_text(text)
        systemctl("daemon-reload")
