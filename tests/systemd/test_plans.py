# SPDX-License-Identifier: Apache-2.0
"""Plans under way while the daemon is restarted and killed: each step once, Resume last, nobody resumed early."""

import random
import signal

import inside
from inside import PORT, SERVICE, systemctl

N_VARIABLES = 8

PLAN = """version: 1
rules:
  - name: held
    match: { container: any, args: held }
    startup_hooks: [ { path: /nowhere/Hook.dll } ]
    on_failure: hold
    hold_limit: 10m
  - name: planned
    match: { container: any, exe: "*/fake-runtime" }
    env: { %s }
    deadline: 5m
    command_timeout: 1m
""" % ", ".join(f'V{n}: "{n}"' for n in range(N_VARIABLES))


def everybody_has_it(many, how):
    summary = many.summary()
    assert summary["resumed"] == many.count, how
    outcomes = {one["outcome"] for one in inside.runtimes()}
    assert outcomes <= {"applied", "late"}, (how, outcomes)


def is_under_way():
    return inside.ctl_json("status")["runtimes"]["applying"] > 0


def test_restarted_at_random_points(service, fleet):
    service(PLAN)
    many = fleet(PORT, 50, "--together", "--may-repeat", "--expect-env", "V7=7", behaviours=["delay=any:60"])
    inside.until(is_under_way)
    dice = random.Random(1)
    for _ in range(12):
        if dice.randrange(2):
            systemctl("restart", SERVICE)
        else:
            before = inside.main_pid()
            inside.signal(signal.SIGKILL, before)
            inside.until(inside.main_pid, lambda pid, old=before: pid not in (0, old))
            # Crashes count against the start limit, and so many in ten seconds are for the rescue.
            systemctl("reset-failed", SERVICE)
    everybody_has_it(many, "seed 1")


def test_who_is_held_stays_held(service, fake):
    before = service(PLAN)
    held = fake(PORT, arguments=["held"])
    inside.until(lambda: inside.runtimes(pid=held.pid, state="held"))
    systemctl("restart", SERVICE)
    inside.until(lambda: inside.runtimes(pid=held.pid, state="held"))
    inside.signal(signal.SIGKILL, inside.main_pid())
    inside.until(inside.main_pid, lambda pid: pid not in (0, before))
    inside.until(lambda: inside.runtimes(pid=held.pid, state="held"))
    inside.ctl("resume", f"pid:{held.pid}")
    assert held.commands() == ["resume"]


def test_the_policy_of_a_plan_stays(service, fake):
    """It was changed while the plan was under way; who comes then gets what is in force then."""
    service(PLAN)
    runtime = fake(PORT, "stop-before-reply=set-env@2")
    runtime.stands()
    inside.write_policy("version: 1\n")
    systemctl("restart", SERVICE)
    runtime.thaw()
    assert [command for command in runtime.commands() if command.startswith("env V7")] == ["env V7=7"]
    assert fake(PORT).commands() == ["resume"]
