# SPDX-License-Identifier: Apache-2.0
"""Runtimes for the daemon to meet: fake ones, many of them, what only looks like one, and real ones."""

import json
import os
import signal
import subprocess

import pytest
from harness import BUILD
from lines import TIMEOUT, Lines

FAKE = str(BUILD / "tests/fake/fake-runtime")
FLEET = str(BUILD / "tests/fake/fake-fleet")
ABUSE = str(BUILD / "tests/fake/fake-abuse")

#: Short names of commands.
SHORT = {
    "SetEnvironmentVariable": "env",
    "StartupProfiler": "profiler",
    "AttachProfiler": "attach",
    "ApplyStartupHook": "hook",
    "ResumeRuntime": "resume",
    "ProcessInfo3": "info3",
    "ProcessInfo2": "info2",
    "ProcessInfo": "info1",
    "ProcessEnvironment": "environment",
}

#: Those that change nothing.
QUESTIONS = ("kind", "info1", "info2", "info3", "environment")


def story(command):
    """One command of a report as text: "env A=1", "hook /a:/b", "resume"; one that was refused unread: "env"."""
    short = SHORT.get(command["name"], f"{command['set']:02x}{command['id']:02x}")
    arguments = command["arguments"]
    if short == "env" and arguments:
        name, value = arguments.get("name"), arguments.get("value")
        return f"unset {name}" if value is None else f"env {name}={value}"
    if short in ("profiler", "hook") and arguments:
        return f"{short} {arguments['path']}"
    if short == "attach" and arguments.get("data") is not None:
        return f"attach {arguments['path']} with {bytes.fromhex(arguments['data']).decode()}".removesuffix(" with ")
    return "kind" if short == "0300" else short


def is_start_race(command):
    """A profiler that came before the runtime says that it pauses, or runs: it is sent again, on real ones too."""
    early = {"StartupProfiler": "0x80070057", "AttachProfiler": "0x8013135b"}
    return command["result"] == early.get(command["name"], "") and command["fault"] is None


class Program:
    """A process that is told when to end by the end of its standard input, and what it prints."""

    def __init__(self, command, environment, **options):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=options.pop("stderr", subprocess.DEVNULL),
            env={"PATH": os.environ["PATH"], **environment},
            **options,
        )
        self.pid = self.process.pid
        self.lines = Lines(self.process.stdout)

    def is_alive(self):
        return self.process.poll() is None

    def wait(self):
        """Waits until it ends by itself, and gives its exit status."""
        status = self.process.wait(TIMEOUT)
        self.lines.end()
        if not self.process.stdin.closed:
            self.process.stdin.close()
        return status

    def end(self):
        """Lets it end, and gives its exit status."""
        self.process.stdin.close()
        return self.wait()

    def stands(self):
        """Waits until a signal has stopped it."""
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        self.stands()

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if self.is_alive():
            self.process.kill()
        self.process.wait(TIMEOUT)


class Fake(Program):
    """One fake runtime; its report lines say what it was told."""

    def __init__(self, ports, *behaviours, arguments=(), environment=None, program=FAKE, prefix=(), run_for="stdin",
                 **options):
        # Not on the command line, which rules look at.
        variables = {"FAKE_BEHAVE": ",".join([*behaviours, f"run-for={run_for}"])}
        if ports is not None:
            variables["DOTNET_DiagnosticPorts"] = ports
        super().__init__([*prefix, program, *arguments], {**variables, **(environment or {})}, **options)

    def report(self, event="start", times=1):
        """What it was told before its managed code started, or, for "end", after that."""
        return json.loads(self.lines.wait(rf'^\{{"event":"{event}"', times=times).string)

    def commands(self, event="start", times=1):
        """The commands that it took, in order, as short texts, without those that the start-up race cost."""
        return [story(command) for command in self.report(event, times)["commands"] if not is_start_race(command)]

    def told_pause(self):
        """Waits until it says that it has waited long, which is when behaviour `message-after` says."""
        self.lines.wait("^The runtime has been configured to pause during startup")

    def finish(self):
        """Lets it end: the commands that it took after its start."""
        assert self.end() == 0
        return self.commands("end")


class Fleet:
    """Many fake runtimes at once, and what they say in sum."""

    def __init__(self, ports, count, *options, behaviours=(), environment=None, run_for="exit", **more):
        arguments = [item for behaviour in behaviours for item in ("--behave", behaviour)]
        self.process = subprocess.Popen(
            [FLEET, "--count", str(count), "--timeout", str(int(TIMEOUT)), *options, "--", *arguments,
             "--run-for", run_for],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "DOTNET_DiagnosticPorts": ports, **(environment or {})},
            start_new_session=True,
            **more,
        )
        self.count = count

    def summary(self, anomalies=(), started=None):
        """Waits for all; nothing may be odd but what is listed."""
        output, _ = self.process.communicate(timeout=2 * TIMEOUT)
        whole = json.loads(output)
        odd = {name: count for name, count in whole["anomalies"].items() if count and name not in anomalies}
        assert not odd, whole
        assert whole["started"] == (self.count if started is None else started), whole
        return whole

    def kill(self):
        # With its runtimes, which are in its session.
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(TIMEOUT)
        self.process.stdout.close()


class Abuse(Program):
    """One process with many connections that are not a runtime's."""

    def __init__(self, path, *options, **more):
        super().__init__([ABUSE, "--socket", path, *options], {}, **more)

    def opened(self):
        """What it says when it has tried all of its connections."""
        return json.loads(self.lines.wait('"event":"open"').string)

    def finish(self):
        assert self.end() == 0, self.lines.seen
        return json.loads(self.lines.wait('"event":"end"').string)


class App(Program):
    """A real .NET program, which prints one line of JSON about itself."""

    def __init__(self, command, ports, folder, *arguments, environment=None, **options):
        variables = {} if ports is None else {"DOTNET_DiagnosticPorts": ports}
        super().__init__(
            [*command, *arguments],
            {
                **variables,
                # Its other sockets and pipes lie there.
                "TMPDIR": str(folder.path),
                "DOTNET_NOLOGO": "1",
                **(environment or {}),
            },
            **options,
        )

    def report(self):
        return json.loads(self.lines.wait(r"^\{").string)

    def finish(self):
        assert self.end() == 0


def maker(kind, owner):
    """A fixture that makes programs of that kind; none outlives the test, and none what the fixture `owner` made."""

    @pytest.fixture
    def make_one(request):
        request.getfixturevalue(owner)
        made = []

        def make(*arguments, **options):
            made.append(kind(*arguments, **options))
            return made[-1]

        yield make
        for one in made:
            one.kill()

    return make_one
