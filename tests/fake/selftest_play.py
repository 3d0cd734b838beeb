# SPDX-License-Identifier: Apache-2.0
"""The part of selftest.py about how the fake plays a runtime: its report, its end, its ports, what it loads."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess

from selftest_common import *  # noqa: F403
from toolside import *  # noqa: F403


def connect(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(str(path))
    return Connection(sock)


def make(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return str(path)


def is_mapped(runtime, path):
    return path in pathlib.Path(f"/proc/{runtime.pid}/maps").read_text()


def names(report):
    return [command["name"] for command in report["commands"]]


# The report.


def test_report():
    with fake(arguments=("app.dll", "two words"), GONE="1") as (runtime, port):
        first = port.accept()
        first.ask(SET_ENV, text("A") + text("B"))
        port.ask(SET_ENV, text("GONE") + text(None))
        startup_profiler(port, "/absent.so")
        port.ask(HOOK, text(""))
        port.ask(RESUME)
        report = runtime.report()
        expect("pid", report["pid"], runtime.pid)
        expect("arguments", report["arguments"], ["app.dll", "two words"])
        expect("kind and version", (report["kind"], report["version"]), ("coreclr", "8.0.34"))
        commands = [command for command in report["commands"] if command["result"] != "0x80070057"]
        expect("names", [command["name"] for command in commands],
               ["SetEnvironmentVariable"] * 2 + ["StartupProfiler", "ApplyStartupHook", "ResumeRuntime"])
        expect("arguments of the first", commands[0]["arguments"], {"name": "A", "value": "B"})
        expect("arguments of the second", commands[1]["arguments"], {"name": "GONE", "value": None})
        expect("arguments of the profiler", commands[2]["arguments"], {"clsid": CLSID, "path": "/absent.so"})
        expect("connections", [command["connection"] for command in report["commands"]],
               list(range(1, len(report["commands"]) + 1)))
        expect("environment", report["environment"], {"A": "B", "GONE": None})
        expect("profilers", report["profilers"],
               [{"clsid": CLSID, "path": "/absent.so", "from": "command", "hresult": "0x8007007e"}])
        expect("resumes", [p["resumes"] for p in report["ports"]], [1])
        expect("path", report["ports"][0]["path"], port.path)
        expect("time", report["ms_to_resume"] >= 0, True)
        expect("twice and late", (report["twice"], report["after_resume"]), ([], []))
        port.ask(SET_ENV, text("LATE") + text("1"))
        port.accept()
        runtime.end_of_input()
        report = runtime.report()
        expect("event and reason", (report["event"], report["reason"]), ("end", "stdin"))
        expect("names at the end", names(report), ["SetEnvironmentVariable"])
        expect("late", report["after_resume"], ["SetEnvironmentVariable"])
        expect("environment at the end", report["environment"], {"A": "B", "GONE": None, "LATE": "1"})
        expect("status", runtime.status(), 0)


def test_report_twice():
    with fake("--hooks", "unchecked") as (runtime, port):
        for _ in range(2):
            port.ask(SET_ENV, text("A") + text("B"))
            port.ask(HOOK, text("/h.dll"))
        port.ask(SET_ENV, text("A") + text("C"))
        port.ask(RESUME)
        expect("twice", runtime.report()["twice"], ["A=B", "/h.dll", "/h.dll"])


def test_report_file():
    with Folder() as folder, Listener(folder / "p") as port:
        reports = folder / "reports"
        runtimes = []
        with contextlib.ExitStack() as stack:
            for number in range(5):
                command = [FAKE, "--report", str(reports), "--", str(number)]
                runtimes.append(stack.enter_context(Process(command, DOTNET_DiagnosticPorts=port.path)))
            # Who is resumed comes again, until it has ended.
            cookies = set()
            while len(cookies) < len(runtimes):
                with contextlib.suppress(Closed):
                    connection = port.accept()
                    cookies.add(connection.cookie)
                    connection.ask(RESUME)
            for runtime in runtimes:
                expect("status", runtime.status(), 0)
                expect("output", runtime.line(), "")
        lines = [json.loads(line) for line in reports.read_text().splitlines()]
        expect("lines", sorted(line["arguments"][0] for line in lines), list("01234"))


def test_report_not_utf8():
    with fake(arguments=(os.fsdecode(b"a\xff"),)) as (runtime, port):
        port.ask(SET_ENV, text("A") + u32(2) + b"\x00\xd8\x00\x00")
        port.ask(RESUME)
        report = runtime.report()
        expect("argument", os.fsencode(report["arguments"][0]), b"a\xff")
        expect("half a pair", os.fsencode(report["environment"]["A"]), b"\xed\xa0\x80")


def test_exit():
    with fake("--exit-status", "7", run_for="exit") as (runtime, port):
        port.ask(RESUME)
        expect("status", runtime.status(), 7)
        expect("lines", [json.loads(runtime.line())["event"], runtime.line()], ["start", ""])


def test_no_port():
    with Process([FAKE, "--", "x"]) as runtime:
        expect("connections", runtime.report()["connections"], 0)
        expect("status", runtime.status(), 0)


# How it ends.


def test_terminate():
    for version, status in (("9", 143), ("10", -15), ("11", -15)):
        with fake("--version", version, run_for="signal") as (runtime, port):
            port.ask(RESUME)
            runtime.report()
            runtime.signal(signal.SIGTERM)
            expect("reason", runtime.report()["reason"], "signal")
            expect("status", runtime.status(), status)


def test_terminate_while_suspended_is_forgotten():
    with fake("--version", "9") as (runtime, port):
        connection = port.accept()
        runtime.signal(signal.SIGTERM)
        connection.ask(RESUME)
        runtime.report()
        expect("it lives", port.ask(INFO), "ok")
        port.accept()
        runtime.end_of_input()
        expect("reason and status", (runtime.report()["reason"], runtime.status()), ("stdin", 0))


def test_default_port_file():
    for version, remains in (("9", False), ("10", True)):
        with Folder() as folder:
            path = folder / "default"
            command = [FAKE, "--version", version, "--run-for", "signal", "--default-port", str(path)]
            with Process(command) as runtime:
                runtime.report()
                expect("mode", path.stat().st_mode & 0o777, 0o600)
                runtime.signal(signal.SIGTERM)
                runtime.status()
                expect("the file is there", path.exists(), remains)


# Ports.


def test_default_port():
    with Folder() as folder:
        command = [FAKE, "--run-for", "stdin", "--default-port", str(folder / "d")]
        with Process(command) as runtime:
            runtime.report()
            expect("info", connect(folder / "d").ask_info()["pid"], runtime.pid)
            expect("Resume", connect(folder / "d").ask(RESUME), "ok")


def test_default_port_auto():
    with Folder() as folder:
        command = [FAKE, "--run-for", "stdin", "--default-port", "auto"]
        with Process(command, TMPDIR=str(folder)) as runtime:
            runtime.report()
            (path,) = folder.iterdir()
            ticks = pathlib.Path(f"/proc/{runtime.pid}/stat").read_text().rpartition(")")[2].split()[19]
            expect("name", path.name, f"dotnet-diagnostic-{runtime.pid}-{ticks}-socket")


def test_default_port_suspends():
    """A Resume on the connecting port does not help, one on the default port does."""
    with Folder() as folder, Listener(folder / "p") as port:
        command = [FAKE, "--run-for", "stdin", "--message-after", "1", "--default-port", str(folder / "d")]
        variables = {"DOTNET_DiagnosticPorts": f"{port.path},nosuspend", "DOTNET_DefaultDiagnosticPortSuspend": "1"}
        with Process(command, **variables) as runtime:
            expect("Resume on p", port.ask(RESUME), "ok")
            expect("the message", expect_pause(runtime)[1], "DOTNET_DefaultDiagnosticPortSuspend=1\n")
            expect("Resume on the default port", connect(folder / "d").ask(RESUME), "ok")
            runtime.report()


def test_half_message_blocks_all():
    """Another tool's half message on the default port: nothing happens on any port until it closes."""
    with Folder() as folder, Listener(folder / "p") as port:
        command = [FAKE, "--run-for", "stdin", "--default-port", str(folder / "d")]
        with Process(command, DOTNET_DiagnosticPorts=port.path) as runtime:
            connection = port.accept()
            rude = connect(folder / "d")
            rude.socket.sendall(message(INFO)[:10])
            shake_hands(rude)
            connection.send(RESUME)
            expect("an answer", connection.is_silent(), True)
            rude.close()
            expect("Resume", connection.result(), "ok")
            report = runtime.report()
            expect("commands", [(c["name"], c["result"]) for c in report["commands"]],
                   [("unknown", "0x80131384"), ("ResumeRuntime", "0x00000000")])


def test_full_queue_blocks_all():
    """Somebody else's full socket in the list: the connect blocks, and so does the port that is well."""
    with Folder() as folder, Listener(folder / "p") as port, Listener(folder / "full", backlog=0) as full:
        filler = connect(full.path)
        ports = f"{full.path};{port.path}"
        with Process([FAKE, "--run-for", "stdin"], DOTNET_DiagnosticPorts=ports) as runtime:
            connection = port.accept()
            connection.send(RESUME)
            expect("an answer", connection.is_silent(), True)
            full.accept_raw()
            expect("Resume on p", connection.result(), "ok")
            expect("Resume on the other", full.ask(RESUME), "ok")
            runtime.report()
        filler.close()


def test_too_long_waits():
    """8.0.0 waits for ever for a path that does not fit; a Resume elsewhere does not help."""
    with Folder() as folder, Listener(folder / "p") as port:
        long = f"{folder}/{'x' * 108}"
        command = [FAKE, "--version", "8.0.0", "--message-after", "1"]
        with Process(command, DOTNET_DiagnosticPorts=f"{port.path};{long}") as runtime:
            expect("Resume", port.ask(RESUME), "ok")
            expect_pause(runtime)
            expect("entry of the version", port.accept().ask_info()["version"], "8.0.0")


BACK_OFF = [10, 12, 15, 18, 22, 27, 33, 41, 51, 63, 78, 97, 121, 151, 188, 235, 293, 366, 457, 571, 500, 500]


def test_back_off():
    with Folder() as folder:
        ports = f"{folder / 'p'},nosuspend"
        with Process([FAKE, "--run-for", "stdin", "--start-delay", "200"], DOTNET_DiagnosticPorts=ports) as runtime:
            waits = runtime.report()["waits_ms"]
            expect("waits", waits, BACK_OFF[: len(waits)])
            expect("some", len(waits) >= 3, True)
    # The whole table is in the unit test.


def test_command_before_the_pause():
    """The race of StartupProfiler, and the Resume that comes too early: the flag then stays up for ever."""
    with fake("--profiler-race", "100") as (runtime, port):
        expect("too early", port.ask(STARTUP_PROFILER, GUID + text("/a.so")), INVALID)
        expect("in the end", startup_profiler(port, "/a.so"), "ok")
    with fake("--profiler-race", "100") as (runtime, port):
        expect("Resume", port.ask(RESUME), "ok")
        runtime.report()
        expect("a profiler for a running one", port.ask(STARTUP_PROFILER, GUID + text("/a.so")), "ok")


def test_nosuspend_profiler():
    """On a port that does not suspend it is OK at any time, and before the engine starts it even loads."""
    with Folder() as folder, Listener(folder / "p") as port:
        command = [FAKE, "--run-for", "stdin", "--start-delay", "300", "--profilers", "unchecked"]
        with Process(command, DOTNET_DiagnosticPorts=f"{port.path},nosuspend") as runtime:
            expect("early", startup_profiler(port, "/early.so"), "ok")
            loaded = [profiler["path"] for profiler in runtime.report()["profilers"]]
            expect("loaded", loaded, ["/early.so"])
            expect("late", port.ask(STARTUP_PROFILER, GUID + text("/late.so")), "ok")
            runtime.end_of_input()
            loaded = [profiler["path"] for profiler in runtime.report()["profilers"]]
            expect("loaded in the end", loaded, ["/early.so"])


# Profilers and hooks.


def test_profiler_files():
    for content, hresult, mapped in [
        (b"fake-profiler: main", "0x00000000", True),
        (b"fake-profiler: notify", "0x00000000", True),
        (b"fake-profiler: fails", "0x80004005", False),
        (b"fake-profiler: no-export", "0x8007007f", False),
        (b"fake-profiler: wrong-class", "0x80040111", False),
        (pathlib.Path(FAKE).read_bytes()[:4096], "0x00000000", True),
        (b"\x7fELF\x01\x01", "0x8007007e", False),
        (b"hello", "0x8007007e", False),
    ]:
        with fake() as (runtime, port):
            path = make(runtime.folder, "profiler.so", content)
            startup_profiler(port, path)
            report = resumed(runtime, port)
            expect(f"{content[:30]}", [p["hresult"] for p in report["profilers"]], [hresult])
            expect(f"{content[:30]} is mapped", is_mapped(runtime, path), mapped)
    for path, hresult in [("", "0x80004005"), (None, "0x80004005"), ("bare.so", "0x8007007e")]:
        with fake() as (runtime, port):
            startup_profiler(port, path)
            expect(f"{path}", resumed(runtime, port)["profilers"][0]["hresult"], hresult)


def test_profiler_order():
    """From .NET 8 on the last sent is loaded first; of two main ones the second is refused, but stays mapped."""
    for version, order in (("6", ["a", "b"]), ("8", ["b", "a"]), ("11", ["b", "a"])):
        with fake("--version", version) as (runtime, port):
            paths = {name: make(runtime.folder, name, b"fake-profiler: main") for name in "ab"}
            for name in "ab":
                startup_profiler(port, paths[name])
            loaded = resumed(runtime, port)["profilers"]
            expect("order", [pathlib.Path(p["path"]).name for p in loaded], order)
            expect("results", [p["hresult"] for p in loaded], ["0x00000000", "0x8013136a"])
            expect("mapped", [is_mapped(runtime, path) for path in paths.values()], [True, True])


def test_profiler_of_the_environment():
    for version, launched, sent, loads in [
        ("8", True, None, True),
        ("8", False, None, True),
        ("11", False, None, False),
        ("11", True, None, True),
        ("8", True, "0", False),
    ]:
        with fake("--version", version, "--profilers", "unchecked", **configured(launched)) as (runtime, port):
            if not launched:
                for name, value in configured(True).items():
                    port.ask(SET_ENV, text(name) + text(value))
            if sent:
                port.ask(SET_ENV, text("CORECLR_ENABLE_PROFILING") + text(sent))
            startup_profiler(port, "/ipc.so")
            loaded = [p["from"] for p in resumed(runtime, port)["profilers"]]
            expect(f"{version} {launched} {sent}", loaded, ["environment", "command"] if loads else ["command"])


def configured(launched):
    if not launched:
        return {}
    return {
        "CORECLR_ENABLE_PROFILING": "1",
        "CORECLR_PROFILER": "{" + CLSID + "}",
        "CORECLR_PROFILER_PATH": "/env.so",
    }


def test_profilers_switched_off():
    with fake("--profilers", "unchecked", DOTNET_EnableDiagnostics_Profiler="0") as (runtime, port):
        expect("the answer", startup_profiler(port, "/a.so"), "ok")
        expect("loaded", resumed(runtime, port)["profilers"], [])
        attach = u32(1000) + GUID + text("/a.so") + u32(0)
        expect("attach", port.ask(ATTACH_PROFILER, attach), "ok")
        expect("attach again", port.ask(ATTACH_PROFILER, attach), "8013136a")


def test_profilers_prevented():
    name = "DOTNET_ProfAPI_ProfilerCompatibilitySetting"
    with fake("--profilers", "unchecked", **{name: "PreventLoad"}) as (runtime, port):
        startup_profiler(port, "/a.so")
        port.ask(RESUME)
        expect("status", runtime.status(), -signal.SIGSEGV)
    with fake("--profilers", "unchecked", **{name: "PreventLoad"}) as (runtime, port):
        startup_profiler(port, "/a.so")
        port.ask(SET_ENV, text(name) + text(None))
        expect("loaded", len(resumed(runtime, port)["profilers"]), 1)


def test_profiler_deaths():
    for word, status in (("aborts", -signal.SIGABRT), ("undefined", 127)):
        with fake() as (runtime, port):
            startup_profiler(port, make(runtime.folder, "p.so", f"fake-profiler: {word}".encode()))
            port.ask(RESUME)
            expect(word, runtime.status(), status)


def test_attach_while_starting():
    attach = u32(1000) + GUID + text("/a.so") + u32(0)
    with fake("--profilers", "unchecked", "--start-delay", "100") as (runtime, port):
        port.ask(RESUME)
        expect("at once", port.ask(ATTACH_PROFILER, attach), NOT_YET)
        runtime.report()
        expect("then", port.ask(ATTACH_PROFILER, attach), "ok")


def test_hook_order():
    """Last sent first, one text in its own order, those of the launch last."""
    with fake(DOTNET_STARTUP_HOOKS="/tmp/absent") as (runtime, port):
        port.ask(RESUME)
        expect("status", runtime.status(), -signal.SIGABRT)
    with fake("--hooks", "unchecked", DOTNET_STARTUP_HOOKS="/e:/f") as (runtime, port):
        port.ask(HOOK, text("/a"))
        port.ask(HOOK, text("/b:/c"))
        port.ask(HOOK, text(""))
        expect("order", resumed(runtime, port)["hooks"], ["/b", "/c", "/a", "/e", "/f"])
        expect("one more", port.ask(HOOK, text("/b")), "ok")
        port.accept()
        runtime.end_of_input()
        expect("order", runtime.report()["hooks"], ["/b", "/c", "/a", "/e", "/f", "/b"])


def test_hook_files():
    for content, running_8, text_of_death in [
        (b"MZ", "ok", None),
        (b"fake-hook: ok", "ok", None),
        (b"fake-hook: throws", "80131604", "TargetInvocationException"),
        (b"fake-hook: no-type", "80131522", "StartupHook"),
        (b"fake-hook: no-initialize", "80131513", "Initialize"),
        (b"hello", INVALID, "failed to load. See inner exception for details."),
    ]:
        with fake() as (runtime, port):
            path = make(runtime.folder, "h.dll", content)
            expect("queued", port.ask(HOOK, text(path)), "ok")
            port.ask(RESUME)
            if text_of_death:
                expect(f"{content}: status", runtime.status(), -signal.SIGABRT)
                errors = runtime.errors()
                expect(f"{content}: text", (errors.startswith("Unhandled exception. System."), text_of_death in errors),
                       (True, True))
            else:
                expect("ran", runtime.report()["hooks"], [path])
                expect("mapped", is_mapped(runtime, path), True)
        for version in ("8", "9"):
            with fake("--version", version) as (runtime, port):
                path = make(runtime.folder, "h.dll", content)
                resumed(runtime, port)
                result = port.ask(HOOK, text(path))
                if version == "8" or running_8 == "ok":
                    expect(f"{content} while running", result, running_8)
                else:
                    expect(f"{content} kills 9", (result, runtime.status()), ("eof", -signal.SIGABRT))


def test_hooks_switched_off():
    with fake("--hooks", "off") as (runtime, port):
        expect("queued", port.ask(HOOK, text("/absent.dll")), "ok")
        expect("ran", resumed(runtime, port)["hooks"], [])
        expect("while running", port.ask(HOOK, text("/absent.dll")), "ok")


def test_receipt():
    """Profiler and hook in one stream, as a tool would ask for it."""
    for version in ("8", "11"):
        with fake("--version", version) as (runtime, port):
            hook = make(runtime.folder, "h.dll", b"MZ")
            profiler = make(runtime.folder, "p.so", b"fake-profiler: main")
            stream = port.accept()
            stream.send(COLLECT_2, session(provider(keywords=PROFILER_MESSAGES | LOADER)))
            _, number = stream.read_reply()
            startup_profiler(port, profiler)
            port.ask(HOOK, text(hook))
            resumed(runtime, port)
            port.ask(STOP_TRACING, number)
            data = stream.read_rest()[0]
            check_nettrace(data)
            for wanted in (hook, "The profiler was loaded successfully.", CLSID):
                expect(f"{wanted} is told", wanted.encode("utf-16-le") in data, True)


def test_rundown_has_to_be_read():
    """Stop waits until the stream is drained."""
    with fake("--rundown-bytes", "3000000") as (runtime, port):
        stream = port.accept()
        stream.send(COLLECT_2, session(provider(), rundown=1))
        _, number = stream.read_reply()
        resumed(runtime, port)
        stopping = port.accept()
        stopping.send(STOP_TRACING, number)
        shake_hands(stopping)
        expect("an answer", stopping.is_silent(), True)
        expect("bytes", len(stream.read_rest()[0]) > 3000000, True)
        expect("then", stopping.result(), "ok")


def test_end_of_program_ends_the_stream():
    with fake() as (runtime, port):
        stream = port.accept()
        stream.send(COLLECT_2, session(provider()))
        stream.read_reply()
        resumed(runtime, port)
        runtime.end_of_input()
        check_nettrace(stream.read_rest()[0])


# Versions.


def test_old_versions():
    with fake("--version", "5") as (_, port):
        expect("ProcessInfo3", port.ask(INFO_3), UNKNOWN)
        expect("ProcessInfo2", port.ask(INFO_2), UNKNOWN)
        expect("ProcessInfo", port.ask(INFO), "ok")
        expect("SetEnvironmentVariable", port.ask(SET_ENV, text("A") + text("B")), UNKNOWN)
        expect("StartupProfiler", port.ask(STARTUP_PROFILER, GUID + text("/a.so")), NOT_YET)
    with fake("--version", "6", "--entry", "App") as (runtime, port):
        expect("ProcessInfo3", port.ask(INFO_3), UNKNOWN)
        expect("entry", port.accept().ask_info(INFO_2)["entry"], "")
        resumed(runtime, port)
        expect("entry", port.accept().ask_info(INFO_2)["entry"], "App")
        expect("hook", port.ask(HOOK, text("/a.dll")), UNKNOWN)


def test_mono():
    with fake("--kind", "mono", GONE="1") as (runtime, port):
        expect("kind", port.ask(ASK_KIND), "80131515")
        expect("unset", port.ask(SET_ENV, text("GONE") + text(None)), FAILS)
        expect("set", port.ask(SET_ENV, text("A") + text("B")), "ok")
        expect("environment", resumed(runtime, port)["environment"], {"A": "B"})


def test_identity():
    cookie = "123e4567-e89b-12d3-a456-426614174000"
    wire = bytes.fromhex("67453e129be8d312a456426614174000")
    with fake("--cookie", cookie, "--claim-pid", "1", "--rid", "linux-musl-arm64", "--version", "11.0.0-rc.1") as (_, port):
        connection = port.accept()
        expect("advertise", (connection.cookie, connection.pid), (wire, 1))
        info = connection.ask_info()
        expect("ProcessInfo", (info["cookie"], info["pid"], info["rid"], info["version"]),
               (wire, 1, "linux-musl-arm64", "11.0.0-rc.1"))


def test_new_cookies():
    with fake("--new-cookie-per-connection", "3") as (_, port):
        cookies = []
        for _ in range(6):
            connection = port.accept()
            cookies.append(connection.cookie)
            connection.ask(INFO)
        expect("different", len(set(cookies)), 3)
        expect("in turn", cookies[:3], cookies[3:])


# Answers.


def test_huge_environment():
    with fake("--env-bytes", "3000000") as (_, port):
        strings = port.accept().ask_environment()
        expect("bytes", 4 + sum(4 + 2 * len(string) + 2 for string in strings), 3000000)
        # A tool that does not read it holds the server up; when it closes all is well.
        connection = port.accept()
        connection.send(ENVIRONMENT)
        connection.read_reply()
        connection.close()
        expect("the next one", port.ask(INFO), "ok")


def test_info_payload():
    for size in (65515, 65514, 30001):
        with fake("--info-payload", str(size)) as (_, port):
            connection = port.accept()
            connection.send(INFO_3)
            expect("size", len(connection.read_reply()[1]), size)
    with fake("--info-payload", "65516") as (_, port):
        expect("too much", port.ask(INFO_3), FAILS)


# The process.


def test_pictures():
    with fake("--picture", "running") as (runtime, port):
        port.accept()
        expect("finalizer", ".NET Finalizer" in runtime.threads(), True)
    with fake("--picture", "suspended") as (runtime, port):
        resumed(runtime, port)
        expect("finalizer", ".NET Finalizer" in runtime.threads(), False)
    with fake("--picture", "bare") as (runtime, port):
        port.accept()
        expect("names", [name for name in runtime.threads() if name.startswith(".NET")], [])


def test_memfd():
    for version, is_there in (("9", False), ("10", True), ("11", True)):
        with fake("--version", version) as (runtime, port):
            port.accept()
            expect(version, is_mapped(runtime, "dotnet_ipc_created"), is_there)


def test_children():
    """A managed child sees the variables that were set, a native one those of the launch."""
    for child, seen in (("managed", False), ("native", True)):
        with fake("--child", child, "--version", "9") as (runtime, port):
            port.ask(SET_ENV, text("DOTNET_DiagnosticPorts") + text(None))
            port.ask(RESUME)
            reports = [runtime.report()]
            if seen:
                while True:
                    connection = port.accept()
                    if connection.pid != runtime.pid:
                        break
                connection.ask(RESUME)
            reports.append(runtime.report())
            expect("ports of the child", len(reports[1]["ports"]), 1 if seen else 0)
            expect("versions", [report["version"] for report in reports], ["9.0.23"] * 2)


def test_command_line_stays():
    """What /proc shows are the arguments as they were given, cut up nowhere."""
    with fake("--behave", "entry=a,version=9", "--rid=x", arguments=("app.dll",)) as (runtime, port):
        port.accept()
        shown = pathlib.Path(f"/proc/{runtime.pid}/cmdline").read_bytes()
        options = ["--behave", "entry=a,version=9", "--rid=x", "--run-for", "stdin", "--", "app.dll"]
        expect("cmdline", shown, b"\0".join(text.encode() for text in [FAKE, *options, ""]))


def test_behaviours_of_the_environment():
    with fake(FAKE_BEHAVE="version=9,entry=a\\,b,kind=coreclr") as (_, port):
        info = port.accept().ask_info()
        expect("seen", (info["version"], info["entry"]), ("9.0.23", "a,b"))


def test_usage():
    for options in [["--nonsense"], ["--version", "4"], ["--kind", "java"], ["--delay", "resume"], ["--refuse", "x:1"],
                    ["--behave", "delay=resume:x"], ["--silent", "any@0"], ["--cookie", "x"], ["--report"]]:
        done = subprocess.run([FAKE, *options], capture_output=True, check=False)
        expect(f"{options}", (done.returncode, done.stderr != b""), (2, True))
    done = subprocess.run([FAKE, "--help"], capture_output=True, check=False)
    expect("--help", (done.returncode, b"queue-next" in done.stdout), (0, True))
