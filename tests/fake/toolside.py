# SPDX-License-Identifier: Apache-2.0
"""The tool's end of a diagnostic port, for tests that look at one runtime closely.

    with Folder() as folder, Listener(folder / "p") as port:
        runtime = Process([FAKE, "--", "app.dll"], DOTNET_DiagnosticPorts=port.path)
        with runtime:
            connection = port.accept()
            print(connection.ask(RESUME))         # "ok"
            print(runtime.report()["commands"])

Everything waits for facts, up to TIME_LIMIT, and never for time to pass.
"""

import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

# Far beyond what a busy machine needs: whoever hits it hangs.
TIME_LIMIT = 30.0

MAGIC = b"DOTNET_IPC_V1\0"
ADVERTISE_MAGIC = b"ADVR_V1\0"
ADVERTISE = struct.Struct("<8s16sQH")
HEADER = struct.Struct("<14sHBBH")

DUMP, DUMP_2, DUMP_3 = 0x0101, 0x0102, 0x0103
STOP_TRACING = 0x0201
COLLECT, COLLECT_2, COLLECT_3, COLLECT_4, COLLECT_5, COLLECT_6 = range(0x0202, 0x0208)
ASK_KIND, ATTACH_PROFILER, STARTUP_PROFILER = 0x0300, 0x0301, 0x0302
INFO, RESUME, ENVIRONMENT, SET_ENV, INFO_2, PERF_MAP, PERF_MAP_OFF, HOOK, INFO_3 = range(0x0400, 0x0409)

RUNTIME_PROVIDER = "Microsoft-Windows-DotNETRuntime"
PROFILER_MESSAGES = 0x20000000000
LOADER = 0x8


def text(value):
    """A string of the protocol; None is the null string."""
    if value is None:
        return struct.pack("<I", 0)
    units = (value + "\0").encode("utf-16-le", "surrogatepass")
    return struct.pack("<I", len(units) // 2) + units


def u8(value):
    return struct.pack("<B", value)


def u32(value):
    return struct.pack("<I", value)


def u64(value):
    return struct.pack("<Q", value)


def message(command, payload=b"", size=None):
    return HEADER.pack(MAGIC, size or HEADER.size + len(payload), command >> 8, command & 0xFF, 0) + payload


def provider(name=RUNTIME_PROVIDER, keywords=PROFILER_MESSAGES, level=4):
    return u64(keywords) + u32(level) + text(name) + text(None)


def session(*providers, rundown=0, megabytes=1, file_format=1):
    """The payload of CollectTracing2."""
    return u32(megabytes) + u32(file_format) + u8(rundown) + u32(len(providers)) + b"".join(providers)


class Closed(Exception):
    """The other end has closed, after these bytes."""

    def __init__(self, data, how):
        super().__init__(how)
        self.data = data
        self.how = how


class Connection:
    """One connection of a runtime. Each carries one command."""

    def __init__(self, sock):
        self.socket = sock
        self.socket.settimeout(TIME_LIMIT)
        self.cookie = None
        self.pid = None

    def close(self):
        self.socket.close()

    def read(self, count):
        data = b""
        while len(data) < count:
            try:
                block = self.socket.recv(count - len(data))
            except ConnectionResetError:
                raise Closed(data, "reset") from None
            if not block:
                raise Closed(data, "eof")
            data += block
        return data

    def read_advertise(self):
        magic, self.cookie, self.pid, _ = ADVERTISE.unpack(self.read(ADVERTISE.size))
        if magic != ADVERTISE_MAGIC:
            raise ValueError(f"the advertise begins with {magic!r}")

    def send(self, command, payload=b""):
        self.socket.sendall(message(command, payload))

    def read_reply(self):
        """(id, payload) of the reply; its set and magic have to be right."""
        magic, size, command_set, command_id, _ = HEADER.unpack(self.read(HEADER.size))
        if magic != MAGIC or command_set != 0xFF:
            raise ValueError(f"a reply of magic {magic!r} and set {command_set:#x}")
        return command_id, self.read(size - HEADER.size)

    def read_rest(self):
        """What comes until the end, and how it ends."""
        try:
            self.read(1 << 30)
        except Closed as closed:
            return closed.data, closed.how

    def is_silent(self):
        """Whether nothing can be read right now, not even an end."""
        return not select.select([self.socket], [], [], 0)[0]

    def result(self):
        """The answer in short: "ok", or eight hexadecimal digits; "eof" or "reset" when there is none."""
        try:
            command_id, payload = self.read_reply()
        except Closed as closed:
            return closed.how
        if command_id == 0:
            return "ok"
        return f"{struct.unpack_from('<I', payload)[0]:08x}"

    def ask(self, command, payload=b""):
        """Sends a command and returns its result; what the runtime does with the socket is not looked at."""
        try:
            self.send(command, payload)
        except (BrokenPipeError, ConnectionResetError):
            return "eof"
        result = self.result()
        self.close()
        return result

    def ask_environment(self):
        """The list of NAME=VALUE that ProcessEnvironment gives; every byte of it is accounted for."""
        self.send(ENVIRONMENT)
        command_id, payload = self.read_reply()
        announced, reserved = struct.unpack("<IH", payload)
        data, how = self.read_rest()
        if command_id != 0 or reserved != 0 or len(data) != announced or how != "eof":
            raise ValueError(f"id {command_id}, announced {announced}, got {len(data)}, then {how}")
        (count,) = struct.unpack_from("<I", data)
        at, strings = 4, []
        for _ in range(count):
            (units,) = struct.unpack_from("<I", data, at)
            strings.append(data[at + 4 : at + 2 + 2 * units].decode("utf-16-le"))
            at += 4 + 2 * units
        if at != len(data):
            raise ValueError(f"the strings end at {at} of {len(data)}")
        return strings

    def ask_info(self, command=INFO_3):
        """The fields of ProcessInfo in a dictionary."""
        self.send(command)
        command_id, payload = self.read_reply()
        if command_id != 0:
            raise ValueError(f"refused: {payload.hex()}")
        names = ["command_line", "os", "architecture"]
        if command != INFO:
            names += ["entry", "version"]
        if command == INFO_3:
            names += ["rid"]
            payload = payload[4:]
        fields = {"pid": struct.unpack_from("<Q", payload)[0], "cookie": payload[8:24]}
        at = 24
        for name in names:
            (units,) = struct.unpack_from("<I", payload, at)
            fields[name] = payload[at + 4 : at + 2 + 2 * units].decode("utf-16-le")
            at += 4 + 2 * units
        fields["left"] = len(payload) - at
        return fields


class Listener:
    """A socket on which runtimes announce themselves."""

    def __init__(self, path, backlog=64):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(self.path)
        self.socket.listen(backlog)
        self.socket.settimeout(TIME_LIMIT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def accept_raw(self):
        return Connection(self.socket.accept()[0])

    def accept(self):
        connection = self.accept_raw()
        connection.read_advertise()
        return connection

    def has_waiting(self):
        """Whether somebody is in the queue right now."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def ask(self, command, payload=b""):
        """Accepts, asks and returns the result."""
        return self.accept().ask(command, payload)


class Folder:
    """A private folder that goes away."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="fake-"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def clean_environment(**extra):
    """The caller's environment without anything that changes a runtime; a value None removes a name."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(("DOTNET_", "COMPLUS_", "CORECLR_", "FAKE_"))
    }
    clean.update(extra)
    return {name: value for name, value in clean.items() if value is not None}


class Process:
    """A runtime that was started; it does not outlive the block."""

    def __init__(self, command, cwd=None, **variables):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_environment(**variables),
            cwd=cwd,
            bufsize=0,
        )
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def line(self):
        """The next line of its standard output; "" at the end."""
        if not select.select([self.process.stdout], [], [], TIME_LIMIT)[0]:
            raise TimeoutError("no line came")
        return self.process.stdout.readline().decode()

    def report(self):
        """The next report line."""
        return json.loads(self.line())

    def signal(self, number):
        os.kill(self.pid, number)

    def end_of_input(self):
        self.process.stdin.close()

    def status(self):
        """Its exit status, negative for the signal it died by, once it has ended."""
        return self.process.wait(TIME_LIMIT)

    def errors(self):
        """What it wrote on standard error, once it has ended."""
        self.process.wait(TIME_LIMIT)
        return self.process.stderr.read().decode()

    def threads(self):
        """The names of its threads, the main thread's as "main"."""
        names = []
        for thread in sorted(os.listdir(f"/proc/{self.pid}/task"), key=int):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                name = pathlib.Path(f"/proc/{self.pid}/task/{thread}/comm").read_text().rstrip("\n")
                names.append("main" if int(thread) == self.pid else name)
        return names

    def state(self):
        """The letter that /proc shows: R, S, T ..."""
        return pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def wait_until(self, condition):
        """Looks again until the condition holds, which the process brings about by itself."""
        limit = time.monotonic() + TIME_LIMIT
        while not condition():
            if time.monotonic() > limit:
                raise TimeoutError("it did not come about")
            time.sleep(0.001)

    def stop(self):
        """SIGSTOP, and the certainty that every thread stands."""
        self.signal(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{self.pid}/task")
        self.wait_until(
            lambda: all(
                (task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks.iterdir()
            )
        )

    def go_on(self):
        self.signal(signal.SIGCONT)
