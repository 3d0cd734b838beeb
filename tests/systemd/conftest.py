# SPDX-License-Identifier: Apache-2.0
"""Each test finds the service running as after a boot, with the policy it asks for."""

import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "dotnet"))

import inside  # noqa: E402
import runtimes  # noqa: E402

NO_RULES = """version: 1
control: { path: /run/diagport/control.sock, read: { groups: [diagport] }, admin: { groups: [diagport-admin] } }
"""


def stop_everything():
    inside.systemctl("stop", inside.RESCUE, inside.METRICS, inside.METRICS_SOCKET, status=None)
    inside.systemctl("stop", inside.SERVICE, inside.SOCKET, inside.CONTROL_SOCKET, status=None)
    inside.systemctl("reset-failed", status=None)


@pytest.fixture
def service():
    """Starts the service with a policy; given back is the pid of the daemon."""

    def start(policy=NO_RULES):
        inside.write_policy(policy)
        inside.systemctl("start", inside.SOCKET, inside.CONTROL_SOCKET, inside.SERVICE)
        return inside.main_pid()

    stop_everything()
    for record in inside.STATE.iterdir():
        record.unlink()
    yield start
    stop_everything()
    for drop_in in pathlib.Path("/etc/systemd/system").glob("diagport*.d"):
        shutil.rmtree(drop_in)
    inside.systemctl("daemon-reload")


fake = runtimes.maker(runtimes.Fake, "service")
fleet = runtimes.maker(runtimes.Fleet, "service")
