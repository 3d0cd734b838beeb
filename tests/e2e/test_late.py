# SPDX-License-Identifier: Apache-2.0
"""Runtimes that run already, or of which nobody can tell: Resume, and nothing else."""

import pytest
from harness import CLSID, listen, rule
from records import MARK_SIZE


def everything(folder):
    return rule(
        env={"A": "1", "GONE": None},
        profilers=[{"clsid": CLSID, "path": folder.profiler()}],
        startup_hooks=[{"path": folder.hook()}],
    )


def whole_plan(folder):
    return ["env A=1", "unset GONE", f"profiler {folder / 'profiler.so'}", f"hook {folder / 'Hook.dll'}", "resume"]


def resumed_only(receipt):
    """That nothing but Resume was sent, by what the daemon says."""
    resumes = {step["result"] for step in receipt["steps"] if step["kind"] == "resume"}
    results = {step["result"] for step in receipt["steps"] if step["kind"] != "resume"}
    return results <= {"skipped"} and resumes == {"ok"}


def was_only_resumed(commands, times=1):
    """By what the runtime says: more often where the machine is too busy to look at it in time."""
    return set(commands) == {"resume"} and len(commands) >= times


@pytest.mark.parametrize("picture", ["honest", "suspended", "running", "bare"])
def test_a_port_that_does_not_suspend(daemon, fake, folder, picture):
    one = daemon([everything(folder)])
    runtime = fake(f"{one.socket},nosuspend", f"picture={picture}")
    runtime.report()
    receipt = one.receipt(runtime.pid, "running")
    assert (receipt.outcome, receipt["late"], receipt["rule"]) == ("late", True, "all")
    assert resumed_only(receipt), receipt
    # It ran all the while; when Resume came, it may have been before its first report or after.
    assert set(runtime.commands() + runtime.finish()) == {"resume"}


def test_it_shows_that_it_runs_whatever_its_port_says(daemon, fake, folder):
    one = daemon([everything(folder)])
    runtime = fake(one.socket, "picture=running")
    assert runtime.commands() == ["resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert (receipt.outcome, resumed_only(receipt)) == ("late", True)


@pytest.mark.parametrize("first", [True, False])
def test_one_port_suspends_and_another_does_not(daemon, fake, folder, first):
    """What holds it is the port that suspends; by which one it is met first is the runtime's business."""
    one = daemon([rule(env={"A": "1"})], listen=[listen(folder), listen(folder, "second")])
    second = str(folder / "second.sock")
    runtime = fake(f"{one.socket},nosuspend;{second}" if first else f"{one.socket};{second},nosuspend")
    commands = runtime.commands()
    receipt = one.receipt(runtime.pid, "running")
    assert commands.count("env A=1") <= 1
    assert receipt.outcome == ("applied" if "env A=1" in commands else "late")
    assert set(commands[commands.index("resume") :]) == {"resume"}


@pytest.mark.parametrize("picture", ["honest", "bare"])
def test_it_ran_before_the_first_daemon_started(daemon, fake, folder, picture):
    one = daemon([everything(folder)], start=False, limits={"late_after": "10ms"})
    runtime = fake(f"{one.socket},nosuspend", f"picture={picture}", "start-delay=50")
    runtime.report()
    one.start()
    receipt = one.receipt(runtime.pid, "running")
    assert receipt.outcome == ("late" if picture == "honest" else "unknown")
    assert resumed_only(receipt), receipt
    assert was_only_resumed(runtime.finish())


def test_it_waited_long_before_the_first_daemon_started(daemon, fake, folder):
    """Its threads show that it still waits: it gets its plan, however old it is."""
    one = daemon([everything(folder)], start=False, limits={"late_after": "10ms"})
    runtime = fake(one.socket, "message-after=100", environment={"GONE": "x"})
    runtime.told_pause()
    one.start()
    assert runtime.commands() == ["kind", "info3", *whole_plan(folder)]
    assert one.receipt(runtime.pid, "running").outcome == "applied"
    assert runtime.finish() == []


def test_it_is_old_and_shows_nothing(daemon, fake, folder):
    one = daemon([everything(folder)], start=False, limits={"late_after": "10ms"})
    runtime = fake(one.socket, "message-after=100", "picture=bare")
    runtime.told_pause()
    one.start()
    assert runtime.commands() == ["resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert (receipt.outcome, resumed_only(receipt)) == ("unknown", True)
    assert "late_after" in receipt["why"]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_the_daemon_starts_anew_while_it_runs(daemon, fake, folder, how):
    one = daemon([everything(folder)])
    runtimes = [fake(one.socket, f"picture={picture}", environment={"GONE": "x"}) for picture in ("honest", "bare")]
    for runtime in runtimes:
        assert runtime.commands() == ["kind", "info3", *whole_plan(folder)]
        one.receipt(runtime.pid, "running")
    for _ in range(3):
        one.stop() if how == "stop" else one.kill()
        one.start()
        for runtime in runtimes:
            receipt = one.receipt(runtime.pid, "running")
            assert (receipt.outcome, resumed_only(receipt)) == ("late", True)
            assert receipt["why"] == "it was resumed before the daemon was started anew"
    for runtime in runtimes:
        assert was_only_resumed(runtime.finish(), times=3)


@pytest.mark.parametrize("picture", ["honest", "bare"])
def test_the_record_is_lost_while_it_runs(daemon, fake, folder, picture):
    """An empty folder is what a first start finds; then only the threads and the age of a runtime can tell."""
    one = daemon([everything(folder)], limits={"late_after": "10ms"})
    runtime = fake(one.socket, f"picture={picture}", environment={"GONE": "x"})
    runtime.report()
    one.receipt(runtime.pid, "running")
    one.kill()
    for file in one.state.iterdir():
        file.unlink()
    # So long that it is surely older than late_after, since it was started before this one.
    witness = fake(one.socket, "message-after=50")
    witness.told_pause()
    one.start()
    receipt = one.receipt(runtime.pid, "running")
    assert receipt.outcome == ("late" if picture == "honest" else "unknown")
    assert resumed_only(receipt), receipt
    assert was_only_resumed(runtime.finish())
    assert one.receipt(witness.pid, "running").outcome == "applied"


@pytest.mark.parametrize("damage", ["missing", "cut", "corrupt", "version"])
def test_the_records_are_damaged(daemon, fake, folder, damage):
    """Nobody who is older than the daemon gets a plan, held or not; who comes after it does."""
    one = daemon([everything(folder)])
    one.stop()
    records = one.state / "records"
    content = bytearray(records.read_bytes())
    if damage == "missing":
        (one.state / "something").write_text("of an administrator")
        records.unlink()
    elif damage == "cut":
        records.write_bytes(content[: len(content) // 2])
    else:
        content[{"corrupt": 4096, "version": 8}[damage]] ^= 0xFF
        # The other half of that slot.
        content[4096 - MARK_SIZE] ^= 0xFF
        records.write_bytes(content)
    runtime = fake(one.socket, "message-after=50", "start-delay=50")
    runtime.told_pause()
    one.start()
    assert one.status()["records"] == "distrusted"
    # Its report comes so much later that who is started then is younger than the daemon even by the kernel's clock.
    assert runtime.commands() == ["resume"]
    receipt = one.receipt(runtime.pid, "running")
    assert (receipt.outcome, resumed_only(receipt)) == ("unknown", True)
    younger = fake(one.socket, environment={"GONE": "x"})
    assert younger.commands() == ["kind", "info3", *whole_plan(folder)]
