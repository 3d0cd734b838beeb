# SPDX-License-Identifier: Apache-2.0
"""Scrapers that come over TCP: they may look, when the policy says so, and nothing else."""

import http.client

import inside
import pytest
from inside import METRICS, METRICS_SOCKET, prop, systemctl
from lines import TIMEOUT

READERS = """version: 1
control:
  path: /run/diagport/control.sock
  read: { users: [diagport-metrics] }
  admin: { groups: [diagport-admin] }
"""


def ask(method, path, body=None):
    scraper = http.client.HTTPConnection("127.0.0.1", 9465, timeout=TIMEOUT)
    try:
        scraper.request(method, path, body, {"Content-Type": "application/json"})
        answer = scraper.getresponse()
        return answer.status, answer.read().decode()
    finally:
        scraper.close()


def test_nobody_listens_unasked(service):
    assert inside.run("systemctl", "is-enabled", METRICS_SOCKET, status=None).strip() == "disabled"
    service(READERS)
    assert not inside.is_active(METRICS_SOCKET)
    with pytest.raises(ConnectionRefusedError):
        ask("GET", "/metrics")


def test_a_scraper_gets_metrics(service):
    service(READERS)
    systemctl("start", METRICS_SOCKET)
    assert not inside.is_active(METRICS)
    # Another one starts no second service.
    for _ in range(3):
        status, text = ask("GET", "/metrics")
        assert status == 200
        assert text.endswith("# EOF\n") and "diagport_runtimes_seen_total 0\n" in text
    pid = int(prop(METRICS, "MainPID"))
    proxy = inside.status_of(pid)
    assert {int(one) for one in proxy["Uid"].split()} == {inside.uid_of("diagport-metrics")}
    assert int(proxy["CapEff"], 16) == 0


def test_he_changes_nothing(service, fake):
    service(READERS)
    systemctl("start", METRICS_SOCKET)
    fake(inside.PORT)
    runtime = inside.until(inside.runtimes)[0]["id"]
    assert ask("GET", "/v1/status")[0] == 200
    for verb in ("resume", "hold", "kill"):
        assert ask("POST", f"/v1/runtimes/{runtime}/{verb}", "{}")[0] == 403
    assert ask("POST", "/v1/policy/reload")[0] == 403


def test_without_the_right_there_is_nothing(service):
    service()
    systemctl("start", METRICS_SOCKET)
    for path in ("/metrics", "/v1/runtimes", "/v1/status"):
        assert ask("GET", path)[0] == 403


def test_its_sandbox_is_tight(service):
    overall = inside.run("systemd-analyze", "security", "--no-pager", METRICS).splitlines()[-1]
    assert float(overall.split(":")[1].split()[0]) <= 1.5
