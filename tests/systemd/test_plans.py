# SPDX-License-Identifier: Apache-2.0
"""Plans under way while the daemon is restarted and killed: each step once, Resume last, nobody resumed early."""

import os
import random
import re
import signal
import time

import images
import inside
import pytest
from apps import CORECLR, WHOLE, told, whole_rule
from inside import PORT, SERVICE, systemctl

N_VARIABLES = 8
CLSID = "{cf0d821e-299b-5307-a3d8-b283c03916dd}"
HOOK, PROFILER = (inside.pathlib.Path("/usr/local/share") / name for name in ("Hook.dll", "profiler.so"))

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

N_RESTARTS = 100


class Simulated:
    """Fifty runtimes that take their time."""

    steps = 100

    def __init__(self, fleet):
        self.fleet = fleet
        self.many = None
        HOOK.write_bytes(images.hook())
        PROFILER.write_bytes(images.profiler())

    def rule(self):
        return {
            "name": "planned",
            "match": {"exe": "*/fake-runtime"},
            "env": {f"V{n}": str(n) for n in range(N_VARIABLES)},
            "profilers": [{"clsid": CLSID, "path": str(PROFILER), "required": False}],
            "startup_hooks": [{"path": str(HOOK), "required": False}],
            "primer": "never",
            "deadline": "5m",
            "command_timeout": "1m",
        }

    def come(self):
        variables = [item for n in range(N_VARIABLES) for item in ("--expect-env", f"V{n}={n}")]
        self.many = self.fleet(PORT, 50, "--together", "--may-repeat", *variables, behaviours=["delay=any:150"])

    def all_run(self):
        return self.many.process.poll() is not None

    def check(self):
        """With every variable, since Resume comes last, and no profiler or hook twice."""
        assert self.many.summary()["resumed"] == self.many.count
        # Those that ended are remembered, but for by a daemon that was started since.
        return max((one["hold_seconds"] for one in inside.runtimes()), default=0)


class Real:
    """Five programs of different runtimes, each a unit."""

    steps = 1000

    def __init__(self, start, rig):
        self.rig = rig
        self.apps = [start(name, f"app-{name}", "DynamicUser=yes", start=False) for name in (*CORECLR, "single-file-10")]
        self.names = [app.name for app in self.apps]

    def rule(self):
        rule = whole_rule(self.rig, match={"unit": "app-*.service"}, name="planned", deadline="5m", command_timeout="1m",
                          on_lost="fail", primer="never")
        rule["env"] = {**{f"DIAGPORT_TEST_MANY_{n}": "x" for n in range(2000)}, **rule["env"]}
        return rule

    def come(self):
        systemctl("start", "--no-block", *self.names)

    def all_run(self):
        return not any(app.has_said_nothing() for app in self.apps)

    def check(self):
        """With every variable, and each profiler and hook once: nothing was lost, and nobody ran before Resume."""
        holds = []
        for app in self.apps:
            assert told(app) == WHOLE, app.name
            (seen,) = inside.until(lambda pid=app.pid: inside.runtimes(pid=pid, state="running"))
            holds.append(seen["hold_seconds"])
        systemctl("kill", "-s", "KILL", *self.names)
        for app in self.apps:
            app.end()
            app.output.unlink()
        systemctl("reset-failed", *self.names)
        return max(holds)


def steps():
    return int(re.search(r"^diagport_steps_total\{kind=\"env\",result=\"ok\"\} (\d+)", inside.ask("GET", "/metrics"), re.M)[1])


def go_down(dice):
    """It ends in one of three ways; how long nobody was there then."""
    how = dice.choice([None, signal.SIGKILL, signal.SIGABRT])
    before, since = inside.main_pid(), time.monotonic()
    if how is None:
        systemctl("restart", SERVICE)
    else:
        inside.signal(how, before)
        inside.until(inside.main_pid, lambda pid: pid not in (0, before))
    # Crashes count against the start limit, and so many in ten seconds are for the rescue.
    systemctl("reset-failed", SERVICE)
    inside.ask("GET", "/v1/status")
    return time.monotonic() - since


@pytest.mark.parametrize("kind", ["simulated", "real"])
def test_a_hundred_restarts_at_random_points(service, request, capsys, kind):
    if kind == "real":
        crowd = Real(request.getfixturevalue("start"), request.getfixturevalue("rig"))
    else:
        crowd = Simulated(request.getfixturevalue("fleet"))
    seed = int(os.environ.get("DIAGPORT_SEED") or random.SystemRandom().randrange(1 << 31))
    dice = random.Random(seed)
    with capsys.disabled():
        print(f"\n{kind}: seed {seed} ", end="", flush=True)
    inside.write_rules(crowd.rule())
    service(None)
    # Nobody disturbs the first ones.
    crowd.come()
    inside.until(crowd.all_run)
    undisturbed = crowd.check()
    down, holds = [], []
    while len(down) < N_RESTARTS:
        crowd.come()
        while not crowd.all_run() and len(down) < N_RESTARTS:
            # Of this daemon: some are caught in the middle of it, and some at its start.
            wanted = dice.randrange(crowd.steps)
            inside.until(lambda n=wanted: steps() >= n or crowd.all_run())
            down.append(go_down(dice))
        holds.append(crowd.check())
    with capsys.disabled():
        print(f"waves {len(holds)}, longest time without a daemon {max(down):.2f} s, longest hold {max(holds):.2f} s, "
              f"undisturbed {undisturbed:.2f} s ", end="", flush=True)


def test_who_is_held_stays_held(service, fake):
    before = service(PLAN)
    held = fake(PORT, arguments=["held"])
    inside.until(lambda: inside.runtimes(pid=held.pid, state="held"))
    systemctl("restart", SERVICE)
    inside.until(lambda: inside.runtimes(pid=held.pid, state="held"))
    inside.signal(signal.SIGKILL, inside.main_pid())
    inside.until(inside.main_pid, lambda pid: pid not in (0, before))
    inside.until(lambda: inside.runtimes(pid=held.pid, state="held"))
    inside.resume(held.pid)
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
