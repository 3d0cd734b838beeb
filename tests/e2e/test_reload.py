# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: all of a new policy or nothing, and only for those who come afterwards."""

import contextlib
import os
import signal
import socket
import stat

import pytest
from harness import listen, rule, until

A = [rule("a", env={"A": "1"})]
B = [rule("b", env={"B": "1"})]


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def is_listening(path):
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as sock:
        return sock.connect_ex(str(path)) == 0


def applied(fake, path):
    """What is applied to who comes now."""
    runtime = fake(str(path))
    environment = runtime.report()["environment"]
    assert runtime.end() == 0
    return environment


def test_who_comes_afterwards_gets_the_new_rules(daemon, fake):
    one = daemon(A)
    before = fake(one.socket, "stop-before-reply=set-env")
    before.stands()
    one.policy(B)
    assert one.reload()
    assert applied(fake, one.socket) == {"B": "1"}
    before.thaw()
    assert before.report()["environment"] == {"A": "1"}
    assert one.receipt(before.pid, "running")["rule"] == "a"
    status = one.status()
    assert status["last_reload"]["ok"] and status["policy"]["rules"] == 1
    assert one.metric('diagport_policy_reloads_total{result="ok"}') == 1
    assert [entry["name"] for entry in one.get("/v1/rules")["rules"]] == ["b"]


def test_over_the_control_socket(daemon, fake):
    one = daemon(A)
    one.policy(B)
    verdict = one.post("/v1/policy/reload", {})
    assert (verdict["ok"], verdict["policy"]["rules"]) == (True, 1)
    assert applied(fake, one.socket) == {"B": "1"}
    one.policy_text("version: 1\nrules: [ {")
    verdict = one.post("/v1/policy/reload", {})
    assert (verdict["ok"], verdict["n_errors"]) == (False, 1)
    assert verdict["problems"][0]["line"] in (2, 3)
    assert applied(fake, one.socket) == {"B": "1"}


BROKEN = {
    "syntax": "version: 1\nrules: [ {\n",
    "unknown key": "version: 1\nrulez: []\n",
    "empty": "",
    "not text": "\x00\x01",
    "two documents": "version: 1\n---\nversion: 1\n",
    "rule without a match": "version: 1\nrules: [ { name: a, env: { A: '1' } } ]\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_changes_nothing(daemon, fake, name):
    one = daemon(A)
    one.policy_text(BROKEN[name])
    start = one.mark()
    assert not one.reload()
    assert "policy" in one.alarms()
    assert one.log.count(r"diagport\.yaml:", start) >= 1
    assert one.status()["last_reload"]["ok"] is False
    assert applied(fake, one.socket) == {"A": "1"}
    one.policy(B)
    assert one.reload()
    assert one.alarms() == []
    assert one.log.count("alarm policy off$") == 1
    assert applied(fake, one.socket) == {"B": "1"}


# Socket files that go missing.


def go_missing(path, how):
    if how == "removed":
        os.unlink(path)
    elif how == "renamed":
        os.rename(path, path + ".away")
    else:
        os.unlink(path)
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as left_over:
            left_over.bind(path)


@pytest.mark.parametrize("how", ["removed", "renamed", "replaced"])
@pytest.mark.parametrize("which", ["runtime", "control"])
def test_a_socket_file_that_is_gone_is_made_anew(daemon, fake, which, how):
    one = daemon(A)
    before = fake(one.socket, "stop-before-reply=set-env")
    before.stands()
    path = one.socket if which == "runtime" else one.control
    mode = mode_of(path)
    go_missing(path, how)
    one.wait(f"the socket file {path} of .* was (removed|replaced), so nobody")
    one.wait("alarm sockets on: .* a reload makes it anew")
    if which == "runtime":
        assert one.alarms() == ["sockets"]
        assert one.metric('diagport_alarm{alarm="sockets"}') == 1
        assert one.metric('diagport_listener_in_place{listener="runtime"}') == 0
        assert one.metric("diagport_ready") == 0
    assert one.reload()
    one.wait("alarm sockets off$")
    assert one.alarms() == []
    assert one.metric('diagport_alarm{alarm="sockets"}') == 0
    assert one.metric('diagport_listener_in_place{listener="runtime"}') == 1
    assert one.metric("diagport_control_in_place") == one.metric("diagport_ready") == 1
    assert mode_of(path) == mode
    assert applied(fake, one.socket) == {"A": "1"}
    # Who was there stays there, and finds its way by the new one.
    before.thaw()
    assert before.report()["environment"] == {"A": "1"}
    one.stop()
    assert not os.path.exists(path)


def test_a_socket_file_is_made_anew_whatever_the_policy_is(daemon, fake):
    one = daemon(A)
    os.unlink(one.socket)
    one.policy_text(BROKEN["syntax"])
    assert not one.reload()
    assert one.alarms() == ["policy"]
    assert applied(fake, one.socket) == {"A": "1"}


def test_a_path_that_is_somebody_elses_now_stays_so(daemon, fake, folder):
    one = daemon(A)
    os.unlink(one.socket)
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as other:
        other.bind(one.socket)
        other.listen()
        inode = os.stat(one.socket).st_ino
        one.policy(B)
        assert one.reload()
        one.wait(f"the listener runtime stays without its socket file: process {os.getpid()} listens on")
        assert one.alarms() == ["sockets"]
        assert os.stat(one.socket).st_ino == inode
    assert one.reload()
    assert one.alarms() == []
    assert applied(fake, one.socket) == {"B": "1"}


def test_a_socket_that_was_passed_in_is_its_units(daemon, folder):
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as passed:
        passed.bind(str(folder / "runtime.sock"))
        passed.listen()
        one = daemon(A, passed={"runtime": passed})
        os.rename(one.socket, one.socket + ".away")
        assert one.reload()
        assert not os.path.exists(one.socket)
        (alarm,) = one.status()["alarms"]
        assert alarm["name"] == "sockets" and "systemctl restart diagportd.socket" in alarm["why"]
        assert one.metric('diagport_listener_in_place{listener="runtime"}') == 0
        os.rename(one.socket + ".away", one.socket)
        one.wait("alarm sockets off$")
        assert one.alarms() == []


def test_a_missing_file_changes_nothing(daemon, fake):
    one = daemon(A)
    one.config.unlink()
    assert not one.reload()
    assert "policy" in one.alarms()
    assert applied(fake, one.socket) == {"A": "1"}


def test_a_drop_in(daemon, fake, folder):
    one = daemon(A)
    (folder / "policy.d").mkdir()
    drop_in = folder / "policy.d/10-more.yaml"
    drop_in.write_text("rules: [ { name: b, match: { args: special }, env: { B: '1' } } ]\ndisable: [ a ]\n")
    assert one.reload()
    assert applied(fake, one.socket) == {}
    special = fake(one.socket, arguments=["special"])
    assert special.report()["environment"] == {"B": "1"}
    drop_in.chmod(0o666)
    assert not one.reload()
    assert one.log.count("10-more.yaml: may be written by everybody")


def test_listeners_come_and_go(daemon, fake, folder):
    one = daemon(A)
    before = one.descriptors()
    one.policy(A, listen=[listen(folder), listen(folder, "second", mode="0600")])
    assert one.reload()
    second = folder / "second.sock"
    assert mode_of(second) == 0o600
    assert applied(fake, second) == {"A": "1"}
    runtime = fake(str(second), "stop-before-reply=set-env")
    runtime.stands()
    one.policy(A)
    assert one.reload()
    assert not second.exists()
    # Who came by it is served to the end.
    runtime.thaw()
    one.wait(rf"step env ok .*pid={runtime.pid} ")
    assert [entry["name"] for entry in one.status()["listeners"]] == ["runtime"]
    one.policy(A, listen=[listen(folder), listen(folder, "second")])
    assert one.reload()
    assert runtime.commands()[-2:] == ["env A=1", "resume"]
    one.policy(A)
    assert one.reload()
    runtime.kill()
    one.wait("diagportd: gone ", times=2)
    one.has_descriptors(before)


def test_a_path_and_a_mode_change(daemon, fake, folder):
    one = daemon(A)
    one.policy(A, listen=[listen(folder, mode="0600")])
    assert one.reload()
    assert mode_of(one.socket) == 0o600
    other = folder / "other.sock"
    one.policy(A, listen=[{"name": "runtime", "path": str(other), "mode": "0640"}])
    assert one.reload()
    assert (mode_of(other), os.path.exists(one.socket)) == (0o640, False)
    assert applied(fake, other) == {"A": "1"}
    assert [(entry["name"], entry["path"]) for entry in one.status()["listeners"]] == [("runtime", str(other))]


def test_one_listener_that_cannot_be_opened_refuses_all(daemon, fake, folder):
    one = daemon(A)
    before = one.descriptors()
    (folder / "file.sock").write_text("mine")
    one.policy(
        B,
        listen=[listen(folder, mode="0600"), listen(folder, "second"), listen(folder, "file")],
    )
    assert not one.reload()
    assert one.log.count("file.sock exists and is not a socket")
    assert mode_of(one.socket) == 0o666
    assert not (folder / "second.sock").exists()
    assert (folder / "file.sock").read_text() == "mine"
    assert applied(fake, one.socket) == {"A": "1"}
    assert "policy" in one.alarms()
    one.wait("diagportd: gone ")
    one.has_descriptors(before)


def test_what_was_handed_in_cannot_be_moved(daemon, fake, folder):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / "runtime.sock"))
        listener.listen(10)
        one = daemon(A, passed={"runtime": listener})
        one.policy(B, listen=[{"name": "runtime", "path": str(folder / "other.sock")}])
        assert not one.reload()
        assert one.log.count("its socket was passed in")
        one.policy(B, listen=[listen(folder, "second")])
        assert not one.reload()
        assert applied(fake, one.socket) == {"A": "1"}
        one.policy(B)
        assert one.reload()
        assert applied(fake, one.socket) == {"B": "1"}
        one.stop()


def test_the_control_socket_cannot_be_moved(daemon, folder):
    one = daemon(A)
    one.policy(A, control={"path": str(folder / "elsewhere.sock")})
    assert not one.reload()
    assert one.log.count("control")
    assert one.status()["last_reload"]["ok"] is False


def test_many_signals_are_one_reload(daemon, fake):
    one = daemon(A)
    one.policy(B)
    one.freeze()
    for _ in range(50):
        one.signal(signal.SIGHUP)
    start = one.mark()
    one.thaw()
    one.wait("diagportd: reloaded: ", start)
    assert applied(fake, one.socket) == {"B": "1"}
    assert one.log.count("diagportd: reloaded: ") == 1


def minds_hangups(one):
    """Whether it has blocked the signal, as it does first of all, or catches it already."""
    with open(f"/proc/{one.process.pid}/status", encoding="utf-8") as status:
        masks = [int(line.split()[1], 16) for line in status if line.startswith(("SigBlk:", "SigCgt:"))]
    return any(mask >> (signal.SIGHUP - 1) & 1 for mask in masks)


def test_a_signal_during_the_start_does_not_end_it(daemon, fake):
    """Before its first line of C only the kernel could take it; from there on it never does harm."""
    one = daemon(A, start=False)
    for _ in range(10):
        one.spawn()
        until(lambda: minds_hangups(one), bool)
        while not one.is_ready():
            one.signal(signal.SIGHUP)
        assert one.is_alive()
        one.kill()
    one.start()
    assert applied(fake, one.socket) == {"A": "1"}
