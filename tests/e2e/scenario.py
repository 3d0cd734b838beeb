# SPDX-License-Identifier: Apache-2.0
"""One short life of a daemon, in which everything happens once, while one of its system calls fails.

Whatever fails: it either says in one sentence why it does not start, or every runtime runs in the end.
"""

import errno
import http.client
import re
import signal

from clients import Client
from faults import Faults
from harness import CLSID, Daemon, Folder, rule, until
from runtimes import Fake

#: What each call can plausibly fail with. A call that is not listed cannot fail with arguments like ours.
ERRORS = {
    "accept4": "EMFILE ENFILE ENOMEM ECONNABORTED EINTR EPERM",
    "bind": "EADDRINUSE EACCES ENOSPC EROFS",
    "chmod": "EPERM EROFS",
    "close": "EINTR EIO",
    "connect": "EACCES EAGAIN",
    "dup": "EMFILE",
    "epoll_create1": "EMFILE ENOMEM",
    "epoll_ctl": "ENOMEM ENOSPC",
    "epoll_wait": "EINTR",
    "eventfd": "EMFILE ENOMEM",
    "faccessat": "EACCES EIO",
    "fdopendir": "ENOMEM",
    "flock": "EWOULDBLOCK ENOLCK",
    "fork": "EAGAIN ENOMEM",
    "fopen": "EMFILE EACCES",
    "fstat": "EIO ENOMEM",
    "fstatat": "EACCES EIO",
    "getsockopt": "ENOBUFS ENOPROTOOPT",
    "lchown": "EPERM EROFS",
    "listen": "EADDRINUSE",
    "lstat": "EACCES EIO",
    "mkdir": "EACCES ENOSPC EROFS",
    "mmap": "ENOMEM ENODEV",
    "open": "EMFILE ENFILE EACCES ENOMEM EINTR EIO",
    "openat": "EMFILE EACCES ENOSPC EROFS EIO",
    "opendir": "EMFILE EACCES ENOMEM",
    "pidfd_open": "EMFILE ENOSYS EPERM ESRCH",
    "pipe2": "EMFILE",
    "poll": "EINTR ENOMEM",
    "posix_fallocate": "ENOSPC EIO EINTR",
    "pread": "EIO EINTR SHORT",
    "pwrite": "ENOSPC EIO SHORT",
    "read": "EINTR EIO ESRCH ENOMEM SHORT",
    "readdir": "EIO",
    "readlink": "EACCES ENOENT ENOMEM",
    "readlinkat": "EACCES EIO",
    "recv": "EINTR ECONNRESET ENOMEM",
    "renameat": "ENOSPC EROFS EIO",
    "scandirat": "ENOMEM EIO",
    "send": "EINTR EAGAIN EPIPE ENOBUFS ENOMEM SHORT",
    "sendmsg": "EINTR EAGAIN EPIPE ENOBUFS SHORT",
    "sendto": "EAGAIN ENOBUFS",
    "setsockopt": "ENOBUFS",
    "shutdown": "ENOTCONN",
    "sigaction": "EINVAL",
    "socket": "EMFILE ENFILE ENOMEM",
    "socketpair": "EMFILE",
    "timerfd_create": "EMFILE ENOMEM",
    "unlink": "EACCES EROFS ENOENT",
    "unlinkat": "EACCES EROFS EBUSY",
    "write": "EAGAIN EINTR EPIPE ENOSPC SHORT",
}

#: How often a call fails that fails for a while: each takes a turn or a tenth of a second.
TIMES = 20

#: What is said at a start that goes well so far.
PLEASANTRIES = re.compile(
    r": listening on |: control socket |: warning: |descriptors last for|in the usual place|the daemon stays root")

#: More than this scenario needs many times over; a loop that does not end makes that many within a second.
CALLS_MAX = 50000


def cases(counts):
    """Everything that can fail in a life that made so many calls of each name."""
    return [
        (name, nth, error)
        for name in sorted(counts)
        for error in ERRORS.get(name.removeprefix("probe."), "").split()
        for nth in range(counts[name])
    ]


class Scenario:
    """A case is a call, which one of them, and what it fails with; or which one is None: a while, from the start on.

    Start, a plan, a runtime of no rule, one that is held and resumed, two clients, a reload, a stop."""

    def __init__(self, case=None, n_descriptors=None):
        self.case = case
        self.n_expected = n_descriptors
        self.folder = Folder()
        self.faults = Faults(self.folder)
        self.runtimes = []
        self.daemon = Daemon(
            self.folder,
            [
                rule("planned", {"args": "--planned"}, env={"A": "1", "OLD": "new"},
                     profilers=[{"clsid": CLSID, "path": self.folder.profiler()}],
                     startup_hooks=[{"path": self.folder.hook()}]),
                rule("held", {"args": "--held"}, env={"B": "1"}, on_failure="hold",
                     startup_hooks=[{"path": "/nowhere/Hook.dll"}]),
            ],
            start=False,
            environment=self.faults.environment,
            defaults={"deadline": "2s", "command_timeout": "1s", "hold_limit": "2s"},
        )
        (self.folder / "policy.d").mkdir()

    def run(self):
        """Returns the calls that were made, of a life in which all went as it should but for the case."""
        try:
            name, nth, error = self.case or (None, None, None)
            if nth is not None and error == "SHORT":
                self.faults.shorten(name, 1, nth)
            elif nth is not None:
                self.faults.fail(name, getattr(errno, error), nth)
            self.daemon.spawn()
            if self._starts():
                if name and nth is None:
                    self.faults.fail_next(name, getattr(errno, error), TIMES)
                self._live()
                self.faults.end()
                self._is_well()
                self._stop()
            counts = self.faults.counts()
            assert sum(counts.values()) < CALLS_MAX, counts
            return counts
        finally:
            for runtime in self.runtimes:
                runtime.kill()
            if self.daemon.is_alive():
                self.daemon.process.kill()
                self.daemon.process.wait()
            self.folder.remove()

    def _is_reachable(self):
        """The control socket comes last, and is there a little before the rest."""
        try:
            return Client(self.daemon).get("/healthz").status == 200
        except (OSError, http.client.HTTPException):
            return False

    def _starts(self):
        """Whether it starts; if not, it says why in one sentence."""
        until(lambda: self._is_reachable() or not self.daemon.is_alive(), bool)
        if self.daemon.is_alive():
            # Who started it hears of it, too.
            until(self.daemon.is_ready, bool)
            return True
        self.daemon.end(1)
        # What is wrong with the policy is no reason not to start, and is said before.
        said = [line for line in self.daemon.log.seen
                if not PLEASANTRIES.search(line) and f"diagportd: {self.daemon.config}: " not in line]
        assert len(said) == 1 and said[0].startswith("diagportd: "), said
        return False

    def _fake(self, *arguments):
        runtime = Fake(self.daemon.socket, arguments=("--", *arguments), environment={"OLD": "x"})
        self.runtimes.append(runtime)
        return runtime

    def _ask(self, method, path, body=None):
        """A client whose connection is lost asks again."""
        for _ in range(5):
            try:
                answer = Client(self.daemon).ask(method, path, body)
            except (OSError, http.client.HTTPException):
                continue
            if answer.status != 503:
                return answer
        return None

    def _number_of_reloads(self):
        answer = self._ask("GET", "/metrics")
        counts = re.findall(r"^diagport_policy_reloads_total\S* (\d+)", answer.body.decode() if answer else "", re.MULTILINE)
        return sum(map(int, counts))

    def _let_go(self, runtime):
        """What an operator does as soon as he sees it; unless it goes on by itself, since the daemon knew too little."""
        until(lambda: self._ask("POST", f"/v1/runtimes/pid:{runtime.pid}/resume", "{}"),
              lambda answer: answer is None or answer.status != 404 or runtime.lines.count('"event":"start"'))

    def _live(self):
        runtimes = [self._fake("--planned"), self._fake("--plain"), self._fake("--held")]
        self._let_go(runtimes[2])
        self.daemon.signal(signal.SIGHUP)
        until(self._number_of_reloads, lambda n: n > 0)
        until(self.daemon.is_ready, bool)
        for runtime in runtimes:
            commands = runtime.commands()
            assert commands[-1] == "resume", commands
            report = runtime.report()
            assert not [subject for subject in report["twice"] if "/" in subject], report
            # One more Resume does no harm, and one that is missing would.
            assert set(report["after_resume"]) <= {"ResumeRuntime"}, report
        self._ask("POST", "/v1/policy/check", "version: 1\n")

    def _is_well(self):
        """Once nothing fails any more: it answers, plans, keeps nothing, and is at rest."""
        status = Client(self.daemon).status()
        runtime = self._fake("--planned")
        commands = runtime.commands()
        assert commands[-1] == "resume"
        # Without records, or with a policy that could not be read, nothing is applied until somebody looks after it.
        can_plan = status["records"] != "none" and "planned" in Client(self.daemon).rules()
        assert ("env A=1" in commands) == can_plan, commands
        for runtime in self.runtimes:
            assert runtime.end() == 0
        until(lambda: self.daemon.status()["connections"]["open"], lambda n: n == 0)
        expected = self.n_expected or len(self.daemon.descriptors())
        self.n_descriptors = until(lambda: len(self.daemon.descriptors()), lambda n: n <= expected)

    def _stop(self):
        self.daemon.signal(signal.SIGTERM)
        self.daemon.end(0)
