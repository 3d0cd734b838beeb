# SPDX-License-Identifier: Apache-2.0
"""What the parts of selftest.py share."""

import contextlib
import fcntl
import os
import struct
import termios
import time
import uuid

from toolside import RESUME, STARTUP_PROFILER, TIME_LIMIT, Folder, Listener, Process, text, u32

FAKE = os.path.abspath(os.environ.get("FAKE_RUNTIME", "tests/fake/fake-runtime"))
CLSID = "cf0d821e-299b-5307-a3d8-b283c03916dd"
GUID = uuid.UUID(CLSID).bytes_le

UNKNOWN, ENCODING, UNSUPPORTED = "80131385", "80131384", "80131515"
INVALID, NOT_YET, FAILS, NOT_SET = "80070057", "8013135b", "80004005", "800700cb"


class Failure(Exception):
    """Something is not as it has to be."""


def expect(what, actual, expected):
    if actual != expected:
        raise Failure(f"{what}: {actual!r} instead of {expected!r}")


def expect_pause(runtime):
    line = runtime.line()
    if not line.startswith("The runtime has been configured to pause during startup and is awaiting a Diagnostics IPC "):
        raise Failure(f"not paused, but {line!r}")
    return [runtime.line(), runtime.line()]


def startup_profiler(port, path, clsid=GUID):
    """Repeats while the runtime, just about to pause, still claims not to pause."""
    while True:
        result = port.ask(STARTUP_PROFILER, clsid + text(path))
        if result != INVALID:
            return result


def shake_hands(connection):
    """Waits until the other end has read everything that was sent."""
    limit = time.monotonic() + TIME_LIMIT
    while struct.unpack("i", fcntl.ioctl(connection.socket, termios.TIOCOUTQ, b"\0" * 4))[0] > 0:
        if time.monotonic() > limit:
            raise Failure("it does not read")
        time.sleep(0.001)


def check_nettrace(data):
    """Walks the objects of a stream: each block has to end where its size says."""
    expect("the serializer", data[8:32], u32(20) + b"!FastSerialization.1")
    at, names = 32, []
    while data[at] == 5:
        length = struct.unpack_from("<I", data, at + 11)[0]
        name = data[at + 15 : at + 15 + length].decode()
        names.append(name)
        at += 16 + length
        if name == "Trace":
            at += 48
        else:
            size = struct.unpack_from("<I", data, at)[0]
            at = (at + 4 + 3) // 4 * 4 + size
        expect(f"the end of {name}", data[at], 6)
        at += 1
    expect("the end of the stream", (data[at], at), (1, len(data) - 1))
    expect("the first and the last object", (names[0], names[-1]), ("Trace", "SPBlock"))


@contextlib.contextmanager
def fake(*options, run_for="stdin", arguments=(), **variables):
    """A fake on one suspending port."""
    with Folder() as folder, Listener(folder / "p") as port:
        variables.setdefault("DOTNET_DiagnosticPorts", port.path)
        command = [FAKE, *options, "--run-for", run_for, "--", *arguments]
        with Process(command, **variables) as runtime:
            runtime.folder = folder
            yield runtime, port


def resumed(runtime, port):
    port.ask(RESUME)
    return runtime.report()
