# SPDX-License-Identifier: Apache-2.0
"""The units as they are installed: what they make, what they may, what systemd thinks of them."""

import os
import pathlib
import stat

import inside
from inside import CONTROL, CONTROL_SOCKET, PORT, SERVICE, SOCKET, STATE, prop, run, systemctl

UNITS = [SERVICE, SOCKET, CONTROL_SOCKET, inside.RESCUE, inside.METRICS, inside.METRICS_SOCKET]

ONE_VARIABLE = """version: 1
rules:
  - { name: all, match: { container: any, args: planned }, env: { A: "1" } }
"""


def test_the_boot_went_well(service):
    assert open(os.environ["BOOT_OUT"] + "/boot-state").read().strip() == "running"
    assert "cycle" not in run("journalctl", "-b", "--no-pager")


def test_systemd_finds_nothing_wrong(service):
    assert run("systemd-analyze", "verify", "--man=no", *UNITS, stderr=None) == ""


def test_folders_and_users_are_made(service):
    folders = {
        "/run/diagport": (0, 0o755),
        "/run/diagport/local": (inside.uid_of("diagport"), 0o755),
        str(STATE): (inside.uid_of("diagport"), 0o700),
    }
    for path, (owner, mode) in folders.items():
        found = os.stat(path)
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (owner, mode), path


def test_the_sockets_are_there_without_the_daemon(service):
    systemctl("start", SOCKET, CONTROL_SOCKET)
    assert not inside.is_active(SERVICE)
    for path in (PORT, CONTROL):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o666


def test_the_first_runtime_starts_the_daemon(service, fake):
    inside.write_policy(ONE_VARIABLE)
    systemctl("start", SOCKET, CONTROL_SOCKET)
    runtime = fake(PORT, arguments=["planned"])
    assert runtime.commands()[-2:] == ["env A=1", "resume"]
    assert inside.is_active(SERVICE)


def test_the_daemon_is_nobody(service):
    daemon = inside.status_of(service())
    assert {int(one) for one in daemon["Uid"].split()} == {inside.uid_of("diagport")}
    assert daemon["NoNewPrivs"] == "1"


def test_the_sandbox_is_tight(service):
    service()
    overall = run("systemd-analyze", "security", "--no-pager", SERVICE).splitlines()[-1]
    assert "Overall exposure level" in overall
    assert float(overall.split(":")[1].split()[0]) <= 1.0


def test_processes_of_other_users_are_read(service, fake):
    """Its environment and its program, which only their owner and the capable may see."""
    service("""version: 1
rules:
  - { name: mine, match: { container: any, env: { RING: canary }, exe: "*/fake-runtime" }, env: { A: "1" } }
""")
    runtime = fake(PORT, environment={"RING": "canary"}, user=65534, group=65534, extra_groups=[])
    assert runtime.commands()[-2:] == ["env A=1", "resume"]


def test_it_sees_whether_its_workers_move(service, fake):
    """Their folders in /proc are hidden from it, so it is given what it needs of them."""
    pid = service()
    assert fake(PORT).commands() == ["resume"]
    (parent,) = inside.children_of(pid)
    held = [os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    for worker in inside.children_of(parent):
        assert f"/proc/{worker}/status" in held


def test_the_status_says_what_there_is(service, fake):
    service("""version: 1
rules:
  - { name: held, match: { container: any, args: held }, env: { A: "1" }, on_failure: hold, hold_limit: 10m,
      startup_hooks: [ { path: /nowhere/Hook.dll } ] }
""")
    fake(PORT, arguments=["held"])
    inside.until(lambda: prop(SERVICE, "StatusText"), lambda text: text.startswith("1 runtimes wait, 0 run; policy "))
    assert "1 rules" in prop(SERVICE, "StatusText")
    assert "1 runtimes wait" in systemctl("status", "--no-pager", SERVICE)


def test_reload_gives_the_verdict(service):
    pid = service()
    inside.write_policy(ONE_VARIABLE)
    systemctl("reload", SERVICE)
    assert [rule["name"] for rule in inside.ctl_json("rules")["rules"]] == ["all"]
    inside.write_policy("version: 1\nrules: 3\n")
    systemctl("reload", SERVICE, status=1)
    assert [rule["name"] for rule in inside.ctl_json("rules")["rules"]] == ["all"]
    assert inside.is_active(SERVICE) and inside.main_pid() == pid
    inside.until(lambda: "ALARM" in prop(SERVICE, "StatusText"))


def test_stop_and_start_leave_the_sockets_alone(service):
    service()
    before = [os.stat(path).st_ino for path in (PORT, CONTROL)]
    records = os.stat(STATE).st_ino
    systemctl("stop", SERVICE)
    systemctl("start", SERVICE)
    assert [os.stat(path).st_ino for path in (PORT, CONTROL)] == before
    assert os.stat(STATE).st_ino == records
    assert list(STATE.iterdir())


def test_groups_may_ask(service):
    service("""version: 1
control: { path: /run/diagport/control.sock, read: { groups: [diagport] }, admin: { groups: [diagport-admin] } }
""")
    run("usermod", "-G", "diagport", "nobody")
    run("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--init-groups", "diagportctl", "status")
    run("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--init-groups", "diagportctl", "reload", status=3)
    run("usermod", "-G", "diagport-admin", "nobody")
    run("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--init-groups", "diagportctl", "reload")
    run("usermod", "-G", "", "nobody")
