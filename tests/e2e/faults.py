# SPDX-License-Identifier: Apache-2.0
"""The test's end of tests/faults/faults.c: which of a daemon's system calls fail, and what its clocks show."""

import mmap
import os
import struct

from harness import BUILD

LIBRARY = BUILD / "tests/faults/faults.so"

SLOTS = 192
NAME_SIZE = 24
SLOT = struct.Struct(f"<{NAME_SIZE}sQQQQII")
CLOCKS = struct.Struct("<qq")
#: In the place of an errno.
HANGS, SPINS = 0xFFFFFFFF, 0xFFFFFFFE
COUNT, HITS = NAME_SIZE, NAME_SIZE + 24

#: With the daemon's own sanitizer it is not the first library, and cannot be.
ENVIRONMENT = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


class Faults:
    """What happens to one daemon, and what it has called."""

    def __init__(self, folder):
        path = folder.file("faults", "")
        with open(path, "r+b") as file:
            file.truncate((SLOTS + 1) * SLOT.size)
            self.memory = mmap.mmap(file.fileno(), 0)
        self.environment = {**ENVIRONMENT, "DIAGPORT_FAULTS": path, "LD_PRELOAD": str(LIBRARY)}

    def _slots(self):
        for at in range(SLOT.size, len(self.memory), SLOT.size):
            name = self.memory[at : at + NAME_SIZE].rstrip(b"\0").decode()
            yield at, name

    def _slot(self, wanted):
        for at, name in self._slots():
            if name in ("", wanted):
                self.memory[at : at + len(wanted)] = wanted.encode()
                return at
        raise KeyError(wanted)

    def _number(self, at):
        return int.from_bytes(self.memory[at : at + 8], "little")

    def counts(self):
        """{name: how often it was called}."""
        return {name: self._number(at + COUNT) for at, name in self._slots() if name and self._number(at + COUNT)}

    def count(self, name):
        return self._number(self._slot(name) + COUNT)

    def hits(self, name):
        """How many calls of it were made to fail."""
        return self._number(self._slot(name) + HITS)

    def fail(self, name, error, first=0, times=1):
        """Makes the calls of it from number `first` on fail with an errno."""
        self._strike(name, first, times, error, 0)

    def shorten(self, name, length, first=0, times=1):
        """Lets them read or write only so many bytes."""
        self._strike(name, first, times, 0, length)

    def slow(self, name, milliseconds, first=0, times=1):
        """Lets those that move no bytes take so much longer."""
        self._strike(name, first, times, 0, milliseconds)

    def hang_next(self, name):
        """Lets the next call of it never return."""
        self.fail_next(name, HANGS)

    def spin_next(self, name):
        """The same, and it never stops either."""
        self.fail_next(name, SPINS)

    def _strike(self, name, first, times, error, length):
        at = self._slot(name)
        # The end last: the daemon may be calling.
        self.memory[at + NAME_SIZE + 8 : at + NAME_SIZE + 24] = struct.pack("<QQ", first, 0)
        self.memory[at + NAME_SIZE + 32 : at + NAME_SIZE + 40] = struct.pack("<II", error, length)
        self.memory[at + NAME_SIZE + 16 : at + NAME_SIZE + 24] = struct.pack("<Q", first + times)

    def fail_next(self, name, error, times=1):
        self.fail(name, error, self.count(name), times)

    def end(self):
        """Nothing fails any more."""
        for at, name in self._slots():
            if name:
                self.memory[at + NAME_SIZE + 16 : at + NAME_SIZE + 24] = bytes(8)

    def move_clocks(self, since_boot=0.0, calendar=0.0):
        """Seconds by which its clocks are off from now on: those that only go on, and the calendar."""
        self.memory[: CLOCKS.size] = CLOCKS.pack(int(calendar * 1e9), int(since_boot * 1e9))
