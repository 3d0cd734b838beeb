# SPDX-License-Identifier: Apache-2.0
"""A state folder on a disk that is full, or cannot be written: nobody hangs, nothing is applied, and it is said."""

import os

import pytest
from harness import needs_root, rule, until

pytestmark = needs_root

# In a mount namespace of its own, so that nothing of it outlives the daemon.
IN_MOUNT = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
DISKS = {
    "full": "mount -t tmpfs -o size=64k,mode=0700 none {state}",
    "out of files": "mount -t tmpfs -o nr_inodes=1,mode=0700 none {state}",
    "read-only": "mount -t tmpfs -o ro,mode=0700 none {state}",
}


@pytest.mark.parametrize("disk", DISKS)
def test_no_record_can_be_kept(daemon, fleet, folder, disk):
    (folder / "state").mkdir(mode=0o700)
    script = DISKS[disk].format(state=folder / "state") + ' && exec "$@"'
    one = daemon([rule(env={"A": "1"})], prefix=[*IN_MOUNT, script, "sh"])
    assert one.alarms() == ["records"]
    assert one.log.count("diagportd: the file of records .* cannot be made: ") == 1
    summary = fleet(one.socket, 20, "--together").summary()
    assert summary["resumed"] == 20 and set(summary["commands"]) == {"ResumeRuntime"}


def test_there_is_room_again(daemon, fake, folder):
    """Records begin then; whoever was there before it was resumed, and gets no plan later."""
    (folder / "state").mkdir(mode=0o700)
    state = folder / "state"
    script = f'mount -t tmpfs -o size=12m,mode=0700 none {state} && head -c 8m /dev/zero >{state}/other && exec "$@"'
    one = daemon([rule(env={"A": "1"})], prefix=[*IN_MOUNT, script, "sh"])
    assert one.alarms() == ["records"]
    before = fake(one.socket)
    assert before.commands() == ["resume"]
    assert one.reload()
    (alarm,) = one.status()["alarms"]
    assert "cannot be put right (No space left on device): make room there" in alarm["why"]
    os.unlink(f"/proc/{one.process.pid}/root{state}/other")
    for _ in range(2):
        assert one.reload()
    assert one.alarms() == [] and one.status()["records"] == "distrusted"
    # Whoever was started in the same hundredth of a second is none that came after that.
    until(lambda: fake(one.socket).commands()[-2:], lambda commands: commands == ["env A=1", "resume"])
    assert set(before.finish()) <= {"resume"}


def test_the_disk_fills_up_later(daemon, fleet, folder):
    """All of the file is there from the start on, so nothing has to be written to the disk for a record."""
    (folder / "state").mkdir(mode=0o700)
    state = folder / "state"
    script = f'mount -t tmpfs -o size=16m,mode=0700 none {state} && exec "$@"'
    one = daemon([rule(env={"A": "1"})], prefix=[*IN_MOUNT, script, "sh"])
    inside = f"/proc/{one.process.pid}/root{state}"
    with pytest.raises(OSError), open(f"{inside}/other", "wb", buffering=0) as other:
        while True:
            assert other.write(bytes(1 << 16)) > 0
    fleet(one.socket, 200, "--together", "--expect", "SetEnvironmentVariable=1").summary()
    one.wait("diagportd: gone ", times=200)
    assert {entry["outcome"] for entry in one.get("/v1/runtimes")["runtimes"]} == {"applied"}
