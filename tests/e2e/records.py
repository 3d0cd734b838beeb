# SPDX-License-Identifier: Apache-2.0
"""The daemon's file of records as other versions write it. Its form is lib/record.h's."""

import struct

HEADER_SIZE = 64
MARK_SIZE = 160
VERSION = 4
SLOTS = 32768

#: Of an earlier version, and which of the flags of a mark it knew.
OLD_VERSION = 2
OLD_MARK_SIZE = 128
FLAGS_AT, OLD_FLAGS = 6, 3


def with_sum(content):
    """The bytes with their sum behind them."""
    value = 0xCBF29CE484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return bytes(content) + struct.pack("<Q", value)


def header_of(header, version, mark_size):
    magic, found, _, slots = struct.unpack_from("<8sIII", header)
    assert (magic, found, slots) == (b"diagprec", VERSION, SLOTS)
    return with_sum(struct.pack("<8sIII", magic, version, 2 * mark_size, slots) + header[20:-8])


def make_older(path):
    """Makes it one that version 2 has written; it has to be at rest."""
    whole = path.read_bytes()
    assert len(whole) == HEADER_SIZE + 2 * SLOTS * MARK_SIZE
    parts = [header_of(whole[:HEADER_SIZE], OLD_VERSION, OLD_MARK_SIZE)]
    for at in range(HEADER_SIZE, len(whole), MARK_SIZE):
        mark = bytearray(whole[at : at + MARK_SIZE])
        mark[FLAGS_AT] &= OLD_FLAGS
        parts.append(with_sum(mark[: OLD_MARK_SIZE - 8]) if any(mark) else bytes(OLD_MARK_SIZE))
    path.write_bytes(b"".join(parts))


def make_newer(path):
    """Makes it one of a version that nobody knows yet, with whatever that has in it."""
    header = header_of(path.read_bytes()[:HEADER_SIZE], VERSION + 1, 4 * MARK_SIZE)
    path.write_bytes(header + b"whatever" * 4711)


def version(path):
    with path.open("rb") as file:
        return struct.unpack_from("<8sI", file.read(HEADER_SIZE))[1]
