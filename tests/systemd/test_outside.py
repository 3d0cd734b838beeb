# SPDX-License-Identifier: Apache-2.0
"""The script for runit and s6, which is nothing but a program that stays in the foreground."""

import os
import pathlib
import shutil
import signal
import subprocess

import inside
import pytest
from inside import CONTROL, PORT
from lines import TIMEOUT, Lines

RUN = pathlib.Path("/usr/local/share/doc/diagport/examples/init/run")

# As a service manager starts it; the folders are as after a boot.
POLICY = """version: 1
listen: [ { name: runtime, path: /run/diagport/runtime.sock, mode: "0666" } ]
control: { path: /run/diagport/control.sock, mode: "0666" }
rules:
  - { name: mine, match: { container: any, env: { RING: canary } }, env: { RING: "seen" } }
"""


@pytest.fixture
def supervised(service):
    inside.write_policy(POLICY)
    for folder in ("/run/diagport", "/run/diagportd"):
        shutil.rmtree(folder)
    environment = {"PATH": os.environ["PATH"]}
    process = subprocess.Popen([str(RUN)], env=environment, stdout=subprocess.PIPE)
    lines = Lines(process.stdout)
    lines.wait("diagportd: started: ")
    yield process, lines
    if process.poll() is None:
        process.kill()
    process.wait(TIMEOUT)
    for folder in ("/run/diagport", "/run/diagportd"):
        shutil.rmtree(folder)
    inside.run("systemd-tmpfiles", "--create")


def test_it_serves_as_nobody_and_ends_when_asked_to(supervised, fake):
    process, lines = supervised
    daemon = inside.status_of(process.pid)
    assert {int(one) for one in daemon["Uid"].split()} == {inside.uid_of("diagport")}
    assert daemon["NoNewPrivs"] == "1"
    # Of another user: only who may look sees the environment.
    runtime = fake(PORT, environment={"RING": "canary"}, user=65534, group=65534, extra_groups=[])
    assert runtime.commands()[-2:] == ["env RING=seen", "resume"]
    inside.ctl("reload")
    process.send_signal(signal.SIGHUP)
    lines.wait("diagportd: reloaded: ", times=2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT) == 0
    assert not os.path.exists(PORT) and not os.path.exists(CONTROL)
