# SPDX-License-Identifier: Apache-2.0
"""Real .NET programs as services: what their units may have, what makes them wait for ever, and how they are stopped."""

import os
import re

import inside
from apps import CORECLR, EVERY, NATIVEAOT, ONLY_VARIABLES, UNTOUCHED, WHOLE, told, whole_rule
from inside import PORT, SERVICE, SOCKET, systemctl
from services import PORTS

DEAF = ("8", "9", "single-file-8")

HELD = {
    "name": "held",
    "match": {"unit": "held-*.service"},
    "startup_hooks": [{"path": "/nowhere/Hook.dll"}],
    "on_failure": "hold",
    "hold_limit": "10m",
}


def plan(rig, **keys):
    return whole_rule(rig, **{"name": "planned", "match": {"unit": "app-*.service"}, "primer": "never", **keys})


def receipt(app):
    return inside.until(lambda: inside.runtimes(pid=app.pid))[0]


def is_held(app):
    return inside.until(lambda: inside.runtimes(pid=app.pid, state="held"))


SANDBOXES = {
    "user": ["User=nobody"],
    "dynamic": ["DynamicUser=yes"],
    "strict": ["DynamicUser=yes", "ProtectSystem=strict", "PrivateTmp=yes", "ProtectHome=yes", "PrivateDevices=yes"],
    "users": ["User=nobody", "PrivateUsers=yes", "PrivateNetwork=yes"],
    "families": ["User=nobody", "RestrictAddressFamilies=AF_UNIX AF_INET"],
    "proc": ["User=nobody", "ProtectProc=invisible", "ProcSubset=pid"],
    "slice": ["User=nobody", "Slice=web.slice"],
    "folder": ["User=nobody", "TemporaryFileSystem=/run", "BindReadOnlyPaths=/run/diagport"],
}


def test_sandboxes_that_let_it_through(service, start, rig):
    """Of other users, with folders and namespaces of their own: each gets all of its plan."""
    inside.write_rules(plan(rig))
    service(None)
    made = {name: start("10", f"app-{name}", *lines) for name, lines in SANDBOXES.items()}
    for name, app in made.items():
        assert told(app) == WHOLE, name
        seen = receipt(app)
        assert (seen["unit"], seen["rule"], seen["outcome"]) == (f"app-{name}.service", "planned", "applied"), name
    whole = inside.ctl_json("show", f"pid:{made['slice'].pid}")
    assert whole["attributes"]["slice"]["texts"] == ["web.slice"]
    for app in made.values():
        app.finish()


def test_every_kind_of_program(service, start, rig):
    """Where it is not required, NativeAOT is not even sent what it cannot do, some of which would kill it."""
    rule, native = plan(rig), plan(rig, required=False, name="native", match={"unit": "native-*.service"})
    del rule["profilers"]
    inside.write_rules(rule, native)
    service(None)
    made = {name: start(name, f"{'native' if name in NATIVEAOT else 'app'}-{name}", "DynamicUser=yes") for name in EVERY}
    for name, app in made.items():
        wanted = ONLY_VARIABLES if name in NATIVEAOT else {**WHOLE, "profiler": None, "profiler_notify": None}
        assert told(app) == wanted, name
        app.finish()


HIDDEN = {
    "families": ["RestrictAddressFamilies=AF_INET AF_INET6"],
    "inaccessible": ["InaccessiblePaths=/run/diagport"],
    "run": ["TemporaryFileSystem=/run"],
    # A file that was bound is not the one that is there after the socket was made anew.
    "stale": ["TemporaryFileSystem=/run", "BindReadOnlyPaths=/run/old.sock:/run/diagport/runtime.sock"],
}


def test_sandboxes_that_hide_the_socket(service, start, rig):
    """The app waits, says so after five seconds, and nobody here ever hears of it."""
    inside.write_rules(plan(rig))
    service(None)
    os.link(PORT, "/run/old.sock")
    systemctl("restart", SOCKET)
    systemctl("start", SERVICE)
    made = [start("10", f"app-{name}", "User=nobody", *lines) for name, lines in HIDDEN.items()]
    for app in made:
        app.is_told_pause()
    for app in made:
        assert app.has_said_nothing() and app.prop("ActiveState") == "active"
    assert inside.ctl_json("status")["runtimes_seen"] == 0
    # Without the cause each gets its plan.
    for app in made:
        text = app.file.read_text()
        systemctl("kill", "-s", "KILL", app.name)
        assert app.end() == ("signal", "killed", "KILL")
        app.file.write_text("".join(
            line for line in text.splitlines(True)
            if not re.match("RestrictAddress|Inaccessible|TemporaryFile|BindReadOnly", line)))
    systemctl("daemon-reload")
    for app in made:
        app.start()
        assert told(app) == WHOLE
        app.finish()
    os.unlink("/run/old.sock")


def test_a_socket_for_a_group(service, start, rig):
    inside.drop_in(SOCKET, "50-group", "[Socket]\nSocketMode=0660\nSocketGroup=diagport\n")
    systemctl("stop", SOCKET)
    inside.write_rules(plan(rig))
    service(None)
    outside = start("10", "app-outside", "User=nobody")
    member = start("10", "app-member", "User=nobody", "SupplementaryGroups=diagport")
    assert told(member) == WHOLE
    outside.is_told_pause()
    assert outside.has_said_nothing()
    assert [one["pid"] for one in inside.runtimes()] == [member.pid]
    # It tries again and again, so it is enough to let it.
    os.chmod(PORT, 0o666)
    assert told(outside) == WHOLE
    for app in (outside, member):
        app.finish()


def test_a_held_app_is_stopped(service, start, rig):
    """From .NET 10 on SIGTERM ends it at once. A suspended CoreCLR 8 or 9 swallows it, and is killed when time is over."""
    inside.write_rules(HELD)
    service(None)
    made = {name: start(name, f"held-{name}", "TimeoutStopSec=2s") for name in EVERY}
    pids = {name: app.pid for name, app in made.items() if is_held(app)}
    systemctl("stop", *(app.name for app in made.values()))
    for name, app in made.items():
        assert app.end() == (("timeout", "killed", "KILL") if name in DEAF else ("success", "killed", "TERM")), name
        assert app.has_said_nothing()
        gone = inside.until(lambda pid=pids[name]: inside.runtimes(pid=pid, state="gone"))
        assert gone[0]["resumed_at"] is None


# Readiness is told by the first line that the app writes.
NOTIFY = """#!/bin/sh
"$@" | while read -r line; do
    echo "$line"
    case $line in "{"*) systemd-notify --ready ;; esac
done
"""


def test_a_hold_counts_for_the_start_of_a_notify_service(service, start, rig, tmp_path_factory):
    script = inside.pathlib.Path("/run/notify-app")
    script.write_text(NOTIFY)
    script.chmod(0o755)
    inside.write_rules({**HELD, "name": "short", "match": {"unit": "held-short.service"}, "hold_limit": "1s"}, HELD)
    service(None)
    lines = ["Type=notify", "NotifyAccess=all", "PassEnvironment=PATH"]
    long = start("10", "held-long", *lines, "TimeoutStartSec=3s", start=False)
    short = start("10", "held-short", *lines, "TimeoutStartSec=60s", start=False)
    for app in (long, short):
        app.file.write_text(app.file.read_text().replace("ExecStart=", f"ExecStart={script} "))
    systemctl("daemon-reload")
    long.start()
    systemctl("start", short.name)
    assert told(short) == UNTOUCHED
    assert short.prop("ActiveState") == "active"
    # Nobody but its own unit can give it more time: the hold has to be shorter than that.
    assert long.end()[0] == "timeout"
    assert long.has_said_nothing()
    short.finish()


# How it is switched on.

def test_drop_ins_for_one_service_and_for_a_name(service, start, rig):
    rule = plan(rig)
    rule["match"] = {"unit": "payments-*.service"}
    inside.write_rules(rule)
    service(None)
    example = next(inside.pathlib.Path("/usr/local/share/doc").rglob("one-service.conf")).read_text()
    inside.drop_in("payments-.service", "50-diagport", example)
    for name in ("payments-api", "payments-web-front"):
        app = start("10", name, "User=nobody", ports=None)
        assert told(app) == WHOLE
        app.finish()
    other = start("10", "invoices", "User=nobody", ports=None)
    assert told(other) == UNTOUCHED
    assert not inside.runtimes(pid=other.pid)
    other.finish()
    inside.drop_in("invoices.service", "50-diagport", example)
    other = start("10", "invoices", "User=nobody", ports=None)
    assert told(other) == UNTOUCHED
    assert receipt(other)["outcome"] == "untouched"
    other.finish()
    # What has a name that sorts later wins.
    inside.drop_in("payments-.service", "60-off", f"[Service]\nUnsetEnvironment={PORTS}\n")
    app = start("10", "payments-api", "User=nobody", ports=None)
    assert told(app) == UNTOUCHED
    assert not inside.runtimes(pid=app.pid)
    app.finish()


def test_a_held_app_waits_over_a_stop_of_the_daemon(service, start, rig):
    """Its socket is there, so a stop of the service alone is a restart: who comes back starts the next one."""
    inside.write_rules(HELD)
    before = service(None)
    made = [start(name, f"held-{name}", "DynamicUser=yes") for name in CORECLR]
    for app in made:
        is_held(app)
    systemctl("stop", SERVICE)
    inside.until(inside.main_pid, lambda pid: pid not in (0, before))
    for app in made:
        is_held(app)
        assert app.has_said_nothing()
        inside.resume(app.pid)
        assert told(app) == UNTOUCHED
        app.finish()
