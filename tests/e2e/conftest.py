# SPDX-License-Identifier: Apache-2.0

import pytest

import harness


@pytest.fixture
def folder():
    folder = harness.Folder()
    yield folder
    folder.remove()


@pytest.fixture
def start(folder):
    """Starts daemons, each of which has to end in good order."""
    daemons = []

    def start_one(policy, **options):
        daemon = harness.Daemon(folder, policy, **options)
        daemons.append(daemon)
        return daemon.start()

    yield start_one
    for daemon in daemons:
        daemon.stop()


@pytest.fixture
def spawn():
    """Starts fake runtimes, and ends them."""
    runtimes = []

    def spawn_one(*arguments, **options):
        runtime = harness.Runtime(*arguments, **options)
        runtimes.append(runtime)
        return runtime

    yield spawn_one
    for runtime in runtimes:
        runtime.end()
