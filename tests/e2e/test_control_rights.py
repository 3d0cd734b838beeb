# SPDX-License-Identifier: Apache-2.0
"""Who may do what: every row of the table of routes with every kind of right."""

import os
import pathlib
import re

import pytest
from clients import Client, Identity, client_of, fill
from lines import TIMEOUT

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root: cannot ask as other users")

USER_NOBODY, USER_READ, USER_OTHER = 61001, 61002, 61003
GROUP_OWN, GROUP_READ, GROUP_ADMIN = 61010, 61020, 61030

POLICY = f"""
version: 1
listen:
  - {{ name: runtime, path: "{{folder}}/runtime.sock", mode: "0666" }}
control:
  path: "{{folder}}/control.sock"
  mode: "0666"
  read: {{ users: ["{USER_READ}"], groups: ["{GROUP_READ}"] }}
  admin: {{ groups: ["{GROUP_ADMIN}"] }}
"""

# (user, group, supplementary groups) and the rights that this gives.
IDENTITIES = {
    "none": (USER_NOBODY, GROUP_OWN, [], set()),
    "read by user": (USER_READ, GROUP_OWN, [], {"read"}),
    "read by group": (USER_OTHER, GROUP_READ, [], {"read"}),
    "read by supplementary group": (USER_OTHER, GROUP_OWN, [61011, GROUP_READ, 61012], {"read"}),
    "admin by group": (USER_OTHER, GROUP_ADMIN, [], {"read", "admin"}),
    "admin by supplementary group": (USER_OTHER, GROUP_OWN, [GROUP_ADMIN], {"read", "admin"}),
    "read and admin": (USER_READ, GROUP_OWN, [GROUP_ADMIN], {"read", "admin"}),
    "root": (0, 0, [], {"read", "admin"}),
}

MANUAL = pathlib.Path(__file__).resolve().parents[2] / "docs" / "CONTROL.md"

BODIES = {"/v1/explain": '{"attributes": {}}', "/v1/policy/check": "version: 1"}


def documented_routes():
    """(method, path, right) of every row of the table in the manual."""
    manual = MANUAL.read_text()
    table = manual.split("\n## Routes\n")[1].split("\n### ")[0]
    routes = []
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 2 and cells[2] in ("read", "admin"):
            routes += [(*name.split(" ", 1), cells[2]) for name in re.findall("`([^`]*)`", cells[1])]
    assert len(routes) == 15
    return routes


def requests():
    return [(method, path.replace("{id}", "pid:999999"), BODIES.get(path)) for method, path, _ in documented_routes()]


@pytest.fixture
def client(daemon):
    return client_of(daemon, POLICY)


@pytest.mark.parametrize("name", IDENTITIES)
def test_every_route(client, name):
    user, group, groups, rights = IDENTITIES[name]
    answers = Identity(client, user, group, groups).ask_all(requests())
    for (method, path, right), answer in zip(documented_routes(), answers):
        if right not in rights:
            assert answer.status == 403, (method, path, answer)
            wanted = {"read": "control.read or control.admin", "admin": "control.admin"}[right]
            assert f"the right {right} is missing; ask for user {user} or " in answer.detail
            assert f"to be named in {wanted} of the policy" in answer.detail
        elif "{id}" in path:
            assert answer.status == 404 and "pid:999999" in answer.detail, (method, path, answer)
        else:
            assert answer.status == 200, (method, path, answer)


def test_what_is_denied_is_told_and_does_nothing(client):
    before = client.status()["policy"]["loaded_at"]
    assert Identity(client, USER_READ, GROUP_OWN).ask("POST", "/v1/policy/reload").status == 403
    assert client.status()["policy"]["loaded_at"] == before
    event = client.events()[-1]
    assert (event["kind"], event["what"], event["result"]) == ("admin", "reload", "forbidden")
    assert event["uid"] == USER_READ and event["pid"] > 0
    client.daemon.wait(f"admin reload forbidden by pid={event['pid']} uid={USER_READ}")


def test_denied_calls_cannot_flood_the_events(client):
    """Five a second are told of each user, and no machine is slow enough to make two hundred of it."""
    reloads = [("POST", "/v1/policy/reload", None)]
    Identity(client, USER_NOBODY, GROUP_OWN).ask_all(reloads * 200)
    Identity(client, USER_READ, GROUP_OWN).ask_all(reloads)
    denied = [event["uid"] for event in client.events() if event["kind"] == "admin"]
    assert 5 <= denied.count(USER_NOBODY) < 200
    assert denied.count(USER_READ) == 1


ASK_ON_DEMAND = """
connection = Connection("localhost")
for _ in sys.stdin:
    connection.request("GET", "/v1/status")
    response = connection.getresponse()
    response.read()
    print(response.status, flush=True)
"""


def test_rights_change_with_a_reload_on_an_open_connection(client):
    reader = Identity(client, USER_READ, GROUP_OWN).run(ASK_ON_DEMAND)

    def ask():
        reader.stdin.write("go\n")
        return reader.stdout.readline().strip()

    assert ask() == "200"
    assert client.reload(POLICY.replace(f'users: ["{USER_READ}"], ', ""))["ok"]
    assert ask() == "403"
    assert client.reload(POLICY)["ok"]
    assert ask() == "200"
    reader.communicate(timeout=TIMEOUT)
    assert reader.returncode == 0


def test_rights_of_the_socket_change_with_a_reload(client):
    def with_rights(mode, group=None):
        old = 'mode: "0666"\n  read'
        assert old in POLICY
        return POLICY.replace(old, f'mode: "{mode}"\n  ' + (f'group: "{group}"\n  read' if group else "read"))

    def rights():
        status = os.stat(client.daemon.control)
        return status.st_mode & 0o777, status.st_gid

    assert client.reload(with_rights("0660"))["ok"]
    assert rights() == (0o660, os.getegid())
    verdict = client.reload(with_rights("0600", "no-such-group"))
    assert not verdict["ok"] and "no-such-group" in (verdict["why"] or str(verdict["problems"]))
    assert rights() == (0o660, os.getegid())
    # Giving a file away takes a right that is given up once the daemon runs.
    verdict = client.reload(with_rights("0600", GROUP_READ))
    assert not verdict["ok"] and "restart it" in verdict["why"]
    assert rights() == (0o660, os.getegid())
    # A part that fails takes the others back.
    verdict = client.reload(with_rights("0600").replace("/control.sock", "/other.sock"))
    assert not verdict["ok"] and "control.path" in verdict["why"]
    assert rights() == (0o660, os.getegid())


NO_RIGHTS = POLICY.replace("read:", "# read:").replace("admin:", "# admin:")


@pytest.mark.parametrize("options", [[], ["--user"]], ids=["without root", "user"])
def test_the_user_of_the_daemon_is_its_master(daemon, folder, options):
    arguments = [*options, "--config", str(folder / "diagport.yaml"), "--state", str(folder / "state")]
    one = daemon(start=False, user=USER_OTHER, arguments=arguments)
    one.policy_text(fill(one, NO_RIGHTS))
    os.chown(one.config, USER_OTHER, USER_OTHER)
    one.start()
    client = Client(one)
    owner, stranger = Identity(client, USER_OTHER, GROUP_OWN), Identity(client, USER_NOBODY, GROUP_OWN)
    assert owner.ask("GET", "/v1/status").json["user_instance"] == (options == ["--user"])
    assert owner.ask("POST", "/v1/policy/reload").json["ok"]
    assert stranger.ask("GET", "/v1/status").status == 403
    assert client.get("/v1/status").status == 200


def test_without_rights_in_the_policy_only_root_gets_in(daemon):
    client = client_of(daemon, NO_RIGHTS)
    answers = Identity(client, USER_OTHER, GROUP_ADMIN).ask_all(requests())
    assert {answer.status for answer in answers} == {403}
    assert client.get("/v1/status").status == 200
