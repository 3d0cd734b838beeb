#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rig itself: selftest.py OUTDIR, after build-rig OUTDIR.

Every program is started without a diagnostic port, then on one that this file serves, in the smallest way that works:
so a failing end-to-end test can be told from a broken rig. Prints one line for each check; exit status 0 if all passed.
"""

import contextlib
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid

sys.dont_write_bytecode = True  # this folder may be read-only, or not ours

from rig import Rig  # noqa: E402

# Far beyond anything measured on a slow machine: a check that hits it is hung.
TIME_LIMIT = 60.0

MAGIC = b"DOTNET_IPC_V1\0"
ADVERTISE_MAGIC = b"ADVR_V1\0"
ADVERTISE_SIZE = 34
HEADER = struct.Struct("<14sHBBH")
OK = 0x00

STARTUP_PROFILER = (0x03, 0x02)
RESUME_RUNTIME = (0x04, 0x01)
SET_ENVIRONMENT_VARIABLE = (0x04, 0x03)
APPLY_STARTUP_HOOK = (0x04, 0x07)

INVALID_ARGUMENT = 0x80070057
NOT_SUPPORTED = 0x80131515

VARIABLE = "DIAGPORT_TEST_ONE"
ABSENT = "DIAGPORT_TEST_ABSENT"
NAMES = ("--names", f"{VARIABLE},{ABSENT}")


class Failure(Exception):
    """A check did not hold."""


def expect(what, actual, expected):
    if actual != expected:
        raise Failure(f"{what} is {actual!r}, not {expected!r}")


def text(value):
    """A string as the protocol has it: the count of UTF-16 units with the final NUL, then the units."""
    units = (value + "\0").encode("utf-16-le")
    return struct.pack("<I", len(units) // 2) + units


class Port:
    """A diagnostic port for one runtime, which connects to it, is given commands and reconnects after each."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "port.sock")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(TIME_LIMIT)
        self._listener.bind(self.path)
        self._listener.listen()
        self._connection = None
        self.cookie = None
        self.pid = None

    def close(self):
        if self._connection:
            self._connection.close()
        self._listener.close()

    def connect(self):
        """Waits for the runtime, whose first words say who it is."""
        if self._connection:
            return
        self._connection, _ = self._listener.accept()
        self._connection.settimeout(TIME_LIMIT)
        advertise = self._read(ADVERTISE_SIZE)
        expect("the advertise's magic", advertise[:8], ADVERTISE_MAGIC)
        cookie = advertise[8:24]
        if self.cookie is not None:
            expect("the cookie of a later connection", cookie, self.cookie)
        self.cookie = cookie
        self.pid = struct.unpack_from("<Q", advertise, 24)[0]

    def command(self, command, payload=b""):
        """Sends one command and returns the HRESULT of the answer, 0 for success."""
        self.connect()
        size = HEADER.size + len(payload)
        self._connection.sendall(HEADER.pack(MAGIC, size, *command, 0) + payload)
        magic, size, _, answer, _ = HEADER.unpack(self._read(HEADER.size))
        expect("the answer's magic", magic, MAGIC)
        (result,) = struct.unpack_from("<I", self._read(size - HEADER.size))
        # The runtime takes one command from each connection. It closes after the answer, except after some errors.
        self._connection.close()
        self._connection = None
        if (answer == OK) != (result == 0):
            raise Failure(f"answer {answer:#04x} carries result {result:#010x}")
        return result

    def set_variable(self, name, value):
        return self.command(SET_ENVIRONMENT_VARIABLE, text(name) + text(value))

    def apply_hooks(self, *paths):
        """One command for all: hooks of several commands would run last sent first."""
        return self.command(APPLY_STARTUP_HOOK, text(":".join(paths)))

    def load_profiler(self, class_identifier, path):
        """Repeats while the runtime, just about to pause, still claims not to pause."""
        payload = uuid.UUID(class_identifier).bytes_le + text(path)
        limit = time.monotonic() + TIME_LIMIT
        while True:
            result = self.command(STARTUP_PROFILER, payload)
            if result != INVALID_ARGUMENT or time.monotonic() > limit:
                return result

    def resume(self):
        """The runtime goes on before it answers, so a program that ends at once may take the answer with it."""
        try:
            expect("the result of Resume", self.command(RESUME_RUNTIME), 0)
        except (ConnectionResetError, EOFError):
            pass

    def _read(self, count):
        data = b""
        while len(data) < count:
            block = self._connection.recv(count - len(data))
            if not block:
                raise EOFError("the runtime closed its connection in the middle")
            data += block
        return data


def environment(**extra):
    """The caller's environment without anything that changes a runtime."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(("DOTNET_", "COMPLUS_", "CORECLR_", "DIAGPORT_"))
    }
    return clean | extra


@contextlib.contextmanager
def started(command, **variables):
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**variables),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def started_on_port(command):
    """The program, suspended on a port of its own."""
    with tempfile.TemporaryDirectory(prefix="rig-selftest-") as folder:
        with contextlib.closing(Port(folder)) as port:
            with started(command, DOTNET_DiagnosticPorts=port.path) as process:
                port.connect()
                expect("the advertised pid", port.pid, process.pid)
                yield process, port


def report_of(output):
    lines = output.decode("utf-8").splitlines()
    expect("the number of lines printed", len(lines), 1)
    return json.loads(lines[0])


def finish(process, status=0):
    """Waits for the end of the program and returns what it printed."""
    output, errors = process.communicate(timeout=TIME_LIMIT)
    if process.returncode != status:
        raise Failure(f"exit status {process.returncode}, not {status}; on standard error: {errors.decode()!r}")
    return report_of(output)


def check_plain(command, version):
    """Without a port: everything is as the launcher gave it, nothing else ran."""
    with started([*command, *NAMES, "--children", "two words", "--exit", "7"], **{VARIABLE: "eins €"}) as process:
        report = finish(process, status=7)
    seen = {VARIABLE: "eins €", ABSENT: None}
    expect(
        "the report",
        report,
        {
            "version": version,
            "managed": seen,
            "native": seen,
            "child": seen,
            "native_child": seen,
            "hooks": [],
            "profiler": None,
            "profiler_notify": None,
            "args": [*NAMES, "--children", "two words", "--exit", "7"],
            "pid": process.pid,
        },
    )


def check_wait(command):
    """With --wait: the line is there while the program lives, which ends with its input."""
    with started([*command, "--wait"]) as process:
        readable, _, _ = select.select([process.stdout], [], [], TIME_LIMIT)
        if not readable:
            raise Failure("nothing was printed")
        report = report_of(process.stdout.readline())
        expect("the exit status while input is open", process.poll(), None)
        output, _ = process.communicate(timeout=TIME_LIMIT)
        expect("what came after the line", output, b"")
        expect("the exit status", process.returncode, 0)
        expect("children that were not asked for", (report["child"], report["native_child"]), (None, None))


def check_port(command, rig):
    """CoreCLR on a port: the variable in managed code and its children only, both hooks in order, one profiler."""
    with started_on_port([*command, *NAMES, "--children"]) as (process, port):
        expect("the result of SetEnvironmentVariable", port.set_variable(VARIABLE, "one"), 0)
        expect("the result of ApplyStartupHook", port.apply_hooks(rig.hook_a, rig.hook_b), 0)
        expect("the result of StartupProfiler", port.load_profiler(rig.profiler_clsid, rig.profiler), 0)
        port.resume()
        report = finish(process)
    expect("managed", report["managed"], {VARIABLE: "one", ABSENT: None})
    expect("native", report["native"], {VARIABLE: None, ABSENT: None})
    expect("child", report["child"], {VARIABLE: "one", ABSENT: None})
    expect("native_child", report["native_child"], {VARIABLE: None, ABSENT: None})
    expect("hooks", report["hooks"], ["HookA", "HookB"])
    expect("profiler", report["profiler"], "1:one:-")
    expect("profiler_notify", report["profiler_notify"], None)


def check_repeats(command, rig):
    """What is sent twice shows twice: a hook, and a notification-only profiler beside a main one."""
    with started_on_port(command) as (process, port):
        expect("the main profiler's result", port.load_profiler(rig.profiler_clsid, rig.profiler), 0)
        for _ in range(2):
            expect("the other's result", port.load_profiler(rig.profiler_notify_clsid, rig.profiler_notify), 0)
        expect("the result of ApplyStartupHook", port.apply_hooks(rig.hook_b, rig.hook_b), 0)
        port.resume()
        report = finish(process)
    expect("profiler", report["profiler"], "1:-:-")
    expect("profiler_notify", report["profiler_notify"], "2:-:-")
    expect("hooks", report["hooks"], ["HookB", "HookB"])


def check_wrong_class(command, rig):
    """The profiler refuses a class identifier that is not its own, and the program runs without it."""
    with started_on_port(command) as (process, port):
        expect("the result", port.load_profiler(rig.profiler_notify_clsid, rig.profiler), 0)
        port.resume()
        report = finish(process)
    expect("profiler", report["profiler"], None)


def check_throwing_hook(command, rig):
    """The hook is accepted and kills the program before it prints anything."""
    with started_on_port(command) as (process, port):
        expect("the result", port.apply_hooks(rig.hook_throws), 0)
        port.resume()
        output, errors = process.communicate(timeout=TIME_LIMIT)
    expect("the exit status", process.returncode, -signal.SIGABRT)
    expect("the output", output, b"")
    if b"HookThrows throws" not in errors:
        raise Failure(f"standard error does not name the hook's exception: {errors.decode()!r}")


def check_aot_port(command, rig):
    """NativeAOT on a port: the variable is in the real environment; hooks and profilers are refused."""
    with started_on_port([*command, *NAMES, "--children"]) as (process, port):
        expect("the result of SetEnvironmentVariable", port.set_variable(VARIABLE, "one"), 0)
        expect("the result of ApplyStartupHook", port.apply_hooks(rig.hook_a), NOT_SUPPORTED)
        expect(
            "the result of StartupProfiler", port.load_profiler(rig.profiler_clsid, rig.profiler), NOT_SUPPORTED
        )
        port.resume()
        report = finish(process)
    seen = {VARIABLE: "one", ABSENT: None}
    for place in ("managed", "native", "child", "native_child"):
        expect(place, report[place], seen)
    expect("hooks", report["hooks"], [])
    expect("profiler", report["profiler"], None)


def all_checks(rig):
    """(name, function without arguments) for every check."""
    coreclr = [(version, rig.command(version), version) for version in rig.versions]
    coreclr += [(label, [path], label.rpartition("-")[2]) for label, path in rig.single_file]
    aot = [(label, [path], label.rpartition("-")[2]) for label, path in rig.aot]

    for label, command, version in coreclr + aot:
        yield f"{label}: no port", lambda c=command, v=version: check_plain(c, v)
        yield f"{label}: waits for the end of its input", lambda c=command: check_wait(c)
    for label, command, _ in coreclr:
        yield f"{label}: variable, hooks and profiler by port", lambda c=command: check_port(c, rig)
        yield f"{label}: what is sent twice shows twice", lambda c=command: check_repeats(c, rig)
        yield f"{label}: profiler with a wrong class", lambda c=command: check_wrong_class(c, rig)
        yield f"{label}: hook that throws", lambda c=command: check_throwing_hook(c, rig)
    for label, command, _ in aot:
        yield f"{label}: variable by port, the rest refused", lambda c=command: check_aot_port(c, rig)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: selftest.py OUTDIR (what build-rig was given)")
    # Some programs are meant to die; their cores would land in the caller's folder.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    passed = failed = 0
    for name, check in all_checks(Rig(sys.argv[1])):
        try:
            check()
        except (Failure, OSError, EOFError, ValueError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"FAIL {name}: {error}", flush=True)
        else:
            passed += 1
            print(f"ok   {name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
