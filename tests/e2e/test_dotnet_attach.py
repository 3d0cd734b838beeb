# SPDX-License-Identifier: Apache-2.0
"""Profilers that operators have loaded into real programs that run: what each version makes of them."""

import os
import pathlib
import shutil

import images
import pytest
from apps import CORECLR, NATIVEAOT, ONE, SINGLE_FILE, UNTOUCHED, told
from clients import Client
from harness import rule
from test_attach import ALREADY, step_of

pytestmark = pytest.mark.dotnet

EVERY_CORECLR = [*CORECLR, *SINGLE_FILE]


def attach(one, app, rig, path=None, clsid=None, proof=None, data=b"", **keys):
    """Asks for it; what it is given is left in the file that `proof` names, where there is one."""
    body = {"clsid": clsid or rig.profiler_clsid, "path": path or rig.profiler, **keys}
    if proof is not None:
        body["data_hex"] = (os.fsencode(proof) + b"\0" + data).hex()
    answer = Client(one).post(f"/v1/runtimes/pid:{app.pid}/attach-profiler", body)
    assert answer.status == 202, answer
    return answer.json["number"]


def is_mapped(app, path):
    return str(path) in pathlib.Path(f"/proc/{app.pid}/maps").read_text()


def running(one, app):
    assert told(app)["profiler"] is None
    one.receipt(app.pid, "running")
    return app


@pytest.mark.parametrize("name", EVERY_CORECLR)
def test_it_is_loaded_and_sees_its_data(daemon, start, rig, folder, name):
    one = daemon()
    app = running(one, start(name, one.socket))
    data = bytes(range(256)) * 100
    attach(one, app, rig, proof=folder / "proof", data=data)
    step = step_of(one, app)
    assert (step["result"], step["hresult"]) == ("ok", "0x00000000"), step
    assert (folder / "proof").read_bytes() == data
    assert is_mapped(app, rig.profiler)
    # It is on its port again.
    one.until(app.pid, lambda seen: seen["connections"] == 1 and seen["state"] == "running")
    app.finish()


@pytest.mark.parametrize("name", EVERY_CORECLR)
def test_straight_after_its_start(daemon, start, rig, folder, name):
    """When it says that it is not there yet, it is sent the same again."""
    one = daemon()
    app = start(name, one.socket)
    one.receipt(app.pid, "running")
    attach(one, app, rig, proof=folder / "proof")
    assert step_of(one, app)["result"] == "ok"
    assert told(app) == {**UNTOUCHED, "profiler": None}
    app.finish()


@pytest.mark.parametrize("name", CORECLR)
def test_a_port_that_does_not_suspend(daemon, start, rig, folder, name):
    one = daemon([rule(env={ONE: "one"})])
    app = running(one, start(name, f"{one.socket},nosuspend"))
    attach(one, app, rig, proof=folder / "proof", data=b"late")
    assert step_of(one, app)["result"] == "ok"
    assert (folder / "proof").read_bytes() == b"late"
    app.finish()


@pytest.mark.parametrize("name", CORECLR)
def test_a_rule_that_attaches(daemon, start, rig, name):
    """The test profiler has no use for a call without data, and says so."""
    profilers = [{"clsid": rig.profiler_clsid, "path": rig.profiler}]
    one = daemon([rule(env={ONE: "one"}, profilers=profilers, late="attach")])
    app = start(name, f"{one.socket},nosuspend")
    assert told(app) == UNTOUCHED
    one.receipt(app.pid, "running")
    one.until(app.pid, lambda seen: any(step["kind"] == "attach" for step in seen["steps"]))
    step = step_of(one, app)
    assert (step["result"], step["hresult"]) == ("refused", "0x80004005"), step
    assert one.runtime(app.pid).outcome == "late"
    app.finish()


@pytest.mark.parametrize("name", EVERY_CORECLR)
def test_what_it_answers(daemon, start, rig, folder, name):
    one = daemon([rule(env={ONE: "one"})])
    app = running(one, start(name, one.socket))
    other = str(folder / "other.so")
    shutil.copy(rig.profiler, other)
    # Its InitializeForAttach fails, and so does asking it for another class; neither is in the way of the next.
    number = attach(one, app, rig)
    step = step_of(one, app, number)
    assert (step["result"], step["hresult"]) == ("refused", "0x80004005"), step
    number = attach(one, app, rig, clsid=rig.profiler_notify_clsid)
    step = step_of(one, app, number)
    assert (step["result"], step["hresult"]) == ("refused", "0x80040111"), step
    number = attach(one, app, rig, proof=folder / "proof")
    assert step_of(one, app, number)["result"] == "ok"
    # A second main one does not get its data; one that only listens is welcome.
    number = attach(one, app, rig, path=other, proof=folder / "second")
    step = step_of(one, app, number)
    assert (step["result"], step["hresult"], step["meaning"]) == ("refused", ALREADY, "a profiler is already active")
    assert not (folder / "second").exists()
    number = attach(one, app, rig, path=rig.profiler_notify, clsid=rig.profiler_notify_clsid, proof=folder / "notify")
    assert step_of(one, app, number)["result"] == "ok"
    assert (folder / "notify").exists()
    app.finish()


@pytest.mark.parametrize("name", EVERY_CORECLR)
def test_one_of_its_rule_is_there_already(daemon, start, rig, folder, name):
    one = daemon([rule(env={ONE: "one"}, profilers=[{"clsid": rig.profiler_clsid, "path": rig.profiler}])])
    app = start(name, one.socket)
    assert told(app)["profiler"] == "1:one:-"
    one.receipt(app.pid, "running")
    attach(one, app, rig, proof=folder / "proof")
    step = step_of(one, app)
    assert (step["result"], step["hresult"]) == ("refused", ALREADY), step
    app.finish()


@pytest.mark.parametrize("name", CORECLR)
@pytest.mark.parametrize(
    ("setting", "value"),
    [("DOTNET_EnableDiagnostics_Profiler", "0"), ("DOTNET_ProfAPI_ProfilerCompatibilitySetting", "PreventLoad")],
)
def test_where_none_is_loaded_at_the_start(daemon, start, rig, folder, name, setting, value):
    one = daemon()
    app = running(one, start(name, one.socket, environment={setting: value}))
    attach(one, app, rig, proof=folder / "proof")
    assert step_of(one, app)["result"] == "ok"
    assert (folder / "proof").exists() and is_mapped(app, rig.profiler)
    app.finish()


@pytest.mark.parametrize("name", CORECLR)
def test_a_file_that_will_not_do_is_refused_unsent(daemon, start, rig, folder, name):
    one = daemon()
    app = running(one, start(name, one.socket))
    number = attach(one, app, rig, path=str(folder / "missing.so"))
    step = step_of(one, app, number)
    assert (step["result"], step["code"], step["attempts"]) == ("refused", "file-missing", 0)
    number = attach(one, app, rig, path=folder.file("other.so", images.profiler(exports=["Other"])))
    step = step_of(one, app, number)
    assert (step["result"], step["code"], step["attempts"]) == ("refused", "no-entry-point", 0)
    app.finish()


@pytest.mark.parametrize("name", NATIVEAOT)
def test_nativeaot_gets_none(daemon, start, rig, name):
    one = daemon()
    app = running(one, start(name, one.socket))
    attach(one, app, rig)
    step = step_of(one, app)
    assert (step["result"], step["why"]) == ("refused", "is not supported by NativeAOT programs")
    assert told(app) == UNTOUCHED
    app.finish()


@pytest.mark.parametrize("name", CORECLR)
def test_one_that_takes_too_long_is_lost(daemon, start, rig, folder, name):
    """What it does after that is its own business; the next one finds it there."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    one = daemon()
    app = running(one, start(name, one.socket))
    number = attach(one, app, rig, proof=pipe, timeout="100ms")
    assert step_of(one, app, number)["result"] == "lost"
    reader = os.open(pipe, os.O_RDONLY)
    one.until(app.pid, lambda seen: seen["connections"] == 1 and seen["state"] == "running")
    number = attach(one, app, rig, proof=folder / "proof")
    step = step_of(one, app, number)
    os.close(reader)
    assert (step["result"], step["hresult"]) == ("refused", ALREADY), step
    app.finish()
