# SPDX-License-Identifier: Apache-2.0
#
# A daemon that answers what it is told to, and a way to run diagportctl against
# it, on a terminal or not. What is right is not known here.

import fcntl
import http.server
import os
import pty
import socketserver
import struct
import subprocess
import termios
import threading

from answers import ANSWERS

PROGRAM = os.path.abspath("diagportctl")
SOCKET = "control.sock"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length).decode()
        self.server.requests.append(" ".join(filter(None, (self.command, self.path, body))))
        answer = self.server.routes.get(f"{self.command} {self.path}", (404, "problem-404"))
        if callable(answer):
            answer(self)
            return
        status, name = answer if isinstance(answer, tuple) else (200, answer)
        self.send(status, ANSWERS[name])

    do_GET = do_POST = answer

    def send(self, status, body):
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self):
        self.send_response_only(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send_chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def address_string(self):
        return "somebody"

    def log_message(self, *_):
        pass


class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Listens at `path` while the block runs; `requests` are those that came."""

    daemon_threads = True

    def __init__(self, path, routes):
        super().__init__(path, Handler)
        self.routes = routes
        self.requests = []
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))

    def handle_error(self, request, client_address):
        pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()
        os.unlink(self.server_address)


def environment(**more):
    """Nothing of whoever runs the tests, but for what sanitizers are told."""
    kept = {name: value for name, value in os.environ.items()
            if name.startswith(("ASAN_", "UBSAN_", "LSAN_"))}
    return kept | {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"} | more


class Ended:
    """What came of a command."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


def run(arguments, folder, columns=None, rows=50, given=b"", **env):
    """Runs diagportctl to its end, with a terminal of that width as its output or none."""
    if columns is None:
        ended = subprocess.run([PROGRAM, *arguments], cwd=folder, env=environment(**env),
                               input=given, capture_output=True, check=False)
        return Ended(ended.returncode, ended.stdout, ended.stderr)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with subprocess.Popen([PROGRAM, *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=theirs, stderr=subprocess.PIPE,
                          env=environment(**{"TERM": "xterm"} | env)) as process:
        os.close(theirs)
        out = read_terminal(ours)
        err = process.stderr.read()
    os.close(ours)
    return Ended(process.returncode, out, err)


def read_terminal(fd):
    """Up to the end, which a terminal tells by an error."""
    out = b""
    try:
        while part := os.read(fd, 65536):
            out += part
    except OSError:
        pass
    return out.replace(b"\r\n", b"\n")
