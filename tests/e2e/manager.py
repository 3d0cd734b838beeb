# SPDX-License-Identifier: Apache-2.0
"""A service manager with a descriptor store: what one daemon gives it, the next one gets. Knows nothing of what it is."""

import array
import contextlib
import itertools
import os
import socket
import stat
import threading

from lines import TIMEOUT


def kept_as(fd):
    """What is kept may be a file, too."""
    return socket.socket(fileno=fd) if stat.S_ISSOCK(os.fstat(fd).st_mode) else os.fdopen(fd, "r+b", buffering=0)


class Manager:
    """Like systemd's with FDPOLL=0: what it keeps stays until it is removed by its name."""

    def __init__(self, folder):
        self.path = str(folder / f"manager.{os.urandom(6).hex()}")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o666)
        #: By their names.
        self.kept = {}
        #: What was asked of it: "keep NAME", "remove NAME".
        self.asked = []
        #: Who waits for the daemon to be ready.
        self.relay = None
        self._changed = threading.Condition()
        self._marks = itertools.count()
        self._thread = None
        self.read()

    def read(self):
        """From now on it reads what it is told."""
        self._last = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while self._last != "the end":
            data, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(16))
            fds = [fd for _, _, content in ancillary for fd in array.array("i", content)]
            with self._changed:
                self._hear(data, fds)
                self._changed.notify_all()

    def _hear(self, data, fds):
        lines = dict(line.split("=", 1) for line in data.decode().split("\n"))
        name = lines.get("FDNAME")
        if "MARK" in lines:
            self._last = lines["MARK"]
        elif "FDSTORE" in lines:
            assert lines["FDPOLL"] == "0" and len(fds) == 1 and name not in self.kept, data
            self.kept[name] = kept_as(fds[0])
            self.asked.append(f"keep {name}")
        elif "FDSTOREREMOVE" in lines:
            self.asked.append(f"remove {name}")
            if name in self.kept:
                self.kept.pop(name).close()
        elif "READY" in lines:
            with contextlib.suppress(OSError):
                self.socket.sendto(data, self.relay)

    def until(self, is_so):
        """Waits until that is so of those that are kept."""
        with self._changed:
            assert self._changed.wait_for(lambda: is_so(self.kept), TIMEOUT), (self.kept, self.asked)

    def _tell_itself(self, mark):
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as one:
            one.sendto(f"MARK={mark}".encode(), self.path)

    def drain(self):
        """Waits until it has heard all that it was told by now."""
        mark = str(next(self._marks))
        self._tell_itself(mark)
        with self._changed:
            assert self._changed.wait_for(lambda: self._last == mark, TIMEOUT)

    def be_deaf(self):
        """It reads nothing any more, and nobody can tell it more."""
        self._tell_itself("the end")
        self._thread.join()
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as other:
            other.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    other.sendto(b"STATUS=talking", self.path)

    def close(self):
        if self._thread.is_alive():
            self._tell_itself("the end")
            self._thread.join()
        self.socket.close()
        for one in self.kept.values():
            one.close()
