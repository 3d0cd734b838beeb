# SPDX-License-Identifier: Apache-2.0
"""Folders and daemons that are cleaned up whatever becomes of a test."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "dotnet"))

import harness  # noqa: E402


@pytest.fixture
def folder():
    private = harness.Folder()
    yield private
    private.remove()


@pytest.fixture
def daemon(folder):
    """Makes daemons; each has to end well."""
    made = []

    def make(*arguments, **options):
        made.append(harness.Daemon(folder, *arguments, **options))
        return made[-1]

    yield make
    for one in made:
        if one.alive():
            one.stop()


@pytest.fixture
def fake():
    """Makes fake runtimes; none outlives the test."""
    made = []

    def make(*arguments, **options):
        made.append(harness.Fake(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.kill()
