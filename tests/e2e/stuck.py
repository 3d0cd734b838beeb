# SPDX-License-Identifier: Apache-2.0
"""A file system that never answers, and runtimes that nobody can look at: whoever tries hangs in the kernel."""

import contextlib
import ctypes
import os
import struct
import sys
import threading

import pytest
from harness import until
from runtimes import Program

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)

MS_NOSUID, MS_NODEV = 2, 4
MNT_FORCE, MNT_DETACH = 1, 2

# include/uapi/linux/fuse.h
LOOKUP, FORGET, GETATTR, OPEN, READ, WRITE, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 16, 26, 36, 42
DIRECT_IO = 1
IN_HEADER, OUT_HEADER = struct.Struct("<IIQQIIII"), struct.Struct("<IiQ")
ENOENT, ENOSYS = 2, 38

ROOT, MEMORY = 1, 2
PAGE = 4096


def _attributes(node):
    mode, size = (0o40755, 0) if node == ROOT else (0o100666, PAGE)
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, PAGE, 0)


class StuckFiles:
    """FUSE by hand: a folder in which it is never said what `stuck` is, and nothing written to `memory` arrives."""

    def __init__(self, path):
        self.path = path
        self.stuck = path / "stuck"
        self.memory = path / "memory"
        self._opened = 0
        self._held = 0
        path.mkdir()
        self._device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._device},rootmode=40755,user_id=0,group_id=0,allow_other"
        if _libc.mount(b"stuck", os.fsencode(path), b"fuse", MS_NOSUID | MS_NODEV, options.encode()) != 0:
            error = ctypes.get_errno()
            os.close(self._device)
            raise OSError(error, os.strerror(error))
        self._reader = threading.Thread(target=self._serve, daemon=True)
        self._reader.start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                self._answer(os.read(self._device, 1 << 20))

    def _answer(self, request):
        _, code, serial, node, _, _, _, _ = IN_HEADER.unpack_from(request)
        name = request[IN_HEADER.size:]
        if code in (FORGET, INTERRUPT, BATCH_FORGET):
            return
        if code == WRITE or (code == LOOKUP and name == b"stuck\0"):
            self._held += 1
            return
        error, content = self._content(code, node, name)
        os.write(self._device, OUT_HEADER.pack(OUT_HEADER.size + len(content), -error, serial) + content)

    def _content(self, code, node, name):
        if code == INIT:
            return 0, struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 0, 0, 65536, 1, 0, 0, 0)
        if code == LOOKUP and name == b"memory\0":
            return 0, struct.pack("<QQQQII", MEMORY, 0, 3600, 3600, 0, 0) + _attributes(MEMORY)
        if code == GETATTR:
            return 0, struct.pack("<QII", 3600, 0, 0) + _attributes(node)
        if code == OPEN:
            self._opened += 1
            return 0, struct.pack("<QII", self._opened, DIRECT_IO if self._opened % 2 == 0 else 0, 0)
        if code == READ:
            return 0, bytes(PAGE)
        return (ENOENT if code == LOOKUP else ENOSYS), b""

    def wait(self, number=1):
        """Waits until so many requests hang."""
        until(lambda: self._held, lambda held: held >= number)

    def end(self):
        """Whoever hangs gets an error, and goes on."""
        if self._device is None:
            return
        # The first ends all requests, whatever it returns, and with them the reader.
        _libc.umount2(os.fsencode(self.path), MNT_FORCE)
        _libc.umount2(os.fsencode(self.path), MNT_DETACH)
        self._reader.join()
        os.close(self._device)
        self._device = None


# Its memory is locked by a thread that waits for the file system: to map a file that is read past the cache, all that
# was written to it has to arrive first. So nobody can read its arguments or its environment. It advertises when it is
# told to, and says what it is told.
RUNTIME = """
import ctypes, mmap, os, socket, struct, sys, threading
port, memory = sys.argv[1:3]
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
cached, direct = os.open(memory, os.O_RDWR), os.open(memory, os.O_RDWR)
page = mmap.mmap(cached, 4096)
page[0] = 1
connection = socket.socket(socket.AF_UNIX)
advertise = b"ADVR_V1\\0" + os.urandom(16) + struct.pack("<QH", os.getpid(), 0)
answer = b"DOTNET_IPC_V1\\0" + struct.pack("<HBBHI", 24, 255, 0, 0, 0)
threading.Thread(target=libc.mmap, args=(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE, direct, 0), daemon=True).start()
os.read(0, 1)
connection.connect(port)
connection.sendall(advertise)
os.write(1, b"told " + connection.recv(20).hex().encode() + b"\\n")
connection.sendall(answer)
os.read(0, 1)
os._exit(0)
"""

RESUME = (b"DOTNET_IPC_V1\0" + bytes([20, 0, 4, 1, 0, 0])).hex()


class Stuck(Program):
    """A runtime whose arguments nobody can read."""

    def __init__(self, port, files, **options):
        super().__init__([sys.executable, "-c", RUNTIME, port, str(files.memory)], {}, cwd="/", **options)
        files.wait()

    def start(self):
        """Until then the daemon knows nothing of it."""
        self.process.stdin.write(b"x")
        self.process.stdin.flush()
        return self

    def is_resumed(self):
        return self.lines.wait("^told (.*)$").group(1) == RESUME


needs_fuse = pytest.mark.skipif(os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK),
                                reason="only root can mount a file system on /dev/fuse, where that is")
