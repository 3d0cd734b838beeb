# SPDX-License-Identifier: Apache-2.0
"""What is in the journal, and what happens when it stands still."""

import pathlib
import re
import signal

import inside
from inside import PORT, SERVICE, run, systemctl

CATALOG = pathlib.Path("/usr/local/lib/systemd/catalog/diagport.catalog")

PLAN = """version: 1
rules:
  - name: planned
    match: { container: any, args: planned }
    env: { SECRET: "do-not-tell" }
    deadline: 30s
"""

EVERYBODY = """version: 1
rules:
  - { name: all, match: { container: any, exe: "*" }, env: { A: "1" }, deadline: 1m }
"""


def ids():
    """The ids of the catalog, by the subjects that are constant."""
    found = re.findall(r"^-- ([0-9a-f]{32})\nSubject: (.*)$", CATALOG.read_text(), re.MULTILINE)
    return {subject: number for number, subject in found}


RUNTIME = "A .NET runtime is in another state"
STEP = "A step for a .NET runtime was answered"
PEER = "A peer on a diagnostic port misbehaved"
ADMIN = "Somebody told diagportd what to do"
FAILED = "diagportd could not load the policy on disk"


def tell_apart(entries):
    names = {number: subject for subject, number in ids().items()}
    return [names.get(entry.get("MESSAGE_ID")) for entry in entries]


def test_a_runtime_is_found_by_its_fields(service, fake):
    journal = inside.Journal()
    daemon = service(PLAN)
    runtime = fake(PORT, arguments=["planned"])
    inside.until(lambda: inside.runtimes(pid=runtime.pid, state="running"))
    cookie = inside.runtimes(pid=runtime.pid)[0]["cookie"]
    entries = inside.until(lambda: journal.entries("DIAGPORT_COOKIE=" + cookie),
                           lambda found: any(one.get("DIAGPORT_STATE") == "running" for one in found))
    assert set(tell_apart(entries)) == {RUNTIME, STEP}
    for entry in entries:
        assert (entry["DIAGPORT_PID"], entry["OBJECT_PID"]) == (str(runtime.pid), str(runtime.pid))
        assert (entry["_PID"], entry["SYSLOG_IDENTIFIER"]) == (str(daemon), "diagportd")
        assert entry["_SYSTEMD_UNIT"] == SERVICE
    (step,) = journal.entries("DIAGPORT_COOKIE=" + cookie, "DIAGPORT_STEP=env")
    assert {name: step[name] for name in ("DIAGPORT_RULE", "DIAGPORT_NAME", "DIAGPORT_RESULT", "DIAGPORT_HRESULT")} == {
        "DIAGPORT_RULE": "planned", "DIAGPORT_NAME": "SECRET", "DIAGPORT_RESULT": "ok", "DIAGPORT_HRESULT": "0x00000000"}
    assert journal.entries("MESSAGE_ID=" + ids()[STEP], "DIAGPORT_PID=" + str(runtime.pid))
    assert "do-not-tell" not in run("journalctl", "-b", "-o", "export", "-t", "diagportd")


def test_others_have_theirs(service):
    service(PLAN)
    journal = inside.Journal()
    with inside.connect() as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: you.are.mistaken.example\r\n\r\n")
        assert peer.recv(1) == b""
    (error,) = inside.until(lambda: journal.entries("MESSAGE_ID=" + ids()[PEER]))
    assert (error["DIAGPORT_ERROR"], error["DIAGPORT_UID"], error["PRIORITY"]) == ("garbage", "0", "5")
    inside.write_policy("version: 1\nrules: 3\n")
    systemctl("reload", SERVICE, status=1)
    assert inside.until(lambda: journal.entries("MESSAGE_ID=" + ids()[FAILED]))[0]["PRIORITY"] == "3"
    (alarm,) = inside.until(lambda: journal.entries("DIAGPORT_ALARM=policy"))
    assert alarm["PRIORITY"] == "3"
    (admin,) = inside.until(lambda: journal.entries("MESSAGE_ID=" + ids()[ADMIN]))
    assert (admin["DIAGPORT_NAME"], admin["DIAGPORT_UID"]) == ("reload", str(inside.uid_of("diagport")))


def test_start_and_stop_have_ids(service):
    journal = inside.Journal()
    service(PLAN)
    systemctl("stop", SERVICE)
    known = [one for one in tell_apart(journal.entries("-t", "diagportd")) if one]
    assert known == ["diagportd is started", "diagportd stops"]


def test_the_catalog_explains(service):
    run("journalctl", "--update-catalog")
    journal = inside.Journal()
    service("version: 1\nrules: 3\n")
    inside.until(lambda: journal.entries("DIAGPORT_ALARM=policy"))
    text = run("journalctl", "-b", "-x", "-t", "diagportd", "DIAGPORT_ALARM=policy")
    assert "Subject: diagportd needs an operator: policy" in text
    assert "man:diagportd(8)" in text
    assert "correct it, look at it with" in text


def test_a_journal_that_stands_still_stops_nobody(service, fleet):
    """Its queue is full after 512 entries; 600 runtimes make thousands."""
    daemon = service(EVERYBODY)
    journal = inside.Journal()
    journald = int(inside.prop("systemd-journald.service", "MainPID"))
    inside.signal(signal.SIGSTOP, journald)
    try:
        summary = fleet(PORT, 600, "--together", environment={"A": "0"}).summary()
        assert summary["resumed"] == 600
        fed = int(inside.prop(SERVICE, "WatchdogTimestampMonotonic"))
        # Longer than the watchdog waits.
        inside.until(lambda: int(inside.prop(SERVICE, "WatchdogTimestampMonotonic")), lambda at: at > fed + 3_000_000)
        assert inside.main_pid() == daemon
    finally:
        inside.signal(signal.SIGCONT, journald)
    # The next line says it.
    systemctl("reload", SERVICE)
    lost = inside.until(lambda: [text for text in journal.messages("-t", "diagportd") if "were lost" in text])
    assert re.search(r"^\(\d+ lines before this one were lost\) ", lost[0])
    assert inside.prop(SERVICE, "NRestarts") == "0"
