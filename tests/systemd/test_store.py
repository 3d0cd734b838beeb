# SPDX-License-Identifier: Apache-2.0
"""SIGKILL for the daemon with something in flight, or somebody held: systemd keeps the connections for the next one."""

import json
import os
import pathlib
import signal

import images
import inside
import pytest
from harness import NOBODY, NOGROUP
from inside import PORT, SERVICE, prop, systemctl

CLSID = "{cf0d821e-299b-5307-a3d8-b283c03916dd}"

HELD = """version: 1
rules:
  - name: held
    match: { container: any, exe: "*/fake-runtime" }
    startup_hooks: [ { path: /nowhere/Hook.dll } ]
    on_failure: hold
    hold_limit: 10m
"""

def plan(folder):
    """With a hook and a profiler, whose files every daemon sees."""
    folder.chmod(0o755)
    hook, profiler = folder / "Hook.dll", folder / "profiler.so"
    hook.write_bytes(images.hook())
    profiler.write_bytes(images.profiler())
    planned = {
        "name": "planned",
        "match": {"container": "any", "exe": "*/fake-runtime"},
        "env": {"A": "1"},
        "profilers": [{"clsid": CLSID, "path": str(profiler)}],
        "startup_hooks": [{"path": str(hook)}],
        "primer": "never",
        "deadline": "5m",
        "command_timeout": "1m",
        "on_lost": "fail",
    }
    return json.dumps({"version": 1, "rules": [planned]})


def n_kept():
    return int(prop(SERVICE, "NFileDescriptorStore"))


def is_killed():
    before = inside.main_pid()
    inside.signal(signal.SIGKILL, before)
    inside.until(inside.main_pid, lambda pid: pid not in (0, before))


@pytest.fixture
def folder(tmp_path_factory):
    """Everybody may come to it."""
    folder = tmp_path_factory.mktemp("store")
    for one in (folder, *folder.parents[:2]):
        one.chmod(0o755)
    return folder


@pytest.mark.parametrize("point", ["hook", "startup-profiler"])
@pytest.mark.parametrize("is_answered", [False, True])
def test_the_answer_in_flight_is_read(service, fake, folder, point, is_answered):
    """It is given before the next daemon is there, or after that."""
    service(plan(folder))
    runtime = fake(PORT, f"stop-before-reply={point}@1")
    runtime.stands()
    assert inside.until(n_kept) == 1
    inside.signal(signal.SIGKILL, inside.main_pid())
    if is_answered:
        runtime.thaw()
    inside.until(lambda: inside.runtimes(pid=runtime.pid))
    runtime.thaw()
    commands = runtime.commands()
    assert [sum(command.startswith(kind) for command in commands) for kind in ("env", "profiler", "hook", "resume")] == [
        1, 1, 1, 1]
    (seen,) = inside.until(lambda: inside.runtimes(pid=runtime.pid, state="running"))
    assert seen["outcome"] == "applied"
    inside.until(n_kept, lambda n: n == 0)


def test_who_is_held_does_not_notice(service, fake):
    service(HELD)
    runtime = fake(PORT)
    inside.until(lambda: inside.runtimes(pid=runtime.pid, state="held"))
    assert inside.until(n_kept) == 1
    for how in (is_killed, lambda: systemctl("restart", SERVICE), is_killed):
        how()
        inside.until(lambda: inside.runtimes(pid=runtime.pid, state="held"))
        assert n_kept() == 1
    inside.resume(runtime.pid)
    # Neither refused nor reset: all of it came by its first connection.
    assert [command["connection"] for command in runtime.report()["commands"]] == [1]
    inside.until(n_kept, lambda n: n == 0)


def test_a_stop_empties_it(service, fake):
    service(HELD)
    runtime = fake(PORT)
    inside.until(lambda: inside.runtimes(pid=runtime.pid, state="held"))
    assert inside.until(n_kept) == 1
    systemctl("stop", SERVICE)
    # It connects again, which starts the daemon, which holds it.
    inside.until(lambda: inside.is_active(SERVICE) and inside.runtimes(pid=runtime.pid, state="held"))
    inside.resume(runtime.pid)
    assert [command["connection"] for command in runtime.report()["commands"]] == [2]


@pytest.mark.parametrize(("store", "n"), [(1024, 256), (8, 8)])
def test_more_than_there_is_room_for(service, fleet, store, n):
    """One user has a quarter of what the daemon keeps; and systemd may take less than the daemon thinks."""
    inside.drop_in(SERVICE, "50-test", f"[Service]\nFileDescriptorStoreMax={store}\n")
    service(HELD)
    many = fleet(PORT, 300, "--together")
    held = inside.until(lambda: inside.runtimes(state="held"), lambda held: len(held) == 300)
    inside.until(n_kept, lambda kept: kept == n)
    is_killed()
    inside.until(lambda: inside.runtimes(state="held"), lambda held: len(held) == 300)
    for one in held:
        inside.resume(one["pid"])
    assert many.summary()["resumed"] == 300
    inside.until(n_kept, lambda kept: kept == 0)


SHORT = """
  - name: short
    match: { container: any, args: short }
    startup_hooks: [ { path: /nowhere/Hook.dll } ]
    on_failure: hold
    hold_limit: 3s
"""


def test_a_manager_that_stands_still_stops_nobody(service, fake, fleet):
    """It takes 512 notifications and no more; of 600 that are held, those that are kept alone make a thousand."""
    before = service(HELD.replace("\n  - name: held", SHORT + "  - name: held", 1))
    n_before = int(prop(SERVICE, "WatchdogTimestampMonotonic"))
    freeze = pathlib.Path(os.environ["BOOT_OUT"]) / "freeze"
    freeze.touch()
    try:
        inside.until(lambda: inside.status_of(1)["State"].startswith("T"))
        many = [fleet(PORT, 300, "--together"), fleet(PORT, 300, "--together", user=NOBODY, group=NOGROUP)]
        held = inside.until(lambda: inside.runtimes(state="held"), lambda held: len(held) == 600)
        # Its loop goes on, for longer than the watchdog waits.
        fake(PORT, arguments=["short"]).commands()
        for one in held:
            inside.resume(one["pid"])
        assert [one.summary()["resumed"] for one in many] == [300, 300]
    finally:
        freeze.unlink()
    inside.until(lambda: int(prop(SERVICE, "WatchdogTimestampMonotonic")), lambda at: at > n_before)
    inside.until(n_kept, lambda n: n == 0)
    assert (inside.main_pid(), prop(SERVICE, "NRestarts")) == (before, "0")
    assert fake(PORT, arguments=["short"]).commands()[-1] == "resume"
