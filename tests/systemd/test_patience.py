# SPDX-License-Identifier: Apache-2.0
"""A start and a stop that take longer than the unit allows, and go on, are not ended."""

import signal

import faulty
import inside
from inside import PORT, SERVICE, systemctl

POLICY = """version: 1
rules:
  - name: planned
    match: { container: any, args: planned }
    env: { A: "1", B: "2" }
    deadline: 10m
    command_timeout: 5m
"""


def test_a_stop_that_waits_for_an_answer(service, fake):
    before = service(POLICY)
    inside.drop_in(SERVICE, "50-test", "[Service]\nTimeoutStopSec=1s\n")
    runtime = fake(PORT, "stop-before-reply=set-env@1", arguments=["planned"])
    runtime.stands()
    journal = inside.Journal()
    systemctl("restart", SERVICE)
    assert inside.main_pid() not in (0, before)
    # It was not killed: that would be said.
    messages = journal.messages("UNIT=" + SERVICE)
    assert not [text for text in messages if "timed out" in text or "Killing" in text or "Failed" in text], messages
    assert [text for text in journal.messages(f"_PID={before}") if "stopped without waiting any longer" in text]
    runtime.thaw()
    assert runtime.commands()[-1] == "resume"


def test_a_start_that_looks_at_many(service, fake):
    """Each process of the records takes a while; the limit of the unit is a fraction of it all."""
    service(POLICY)
    many = [fake(PORT) for _ in range(25)]
    inside.until(lambda: len(inside.runtimes(state="running")) == 25)
    slow = faulty.install("TimeoutStartSec=1s")
    slow.slow("open", 200, times=1 << 32)
    before = inside.main_pid()
    inside.signal(signal.SIGKILL, before)
    inside.until(inside.main_pid, lambda pid: pid not in (0, before))
    # It is told to be ready only when it has looked at all of them.
    inside.until(lambda: inside.prop(SERVICE, "ActiveState"), lambda state: state not in ("activating", "deactivating"))
    assert inside.is_active(SERVICE) and inside.prop(SERVICE, "NRestarts") == "1"
    assert slow.hits("open") > 25
    slow.end()
    for runtime in many:
        assert set(runtime.finish()) <= {"resume"}
