# SPDX-License-Identifier: Apache-2.0
"""One short life of a daemon, in which everything happens once, while one of its system calls fails.

Whatever fails: it either says in one sentence why it does not start, or every runtime runs in the end.
"""

import errno
import functools
import http.client
import re
import signal
import socket

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
    "faccessat": "EACCES EIO",
    "fdopendir": "ENOMEM",
    "flock": "EWOULDBLOCK ENOLCK",
    "fork": "EAGAIN ENOMEM",
    "fopen": "EMFILE EACCES",
    "fstat": "EIO ENOMEM",
    "fstatat": "EACCES EIO",
    "getpwnam": "EMFILE EIO",
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
    r": listening on |: control socket |: warning: |in the usual place|the daemon stays root")

#: More than this scenario needs many times over, and than one look at the daemon does; a loop that does not end makes
#: that many within a second.
CALLS_MAX, CALLS_PER_LOOK_MAX = 50000, 60


#: What a call is counted in: a life from its start on, of the first daemon there or of one that comes after another that
#: was killed, or what comes after SIGTERM.
PARTS = ["first", "later", "stop"]


def cases(counts, part):
    """Everything that can fail in a part of a life that made so many calls of each name."""
    return [
        (name, nth, error, part)
        for name in sorted(counts)
        for error in ERRORS.get(name.removeprefix("probe."), "").split()
        for nth in range(counts[name])
    ]


@functools.cache
def records_of_another():
    """The file of records that a daemon left behind, with nobody in it."""
    folder = Folder()
    try:
        one = Daemon(folder)
        one.kill()
        return (one.state / "records").read_bytes()
    finally:
        folder.remove()


class Scenario:
    """A case is a call, which one of them, what it fails with, and in which part of a life; or which one is None: a
    while, from the start on.

    Start, a plan, a runtime of no rule, one that is held and resumed, two clients, a reload, a stop."""

    def __init__(self, case=(None, None, None, "first"), n_descriptors=None):
        self.name, self.nth, self.error, self.part = case
        #: The calls in each part.
        self.counts = {}
        self.n_looks = 0
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
        if self.part == "later":
            self._leave_things()

    def _leave_things(self):
        """What the daemon before left behind; and a part of the policy is a link, as where people keep theirs elsewhere."""
        self.daemon.state.mkdir(mode=0o700)
        (self.daemon.state / "records").write_bytes(records_of_another())
        for path in (self.daemon.socket, self.daemon.control):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
                left.bind(path)
        kept = self.folder / "policy.d/..data"
        kept.mkdir()
        (kept / "part.yaml").write_text("version: 1\nrules: [ { name: linked, match: { args: --linked }, ignore: true } ]\n")
        (self.folder / "policy.d/part.yaml").symlink_to("..data/part.yaml")

    def n_struck(self):
        """How many calls it has made to fail."""
        return self.faults.hits(self.name)

    def _until(self, look, is_so):
        def count():
            self.n_looks += 1
            return look()

        return until(count, is_so)

    def _was_at_rest(self):
        """It made as many calls as there was to do."""
        made = self.faults.counts()
        assert sum(made.values()) < CALLS_MAX + CALLS_PER_LOOK_MAX * self.n_looks, (self.n_looks, made)

    def _plan(self, before):
        """Lets the one call fail that is meant, where so many were made before."""
        nth = before.get(self.name, 0) + self.nth
        if self.error == "SHORT":
            self.faults.shorten(self.name, 1, nth)
        else:
            self.faults.fail(self.name, getattr(errno, self.error), nth)

    def run(self):
        """A life in which all goes as it should but for the case."""
        try:
            if self.nth is not None and self.part != "stop":
                self._plan({})
            self.daemon.spawn()
            if self._starts():
                if self.name and self.nth is None:
                    self.faults.fail_next(self.name, getattr(errno, self.error), TIMES)
                self._live()
                self.faults.end()
                self._count("later" if self.part == "later" else "first", {})
                self._is_well()
                self._stop()
            else:
                self._count(self.part, {})
            self._was_at_rest()
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
        self._until(lambda: self._is_reachable() or not self.daemon.is_alive(), bool)
        if self.daemon.is_alive():
            # Who started it hears of it, too.
            self._until(self.daemon.is_ready, bool)
            return True
        self.daemon.end(1)
        # What is wrong with the policy is no reason not to start, and is said before.
        about_the_policy = (f"diagportd: {self.daemon.config}: ", f"diagportd: {self.folder / 'policy.d'}")
        said = [line for line in self.daemon.log.seen
                if not PLEASANTRIES.search(line) and not line.startswith(about_the_policy)]
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
        self._until(lambda: self._ask("POST", f"/v1/runtimes/pid:{runtime.pid}/resume", "{}"),
              lambda answer: answer is None or answer.status != 404 or runtime.lines.count('"event":"start"'))

    def _live(self):
        runtimes = [self._fake("--planned"), self._fake("--plain"), self._fake("--held")]
        self._let_go(runtimes[2])
        self.daemon.signal(signal.SIGHUP)
        self._until(self._number_of_reloads, lambda n: n > 0)
        self._until(self.daemon.is_ready, bool)
        for runtime in runtimes:
            commands = runtime.commands()
            assert commands[-1] == "resume", commands
            report = runtime.report()
            assert not [subject for subject in report["twice"] if "/" in subject], report
            # One more Resume does no harm, and one that is missing would.
            assert set(report["after_resume"]) <= {"ResumeRuntime"}, report
        self._ask("POST", "/v1/policy/check", "version: 1\n")

    def _plans_as_it_can(self):
        status = Client(self.daemon).status()
        commands = self._fake("--planned").commands()
        assert commands[-1] == "resume"
        # Without records, or with a policy that could not be read, nothing is applied until somebody looks after it.
        can_plan = status["records"] != "none" and "planned" in Client(self.daemon).rules()
        return ("env A=1" in commands) == can_plan

    def _is_well(self):
        """Once nothing fails any more: it answers, plans, keeps nothing, and is at rest."""
        # Records may begin meanwhile, and who is started in the same hundredth of a second is none that came later.
        self._until(self._plans_as_it_can, bool)
        for runtime in self.runtimes:
            assert runtime.end() == 0
        self._until(lambda: self.daemon.status()["connections"]["open"], lambda n: n == 0)
        expected = self.n_expected or len(self.daemon.descriptors())
        self.n_descriptors = self._until(lambda: len(self.daemon.descriptors()), lambda n: n <= expected)

    def _stop(self):
        before = self.faults.counts()
        if self.nth is not None and self.part == "stop":
            self._plan(before)
        self.daemon.signal(signal.SIGTERM)
        self.daemon.end(0)
        self._count("stop", before)

    def _count(self, part, before):
        self.counts[part] = {name: n - before.get(name, 0) for name, n in self.faults.counts().items()}
