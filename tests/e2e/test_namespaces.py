# SPDX-License-Identifier: Apache-2.0
"""Runtimes in other pid namespaces, as in containers: known by the kernel's word, and ours only where a rule says so."""

import signal
import socket
import subprocess
import sys

import pytest
from harness import NOBODY, NOGROUP, needs_namespaces, needs_root, rule
from lines import TIMEOUT
from others import RESUME
from runtimes import FAKE

# The one that is started is pid 1 of a namespace of its own, and ends with whoever started it.
INSIDE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]

OLD = {"OLD": "x"}


def pid_outside(runtime):
    """Of the process that unshare started, in our own namespace."""
    with open(f"/proc/{runtime.pid}/task/{runtime.pid}/children", encoding="ascii") as children:
        return int(children.read())


def inside(fake, one, *behaviours):
    runtime = fake(one.socket, *behaviours, prefix=INSIDE, environment=OLD)
    assert runtime.report()["pid"] == 1
    return runtime, pid_outside(runtime)


@needs_namespaces
def test_a_rule_for_any_container(daemon, fake, folder):
    hook = folder.hook()
    one = daemon([rule(match={"container": "any", "exe": "*"}, env={"OLD": "new"}, startup_hooks=[{"path": hook}])])
    runtime, pid = inside(fake, one)
    assert runtime.commands() == ["kind", "info3", "env OLD=new", f"hook {hook}", "resume"]
    receipt = one.receipt(pid, "running")
    assert (receipt["claimed_pid"], receipt.outcome) == (1, "applied")
    assert runtime.finish() == []
    one.receipt(pid, "gone")


@needs_namespaces
@pytest.mark.parametrize("second", ["variables", "hook"])
def test_it_is_not_known_to_be_on_the_host(daemon, fake, folder, second):
    """A pid namespace is no container by itself, and no proof that there is none."""
    later = (
        rule("later", {"container": "any", "exe": "*"}, env={"OLD": "later"})
        if second == "variables"
        else rule("later", {"container": "any", "exe": "*"}, startup_hooks=[{"path": folder.hook()}])
    )
    one = daemon([rule("host", env={"OLD": "new"}), later])
    runtime, pid = inside(fake, one)
    receipt = one.receipt(pid, "running")
    assert receipt["attributes"]["container"]["state"] == "unknown"
    assert receipt["trace"][0]["verdict"] == "unknown"
    if second == "variables":
        assert receipt["rule"] == "later"
        assert runtime.commands() == ["env OLD=later", "resume"]
    else:
        assert receipt["rule"] is None
        assert receipt["trace"][1]["verdict"] == "barred"
        assert runtime.commands() == ["resume"]
    explained = one.post("/v1/explain", {"pid": pid})
    assert [entry["verdict"] for entry in explained["trace"]] == [entry["verdict"] for entry in receipt["trace"]]


@needs_namespaces
def test_an_ignore_rule_that_cannot_tell_ignores(daemon, fake):
    one = daemon([rule("host", ignore=True), rule("later", {"container": "any", "exe": "*"}, env={"OLD": "new"})])
    runtime, pid = inside(fake, one)
    assert runtime.commands() == ["resume"]
    assert (one.receipt(pid, "running")["rule"], one.receipt(pid).outcome) == ("host", "untouched")


@needs_namespaces
def test_a_pid_of_the_host_inside(daemon, fake):
    """What it claims has to be what the kernel calls it inside."""
    one = daemon([rule(match={"container": "any", "exe": "*"}, env={"OLD": "new"})])
    runtime, pid = inside(fake, one, "claim-pid=4711")
    assert runtime.commands() == ["resume"]
    assert one.receipt(pid, "running").outcome == "unknown"


@needs_namespaces
def test_two_namespaces_deep(daemon, fake):
    one = daemon([rule(match={"container": "any", "exe": "*"}, env={"OLD": "new"})])
    runtime = fake(one.socket, prefix=[*INSIDE, *INSIDE], environment=OLD)
    assert runtime.report()["pid"] == 1
    assert runtime.commands() == ["env OLD=new", "resume"]
    one.wait(r"running .*outcome=applied")


@needs_namespaces
def test_a_runtime_outside_of_the_daemons_namespace(daemon, fake):
    """It has no pid where the daemon is: nobody can tell who it is, and it is resumed."""
    one = daemon([rule(match={"container": "any", "exe": "*"}, env={"OLD": "new"})], prefix=INSIDE)
    runtime = fake(one.socket, environment=OLD)
    # Nobody can look whether it runs either, so whatever connection it has gets one more in time.
    assert set(runtime.commands()) == {"resume"}
    one.wait(r"running .*outcome=unknown")
    # The daemon is unshare's child, which a signal to unshare would not reach.
    subprocess.run(["kill", "-TERM", str(pid_outside(one.process))], check=True)
    one.end(0)


@needs_root
@needs_namespaces
def test_root_of_a_namespace_of_its_own(daemon, fake, folder):
    """Whoever is root there only is nobody here, and no rule for root is his."""
    one = daemon([
        rule("root", {"container": "any", "user": "root"}, env={"OLD": "root's"}),
        rule("nobody", {"container": "any", "user": str(NOBODY)}, env={"OLD": "nobody's"}),
    ])
    runtime = fake(one.socket, prefix=["unshare", "--user", "--map-root-user", *INSIDE[1:]], environment=OLD,
                   program=folder.program(FAKE), user=NOBODY, group=NOGROUP, extra_groups=[])
    assert runtime.report()["pid"] == 1
    assert runtime.commands() == ["env OLD=nobody's", "resume"]
    receipt = one.receipt(pid_outside(runtime), "running")
    assert (receipt["uid"], receipt["rule"], receipt.outcome) == (NOBODY, "nobody", "applied")


# As a volume is shown to a container.
READ_ONLY = ["unshare", "--mount", "sh", "-c",
             'mount --bind "$0" "$1" && mount -o remount,ro,bind "$1" && ! touch "$1/x" && shift && exec "$@"']


@needs_namespaces
def test_a_folder_that_is_read_only_for_it(daemon, fake, folder):
    """To connect it need not write to the folder."""
    one = daemon([rule(match={"container": "any", "exe": "*"}, env={"OLD": "new"})])
    place = folder / "shown"
    place.mkdir()
    runtime = fake(f"{place}/runtime.sock", prefix=[*READ_ONLY, folder.path, place, *INSIDE], environment=OLD)
    assert runtime.commands() == ["env OLD=new", "resume"]
    one.wait(r"running .*outcome=applied")


# Says who it is, and has ended before anybody hears of it; but its connection is in somebody else's hands, too.
GONE = """
import os, socket, struct, sys
peer = socket.socket(fileno=int(sys.argv[2]))
peer.connect(sys.argv[1])
peer.sendall(b"ADVR_V1\\0" + os.urandom(16) + struct.pack("<QH", os.getpid(), 0))
os._exit(0)
"""


@needs_namespaces
@pytest.mark.parametrize("prefix", [[], INSIDE], ids=["here", "elsewhere"])
def test_a_process_that_ended_before_it_was_met(daemon, fake, prefix):
    """Nothing is known of it, so whoever listens is resumed, and nobody else is kept waiting."""
    one = daemon([rule(match={"container": "any"}, env={"OLD": "new"})])
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(TIMEOUT)
        one.process.send_signal(signal.SIGSTOP)
        command = [*prefix, sys.executable, "-c", GONE, one.socket, str(peer.fileno())]
        subprocess.run(command, pass_fds=[peer.fileno()], check=True)
        one.process.send_signal(signal.SIGCONT)
        assert peer.recv(len(RESUME), socket.MSG_WAITALL) == RESUME
        runtime = fake(one.socket, environment=OLD)
        assert runtime.commands() == ["env OLD=new", "resume"]
        outcomes = {seen["pid"] == runtime.pid: seen["outcome"] for seen in one.get("/v1/runtimes")["runtimes"]}
        assert outcomes == {True: "applied", False: "unknown"}
