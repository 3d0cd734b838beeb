# SPDX-License-Identifier: Apache-2.0
"""Runtimes as operators see them, and what operators do to them."""

import os
import re
import signal

import pytest
from clients import client_of
from harness import rule
from runtimes import FAKE

COOKIE_A = "aaaaaaaa-0000-4000-8000-000000000001"
COOKIE_B = "aaaaaaaa-1111-4000-8000-000000000002"
COOKIE_C = "cccccccc-0000-4000-8000-000000000003"

POLICY = """
version: 1
listen:
  - { name: runtime, path: "{folder}/runtime.sock", mode: "0666" }
control: { path: "{folder}/control.sock" }
limits: { late_after: 1h }
defaults: { deadline: 10m, command_timeout: 5m, hold_limit: 20m }
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


@pytest.fixture
def client(daemon):
    return client_of(daemon, POLICY)


@pytest.fixture
def plain(client, fake):
    """Makes runtimes that no rule matches."""
    return lambda cookie, *more, **options: fake(client.daemon.socket, f"cookie={cookie}", *more, **options)


@pytest.fixture
def canary(plain):
    """Makes runtimes that get a plan."""
    return lambda cookie, *more: plain(cookie, *more, environment={"RING": "canary-1"})


@pytest.fixture
def in_plan(client, canary):
    """Makes runtimes that stand in the middle of their plan, until they are thawed."""

    def make(cookie):
        runtime = canary(cookie, "stop-before-reply=set-env@1")
        runtime.stands()
        client.wait_for_state(cookie, "applying")
        return runtime

    return make


@pytest.fixture
def held(client, in_plan):
    """Makes runtimes that an operator asked for in the middle of their plan."""

    def make(cookie, body=None):
        runtime = in_plan(cookie)
        answer = client.post(f"/v1/runtimes/{cookie}/hold", body)
        assert answer.status == 200 and answer.json["verdict"] == "done", answer
        runtime.thaw()
        client.wait_for_state(cookie, "held")
        return runtime

    return make


# Seeing.


def test_one_that_no_rule_matches(client, plain):
    fake = plain(COOKIE_C, arguments=["--", "--x", COOKIE_C])
    assert fake.commands() == ["resume"]
    runtime = client.wait_for_state(COOKIE_C, "running")
    assert runtime["id"] == "cccccccc" and runtime["cookie"] == COOKIE_C
    assert runtime["pid"] == fake.pid and runtime["claimed_pid"] == fake.pid
    assert runtime["uid"] == os.geteuid()
    assert runtime["exe"] == os.path.realpath(FAKE)
    assert runtime["cmdline"] == [FAKE, "--", "--x", COOKIE_C]
    assert runtime["port"] == "runtime" and runtime["rule"] is None
    assert runtime["outcome"] == "untouched" and runtime["late"] is False
    assert runtime["blocked"] is None and runtime["blocked_ports"] == []
    assert TIME.fullmatch(runtime["connected_at"]) and TIME.fullmatch(runtime["resumed_at"])
    assert runtime["ended_at"] is None and runtime["deadline_at"] is None
    assert runtime["hold_seconds"] > 0
    (step,) = runtime["steps"]
    assert (step["kind"], step["name"], step["result"]) == ("resume", None, "ok")
    assert step["hresult"] == "0x00000000" and TIME.fullmatch(step["at"])
    first, second = runtime["trace"]
    assert (first["verdict"], second["verdict"]) == ("no", "no")
    assert (first["file"], first["line"]) == (str(client.daemon.config), 9)
    forgotten = 'the variable "RING" was not set, or its value was none of "canary*"'
    assert second["why"] == forgotten
    assert runtime["attributes"]["exe"]["source"] == "/proc/PID/exe"
    assert runtime["attributes"]["env"]["state"] == "unknown"
    assert runtime["policy"] == client.status()["policy"]["hash"]


def test_one_with_a_plan(client, canary):
    fake = canary(COOKIE_A, "version=8.0.20")
    fake.report()
    runtime = client.wait_for_state(f"pid:{fake.pid}", "running")
    assert (runtime["rule"], runtime["outcome"]) == ("canary", "applied")
    assert (runtime["kind"], runtime["runtime_version"]) == ("coreclr", "8.0.20")
    assert runtime["rid"].startswith("linux-")
    steps = [(step["kind"], step["name"], step["result"], step["attempts"]) for step in runtime["steps"]]
    assert steps == [
        ("env", "ACME_TOKEN", "ok", 1),
        ("env", "ACME_RING", "ok", 1),
        ("resume", None, "ok", 1),
    ]
    assert runtime["steps"][0]["unset"] is False and runtime["steps"][0]["required"] is True
    rules = client.rules()
    assert rules["nobody"]["matches"] == 0 and rules["nobody"]["last_match"] is None
    assert rules["nobody"]["ignore"] is True and rules["nobody"]["hold_limit_seconds"] == 1200
    assert rules["canary"]["matches"] == 1 and TIME.fullmatch(rules["canary"]["last_match"])
    assert rules["canary"]["env"] == ["ACME_TOKEN", "ACME_RING"]
    assert rules["canary"]["line"] == 12 and rules["canary"]["hold_limit_seconds"] == 600
    assert client.daemon.metric('diagport_rule_matches_total{rule="canary"}') == 1
    assert client.daemon.metric('diagport_runtimes{state="running"}') == 1


def test_values_are_nowhere(client, in_plan):
    fake = in_plan(COOKIE_A)
    targets = ["status", "runtimes", f"runtimes/{COOKIE_A}", "rules", "events"]
    answers = [client.get(f"/v1/{target}").body for target in targets]
    answers.append(client.get("/metrics").body)
    answers.append(client.post("/v1/explain", {"pid": fake.pid}).body)
    answers.append(client.post("/v1/policy/reload").body)
    answers.append("\n".join(client.daemon.log.seen).encode())
    for answer in answers:
        assert b"very-secret" not in answer and b"canary-1" not in answer
    assert any(b"ACME_TOKEN" in answer for answer in answers)


def test_filters(client, plain, canary):
    fakes = [plain(COOKIE_C), canary(COOKIE_A)]
    for cookie in COOKIE_A, COOKIE_C:
        client.wait_for_state(cookie, "running")

    def cookies(query):
        return sorted(runtime["cookie"] for runtime in client.runtimes(query))

    both, user = [COOKIE_A, COOKIE_C], client.runtime(COOKIE_A)["user"]
    assert cookies("") == both
    assert cookies("?state=running") == both and cookies("?state=held") == []
    assert cookies("?rule=canary") == [COOKIE_A] and cookies("?rule=nobody") == []
    assert cookies(f"?pid={fakes[0].pid}") == [COOKIE_C] and cookies("?pid=1") == []
    assert cookies(f"?user={os.geteuid()}") == both and cookies("?user=4294967294") == []
    assert cookies("?user=no-such-user") == [] and cookies("?unit=no-such-*") == []
    assert not user or cookies(f"?user={user}") == both
    assert cookies(f"?rule=canary&state=running&pid={fakes[1].pid}") == [COOKIE_A]
    assert cookies(f"?rule=canary&pid={fakes[0].pid}") == []


def test_ids(client, plain):
    pids = {cookie: plain(cookie).pid for cookie in (COOKIE_A, COOKIE_B)}
    for cookie in COOKIE_A, COOKIE_B:
        client.wait_for_state(cookie, "running")
    bare = COOKIE_A.replace("-", "")
    for name in COOKIE_A, COOKIE_A.upper(), bare, "aaaaaaaa-0", "aaaaaaaa0", "pid%3A{}", "pid:{}":
        assert client.runtime(name.format(pids[COOKIE_A]))["cookie"] == COOKIE_A
    several = [("GET", "aaaaaaaa"), ("POST", "aaaa/resume"), ("POST", "aaaa/hold"), ("POST", "aaaa/kill")]
    for method, name in several:
        answer = client.ask(method, f"/v1/runtimes/{name}")
        assert answer.status == 409 and "more than one" in answer.detail
        assert sorted(answer.json["ids"]) == [COOKIE_A, COOKIE_B]
    for name in "aaa", "bbbb", "pid:", "pid:0", "pid:x", "pid:99999999999999999999", "zzzzzzzz":
        assert client.get(f"/v1/runtimes/{name}").status == 404
        assert client.ask("POST", f"/v1/runtimes/{name}/kill").status == 404
        assert client.events()[-1]["result"] == "refused"
    assert all(runtime["state"] == "running" for runtime in client.runtimes())


def test_foreign_text_is_escaped(client, plain):
    plain(COOKIE_C, arguments=["--", "a\x1b[31m\u202eb\\"])
    runtime = client.wait_for_state(COOKIE_C, "running")
    assert runtime["cmdline"][-1] == "a\\x1b[31m\\xe2\\x80\\xaeb\\x5c"


def test_many_in_a_list(client, fleet):
    """More than fits into one piece of an answer, in order, and whole."""
    fleet(client.daemon.socket, 60).summary()
    listed = client.runtimes()
    assert len({runtime["cookie"] for runtime in listed}) == 60
    connected = [runtime["connected_at"] for runtime in listed]
    assert connected == sorted(connected)
    assert sum(client.status()["runtimes"].values()) == 60


def test_a_long_plan_in_a_list(daemon, fake):
    """However long its plan is, a runtime is in the list whole, and so are others."""
    one = daemon([rule(match={"container": "any", "args": "long"}, env={f"V{n}": "x" for n in range(3000)}, deadline="1m")])
    runtimes = [fake(one.socket), fake(one.socket, arguments=["long"])]
    for runtime in runtimes:
        one.receipt(runtime.pid, "running")
    listed = {runtime["pid"]: runtime for runtime in one.get("/v1/runtimes")["runtimes"]}
    assert [len(listed[runtime.pid]["steps"]) for runtime in runtimes] == [1, 3001]


# Doing.


def test_resume_during_a_plan(client, in_plan):
    fake = in_plan(COOKIE_A)
    runtime = client.runtime(COOKIE_A)
    assert TIME.fullmatch(runtime["deadline_at"]) and runtime["outcome"] is None
    assert runtime["steps"][0]["result"] == "pending"
    answer = client.post("/v1/runtimes/aaaaaaaa/resume")
    assert answer.json["verdict"] == "done" and answer.json["runtime"]["state"] == "resuming"
    again = client.ask("POST", "/v1/runtimes/aaaaaaaa/resume", "{}")
    assert again.json["verdict"] == "already"
    answer = client.post("/v1/runtimes/aaaaaaaa/hold")
    assert answer.status == 409 and "cannot be held any more" in answer.detail
    answer = client.ask("POST", "/v1/runtimes/aaaaaaaa/resume", '{"now": true}')
    assert answer.status == 400 and '"now"' in answer.detail
    events = [event for event in client.events() if event["kind"] == "admin"]
    assert [(event["what"], event["result"]) for event in events] == [
        ("resume", "done"),
        ("resume", "already"),
        ("hold", "refused"),
        ("resume", "refused"),
    ]
    assert all(event["uid"] == os.geteuid() and event["pid"] == os.getpid() for event in events)
    assert [event["cookie"] for event in events] == [COOKIE_A] * 3 + [None]
    client.daemon.wait(f"admin resume done by pid={os.getpid()} uid={os.geteuid()} runtime=aaaaaaaa")
    fake.thaw()
    client.wait_for_state(COOKIE_A, "running")
    assert client.runtime(COOKIE_A)["outcome"] == "partial"


def test_hold(client, held):
    fake = held(COOKIE_A)
    runtime = client.runtime(COOKIE_A)
    assert runtime["outcome"] == "applied" and TIME.fullmatch(runtime["hold_until"])
    assert runtime["deadline_at"] is None and runtime["resumed_at"] is None
    assert client.status()["runtimes"]["held"] == 1
    for body, problem in (
        ({"for": "11m"}, "hold_limit allows, which is 10m"),
        ({"for": "forever"}, "hold_limit"),
        ({"for": "10"}, "unit"),
        ({"for": "0s"}, "unit"),
        ({"for": 10}, "unit"),
        ({"for": "-1s"}, "unit"),
        ({"for": None}, "unit"),
        ({"for": "999999999999999999999h"}, "unit"),
    ):
        answer = client.post(f"/v1/runtimes/{COOKIE_A}/hold", body)
        assert answer.status == 400 and problem in answer.detail, (body, answer)
    assert client.runtime(COOKIE_A)["hold_until"] == runtime["hold_until"]
    # Shorter, and then it ends by itself, in Resume.
    answer = client.post(f"/v1/runtimes/{COOKIE_A}/hold", {"for": "500ms"})
    assert answer.json["verdict"] == "done"
    client.wait_for_state(COOKIE_A, "running")
    assert fake.commands()[-1] == "resume"
    assert client.runtime(COOKIE_A)["hold_until"] is None


def test_resume_ends_a_hold(client, held):
    fake = held(COOKIE_A, {"for": "10m"})
    assert client.post(f"/v1/runtimes/{COOKIE_A}/resume").json["verdict"] == "done"
    client.wait_for_state(COOKIE_A, "running")
    assert fake.commands()[-1] == "resume"


def test_kill(client, held):
    fake = held(COOKIE_A)
    answer = client.post(f"/v1/runtimes/{COOKIE_A}/kill")
    assert answer.json["verdict"] == "done", answer
    assert fake.wait() == -signal.SIGKILL
    killed = client.wait_for_state(COOKIE_A, "killed")
    assert TIME.fullmatch(killed["ended_at"]) and killed["resumed_at"] is None
    for verb in "resume", "hold", "kill":
        answer = client.post(f"/v1/runtimes/{COOKIE_A}/{verb}")
        assert answer.status == 409 and "ended" in answer.detail, (verb, answer)


# Explaining.


def test_explain_a_process(client, in_plan):
    fake = in_plan(COOKIE_A)
    said = list(fake.lines.seen)
    answer = client.post("/v1/explain", {"pid": fake.pid}).json
    assert (answer["pid"], answer["id"]) == (fake.pid, "aaaaaaaa")
    assert (answer["rule"], answer["action"]) == ("canary", "apply")
    assert [entry["verdict"] for entry in answer["trace"]] == ["no", "yes"]
    assert [(step["name"], step["result"]) for step in answer["steps"]] == [
        ("ACME_TOKEN", "pending"),
        ("ACME_RING", "pending"),
    ]
    assert "RING" in answer["attributes"]["env"]["texts"]
    assert answer["attributes"]["port"]["texts"] == ["runtime"]
    assert answer["port_mode"] == "suspends" and answer["picture"] == "suspended"
    fake.thaw()
    client.wait_for_state(COOKIE_A, "running")
    assert fake.commands() == ["kind", "info3", "env ACME_TOKEN=very-secret", "env ACME_RING=1", "resume"]
    assert said == []
    gone = client.post("/v1/explain", {"pid": 2**31 - 1})
    assert gone.status == 404 and "2147483647" in gone.detail


def test_explain_somebody_else(client):
    """Any process can be asked about, and none of it notices."""
    answer = client.post("/v1/explain", {"pid": os.getpid()}).json
    assert answer["id"] is None and answer["action"] == "untouched"
    assert answer["attributes"]["exe"]["texts"] == [os.path.realpath(f"/proc/{os.getpid()}/exe")]
    assert client.runtimes() == []


EXPLAINED = """
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
    primer: never
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


def test_explain_given_attributes(daemon):
    client = client_of(daemon, EXPLAINED)
    pay = {
        "exe": "/usr/share/dotnet/dotnet",
        "args": ["dotnet", "/opt/Pay.dll", "--tenant=x"],
        "unit": "pay-1.service",
        "env": {"RING": "abc"},
    }
    answer = client.explain(**pay)
    assert (answer["rule"], answer["action"], answer["by_unknown"]) == ("pay", "apply", False)
    assert answer["attributes"]["assembly"]["texts"] == ["Pay"]
    verdicts = [entry["verdict"] for entry in answer["trace"]]
    assert verdicts == ["no", "yes", "not_asked", "not_asked"]
    steps = [(step["kind"], step["name"], step["result"]) for step in answer["steps"]]
    assert steps == [
        ("env", "A", "pending"),
        ("env", "OLD", "pending"),
        ("profiler", "/opt/x.so", "pending"),
        ("hook", "/opt/hook.dll", "pending"),
    ]
    assert answer["steps"][1]["unset"] is True
    assert answer["steps"][2]["clsid"] == "918728dd-259f-4a6a-ac2b-b85e1b658318"
    assert answer["assumed_kind"] == "coreclr"
    assert answer["pid"] is None and answer["picture"] is None

    prevented = {"RING": "a", "DOTNET_ProfAPI_ProfilerCompatibilitySetting": "PreventLoad"}
    refused = client.explain(**{**pay, "env": prevented})["steps"][2]
    assert refused["result"] == "refused" and refused["why"]
    assert client.explain(**{**pay, "args": ["dotnet", "build"]})["action"] == "ignore"
    observed = client.explain(assembly="x", unit="watch.service", args=[], env={})
    assert observed["action"] == "observe" and len(observed["steps"]) == 1
    assert client.explain(assembly=None, unit=None, user="bob")["action"] == "untouched"
    contained = client.explain(**{**pay, "container": "abc"})
    assert contained["rule"] is None and "container" in contained["trace"][1]["why"]
    unknown = client.explain(unit="pay-1.service")
    assert unknown["by_unknown"] is True and unknown["rule"] == "sdk"
    assert "could not be read: not given" in unknown["trace"][0]["why"]
