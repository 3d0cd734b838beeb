# SPDX-License-Identifier: Apache-2.0
"""Profilers that operators have loaded into runtimes that run."""

import json
import signal

import images
import pytest
from clients import Client, Follower
from harness import CLSID, needs_root, NOBODY, rule, until
from test_ctl import DONE, NO, REFUSED, USAGE, Ctl

PLAN = rule(env={"A": "1", "GONE": None})

ALREADY = "0x8013136a"


def attach(one, runtime, path, status=202, **keys):
    """What the daemon answers."""
    answer = Client(one).post(f"/v1/runtimes/pid:{runtime.pid}/attach-profiler", {"clsid": CLSID, "path": path, **keys})
    assert answer.status == status, answer
    return answer


def step_of(one, runtime, number=1):
    """What came of it, once something has."""

    def look():
        (found,) = [step for step in one.runtime(runtime.pid)["steps"] if step.get("number") == number]
        return found

    return until(look, lambda step: step["result"] != "pending")


def running(one, runtime):
    runtime.report()
    assert one.receipt(runtime.pid, "running")["state"] == "running"
    return runtime


def test_it_is_loaded_with_its_data(daemon, fake, folder):
    path = folder.profiler()
    one = daemon()
    runtime = running(one, fake(one.socket))
    client = Client(one)
    follower = Follower(client)
    begun = attach(one, runtime, path, data="level=5;né", timeout="2s").json
    assert (begun["verdict"], begun["number"], begun["runtime"]["pid"]) == ("begun", 1, runtime.pid)
    step = step_of(one, runtime)
    assert (step["kind"], step["name"], step["clsid"]) == ("attach", path, CLSID.strip("{}"))
    assert (step["result"], step["hresult"], step["attempts"], step["why"]) == ("ok", "0x00000000", 1, None)
    asked = follower.next_event()
    assert (asked["kind"], asked["what"], asked["result"]) == ("admin", "attach-profiler", "begun")
    told = follower.next_event()
    assert (told["kind"], told["step"], told["name"], told["result"]) == ("step", "attach", path, "ok")
    follower.close()
    assert one.metric('diagport_steps_total{kind="attach",result="ok"}') == 1
    one.wait(rf"diagportd: step attach ok runtime=\S+ pid={runtime.pid} .*{path}")
    assert runtime.finish() == ["kind", f"attach {path} with level=5;né"]
    # What it was given is nobody else's business.
    assert not any("level=5" in line for line in one.log.seen)
    assert "level=5" not in json.dumps(one.runtime(runtime.pid))


def test_bytes(daemon, fake, folder):
    path = folder.profiler()
    one = daemon([PLAN])
    runtime = running(one, fake(one.socket))
    attach(one, runtime, path, data_hex="00fF")
    assert step_of(one, runtime)["result"] == "ok"
    assert runtime.end() == 0
    (command,) = runtime.report("end")["commands"]
    assert command["arguments"]["data"] == "00ff"


def test_what_it_was_asked_for_its_plan_is_not_asked_again(daemon, fake, folder):
    path = folder.profiler()
    one = daemon([PLAN])
    runtime = running(one, fake(one.socket))
    attach(one, runtime, path)
    step_of(one, runtime)
    assert [step["kind"] for step in one.runtime(runtime.pid)["steps"]] == ["env", "env", "resume", "attach"]
    assert runtime.finish() == [f"attach {path}"]


def test_a_port_that_does_not_suspend(daemon, fake, folder):
    path = folder.profiler()
    one = daemon([PLAN])
    runtime = running(one, fake(f"{one.socket},nosuspend"))
    attach(one, runtime, path)
    assert step_of(one, runtime)["result"] == "ok"
    assert runtime.finish()[-1] == f"attach {path}"


def test_a_rule_that_attaches(daemon, fake, folder):
    """In the order of the rule, each after the other had its result; nothing else of the rule is done."""
    paths = [folder.profiler("one.so"), str(folder / "missing.so"), folder.profiler("notify.so", "notify")]
    profilers = [{"clsid": f"{CLSID[:-2]}{i}}}", "path": path} for i, path in enumerate(paths)]
    one = daemon([rule(env={"A": "1"}, profilers=profilers, late="attach")])
    runtime = running(one, fake(f"{one.socket},nosuspend"))
    assert [step_of(one, runtime, number)["result"] for number in (1, 2, 3)] == ["ok", "refused", "ok"]
    receipt = one.runtime(runtime.pid)
    assert receipt.outcome == "late"
    commands = [*runtime.commands(), *runtime.finish()]
    assert commands == ["resume", "kind", f"attach {paths[0]}", f"attach {paths[2]}"]


WRONG = {
    "missing": (None, "file-missing", None),
    "text": (lambda: b"fake-profiler: main\n", "not-elf", None),
    "no-export": (lambda: images.profiler(exports=["Other"]), "no-entry-point", None),
    "library": (lambda: images.profiler(needed=["nowhere.so.1"]), "needs-library", "nowhere.so.1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_will_not_do_is_refused_unsent(daemon, fake, folder, name):
    make, code, detail = WRONG[name]
    path = folder.file("wrong.so", make()) if make else str(folder / "missing.so")
    one = daemon()
    runtime = running(one, fake(one.socket))
    attach(one, runtime, path)
    step = step_of(one, runtime)
    assert (step["result"], step["code"], step["detail"], step["attempts"]) == ("refused", code, detail, 0)
    assert step["why"] and step["remedy"] and step["hresult"] is None
    assert runtime.finish() == []


@needs_root
def test_a_file_that_its_user_may_not_read(daemon, fake, folder):
    path = folder.profiler()
    (folder / "profiler.so").chmod(0o600)
    one = daemon()
    runtime = running(one, fake(one.socket, user=NOBODY, group=NOBODY, extra_groups=[]))
    attach(one, runtime, path)
    assert step_of(one, runtime)["code"] == "file-closed"
    assert runtime.finish() == []


def test_nativeaot_gets_none(daemon, fake, folder):
    path = folder.profiler()
    one = daemon()
    runtime = running(one, fake(one.socket, "kind=nativeaot", "version=10"))
    attach(one, runtime, path)
    step = step_of(one, runtime)
    assert (step["result"], step["why"]) == ("refused", "is not supported by NativeAOT programs")
    assert runtime.finish() == ["kind"]


def test_one_that_is_suspended(daemon, fake, folder):
    path = folder.profiler()
    one = daemon([rule(startup_hooks=[{"path": "/nonexistent/Hook.dll"}], on_failure="hold")])
    runtime = fake(one.socket)
    one.receipt(runtime.pid, "held")
    assert "does not run yet" in attach(one, runtime, path, 409).detail
    Client(one).post(f"/v1/runtimes/pid:{runtime.pid}/resume")
    assert runtime.commands() == ["resume"]
    runtime.end()


def test_one_that_shows_that_it_does_not_run(daemon, fake, folder):
    path = folder.profiler()
    one = daemon()
    runtime = running(one, fake(one.socket, "picture=suspended"))
    attach(one, runtime, path)
    step = step_of(one, runtime)
    assert (step["result"], step["attempts"]) == ("refused", 0)
    assert runtime.finish() == []


def test_what_the_runtime_answers_is_told(daemon, fake, folder):
    one = daemon()
    runtime = running(one, fake(one.socket))
    attach(one, runtime, folder.profiler("fails.so", "fails"))
    step = step_of(one, runtime)
    assert (step["result"], step["hresult"], step["attempts"]) == ("refused", "0x80004005", 1)
    attach(one, runtime, folder.profiler("one.so"))
    assert step_of(one, runtime, 2)["result"] == "ok"
    attach(one, runtime, folder.profiler("two.so"))
    step = step_of(one, runtime, 3)
    assert (step["result"], step["hresult"], step["meaning"]) == ("refused", ALREADY, "a profiler is already active")
    attach(one, runtime, folder.profiler("notify.so", "notify"))
    assert step_of(one, runtime, 4)["result"] == "ok"
    # One that is refused is not asked for again.
    assert [command.split("/")[-1] for command in runtime.finish()] == [
        "kind", "fails.so", "one.so", "two.so", "notify.so"]


def test_a_start_that_takes_long(daemon, fake, folder):
    path = folder.profiler()
    one = daemon()
    runtime = running(one, fake(one.socket, "refuse=attach:8013135b:2"))
    attach(one, runtime, path)
    step = step_of(one, runtime)
    assert (step["result"], step["attempts"]) == ("ok", 3)
    runtime.finish()


@pytest.mark.parametrize("habit", ["silent=attach@1", "close-before-reply=attach@1", "stuck=attach"])
def test_what_is_not_answered_is_lost(daemon, fake, folder, habit):
    path = folder.profiler()
    one = daemon()
    runtime = running(one, fake(one.socket, habit))
    attach(one, runtime, path, timeout="1ms")
    step = step_of(one, runtime)
    assert (step["result"], step["hresult"], step["attempts"]) == ("lost", None, 1)
    # It is on its port again, as after every command.
    if habit != "stuck=attach":
        one.until(runtime.pid, lambda seen: seen["connections"] == 1 and seen["state"] == "running")
        attach(one, runtime, folder.profiler("other.so"))
        assert step_of(one, runtime, 2)["result"] in ("ok", "refused")
    runtime.kill()


def test_one_at_a_time(daemon, fake, folder):
    path = folder.profiler()
    one = daemon()
    runtime = running(one, fake(one.socket, "stop-before-reply=attach"))
    attach(one, runtime, path, timeout="1m")
    runtime.stands()
    assert "another profiler" in attach(one, runtime, path, 409).detail
    runtime.thaw()
    assert step_of(one, runtime)["result"] == "ok"
    assert runtime.finish() == ["kind", f"attach {path}"]


def test_its_end(daemon, fake, folder):
    path = folder.profiler()
    one = daemon()
    runtime = running(one, fake(one.socket, "die-before-reply=attach"))
    attach(one, runtime, path)
    assert runtime.wait() == -signal.SIGKILL
    one.receipt(runtime.pid, "gone")
    assert step_of(one, runtime)["result"] == "lost"
    assert "has ended" in attach(one, runtime, path, 409).detail


def test_a_daemon_that_stops_does_not_wait_for_it(daemon, fake, folder):
    path = folder.profiler()
    one = daemon()
    runtime = running(one, fake(one.socket, "silent=attach"))
    attach(one, runtime, path, timeout="1m")
    one.stop()
    one.start()
    assert one.until(runtime.pid, lambda seen: seen["state"] == "running")
    assert [step["kind"] for step in one.runtime(runtime.pid)["steps"]] == ["resume"]
    runtime.kill()


BAD = [
    ({}, '"clsid"'),
    ({"clsid": "x", "path": "/p"}, '"clsid"'),
    ({"clsid": CLSID}, '"path"'),
    ({"clsid": CLSID, "path": "p.so"}, '"path"'),
    ({"clsid": CLSID, "path": "/" * 4096}, '"path"'),
    ({"clsid": CLSID, "path": 1}, '"path"'),
    ({"clsid": CLSID, "path": "/p", "timeout": 5}, '"timeout"'),
    ({"clsid": CLSID, "path": "/p", "timeout": "0s"}, '"timeout"'),
    ({"clsid": CLSID, "path": "/p", "timeout": "61s"}, '"timeout"'),
    ({"clsid": CLSID, "path": "/p", "data": []}, '"data"'),
    ({"clsid": CLSID, "path": "/p", "data_hex": "0"}, '"data_hex"'),
    ({"clsid": CLSID, "path": "/p", "data_hex": "0g"}, '"data_hex"'),
    ({"clsid": CLSID, "path": "/p", "data": "", "data_hex": ""}, "two forms"),
    ({"clsid": CLSID, "path": "/p", "data": "x" * 65500}, "do not fit"),
    ({"clsid": CLSID, "path": "/p", "more": 1}, '"more"'),
]


def test_requests_that_are_wrong(daemon, fake):
    one = daemon()
    runtime = running(one, fake(one.socket))
    for body, words in BAD:
        answer = Client(one).post(f"/v1/runtimes/pid:{runtime.pid}/attach-profiler", body)
        assert answer.status == 400 and words in answer.detail, (body, answer)
    assert Client(one).post("/v1/runtimes/pid:1/attach-profiler", BAD[0][0]).status == 404
    assert runtime.finish() == []


def test_the_tool(daemon, fake, folder):
    path = folder.profiler()
    data = folder.file("data", b"\0\xff")
    one = daemon()
    ctl = Ctl(one)
    runtime = running(one, fake(one.socket))
    words = ["attach-profiler", f"pid:{runtime.pid}", "--clsid", CLSID, "--path"]
    assert f"has loaded {path}" in ctl(*words, path, "--data-file", data, status=DONE)
    ended = ctl(*words, str(folder / "missing.so"), "--json", status=NO)
    assert ended == ""
    assert "timeout" in ctl(*words, path, "--timeout", "2m", status=USAGE)
    assert "attach" in ctl("show", f"pid:{runtime.pid}")
    assert runtime.end() == 0
    kind, attached = runtime.report("end")["commands"]
    assert attached["arguments"]["data"] == "00ff"
    assert attached["arguments"]["timeout"] == 5000


@needs_root
def test_who_may_not(daemon, fake, folder):
    path = folder.profiler()
    one = daemon(control={"path": str(folder / "control.sock"), "mode": "0666", "read": {"users": [NOBODY]}})
    runtime = running(one, fake(one.socket))
    words = ["attach-profiler", f"pid:{runtime.pid}", "--clsid", CLSID, "--path", path]
    ended = Ctl(one)(*words, status=REFUSED, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    assert "admin" in ended
    assert runtime.finish() == []
