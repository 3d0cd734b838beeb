# SPDX-License-Identifier: Apache-2.0
"""The daemon as the entry point of a container: process 1 of a pid namespace of its own."""

import pathlib
import signal
import subprocess

from harness import needs_namespaces, rule, until
from lines import TIMEOUT

CONTAINER = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]

OLD = {"OLD": "x"}


def process_1(one):
    """Its pid out here."""
    return int(pathlib.Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children").read_text())


def beside(one):
    """What starts a program in its namespace."""
    return ["nsenter", "--target", str(process_1(one)), "--pid", "--mount", "--root"]


def end(one):
    """As a container is stopped; unshare ends with its status."""
    subprocess.run(["kill", "-TERM", str(process_1(one))], check=True)
    one.end(0)


@needs_namespaces
def test_an_app_in_its_namespace_is_planned(daemon, fake):
    one = daemon([rule(match={"container": "any", "exe": "*"}, env={"OLD": "new"})], prefix=CONTAINER)
    assert pathlib.Path(f"/proc/{process_1(one)}/status").read_text().split("NSpid:")[1].split()[1] == "1"
    runtime = fake(one.socket, environment=OLD, prefix=beside(one), run_for="exit")
    assert runtime.commands()[-2:] == ["env OLD=new", "resume"]
    assert runtime.wait() == 0
    end(one)


@needs_namespaces
def test_an_app_elsewhere_has_no_process_and_is_resumed(daemon, fake):
    one = daemon([rule(match={"container": "any", "exe": "*"}, env={"OLD": "new"})], prefix=CONTAINER)
    runtime = fake(one.socket, environment=OLD, run_for="exit")
    # Who has no process is not remembered, so it may get one more.
    assert set(runtime.commands()) == {"resume"}
    assert runtime.wait() == 0
    end(one)


@needs_namespaces
def test_it_ends_in_order_whoever_waits_and_whoever_is_dead(daemon, fake, folder):
    """A held app is resumed, though the kernel ends it with process 1; orphans that end are nobody's business."""
    held = rule("keep", {"container": "any", "exe": "*"}, startup_hooks=[{"path": "/nowhere/Hook.dll"}], on_failure="hold")
    one = daemon([held], prefix=CONTAINER)
    fake(one.socket, prefix=beside(one), run_for="exit")
    one.wait(r"diagportd: held ")
    subprocess.run([*beside(one), "sh", "-c", "sleep 0 & exit 0"], check=True, timeout=TIMEOUT)
    status = pathlib.Path(f"/proc/{process_1(one)}/task/{process_1(one)}/children")
    until(status.read_text, lambda children: any(
        "\nState:\tZ" in pathlib.Path(f"/proc/{child}/status").read_text() for child in children.split()))
    end(one)
    assert one.log.count("diagportd: step resume ok ") == 1
    assert not pathlib.Path(one.socket).exists()


@needs_namespaces
def test_hang_up_reloads_there_too(daemon):
    one = daemon(prefix=CONTAINER)
    start = one.mark()
    subprocess.run(["kill", f"-{signal.SIGHUP.value}", str(process_1(one))], check=True)
    one.wait("diagportd: reloaded: ", start)
    end(one)
