# SPDX-License-Identifier: Apache-2.0
"""A daemon that is started and finds no policy that it can load goes on with the last good one, if there is one."""

import contextlib
import json
import os
import shutil
import socket
import subprocess

import pytest
from harness import BUILD, listen, needs_root, rule

A = [rule("a", env={"A": "1"})]
B = [rule("b", env={"B": "1"})]
#: A policy that has errors in its rules alone.
BAD = [rule("bad", env={"C": "1"}, startup_hooks=[{"path": "relative.dll"}])]

USED = r"the policy has errors: the last good one, "
NOT_USED = r"the last good policy is not used: "


def applied(fake, path):
    """What is applied to who comes now."""
    runtime = fake(str(path))
    environment = runtime.report()["environment"]
    assert runtime.end() == 0
    return environment


def name_file(one):
    return one.state / "last-good"


def policy_files(one):
    return sorted(one.state.glob("policy-*.yaml"))


def restart(one, ends=None):
    """Stops it, or kills it, and starts it with whatever is on disk, which is bad."""
    (ends or one.stop)()
    return one.start(policy_is_good=False)


def goes_on_with(one, fake, variables):
    assert one.log.count(USED) == 1 and one.log.count(NOT_USED) == 0, one.last_lines()
    assert one.status()["policy"]["origin"] == "last_good"
    assert applied(fake, one.socket) == variables


def resumes_everybody(one, fake, why=None):
    assert one.log.count(USED) == 0
    assert one.log.count(NOT_USED + (why or "")) == (1 if why else 0), one.last_lines()
    assert one.status()["policy"]["origin"] == "salvaged"
    assert applied(fake, one.socket) == {}


def missing(one):
    one.config.unlink()


def unreadable(one):
    one.config.unlink()
    one.config.mkdir()


def mistrusted(one):
    one.config.chmod(0o666)


BROKEN = {
    "syntax": lambda one: one.policy_text("version: 1\nrules: [ {"),
    "a rule": lambda one: one.policy(BAD),
    "empty": lambda one: one.policy_text(""),
    "too large": lambda one: one.policy_text("version: 1\n" + "#" * (1 << 20)),
    "not text": lambda one: one.policy_text("\x00\x01"),
    "missing": missing,
    "unreadable": unreadable,
    "anybody may write it": mistrusted,
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_it_goes_on_with_the_last_good_one(daemon, fake, how, end):
    one = daemon(A)
    BROKEN[how](one)
    restart(one, getattr(one, end))
    goes_on_with(one, fake, {"A": "1"})
    # And so does the one after it.
    restart(one, getattr(one, end))
    goes_on_with(one, fake, {"A": "1"})


def test_it_is_said_everywhere(daemon, fake):
    one = daemon(A)
    good = one.status()["policy"]
    one.policy(BAD)
    restart(one)
    status = one.status()
    assert status["policy"]["hash"] == good["hash"] and status["policy"]["rules"] == 1
    assert [file["name"] for file in status["policy"]["files"]] == [str(policy_files(one)[0])]
    (alarm,) = status["alarms"]
    assert (alarm["name"], "the last good one is in force" in alarm["why"]) == ("policy", True)
    assert one.metric('diagport_alarm{alarm="policy"}') == 1
    assert one.metric('diagport_policy_info{hash="%s",origin="last_good"}' % good["hash"]) == 1
    assert [entry["name"] for entry in one.get("/v1/rules")["rules"]] == ["a"]
    runtime = fake(one.socket)
    runtime.report()
    explained = one.post("/v1/explain", {"pid": runtime.pid})
    assert (explained["rule"], explained["trace"][0]["file"]) == ("a", str(policy_files(one)[0]))
    assert runtime.end() == 0
    shown = subprocess.run([BUILD / "diagportctl", "--socket", one.control, "status"],
                           capture_output=True, text=True, check=True).stdout
    assert "the last good one, since the files cannot be loaded" in shown
    # A bad reload changes nothing of it, a good one ends it.
    assert not one.reload()
    assert one.status()["policy"]["origin"] == "last_good" and one.alarms() == ["policy"]
    one.policy(B)
    assert one.reload()
    assert one.status()["policy"]["origin"] == "files" and one.alarms() == []
    assert applied(fake, one.socket) == {"B": "1"}


def test_the_manager_is_told(daemon):
    one = daemon(A)
    one.policy(BAD)
    one.stop()
    one.spawn()
    told = ""
    while "STATUS=" not in told:
        told = one.ready.recv(4096).decode()
    assert "the LAST GOOD policy" in told and "1 ALARM" in told


def test_it_is_that_of_the_last_good_reload(daemon, fake):
    one = daemon(A)
    one.policy(B)
    assert one.reload()
    one.policy(BAD)
    assert not one.reload()
    assert applied(fake, one.socket) == {"B": "1"}
    restart(one, one.kill)
    goes_on_with(one, fake, {"B": "1"})
    assert len(policy_files(one)) == 1


def test_its_own_sockets_come_with_it(daemon, fake, folder):
    one = daemon(A, listen=[listen(folder), listen(folder, "second")])
    one.policy_text("version: 1\nlisten: [ {")
    restart(one)
    goes_on_with(one, fake, {"A": "1"})
    assert applied(fake, folder / "second.sock") == {"A": "1"}


def passed_socket(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(str(path))
    sock.listen()
    return contextlib.closing(sock)


def test_and_so_do_those_that_were_passed_in(daemon, fake, folder):
    with passed_socket(folder / "second.sock") as second, passed_socket(folder / "runtime.sock") as first:
        passed = {"second": second, "runtime": first}
        one = daemon(A, passed=passed, listen=[listen(folder), listen(folder, "second")])
        one.policy(BAD, listen=[listen(folder)])
        restart(one)
        goes_on_with(one, fake, {"A": "1"})
        assert [entry["passed_in"] for entry in one.status()["listeners"]] == [True, True]
        assert applied(fake, folder / "second.sock") == {"A": "1"}


def test_where_its_sockets_cannot_be_had_everybody_is_resumed(daemon, fake, folder):
    """Those of the files can: no policy may keep the daemon from starting."""
    (folder / "sub").mkdir()
    with passed_socket(folder / "runtime.sock") as passed:
        one = daemon(A, passed={"runtime": passed},
                     listen=[listen(folder), {"name": "gone", "path": str(folder / "sub/gone.sock")}])
        one.policy(BAD, listen=[listen(folder)])
        one.stop()
        shutil.rmtree(folder / "sub")
        (folder / "sub").write_text("")
        one.start(policy_is_good=False)
        resumes_everybody(one, fake, "the daemon cannot be started with it")
        assert [entry["passed_in"] for entry in one.status()["listeners"]] == [True]
        # It signals and reloads like any other.
        one.policy(B)
        assert one.reload()
        assert applied(fake, one.socket) == {"B": "1"}


def test_who_was_held_by_it_stays_held(daemon, fake, folder):
    """Rules that hold are rules: nobody starts without his plan since a file was saved too early."""
    strict = [rule("strict", env={"A": "1"}, startup_hooks=[{"path": str(folder / "missing.dll")}],
                   on_failure="hold", hold_limit="forever")]
    with passed_socket(folder / "runtime.sock") as passed:
        one = daemon(strict, passed={"runtime": passed})
        before = fake(one.socket)
        assert one.receipt(before.pid, "held")["rule"] == "strict"
        one.policy_text("version: 1\nrules: [ {")
        restart(one)
        after = fake(one.socket)
        assert one.receipt(after.pid, "held")["rule"] == "strict"
        assert one.until(before.pid, lambda receipt: receipt["state"] == "held")["rule"] == "strict"
        for runtime in (before, after):
            one.post(f"/v1/runtimes/pid:{runtime.pid}/resume", {})
            assert runtime.commands()[-1] == "resume"


def damage_text(one):
    """What somebody may do who wants to mend it."""
    (file,) = policy_files(one)
    file.write_text(file.read_text().replace('"1"', '"2"'))


def cut_text(one):
    (file,) = policy_files(one)
    file.write_bytes(file.read_bytes()[:-1])


def remove_text(one):
    policy_files(one)[0].unlink()


def link_text(one):
    (file,) = policy_files(one)
    file.rename(one.state / "elsewhere")
    file.symlink_to("elsewhere")


def open_text(one):
    policy_files(one)[0].chmod(0o640)


def damage_name(one):
    name_file(one).write_text(name_file(one).read_text().replace("policy ", "policy 0", 1))


def cut_name(one):
    name_file(one).write_bytes(name_file(one).read_bytes()[:-1])


def empty_name(one):
    name_file(one).write_bytes(b"")


def link_name(one):
    name_file(one).rename(one.state / "elsewhere")
    name_file(one).symlink_to("elsewhere")


def open_name(one):
    name_file(one).chmod(0o620)


def pipe_name(one):
    name_file(one).unlink()
    os.mkfifo(name_file(one), 0o600)


FORGED = {
    damage_text: r"its file policy-\w+\.yaml is not as it was written",
    cut_text: r"its file policy-\w+\.yaml is not as it was written",
    remove_text: r"its file policy-\w+\.yaml cannot be used: No such file",
    link_text: r"its file policy-\w+\.yaml cannot be used: Operation not permitted",
    open_text: r"its file policy-\w+\.yaml cannot be used: Operation not permitted",
    damage_name: "the file .*/last-good is not as it was written",
    cut_name: "the file .*/last-good is not as it was written",
    empty_name: "the file .*/last-good is not as it was written",
    link_name: "the file .*/last-good cannot be used: Operation not permitted",
    open_name: "the file .*/last-good cannot be used: Operation not permitted",
    pipe_name: "the file .*/last-good cannot be used: Operation not permitted",
}


@pytest.mark.parametrize("how", FORGED, ids=lambda how: how.__name__)
def test_what_is_not_as_it_was_written_is_not_used(daemon, fake, how):
    one = daemon(A)
    one.policy(BAD)
    one.stop()
    how(one)
    one.start(policy_is_good=False)
    resumes_everybody(one, fake, FORGED[how])
    # The next good one is the last good one again.
    one.policy(B)
    assert one.reload()
    one.policy(BAD)
    restart(one)
    goes_on_with(one, fake, {"B": "1"})


@needs_root
@pytest.mark.parametrize("which", [name_file, lambda one: policy_files(one)[0]], ids=["name", "text"])
def test_what_belongs_to_somebody_else_is_not_used(daemon, fake, which):
    one = daemon(A)
    one.policy(BAD)
    one.stop()
    os.chown(which(one), 4711, 4711)
    one.start(policy_is_good=False)
    resumes_everybody(one, fake, ".* cannot be used: Operation not permitted")


def test_of_another_boot_it_says_nothing(daemon, fake, folder):
    """A boot begins with what is on disk, wherever the state folder is."""
    one = daemon(A)
    one.policy(BAD)
    one.stop()
    another = folder.file("boot_id", "01234567-89ab-cdef-0123-456789abcdef\n")
    if os.geteuid() != 0:
        pytest.skip("only root can put another boot in the place of this one")
    one.prefix = ["unshare", "-m", "sh", "-c", f'mount --bind {another} /proc/sys/kernel/random/boot_id && exec "$0" "$@"']
    one.start(policy_is_good=False)
    resumes_everybody(one, fake, "it is not of this boot")


def test_it_is_that_of_the_same_main_file(daemon, fake, folder):
    """Who names another file wants another policy, and that one is kept for when it is named again."""
    one = daemon(A)
    first = one.config
    one.stop()
    one.config = folder / "other.yaml"
    one.config.write_text(json.dumps({"version": 1, "listen": [listen(folder)], "rules": BAD,
                                      "control": {"path": one.control}}))
    one.start(policy_is_good=False)
    resumes_everybody(one, fake, f"it was loaded from {first}")
    one.stop()
    one.config = first
    one.policy(BAD)
    one.start(policy_is_good=False)
    goes_on_with(one, fake, {"A": "1"})


def test_one_that_cannot_be_kept_leaves_no_older_one(daemon, fake):
    """Larger than what can be read again: who reloaded does not want the one before it back."""
    one = daemon(A)
    many = [rule(f"r{n}", match={"args": f"{n}-{'x' * 900}"}, env={"A": "2"}) for n in range(1500)]
    drop_ins = one.config.parent / "policy.d"
    drop_ins.mkdir()
    for n in range(0, 1500, 250):
        (drop_ins / f"{n}.yaml").write_text(json.dumps({"rules": many[n:n + 250]}))
    one.policy(B)
    assert one.reload()
    assert one.log.count("the policy cannot be kept in the state folder") == 1
    assert applied(fake, one.socket) == {"B": "1"}
    one.policy(BAD)
    restart(one)
    resumes_everybody(one, fake)


def test_a_first_start_has_none(daemon, fake):
    one = daemon(BAD, start=False)
    one.start(policy_is_good=False)
    resumes_everybody(one, fake)
    assert policy_files(one) == [] and not name_file(one).exists()


def test_nobody_else_may_read_it(daemon):
    """It has the values of variables."""
    one = daemon(A)
    for file in (name_file(one), *policy_files(one)):
        assert file.stat().st_mode & 0o7777 == 0o600
