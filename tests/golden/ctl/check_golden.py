#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs diagportctl on every case of cases.py and compares what it writes.

    check_golden.py [--update | NAME...]

From the build folder. Expected is what is in expected/NAME: the command line,
the requests that came (>), standard output, standard error (2|) and the exit
status (=). No case may write anything that a terminal obeys.
"""

import difflib
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness  # noqa: E402
from cases import CASES  # noqa: E402

EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected")

# What a terminal obeys, or what misleads: everything that is not plain to see,
# but for the line feed.
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-"
                    "\u206f\ufeff]")
STYLE = re.compile("\x1b\\[[0-9]*m")


def show(text):
    return text.replace("\x1b", "^[")


def run_case(name, folder):
    line, routes, more = CASES[name]
    socket = os.path.join(folder, harness.SOCKET)
    with harness.Daemon(socket, routes) as daemon:
        ended = harness.run(line, folder, DIAGPORT_CONTROL=harness.SOCKET, **more)
    return ended, daemon.requests


def picture(name, ended, requests):
    """All of it as one text."""
    line, _, more = CASES[name]
    out, err = ended.out.decode(errors="backslashreplace"), ended.err.decode()
    out = re.sub(r"^(diagportctl) \d\S*$", r"\1 VERSION", out, flags=re.M)
    where = f"   [{more['columns']} columns]" if "columns" in more else ""
    parts = [f"$ diagportctl {' '.join(map(ascii_word, line))}{where}"]
    parts += ["> " + request for request in requests]
    parts += [show(out).removesuffix("\n")] if out else []
    parts += ["2| " + part for part in show(err).splitlines()]
    return "\n".join(parts) + f"\n= {ended.status}\n"


def ascii_word(word):
    return word if word.isascii() and word.isprintable() else ascii(word)


def find_unsafe(name, ended):
    if name.startswith("env-latin"):
        return []
    text = STYLE.sub("", ended.out.decode()) + ended.err.decode()
    return [f"{name}: {found!r} was written" for found in set(UNSAFE.findall(text))]


def compare(name, text, update):
    path = os.path.join(EXPECTED, name)
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return []
    expected = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            expected = file.read()
    return list(difflib.unified_diff(expected.splitlines(), text.splitlines(), name, name,
                                     lineterm=""))


def find_leftovers():
    return [f"expected/{name} belongs to no case" for name in os.listdir(EXPECTED)
            if name not in CASES]


def main(names):
    update = names == ["--update"]
    chosen = CASES if update or not names else names
    problems = [] if names else find_leftovers()
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            ended, requests = run_case(name, folder)
            problems += find_unsafe(name, ended)
            problems += compare(name, picture(name, ended, requests), update)
    print("\n".join(problems + [f"{len(chosen)} cases"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
