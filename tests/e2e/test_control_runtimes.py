# SPDX-License-Identifier: Apache-2.0
"""Runtimes as operators see them, and what operators do to them."""

import os
import re
import signal

import harness

COOKIE_A = "aaaaaaaa-0000-4000-8000-000000000001"
COOKIE_B = "aaaaaaaa-1111-4000-8000-000000000002"
COOKIE_C = "cccccccc-0000-4000-8000-000000000003"

POLICY = """
version: 1
listen:
  - { name: runtime, path: "{folder}/runtime.sock", mode: "0666" }
control: { path: "{folder}/control.sock" }
defaults: { deadline: 50s, command_timeout: 40s, hold_limit: 20m }
rules:
  - name: nobody
    match: { container: any, unit: "no-such-*.service", env: { RING: "canary*" } }
    ignore: true
  - name: canary
    match: { container: any, env: { RING: "canary*" } }
    env: { ACME_TOKEN: very-secret, ACME_RING: "1" }
    hold_limit: 10m
"""

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def canary(daemon, spawn, cookie, *options):
    return spawn(daemon, cookie, *options, environment={"RING": "canary-1"})


def held(daemon, spawn, cookie=COOKIE_A, body=None):
    """A runtime that an operator asked for in the middle of its plan."""
    runtime = canary(daemon, spawn, cookie, "--slow")
    runtime.wait_line("0403")
    answer = daemon.post(f"/v1/runtimes/{cookie}/hold", body)
    assert answer.status == 200 and answer.json["verdict"] == "done", answer
    runtime.tell("answer")
    runtime.wait_line("0403")
    runtime.tell("answer")
    daemon.wait_for_state(cookie, "held")
    return runtime


def test_one_that_no_rule_matches(start, spawn):
    daemon = start(POLICY)
    fake = spawn(daemon, COOKIE_C)
    fake.wait_line("0401")
    runtime = daemon.wait_for_state(COOKIE_C, "running")
    assert runtime["id"] == "cccccccc" and runtime["cookie"] == COOKIE_C
    assert runtime["pid"] == fake.pid and runtime["claimed_pid"] == fake.pid
    assert runtime["uid"] == os.geteuid()
    assert runtime["exe"] == os.readlink(f"/proc/{fake.pid}/exe")
    assert runtime["cmdline"][-1] == COOKIE_C
    assert runtime["port"] == "runtime" and runtime["rule"] is None
    assert runtime["outcome"] == "untouched" and runtime["late"] is False
    assert runtime["blocked"] is None and runtime["blocked_ports"] == []
    for key in "connected_at", "resumed_at":
        assert TIME.fullmatch(runtime[key]), key
    assert runtime["ended_at"] is None and runtime["deadline_at"] is None
    assert 0 < runtime["hold_seconds"] < harness.PATIENCE
    (step,) = runtime["steps"]
    assert (step["kind"], step["name"], step["result"], step["hresult"]) == (
        "resume",
        None,
        "ok",
        "0x00000000",
    )
    assert [entry["verdict"] for entry in runtime["trace"]] == ["no", "no"]
    assert runtime["trace"][0]["file"] == str(daemon.config) and runtime["trace"][0]["line"] == 8
    assert (
        runtime["trace"][1]["why"]
        == 'the variable "RING" was not set, or its value was none of "canary*"'
    )
    assert runtime["attributes"]["exe"]["source"] == "/proc/PID/exe"
    assert runtime["attributes"]["env"]["state"] == "unknown"
    assert runtime["policy"] == daemon.status()["policy"]["hash"]


def test_one_with_a_plan(start, spawn):
    daemon = start(POLICY)
    canary(daemon, spawn, COOKIE_A).wait_line("0401")
    runtime = daemon.wait_for_state("pid:%d" % daemon.runtimes()[0]["pid"], "running")
    assert (runtime["rule"], runtime["outcome"]) == ("canary", "applied")
    assert (runtime["kind"], runtime["runtime_version"], runtime["rid"]) == (
        "coreclr",
        "8.0.20",
        "linux-x64",
    )
    steps = [
        (step["kind"], step["name"], step["result"], step["attempts"]) for step in runtime["steps"]
    ]
    assert steps == [
        ("env", "ACME_TOKEN", "ok", 1),
        ("env", "ACME_RING", "ok", 1),
        ("resume", None, "ok", 1),
    ]
    assert runtime["steps"][0]["unset"] is False and runtime["steps"][0]["required"] is True
    rules = {rule["name"]: rule for rule in daemon.get("/v1/rules").json["rules"]}
    assert rules["nobody"]["matches"] == 0 and rules["nobody"]["last_match"] is None
    assert rules["canary"]["matches"] == 1 and TIME.fullmatch(rules["canary"]["last_match"])
    assert rules["canary"]["env"] == ["ACME_TOKEN", "ACME_RING"]
    assert rules["canary"]["line"] == 11 and rules["nobody"]["ignore"] is True
    assert (
        rules["canary"]["hold_limit_seconds"] == 600
        and rules["nobody"]["hold_limit_seconds"] == 1200
    )


def test_values_are_nowhere(start, spawn):
    daemon = start(POLICY)
    fake = canary(daemon, spawn, COOKIE_A, "--slow")
    fake.wait_line("0403")
    answers = [
        daemon.get(target).body
        for target in (
            "/v1/status",
            "/v1/runtimes",
            f"/v1/runtimes/{COOKIE_A}",
            "/v1/rules",
            "/v1/events",
            "/metrics",
        )
    ]
    answers.append(daemon.post("/v1/explain", {"pid": fake.pid}).body)
    answers.append(daemon.post("/v1/policy/reload").body)
    answers.append(daemon.log_text().encode())
    for answer in answers:
        assert b"very-secret" not in answer and b"canary-1" not in answer
    assert any(b"ACME_TOKEN" in answer for answer in answers)


def test_filters(start, spawn):
    daemon = start(POLICY)
    fakes = [spawn(daemon, COOKIE_C), canary(daemon, spawn, COOKIE_A)]
    for fake in fakes:
        fake.wait_line("0401")
    for cookie in COOKIE_A, COOKIE_C:
        daemon.wait_for_state(cookie, "running")

    def cookies(query):
        return sorted(runtime["cookie"] for runtime in daemon.runtimes(query))

    both = [COOKIE_A, COOKIE_C]
    assert (
        cookies("") == both and cookies("?state=running") == both and cookies("?state=held") == []
    )
    assert cookies("?rule=canary") == [COOKIE_A] and cookies("?rule=nobody") == []
    assert cookies(f"?pid={fakes[0].pid}") == [COOKIE_C] and cookies("?pid=1") == []
    assert cookies(f"?user={os.geteuid()}") == both and cookies("?user=4294967294") == []
    assert cookies("?user=no-such-user") == [] and cookies("?unit=no-such-*") == []
    if daemon.runtime(COOKIE_A)["user"]:
        assert cookies("?user=" + daemon.runtime(COOKIE_A)["user"]) == both
    assert cookies(f"?rule=canary&state=running&pid={fakes[1].pid}") == [COOKIE_A]
    assert cookies(f"?rule=canary&pid={fakes[0].pid}") == []


def test_ids(start, spawn):
    daemon = start(POLICY)
    for cookie in COOKIE_A, COOKIE_B:
        spawn(daemon, cookie).wait_line("0401")
        daemon.wait_for_state(cookie, "running")
    for name in (
        COOKIE_A,
        COOKIE_A.upper(),
        COOKIE_A.replace("-", ""),
        "aaaaaaaa-0",
        "aaaaaaaa0",
        "pid%3A{}",
        "pid:{}",
    ):
        pid = next(runtime["pid"] for runtime in daemon.runtimes() if runtime["cookie"] == COOKIE_A)
        assert daemon.runtime(name.format(pid))["cookie"] == COOKIE_A
    for method, target in (
        ("GET", "/v1/runtimes/aaaaaaaa"),
        ("POST", "/v1/runtimes/aaaa/resume"),
        ("POST", "/v1/runtimes/aaaa/hold"),
        ("POST", "/v1/runtimes/aaaa/kill"),
    ):
        answer = daemon.ask(method, target)
        assert answer.status == 409 and "more than one" in answer.detail
        assert sorted(answer.json["ids"]) == [COOKIE_A, COOKIE_B]
    for name in "aaa", "bbbb", "pid:", "pid:0", "pid:x", "pid:99999999999999999999", "zzzzzzzz":
        assert daemon.get(f"/v1/runtimes/{name}").status == 404
        assert daemon.ask("POST", f"/v1/runtimes/{name}/kill").status == 404
    assert all(runtime["state"] == "running" for runtime in daemon.runtimes())


def test_resume_during_a_plan(start, spawn):
    daemon = start(POLICY)
    fake = canary(daemon, spawn, COOKIE_A, "--slow")
    fake.wait_line("0403")
    runtime = daemon.runtime(COOKIE_A)
    assert runtime["state"] == "applying" and TIME.fullmatch(runtime["deadline_at"])
    assert runtime["outcome"] is None and runtime["steps"][0]["result"] == "pending"
    answer = daemon.post("/v1/runtimes/aaaaaaaa/resume")
    assert answer.json["verdict"] == "done" and answer.json["runtime"]["state"] == "resuming"
    assert daemon.ask("POST", "/v1/runtimes/aaaaaaaa/resume", "{}").json["verdict"] == "already"
    assert daemon.post("/v1/runtimes/aaaaaaaa/hold").status == 409
    answer = daemon.ask("POST", "/v1/runtimes/aaaaaaaa/resume", '{"now": true}')
    assert answer.status == 400 and '"now"' in answer.detail
    events = [event for event in daemon.events() if event["kind"] == "admin"]
    assert [(event["what"], event["result"]) for event in events] == [
        ("resume", "done"),
        ("resume", "already"),
        ("hold", "refused"),
    ]
    assert all(event["cookie"] == COOKIE_A and event["uid"] == os.geteuid() for event in events)
    assert "admin resume done by pid=" in daemon.log_text()


def test_hold_and_resume(start, spawn):
    daemon = start(POLICY)
    fake = held(daemon, spawn)
    runtime = daemon.runtime(COOKIE_A)
    assert runtime["outcome"] == "applied" and TIME.fullmatch(runtime["hold_until"])
    assert runtime["deadline_at"] is None and runtime["resumed_at"] is None
    assert daemon.status()["runtimes"]["held"] == 1
    until = runtime["hold_until"]
    for body, problem in (
        ({"for": "11m"}, "hold_limit"),
        ({"for": "forever"}, "hold_limit"),
        ({"for": "10"}, "unit"),
        ({"for": "0s"}, "unit"),
        ({"for": 10}, "unit"),
        ({"for": "-1s"}, "unit"),
        ({"for": None}, "unit"),
        ({"for": "999999999999999999999h"}, "unit"),
    ):
        answer = daemon.post(f"/v1/runtimes/{COOKIE_A}/hold", body)
        assert answer.status == 400 and problem in answer.detail, (body, answer)
    assert daemon.runtime(COOKIE_A)["hold_until"] == until
    assert daemon.post(f"/v1/runtimes/{COOKIE_A}/hold", {"for": "1s"}).json["verdict"] == "done"
    assert daemon.runtime(COOKIE_A)["hold_until"] < until
    # The hold ends by itself, in Resume.
    fake.wait_line("0401")
    daemon.wait_for_state(COOKIE_A, "running")
    assert daemon.runtime(COOKIE_A)["hold_until"] is None


def test_resume_ends_a_hold(start, spawn):
    daemon = start(POLICY)
    fake = held(daemon, spawn, body={"for": "10m"})
    assert daemon.post(f"/v1/runtimes/{COOKIE_A}/resume").json["verdict"] == "done"
    fake.wait_line("0401")
    daemon.wait_for_state(COOKIE_A, "running")


def test_kill(start, spawn):
    daemon = start(POLICY)
    fake = held(daemon, spawn)
    answer = daemon.post(f"/v1/runtimes/{COOKIE_A}/kill")
    assert answer.json["verdict"] == "done", answer
    assert fake.process.wait(harness.PATIENCE) == -signal.SIGKILL
    daemon.wait_for_state(COOKIE_A, "killed")
    for verb in "resume", "hold", "kill":
        answer = daemon.post(f"/v1/runtimes/{COOKIE_A}/{verb}")
        assert answer.status == 409 and "ended" in answer.detail, (verb, answer)
    assert TIME.fullmatch(daemon.wait_for_state(COOKIE_A, "killed")["ended_at"])


def test_explain_a_process(start, spawn):
    daemon = start(POLICY)
    fake = canary(daemon, spawn, COOKIE_A, "--slow")
    fake.wait_line("0403")
    said = list(fake.said.lines)
    answer = daemon.post("/v1/explain", {"pid": fake.pid}).json
    assert (answer["pid"], answer["id"], answer["rule"], answer["action"]) == (
        fake.pid,
        "aaaaaaaa",
        "canary",
        "apply",
    )
    assert [entry["verdict"] for entry in answer["trace"]] == ["no", "yes"]
    assert [(step["name"], step["result"]) for step in answer["steps"]] == [
        ("ACME_TOKEN", "pending"),
        ("ACME_RING", "pending"),
    ]
    assert "RING" in answer["attributes"]["env"]["texts"]
    assert answer["attributes"]["port"]["texts"] == ["runtime"]
    assert answer["port_mode"] == "suspends" and answer["picture"] == "unknown"
    fake.tell("answer")
    fake.wait_line("0403")
    assert fake.said.lines == said + ["0403"]
    gone = daemon.post("/v1/explain", {"pid": 2**31 - 1})
    assert gone.status == 404 and "2147483647" in gone.detail


def test_explain_given_attributes(start):
    daemon = start(
        """
version: 1
listen:
  - { name: runtime, path: "{folder}/runtime.sock" }
control: { path: "{folder}/control.sock" }
rules:
  - name: sdk
    match: { assembly: dotnet }
    ignore: true
  - name: pay
    match: { unit: "pay-*.service", args: "--tenant=*", env: { RING: "a*" } }
    env: { A: b, OLD: null }
    profilers:
      - { path: /opt/x.so, clsid: "{918728DD-259F-4A6A-AC2B-B85E1B658318}" }
    startup_hooks: [ { path: /opt/hook.dll } ]
  - name: watch
    match: { unit: "watch.service" }
    mode: observe
    env: { A: b }
  - name: rest
    match: { user: alice }
    ignore: true
"""
    )

    def explain(**attributes):
        answer = daemon.post("/v1/explain", {"attributes": attributes})
        assert answer.status == 200, answer
        return answer.json

    pay = dict(
        exe="/usr/share/dotnet/dotnet",
        args=["dotnet", "/opt/Pay.dll", "--tenant=x"],
        unit="pay-1.service",
        env={"RING": "abc"},
    )
    answer = explain(**pay)
    assert (answer["rule"], answer["action"], answer["by_unknown"]) == ("pay", "apply", False)
    assert answer["attributes"]["assembly"]["texts"] == ["Pay"]
    assert [entry["verdict"] for entry in answer["trace"]] == [
        "no",
        "yes",
        "not_asked",
        "not_asked",
    ]
    steps = [(step["kind"], step["name"], step["result"]) for step in answer["steps"]]
    assert steps == [
        ("env", "A", "pending"),
        ("env", "OLD", "pending"),
        ("profiler", "/opt/x.so", "pending"),
        ("hook", "/opt/hook.dll", "pending"),
    ]
    assert answer["steps"][1]["unset"] is True
    assert answer["steps"][2]["clsid"] == "918728dd-259f-4a6a-ac2b-b85e1b658318"
    assert (
        answer["assumed_kind"] == "coreclr" and answer["pid"] is None and answer["picture"] is None
    )
    prevented = dict(
        pay, env={"RING": "a", "DOTNET_ProfAPI_ProfilerCompatibilitySetting": "PreventLoad"}
    )
    refused = explain(**prevented)["steps"][2]
    assert refused["result"] == "refused" and refused["why"]
    assert explain(**dict(pay, args=["dotnet", "build"]))["action"] == "ignore"
    assert explain(assembly="x", unit="watch.service", args=[], env={})["action"] == "observe"
    assert explain(assembly=None, unit=None, user="bob")["action"] == "untouched"
    contained = explain(**dict(pay, container="abc"))
    assert contained["rule"] is None and "container" in contained["trace"][1]["why"]
    unknown = explain(unit="pay-1.service")
    assert unknown["by_unknown"] is True and unknown["rule"] == "sdk"
    assert "could not be read: not given" in unknown["trace"][0]["why"]


def test_foreign_text_is_escaped(start, spawn):
    daemon = start(POLICY)
    fake = spawn(daemon, COOKIE_C, "a\x1b[31m\u202eb\\")
    fake.wait_line("0401")
    assert (
        daemon.wait_for_state(COOKIE_C, "running")["cmdline"][-1]
        == "a\\x1b[31m\\xe2\\x80\\xaeb\\x5c"
    )


def test_many_in_a_list(start, spawn):
    """More than fits into one piece of an answer, in order, and whole."""
    daemon = start(POLICY)
    cookies = [f"{i:08x}-0000-4000-8000-000000000000" for i in range(1, 41)]
    fakes = [spawn(daemon, cookie) for cookie in cookies]
    for fake in fakes:
        fake.wait_line("0401")
    for cookie in cookies:
        daemon.wait_for_state(cookie, "running")
    listed = daemon.runtimes()
    assert sorted(runtime["cookie"] for runtime in listed) == cookies
    assert [runtime["connected_at"] for runtime in listed] == sorted(
        runtime["connected_at"] for runtime in listed
    )
    assert daemon.status()["runtimes"]["running"] == 40
