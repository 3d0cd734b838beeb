# SPDX-License-Identifier: Apache-2.0
"""Paths of profilers that are named by the platform of the process: that of its own program, whatever the daemon's is."""

import platform
import shutil

import pytest
from apps import CORECLR, SINGLE_FILE, told
from harness import CLSID, rule

ARCH = {"x86_64": "x64", "aarch64": "arm64", "s390x": "s390x", "ppc64le": "ppc64le"}.get(platform.machine())
pytestmark = pytest.mark.skipif(ARCH is None, reason="these tests do not know what .NET calls this machine")


def put(folder, name):
    """A profiler in a folder of that name."""
    (folder / name).mkdir()
    return folder.profiler(f"{name}/profiler.so")


def plan(folder, template, **keys):
    return rule(env={"A": "1"}, profilers=[{"clsid": CLSID, "path": str(folder / template / "profiler.so")}], **keys)


@pytest.mark.parametrize("template, name", [
    ("{rid}", f"linux-{ARCH}"), ("{libc}.{arch}", f"glibc.{ARCH}"), ("{{rid}", "{rid}"),
])
def test_the_file_for_the_platform_is_loaded(daemon, fake, folder, template, name):
    path = put(folder, name)
    one = daemon([plan(folder, template)])
    runtime = fake(one.socket)
    assert f"profiler {path}" in runtime.commands()
    receipt = one.receipt(runtime.pid, "running")
    step = receipt.step("profiler")
    assert (receipt.outcome, step["name"], step["result"], step["code"]) == ("applied", path, "ok", None)
    explained = one.post("/v1/explain", {"pid": runtime.pid})
    assert [step["name"] for step in explained["steps"] if step["kind"] == "profiler"] == [path]
    assert runtime.finish() == []


def test_the_primer_is_told_of_the_file(daemon, fake, folder):
    path = put(folder, f"linux-{ARCH}")
    one = daemon([plan(folder, "{rid}", primer="always", primer_path=folder.profiler("primer.so", "notify"))])
    runtime = fake(one.socket)
    assert f"env DIAGPORT_PRIMER_PROBE={path}" in runtime.commands()
    assert one.receipt(runtime.pid, "running").outcome == "applied"
    assert runtime.finish() == []


def test_the_file_is_missing_for_one_platform(daemon, fake, folder):
    """It is called by the name that it would have."""
    put(folder, "linux-musl-x64")
    one = daemon([plan(folder, "{rid}")])
    runtime = fake(one.socket)
    assert runtime.commands() == ["resume"]
    step = one.receipt(runtime.pid, "running").step("profiler")
    assert (step["name"], step["code"]) == (str(folder / f"linux-{ARCH}/profiler.so"), "file-missing")
    assert runtime.finish() == []


def test_what_was_not_looked_at_is_called_as_it_is_written(daemon, fake, folder):
    one = daemon([plan(folder, "{rid}", mode="observe")])
    runtime = fake(one.socket)
    assert runtime.commands() == ["resume"]
    assert one.receipt(runtime.pid, "running").step("profiler")["name"] == str(folder / "{rid}/profiler.so")
    assert runtime.finish() == []


def test_a_plan_goes_on_after_a_restart(daemon, fake, folder):
    path = put(folder, f"linux-{ARCH}")
    one = daemon([plan(folder, "{rid}")])
    runtime = fake(one.socket, "stop-before-reply=set-env@1")
    runtime.stands()
    one.kill()
    one.start()
    runtime.thaw()
    assert f"profiler {path}" in runtime.commands()
    assert one.receipt(runtime.pid, "running").outcome == "applied"
    assert runtime.finish() == []


@pytest.mark.dotnet
@pytest.mark.parametrize("name", [*CORECLR, *SINGLE_FILE])
def test_real_programs_load_the_file_for_their_platform(daemon, start, rig, folder, name):
    (folder / f"linux-{ARCH}").mkdir()
    path = str(folder / f"linux-{ARCH}/profiler.so")
    shutil.copy(rig.profiler, path)
    written = str(folder / "{rid}/profiler.so")
    one = daemon([rule(env={"A": "1"}, profilers=[{"clsid": rig.profiler_clsid, "path": written}])])
    app = start(name, one.socket)
    assert told(app)["profiler"].startswith("1:")
    receipt = one.receipt(app.pid, "running")
    step = receipt.step("profiler")
    assert (receipt.outcome, step["name"], step["result"]) == ("applied", path, "ok")
    # What the runtime calls itself is what it was looked up by.
    assert receipt["rid"] == f"linux-{ARCH}"
    app.finish()
