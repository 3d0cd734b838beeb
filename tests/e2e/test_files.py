# SPDX-License-Identifier: Apache-2.0
"""Files of hooks and profilers that will not do are found before the first command, as the process sees them."""

import os
import subprocess

import pytest
from harness import BUILD, CLSID, NOBODY, needs_namespaces, needs_root, rule
from runtimes import FAKE


def plan(kind, path, required=True):
    if kind == "hook":
        return rule(env={"A": "1"}, startup_hooks=[{"path": path, "required": required}])
    return rule(env={"A": "1"}, profilers=[{"clsid": CLSID, "path": path, "required": required}])


def missing(folder):
    return str(folder / "missing.dll")


def directory(folder):
    (folder / "directory").mkdir()
    return str(folder / "directory")


def pipe(folder):
    os.mkfifo(folder / "pipe")
    return str(folder / "pipe")


def through_a_file(folder):
    return folder.hook() + "/Hook.dll"


def circle(folder):
    (folder / "circle").symlink_to("circle")
    return str(folder / "circle")


def dangling(folder):
    (folder / "dangling").symlink_to("missing.dll")
    return str(folder / "dangling")


REFUSED = {
    missing: "does not exist as the process sees it",
    directory: "is a folder",
    pipe: "is not a regular file",
    through_a_file: "leads through something that is not a folder",
    circle: "leads through too many links",
    dangling: "does not exist as the process sees it",
}


@pytest.mark.parametrize("kind", ["hook", "profiler"])
@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
def test_a_file_that_will_not_do(daemon, fake, folder, make, kind):
    path = make(folder)
    one = daemon([plan(kind, path)])
    runtime = fake(one.socket)
    assert runtime.commands() == ["resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert receipt.outcome == "failed"
    assert receipt.step(kind, path)["result"] == "refused"
    assert receipt.step(kind, path)["why"] == REFUSED[make]
    assert receipt.step("env")["result"] == "skipped"
    explained = one.post("/v1/explain", {"pid": runtime.pid})
    assert [step["why"] for step in explained["steps"] if step["kind"] == kind] == [REFUSED[make]]
    assert runtime.finish() == []


def test_what_is_not_required_is_left_out(daemon, fake, folder):
    one = daemon([plan("hook", missing(folder), required=False)])
    runtime = fake(one.socket)
    assert runtime.commands() == ["kind", "info3", "env A=1", "resume"]
    assert one.receipt(runtime.pid, "running").outcome == "applied"


def test_links_are_followed(daemon, fake, folder):
    (folder / "to").symlink_to(".")
    (folder / "link.dll").symlink_to("to/Hook.dll")
    folder.hook()
    path = str(folder / "link.dll")
    one = daemon([plan("hook", path)])
    runtime = fake(one.socket)
    assert runtime.report()["hooks"] == [path]


@needs_root
@pytest.mark.parametrize(
    ("closed", "why"),
    [("file", "may not be read by the process"), ("folder", "is in a folder that the process may not enter")],
)
def test_the_user_of_the_program_may_not_read_it(daemon, fake, folder, closed, why):
    (folder / "lib").mkdir()
    path = folder.hook("lib/Hook.dll")
    if closed == "file":
        os.chmod(path, 0o640)
    else:
        (folder / "lib").chmod(0o700)
    one = daemon([plan("hook", path)])
    runtime = fake(one.socket, program=folder.program(FAKE), user=NOBODY, group=NOBODY, extra_groups=[])
    assert runtime.commands() == ["resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert (receipt["uid"], receipt.outcome, receipt.step("hook")["why"]) == (NOBODY, "failed", why)
    # Whom it is allowed gets it.
    os.chown(folder / "lib", 0, 4711)
    os.chown(path, 0, 4711)
    (folder / "lib").chmod(0o750)
    os.chmod(path, 0o640)
    other = fake(one.socket, program=folder.program(FAKE), user=NOBODY, group=NOBODY, extra_groups=[4711])
    assert other.commands()[-2:] == [f"hook {path}", "resume"]


# Becomes the fake in a mount namespace of its own, where the folder $0 is another one, with a copy of $1 in it if any.
OTHER_VIEW = """
mount -t tmpfs none "$0" && { [ -z "$1" ] || cp "$1" "$0/Hook.dll"; } && shift && exec "$@"
"""


def other_view(place, hook):
    return ["unshare", "-m", "sh", "-c", OTHER_VIEW, str(place), hook]


@needs_namespaces
@pytest.mark.parametrize("is_for_target", [True, False])
def test_it_is_there_only_for_one_of_the_two(daemon, fake, folder, is_for_target):
    place = folder / "lib"
    place.mkdir()
    path = str(place / "Hook.dll")
    if not is_for_target:
        folder.hook("lib/Hook.dll")
    one = daemon([plan("hook", path)])
    runtime = fake(one.socket, prefix=other_view(place, folder.hook("Other.dll") if is_for_target else ""))
    commands = runtime.commands()
    receipt = one.receipt(runtime.pid, "running")
    if is_for_target:
        assert not os.path.exists(path)
        assert commands == ["kind", "info3", "env A=1", f"hook {path}", "resume"]
        assert runtime.report()["hooks"] == [path]
        assert receipt.outcome == "applied"
    else:
        assert commands == ["resume"]
        assert receipt.outcome == "failed"
        assert receipt.step("hook")["why"] == "does not exist as the process sees it"


@pytest.mark.parametrize(
    ("kind", "path", "message"),
    [
        ("hook", "lib/Hook.dll", '"path" takes an absolute path'),
        ("profiler", "lib/profiler.so", '"path" takes an absolute path'),
        ("hook", "/opt/a:b/Hook.dll", "the path of a startup hook cannot have a colon"),
    ],
)
def test_paths_that_are_load_errors(daemon, fake, folder, kind, path, message):
    one = daemon([plan(kind, path)], start=False)
    checked = subprocess.run(
        [BUILD / "diagportd", "--config", str(one.config), "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 1
    assert message in checked.stderr
    one.start(policy_is_good=False)
    runtime = fake(one.socket)
    assert runtime.commands() == ["resume"]
    assert one.receipt(runtime.pid, "running").outcome == "untouched"
