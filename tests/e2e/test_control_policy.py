# SPDX-License-Identifier: Apache-2.0
"""The policy over the control interface: checking, reloading, and how the daemon is."""

import os
import pathlib
import re
import socket

import pytest
from clients import client_of, connect, fill

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

MANUAL = pathlib.Path(__file__).resolve().parents[2] / "docs" / "CONTROL.md"


@pytest.fixture
def client(daemon):
    return client_of(daemon, POLICY)


# Checking.


def test_a_good_policy(client):
    verdict = client.check(fill(client.daemon, POLICY))
    assert verdict["ok"] is True and verdict["problems"] == [] and verdict["n_errors"] == 0
    again = client.check(verdict["canonical"])
    assert again["canonical"] == verdict["canonical"]
    assert re.fullmatch("[0-9a-f]{64}", again["hash"])
    assert client.status()["last_reload"] is None


def test_a_bad_policy(client):
    verdict = client.check("version: 1\nrules: &\n  - name: x\n", "?name=a%0Ab.yaml")
    assert verdict["ok"] is False and verdict["canonical"] is None and verdict["hash"] is None
    (problem,) = verdict["problems"]
    assert (problem["severity"], problem["file"], problem["line"]) == ("error", "a\\x0ab.yaml", 2)
    assert problem["text"] and verdict["n_errors"] == 1
    verdict = client.check("version: 1\nlisten: 5\nrulez: []\n")
    places = [(problem["file"], problem["line"]) for problem in verdict["problems"]]
    assert places == [("policy.yaml", 2), ("policy.yaml", 3)]


@pytest.mark.parametrize(
    "text",
    ["", "\0", "{", "a" * 100000, "[" * 100000, "&a [*a]", b"\xef\xbf\xbe", b"version: 1 # \xff\n"],
    ids=lambda text: repr(text)[:60],
)
def test_what_is_no_policy(client, text):
    verdict = client.check(text)
    assert verdict["ok"] is False and verdict["n_errors"] > 0
    assert client.status()["alarms"] == []


def test_nothing_is_opened_and_nobody_looked_up(client):
    old = '0600" }\nrules'
    assert old in POLICY
    text = POLICY.replace(old, '0600", read: { groups: [no-such-group-here] } }\nrules')
    verdict = client.check(fill(client.daemon, text))
    assert verdict["ok"] is True and verdict["problems"] == []


def test_what_curl_does_to_a_file(client):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    text = fill(client.daemon, POLICY).strip()
    assert client.ask("POST", "/v1/policy/check", text, form).json["ok"] is True
    verdict = client.ask("POST", "/v1/policy/check", text.replace("\n", ""), form).json
    assert verdict["ok"] is False and "--data-binary" in verdict["hint"]


# Reloading.


def test_reload(client):
    before = client.status()
    more = "    mode: observe\n  - name: more\n    match: all\n    ignore: true\n"
    verdict = client.reload(POLICY + more)
    assert verdict["ok"] is True and verdict["why"] is None and verdict["n_errors"] == 0
    assert verdict["policy"]["rules"] == 2
    assert verdict["policy"]["hash"] != before["policy"]["hash"]
    status = client.status()
    assert status["policy"] == verdict["policy"] and status["last_reload"]["ok"] is True
    assert [file["name"] for file in status["policy"]["files"]] == [str(client.daemon.config)]
    assert list(client.rules()) == ["web", "more"]
    assert client.daemon.metric('diagport_policy_reloads_total{result="ok"}') == 1


def test_reload_of_a_bad_policy(client):
    before = client.status()["policy"]
    verdict = client.reload(POLICY + "    colour: red\n")
    assert verdict["ok"] is False and verdict["policy"] == before and verdict["why"] is None
    (problem,) = verdict["problems"]
    assert (problem["file"], problem["line"]) == (str(client.daemon.config), 10)
    assert "colour" in problem["text"]
    status = client.status()
    assert status["policy"] == before and status["last_reload"]["ok"] is False
    assert client.daemon.alarms() == ["policy"]
    assert client.reload(POLICY)["ok"] is True
    assert client.daemon.alarms() == []
    kinds = [(event["kind"], event.get("result", event.get("on"))) for event in client.events()]
    assert kinds == [("admin", "refused"), ("alarm", True), ("admin", "done"), ("alarm", False)]


@pytest.mark.parametrize(
    "old, new, named",
    [
        ("/control.sock", "/other.sock", "control.path"),
        ('control: { path: "{folder}/control.sock", mode: "0600" }\n', "", "control.path"),
        ("/runtime.sock", "/no/such/runtime.sock", "no/such"),
        ('mode: "0600" }\ncontrol', 'mode: "0600", owner: no-such }\ncontrol', "no-such"),
    ],
)
def test_what_a_reload_cannot_change(client, old, new, named):
    before = client.status()
    assert old in POLICY
    verdict = client.reload(POLICY.replace(old, new))
    assert verdict["ok"] is False
    assert named in (verdict["why"] or "") + str(verdict["problems"]), verdict
    after = client.status()
    assert after["policy"] == before["policy"] and after["listeners"] == before["listeners"]
    assert after["control"]["path"] == client.daemon.control


def test_listeners_come_and_go_with_a_reload(client):
    def names():
        return [entry["name"] for entry in client.status()["listeners"]]

    second = '  - { name: second, path: "{folder}/second.sock" }\ncontrol:'
    assert client.reload(POLICY.replace("control:", second))["ok"] is True
    assert names() == ["runtime", "second"]
    connect(client.daemon.folder / "second.sock").close()
    assert client.reload(POLICY)["ok"] is True
    assert names() == ["runtime"]


def test_a_start_with_a_bad_policy_can_be_corrected(daemon):
    client = client_of(daemon, POLICY + "    colour: red\n", policy_is_good=False)
    assert client.status()["policy"]["rules"] == 0 and client.daemon.alarms() == ["policy"]
    assert client.reload(POLICY)["ok"] is True
    assert client.status()["policy"]["rules"] == 1 and client.daemon.alarms() == []


# The socket.


def test_a_control_socket_that_was_passed_in(daemon, folder):
    """It is nobody's here: not its rights, and not its end."""
    passed = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    passed.bind(str(folder / "control.sock"))
    passed.listen()
    os.chmod(folder / "control.sock", 0o640)
    client = client_of(daemon, POLICY, passed={"control": passed})
    assert client.status()["control"]["passed_in"] is True
    assert client.status()["control"]["in_place"] is True
    assert client.reload(POLICY.replace('control.sock", mode: "0600"', 'control.sock"'))["ok"]
    assert os.stat(client.daemon.control).st_mode & 0o777 == 0o640
    client.daemon.stop()
    assert os.path.exists(client.daemon.control)
    client.daemon.start()
    assert client.status()["pid"] == client.daemon.process.pid
    passed.close()


def test_without_a_control_socket(daemon, fake):
    """What is said of it cannot be used, what is said of the listener can."""
    one = daemon(start=False)
    one.policy_text(fill(one, POLICY).replace(one.control, "control.sock"))
    one.start(policy_is_good=False)
    one.wait("there is no control socket")
    assert not os.path.exists(one.control)
    assert fake(one.socket).commands() == ["resume"]


def test_a_second_daemon_does_not_take_the_socket(client, daemon, folder):
    second = daemon(start=False, state=folder / "other")
    second.policy_text(fill(second, POLICY.replace("runtime.sock", "second.sock")))
    second.spawn()
    second.wait("another diagportd owns the socket .*/control.sock")
    second.end(1)
    assert client.status()["pid"] == client.daemon.process.pid


# How the daemon is.


def test_probes(client):
    assert client.get("/healthz").json == {"ok": True, "why": []}
    assert client.get("/readyz").json == {"ok": True, "why": []}
    os.rename(client.daemon.socket, client.daemon.socket + ".away")
    answer = client.get("/readyz")
    assert answer.status == 503 and answer.json["ok"] is False
    assert answer.json["why"] == ["the socket file of the listener runtime is gone"]
    assert client.get("/healthz").status == 200
    assert client.status()["listeners"][0]["in_place"] is False


def test_status(client):
    status, daemon = client.status(), client.daemon
    assert status["pid"] == daemon.process.pid and status["uid"] == os.geteuid()
    assert status["version"] and status["uptime_seconds"] > 0 and status["stopping"] is False
    assert status["records"] == "trusted" and status["user_instance"] is False
    assert status["listeners"] == [{"name": "runtime", "path": daemon.socket, "passed_in": False, "in_place": True}]
    assert status["control"].pop("connections") > 0
    assert status["control"] == {
        "path": daemon.control,
        "passed_in": False,
        "in_place": True,
        "followers": 0,
    }
    states = ["known", "applying", "held", "resuming", "running", "gone", "killed"]
    assert status["runtimes"] == dict.fromkeys(states, 0)
    assert status["limits"]["connections_per_user"] == status["connections"]["usable"] // 4


def test_metrics(client):
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    lines = answer.body.decode().splitlines()
    assert lines[-1] == "# EOF"
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert samples['diagport_rule_matches_total{rule="web"}'] == "0"
    assert samples['diagport_policy_info{hash="%s",origin="files"}' % client.status()["policy"]["hash"]] == "1"
    assert float(samples["process_open_fds"]) > 5
    assert float(samples["process_resident_memory_bytes"]) > 1e6
    assert float(samples["process_start_time_seconds"]) > 1e9
    manual = MANUAL.read_text()
    for name in {re.sub("{.*", "", sample) for sample in samples}:
        assert re.sub("_(bucket|count|sum)$", "", name) in manual, name
