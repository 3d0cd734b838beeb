# SPDX-License-Identifier: Apache-2.0
"""What is in the file of a hook or profiler is looked at before the first command, in the process's own view.

Files that are refused are held against the real loader of this machine, where it can say the same.
"""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys

import images
import pytest
from apps import CORECLR, UNTOUCHED, told, whole_rule
from harness import BUILD, CLSID, NOBODY, needs_namespaces, needs_root, rule
from runtimes import FAKE

CC = shutil.which("cc") or shutil.which("gcc")

#: What of ours the loader would need to know of; a musl that is a system's own has another name.
WRONG_LIBRARIES = {
    "text": (lambda: b"fake-profiler: main\n", "not-elf", None),
    "empty": (lambda: b"", "not-elf", None),
    "assembly": (images.hook, "not-elf", None),
    "header-only": (lambda: images.profiler()[:100], "damaged", None),
    "word-size": (lambda: images.elf(is_64=False, em=3), "wrong-class", None),
    "byte-order": (lambda: images.profiler(is_big=True), "wrong-byte-order", None),
    "machine": (lambda: images.profiler(em=images.S390), "wrong-machine", None),
    "program": (lambda: images.profiler(pie=True), "not-a-library", None),
    "old-program": (lambda: images.profiler(kind=2), "not-a-library", None),
    "no-export": (lambda: images.profiler(exports=["Other"]), "no-entry-point", None),
    "library": (lambda: images.profiler(needed=["nowhere.so.1"]), "needs-library", "nowhere.so.1"),
    "version": (
        lambda: images.profiler(needed=["libc.so.6"], needs={"libc.so.6": ["GLIBC_2.99"]}),
        "needs-version",
        "GLIBC_2.99 of libc.so.6",
    ),
    "musl": (lambda: images.profiler(needed=["libc.musl-x86_64.so.1"]), "wrong-libc", "libc.musl-x86_64.so.1"),
}

GOOD_LIBRARIES = {
    "alone": images.profiler,
    "sysv": lambda: images.profiler(hash_table="sysv"),
    "libc": lambda: images.profiler(needed=["libc.so.6"], needs={"libc.so.6": ["GLIBC_2.17"]}, undefined=["getenv"]),
    "version-that-may-be-missing": lambda: images.profiler(
        needed=["libc.so.6"], needs={"libc.so.6": ["?GLIBC_2.99"]}, weak=["no_function_at_all"]
    ),
    "c++": lambda: images.profiler(needed=["libstdc++.so.6", "libm.so.6"], needs={"libstdc++.so.6": ["GLIBCXX_3.4"]}),
}

WRONG_HOOKS = {
    "text": (lambda: b"fake-hook: ok\n", "not-managed"),
    "library": (images.profiler, "not-managed"),
    "native": (lambda: images.pe(cli=False), "not-managed"),
    "module": (lambda: images.pe(assembly=False), "not-managed"),
    "cut": (lambda: images.hook()[:-1], "damaged"),
    "other-type": (lambda: images.pe(name="Startup"), "no-startup-hook"),
    "namespace": (lambda: images.pe(space="Agent"), "no-startup-hook"),
    "nested": (lambda: images.pe(nested=True), "no-startup-hook"),
    "method": (lambda: images.pe(method="Start"), "no-initialize"),
    "instance": (lambda: images.pe(static=False), "no-initialize"),
    "arguments": (lambda: images.pe(parameters=1), "no-initialize"),
}

#: As a runtime would: open it, and ask for the one name.
LOAD = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], mode=os.RTLD_LAZY).DllGetClassObject"


def loads(path):
    return subprocess.run([sys.executable, "-c", LOAD, path], capture_output=True, check=False).returncode == 0


def plan(kind, path):
    if kind == "hook":
        return rule(env={"A": "1"}, startup_hooks=[{"path": path}])
    return rule(env={"A": "1"}, profilers=[{"clsid": CLSID, "path": path}])


def check_refused(one, runtime, kind, code, detail=None):
    """Nothing was sent, and everybody says why: with the code, and with what to do."""
    assert runtime.commands() == ["resume"]
    receipt = one.receipt(runtime.pid, "running")
    step = receipt.step(kind)
    assert (receipt.outcome, step["result"], step["code"], step["detail"]) == ("failed", "refused", code, detail), step
    assert step["why"] and step["remedy"]
    explained = one.post("/v1/explain", {"pid": runtime.pid})
    assert [planned["code"] for planned in explained["steps"] if planned["kind"] == kind] == [code]
    assert runtime.finish() == []
    return step


@pytest.mark.parametrize("name", WRONG_LIBRARIES)
def test_a_library_that_will_not_do(daemon, fake, folder, name):
    make, code, detail = WRONG_LIBRARIES[name]
    path = folder.file("profiler.so", make())
    assert not loads(path)
    one = daemon([plan("profiler", path)])
    check_refused(one, fake(one.socket), "profiler", code, detail)


@pytest.mark.parametrize("name", GOOD_LIBRARIES)
def test_a_library_that_will_do(daemon, fake, folder, name):
    path = folder.file("profiler.so", GOOD_LIBRARIES[name]())
    if not loads(path):
        pytest.skip("the loader of this machine does not have what it takes")
    one = daemon([plan("profiler", path)])
    runtime = fake(one.socket)
    assert f"profiler {path}" in runtime.commands()
    step = one.receipt(runtime.pid, "running").step("profiler")
    assert (step["result"], step["code"], step["detail"], step["remedy"]) == ("ok", None, None, None)


@pytest.mark.skipif(not CC, reason="there is no compiler")
@pytest.mark.parametrize("now", [True, False])
def test_a_symbol_that_nobody_has(daemon, fake, folder, now):
    """With lazy binding the program would end at the first call: the loader alone does not say so."""
    source = folder.file("profiler.c", "int strange(void); int DllGetClassObject(void) { return strange(); }")
    path = str(folder / "profiler.so")
    flags = ["-Wl,-z,now"] if now else ["-Wl,-z,lazy"]
    subprocess.run([CC, "-shared", "-fPIC", *flags, "-o", path, source], check=True)
    assert loads(path) != now
    one = daemon([plan("profiler", path)])
    check_refused(one, fake(one.socket), "profiler", "needs-symbol", "strange")


@pytest.mark.parametrize("name", WRONG_HOOKS)
def test_an_assembly_that_will_not_do(daemon, fake, folder, name):
    make, code = WRONG_HOOKS[name]
    path = folder.file("Hook.dll", make())
    one = daemon([plan("hook", path)])
    check_refused(one, fake(one.socket), "hook", code)


@pytest.mark.parametrize("kind", ["hook", "profiler"])
def test_a_file_that_is_too_large_is_not_read(daemon, fake, folder, kind):
    path = folder.profiler()
    os.truncate(path, 2 << 30)
    one = daemon([plan(kind, path)])
    check_refused(one, fake(one.socket), kind, "too-large")


@pytest.mark.parametrize("kind", ["hook", "profiler"])
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/tty"])
def test_devices_are_not_opened(daemon, fake, path, kind):
    one = daemon([plan(kind, path)])
    check_refused(one, fake(one.socket), kind, "not-regular")


def test_libraries_are_looked_for_where_the_process_looks(daemon, fake, folder):
    """Beside the profiler, by its own list, and by the variable that the process was started with."""
    (folder / "own").mkdir()
    (folder / "given").mkdir()
    path = folder.file("profiler.so", images.profiler(needed=["libone.so"], runpath="$ORIGIN/own"))
    one = daemon([plan("profiler", path)])
    check_refused(one, fake(one.socket), "profiler", "needs-library", "libone.so")
    folder.file("own/libone.so", images.profiler(needed=["libtwo.so"]))
    check_refused(one, fake(one.socket), "profiler", "needs-library", "libtwo.so")
    folder.file("given/libtwo.so", images.profiler())
    runtime = fake(one.socket, environment={"LD_LIBRARY_PATH": str(folder / "given")})
    assert f"profiler {path}" in runtime.commands()
    assert loads(path) is False
    with_path = {**os.environ, "LD_LIBRARY_PATH": str(folder / "given")}
    subprocess.run([sys.executable, "-c", LOAD, path], env=with_path, check=True)


def test_people_are_told_what_to_do(daemon, fake, folder):
    path = folder.file("profiler.so", images.profiler(needed=["libxml\x1b[1m.so"]))
    one = daemon([plan("profiler", path)])
    runtime = fake(one.socket)
    assert runtime.commands() == ["resume"]
    one.receipt(runtime.pid, "running")
    shown = subprocess.run(
        [BUILD / "diagportctl", "--socket", str(one.control), "show", f"pid:{runtime.pid}"],
        capture_output=True, text=True, check=True,
    )
    assert "needs a library that is not there: libxml\\x1b[1m.so (needs-library)" in " ".join(shown.stdout.split())
    assert "Install it where the process looks" in " ".join(shown.stdout.split())


# Becomes the fake in a mount namespace of its own, in which $0 is a file system with those options and $2 in it.
MOUNTED = 'mount -t tmpfs -o "$1" none "$0" && cp "$2" "$0/" && shift 2 && exec "$@"'


@needs_namespaces
@pytest.mark.parametrize("options", ["noexec", "exec"])
def test_from_a_file_system_that_is_noexec_nothing_is_loaded(daemon, fake, folder, options):
    place = folder / "mounted"
    place.mkdir()
    path = str(place / "profiler.so")
    one = daemon([plan("profiler", path)])
    runtime = fake(one.socket, prefix=["unshare", "-m", "sh", "-c", MOUNTED, str(place), options, folder.profiler()])
    if options == "noexec":
        check_refused(one, runtime, "profiler", "no-exec")
    else:
        assert f"profiler {path}" in runtime.commands()


def put_list(path, *entries):
    """An access control list, as the kernel has it: kind, rights and id of each entry."""
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, "system.posix_acl_access", acl)
    except OSError:
        pytest.skip("the file system has no access control lists")


NONE = 0xFFFFFFFF


@needs_root
@pytest.mark.parametrize("rights", [4, 0])
def test_access_control_lists_count(daemon, fake, folder, rights):
    """What the mode bits give to others the list takes, and the other way round."""
    path = folder.hook()
    others = 0 if rights else 4
    entries = [(1, 6, NONE), (2, rights, NOBODY), (4, others, NONE), (16, 4, NONE), (32, others, NONE)]
    put_list(path, *entries)
    one = daemon([plan("hook", path)])
    runtime = fake(one.socket, program=folder.program(FAKE), user=NOBODY, group=NOBODY, extra_groups=[])
    if rights:
        assert f"hook {path}" in runtime.commands()
    else:
        check_refused(one, runtime, "hook", "file-closed")


# Is root of a user namespace of its own, and says so in its report only by going on.
OWN_ROOT = ["unshare", "--user", "--map-root-user"]


def can_be_own_root():
    if os.geteuid() != 0:
        return False
    command = [*OWN_ROOT, "true"]
    return subprocess.run(command, user=4711, group=4711, stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.mark.skipif(not can_be_own_root(), reason="nobody can make a user namespace here")
@pytest.mark.parametrize("owner", [4711, 4712])
def test_root_of_a_container_has_rights_over_its_own_files(daemon, fake, folder, owner):
    """Mode bits do not hold it up there, and elsewhere they do."""
    path = folder.hook()
    os.chmod(path, 0)
    os.chown(path, owner, owner)
    one = daemon([plan("hook", path)])
    runtime = fake(
        one.socket, prefix=OWN_ROOT, program=folder.program(FAKE), user=4711, group=4711, extra_groups=[]
    )
    if owner == 4711:
        assert f"hook {path}" in runtime.commands()
    else:
        check_refused(one, runtime, "hook", "file-closed")


@needs_root
def test_root_without_its_rights_is_held_to_the_bits(daemon, fake, folder):
    path = folder.hook()
    os.chmod(path, 0)
    os.chown(path, 4711, 4711)
    one = daemon([plan("hook", path)])
    dropped = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    check_refused(one, fake(one.socket, prefix=dropped), "hook", "file-closed")
    assert f"hook {path}" in fake(one.socket).commands()


def test_a_file_that_is_cut_while_it_is_looked_at_costs_one_look(daemon, fake, folder):
    """Whoever looks may be ended by it; then somebody else does."""
    path = folder.profiler()
    one = daemon([plan("profiler", path)])
    for length in (4096, 100, 0):
        os.truncate(path, length)
        runtime = fake(one.socket)
        assert runtime.commands()[-1] == "resume"
    folder.profiler()
    runtime = fake(one.socket)
    assert f"profiler {path}" in runtime.commands()


# Real programs: each would go on without its profiler, or die of its hook.

WRONG_FOR_ALL = {
    "missing": ("profiler", lambda rig, folder: str(folder / "missing.so"), "file-missing"),
    "folder": ("profiler", lambda rig, folder: str(folder.path), "is-folder"),
    "pipe": ("profiler", lambda rig, folder: os.mkfifo(folder / "pipe") or str(folder / "pipe"), "not-regular"),
    "assembly": ("profiler", lambda rig, folder: rig.hook_a, "not-elf"),
    **{
        f"library-{name}": ("profiler", lambda rig, folder, make=make: folder.file("profiler.so", make()), code)
        for name, (make, code, _) in WRONG_LIBRARIES.items()
    },
    "hook-missing": ("hook", lambda rig, folder: str(folder / "missing.dll"), "file-missing"),
    "hook-native": ("hook", lambda rig, folder: rig.profiler, "not-managed"),
    "hook-without-type": ("hook", lambda rig, folder: rig.probe, "no-startup-hook"),
    "hook-cut": ("hook", lambda rig, folder: folder.file("Hook.dll", images.hook()[:-1]), "damaged"),
    "hook-method": ("hook", lambda rig, folder: folder.file("Hook.dll", images.pe(method="Start")), "no-initialize"),
}


@pytest.mark.dotnet
@pytest.mark.parametrize("what", WRONG_FOR_ALL)
@pytest.mark.parametrize("name", ["8", "10", "11"])
def test_a_real_program_is_left_alone(daemon, start, rig, folder, name, what):
    kind, make, code = WRONG_FOR_ALL[what]
    path = make(rig, folder)
    changed = {"startup_hooks": [{"path": path}]} if kind == "hook" else {
        "profilers": [{"clsid": rig.profiler_clsid, "path": path}]
    }
    one = daemon([whole_rule(rig, **changed)])
    app = start(name, one.socket)
    assert told(app) == UNTOUCHED
    receipt = one.receipt(app.pid, "running")
    step = receipt.step(kind, path)
    assert (receipt.outcome, step["result"], step["code"], step["attempts"]) == ("failed", "refused", code, 0)
    assert step["proof"] == "unknown"
    app.finish()


@pytest.mark.dotnet
@pytest.mark.parametrize("name", CORECLR)
def test_an_assembly_of_ours_is_one_for_runtimes_too(daemon, start, rig, folder, name):
    """What tests take for a hook dies of its missing code, and of nothing before that."""
    one = daemon([plan("hook", folder.hook())])
    app = start(name, one.socket)
    assert app.wait() == -signal.SIGABRT
    assert one.receipt(app.pid, "gone").step("hook")["result"] == "ok"


def test_codes_are_in_what_is_kept(daemon, fake, folder):
    """As JSON for programs, from diagportctl too."""
    one = daemon([plan("hook", folder.file("Hook.dll", "text"))])
    runtime = fake(one.socket)
    assert runtime.commands() == ["resume"]
    one.receipt(runtime.pid, "running")
    shown = subprocess.run(
        [BUILD / "diagportctl", "--socket", str(one.control), "--json", "show", f"pid:{runtime.pid}"],
        capture_output=True, check=True,
    )
    steps = json.loads(shown.stdout)["steps"]
    assert [step["code"] for step in steps if step["kind"] == "hook"] == ["not-managed"]
