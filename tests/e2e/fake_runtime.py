# SPDX-License-Identifier: Apache-2.0
"""The little of a .NET runtime that the control interface can be tested with.

    fake_runtime.py SOCKET COOKIE [--slow]

Advertises itself, answers one command per connection and comes back, as the
runtime does. Each command is a line on standard output. With --slow an answer
to a change of variables waits for a line on standard input.
"""

import os
import socket
import struct
import sys
import uuid

PROCESS_INFO_3, RESUME, SET_ENVIRONMENT = 0x0408, 0x0401, 0x0403
UNKNOWN_COMMAND = 0x80131385


def text(value):
    return struct.pack("<I", len(value) + 1) + (value + "\0").encode("utf-16-le")


def reply(is_ok, payload):
    return (
        b"DOTNET_IPC_V1\0"
        + struct.pack("<HBBH", 20 + len(payload), 0xFF, 0 if is_ok else 0xFF, 0)
        + payload
    )


def receive(port, size):
    data = b""
    while len(data) < size:
        part = port.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def receive_command(port):
    header = receive(port, 20)
    length, set_and_id = struct.unpack("<H", header[14:16])[0], header[16:18]
    receive(port, length - 20)
    return set_and_id[0] << 8 | set_and_id[1]


def answer(command, cookie):
    if command == PROCESS_INFO_3:
        fields = struct.pack("<IQ", 1, os.getpid()) + cookie.bytes_le
        for value in "fake", "Linux", "x64", "fake", "8.0.20", "linux-x64":
            fields += text(value)
        return reply(True, fields)
    if command in (RESUME, SET_ENVIRONMENT):
        return reply(True, struct.pack("<I", 0))
    return reply(False, struct.pack("<I", UNKNOWN_COMMAND))


def main(path, cookie_text, *options):
    cookie = uuid.UUID(cookie_text)
    while True:
        port = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        port.connect(path)
        port.sendall(b"ADVR_V1\0" + cookie.bytes_le + struct.pack("<QH", os.getpid(), 0))
        try:
            command = receive_command(port)
        except EOFError:
            return
        print(f"{command:04x}", flush=True)
        if command == SET_ENVIRONMENT and "--slow" in options:
            sys.stdin.readline()
        port.sendall(answer(command, cookie))
        port.close()


main(*sys.argv[1:])
