# SPDX-License-Identifier: Apache-2.0
"""Files of the service that somebody removes, replaces or makes read-only, and a disk that is full.

Each is an alarm, nobody who waits or can connect goes without, and what the alarm says puts it right.
"""

import os
import pathlib
import shutil
import signal
import socket

import inside
import pytest
from inside import CONTROL, CONTROL_SOCKET, PORT, SERVICE, SOCKET, STATE, systemctl

POLICY = """version: 1
rules:
  - name: held
    match: { container: any, args: held }
    env: { A: "1" }
    startup_hooks: [ { path: /nowhere/Hook.dll } ]
    on_failure: hold
    hold_limit: 10m
  - name: planned
    match: { container: any, args: planned }
    env: { A: "1", B: "2" }
    deadline: 5m
    command_timeout: 1m
"""

WHOLE = ["env A=1", "env B=2", "resume"]


def make_folders():
    inside.run("systemd-tmpfiles", "--create", "diagport.conf")


@pytest.fixture
def broken(service):
    """The service with its policy; whatever is done to its files is undone."""
    yield service
    while inside.run("findmnt", "--mountpoint", str(STATE), status=None):
        inside.run("umount", "--lazy", str(STATE))
    make_folders()


class Waiting:
    """One who is held and one who has not answered yet: they were there before."""

    def __init__(self, fake):
        self.held = fake(PORT, arguments=["held"])
        inside.until(lambda: inside.runtimes(pid=self.held.pid, state="held"))
        self.planned = fake(PORT, "stop-before-reply=set-env@1", arguments=["planned"])
        self.planned.stands()

    def go_on(self):
        """None was forgotten, resumed early, or set up again."""
        assert inside.until(lambda: inside.runtimes(pid=self.held.pid))[0]["state"] == "held"
        self.planned.thaw()
        commands = self.planned.commands()
        assert commands[-1] == "resume" and commands.count("env B=2") == 1
        (seen,) = inside.until(lambda: inside.runtimes(pid=self.planned.pid, state="running"))
        assert seen["outcome"] == "applied"
        inside.ctl("resume", f"pid:{self.held.pid}")
        assert self.held.commands()[-1] == "resume"


def look():
    """Now, and not within five seconds."""
    inside.signal(signal.SIGHUP, inside.main_pid())


def whys(name):
    return [alarm["why"] for alarm in inside.ctl_json("status")["alarms"] if alarm["name"] == name]


def is_raised(name, *parts):
    """Of those that are on it is the one, for people and for machines; all of that is said."""
    (why,) = inside.until(lambda: whys(name), lambda found: found and all(part in found[0] for part in parts))
    assert why in inside.ctl("status")
    assert f'diagport_alarm{{alarm="{name}"}} 1' in inside.ctl("metrics")
    inside.until(lambda: "ALARM" in inside.prop(SERVICE, "StatusText"))


def is_over(name):
    inside.until(lambda: not whys(name))
    assert f'diagport_alarm{{alarm="{name}"}} 0' in inside.ctl("metrics")


def is_served(fake):
    assert fake(PORT, arguments=["planned"]).commands()[-3:] == WHOLE


# Sockets.


def remove(path):
    os.unlink(path)


def replace(path):
    """By one that nobody listens on any more."""
    os.unlink(path)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path)


@pytest.mark.parametrize("happens", [remove, replace], ids=["removed", "replaced"])
def test_the_file_of_the_port(broken, fake, happens):
    broken(POLICY)
    waiting = Waiting(fake)
    happens(PORT)
    look()
    is_raised("sockets", PORT, "removed" if happens is remove else "replaced", f"systemctl restart {SOCKET}")
    # A reload cannot help, and says nothing else.
    systemctl("reload", SERVICE)
    assert whys("sockets")
    systemctl("restart", SOCKET)
    is_over("sockets")
    is_served(fake)
    waiting.go_on()


def test_the_file_of_the_control_socket(broken, fake):
    before = broken(POLICY)
    waiting = Waiting(fake)
    journal = inside.Journal()
    remove(CONTROL)
    look()
    (line,) = inside.until(lambda: [line for line in journal.messages(f"_PID={before}") if line.startswith("alarm sockets on")])
    assert CONTROL in line and f"(systemctl restart {SOCKET} {CONTROL_SOCKET})" in line
    is_served(fake)
    systemctl("restart", SOCKET, CONTROL_SOCKET)
    is_over("sockets")
    waiting.go_on()


def test_the_folder_of_the_sockets(broken, fake):
    """Whoever wants to connect meanwhile waits, and finds the new one."""
    broken(POLICY)
    waiting = Waiting(fake)
    shutil.rmtree("/run/diagport")
    look()
    early = fake(PORT, arguments=["planned"])
    inside.until(lambda: "ALARM" in inside.prop(SERVICE, "StatusText"))
    make_folders()
    systemctl("restart", SOCKET, CONTROL_SOCKET)
    assert early.commands()[-1] == "resume"
    is_over("sockets")
    is_served(fake)
    waiting.go_on()


# Records.


def test_the_file_of_records_is_removed(broken, fake):
    """Nobody has to ask for it to be looked at."""
    broken(POLICY)
    waiting = Waiting(fake)
    (STATE / "records").unlink()
    is_raised("records", "the file of records was removed; it was put right")
    is_over("records")
    inside.signal(9, inside.main_pid())
    inside.until(lambda: inside.prop(SERVICE, "NRestarts") == "1" and inside.is_active(SERVICE))
    is_served(fake)
    waiting.go_on()


#: What the service's ProtectSystem=strict makes of /run where all file systems obey it.
TIGHT = f"[Service]\nReadOnlyPaths=/run\nReadWritePaths={STATE}\n"


@pytest.mark.parametrize("then", ["it is made again", "out of reach", "it stays away"])
def test_the_state_folder_is_removed(broken, fake, then):
    """Where the daemon's sandbox ends at the folder that it was started with, the file itself goes over to the next one."""
    if then == "out of reach":
        inside.drop_in(SERVICE, "50-test", TIGHT)
    broken(POLICY)
    waiting = Waiting(fake)
    shutil.rmtree(STATE)
    look()
    is_raised("records", "the folder was removed, and it cannot be put right", "systemd-tmpfiles --create diagport.conf",
              f"systemctl restart {SERVICE}")
    is_served(fake)
    if then != "it stays away":
        make_folders()
        look()
    if then == "it is made again":
        look()
        is_over("records")
        assert {"records", "last-good"} <= {file.name for file in STATE.iterdir()}
    elif then == "out of reach":
        is_raised("records", "another one than before", "sandbox", f"systemctl restart {SERVICE}")
    systemctl("restart", SERVICE)
    assert inside.ctl_json("status")["records"] == "trusted"
    look()
    if then == "it stays away":
        is_raised("records", "the folder was removed")
    else:
        is_over("records")
        assert {"records", "last-good"} <= {file.name for file in STATE.iterdir()}
    is_served(fake)
    waiting.go_on()


def make_read_only():
    """As a file system that has errors is, for whoever opens something by its name."""
    bound = pathlib.Path("/run/bound")
    bound.mkdir(exist_ok=True)
    inside.run("mount", "--bind", str(STATE), str(bound))
    inside.run("mount", "--make-private", str(bound))
    inside.run("mount", "-o", "remount,bind,ro", str(bound))
    inside.run("mount", "--bind", str(bound), str(STATE))
    inside.run("umount", str(bound))


def test_the_state_folder_is_read_only(broken, fake):
    broken(POLICY)
    waiting = Waiting(fake)
    make_read_only()
    look()
    is_raised("records", "read-only, and it cannot be put right", "make its file system writable")
    is_served(fake)
    # Nor is anybody forgotten by the next daemon.
    inside.signal(9, inside.main_pid())
    inside.until(lambda: inside.prop(SERVICE, "NRestarts") == "1" and inside.is_active(SERVICE))
    look()
    is_raised("records", "cannot be put right")
    is_served(fake)
    inside.run("umount", "--lazy", str(STATE))
    look()
    is_over("records")
    waiting.go_on()


def test_its_rights_are_taken_away(broken, fake):
    broken(POLICY)
    (STATE / "records").chmod(0o400)
    STATE.chmod(0o500)
    look()
    is_raised("records", "read-only; it was put right")
    look()
    is_over("records")
    assert (STATE.stat().st_mode & 0o777, (STATE / "records").stat().st_mode & 0o777) == (0o700, 0o600)


def mount_disk(size):
    owner = inside.uid_of("diagport")
    inside.run("mount", "-t", "tmpfs", "-o", f"size={size},mode=0700,uid={owner},gid={owner}", "none", str(STATE))


def fill_disk():
    with pytest.raises(OSError), open(STATE / "other", "wb", buffering=0) as other:
        while True:
            assert other.write(bytes(1 << 16)) > 0


def test_the_disk_is_full_at_the_start(broken, fake):
    """Nothing is applied, since nobody would know later; as soon as there is room, plans are."""
    mount_disk("12m")
    fill_disk()
    broken(POLICY)
    look()
    is_raised("records", "cannot be put right (No space left on device): make room there")
    runtime = fake(PORT, arguments=["planned"])
    assert runtime.commands() == ["resume"]
    (STATE / "other").unlink()
    for _ in range(2):
        systemctl("reload", SERVICE)
    is_over("records")
    inside.until(lambda: fake(PORT, arguments=["planned"]).commands()[-3:], lambda commands: commands == WHOLE)
    inside.signal(9, inside.main_pid())
    inside.until(lambda: inside.prop(SERVICE, "NRestarts") == "1" and inside.is_active(SERVICE))
    assert set(runtime.finish()) <= {"resume"}


def test_the_disk_fills_up_later(broken, fake):
    mount_disk("16m")
    broken(POLICY)
    waiting = Waiting(fake)
    fill_disk()
    is_served(fake)
    systemctl("restart", SERVICE)
    waiting.go_on()
    assert inside.prop(SERVICE, "NRestarts") == "0"
