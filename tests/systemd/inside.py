# SPDX-License-Identifier: Apache-2.0
"""What tests inside a booted systemd share: units, the daemon as a service, its journal."""

import json
import os
import pathlib
import pwd
import socket
import subprocess
import time

from harness import Http
from lines import TIMEOUT

SERVICE = "diagportd.service"
SOCKET = "diagportd.socket"
CONTROL_SOCKET = "diagportd-control.socket"
RESCUE = "diagport-rescue.service"
METRICS = "diagport-metrics.service"
METRICS_SOCKET = "diagport-metrics.socket"
PORT = "/run/diagport/runtime.sock"
CONTROL = "/run/diagport/control.sock"
STATE = pathlib.Path("/run/diagportd")
POLICY = pathlib.Path("/etc/diagport/diagport.yaml")


def run(*command, status=0, **options):
    """What a program writes; it has to end with that status, unless that is None."""
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False, **options)
    assert status is None or ended.returncode == status, f"{command}: {ended.returncode}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def systemctl(*arguments, status=0):
    return run("systemctl", *arguments, status=status)


def prop(unit, name):
    return run("systemctl", "show", "--value", "-p", name, unit).strip()


def until(look, is_so=bool):
    """What a look shows as soon as that is so: only for what nobody tells unasked."""
    end = time.monotonic() + TIMEOUT
    while True:
        seen = look()
        if is_so(seen):
            return seen
        assert time.monotonic() < end, f"it never was so: {seen}"
        time.sleep(0.01)


def main_pid():
    return int(prop(SERVICE, "MainPID"))


def is_active(unit):
    return prop(unit, "ActiveState") == "active"


def ctl(*arguments, status=0):
    return run("diagportctl", *arguments, status=status)


def ctl_json(*arguments):
    return json.loads(ctl("--json", *arguments))


def ask(method, path, body=None):
    """What the daemon answers; as diagportctl asks, without a process for it."""
    asker = Http(CONTROL)
    try:
        asker.request(method, path, body, {"Content-Type": "application/json"})
        answer = asker.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, text
        return text
    finally:
        asker.close()


def runtimes(**filters):
    """Those that the daemon knows."""
    listed = json.loads(ask("GET", "/v1/runtimes"))["runtimes"]
    return [one for one in listed if all(one[key] == value for key, value in filters.items())]


def resume(pid):
    ask("POST", f"/v1/runtimes/pid:{pid}/resume", "{}")


def write_policy(text):
    POLICY.parent.mkdir(exist_ok=True)
    POLICY.write_text(text)
    POLICY.chmod(0o644)


def write_rules(*rules, **keys):
    """A policy with these rules, which are for everybody here: what is in a container as we are, too."""
    for one in rules:
        one["match"] = {"container": "any", **one["match"]}
    write_policy(json.dumps({"version": 1, **keys, "rules": rules}))
    run("diagportd", "--check")


def drop_in(unit, name, text):
    """Lines for a unit beside its own; the `service` fixture removes them."""
    folder = pathlib.Path(f"/etc/systemd/system/{unit}.d")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.conf").write_text(text)
    systemctl("daemon-reload")


class Journal:
    """What is written to the journal from now on."""

    def __init__(self):
        run("journalctl", "--sync")
        cursor = run("journalctl", "-n0", "--show-cursor").split("cursor: ")[-1].strip()
        fields = dict(part.split("=", 1) for part in cursor.split(";"))
        self.start = int(fields["m"], 16)

    def entries(self, *matches):
        """Those that match; --after-cursor= would skip the first of them where the entry at the cursor does not."""
        run("journalctl", "--sync")
        found = map(json.loads, run("journalctl", "-b", "-o", "json", *matches).splitlines())
        return [entry for entry in found if int(entry["__MONOTONIC_TIMESTAMP"]) > self.start]

    def messages(self, *matches):
        return [entry.get("MESSAGE", "") for entry in self.entries(*matches)]


def connect(path=PORT):
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(path)
    return peer


def status_of(pid):
    """The fields of /proc/PID/status."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def uid_of(name):
    return pwd.getpwnam(name).pw_uid


def children_of(pid):
    return [int(one) for one in run("pgrep", "-P", str(pid), status=None).split()]


def signal(number, pid):
    os.kill(pid, number)
