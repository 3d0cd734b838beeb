# SPDX-License-Identifier: Apache-2.0
#
# What the fake daemon of these tests answers: by name, the bytes of a body. The
# shapes are those of docs/CONTROL.md.

import json

ANSWERS = {}

HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

# Everything that a terminal obeys or that misleads people: a title sequence, a
# C1 control, a change of direction, line ends, escapes that are none, invisible
# characters. None of it is what a real daemon sends.
EVIL = ("a\u001b]0;owned\u0007\u009b31m\u202egnp.exe\r\nb\\x1b\\\\c\u007f"
        "\u00ad\u2028d\u200bz\t.")


def add(name, value):
    ANSWERS[name] = (json.dumps(value) + "\n").encode()


def add_lines(name, values):
    ANSWERS[name] = b"".join((json.dumps(value) + "\n").encode() for value in values)


# Runtimes.

def step(kind, name, result, **more):
    members = {
        "kind": kind, "name": name, "required": True, "result": result,
        "hresult": "0x00000000" if result == "ok" else None, "meaning": None, "attempts": 1,
        "at": "2026-01-31T08:15:30.020000Z", "why": None,
    }
    if kind == "env":
        members["unset"] = False
    if kind == "profiler":
        members["clsid"] = "918728dd-259f-4a6a-ac2b-b85e1b658318"
    if kind in ("profiler", "hook"):
        members |= {"proof": "unknown", "proof_detail": None}
    return members | more


def runtime(**more):
    return {
        "id": "1f3a5c7e", "cookie": "1f3a5c7e-5d1b-4c53-9a0e-6a1f0f3f9b11", "pid": 4711,
        "uid": 1000, "user": "payments", "exe": "/opt/pay/app",
        "cmdline": ["/opt/pay/app", "--tenant=acme"], "assembly": "app",
        "unit": "payments-1.service", "container": None, "runtime_version": "8.0.20",
        "kind": "coreclr", "rid": "linux-x64", "port": "runtime", "state": "running",
        "rule": "payments", "outcome": "applied", "why": "", "late": False, "blocked": None,
        "blocked_ports": [], "connected_at": "2026-01-31T08:15:30.000123Z",
        "deadline_at": None, "hold_until": None,
        "resumed_at": "2026-01-31T08:15:30.041200Z", "ended_at": None,
        "hold_seconds": 0.041077,
        "steps": [
            step("env", "OTEL_SERVICE_NAME", "ok"),
            step("profiler", "/opt/otel/linux-x64/Native.so", "ok", attempts=2,
                 at="2026-01-31T08:15:30.030000Z"),
            step("hook", "/opt/otel/net/Hook.dll", "refused", required=False,
                 hresult="0x80131515", meaning="not supported", proof="not_loaded",
                 proof_detail="the runtime said so"),
            step("env", "ACME_OLD_AGENT", "rolled_back", unset=True),
            step("resume", None, "ok", at="2026-01-31T08:15:30.041200Z"),
        ],
    } | more


UNTOUCHED = {
    "steps": [], "rule": None, "outcome": "untouched", "runtime_version": None, "kind": None,
    "rid": None, "assembly": None, "unit": None,
}

HELD = runtime(
    id="2b000001", cookie="2b000001-0000-4000-8000-000000000001", pid=5001, state="held",
    outcome=None, rule="orders-canary", user="orders", uid=1001, exe="/usr/lib/dotnet/dotnet",
    cmdline=["dotnet", "/srv/orders/Orders.Api.dll", "--urls", "http://127.0.0.1:5000",
             "--greeting", "two words"],
    hold_seconds=184.2, resumed_at=None, hold_until="2026-01-31T08:25:30.000123Z")

BLOCKED = runtime(
    id="2b000002", cookie="2b000002-0000-4000-8000-000000000002", pid=5002, state="resuming",
    outcome="untouched", rule=None, blocked="other_port",
    blocked_ports=["/run/other.sock", "/run/third.sock"], user=None, uid=61234, cmdline=None,
    hold_seconds=12.34, resumed_at=None)

GONE = runtime(
    id="2b000003", cookie="2b000003-0000-4000-8000-000000000003", pid=5003, state="gone",
    late=True, hold_seconds=0.0004, ended_at="2026-01-31T08:16:00.000000Z",
    cmdline=["/opt/tool", "", "caf\u00e9"], **(UNTOUCHED | {"outcome": "late"}))

BARE = runtime(
    id="2b000004", cookie="2b000004-0000-4000-8000-000000000004", pid=0, state="known", uid=0,
    user="root", exe=None, cmdline=None, hold_seconds=7600, resumed_at=None,
    deadline_at="2026-01-31T08:15:33.000123Z", **(UNTOUCHED | {"outcome": None}))

add("runtimes", {"runtimes": [runtime(), HELD, BLOCKED, GONE, BARE]})
add("runtimes-unblocked", {"runtimes": [runtime(), HELD]})
add("runtimes-none", {"runtimes": []})
add("runtimes-many", {"runtimes": [runtime(pid=n) for n in range(1, 41)]})


def attribute(state, source, texts=(), why="", cut=False):
    return {"state": state, "source": source, "why": why, "texts": list(texts), "cut": cut}


ATTRIBUTES = {
    "exe": attribute("present", "/proc/PID/exe", ["/opt/pay/app"]),
    "args": attribute("present", "/proc/PID/cmdline", ["/opt/pay/app", "--tenant=acme"],
                      cut=True),
    "assembly": attribute("present", "exe and args", ["app"]),
    "user": attribute("present", "/proc/PID/status", ["payments", "1000"]),
    "unit": attribute("present", "/proc/PID/cgroup", ["payments-1.service"]),
    "container": attribute("absent", "/proc/PID/cgroup",
                           why="no component of the path is that of a container"),
    "cwd": attribute("unknown", "/proc/PID/cwd", why="permission denied"),
    "slice": attribute("absent", ""),
}

TRACE = [
    {"rule": "sdk-tools", "file": "/etc/diagport/diagport.yaml", "line": 9, "verdict": "no",
     "why": 'assembly "app" is none of "dotnet"'},
    {"rule": "payments", "file": "/etc/diagport/diagport.yaml", "line": 12, "verdict": "yes",
     "why": "every selector holds"},
    {"rule": "the rest", "file": "/etc/diagport/policy.d/50-rest.yaml", "line": 3,
     "verdict": "not_asked", "why": ""},
]

DETAILS = {
    "claimed_pid": 4711, "connections": 1, "ports": {"suspending": 1, "other": []},
    "policy": HASH, "attributes": ATTRIBUTES, "trace": TRACE,
}

add("runtime", runtime() | DETAILS)
add("runtime-held", HELD | DETAILS | {
    "hold_until": None, "outcome": "failed", "why": "a required step failed",
    "container": "3f1b"})
add("runtime-blocked", BLOCKED | DETAILS | {
    "claimed_pid": 7, "connections": 2, "trace": [], "attributes": {}, "steps": [],
    "ports": {"suspending": 2, "other": ["/run/other.sock", "/run/third.sock"]}})
add("runtime-bare", BARE | DETAILS | {
    "claimed_pid": 99, "connections": 0, "ports": {"suspending": None, "other": []},
    "policy": None, "attributes": {}, "trace": []})

EVIL_RUNTIME = runtime(
    **{member: EVIL for member in (
        "user", "exe", "state", "rule", "outcome", "why", "blocked", "id", "cookie", "assembly",
        "unit", "container", "runtime_version", "kind", "rid", "port", "connected_at",
        "resumed_at", "ended_at", "deadline_at", "hold_until")},
    cmdline=[EVIL, EVIL + " " + EVIL], blocked_ports=[EVIL, EVIL],
    steps=[{member: EVIL for member in (
        "kind", "name", "result", "hresult", "meaning", "at", "why", "proof", "proof_detail")}
        | {"required": True, "attempts": 3}])

add("runtimes-hostile", {"runtimes": [EVIL_RUNTIME]})
add("runtime-hostile", EVIL_RUNTIME | {
    "claimed_pid": 1, "connections": 1, "ports": {"suspending": 1, "other": [EVIL]},
    "policy": EVIL,
    "attributes": {EVIL: attribute(EVIL, EVIL, [EVIL], EVIL),
                   "exe": attribute("present", EVIL, [EVIL, EVIL])},
    "trace": [{"rule": EVIL, "file": EVIL, "line": 1, "verdict": EVIL, "why": EVIL}]})

# JSON as it should be, with nothing in it as it should be.
add("runtimes-odd", {"runtimes": [
    None, 1, "text", [], {},
    {"id": 5, "pid": "x", "uid": "y", "user": 7, "cmdline": "no list", "exe": [], "state": {},
     "rule": 1.5, "outcome": True, "hold_seconds": "long", "blocked": False},
    {"id": "ffffffff", "pid": -1, "uid": -5, "cmdline": [1, None, "a"], "hold_seconds": -3,
     "state": "held"},
    {"id": "eeeeeeee", "pid": 9223372036854775807, "hold_seconds": 1e300, "state": "new"},
]})
add("runtime-odd", {
    "runtimes": 3, "steps": {"a": 1}, "trace": "x", "attributes": [1], "ports": 4,
    "hold_seconds": None, "blocked_ports": 3})
add("empty", {})

# The daemon.

STATUS = {
    "version": "0.1.0", "pid": 812, "uid": 990, "user_instance": False,
    "started_at": "2026-01-31T08:00:00.000000Z", "uptime_seconds": 930.5, "stopping": False,
    "policy": {
        "hash": HASH, "origin": "files", "loaded_at": "2026-01-31T08:00:00.000000Z",
        "files": [{"name": "/etc/diagport/diagport.yaml", "hash": "9f86"},
                  {"name": "/etc/diagport/policy.d/50-rest.yaml", "hash": "1234"}],
        "rules": 3, "on_stop": "auto"},
    "last_reload": None,
    "listeners": [{"name": "runtime", "path": "/run/diagport/runtime.sock", "passed_in": True,
                   "in_place": True}],
    "control": {"path": "/run/diagport/control.sock", "passed_in": True, "in_place": True,
                "connections": 1, "followers": 0},
    "runtimes": {"known": 0, "applying": 0, "held": 1, "resuming": 0, "running": 41, "gone": 7,
                 "killed": 0},
    "runtimes_seen": 49, "connections": {"open": 42, "silent": 0, "usable": 524160},
    "alarms": [], "limits": {"runtimes": 20000}, "records": "trusted",
    "events": {"oldest": 1, "newest": 312},
}

add("status", STATUS)
add("status-reloaded", STATUS | {
    "last_reload": {"at": "2026-01-31T08:10:00.000000Z", "ok": True}, "records": "distrusted"})
add("status-bad", STATUS | {
    "user_instance": True, "stopping": True, "records": "none", "runtimes": {},
    "runtimes_seen": 0, "uptime_seconds": 200000,
    "last_reload": {"at": "2026-01-31T08:10:00.000000Z", "ok": False},
    "alarms": [
        {"name": "policy",
         "why": "the policy on disk could not be loaded; the one before stays in force"},
        {"name": "descriptors", "why": "listeners are paused"}],
    "listeners": [
        {"name": "runtime", "path": "/run/diagport/runtime.sock", "passed_in": False,
         "in_place": False},
        {"name": "other", "path": "/run/diagport/other.sock", "passed_in": False,
         "in_place": True}]})
BAD_POLICY = "the policy on disk could not be loaded; the last good one is in force"
add("status-last-good", STATUS | {
    "policy": STATUS["policy"] | {"origin": "last_good",
                                  "files": [{"name": "/run/diagportd/policy-9f86.yaml"}]},
    "alarms": [{"name": "policy", "why": BAD_POLICY}]})
add("status-salvaged", STATUS | {
    "policy": STATUS["policy"] | {"hash": "", "origin": "salvaged", "files": [], "rules": 0},
    "alarms": [{"name": "policy", "why": "the policy has errors; every runtime is resumed untouched"}]})
add("status-hostile", STATUS | {
    "version": EVIL, "runtimes": {EVIL: 4}, "last_reload": {"at": EVIL, "ok": True},
    "policy": {"hash": EVIL, "origin": EVIL, "loaded_at": EVIL, "files": [{"name": EVIL}], "rules": 3},
    "alarms": [{"name": EVIL, "why": EVIL}],
    "listeners": [{"name": EVIL, "path": EVIL, "passed_in": True, "in_place": True}]})


def listening(*listeners):
    return STATUS | {"listeners": [
        {"name": name, "path": path, "passed_in": False, "in_place": in_place}
        for name, path, in_place in listeners]}


add("status-no-listener", listening())
add("status-two", listening(("runtime", "/run/diagport/runtime.sock", True),
                            ("batch", "/run/diagport/batch.sock", True)))
add("status-unnamed", listening(("a", "/run/a.sock", True), ("b", "/run/b.sock", True)))
add("status-single", listening(("web", "/run/web.sock", True)))
# As the daemon shows /run/o'b\r%i"$(id)`.sock: with its backslash escaped.
add("status-odd-path", listening(("runtime", "/run/o'b\\x5cr%i\"$(id)`.sock", True)))
add("status-latin", listening(("runtime", "/run/caf\\xe9.sock", True)))
for _name, _path, _in_place in (
        ("blank", "/run/a b.sock", True), ("comma", "/run/a,nosuspend", True),
        ("control", "/run/a\\x0ab", True), ("long", "/" + "r" * 107, True),
        ("relative", "run.sock", True), ("broken", "/run/a\\xzz", True),
        ("replaced", "/run/a", False), ("nul", "/run/a\\x00b", True)):
    add("status-" + _name, listening(("runtime", _path, _in_place)))


def rule(name, line, matches, last, **more):
    return {
        "name": name, "file": "/etc/diagport/diagport.yaml", "line": line, "matches": matches,
        "last_match": last, "ignore": False, "mode": "apply", "match_unknown": "stop",
        "env": [], "profilers": [], "startup_hooks": [], "children": "inherit",
        "on_failure": "resume", "deadline_seconds": 3.0, "command_timeout_seconds": 1.0,
        "hold_limit_seconds": 600.0,
    } | more


add("rules", {"policy": HASH, "rules": [
    rule("sdk-tools", 9, 0, None, ignore=True),
    rule("pay ments", 12, 12, "2026-01-31T08:15:30.000123Z", env=["A", "B"],
         profilers=["/opt/otel/linux-x64/Native.so"], startup_hooks=["/a", "/b"]),
    rule("trial", 30, 3, "2026-01-31T08:15:31.000000Z", mode="observe", env=["A"]),
    rule("rest", 41, 1, "2026-01-31T08:15:31.000000Z"),
]})
add("rules-none", {"policy": HASH, "rules": []})
add("rules-hostile", {"policy": EVIL, "rules": [
    {"name": EVIL, "file": EVIL, "line": 1, "matches": 1, "last_match": EVIL, "mode": EVIL},
    4, {}]})

EXPLAINED = {
    "pid": 4711, "id": "1f3a5c7e", "rule": "payments", "action": "apply", "by_unknown": False,
    "trace": TRACE, "attributes": ATTRIBUTES, "assumed_kind": "coreclr", "picture": "running",
    "port_mode": "suspends",
    "steps": [
        {"kind": "env", "name": "OTEL_SERVICE_NAME", "required": True, "result": "pending",
         "why": None, "unset": False},
        {"kind": "profiler", "name": "/opt/otel/linux-x64/Native.so", "required": True,
         "result": "refused", "why": "does not exist",
         "clsid": "918728dd-259f-4a6a-ac2b-b85e1b658318"}],
}

add("explain", EXPLAINED)
add("explain-none", EXPLAINED | {
    "pid": 1, "id": None, "rule": None, "action": "untouched", "steps": [], "trace": [],
    "picture": "unknown", "port_mode": "unknown"})
add("explain-unknown", EXPLAINED | {
    "rule": "sdk-tools", "action": "ignore", "by_unknown": True, "steps": [], "attributes": {},
    "picture": "suspended", "port_mode": "runs_on"})
add("explain-hostile", EXPLAINED | {
    "id": EVIL, "rule": EVIL, "action": EVIL, "picture": EVIL, "port_mode": EVIL, "steps": [],
    "trace": [], "attributes": {}})

# What is done to runtimes and to the policy.

add("verdict-resumed", {"verdict": "done", "runtime": runtime(state="resuming")})
add("verdict-already", {"verdict": "already", "runtime": runtime()})
add("verdict-held", {"verdict": "done", "runtime": HELD})
add("verdict-killed", {"verdict": "done", "runtime": runtime(state="killed", exe=None)})
add("verdict-hostile", {"verdict": EVIL, "runtime": EVIL_RUNTIME})

# Profilers that are attached.

COOKIE = "1f3a5c7e-0000-4000-8000-000000000001"


def attach_step(**more):
    return {"kind": "attach", "name": "/opt/p.so", "required": True, "result": "ok",
            "hresult": "0x00000000", "meaning": None, "attempts": 1,
            "at": "2026-01-31T08:20:00.000000Z", "why": None,
            "clsid": "918728dd-259f-4a6a-ac2b-b85e1b658318", "code": None, "detail": None,
            "remedy": None, "number": 2} | more


def add_attached(answer, **more):
    whole = runtime() | DETAILS
    unsent = {"hresult": None, "attempts": 0, "result": "refused"} if "why" in more else {}
    add("attach-" + answer,
        whole | {"steps": whole["steps"] + [attach_step(number=1), attach_step(**unsent | more)]})


add("attach-begun", {"verdict": "begun", "number": 2, "runtime": runtime(cookie=COOKIE)})
add("attach-ended", {"verdict": "begun", "number": 2, "runtime": None})
add_attached("ok")
add_attached("pending", result="pending", hresult=None, attempts=0)
add_attached("file", why="needs a library that is not there", code="needs-library",
             detail="libxml2.so.2",
             remedy="Install it where the process looks, in its container too.")
add_attached("code", result="refused", hresult="0x8013136a",
             meaning="a profiler is already active")
add_attached("refused", why="is not supported by NativeAOT programs")
add_attached("lost", result="lost", hresult=None)
add_attached("skipped", why="no connection of the runtime was free in time", result="skipped")
add_attached("other", number=3)
add_attached("hostile", result=EVIL, hresult=EVIL, meaning=EVIL, why=EVIL, code=EVIL, detail=EVIL,
             remedy=EVIL, name=EVIL, attempts=1)


def reloaded(ok, **more):
    return {"ok": ok, "why": None, "policy": STATUS["policy"], "n_errors": 0, "n_warnings": 0,
            "problems": [], "n_dropped": 0} | more


def problem(severity, file, line, column, text):
    return {"severity": severity, "file": file, "line": line, "column": column, "text": text}


add("reload", reloaded(True))
add("reload-warned", reloaded(True, n_warnings=1, problems=[
    problem("warning", "/etc/diagport/diagport.yaml", 9, 3, 'rule "b" is wholly behind "a"')]))
add("reload-bad", reloaded(False, n_errors=6, n_dropped=4, problems=[
    problem("error", "/etc/diagport/diagport.yaml", 7, 5,
            '"exec" is not a key of "match"; did you mean "exe"?'),
    problem("error", "/etc/diagport/policy.d", None, None, "cannot be listed")]))
add("reload-refused", reloaded(
    False, why="control.path cannot be changed by a reload; restart the daemon"))
add("reload-hostile", reloaded(
    False, why=EVIL, policy={"hash": EVIL}, problems=[problem(EVIL, EVIL, 1, 2, EVIL)]))


def add_problem(name, status, title, detail, **more):
    add("problem-" + name,
        {"type": "about:blank", "title": title, "status": status, "detail": detail} | more)


add_problem("400", 400, "Bad Request", '"for" takes a time from 10ms to 10m, not "1y"')
add_problem("403", 403, "Forbidden",
            "you may not look here: the right read is missing; ask for user 1000 or one of its "
            "groups to be named in control.read or control.admin of the policy")
add_problem("404", 404, "Not Found", 'there is no runtime "pid:4711"')
add_problem("409", 409, "Conflict", '"1f3a" means more than one runtime',
            ids=["1f3a5c7e-0000-4000-8000-000000000001", "1f3a77aa-0000-4000-8000-000000000002"])
add_problem("501", 501, "Not Implemented", "the daemon may not kill processes of other users")
add_problem("503", 503, "Service Unavailable", "the daemon is stopping")
add_problem("hostile", 409, EVIL, EVIL, ids=[EVIL, 3])

# Events.

_n_events = 0


def event(kind, **more):
    global _n_events
    _n_events += 1
    return {
        "seq": _n_events, "at": "2026-01-31T08:15:30.%06dZ" % (_n_events * 1000), "kind": kind,
        "id": "1f3a5c7e", "cookie": "1f3a5c7e-5d1b-4c53-9a0e-6a1f0f3f9b11", "pid": 4711,
        "uid": 1000, "why": None,
    } | more


NOBODY = {"id": None, "cookie": None, "pid": None, "uid": None}
HEARTBEAT = {"seq": None, "at": "2026-01-31T08:15:44.000000Z", "kind": "heartbeat", "newest": 10}

EVENTS = [
    event("runtime", state="known", old_state="known", outcome=None, rule=None, exe=None),
    event("runtime", state="applying", old_state="known", outcome=None, rule="payments",
          exe="/opt/pay/app"),
    event("step", step="env", name="OTEL_SERVICE_NAME", result="ok", required=True,
          hresult="0x00000000", attempts=1, state="applying", rule="payments"),
    event("step", step="profiler", name="/opt/otel/Native.so", result="refused", required=True,
          hresult="0x80070057", attempts=3, state="applying", rule="payments",
          why="the file does not exist"),
    event("runtime", state="running", old_state="resuming", outcome="rolled_back",
          rule="payments", exe="/opt/pay/app", why="a required step failed"),
    event("peer_error", error="no_advertise", why="closed before it said who it is",
          **(NOBODY | {"pid": 4712, "uid": 1001})),
    event("alarm", alarm="policy", on=True, why="the policy on disk could not be loaded",
          **NOBODY),
    event("alarm", alarm="policy", on=False, **NOBODY),
    event("admin", what="hold", result="forbidden", **{"pid": 977, "uid": 0}),
    event("news", why="from a later version", **NOBODY),
    HEARTBEAT,
]


def gap(lost):
    return {"seq": None, "at": "2026-01-31T08:15:29.000000Z", "kind": "gap", "oldest": 1,
            "since": 17, "lost": lost}


add_lines("events", [gap(12)] + EVENTS)
add_lines("events-anew", [gap(None)] + EVENTS[:1])
add_lines("events-none", [])
add_lines("events-hostile", [
    EVENTS[1] | {member: EVIL for member in (
        "at", "id", "state", "old_state", "outcome", "rule", "exe", "why")},
    EVENTS[3] | {member: EVIL for member in ("step", "name", "result", "hresult")},
    EVENTS[5] | {"error": EVIL}, EVENTS[6] | {"alarm": EVIL},
    EVENTS[8] | {"what": EVIL, "result": EVIL}, {"kind": EVIL}, {}])
ANSWERS["events-broken"] = (json.dumps(EVENTS[0]) + "\nno json\n"
                            + json.dumps(EVENTS[1]) + "\n").encode()

# Metrics.

ANSWERS["metrics"] = """# TYPE diagport_runtimes gauge
# HELP diagport_runtimes Runtimes that are known, by state.
diagport_runtimes{state="running"} 41
# TYPE diagport_runtimes_seen counter
# HELP diagport_runtimes_seen Runtimes that came.
diagport_runtimes_seen_total 49
# TYPE diagport_hold_seconds histogram
# HELP diagport_hold_seconds How long.
# UNIT diagport_hold_seconds seconds
diagport_hold_seconds_bucket{le="+Inf"} 1
diagport_hold_seconds_count 1
diagport_hold_seconds_sum 0.041000
# TYPE diagport_rule_matches counter
# HELP diagport_rule_matches Runtimes that a rule matched.
diagport_rule_matches_total{rule="café \\\\x0a \\"x\\""} 3
# TYPE diagport_policy info
# HELP diagport_policy The policy in force.
diagport_policy_info{hash="9f86",origin="files"} 1
# TYPE process_cpu_seconds counter
# HELP process_cpu_seconds Time.
# UNIT process_cpu_seconds seconds
process_cpu_seconds_total 0.25
# TYPE process_open_fds gauge
# HELP process_open_fds Descriptors.
process_open_fds 30
# EOF
""".encode()
ANSWERS["metrics-html"] = b"<html>this is another server</html>\n"
ANSWERS["metrics-nothing"] = b""
ANSWERS["metrics-cut"] = ANSWERS["metrics"].removesuffix(b"# EOF\n")
ANSWERS["metrics-hostile"] = ("a{b=\"" + EVIL + "\"} 1\n# EOF\n").encode()
ANSWERS["metrics-nul"] = b"a 1\n\0# EOF\n"

# What is no diagportd.

ANSWERS["html"] = b"<html>this is another server</html>\n"
ANSWERS["list"] = b"[1, 2]\n"
ANSWERS["repeated"] = b'{"a": 1, "a": 2}\n'
ANSWERS["nothing"] = b""
ANSWERS["deep"] = b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"
ANSWERS["utf16"] = '{"a": "\u00e9"}'.encode("utf-16")
