# SPDX-License-Identifier: Apache-2.0
#
# The golden cases: what is run, what the daemon answers, and on what terminal.
# What has to come of it is in expected/NAME.

CASES = {}


def case(name, line, routes=None, **more):
    """`more`: columns of a terminal, without it none; variables of the environment."""
    assert name not in CASES, name
    CASES[name] = (line.split(" ") if line else [], routes or {}, more)


def cases(name, line, route, answer, widths=(80, 200), **more):
    """Plain, as JSON, and on terminals of some widths."""
    case(name, line, {route: answer}, **more)
    case(name + "-json", "--json " + line, {route: answer}, **more)
    for width in widths:
        case(f"{name}-{width}", line, {route: answer}, columns=width, **more)


# Usage.

case("usage", "")
case("usage-unknown-command", "lst")
case("usage-hostile-command", "a\033[31m\r\n\u202e")
case("usage-unknown-option", "--sockets x list")
case("usage-unknown-letter", "-x list")
case("usage-no-argument", "--socket")
case("usage-empty-socket", "--socket= list")
case("usage-needless-argument", "--json=yes list")
case("usage-unknown-option-of-command", "list --bogus")
case("usage-unknown-letter-of-command", "events -fx")
case("usage-no-argument-of-command", "list --state")
case("usage-needless-argument-of-command", "list --held=1")
case("usage-twice", "list --user a --user b")
case("usage-operand", "status now")
case("usage-operand-after-options", "list --held 17")
case("usage-missing-operand", "show")
case("usage-missing-operands", "check")
case("usage-too-many-operands", "show a b")
case("usage-held-and-state", "list --held --state held")
case("usage-empty-id", "resume ")
case("usage-pid", "explain 1x")
case("usage-pid-zero", "explain 0")
case("usage-pid-negative", "explain -- -1")
case("usage-pid-large", "explain 2147483648")
case("usage-since", "events --since -1")
case("usage-since-text", "events --since yesterday")
case("usage-format", "env --format fish")
case("usage-run", "run")
case("usage-run-dashes", "run --")
case("usage-run-option", "run --porte x -- true")
case("usage-help-unknown", "help lst")
for _later in ("doctor", "pause", "plan", "test", "unpause"):
    case("usage-later-" + _later, _later)
case("usage-later-builtin", "rules --builtin")

# Help.

case("help", "help")
case("help-option", "--help")
case("help-letter", "-h")
for _command in ("status", "list", "show", "resume", "hold", "kill", "attach-profiler", "events",
                 "explain", "rules",
                 "metrics", "check", "reload", "run", "env", "help"):
    case("help-" + _command, "help " + _command)
case("help-option-of-command", "show --help")
case("version", "--version")
case("version-of-command", "list --version")

# Asking.

cases("status", "status", "GET /v1/status", "status", widths=(80,))
cases("status-bad", "status", "GET /v1/status", "status-bad", widths=(80,))
cases("status-last-good", "status", "GET /v1/status", "status-last-good", widths=(80,))
cases("status-salvaged", "status", "GET /v1/status", "status-salvaged", widths=(80,))
case("status-reloaded", "status", {"GET /v1/status": "status-reloaded"})
cases("status-hostile", "status", "GET /v1/status", "status-hostile", widths=(80,))
case("status-empty", "status", {"GET /v1/status": "empty"})

cases("list", "list", "GET /v1/runtimes", "runtimes", widths=(40, 80, 120, 200))
cases("list-unblocked", "list", "GET /v1/runtimes", "runtimes-unblocked", widths=(80,))
cases("list-none", "list", "GET /v1/runtimes", "runtimes-none", widths=(80,))
cases("list-hostile", "list", "GET /v1/runtimes", "runtimes-hostile")
cases("list-odd", "list", "GET /v1/runtimes", "runtimes-odd", widths=(80,))
case("list-empty", "list", {"GET /v1/runtimes": "empty"})
case("list-no-colour", "list", {"GET /v1/runtimes": "runtimes"}, columns=120, NO_COLOR="1")
case("list-empty-no-colour", "list", {"GET /v1/runtimes": "runtimes"}, columns=120, NO_COLOR="")
case("list-dumb", "list", {"GET /v1/runtimes": "runtimes"}, columns=120, TERM="dumb")
case("list-ascii", "list", {"GET /v1/runtimes": "runtimes"}, LC_ALL="C")
case("list-posixly", "list --held", {"GET /v1/runtimes?state=held": "runtimes-unblocked"},
     POSIXLY_CORRECT="1")
case("list-held", "list --held", {"GET /v1/runtimes?state=held": "runtimes-unblocked"})
case("list-filters", "list --unit=a*b&c=d.service --user 1000 --rule r\u00fc%20l --pid 5 --state gone",
     {"GET /v1/runtimes?state=gone&rule=r%C3%BC%2520l&pid=5&user=1000"
      "&unit=a%2Ab%26c%3Dd.service": "runtimes-none", "GET /v1/rules": "rules"})
case("list-rule", "list --rule trial",
     {"GET /v1/runtimes?rule=trial": "runtimes-none", "GET /v1/rules": "rules"})
case("list-rule-refused", "list --rule trial",
     {"GET /v1/runtimes?rule=trial": "runtimes-none", "GET /v1/rules": (403, "problem-403")})
case("list-rule-with-runtimes", "list --rule gone",
     {"GET /v1/runtimes?rule=gone": "runtimes-unblocked"})
case("list-json-behind", "list --json", {"GET /v1/runtimes": "runtimes-none"})
case("list-bad-filter", "list --state x", {"GET /v1/runtimes?state=x": (400, "problem-400")})

cases("show", "show 1f3a5c7e", "GET /v1/runtimes/1f3a5c7e", "runtime")
case("show-pid", "show pid:4711", {"GET /v1/runtimes/pid:4711": "runtime"})
case("show-odd-id", "show ../%2e/?a#b", {"GET /v1/runtimes/..%2F%252e%2F%3Fa%23b": "runtime-bare"})
case("show-dots", "show ..", {"GET /v1/runtimes/..": (404, "problem-404")})
case("show-held", "show 2b000001", {"GET /v1/runtimes/2b000001": "runtime-held"})
case("show-blocked", "show 2b000002", {"GET /v1/runtimes/2b000002": "runtime-blocked"})
case("show-bare", "show 2b000004", {"GET /v1/runtimes/2b000004": "runtime-bare"})
cases("show-hostile", "show x", "GET /v1/runtimes/x", "runtime-hostile", widths=(80,))
case("show-odd", "show x", {"GET /v1/runtimes/x": "runtime-odd"})
case("show-empty", "show x", {"GET /v1/runtimes/x": "empty"})
case("show-none", "show pid:4711", {"GET /v1/runtimes/pid:4711": (404, "problem-404")})
case("show-none-json", "--json show pid:4711",
     {"GET /v1/runtimes/pid:4711": (404, "problem-404")})
case("show-many", "show 1f3a", {"GET /v1/runtimes/1f3a": (409, "problem-409")})
case("show-many-json", "--json show 1f3a", {"GET /v1/runtimes/1f3a": (409, "problem-409")})
case("show-many-hostile", "show 1f3a", {"GET /v1/runtimes/1f3a": (409, "problem-hostile")})

cases("rules", "rules", "GET /v1/rules", "rules")
cases("rules-none", "rules", "GET /v1/rules", "rules-none", widths=(80,))
cases("rules-hostile", "rules", "GET /v1/rules", "rules-hostile", widths=(200,))

cases("explain", "explain 4711", "POST /v1/explain", "explain")
case("explain-none", "explain 1", {"POST /v1/explain": "explain-none"})
case("explain-unknown", "explain 4711", {"POST /v1/explain": "explain-unknown"})
case("explain-hostile", "explain 4711", {"POST /v1/explain": "explain-hostile"})
case("explain-no-process", "explain 99", {"POST /v1/explain": (404, "problem-404")})

# Metrics.

case("metrics", "metrics", {"GET /metrics": "metrics"})
case("metrics-80", "metrics", {"GET /metrics": "metrics"}, columns=80)
case("metrics-json", "--json metrics")
case("metrics-refused", "metrics", {"GET /metrics": (403, "problem-403")})
case("metrics-empty-path", "metrics --textfile=")
case("metrics-folder", "metrics --textfile .", {"GET /metrics": "metrics"})
case("metrics-no-folder", "metrics --textfile missing/x.prom", {"GET /metrics": "metrics"})
for _odd in ("html", "nothing", "cut", "hostile", "nul"):
    case("metrics-" + _odd, "metrics", {"GET /metrics": "metrics-" + _odd})

# Telling it what to do.

cases("resume", "resume 1f3a5c7e", "POST /v1/runtimes/1f3a5c7e/resume", "verdict-resumed",
      widths=(80,))
case("resume-already", "resume 1f3a5c7e", {"POST /v1/runtimes/1f3a5c7e/resume": "verdict-already"})
case("resume-refused", "resume 1f3a", {"POST /v1/runtimes/1f3a/resume": (403, "problem-403")})
case("resume-stopping", "resume 1f3a", {"POST /v1/runtimes/1f3a/resume": (503, "problem-503")})
case("resume-hostile", "resume x", {"POST /v1/runtimes/x/resume": "verdict-hostile"})
case("hold", "hold 2b000001", {"POST /v1/runtimes/2b000001/hold": "verdict-held"})
case("hold-for", "hold 2b000001 --for 10m", {"POST /v1/runtimes/2b000001/hold": "verdict-held"})
case("hold-for-before", "hold --for=forever 2b000001",
     {"POST /v1/runtimes/2b000001/hold": "verdict-held"})
case("hold-wrong", "hold 2b000001 --for 1y",
     {"POST /v1/runtimes/2b000001/hold": (400, "problem-400")})
case("hold-not-utf8", "hold 2b000001 --for \udcff")
case("kill", "kill 1f3a5c7e", {"POST /v1/runtimes/1f3a5c7e/kill": "verdict-killed"})
case("kill-held", "kill 2b000001", {"POST /v1/runtimes/2b000001/kill": "verdict-held"})
case("kill-unable", "kill 1f3a5c7e",
     {"POST /v1/runtimes/1f3a5c7e/kill": (501, "problem-501")})
ATTACH = "attach-profiler 1f3a5c7e --clsid {918728dd-259f-4a6a-ac2b-b85e1b658318} --path /opt/p.so"
ATTACHED = "GET /v1/runtimes/1f3a5c7e-0000-4000-8000-000000000001"


def attach(answer, status=202, begun="attach-begun"):
    return {"POST /v1/runtimes/1f3a5c7e/attach-profiler": (status, begun), ATTACHED: answer}


cases("attach", ATTACH, "POST /v1/runtimes/1f3a5c7e/attach-profiler", (409, "problem-409"), widths=())
case("attach-ok", ATTACH, attach("attach-ok"))
case("attach-ok-json", "--json " + ATTACH, attach("attach-ok"))
case("attach-data", ATTACH + " --data a=b;\u00fc --timeout 500ms", attach("attach-ok"))
for _odd in ("file", "code", "refused", "lost", "skipped", "other", "hostile"):
    case("attach-" + _odd, ATTACH, attach("attach-" + _odd))
case("attach-file-json", "--json " + ATTACH, attach("attach-file"))
case("attach-ended", ATTACH, attach("attach-ok", begun="attach-ended"))
case("attach-forgotten", ATTACH, attach((404, "problem-404")))
case("attach-forbidden", ATTACH, attach("attach-ok", 403, "problem-403"))
case("attach-wrong", ATTACH + " --timeout 2m", attach("attach-ok", 400, "problem-400"))
case("attach-no-path", "attach-profiler 1f3a5c7e --clsid x")
case("attach-no-clsid", "attach-profiler 1f3a5c7e --path x")
case("attach-no-id", "attach-profiler --path x --clsid y")
case("attach-two-forms", ATTACH + " --data a --data-file b")
case("attach-not-utf8", ATTACH + " --data \udcff")
case("attach-no-file", ATTACH + " --data-file missing\033")
case("attach-folder", ATTACH + " --data-file .")
case("show-attached", "show 1f3a5c7e", {"GET /v1/runtimes/1f3a5c7e": "attach-file"})
cases("reload", "reload", "POST /v1/policy/reload", "reload", widths=())
cases("reload-warned", "reload", "POST /v1/policy/reload", "reload-warned", widths=())
cases("reload-bad", "reload", "POST /v1/policy/reload", "reload-bad", widths=())
cases("reload-refused", "reload", "POST /v1/policy/reload", "reload-refused", widths=())
case("reload-hostile", "reload", {"POST /v1/policy/reload": "reload-hostile"})
case("reload-forbidden", "reload", {"POST /v1/policy/reload": (403, "problem-403")})

# Events.

cases("events", "events", "GET /v1/events", "events", widths=(80,))
case("events-since", "events --since 17", {"GET /v1/events?since=17": "events-anew"})
case("events-none", "events", {"GET /v1/events": "events-none"})
cases("events-hostile", "events", "GET /v1/events", "events-hostile", widths=(80,))
case("events-broken", "events", {"GET /v1/events": "events-broken"})
case("events-refused", "events", {"GET /v1/events": (403, "problem-403")})
case("events-followed", "events -f", {"GET /v1/events?follow=1": "events-anew"})
case("events-followed-since", "events --since 0 --follow",
     {"GET /v1/events?follow=1&since=0": "events-anew"})
case("list-watch-refused", "list --watch", {"GET /v1/events?follow=1": (503, "problem-503")})

# The line for apps.

for _format in ("shell", "systemd", "docker"):
    case("env-" + _format, "env --format " + _format, {"GET /v1/status": "status"})
    case("env-odd-" + _format, "env --format " + _format, {"GET /v1/status": "status-odd-path"})
case("env", "env", {"GET /v1/status": "status"})
case("env-json", "env --json", {"GET /v1/status": "status-odd-path"})
case("env-latin-json", "env --json", {"GET /v1/status": "status-latin"})
case("env-port", "env --port batch", {"GET /v1/status": "status-two"})
case("env-usual-port", "env", {"GET /v1/status": "status-two"})
case("env-no-such-port", "env --port web", {"GET /v1/status": "status-two"})
case("env-which-port", "env", {"GET /v1/status": "status-unnamed"})
case("env-only-port", "env", {"GET /v1/status": "status-single"})
for _odd in ("no-listener", "blank", "comma", "control", "long", "relative", "broken", "replaced",
             "nul", "hostile"):
    case("env-" + _odd, "env", {"GET /v1/status": "status-" + _odd})

# Whoever else may listen there.

for _odd in ("html", "list", "repeated", "nothing", "deep", "utf16"):
    case("answer-" + _odd, "status", {"GET /v1/status": _odd})
case("answer-redirect", "status", {"GET /v1/status": (301, "html")})
case("answer-error", "status", {"GET /v1/status": (500, "html")})
case("answer-error-json", "--json status", {"GET /v1/status": (500, "list")})
case("answer-hostile-problem", "status", {"GET /v1/status": (400, "problem-hostile")})

# Policies.

case("check", "check -", given=b"version: 1\n")
case("check-print", "check --print -", given=b"version: 1\n")
case("check-json", "check --json -", given=b"version: 1\n")
case("check-bad", "check -", given=b"version: 2\nrule: []\nlisten: x\n")
case("check-bad-print", "check --print -", given=b"version: 2\n")
case("check-bad-json", "check --json -", given=b"version: 2\nrule: []\n")
case("check-hostile", "check -", given="version: 1\n\"a\\e[31m\u202e\": 1\n".encode())
case("check-kill", "check -",
     given=b"version: 1\nrules: [{name: a, match: {exe: /a}, env: {A: b}, on_failure: kill}]\n")
case("check-missing-file", "check missing\033.yaml")
case("check-folder", "check .")
