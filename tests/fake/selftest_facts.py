# SPDX-License-Identifier: Apache-2.0
"""The part of selftest.py that holds facts: the same tables and checks for the fake and for real runtimes."""

import contextlib
import os
import pathlib
import signal
import socket

from selftest_common import *  # noqa: F403
from toolside import *  # noqa: F403

VERSIONS = ("8", "9", "10", "11")
AOT = ("aot8", "aot10")
ALL = VERSIONS + AOT


# Who is tested.


class Target:
    """One runtime, played or real: how it is started."""

    def __init__(self, name, command, is_fake):
        self.name = name
        self.command = command
        self.is_fake = is_fake

    def start(self, *behaviours, arguments=(), cwd=None, **variables):
        command = list(self.command)
        if self.is_fake:
            for behaviour in behaviours:
                command += ["--behave", behaviour]
            command += ["--run-for", "stdin", "--"]
        return Process([*command, *arguments], cwd=cwd, **variables)


def fake(name):
    if name.startswith("aot"):
        return Target(name, [FAKE, "--kind", "nativeaot", "--version", name[3:]], True)
    return Target(name, [FAKE, "--version", name], True)


def real(rig, name):
    if name.startswith("aot"):
        paths = [path for label, path in rig.aot if label.startswith(f"nativeaot-{name[3:]}.")]
        return Target(name, [paths[0], "--wait"], False) if paths else None
    versions = [version for version in rig.versions if version.startswith(f"{name}.")]
    return Target(name, [*rig.command(versions[0]), "--wait"], False) if versions else None


# What every command does, suspended and running. A result is what the tool sees: "ok" or the code; with "open" the
# socket then stays open, with "dies N" the process dies by that signal. One result is for all; else there is one for
# each of ALL, "-" where it was not measured.

DIES = "dies 11"

X = provider("X", 1)
ATTACH_START = u32(1000) + GUID
COMMANDS = [
    # name, state, command, payload, results for 8, 9, 10, 11, NativeAOT 8, NativeAOT 10
    ("ProcessInfo", "suspended", INFO, b"", "ok"),
    ("ProcessInfo2", "suspended", INFO_2, b"", "ok"),
    ("ProcessInfo3", "suspended", INFO_3, b"", "ok"),
    ("ResumeRuntime", "suspended", RESUME, b"", "ok"),
    ("ResumeRuntime", "running", RESUME, b"", "ok"),
    ("ResumeRuntime with a payload", "suspended", RESUME, b"junk", "ok"),
    ("ProcessEnvironment", "suspended", ENVIRONMENT, b"", "ok"),
    ("set a variable", "suspended", SET_ENV, text("A") + text("B"), "ok"),
    ("set a variable", "running", SET_ENV, text("A") + text("B"), "ok"),
    ("set it empty", "suspended", SET_ENV, text("A") + text(""), "ok"),
    ("set it with junk behind", "suspended", SET_ENV, text("A") + text("B") + b"junk", "ok"),
    ("set a name with '='", "suspended", SET_ENV, text("A=B") + text("C"),
     "ok", "ok", "ok", "ok", "ffffffff", "ffffffff"),
    ("unset what is there", "suspended", SET_ENV, text("GONE") + text(None), "ok", "ok", "ok", "ok", DIES, DIES),
    ("unset what is not there", "suspended", SET_ENV, text("A") + text(None),
     NOT_SET, NOT_SET, NOT_SET, NOT_SET, DIES, DIES),
    ("unset a name with '='", "suspended", SET_ENV, text("A=B") + text(None),
     NOT_SET, NOT_SET, NOT_SET, NOT_SET, DIES, "ffffffff"),
    ("set no name", "suspended", SET_ENV, text(None) + text("B"),
     INVALID, INVALID, INVALID, INVALID, DIES, "ffffffff"),
    ("set an empty name", "suspended", SET_ENV, text("") + text("B"), "ok", "ok", "ok", "ok", "ffffffff", "ffffffff"),
    ("unset an empty name", "suspended", SET_ENV, text("") + text(None), "ok", "ok", "ok", "ok", DIES, "ffffffff"),
    ("unset no name", "suspended", SET_ENV, text(None) + text(None),
     INVALID, INVALID, INVALID, INVALID, DIES, "ffffffff"),
    ("set the longest", "suspended", SET_ENV, text("NAME") + text("x" * 32747), "ok"),
    ("a name that is not terminated", "suspended", SET_ENV, u32(1) + b"A\0" + text("B"), ENCODING),
    ("a count past the end", "suspended", SET_ENV, text("A") + u32(100) + b"B\0", ENCODING),
    ("a name without a value", "suspended", SET_ENV, text("GONE"), "ok", "ok", "ok", ENCODING, "-", "-"),
    ("a variable of two bytes", "suspended", SET_ENV, b"\1\0", DIES, DIES, DIES, ENCODING, DIES, DIES),
    ("a variable of nothing", "suspended", SET_ENV, b"", DIES, DIES, DIES, ENCODING, DIES, DIES),
    ("perf map", "suspended", PERF_MAP, u32(3), DIES, DIES, "ok", "ok", UNSUPPORTED, UNSUPPORTED),
    ("perf map 0", "suspended", PERF_MAP, u32(0), INVALID, INVALID, INVALID, INVALID, UNSUPPORTED, UNSUPPORTED),
    ("perf map 4", "suspended", PERF_MAP, u32(4), INVALID, INVALID, INVALID, INVALID, UNSUPPORTED, UNSUPPORTED),
    ("perf map", "running", PERF_MAP, u32(3), "ok", "ok", "ok", "ok", UNSUPPORTED, UNSUPPORTED),
    ("perf map of nothing", "suspended", PERF_MAP, b"", DIES, DIES, DIES, ENCODING, UNSUPPORTED, UNSUPPORTED),
    ("perf map off", "suspended", PERF_MAP_OFF, b"", "ok", "ok", "ok", "ok", UNSUPPORTED, UNSUPPORTED),
    ("perf map off", "running", PERF_MAP_OFF, b"", "ok", "ok", "ok", "ok", UNSUPPORTED, UNSUPPORTED),
    ("a hook that is absent", "suspended", HOOK, text("/absent.dll"), "ok", "ok", "ok", "ok", UNSUPPORTED, UNSUPPORTED),
    ("an empty hook", "suspended", HOOK, text(""), "ok", "ok", "ok", "ok", UNSUPPORTED, UNSUPPORTED),
    ("no hook", "suspended", HOOK, text(None), INVALID, INVALID, INVALID, INVALID, UNSUPPORTED, UNSUPPORTED),
    ("a hook of nothing", "suspended", HOOK, b"", DIES, DIES, DIES, ENCODING, DIES, DIES),
    ("a hook that is cut", "suspended", HOOK, u32(3) + b"abcdef", ENCODING),
    ("a hook that is absent", "running", HOOK, text("/absent.dll"),
     INVALID, "dies 6", "dies 6", INVALID, UNSUPPORTED, UNSUPPORTED),
    ("a relative hook", "running", HOOK, text("bin/a.dll"),
     INVALID, "dies 6", "dies 6", INVALID, UNSUPPORTED, UNSUPPORTED),
    ("startup profiler", "suspended", STARTUP_PROFILER, GUID + text("/absent.so"),
     "ok", "ok", "ok", "ok", UNSUPPORTED, UNSUPPORTED),
    ("startup profiler", "running", STARTUP_PROFILER, GUID + text("/absent.so"),
     INVALID, INVALID, INVALID, INVALID, UNSUPPORTED, UNSUPPORTED),
    ("startup profiler of nothing", "suspended", STARTUP_PROFILER, b"",
     DIES, DIES, DIES, ENCODING, UNSUPPORTED, UNSUPPORTED),
    ("startup profiler of nothing", "running", STARTUP_PROFILER, b"",
     INVALID, INVALID, INVALID, INVALID, UNSUPPORTED, UNSUPPORTED),
    ("startup profiler without a path", "suspended", STARTUP_PROFILER, GUID,
     "ok", "ok", "ok", ENCODING, UNSUPPORTED, UNSUPPORTED),
    ("half a startup profiler", "suspended", STARTUP_PROFILER, GUID[:8],
     "ok", "ok", "ok", ENCODING, UNSUPPORTED, UNSUPPORTED),
    ("the question for the kind", "suspended", ASK_KIND, b"",
     f"{UNKNOWN} open", f"{UNKNOWN} open", f"{UNKNOWN} open", f"{UNKNOWN} open", UNSUPPORTED, UNSUPPORTED),
    ("an unknown profiler command", "suspended", 0x0303, b"junk",
     f"{UNKNOWN} open", f"{UNKNOWN} open", f"{UNKNOWN} open", f"{UNKNOWN} open", UNSUPPORTED, UNSUPPORTED),
    ("attach", "suspended", ATTACH_PROFILER, ATTACH_START + text("/absent.so") + u32(0),
     NOT_YET, NOT_YET, NOT_YET, NOT_YET, UNSUPPORTED, UNSUPPORTED),
    ("attach of nothing", "suspended", ATTACH_PROFILER, b"",
     NOT_YET, NOT_YET, NOT_YET, NOT_YET, UNSUPPORTED, UNSUPPORTED),
    ("attach", "running", ATTACH_PROFILER, ATTACH_START + text("/absent.so") + u32(0),
     "8007007e", "8007007e", "8007007e", "8007007e", UNSUPPORTED, UNSUPPORTED),
    ("attach without a path", "running", ATTACH_PROFILER, ATTACH_START + text(None) + u32(0),
     FAILS, FAILS, FAILS, FAILS, UNSUPPORTED, UNSUPPORTED),
    ("attach without data length", "running", ATTACH_PROFILER, ATTACH_START + text("/absent.so"),
     ENCODING, ENCODING, ENCODING, ENCODING, UNSUPPORTED, UNSUPPORTED),
    ("attach with too little data", "running", ATTACH_PROFILER, ATTACH_START + text("/absent.so") + u32(5),
     "8007007e", "8007007e", "8007007e", ENCODING, UNSUPPORTED, UNSUPPORTED),
    ("attach with too much data", "running", ATTACH_PROFILER, ATTACH_START + text("/absent.so") + u32(0) + b"12345",
     ENCODING, ENCODING, ENCODING, "8007007e", UNSUPPORTED, UNSUPPORTED),
    ("a dump of nothing", "suspended", DUMP_3, b"", DIES, DIES, DIES, ENCODING, DIES, DIES),
    ("a dump", "suspended", DUMP, text("/nowhere/x") + u32(1) + u32(0), "-", "-", "-", "-", FAILS, FAILS),
    ("stop an unknown session", "suspended", STOP_TRACING, u64(77), "ok"),
    ("stop of nothing", "suspended", STOP_TRACING, b"", ENCODING),
    ("stop with four bytes", "suspended", STOP_TRACING, b"abcd", "ok", "ok", "ok", ENCODING, "ok", "ok"),
    ("CollectTracing of nothing", "suspended", COLLECT, b"", DIES, DIES, DIES, f"{ENCODING} open", DIES, DIES),
    ("CollectTracing", "suspended", COLLECT, u32(1) + u32(1) + u32(1) + X, "ok open"),
    ("CollectTracing2", "suspended", COLLECT_2, session(X), "ok open"),
    ("CollectTracing3", "suspended", COLLECT_3, u32(1) + u32(1) + u8(0) + u8(0) + u32(1) + X,
     UNKNOWN, "ok open", "ok open", "ok open", UNKNOWN, "ok open"),
    ("CollectTracing4", "suspended", COLLECT_4, u32(1) + u32(1) + u64(0) + u8(0) + u32(1) + X,
     UNKNOWN, "ok open", "ok open", "ok open", UNKNOWN, "ok open"),
    ("CollectTracing5", "suspended", COLLECT_5, u32(0) + u32(1) + u32(1) + u64(0) + u8(0) + u32(1) + X + u8(0) + u32(0),
     UNKNOWN, UNKNOWN, "ok open", "ok open", UNKNOWN, "ok open"),
    ("CollectTracing6", "suspended", COLLECT_6,
     u32(0) + u32(1) + u32(1) + u64(0) + u8(0) + u32(1) + X + u8(0) + u32(0) + u32(0),
     UNKNOWN, UNKNOWN, UNKNOWN, "ok open", UNKNOWN, UNKNOWN),
    ("a session without size", "suspended", COLLECT_2, session(X, megabytes=0),
     DIES, DIES, f"{ENCODING} open", f"{ENCODING} open", "-", f"{ENCODING} open"),
    ("a session of another format", "suspended", COLLECT_2, session(X, file_format=7),
     DIES, DIES, f"{ENCODING} open", f"{ENCODING} open", "-", f"{ENCODING} open"),
    ("a session of too many providers", "suspended", COLLECT_2, session(*[X] * 1001),
     DIES, DIES, f"{ENCODING} open", f"{ENCODING} open", "-", f"{ENCODING} open"),
    ("a session of no provider", "suspended", COLLECT_2, session(),
     ENCODING, f"{ENCODING} open", f"{ENCODING} open", f"{ENCODING} open", "-", f"{ENCODING} open"),
    ("a session at level 9", "suspended", COLLECT_2, session(provider("X", 1, 9)),
     ENCODING, f"{ENCODING} open", f"{ENCODING} open", f"{ENCODING} open", "-", f"{ENCODING} open"),
    ("a session that is cut", "suspended", COLLECT_2, u32(1),
     DIES, DIES, f"{ENCODING} open", f"{ENCODING} open", DIES, f"{ENCODING} open"),
    ("an unknown session command", "suspended", 0x0208, b"", UNKNOWN),
    ("an unknown process command", "suspended", 0x0409, b"", UNKNOWN),
    ("an unknown dump command", "suspended", 0x0100, b"", UNKNOWN),
    ("an unknown set", "suspended", 0x0500, b"", UNKNOWN),
    ("the set of replies", "suspended", 0xFF00, b"", UNKNOWN),
]


@contextlib.contextmanager
def suspended(target, *behaviours, cwd=None, arguments=(), **variables):
    with Folder() as folder, Listener(folder / "p") as port:
        variables = {"DOTNET_DiagnosticPorts": port.path, "GONE": "1", **variables}
        with target.start(*behaviours, cwd=cwd, arguments=arguments, **variables) as runtime:
            yield runtime, port


def show_running(runtime, target, port):
    expect("Resume", port.ask(RESUME), "ok")
    runtime.line()
    if not target.is_fake:
        runtime.wait_until(lambda: ".NET SigHandler" in runtime.threads())


def outcome(runtime, connection, command, payload):
    """What a tool sees of one command, in the words of the table."""
    try:
        connection.send(command, payload)
        result = connection.result()
    except (BrokenPipeError, ConnectionResetError):
        result = "eof"
    if result in ("eof", "reset"):
        return f"dies {-runtime.status()}"
    return result


def is_left_open(connection, port):
    """After the next connection has come, an end of the old one would be there."""
    port.accept().close()
    connection.socket.setblocking(False)
    try:
        data = connection.socket.recv(1 << 20)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    return data != b""


def check_command(target, state, command, payload, expected):
    with suspended(target) as (runtime, port):
        if state == "running":
            if command == STARTUP_PROFILER and not aot(target):
                # A Resume that comes before the flag is raised leaves it raised for good.
                startup_profiler(port, "/absent.so")
            show_running(runtime, target, port)
        while True:
            connection = port.accept()
            result = outcome(runtime, connection, command, payload)
            # The main thread is about to raise its flag; who comes at once may be too early.
            if command != STARTUP_PROFILER or state == "running" or result != INVALID:
                break
        if not result.startswith("dies") and command != ENVIRONMENT and is_left_open(connection, port):
            result += " open"
        expect("the result", result, expected)


def command_checks(target, index):
    for name, state, command, payload, *results in COMMANDS:
        expected = results[index] if len(results) > 1 else results[0]
        if expected != "-":
            yield (
                f"{name}, {state}",
                lambda c=(target, state, command, payload, expected): check_command(*c),
            )


# How DOTNET_DiagnosticPorts is read. p, q and r are paths, {long} is one of 108 bytes, {most} one of 107.

GRAMMAR = [
    # value, connections to p and q, suspended
    ("{p}", 1, 0, True),
    ("{p};{q}", 1, 1, True),
    ("{p};{p}", 2, 0, True),
    ("{p},connect,suspend", 1, 0, True),
    ("{p};", 1, 0, True),
    (";;{p}", 1, 0, True),
    (",{p}", 1, 0, True),
    ("{p},bogus", 1, 0, True),
    ("{p},nosuspend", 1, 0, False),
    ("{p},NoSuspend", 1, 0, False),
    ("{p}, nosuspend", 1, 0, True),
    ("{p},suspend,nosuspend", 1, 0, True),
    ("{p},nosuspend,suspend", 1, 0, False),
    ("{p},nosuspend;{q}", 1, 1, True),
    (" {p}", 0, 0, "for ever"),
    ("{p} ", 0, 0, "for ever"),
    ("{p},listen", 0, 0, False),
    ("{p},listen,connect", 0, 0, False),
    ("{p},connect,listen", 1, 0, True),
    ("", 0, 0, False),
    (";", 0, 0, False),
    (",", 0, 0, False),
    ("p", 1, 0, True),
    ("{long}", 0, 0, False),
    ("{p};{long}", 1, 0, True),
]


def check_grammar(target, value, on_p, on_q, pauses, **variables):
    with Folder() as folder, Listener(folder / "p") as p, Listener(folder / "q") as q:
        long = f"{folder}/{'x' * (107 - len(str(folder)))}"
        variables.setdefault(
            "DOTNET_DiagnosticPorts", value.format(p=p.path, q=q.path, long=long)
        )
        variables = {name: text.format(p=p.path) for name, text in variables.items()}
        with target.start("message-after=1", cwd=str(folder), **variables) as runtime:
            if pauses:
                expect_pause(runtime)
            else:
                runtime.line()
            connections = [p.accept() for _ in range(on_p)] + [q.accept() for _ in range(on_q)]
            expect("somebody else on p or q", (p.has_waiting(), q.has_waiting()), (False, False))
            if pauses and pauses != "for ever":
                for connection in connections:
                    expect("Resume", connection.ask(RESUME), "ok")
                runtime.line()


def grammar_checks(target):
    for value, on_p, on_q, pauses in GRAMMAR:
        yield f"port {value!r}", lambda c=(target, value, on_p, on_q, pauses): check_grammar(*c)
    # Switches and prefixes: CoreCLR knows all of these, NativeAOT some.
    coreclr = not target.name.startswith("aot")
    for name, variables, is_on in [
        ("the old prefix", {"DOTNET_DiagnosticPorts": None, "COMPlus_DiagnosticPorts": "{p}"}, coreclr),
        ("the old prefix behind an empty one", {"DOTNET_DiagnosticPorts": "", "COMPlus_DiagnosticPorts": "{p}"}, coreclr),
        ("lower case", {"DOTNET_DiagnosticPorts": None, "dotnet_diagnosticports": "{p}"}, False),
        ("switched off", {"DOTNET_EnableDiagnostics": "0"}, False),
        ("switched off in long", {"DOTNET_EnableDiagnostics": "00000000"}, False),
        ("switched off with the old prefix", {"COMPlus_EnableDiagnostics": "0"}, not coreclr),
        ("IPC switched off", {"DOTNET_EnableDiagnostics_IPC": "0"}, not coreclr),
        ("the switch says false", {"DOTNET_EnableDiagnostics": "false"}, True),
    ]:
        yield name, lambda v=variables, on=is_on: check_grammar_switch(target, v, on)


def check_grammar_switch(target, variables, is_on):
    with Folder() as folder, Listener(folder / "p") as p:
        variables = {"DOTNET_DiagnosticPorts": "{p}", **variables}
        variables = {name: text and text.format(p=p.path) for name, text in variables.items()}
        with target.start("message-after=1", **variables) as runtime:
            if is_on:
                expect("Resume", p.ask(RESUME), "ok")
            runtime.line()
            expect("somebody is there", p.has_waiting() or is_on, is_on)


# What is the same for all, or differs by version only.


def aot(target):
    return target.name.startswith("aot")


THREADS = {
    "8": [".NET SynchManag", ".NET EventPipe"],
    "9": [".NET SynchManag", ".NET EventPipe"],
    "10": [".NET SynchManag", ".NET EventPipe"],
    "11": [".NET EventPipe"],
    "aot8": ["main"],
    "aot10": [".NET EventPipe"],
}
RUNNING = {
    "8": [".NET DebugPipe", ".NET Debugger", ".NET Finalizer", ".NET Tiered Com", ".NET SigHandler"],
    "9": [".NET DebugPipe", ".NET Debugger", ".NET Finalizer", ".NET Tiered Com", ".NET SigHandler"],
    "10": [".NET DebugPipe", ".NET Debugger", ".NET Finalizer", ".NET Tiered Com", ".NET SigHandler"],
    "11": [".NET DebugPipe", ".NET Debugger", ".NET Finalizer", ".NET Tiered JIT", ".NET SigHandler"],
    "aot8": ["main", ".NET SigHandler"],
    "aot10": [".NET Finalizer", ".NET SigHandler"],
}


def thread_names(runtime):
    """Threads that were never named carry the main thread's name."""
    own = pathlib.Path(f"/proc/{runtime.pid}/comm").read_text().rstrip("\n")
    return ["main" if name == own else name for name in runtime.threads()]


def check_threads(target):
    with suspended(target) as (runtime, port):
        connection = port.accept()
        expect("suspended", sorted(thread_names(runtime)), sorted(["main", *THREADS[target.name]]))
        expect("Resume", connection.ask(RESUME), "ok")
        runtime.line()
        everybody = sorted(["main", *THREADS[target.name], *RUNNING[target.name]])
        runtime.wait_until(lambda: sorted(thread_names(runtime)) == everybody)


def check_threads_without_diagnostics(target):
    with target.start(DOTNET_EnableDiagnostics="0") as runtime:
        runtime.line()
        gone = {".NET EventPipe", ".NET DebugPipe", ".NET Debugger"}
        everybody = sorted({"main", *THREADS[target.name], *RUNNING[target.name]} - gone)
        runtime.wait_until(lambda: sorted(set(thread_names(runtime))) == everybody)


def check_connection_life(target):
    """One command for each connection, the same cookie and pid on all, and in ProcessInfo."""
    with suspended(target) as (runtime, port):
        first = port.accept()
        expect("pid", first.pid, runtime.pid)
        info = first.ask_info()
        expect("the end", first.read_rest(), (b"", "eof"))
        second = port.accept()
        expect("the cookie", second.cookie, first.cookie)
        expect("ProcessInfo's cookie", info["cookie"], first.cookie)
        expect("ProcessInfo's pid", info["pid"], runtime.pid)
        expect("bytes left", info["left"], 0)
        second.close()
        third = port.accept()
        expect("the cookie after a close", third.cookie, first.cookie)
        expect("Resume", third.ask(RESUME), "ok")
        runtime.line()
        fourth = port.accept()
        expect("the cookie while running", fourth.cookie, first.cookie)


def check_info(target):
    """While suspended the command line is the program alone; with its arguments later, unquoted, but for NativeAOT."""
    with suspended(target, arguments=("--names", "two words")) as (runtime, port):
        program = os.readlink(f"/proc/{runtime.pid}/exe")
        early = port.accept().ask_info()
        expect("the early command line", early["command_line"], program)
        expect("RID", early["rid"], "linux-x64")
        expect("OS", early["os"], "Linux")
        show_running(runtime, target, port)
        whole = "" if aot(target) else "--names two words"
        runtime.wait_until(lambda: port.accept().ask_info()["command_line"].endswith(whole))
        late = port.accept().ask_info()
        expect("the entry", late["entry"], early["entry"])
        expect("the version", late["version"], early["version"])
        expect("PI2", port.accept().ask_info(INFO_2)["entry"], late["entry"])
        expect("PI1", port.accept().ask_info(INFO)["command_line"], late["command_line"])


def check_long_command_line(target):
    """The reply has 65535 bytes at most: from about 32700 units on it is E_FAIL, but not while suspended."""
    with suspended(target, arguments=("--names", "x" * 32800)) as (runtime, port):
        port.accept().ask_info()
        show_running(runtime, target, port)
        runtime.wait_until(lambda: port.ask(INFO_3) == ("ok" if aot(target) else FAILS))


def check_environment(target):
    """What is there at launch, changed by commands."""
    with suspended(target, EMPTY="", OLD="1", UMLAUT="\u00e9\U0001f600") as (runtime, port):
        before = port.accept().ask_environment()
        raw = pathlib.Path(f"/proc/{runtime.pid}/environ").read_bytes().split(b"\0")[:-1]
        expect("at launch", sorted(before), sorted(entry.decode() for entry in raw))
        expect("set", port.ask(SET_ENV, text("NEW") + text("\U0001f600")), "ok")
        expect("set", port.ask(SET_ENV, text("OLD") + text("")), "ok")
        after = port.accept().ask_environment()
        expect("what came", set(after) - set(before), {"NEW=\U0001f600", "OLD="})
        expect("what went", set(before) - set(after), {"OLD=1"})


def check_environment_order(target):
    """A new variable is the last one; what is unset leaves its place to the last one."""
    with suspended(target) as (_, port):
        before = port.accept().ask_environment()
        port.ask(SET_ENV, text("NEW") + text("1"))
        after = port.accept().ask_environment()
        expect("after a new one", after, [*before, "NEW=1"])
        port.ask(SET_ENV, text(before[0].partition("=")[0]) + text(None))
        expect("after an unset", port.accept().ask_environment(), ["NEW=1", *before[1:]])


def check_name_with_equals(target):
    with suspended(target) as (_, port):
        port.ask(SET_ENV, text("PX=a") + text("b"))
        expect("the last", port.accept().ask_environment()[-1], "PX=a=b")


def check_environment_not_utf8(target):
    """CoreCLR shows U+FFFD for each wrong byte; NativeAOT does not survive the question."""
    bad = os.fsdecode(b"a\xff\xc3(z")
    with suspended(target, BAD=bad) as (runtime, port):
        connection = port.accept()
        if aot(target):
            connection.send(ENVIRONMENT)
            expect("the answer", connection.result(), "eof")
            expect("death", runtime.status(), -signal.SIGSEGV)
        else:
            expect("BAD", "BAD=a\ufffd\ufffd(z" in connection.ask_environment(), True)


def check_two_ports(target):
    """Each suspending port needs a Resume of its own."""
    with Folder() as folder, Listener(folder / "p") as p, Listener(folder / "q") as q:
        ports = f"{p.path};{q.path}"
        with target.start("message-after=1", DOTNET_DiagnosticPorts=ports) as runtime:
            expect("Resume on p", p.ask(RESUME), "ok")
            expect("Resume on p again", p.ask(RESUME), "ok")
            expect("a profiler in between", startup_profiler(p, "/absent.so"), UNSUPPORTED if aot(target) else "ok")
            expect_pause(runtime)
            expect("Resume on q", q.ask(RESUME), "ok")
            runtime.line()


def check_last_port_first(target):
    """Of two ports that are ready at once the one listed last is served first."""
    with Folder() as folder, Listener(folder / "p") as p, Listener(folder / "q") as q:
        with target.start(DOTNET_DiagnosticPorts=f"{p.path};{q.path}") as runtime:
            on_p, on_q = p.accept(), q.accept()
            runtime.stop()
            on_p.send(SET_ENV, text("WHO") + text("p"))
            on_q.send(SET_ENV, text("WHO") + text("q"))
            runtime.go_on()
            expect("both", (on_p.result(), on_q.result()), ("ok", "ok"))
            expect("the last word", [e for e in p.accept().ask_environment() if e.startswith("WHO=")], ["WHO=p"])


def check_terminate_suspended(target):
    with suspended(target) as (runtime, port):
        connection = port.accept()
        runtime.signal(signal.SIGTERM)
        if target.name not in ("8", "9"):
            expect("death", runtime.status(), -signal.SIGTERM)
            return
        expect("Resume", connection.ask(RESUME), "ok")
        runtime.line()
        if not target.is_fake:
            # In about one of fifty starts 8.0.34 heeds even the first one, late.
            process = runtime.process
            runtime.wait_until(lambda: process.poll() is not None or ".NET SigHandler" in runtime.threads())
        with contextlib.suppress(ProcessLookupError):
            runtime.signal(signal.SIGTERM)
        expect("the second one", runtime.status(), 143)


def check_other_signals(target):
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        with suspended(target) as (runtime, port):
            connection = port.accept()
            runtime.signal(number)
            expect(f"death by {number}", runtime.status(), -number)
            expect("the connection", connection.read_rest(), (b"", "eof"))


def check_stopped(target):
    with suspended(target) as (runtime, port):
        connection = port.accept()
        runtime.stop()
        connection.send(RESUME)
        expect("the answer while stopped", connection.is_silent(), True)
        runtime.go_on()
        expect("the answer", connection.result(), "ok")


def check_pause_message(target):
    with suspended(target, "message-after=1") as (runtime, port):
        expect("the message", expect_pause(runtime), [
            f'DOTNET_DiagnosticPorts="{port.path}"\n',
            "DOTNET_DefaultDiagnosticPortSuspend=0\n",
        ])


def check_rude_input(target):
    """Framing errors. What is cut is waited for, and nothing else is done meanwhile."""
    with suspended(target) as (runtime, port):
        connection = port.accept()
        connection.socket.sendall(message(INFO, size=10))
        expect("too small a size", connection.result(), ENCODING)
        connection = port.accept()
        connection.socket.sendall(b"DOTNET_IPC_V9\0" + message(INFO)[14:])
        expect("another magic", connection.result(), "80131386")
        connection = port.accept()
        connection.socket.sendall(message(INFO)[:10])
        connection.socket.shutdown(socket.SHUT_WR)
        expect("half a header", connection.result(), ENCODING)
        connection = port.accept()
        connection.socket.shutdown(socket.SHUT_WR)
        expect("nothing at all", connection.result(), ENCODING)
        connection = port.accept()
        connection.send(INFO)
        connection.socket.shutdown(socket.SHUT_WR)
        expect("a command and a half-close", connection.result(), "ok")
        connection = port.accept()
        for byte in message(INFO):
            connection.socket.sendall(bytes([byte]))
        expect("byte by byte", connection.result(), "ok")
        connection = port.accept()
        connection.socket.sendall(message(INFO) + message(INFO))
        expect("two commands", connection.result(), "ok")
        expect("the end of two commands", connection.read_rest(), (b"", "reset"))
        connection = port.accept()
        connection.socket.sendall(message(INFO, b"abc", size=1000))
        shake_hands(connection)
        expect("what is cut", connection.is_silent(), True)
        connection.close()
        connection = port.accept()
        expect("Resume after it", connection.ask(RESUME), "ok")


def check_payload_that_does_not_belong(target):
    """The reply to a question is then the payload, and 20 bytes of what lies behind it."""
    for command in (INFO, INFO_2, INFO_3, ENVIRONMENT):
        with suspended(target) as (_, port):
            connection = port.accept()
            connection.send(command, b"junk" * 25)
            reply, how = connection.read_rest()
            expect("the beginning and the end", (reply[:100], how), (b"junk" * 25, "eof"))
            if command != ENVIRONMENT:
                expect("the length", len(reply), 120)


def check_hang_up_before_reading(target):
    """A command and a close that come together: the close wins, the command is lost."""
    with suspended(target) as (runtime, port):
        connection = port.accept()
        runtime.stop()
        connection.send(SET_ENV, text("LOST") + text("1"))
        connection.close()
        runtime.go_on()
        names = [entry.partition("=")[0] for entry in port.accept().ask_environment()]
        expect("LOST is there", "LOST" in names, False)


def check_session(target):
    """A session keeps its connection; nothing, or on 11 the head, comes before Resume, and Stop ends it."""
    with suspended(target) as (runtime, port):
        stream = port.accept()
        stream.send(COLLECT_2, session(provider()))
        command_id, number = stream.read_reply()
        expect("the reply", (command_id, len(number)), (0, 8))
        head = b""
        if target.name == "11":
            head = stream.read(102)
        expect("more before Resume", stream.is_silent(), True)
        if not aot(target):
            expect("a profiler that is absent", startup_profiler(port, "/absent.so"), "ok")
        expect("Resume", port.ask(RESUME), "ok")
        runtime.line()
        stopping = port.accept()
        stopping.send(STOP_TRACING, number)
        stream_bytes = head + stream.read_rest()[0]
        expect("the answer to Stop", stopping.read_reply(), (0, number))
        expect("the head", stream_bytes[:8] + stream_bytes[101:102], b"Nettrace\x06")
        expect("the tail", stream_bytes[-1:], b"\x01")
        wanted = f"Loading profiler failed during instantiation.  Profiler CLSID: '{{{CLSID}}}'.  HRESULT: 0x8007007e."
        expect("the message", wanted.encode("utf-16-le") in stream_bytes, not aot(target))
        check_nettrace(stream_bytes)


def check_listener_comes_late(target):
    """A runtime that finds nobody tries again; with the same cookie when a listener goes and another comes."""
    with Folder() as folder:
        with target.start(DOTNET_DiagnosticPorts=str(folder / "p")) as runtime:
            with Listener(folder / "p") as port:
                first = port.accept()
                first.close()
            with Listener(folder / "p") as port:
                second = port.accept()
                expect("the cookie", second.cookie, first.cookie)
                expect("Resume", second.ask(RESUME), "ok")
                runtime.line()


FOR_ALL = [
    check_threads,
    check_threads_without_diagnostics,
    check_connection_life,
    check_info,
    check_long_command_line,
    check_environment,
    check_environment_not_utf8,
    check_two_ports,
    check_last_port_first,
    check_terminate_suspended,
    check_other_signals,
    check_stopped,
    check_pause_message,
    check_rude_input,
    check_payload_that_does_not_belong,
    check_hang_up_before_reading,
    check_session,
    check_listener_comes_late,
]
FOR_CORECLR = [check_environment_order, check_name_with_equals]


def shared_checks(target, index):
    yield from command_checks(target, index)
    yield from grammar_checks(target)
    for check in FOR_ALL + ([] if aot(target) else FOR_CORECLR):
        yield check.__name__.removeprefix("check_").replace("_", " "), lambda c=check: c(target)
