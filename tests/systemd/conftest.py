# SPDX-License-Identifier: Apache-2.0
"""Each test finds the service running as after a boot, with the policy it asks for."""

import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "dotnet"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "fixtures"))

import apps  # noqa: E402
import inside  # noqa: E402
import rig as rigs  # noqa: E402
import runtimes  # noqa: E402
import services  # noqa: E402
import users  # noqa: E402

NO_RULES = """version: 1
control: { path: /run/diagport/control.sock, read: { groups: [diagport] }, admin: { groups: [diagport-admin] } }
"""


def stop_everything():
    """But for the sockets: nobody is left who connects, and with each stop the rescue waits a second for whoever may."""
    inside.systemctl("stop", inside.RESCUE, inside.METRICS, inside.METRICS_SOCKET, inside.SERVICE, status=None)
    inside.systemctl("reset-failed", status=None)


def remove_drop_ins():
    folders = list(services.UNITS.glob("*.d"))
    for folder in folders:
        shutil.rmtree(folder)
    if folders:
        inside.systemctl("daemon-reload")
    # What a unit of a socket says comes with the socket.
    changed = {folder.name.removesuffix(".d") for folder in folders} & {inside.SOCKET, inside.CONTROL_SOCKET}
    if changed:
        inside.systemctl("stop", *changed)


@pytest.fixture
def service():
    """Starts the service with a policy, or with the one that is there; given back is the pid of the daemon."""

    def start(policy=NO_RULES):
        if policy is not None:
            inside.write_policy(policy)
        inside.systemctl("start", inside.SOCKET, inside.CONTROL_SOCKET, inside.SERVICE)
        return inside.main_pid()

    stop_everything()
    for record in inside.STATE.iterdir():
        record.unlink()
    yield start
    stop_everything()
    remove_drop_ins()


fake = runtimes.maker(runtimes.Fake, "service")
fleet = runtimes.maker(runtimes.Fleet, "service")
somebody = users.somebody


@pytest.fixture(scope="session")
def rig():
    if not os.environ["DIAGPORT_RIG"]:
        pytest.skip("no rig of .NET programs in $DIAGPORT_RIG; dev/test builds one where there is a .NET SDK")
    return rigs.Rig(os.environ["DIAGPORT_RIG"])


@pytest.fixture
def start(service, rig):
    """Starts programs of the rig by name as units, which tell of themselves and run until they are told to end."""
    made = []

    def start_one(name, unit, *lines, environment=None, **options):
        command = [*apps.command(rig, name), "--names", ",".join(apps.UNTOUCHED_VARIABLES), "--wait"]
        made.append(services.Service(unit, command, *lines, environment={**apps.LAUNCH, **(environment or {})}, **options))
        return made[-1]

    yield start_one
    for one in made:
        one.remove()
