# SPDX-License-Identifier: Apache-2.0
"""Folders, daemons and runtimes that are cleaned up whatever becomes of a test."""

import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "dotnet"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "fixtures"))

import apps  # noqa: E402
import harness  # noqa: E402
import rig as rigs  # noqa: E402
import runtimes  # noqa: E402

# Whoever runs us in the background may have us ignore these, and what we start would, too.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def pytest_configure():
    missing = [program for program in harness.PROGRAMS if not (harness.BUILD / program).exists()]
    if missing:
        pytest.exit(f"not built: {', '.join(missing)}; `make check TESTS=` builds all that tests start", returncode=99)


@pytest.fixture
def folder():
    private = harness.Folder()
    yield private
    private.remove()


@pytest.fixture
def daemon(folder):
    """Makes daemons; each has to end well."""
    made = []

    def make(*arguments, in_folder=None, start=True, **options):
        one = harness.Daemon(in_folder or folder, *arguments, start=False, **options)
        made.append(one)
        return one.start() if start else one

    yield make
    try:
        for one in made:
            if one.is_alive():
                one.stop()
    finally:
        # Whatever becomes of a test, its daemons do not outlive it.
        for one in made:
            if one.is_alive():
                one.process.kill()


fake = runtimes.maker(runtimes.Fake, "daemon")
fleet = runtimes.maker(runtimes.Fleet, "daemon")
abuse = runtimes.maker(runtimes.Abuse, "daemon")
app = runtimes.maker(runtimes.App, "daemon")


@pytest.fixture(scope="session")
def rig():
    return rigs.Rig(os.environ["DIAGPORT_RIG"])


@pytest.fixture
def start(app, rig, folder):
    """Starts programs of the rig by name, which tell of themselves and run until they are told to end."""

    def start_one(name, ports, *arguments, environment=None, **options):
        return app(
            [*apps.command(rig, name), "--names", ",".join(apps.UNTOUCHED_VARIABLES), "--wait"],
            ports,
            folder,
            *arguments,
            environment={**apps.LAUNCH, **(environment or {})},
            **options,
        )

    return start_one
