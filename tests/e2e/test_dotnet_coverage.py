# SPDX-License-Identifier: Apache-2.0
"""A profiler that is not ours: the CLR Instrumentation Engine of Microsoft.CodeCoverage. It finds its settings in the
environment of the process only, so what is set through the port does not reach it without the primer."""

import ctypes
import pathlib

import pytest
from apps import CORECLR, SINGLE_FILE
from harness import BUILD, rule, until

pytestmark = pytest.mark.dotnet

CLSID = "{324F817A-7420-4E6D-B3C1-143FBED6D855}"
ENGINE, METHOD = "libInstrumentationEngine.so", "libCoverageInstrumentationMethod.so"
PRIMER = str(BUILD / "shim/libdiagport-primer.so")
EVERY = [*CORECLR, *SINGLE_FILE]


@pytest.fixture
def coverage(rig):
    if not rig.coverage:
        pytest.skip("the rig has no Microsoft.CodeCoverage")
    try:
        ctypes.CDLL("libxml2.so.2")
    except OSError:
        pytest.skip("libxml2 is not there, which Microsoft.CodeCoverage needs")
    return pathlib.Path(rig.coverage)


def settings(coverage, log):
    """Where the engine finds its method, and writes its log."""
    prefix = "MicrosoftInstrumentationEngine_"
    return {
        f"{prefix}ConfigPath64_Test": str(coverage / "Cov_x64.config"),
        f"{prefix}DisableCodeSignatureValidation": "1",
        f"{prefix}LogLevel": "All",
        f"{prefix}FileLog": "Errors|Messages|Dumps",
        f"{prefix}FileLogPath": str(log),
        "CODE_COVERAGE_SESSION_NAME": "diagport",
        "CODE_COVERAGE_PIPE_PATH": str(log.parent / "nobody-listens"),
    }


def mapped(app):
    maps = pathlib.Path(f"/proc/{app.pid}/maps").read_text(encoding="utf-8", errors="replace")
    return {library for library in (ENGINE, METHOD) if library in maps}


def is_at_work(app, log):
    """Its method is loaded by a thread of its own, in its own time."""
    return METHOD in mapped(app) and log.exists() and log.stat().st_size > 0


def loaded(daemon, start, folder, coverage, name, primer):
    """What is in the process and in the log of one that got the engine with its settings."""
    log = folder / "engine.log"
    profilers = [{"clsid": CLSID, "path": str(coverage / ENGINE)}]
    one = daemon([rule(env=settings(coverage, log), profilers=profilers, primer=primer, primer_path=PRIMER)])
    app = start(name, one.socket)
    app.report()
    if primer != "never":
        until(lambda: is_at_work(app, log), bool)
    there = mapped(app)
    assert one.receipt(app.pid, "running").outcome == "applied"
    app.finish()
    return there, log.read_text(encoding="utf-8", errors="replace") if log.exists() else None


@pytest.mark.parametrize("name", EVERY)
def test_with_the_primer_it_works(daemon, start, folder, coverage, name):
    there, log = loaded(daemon, start, folder, coverage, name, "auto")
    assert there == {ENGINE, METHOD}
    assert log


@pytest.mark.parametrize("name", EVERY)
def test_without_it_is_loaded_and_does_nothing(daemon, start, folder, coverage, name):
    there, log = loaded(daemon, start, folder, coverage, name, "never")
    assert (there, log) == ({ENGINE}, None)


@pytest.mark.parametrize("name", EVERY)
def test_as_when_the_program_was_started_with_it(start, daemon, folder, coverage, name):
    """What the engine does then is what it does with the primer."""
    log = folder / "engine.log"
    one = daemon([])
    app = start(
        name,
        one.socket,
        environment={
            **settings(coverage, log),
            "CORECLR_ENABLE_PROFILING": "1",
            "CORECLR_PROFILER": CLSID,
            "CORECLR_PROFILER_PATH": str(coverage / ENGINE),
        },
    )
    app.report()
    until(lambda: is_at_work(app, log), bool)
    assert mapped(app) == {ENGINE, METHOD}
    app.finish()
