# SPDX-License-Identifier: Apache-2.0
"""What else a runtime deals with: ports that are not ours, and other tools. Knows no daemon."""

import fcntl
import socket
import struct
import termios

from harness import until

RESUME = b"DOTNET_IPC_V1\0" + bytes([20, 0, 4, 1, 0, 0])
HALF_MESSAGE = b"DOTNET_IPC_V1\0\x40"


class Elsewhere:
    """A port that is not ours: it accepts, and resumes when it is told to."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen()
        self.connection = None

    def accept(self):
        self.connection, _ = self.listener.accept()

    def resume(self):
        self.connection.sendall(RESUME)

    def close(self):
        self.listener.close()
        if self.connection:
            self.connection.close()


class Full:
    """A socket of somebody else whose queue is full: whoever connects waits until there is room."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(0)
        self.first = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.first.connect(str(path))

    def make_room(self):
        self.listener.accept()[0].close()

    def close(self):
        self.first.close()
        self.listener.close()


class Tool:
    """Another tool on the runtime's own diagnostic port, as soon as that is there."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        until(lambda: self.socket.connect_ex(str(path)), lambda error: error == 0)

    def resume(self):
        self.socket.sendall(RESUME)

    def block(self):
        """Half a message, which the runtime has read when this returns: it waits for the rest and serves nobody."""
        self.socket.sendall(HALF_MESSAGE)
        until(self._unread_bytes, lambda n: n == 0)

    def _unread_bytes(self):
        return struct.unpack("i", fcntl.ioctl(self.socket, termios.TIOCOUTQ, b"\0" * 4))[0]

    def close(self):
        self.socket.close()
