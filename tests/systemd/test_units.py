# SPDX-License-Identifier: Apache-2.0
"""The units as they are installed: what they make, what they may, what systemd thinks of them."""

import os
import pathlib
import shutil
import stat

import inside
import pytest
import services
from inside import CONTROL, CONTROL_SOCKET, PORT, SERVICE, SOCKET, STATE, prop, run, systemctl
from runtimes import FAKE

UNITS = [SERVICE, SOCKET, CONTROL_SOCKET, inside.RESCUE, inside.METRICS, inside.METRICS_SOCKET]

ONE_VARIABLE = """version: 1
rules:
  - { name: all, match: { container: any, args: planned }, env: { A: "1" } }
"""


def test_the_boot_went_well(service):
    assert open(os.environ["BOOT_OUT"] + "/boot-state").read().strip() == "running"
    assert "cycle" not in run("journalctl", "-b", "--no-pager")


def test_systemd_finds_nothing_wrong(service):
    assert run("sh", "-c", "systemd-analyze verify --man=no \"$@\" 2>&1", "sh", *UNITS) == ""


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
    assert {int(daemon[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {0}


def test_the_sandbox_is_tight(service):
    service()
    overall = run("systemd-analyze", "security", "--no-pager", SERVICE).splitlines()[-1]
    assert "Overall exposure level" in overall
    assert float(overall.split(":")[1].split()[0]) <= 1.0


LOOK = {
    "name": "mine",
    "match": {"env": {"RING": "canary"}, "exe": "*/fake-runtime", "cwd": "/usr"},
    "env": {"A": "1"},
}

OWNERS = {
    "root": [],
    "user": ["User=nobody"],
    "dynamic": ["DynamicUser=yes"],
    "users": ["User=nobody", "PrivateUsers=yes"],
    "ambient": ["User=nobody", "AmbientCapabilities=CAP_NET_ADMIN"],
    "strict": ["DynamicUser=yes", "PrivateTmp=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateDevices=yes"],
    "proc": ["User=nobody", "ProtectProc=invisible", "ProcSubset=pid", "NoNewPrivileges=yes"],
}


@pytest.fixture
def known(service):
    """Starts runtimes as units; what the daemon has found out of each, and of its files, once it runs."""
    made = []
    # Where those with a /tmp of their own see it.
    program = shutil.copy(FAKE, "/usr/local/bin")

    def start(name, *lines):
        environment = {"FAKE_BEHAVE": "run-for=signal", "RING": "canary"}
        made.append(services.Service(f"app-{name}", [program], "WorkingDirectory=/usr", *lines, environment=environment))
        app = made[-1]
        seen = inside.until(lambda: inside.runtimes(pid=app.pid, state="running"))[0]
        return inside.ctl_json("show", seen["id"])

    yield start
    for one in made:
        one.remove()


def test_processes_of_all_kinds_are_read(known, service):
    """Their environment, program and folder, which only their owner and the capable may see."""
    inside.write_rules(LOOK)
    service(None)
    for name, lines in OWNERS.items():
        seen = known(name, *lines)
        assert (seen["rule"], seen["outcome"]) == ("mine", "applied"), name


BOTH = "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH"

#: What its workers may, and whether they see a process of another user at all, and its environment.
RIGHTS = {
    "both": (BOTH, [], True, True),
    "first": ("CAP_SYS_PTRACE", [], True, False),
    "second": ("CAP_DAC_READ_SEARCH", [], False, False),
    "none": ("", [], False, False),
    "users": (BOTH, ["PrivateUsers=yes"], False, False),
}


def test_it_has_no_right_too_many(known, service):
    """Without one of its two, or where those are of no use, it sees less, and serves all the same."""
    inside.write_rules(LOOK)
    for name, (rights, lines, sees_process, sees_environment) in RIGHTS.items():
        inside.drop_in(SERVICE, "50-test", "\n".join([
            "[Service]", "AmbientCapabilities=", f"AmbientCapabilities={rights}", "CapabilityBoundingSet=",
            f"CapabilityBoundingSet={rights}", *lines, ""]))
        systemctl("stop", SERVICE)
        service(None)
        seen = known(name, "User=nobody")
        states = {key: seen["attributes"][key]["state"] == "present" for key in ("exe", "cwd", "args", "unit")}
        assert set(states.values()) == {sees_process}, (name, states)
        # Of its environment it is only kept what it decided.
        assert (seen["rule"] == "mine") == sees_environment, name


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
