# SPDX-License-Identifier: Apache-2.0
"""What end-to-end tests share: a private folder, and a real daemon in it.

Nothing here waits for time. What the daemon logs comes in through a pipe, and a
test waits for the line that says what it wants to know.
"""

import atexit
import collections
import contextlib
import http.client
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import images
import pytest
from lines import TIMEOUT, Lines

# What the daemon is run under: valgrind, say.
UNDER = os.environ.get("DIAGPORT_UNDER", "").split()

#: What tests start, in the folder it was built in.
PROGRAMS = [
    "diagportd",
    "diagportctl",
    "diagport-rescue",
    "tests/fake/fake-runtime",
    "tests/fake/fake-fleet",
    "tests/fake/fake-abuse",
    "tests/faults/faults.so",
    "shim/libdiagport-primer.so",
]

#: A profiler of ours.
PRIMER_CLSID = "{b5f70952-7fad-4d0e-8874-52a47210fb43}"


def reachable(build):
    """The folder with the programs, or one with copies of them where others could not come to it."""
    if os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in build.parents):
        return build
    copies = pathlib.Path(tempfile.mkdtemp(prefix="dp-programs-", dir="/tmp"))
    copies.chmod(0o755)
    atexit.register(shutil.rmtree, copies, ignore_errors=True)
    for program in filter(lambda program: (build / program).exists(), PROGRAMS):
        (copies / program).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / program, copies / program)
    return copies


BUILD = reachable(pathlib.Path(os.environ.get("DIAGPORT_BUILD", "build/gcc")).resolve())

#: What a sanitizer says when it found something.
FINDINGS = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|this must hold and does not|Assertion .* failed|"
                      r"worker of diagport-probe ended with status (?!71;)|worker of diagport-probe was ended by signal (?!9;)")

#: Somebody without any right, and without a name on most machines.
NOBODY, NOGROUP = 65534, 65534

CLSID = "{cf0d821e-299b-5307-a3d8-b283c03916dd}"
OTHER_CLSID = "{cf0d821e-299b-5307-a3d8-b283c03916de}"

#: On a loaded machine everything takes long. What comes in time, and what does not, is for tests that are about time.
LIMITS = {"late_after": "1h", "hello": "1m"}
DEFAULTS = {"deadline": "10m", "command_timeout": "5m", "primer": "never", "verify": "off"}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def can_make_namespaces():
    """Root can, but not everywhere: not where its root folder is no mount point, say."""
    command = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    return os.geteuid() == 0 and subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(not can_make_namespaces(), reason="no namespaces can be made here")


def until(look, is_so):
    """What a look shows as soon as that is so: only for what nobody tells unasked."""
    end = time.monotonic() + TIMEOUT
    pause = 0.0
    while True:
        seen = look()
        if is_so(seen):
            return seen
        assert time.monotonic() < end, f"it never was so: {seen}"
        # Whoever looks without end takes the time from those he waits for.
        time.sleep(pause)
        pause = min(pause + 0.0002, 0.005)


class Folder:
    """A private folder whose name is short enough for sockets in it."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="dp-", dir="/tmp"))
        self.path.chmod(0o755)

    def __truediv__(self, name):
        return self.path / name

    def file(self, name, content):
        """Makes a file that everybody may read; returns its path as text."""
        path = self.path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(0o644)
        return str(path)

    def hook(self, name="Hook.dll"):
        """A file that fake runtimes take for a startup hook."""
        return self.file(name, images.hook())

    def profiler(self, name="profiler.so", word="main"):
        """A file that fake runtimes take for a profiler."""
        return self.file(name, images.profiler(word))

    def program(self, path):
        """A copy of a program that everybody may start, wherever the original is."""
        copy = self.path / pathlib.Path(path).name
        if not copy.exists():
            shutil.copy(path, copy)
            copy.chmod(0o755)
        return str(copy)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def rule(name="all", match="all", **keys):
    """One rule of a policy."""
    return {"name": name, "match": match, **keys}


def listen(folder, name="runtime", mode="0666", **keys):
    """One listener of a policy."""
    return {"name": name, "path": str(folder / f"{name}.sock"), "mode": mode, **keys}


# Started before the daemon to give it what a service manager gives: descriptors from 3 on, and their names.
PASS_SOCKETS = """
import fcntl, os, sys
names, fds, command = sys.argv[1], [int(n) for n in sys.argv[2].split(",")], sys.argv[3:]
away = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in fds]
for place, fd in enumerate(away):
    os.dup2(fd, 3 + place)
    os.close(fd)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=names)
os.execv(command[0], command)
"""


class Daemon:
    """diagportd with a policy of the test's own, made of rules and other keys of the top level."""

    def __init__(self, folder, rules=(), start=True, arguments=None, state=None, prefix=(), user=None, environment=None,
                 passed=None, manager=None, **top):
        self.folder = folder
        self.config = folder / "diagport.yaml"
        self.state = pathlib.Path(state or folder / "state")
        self.program = str(BUILD / "diagportd") if user is None else folder.program(BUILD / "diagportd")
        self.arguments = arguments
        self.prefix = [*UNDER, *prefix]
        self.user = user
        self.environment = environment or {}
        self.passed = passed or {}
        self.manager = manager
        self.process = None
        self.log = None
        self.policy(rules, **top)
        if user is not None:
            os.chown(folder.path, user, user)
        if start:
            self.start()

    @property
    def socket(self):
        return str(self.folder / "runtime.sock")

    @property
    def control(self):
        return str(self.folder / "control.sock")

    def policy(self, rules=(), **top):
        """Writes the policy; what is left out has the defaults of these tests."""
        whole = {
            "version": 1,
            "listen": [listen(self.folder)],
            "control": {"path": self.control, "mode": "0666"},
            **top,
            "limits": {**LIMITS, **top.get("limits", {})},
            "defaults": {**DEFAULTS, **top.get("defaults", {})},
        }
        if rules:
            whole["rules"] = list(rules)
        self.policy_text(json.dumps(whole, indent=1, ensure_ascii=False))

    def policy_text(self, text):
        """Writes the policy file, as one step for whoever reads it."""
        new = self.folder / "diagport.yaml.new"
        new.write_text(text, encoding="utf-8")
        new.chmod(0o644)
        new.rename(self.config)

    # Its life.

    def _command(self):
        command = [self.program]
        if self.arguments is None:
            command += ["--config", str(self.config), "--state", str(self.state)]
        else:
            command += self.arguments
        passed = self._handed_over()
        if passed:
            fds = ",".join(str(one.fileno()) for one in passed.values())
            command = [sys.executable, "-c", PASS_SOCKETS, ":".join(passed), fds, *command]
        return [*self.prefix, *command]

    def _handed_over(self):
        """Sockets that it is started with, those that its manager keeps among them."""
        return {**self.passed, **(self.manager.kept if self.manager else {})}

    def spawn(self):
        """Starts it without waiting for anything."""
        self.ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # Not an abstract one, which nobody finds from another network namespace.
        path = str(self.folder / f"ready.{os.urandom(6).hex()}")
        self.ready.bind(path)
        os.chmod(path, 0o666)
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("LISTEN_", "DOTNET_"))},
            "NOTIFY_SOCKET": self.manager.path if self.manager else path,
            **self.environment,
        }
        if self.manager:
            self.manager.drain()
            self.manager.relay = path
        identity = {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}
        self.process = subprocess.Popen(
            self._command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            pass_fds=[passed.fileno() for passed in self._handed_over().values()],
            **identity,
        )
        self.log = Lines(self.process.stderr)
        return self

    def start(self, policy_is_good=True):
        self.spawn()
        self.wait_until_ready()
        assert (self.log.count("the policy has errors") == 0) == policy_is_good, self.last_lines()
        return self

    def is_ready(self):
        """Whether it has said so since the last time."""
        ready, _, _ = select.select([self.ready], [], [], 0)
        return bool(ready) and b"READY=1" in self.ready.recv(4096)

    def wait_until_ready(self):
        """Waits until it says to its service manager that it is ready: after its start, or after a reload."""
        with contextlib.closing(PidHandle(self.process.pid)) as end:
            while True:
                ready, _, _ = select.select([self.ready, end], [], [], TIMEOUT)
                assert self.ready in ready, "it is not ready:\n" + "\n".join(self.log.seen[-60:])
                if b"READY=1" in self.ready.recv(4096):
                    return

    def mark(self):
        return self.log.mark()

    def wait(self, pattern, start=0, times=1):
        return self.log.wait(pattern, start, times)

    def signal(self, number):
        self.process.send_signal(number)

    def freeze(self):
        """SIGSTOP; it stands when this returns."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def reload(self):
        """SIGHUP; whether the policy on disk is in force then."""
        start = self.mark()
        self.signal(signal.SIGHUP)
        return self.wait(r"diagportd: (not )?reloaded: ", start).group(1) is None

    def kill(self):
        """SIGKILL."""
        self.process.kill()
        self._reap()

    def stop(self):
        """SIGTERM, and that it ends as it should."""
        if self.process.poll() is None:
            # In this order: SIGCONT would also end the stop by which a leak check looks at threads.
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        self.end(0)

    def end(self, status):
        """Waits for its end."""
        self._reap()
        assert self.process.returncode == status, f"status {self.process.returncode}:\n" + self.last_lines()

    def _reap(self):
        self.process.wait(TIMEOUT)
        self.log.end()
        self.ready.close()
        assert not any(map(FINDINGS.search, self.log.seen)), self.last_lines()

    def last_lines(self):
        return "\n".join(self.log.seen[-100:])

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    # What it says over its control socket.

    def request(self, method, path, body=None, headers=None):
        connection = Http(self.control)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, body = self.request("GET", path)
        assert status == 200, (status, body)
        return json.loads(body)

    def post(self, path, body):
        status, answer = self.request("POST", path, json.dumps(body))
        assert status == 200, (status, answer)
        return json.loads(answer)

    def runtime(self, identity):
        """What it says of one runtime: a pid, or what else the interface takes for an id."""
        return Receipt(self.get(f"/v1/runtimes/pid:{identity}" if isinstance(identity, int) else
                                f"/v1/runtimes/{identity}"))

    def receipt(self, pid, state="running|gone|killed|held", start=0):
        """What became of the runtime of that process, once it is in one of the states."""
        self.wait(rf"diagportd: ({state}) .*\bpid={pid} ", start)
        return self.runtime(pid)

    def _known(self, pid):
        status, body = self.request("GET", f"/v1/runtimes/pid:{pid}")
        assert status in (200, 404), (status, body)
        return Receipt(json.loads(body)) if status == 200 else None

    def until(self, pid, is_so):
        """What it says of the runtime of that process, as soon as that is so: for what it tells nobody unasked.

        After a restart a runtime has to come back, or its process to be looked at, before it is known.
        """
        return until(lambda: self._known(pid), lambda seen: seen is not None and is_so(seen))

    def proved(self, pid):
        """What it says of the runtime of that process, once it is known of each step whether it was loaded, or that it
        will not be."""
        return self.until(pid, lambda seen: all(is_known(step) for step in seen["steps"] if "proof" in step))

    def status(self):
        return self.get("/v1/status")

    def alarms(self):
        return [alarm["name"] for alarm in self.status()["alarms"]]

    def metric(self, sample):
        """The value of one sample of its metrics, labels and all."""
        _, text = self.request("GET", "/metrics")
        (value,) = re.findall(rf"^{re.escape(sample)} (\S+)$", text.decode(), re.MULTILINE)
        return float(value)

    # What it costs.

    def _descriptors(self):
        found = set()
        for name in os.listdir(f"/proc/{self.process.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.add((name, os.readlink(f"/proc/{self.process.pid}/fd/{name}")))
        return found

    def descriptors(self):
        """Those that it keeps: what is there only for a moment is not there any more when two requests are answered.

        One may be taken in and answered before the end of an older connection is seen. A worker that begins or ends
        meanwhile would be counted, and its socket not, or the other way round: then it is looked again.
        """
        _, kept = until(self._look_at_descriptors, lambda seen: seen[0] == seen[1].n_workers)
        return kept

    def _look_at_descriptors(self):
        n_workers = self._n_workers()
        before = self._descriptors()
        self.status()
        self.status()
        return n_workers, Kept(before & self._descriptors(), self._n_workers())

    def _n_workers(self):
        """Of its probe, which come and go with what there is to look at; it has a socket to each."""
        parents = children_of(self.process.pid)
        return sum(len(children_of(parent)) for parent in parents)

    def has_descriptors(self, wanted):
        """Waits until it has as many of each kind as these, and no others."""
        until(lambda: Kept(self._descriptors(), self._n_workers()).kinds(), lambda now: now == wanted.kinds())


def children_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


class Kept(frozenset):
    """Descriptors of a daemon, and how many workers its probe has: it keeps two of each."""

    def __new__(cls, descriptors, n_workers):
        kept = super().__new__(cls, descriptors)
        kept.n_workers = n_workers
        return kept

    def kinds(self):
        """How many there are of each file, or of each kind where that has no name."""
        found = collections.Counter(re.sub(r":\[\d+\]", "", target) for _, target in self)
        found["socket"] -= self.n_workers
        # How it sees whether a worker moves.
        for target in [target for target in found if re.fullmatch(r"/proc/\d+/status", target)]:
            del found[target]
        return found


def is_known(step):
    """Without a reason it is unknown because it is not known yet."""
    return step["proof"] != "unknown" or step["proof_detail"] is not None


class Receipt(dict):
    """What the daemon says of a runtime."""

    @property
    def outcome(self):
        return self["outcome"]

    def results(self):
        """How each step ended: {("env", "A"): "ok"}."""
        return {(step["kind"], step["name"]): step["result"] for step in self["steps"]}

    def proofs(self):
        """What is known of each step that has a file: {"/p.so": "loaded"}."""
        return {step["name"]: step["proof"] for step in self["steps"] if "proof" in step}

    def step(self, kind, name=None):
        """The one step of that kind and name."""
        (found,) = [step for step in self["steps"] if step["kind"] == kind and name in (None, step["name"])]
        return found


def connect(path):
    """Waits where the queue of the listener is full, which a socket with Python's own timeout does not."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(TIMEOUT), 0))
    client.connect(str(path))
    client.settimeout(TIMEOUT)
    return client


class Http(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT)
        self.path = path

    def connect(self):
        self.sock = connect(self.path)


class PidHandle:
    """Readable once the process has ended."""

    def __init__(self, pid):
        self.fd = os.pidfd_open(pid)

    def fileno(self):
        return self.fd

    def close(self):
        os.close(self.fd)
