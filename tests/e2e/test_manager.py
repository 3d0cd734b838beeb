# SPDX-License-Identifier: Apache-2.0
"""What a service manager is told while a start or a stop takes long: it would end them otherwise."""

import contextlib
import socket

import pytest
from faults import Faults
from harness import PidHandle, UNDER, rule, select
from lines import TIMEOUT

pytestmark = pytest.mark.skipif(bool(UNDER), reason="what the daemon runs under makes calls of its own")

A = [rule(env={"A": "1"})]
EXTENDED = "EXTEND_TIMEOUT_USEC=5000000"


def told_until(one, last):
    """All that it tells, up to that."""
    texts = []
    while last not in texts:
        ready, _, _ = select.select([one.ready], [], [], TIMEOUT)
        assert ready, f"{last} was not told: {texts}"
        texts.append(one.ready.recv(4096).decode())
    return texts


def rest(one):
    """All that it tells until it ends."""
    texts = []
    with contextlib.closing(PidHandle(one.process.pid)) as end:
        while True:
            ready, _, _ = select.select([one.ready, end], [], [], TIMEOUT)
            assert ready
            if one.ready not in ready:
                return texts
            texts.append(one.ready.recv(4096).decode())


def test_a_start_with_many_records(daemon, fake, folder):
    """The process of each is looked at, and something keeps that waiting."""
    faults = Faults(folder)
    one = daemon(A, environment=faults.environment)
    many = [fake(one.socket) for _ in range(25)]
    one.wait(r"diagportd: running ", times=25)
    one.kill()
    faults.slow("open", 100, times=1 << 32)
    one.spawn()
    texts = told_until(one, "READY=1")
    # At once, and then again and again.
    assert texts[0] == EXTENDED and len(texts) >= 4 and set(texts) == {EXTENDED, "READY=1"}
    faults.end()
    for runtime in many:
        assert set(runtime.finish()) <= {"resume"}


def test_a_start_with_many_policy_files(daemon, folder):
    drop_ins = folder / "policy.d"
    drop_ins.mkdir()
    for n in range(25):
        (drop_ins / f"{n}.yaml").write_text(
            f'rules: [ {{ name: r{n}, match: {{ unit: u{n}.service }}, env: {{ A: "1" }} }} ]\n')
    faults = Faults(folder)
    faults.slow("open", 100, times=1 << 32)
    one = daemon(A, start=False, environment=faults.environment).spawn()
    texts = told_until(one, "READY=1")
    assert texts.count(EXTENDED) >= 3
    faults.end()


def test_a_stop_that_waits_for_answers(daemon, fake, folder):
    """It ends by itself after two seconds; its manager may have less patience."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as passed:
        passed.bind(str(folder / "runtime.sock"))
        passed.listen()
        one = daemon(A, passed={"runtime": passed}, environment={"WATCHDOG_USEC": "1000000"})
        runtime = fake(one.socket, "stop-before-reply=set-env@1")
        runtime.stands()
        one.signal(15)
        told_until(one, "STOPPING=1")
        texts = rest(one)
        assert texts[0] == EXTENDED and texts.count(EXTENDED) >= 2
        # Its loop turns all the while, which the watchdog hears.
        assert texts.count("WATCHDOG=1") >= 2
        one.end(0)


def test_once_it_is_ready_nothing_is_extended(daemon):
    """Otherwise it could run as long as it likes where its manager has limited that."""
    one = daemon(A)
    assert one.reload()
    one.signal(15)
    texts = rest(one)
    assert "STOPPING=1" in texts and EXTENDED not in texts[: texts.index("STOPPING=1")]
    one.end(0)
