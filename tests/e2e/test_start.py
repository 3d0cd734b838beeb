# SPDX-License-Identifier: Apache-2.0
"""What the daemon finds when it starts: bad policies, other daemons, left-overs, folders that will not do."""

import contextlib
import os
import pathlib
import shutil
import socket
import stat

import pytest
from harness import NOBODY, Daemon, listen, needs_namespaces, needs_root, rule
from runtimes import FAKE

A = [rule(env={"A": "1"})]
WHOLE = ["kind", "info3", "env A=1", "resume"]

SAMPLES = pathlib.Path(__file__).parents[2] / "conf"


def fails(one, message):
    """That it does not start, and says why."""
    one.spawn()
    one.end(1)
    assert one.log.count(message), one.last_lines()


# Policies.


def test_a_bad_policy_resumes_everybody(daemon, fake, folder):
    """Its listeners can be read, so they are there; nothing else of it is in force."""
    bad = [rule(env={"A": "1"}, startup_hooks=[{"path": "relative.dll"}])]
    one = daemon(bad, start=False).start(policy_is_good=False)
    runtime = fake(one.socket)
    assert runtime.commands() == ["resume"]
    assert one.receipt(runtime.pid, "running").outcome == "untouched"
    assert "policy" in one.alarms()
    assert not one.reload()
    one.policy(A)
    assert one.reload()
    assert one.alarms() == []
    later = fake(one.socket)
    assert later.commands() == WHOLE
    assert runtime.finish() == []


# The paths of the system, where nobody else sees them.
PRIVATE_RUN = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run && exec "$0" "$@"']


@needs_namespaces
@pytest.mark.parametrize("text", ["", "version: 1\nlisten: [ {\n", None], ids=["empty", "syntax", "missing"])
def test_a_policy_that_cannot_be_read_at_all(daemon, fake, text):
    """Then it listens where everybody looks for it, and resumes them."""
    one = daemon(start=False, prefix=PRIVATE_RUN)
    one.config.unlink() if text is None else one.policy_text(text)
    one.start(policy_is_good=False)
    place = f"/proc/{one.process.pid}/root/run/diagport/runtime.sock"
    runtime = fake(place)
    assert runtime.commands() == ["resume"]
    one.wait(rf"running .*pid={runtime.pid} .*outcome=untouched")


# Sockets.


def test_two_daemons_on_one_socket(daemon, fake, folder):
    first = daemon(A)
    second = daemon(A, start=False, state=folder / "other")
    fails(second, f"another diagportd owns the socket {first.socket}")
    assert fake(first.socket).commands() == WHOLE
    # And again once the first one is killed, and its socket is a left-over.
    first.kill()
    assert os.path.exists(first.socket)
    second.start()
    assert fake(first.socket).commands() == WHOLE


def test_two_daemons_on_one_state_folder(daemon, fake, folder):
    first = daemon(A)
    second = daemon(A, start=False, listen=[listen(folder, "second")], control={"path": str(folder / "c.sock")})
    fails(second, f"another diagportd uses the state folder {first.state}")
    assert not (folder / "second.sock").exists()
    assert fake(first.socket).commands() == WHOLE


def test_somebody_else_listens_there(daemon, folder):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(folder / "runtime.sock"))
        other.listen()
        one = daemon(A, start=False)
        fails(one, f"process {os.getpid()} listens on {one.socket} already")
        assert os.path.exists(one.socket)


def test_a_left_over_is_replaced(daemon, fake, folder):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(folder / "runtime.sock"))
    one = daemon(A)
    assert fake(one.socket).commands() == WHOLE


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_something_else_is_at_the_path(daemon, folder, kind):
    path = folder / "runtime.sock"
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    one = daemon(A, start=False)
    fails(one, f"{path} exists and is not a socket")
    assert os.path.lexists(path)


def test_a_missing_folder_is_made(daemon, fake, folder):
    place = {"name": "runtime", "path": str(folder / "new/runtime.sock"), "mode": "0666"}
    one = daemon(A, listen=[place])
    assert stat.S_IMODE((folder / "new").stat().st_mode) == 0o755
    assert fake(place["path"]).commands() == WHOLE


def test_a_folder_that_is_two_levels_away_is_not(daemon, folder):
    place = {"name": "runtime", "path": str(folder / "no/such/runtime.sock")}
    fails(daemon(A, start=False, listen=[place]), "cannot be made")


def test_a_folder_that_everybody_may_write_to(daemon, folder):
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    place = {"name": "runtime", "path": str(folder / "open/runtime.sock")}
    fails(daemon(A, start=False, listen=[place]), "everybody may write to the folder")


@needs_root
def test_a_folder_that_the_daemon_may_not_write_to(daemon, folder):
    (folder / "closed").mkdir()
    place = {"name": "runtime", "path": str(folder / "closed/runtime.sock")}
    one = daemon(A, start=False, listen=[place], user=NOBODY)
    fails(one, "may not write to the folder .*; let a socket unit with FileDescriptorName= pass the socket in")


# What a start that fails leaves behind.


def picture(place):
    """Every name below a folder but those of the harness, and what must not change about it."""
    return {
        str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns)
        for path in place.rglob("*")
        if not path.name.startswith("ready.")
    }


def failing(folder, how):
    """Listeners of which the last one, or the control socket, cannot be had; and why."""
    good = {"name": "good", "path": str(folder / "new/good.sock")}
    bad = {"name": "bad", "path": str(folder / "no/such/bad.sock")}
    control = {"path": str(folder / "other/control.sock")}
    if how == "the control socket":
        return [good], {"path": bad["path"]}
    if how == "a group":
        return [good, {**listen(folder, "bad"), "group": "no such group"}], control
    return [good, bad], control


@pytest.mark.parametrize("how", ["a listener", "a group", "the control socket"])
@pytest.mark.parametrize("records", ["none", "whole", "damaged"])
def test_a_start_that_fails_was_never_there(daemon, folder, how, records):
    if records != "none":
        daemon(A).stop()
    if records == "damaged":
        (folder / "state/records").write_text("damaged")
    listens, control = failing(folder, how)
    one = daemon(A, start=False, listen=listens, control=control)
    before = picture(folder.path)
    fails(one, "cannot be made|no group")
    assert picture(folder.path) == before


def test_another_daemon_is_there(daemon, folder):
    first = daemon(A)
    second = daemon(A, start=False, state=folder / "other")
    before = picture(folder.path)
    fails(second, f"another diagportd owns the socket {first.socket}")
    assert picture(folder.path) == before


# Paths.


def test_a_relative_path_of_the_policy(daemon, folder):
    """Is shown as one that means the same wherever it is read."""
    one = daemon(A, start=False, arguments=["--config", "./diagport.yaml", "--state", str(folder / "state")],
                 prefix=["env", "-C", str(folder.path)])
    one.start()
    assert [file["name"] for file in one.status()["policy"]["files"]] == [str(one.config)]
    assert one.get("/v1/rules")["rules"][0]["file"] == str(one.config)
    one.policy_text("version: 1\nrules: [ {")
    assert not one.reload()
    assert one.log.count(f"diagportd: {one.config}:[0-9]+:[0-9]+: ")


# The state folder.


def unusable(folder, how):
    path = folder / "unusable"
    if how == "file":
        path.write_text("mine")
    elif how == "two levels":
        path = path / "state"
    elif how == "link":
        (folder / "real").mkdir(mode=0o700)
        path.symlink_to("real")
    else:
        path.mkdir()
        path.chmod(0o777)
    return path


@pytest.mark.parametrize("how", ["file", "two levels", "link", "writable for all"])
def test_no_records_can_be_kept(daemon, fake, folder, how):
    one = daemon([rule(env={"A": "1"}, startup_hooks=[{"path": folder.hook()}])], state=unusable(folder, how))
    assert one.log.count("nothing is applied to any runtime until they can be kept")
    status = one.status()
    assert status["records"] == "none"
    assert [alarm["name"] for alarm in status["alarms"]] == ["records"]
    runtime = fake(one.socket)
    assert runtime.commands() == ["resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert (receipt.outcome, receipt["why"]) == ("unknown", "no record of it can be kept")
    # A reload does not make it better.
    assert one.reload()
    assert "records" in one.alarms()


@needs_root
def test_the_records_of_another_user(daemon, fake, folder):
    (folder / "state").mkdir(mode=0o700)
    one = daemon(A, user=NOBODY)
    assert one.status()["records"] == "none"
    runtime = fake(one.socket)
    # Nothing shows this daemon that it runs, so that one Resume may be followed by more.
    assert set(runtime.commands()) == {"resume"}


# --user.


@contextlib.contextmanager
def somebody():
    """A user that nobody else is, and the folder that would be his in /tmp."""
    uid = 1_000_000 + os.getpid()
    place = f"/tmp/diagport-{uid}"
    shutil.rmtree(place, ignore_errors=True)
    try:
        yield uid, place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def user_daemon(folder, uid, start=True, **environment):
    one = Daemon(folder, start=False, arguments=["--user"], user=uid, environment=environment)
    return one.start() if start else one


@needs_root
@pytest.mark.parametrize("has_runtime_dir", [True, False])
def test_an_instance_of_ones_own(fake, folder, has_runtime_dir):
    """No root, no file: it listens in a private folder, and resumes everybody of that user."""
    with somebody() as (uid, place):
        if has_runtime_dir:
            (folder / "run").mkdir(mode=0o700)
            os.chown(folder / "run", uid, uid)
            place = str(folder / "run/diagport")
        variables = {"XDG_RUNTIME_DIR": str(folder / "run") if has_runtime_dir else ""}
        one = user_daemon(folder, uid, **variables)
        try:
            assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
            assert stat.S_IMODE(os.stat(f"{place}/runtime.sock").st_mode) == 0o600
            assert os.path.exists(f"{place}/control.sock")
            own = {"program": folder.program(FAKE), "user": uid, "group": uid, "extra_groups": []}
            runtime = fake(f"{place}/runtime.sock", **own)
            assert runtime.commands() == ["resume"]
            one.wait(rf"running .*pid={runtime.pid} .*outcome=untouched")
            second = user_daemon(folder, uid, start=False, **variables)
            fails(second, "another diagportd uses the state folder|another diagportd owns the socket")
            assert fake(f"{place}/runtime.sock", **own).commands() == ["resume"]
        finally:
            one.stop()
        assert not os.path.exists(f"{place}/runtime.sock")


# Whatever becomes of the policy: an instance of one's own never listens where everybody looks for the system's.
@needs_root
@pytest.mark.parametrize("text", ["version: 1\n", "version: 1\nlisten: [ {\n", None], ids=["empty", "broken", "missing"])
def test_an_instance_of_ones_own_with_a_policy(fake, folder, text):
    with somebody() as (uid, place):
        config = folder / "own.yaml"
        if text is not None:
            config.write_text(text)
            os.chown(config, uid, uid)
        arguments = ["--user", "--config", str(config)]
        one = Daemon(folder, start=False, arguments=arguments, user=uid, environment={"XDG_RUNTIME_DIR": ""})
        one.start(policy_is_good=text == "version: 1\n")
        try:
            assert stat.S_IMODE(os.stat(f"{place}/runtime.sock").st_mode) == 0o600
            assert os.path.exists(f"{place}/control.sock")
            own = {"program": folder.program(FAKE), "user": uid, "group": uid, "extra_groups": []}
            assert fake(f"{place}/runtime.sock", **own).commands() == ["resume"]
        finally:
            one.stop()


@needs_namespaces
@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_samples_listen(daemon, fake, sample):
    one = daemon(start=False, prefix=PRIVATE_RUN)
    one.policy_text(sample.read_text())
    one.start()
    root = f"/proc/{one.process.pid}/root/run/diagport"
    runtime = fake(f"{root}/runtime.sock")
    one.wait(rf"running .*pid={runtime.pid} ")
    assert os.path.exists(f"{root}/control.sock")


@needs_root
@pytest.mark.parametrize("how", ["missing", "file", "closed"])
def test_a_runtime_folder_that_will_not_do(folder, how):
    """What is wrong, where, and what to do."""
    place = folder / "run"
    if how == "file":
        place.write_text("")
    elif how == "closed":
        place.mkdir(mode=0o755)
    one = user_daemon(folder, 1_000_000 + os.getpid(), start=False, XDG_RUNTIME_DIR=str(place))
    why = {"missing": "No such file or directory", "file": "Not a directory", "closed": "Permission denied"}[how]
    fails(one, f"the folder {place}/diagport cannot be made: {why}; XDG_RUNTIME_DIR says {place}, .*set it to one")


@needs_root
def test_a_private_folder_goes_with_a_start_that_fails(folder):
    with somebody() as (uid, place):
        config = folder / "own.yaml"
        config.write_text(f"version: 1\nlisten: [ {{ name: r, path: {folder.path}/no/such/r.sock }} ]\n")
        os.chown(config, uid, uid)
        one = Daemon(folder, start=False, arguments=["--user", "--config", str(config)], user=uid,
                     environment={"XDG_RUNTIME_DIR": ""})
        fails(one, "cannot be made")
        assert not os.path.exists(place)


@needs_root
@pytest.mark.parametrize("how", ["of somebody else", "open", "a link"])
def test_a_private_folder_that_is_not_private(folder, how):
    with somebody() as (uid, place):
        if how == "a link":
            (folder / "mine").mkdir(mode=0o700)
            os.chown(folder / "mine", uid, uid)
            os.symlink(folder / "mine", place)
        else:
            os.mkdir(place)
            os.chmod(place, 0o755 if how == "open" else 0o700)
            os.chown(place, uid if how == "open" else NOBODY, uid)
        one = user_daemon(folder, uid, start=False, XDG_RUNTIME_DIR="")
        fails(one, f"the folder {place} must be yours alone")
        assert not os.path.exists(f"{place}/runtime.sock")
        if how == "a link":
            os.unlink(place)
