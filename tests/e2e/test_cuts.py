# SPDX-License-Identifier: Apache-2.0
"""A peer that ends, in each way, at every byte of every message, his and ours: he is resumed all the same."""

import subprocess
import sys

import pytest
from clients import Client
from harness import rule

# A process that forks one peer for each case it reads: "WHERE BYTES HOW". Each does that on its first connection, and
# then what a runtime does, up to its Resume. It prints the pid of each, and what it was told.
PEERS = """
import os, socket, struct, sys, uuid
path = sys.argv[1]
OK = b"DOTNET_IPC_V1\\0" + struct.pack("<HBBHI", 24, 0xFF, 0, 0, 0)

def connect():
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(60)
    peer.connect(path)
    return peer

def read(peer, n):
    data = b""
    while len(data) < n:
        part = peer.recv(n - len(data))
        if not part:
            raise ConnectionResetError
        data += part
    return data

def command(peer):
    header = read(peer, 20)
    size, of, number = struct.unpack("<HBB", header[14:18])
    read(peer, size - 20)
    return of, number

def end(peer, how):
    ways = {"write": socket.SHUT_WR, "read": socket.SHUT_RD, "both": socket.SHUT_RDWR}
    if how in ways:
        peer.shutdown(ways[how])
    if how == "write":
        # He is let go, or told what he does not read.
        try:
            peer.recv(1)
        except OSError:
            pass
    peer.close()

def first(advertise, where, n, how):
    peer = connect()
    if where == "advertise":
        peer.sendall(advertise[:n])
        return end(peer, how)
    peer.sendall(advertise)
    if where == "command":
        read(peer, n)
        return end(peer, how)
    command(peer)
    peer.sendall(OK[:n])
    end(peer, how)

def live(where, n, how):
    advertise = b"ADVR_V1\\0" + uuid.uuid4().bytes_le + struct.pack("<QH", os.getpid(), 0)
    told = []
    first(advertise, where, n, how)
    while True:
        peer = connect()
        peer.sendall(advertise)
        try:
            told.append("%d.%d" % command(peer))
            peer.sendall(OK)
        except (ConnectionResetError, BrokenPipeError):
            pass
        peer.close()
        if told and told[-1] == "4.1":
            return told

for line in sys.stdin:
    where, n, how = line.split()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            print(os.getpid(), where, n, how, *live(where, int(n), how), flush=True)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0, line
"""

ADVERTISE, HEADER, REPLY = 34, 20, 24
ENDS = ["close", "write", "read", "both"]


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("where, length", [("advertise", ADVERTISE), ("command", HEADER), ("reply", REPLY)])
def test_at_every_byte(daemon, where, length, how):
    one = daemon([rule(env={"OLD": "new"})], limits={"history": {"records": 1000}})
    before = one.descriptors()
    cases = "".join(f"{where} {n} {how}\n" for n in range(length + 1))
    peers = subprocess.run(
        [sys.executable, "-c", PEERS, one.socket], input=cases, stdout=subprocess.PIPE, text=True, env={"OLD": "x"}
    )
    assert peers.returncode == 0
    lines = [line.split() for line in peers.stdout.splitlines()]
    assert len(lines) == length + 1
    for pid, _, n, _, *told in lines:
        # A variable is sent again where its answer was lost, so often and no more.
        assert told[-1] == "4.1" and len(told) <= 4, (n, told)
    one.wait("diagportd: gone ", times=length)
    one.has_descriptors(before)


def test_a_thousand_that_only_connect(daemon):
    """One after the other, to both sockets."""
    one = daemon([])
    before = one.descriptors()
    client = Client(one)
    for _ in range(1000):
        client.raw().close()
    assert client.status()["control"]["connections"] >= 1
    one.has_descriptors(before)
