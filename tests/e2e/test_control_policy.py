# SPDX-License-Identifier: Apache-2.0
"""The policy over the control interface: checking, reloading, and how the daemon is."""

import re

import pytest

import harness

POLICY = """
version: 1
listen:
  - { name: runtime, path: "{folder}/runtime.sock", mode: "0600" }
control: { path: "{folder}/control.sock", mode: "0600" }
rules:
  - name: web
    match: { unit: "web-*.service" }
    ignore: true
"""


@pytest.fixture
def daemon(start):
    return start(POLICY)


def check(daemon, text, name=None):
    target = "/v1/policy/check" + (f"?name={name}" if name else "")
    answer = daemon.ask("POST", target, text)
    assert answer.status == 200, answer
    return answer.json


def test_a_good_policy(daemon):
    verdict = check(daemon, daemon.fill(POLICY))
    assert verdict["ok"] is True and verdict["problems"] == [] and verdict["n_errors"] == 0
    again = check(daemon, verdict["canonical"])
    assert again["canonical"] == verdict["canonical"] and re.fullmatch(
        "[0-9a-f]{64}", again["hash"]
    )
    assert daemon.status()["last_reload"] is None


def test_a_bad_policy(daemon):
    verdict = check(daemon, "version: 1\nrules: &\n  - name: x\n", name="a%0Ab.yaml")
    assert verdict["ok"] is False and verdict["canonical"] is None and verdict["hash"] is None
    (problem,) = verdict["problems"]
    assert (problem["severity"], problem["file"]) == ("error", "a\\x0ab.yaml")
    assert problem["line"] == 2 and problem["text"] and verdict["n_errors"] == 1
    verdict = check(daemon, "version: 1\nlisten: 5\nrulez: []\n")
    assert [(p["file"], p["line"]) for p in verdict["problems"]] == [
        ("policy.yaml", 2),
        ("policy.yaml", 3),
    ]
    for text in "", "\0", "{", "a" * 100000, "[" * 100000, "\ufffe".encode(), "&a [*a]":
        assert check(daemon, text)["ok"] is False, text[:20]
    assert daemon.ask("POST", "/v1/policy/check", b"version: 1 # \xff\n").json["ok"] is False


def test_nothing_is_opened_and_nobody_looked_up(daemon):
    text = POLICY.replace(
        '0600" }\nrules', '0600", read: { groups: [no-such-group-here] } }\nrules'
    )
    verdict = check(daemon, daemon.fill(text))
    assert verdict["ok"] is True and verdict["problems"] == []


def test_what_curl_does_to_a_file(daemon):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    text = daemon.fill(POLICY).strip()
    assert daemon.ask("POST", "/v1/policy/check", text, form).json["ok"] is True
    verdict = daemon.ask("POST", "/v1/policy/check", text.replace("\n", ""), form).json
    assert verdict["ok"] is False and "--data-binary" in verdict["hint"]


def test_reload(daemon):
    before = daemon.status()
    daemon.write_policy(
        POLICY + "    mode: observe\n  - name: more\n    match: all\n    ignore: true\n"
    )
    verdict = daemon.post("/v1/policy/reload").json
    assert verdict["ok"] is True and verdict["why"] is None and verdict["n_errors"] == 0
    assert verdict["policy"]["rules"] == 2 and verdict["policy"]["hash"] != before["policy"]["hash"]
    status = daemon.status()
    assert status["policy"] == verdict["policy"] and status["last_reload"]["ok"] is True
    assert [file["name"] for file in status["policy"]["files"]] == [str(daemon.config)]
    assert [rule["name"] for rule in daemon.get("/v1/rules").json["rules"]] == ["web", "more"]
    assert 'diagport_policy_reloads_total{result="ok"} 1' in daemon.get("/metrics").body.decode()


def test_reload_of_a_bad_policy(daemon):
    before = daemon.status()["policy"]
    daemon.write_policy(POLICY + "    colour: red\n")
    verdict = daemon.post("/v1/policy/reload").json
    assert verdict["ok"] is False and verdict["policy"] == before and verdict["why"] is None
    (problem,) = verdict["problems"]
    assert (
        problem["file"] == str(daemon.config)
        and problem["line"] == 10
        and "colour" in problem["text"]
    )
    status = daemon.status()
    assert status["policy"] == before and status["last_reload"]["ok"] is False
    assert [alarm["name"] for alarm in status["alarms"]] == ["policy"]
    daemon.write_policy(POLICY)
    assert daemon.post("/v1/policy/reload").json["ok"] is True
    assert daemon.status()["alarms"] == []
    kinds = [(event["kind"], event.get("result", event.get("on"))) for event in daemon.events()]
    assert kinds == [("admin", "refused"), ("alarm", True), ("admin", "done"), ("alarm", False)]


@pytest.mark.parametrize(
    "old, new, named",
    [
        (
            'control: { path: "{folder}/control.sock"',
            'control: { path: "{folder}/other.sock"',
            "control.path",
        ),
        ('control: { path: "{folder}/control.sock", mode: "0600" }\n', "", "control.path"),
        ('{folder}/runtime.sock", mode: "0600"', '{folder}/no/such/runtime.sock"', "no/such"),
        ('mode: "0600" }\ncontrol', 'mode: "0600", owner: no-such-user }\ncontrol', "no-such-user"),
    ],
)
def test_what_a_reload_cannot_change(daemon, old, new, named):
    before = daemon.status()
    assert old in POLICY
    daemon.write_policy(POLICY.replace(old, new))
    verdict = daemon.post("/v1/policy/reload").json
    assert verdict["ok"] is False and named in verdict["why"] + str(verdict["problems"]), verdict
    after = daemon.status()
    assert after["policy"] == before["policy"] and after["listeners"] == before["listeners"]
    assert after["control"]["path"] == str(daemon.control)


def test_listeners_come_and_go_with_a_reload(daemon):
    daemon.write_policy(
        POLICY.replace("control:", '  - { name: second, path: "{folder}/second.sock" }\ncontrol:')
    )
    assert daemon.post("/v1/policy/reload").json["ok"] is True
    assert [entry["name"] for entry in daemon.status()["listeners"]] == ["runtime", "second"]
    harness.connect(daemon.folder / "second.sock").close()
    daemon.write_policy(POLICY)
    assert daemon.post("/v1/policy/reload").json["ok"] is True
    assert [entry["name"] for entry in daemon.status()["listeners"]] == ["runtime"]


def test_probes(daemon):
    assert daemon.get("/healthz").json == {"ok": True, "why": []}
    assert daemon.get("/readyz").json == {"ok": True, "why": []}
    daemon.port.rename(daemon.folder / "elsewhere")
    answer = daemon.get("/readyz")
    assert (
        answer.status == 503 and answer.json["ok"] is False and "runtime" in answer.json["why"][0]
    )
    assert daemon.get("/healthz").status == 200
    assert daemon.status()["listeners"][0]["in_place"] is False


def test_status(daemon):
    status = daemon.status()
    assert (
        status["pid"] == daemon.process.pid and status["version"] and status["uptime_seconds"] > 0
    )
    assert status["records"] == "trusted" and status["stopping"] is False
    assert status["listeners"] == [
        {"name": "runtime", "path": str(daemon.port), "passed_in": False, "in_place": True}
    ]
    assert status["control"].pop("connections") > 0
    assert status["control"] == {
        "path": str(daemon.control),
        "passed_in": False,
        "in_place": True,
        "followers": 0,
    }
    assert set(status["runtimes"]) == {
        "known",
        "applying",
        "held",
        "resuming",
        "running",
        "gone",
        "killed",
    }
    assert status["limits"]["connections_per_user"] == status["connections"]["usable"] // 4


def test_a_start_with_a_bad_policy_can_be_corrected(start):
    daemon = start(POLICY + "    colour: red\n")
    status = daemon.status()
    assert status["policy"]["rules"] == 0 and [alarm["name"] for alarm in status["alarms"]] == [
        "policy"
    ]
    daemon.write_policy(POLICY)
    assert daemon.post("/v1/policy/reload").json["ok"] is True
    assert daemon.status()["alarms"] == [] and daemon.status()["policy"]["rules"] == 1


def test_metrics(daemon):
    answer = daemon.get("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    lines = answer.body.decode().splitlines()
    assert lines[-1] == "# EOF"
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert samples['diagport_rule_matches_total{rule="web"}'] == "0"
    assert samples['diagport_policy_info{hash="%s"}' % daemon.status()["policy"]["hash"]] == "1"
    assert (
        float(samples["process_open_fds"]) > 5
        and float(samples["process_resident_memory_bytes"]) > 0
    )
    assert float(samples["process_start_time_seconds"]) > 1e9
    manual = (harness.SOURCE / "docs" / "CONTROL.md").read_text()
    for name in {re.sub("{.*", "", sample) for sample in samples}:
        assert re.sub("_(bucket|count|sum)$", "", name) in manual, name


def test_a_second_daemon_does_not_take_the_socket(folder, daemon):
    second = harness.Daemon(folder, POLICY)
    process = harness.subprocess.run(
        [
            harness.BUILD / "diagportd",
            "--config",
            second.config,
            "--state",
            folder.path / "other-state",
        ],
        stderr=harness.subprocess.PIPE,
        text=True,
        timeout=harness.PATIENCE,
    )
    assert process.returncode == 1 and "owns the socket" in process.stderr
    assert daemon.status()["pid"] == daemon.process.pid
