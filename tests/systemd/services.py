# SPDX-License-Identifier: Apache-2.0
"""Services of others: .NET programs as units, and what they print. Knows nothing of the daemon."""

import json
import os
import pathlib

import inside
from inside import PORT

UNITS = pathlib.Path("/etc/systemd/system")

PORTS = "DOTNET_DiagnosticPorts"


class Manager:
    """Whose units they are: where they lie, where their standard input and output are, and how to ask him."""

    def __init__(self, units, folder, systemctl):
        self.units, self.folder, self.command = units, folder, systemctl

    def systemctl(self, *arguments, status=0):
        return inside.run(*self.command, *arguments, status=status)

    def prop(self, unit, name):
        return self.systemctl("show", "--value", "-p", name, unit).strip()


# Not in /run, which some of them do not see.
SYSTEM = Manager(UNITS, pathlib.Path("/srv/test-services"), ["systemctl"])


class Service:
    """A program as a unit of its own; it runs until it is told to end."""

    def __init__(self, name, command, *lines, ports=PORT, environment=None, kind="exec", start=True, manager=SYSTEM):
        self.manager = manager
        self.name = name if "." in name else f"{name}.service"
        self.file = manager.units / self.name
        manager.folder.mkdir(exist_ok=True)
        self.output = manager.folder / f"{self.name}.out"
        self.output.unlink(missing_ok=True)
        self.input = manager.folder / f"{self.name}.in"
        # Of one of this name that was let go it is something else.
        self.input.unlink(missing_ok=True)
        os.mkfifo(self.input)
        self.input.chmod(0o666)
        self.ends = manager.folder / f"{self.name}.ends"
        self.ends.unlink(missing_ok=True)
        # Also read: then it can be opened before anybody reads it.
        self.writer = os.open(self.input, os.O_RDWR | os.O_CLOEXEC)
        variables = {"DOTNET_NOLOGO": "1", **({} if ports is None else {PORTS: ports}), **(environment or {})}
        self.file.write_text("\n".join([
            "[Service]",
            f"Type={kind}",
            f"ExecStart={' '.join(command)}",
            f"StandardInput=file:{self.input}",
            f"StandardOutput=truncate:{self.output}",
            # What has ended is soon forgotten by the manager.
            f"ExecStopPost=+/bin/sh -c 'echo $$SERVICE_RESULT $$EXIT_CODE $$EXIT_STATUS >>{self.ends}'",
            *(f"Environment={name}={value}" for name, value in variables.items()),
            *lines,
            "",
        ]))
        manager.systemctl("daemon-reload")
        if start:
            self.start()

    def start(self):
        self.manager.systemctl("start", "--no-block", self.name)

    def prop(self, name):
        return self.manager.prop(self.name, name)

    @property
    def pid(self):
        """Of its program, which is there when this is."""
        return int(inside.until(lambda: self.prop("MainPID"), lambda pid: pid != "0"))

    def written(self):
        return self.output.read_text() if self.output.exists() else ""

    def lines(self, start):
        return [line for line in self.written().splitlines(keepends=True)
                if line.startswith(start) and line.endswith("\n")]

    def report(self):
        """What it says of itself once it runs."""
        return json.loads(inside.until(lambda: self.lines("{"))[0])

    def has_said_nothing(self):
        return not self.lines("{")

    def is_told_pause(self):
        """Waits until its runtime says that it has waited for five seconds."""
        inside.until(lambda: self.lines("The runtime has been configured to pause during startup"))

    def end(self):
        """Waits until it has ended: its result, and how its process ended and with what."""
        inside.until(lambda: self.prop("ActiveState"), lambda state: state in ("inactive", "failed"))
        return tuple(self.ends.read_text().splitlines()[-1].split())

    def finish(self):
        """Lets it end."""
        # What else its unit starts does not wait for a writer.
        self.input.unlink()
        self.input.symlink_to("/dev/null")
        os.close(self.writer)
        self.writer = None
        assert self.end() == ("success", "exited", "0")

    def remove(self):
        if self.prop("ActiveState") not in ("inactive", "failed"):
            self.manager.systemctl("kill", "-s", "KILL", self.name, status=None)
            self.manager.systemctl("stop", self.name, status=None)
        self.manager.systemctl("reset-failed", self.name, status=None)
        if self.writer is not None:
            os.close(self.writer)
        for path in (self.file, self.input, self.output, self.ends):
            path.unlink(missing_ok=True)
