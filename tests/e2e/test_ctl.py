# SPDX-License-Identifier: Apache-2.0
"""diagportctl and the real daemon."""

import contextlib
import json
import os
import signal
import subprocess

import harness
from harness import NOBODY, needs_root, rule
from lines import TIMEOUT
from runtimes import FAKE, Program, story

DONE, NO, USAGE, REFUSED, NO_DAEMON = range(5)

HOLD = [
    rule(
        "keep",
        {"container": "any", "args": "keep"},
        startup_hooks=[{"path": "/nonexistent/Hook.dll"}],
        on_failure="hold",
    ),
    rule("rest", {"container": "any"}, env={"A": "1"}),
]


class Ctl:
    """Runs diagportctl against one daemon."""

    def __init__(self, one):
        self.one = one
        self.environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "DIAGPORT_CONTROL": one.control}

    def __call__(self, *words, status=DONE, **options):
        ended = subprocess.run(
            [str(harness.BUILD / "diagportctl"), *words],
            capture_output=True, text=True, check=False, timeout=TIMEOUT,
            env=self.environment, **options)
        assert ended.returncode == status, (words, ended)
        return ended.stdout if status == DONE else ended.stderr

    @contextlib.contextmanager
    def start(self, *words):
        """One that runs until it is told to end; whatever becomes of the test, nobody waits for it."""
        started = Program([str(harness.BUILD / "diagportctl"), *words], self.environment, stderr=subprocess.PIPE)
        try:
            yield started
        finally:
            started.kill()
            started.process.stderr.close()


def test_one_runtime_from_hold_to_end(daemon, fake):
    one = daemon(HOLD)
    ctl = Ctl(one)
    assert ctl("list").split() == "ID PID USER STATE BLOCKED RULE OUTCOME HOLD COMMAND".split()
    runtime = fake(one.socket, arguments=["keep"], run_for="stdin")
    one.wait(r"held runtime=")

    row = ctl("list", "--held").splitlines()[1].split()
    assert row[1:7] == [str(runtime.pid), row[2], "held", "-", "keep", "failed"]
    page = ctl("show", f"pid:{runtime.pid}")
    assert "refused" in page and "/nonexistent/Hook.dll" in page and "held until" in page
    assert json.loads(ctl("--json", "show", row[0]))["pid"] == runtime.pid
    assert "keep" in ctl("explain", str(runtime.pid))
    assert "held until" in ctl("hold", row[0], "--for", "5m")
    assert "hold_limit" in ctl("hold", row[0], "--for", "1h", status=USAGE)

    assert "done" in ctl("resume", row[0])
    assert runtime.commands() == ["resume"]
    one.wait(r" running runtime=")
    assert "nothing to do" in ctl("resume", row[0])
    ctl("hold", row[0], status=NO)
    assert runtime.end() == 0
    one.wait(r" gone runtime=")
    ctl("resume", row[0], status=NO)
    ctl("show", "ffffffffffff", status=NO)
    assert ctl("rules").splitlines()[1].split()[:2] == ["keep", "1"]
    assert "resume: done" in ctl("events")


def test_run_starts_an_app_that_waits_for_the_daemon(daemon):
    one = daemon(HOLD)
    ctl = Ctl(one)
    report = ctl("run", "--", FAKE, "--", "app")
    commands = json.loads(report.splitlines()[0])["commands"]
    assert [story(command) for command in commands][-2:] == ["env A=1", "resume"]
    one.stop()
    ctl("run", "--", "true", status=NO_DAEMON)


def test_reload_tells_the_verdict(daemon):
    one = daemon(HOLD)
    ctl = Ctl(one)
    assert "reloaded" in ctl("reload")
    one.policy_text("version: 1\nrules: 3\n")
    assert "diagport.yaml:2:8: " in ctl("reload", status=NO)
    assert "ALARM" in ctl("status")


def test_a_list_is_drawn_again_when_something_happens(daemon, fake):
    one = daemon(HOLD)
    ctl = Ctl(one)
    with ctl.start("list", "--watch", "--json") as watcher:
        assert json.loads(watcher.lines.wait(".").string)["runtimes"] == []
        runtime = fake(one.socket, arguments=["keep"])
        drawn = json.loads(watcher.lines.wait(r'"state": *"held"').string)["runtimes"]
        assert [each["pid"] for each in drawn] == [runtime.pid]
        watcher.process.send_signal(signal.SIGINT)
        assert watcher.wait() == DONE


def test_followers_are_told_of_the_end(daemon):
    one = daemon(HOLD)
    ctl = Ctl(one)
    ctl("reload")
    with ctl.start("events", "--follow", "--since", "0") as follower:
        assert "reload: done" in follower.lines.wait(".").string
        one.stop()
        assert follower.wait() == NO_DAEMON
        assert b"the daemon has stopped" in follower.process.stderr.read()


def test_metrics_for_whoever_collects_them(daemon, folder):
    one = daemon(HOLD)
    ctl = Ctl(one)
    text = ctl("metrics")
    assert "diagport_runtimes_seen_total 0\n" in text and text.endswith("# EOF\n")
    ctl("metrics", "--textfile", str(folder / "x.prom"))
    types, kept = {}, set()
    for line in (folder / "x.prom").read_text().splitlines():
        words = line.split(" ")
        if line.startswith("#"):
            assert words[1] in ("TYPE", "HELP"), line
            if words[1] == "TYPE":
                types[words[2]] = words[3]
        else:
            name = words[0].split("{")[0]
            family = name if name in types else name.rpartition("_")[0]
            assert types[family] in ({"counter", "gauge"} if family == name else {"histogram"}), line
            kept.add(words[0])
    samples = {line.split(" ")[0] for line in text.splitlines() if line.startswith("diagport_")}
    assert kept == samples


@needs_root
def test_who_may_look_may_not_touch(daemon, fake, folder):
    control = {"path": str(folder / "control.sock"), "mode": "0666", "read": {"users": [str(NOBODY)]}}
    one = daemon(HOLD, control=control)
    ctl = Ctl(one)
    runtime = fake(one.socket, arguments=["keep"])
    one.wait(r"held runtime=")
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    assert str(runtime.pid) in ctl("list", **as_nobody)
    assert "right" in ctl("resume", f"pid:{runtime.pid}", status=REFUSED, **as_nobody)
    assert "forbidden" in ctl("events")
    ctl("resume", f"pid:{runtime.pid}")
    assert runtime.end() == 0


@needs_root
def test_others_are_refused(daemon):
    ctl = Ctl(daemon(HOLD))
    for words in (["list"], ["status"], ["reload"], ["events", "-f"], ["run", "true"]):
        ctl(*words, status=REFUSED, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
