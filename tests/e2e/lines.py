# SPDX-License-Identifier: Apache-2.0
"""Lines that come in through a pipe, and waiting for one of them. Knows nothing of who writes them."""

import fcntl
import os
import re
import select
import threading

#: Room for what is written while the reader does not run: the daemon loses lines rather than wait.
PIPE_SIZE = 1 << 20

#: Only ends a test that would wait for ever; nothing is ever measured by it.
TIMEOUT = 60.0 * float(os.environ.get("DIAGPORT_PATIENCE", "1"))


class Lines:
    """The lines of a pipe, as they come. A thread keeps the pipe empty, so that its writer never has to wait."""

    def __init__(self, stream):
        self.seen = []
        self._stream = stream
        self._rest = b""
        self._ended = False
        self._more = threading.Condition()
        os.set_blocking(stream.fileno(), False)
        fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        ready = select.poll()
        ready.register(self._stream, select.POLLIN)
        while not self._ended:
            ready.poll()
            with self._more:
                self._take()

    def _take(self):
        """Takes what is there, without waiting for more."""
        while not self._ended:
            try:
                data = os.read(self._stream.fileno(), 1 << 16)
            except BlockingIOError:
                break
            *lines, self._rest = (self._rest + data).split(b"\n")
            if not data:
                self._ended = True
                lines = [self._rest] if self._rest else []
            self.seen += [line.decode("utf-8", "replace") for line in lines]
        self._more.notify_all()

    def mark(self):
        """How many lines were written up to now, for waiting for one after them."""
        with self._more:
            self._take()
            return len(self.seen)

    def matches(self, pattern, start=0):
        """The matches in all lines written up to now."""
        wanted = re.compile(pattern)
        self.mark()
        return [match for match in map(wanted.search, self.seen[start:]) if match]

    def count(self, pattern, start=0):
        return len(self.matches(pattern, start))

    def wait(self, pattern, start=0, times=1):
        """The match of the first line, or of the `times`th one, from number `start` on that has the pattern."""
        wanted = re.compile(pattern)
        found, at = [], start
        with self._more:
            while True:
                self._take()
                found += [match for match in map(wanted.search, self.seen[at:]) if match]
                at = len(self.seen)
                if len(found) >= times:
                    return found[times - 1]
                if self._ended or not self._more.wait(TIMEOUT):
                    last = "\n".join(self.seen[-60:])
                    raise AssertionError(f"{len(found)} lines with {pattern!r} came; the last ones:\n{last}")

    def end(self):
        """Waits for the end of the pipe."""
        self._thread.join(TIMEOUT)
        assert self._ended, "the pipe does not end; the last lines:\n" + "\n".join(self.seen[-60:])
        self._stream.close()
