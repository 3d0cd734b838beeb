# SPDX-License-Identifier: Apache-2.0
"""Restarted and killed: no app notices."""

import signal

import inside
from inside import PORT, SERVICE, SOCKET, systemctl

PLAN = """version: 1
rules:
  - name: planned
    match: { container: any, args: planned }
    env: { A: "1", B: "2", C: "3" }
    deadline: 30s
"""

WHOLE = ["env A=1", "env B=2", "env C=3", "resume"]


def started_anew(before):
    return inside.until(inside.main_pid, lambda pid: pid not in (0, before))


def test_who_runs_is_left_alone(service, fake):
    before = service(PLAN)
    runtime = fake(PORT, arguments=["planned"])
    assert runtime.commands()[-4:] == WHOLE
    systemctl("restart", SERVICE)
    assert inside.main_pid() != before
    inside.until(lambda: inside.runtimes(pid=runtime.pid))
    systemctl("kill", "-s", "KILL", SERVICE)
    started_anew(0)
    inside.until(lambda: inside.runtimes(pid=runtime.pid, state="running"))
    assert runtime.finish() in ([], ["resume"], ["resume", "resume"])


def test_many_restarts_are_no_failure(service, fake):
    """More of them in a few seconds than StartLimitBurst=, as configuration tools do it."""
    service(PLAN)
    for _ in range(12):
        systemctl("restart", SERVICE)
    assert inside.is_active(SERVICE) and inside.is_active(SOCKET)
    assert fake(PORT, arguments=["planned"]).commands()[-4:] == WHOLE


def test_killed_it_is_started_anew(service, fake):
    before = service(PLAN)
    inside.signal(signal.SIGKILL, before)
    started_anew(before)
    assert fake(PORT, arguments=["planned"]).commands()[-4:] == WHOLE
