# SPDX-License-Identifier: Apache-2.0
"""A daemon that cannot start, and a socket that is stopped: the apps run, and are not planned later."""

import signal

import inside
from inside import PORT, RESCUE, SERVICE, SOCKET, systemctl

PLAN = """version: 1
rules:
  - name: planned
    match: { container: any, args: planned }
    env: { A: "1", B: "2" }
    deadline: 5m
  - name: held
    match: { container: any, args: held }
    startup_hooks: [ { path: /nowhere/Hook.dll } ]
    on_failure: hold
    hold_limit: 10m
"""

CANNOT_START = """[Service]
ExecStart=
ExecStart=/bin/false
"""


def break_daemon():
    folder = inside.pathlib.Path("/etc/systemd/system/diagportd.service.d")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "50-broken.conf").write_text(CANNOT_START)
    systemctl("daemon-reload")


def repair_daemon():
    inside.pathlib.Path("/etc/systemd/system/diagportd.service.d/50-broken.conf").unlink()
    systemctl("daemon-reload")


def test_who_is_held_runs_when_the_daemon_cannot_be_started(service, fake):
    before = service(PLAN)
    held = fake(PORT, arguments=["held"])
    inside.until(lambda: inside.runtimes(pid=held.pid, state="held"))
    break_daemon()
    inside.signal(signal.SIGKILL, before)
    late = fake(PORT, arguments=["planned"])
    assert held.commands()[-1] == "resume"
    assert late.commands() == ["resume"]
    assert inside.prop(SOCKET, "Result") == "service-start-limit-hit"
    inside.until(lambda: inside.is_active(RESCUE))
    # Repaired: nobody who runs is planned.
    repair_daemon()
    systemctl("reset-failed")
    systemctl("start", SOCKET, SERVICE)
    assert not inside.is_active(RESCUE)
    for runtime in (held, late):
        seen = inside.until(lambda pid=runtime.pid: inside.runtimes(pid=pid, state="running"))
        assert seen[0]["outcome"] in ("late", "unknown")
        assert set(runtime.finish()) <= {"resume"}
    assert fake(PORT, arguments=["planned"]).commands()[-3:] == ["env A=1", "env B=2", "resume"]


def test_who_is_held_runs_when_the_socket_is_stopped(service, fake):
    service(PLAN)
    held = fake(PORT, arguments=["held"])
    inside.until(lambda: inside.runtimes(pid=held.pid, state="held"))
    systemctl("stop", SOCKET)
    assert held.commands()[-1] == "resume"
    assert not inside.is_active(SERVICE)


def test_the_folder_of_records_stays(service, fake):
    """Through a crash, a restart, a stop and a start, a start limit and a rescue."""
    before = service(PLAN)
    inode = inside.STATE.stat().st_ino
    runtime = fake(PORT, arguments=["planned"])
    runtime.commands()
    inside.signal(signal.SIGKILL, before)
    inside.until(inside.main_pid, lambda pid: pid not in (0, before))
    systemctl("restart", SERVICE)
    systemctl("stop", SERVICE)
    systemctl("start", SERVICE)
    break_daemon()
    systemctl("kill", "-s", "KILL", SERVICE)
    inside.until(lambda: inside.is_active(RESCUE))
    repair_daemon()
    systemctl("reset-failed")
    systemctl("start", SOCKET, SERVICE)
    assert inside.STATE.stat().st_ino == inode
    seen = inside.until(lambda: inside.runtimes(pid=runtime.pid, state="running"))
    assert seen[0]["outcome"] == "late"
