#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds fake-runtime against what real runtimes were measured to do.

    selftest.py [--rig DIR] [--only TEXT] [--list]

selftest_facts.py has the facts: with --rig, the folder that tests/dotnet/build-rig made, the same tables and checks are
run against real runtimes, and nothing else. The other parts are about what only the fake can do.

FAKE_RUNTIME names the program (tests/fake/fake-runtime); with FAKE_VERBOSE what passes is named too, with FAKE_TRACE
failures come with their trace.
"""

import argparse
import os
import signal
import sys
import traceback

sys.dont_write_bytecode = True  # the folder may be read-only
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import selftest_facts  # noqa: E402
import selftest_faults  # noqa: E402
import selftest_play  # noqa: E402
import selftest_tools  # noqa: E402
from selftest_common import FAKE  # noqa: E402

# What was ignored where the tests were started, as in the background of a shell, is not what they are about.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def tests_of(module, what):
    """(name, function) for each test_ function of a module."""
    for name, function in vars(module).items():
        if name.startswith("test_"):
            yield f"{what}: {name.removeprefix('test_').replace('_', ' ')}", function


def all_checks(rig):
    for index, name in enumerate(selftest_facts.ALL):
        target = selftest_facts.real(rig, name) if rig else selftest_facts.fake(name)
        if target:
            for what, check in selftest_facts.shared_checks(target, index):
                yield f"{name}: {what}", check
    if not rig:
        yield from tests_of(selftest_play, "fake")
        yield from tests_of(selftest_faults, "fault")
        yield from tests_of(selftest_tools, "tools")


def run(checks):
    passed = failed = 0
    for name, check in checks:
        try:
            check()
        except Exception as error:  # whatever it is, the others are still to be tried
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
            if os.environ.get("FAKE_TRACE"):
                traceback.print_exc()
        else:
            passed += 1
            if os.environ.get("FAKE_VERBOSE"):
                print(f"ok   {name}", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rig", help="run the tables against the real runtimes in this folder")
    options.add_argument("--only", default="", help="only checks whose name contains this")
    options.add_argument("--list", action="store_true", help="print the names, run nothing")
    options = options.parse_args()
    rig = None
    if options.rig:
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dotnet"))
        from rig import Rig

        rig = Rig(options.rig)
    elif not os.access(FAKE, os.X_OK):
        print(f"{FAKE} is not there")
        return 77
    checks = [(name, check) for name, check in all_checks(rig) if options.only in name]
    if options.list:
        for name, _ in checks:
            print(name)
        return 0
    return run(checks)


if __name__ == "__main__":
    sys.exit(main())
