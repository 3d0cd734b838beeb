# SPDX-License-Identifier: Apache-2.0
"""Who may do what: every row of the table of routes with every kind of right."""

import os
import re

import pytest

import harness

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

BODIES = {"/v1/explain": '{"attributes": {}}', "/v1/policy/check": "version: 1"}


def documented_routes():
    """(method, path, right) of every row of the table in the manual."""
    manual = (harness.SOURCE / "docs" / "CONTROL.md").read_text()
    table = manual.split("\n## Routes\n")[1].split("\n### ")[0]
    routes = []
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 2 and cells[2] in ("read", "admin"):
            routes += [
                (*name.split(" ", 1), cells[2]) for name in re.findall("`([^`]*)`", cells[1])
            ]
    assert len(routes) == 14
    return routes


def requests():
    return [
        (method, path.replace("{id}", "pid:999999"), BODIES.get(path))
        for method, path, _ in documented_routes()
    ]


@pytest.mark.parametrize("name", IDENTITIES)
def test_every_route(start, name):
    user, group, groups, rights = IDENTITIES[name]
    daemon = start(POLICY)
    answers = harness.Identity(daemon, user, group, groups).ask_all(requests())
    for (method, path, right), answer in zip(documented_routes(), answers):
        if right not in rights:
            assert answer.status == 403, (method, path, answer)
            assert f"the right {right} is missing" in answer.detail
        elif "{id}" in path:
            assert answer.status == 404 and "pid:999999" in answer.detail, (method, path, answer)
        else:
            assert answer.status == 200, (method, path, answer)


def test_what_is_denied_is_told_and_does_nothing(start, spawn):
    daemon = start(POLICY)
    reader = harness.Identity(daemon, USER_READ, GROUP_OWN)
    before = daemon.status()["policy"]["loaded_at"]
    assert reader.ask("POST", "/v1/policy/reload").status == 403
    assert daemon.status()["policy"]["loaded_at"] == before
    event = daemon.events()[-1]
    assert (event["kind"], event["what"], event["result"]) == ("admin", "reload", "forbidden")
    assert event["uid"] == USER_READ and event["pid"] > 0
    assert f"admin reload forbidden by pid={event['pid']} uid={USER_READ}" in daemon.log_text()


def test_denied_calls_cannot_flood_the_events(start):
    daemon = start(POLICY)
    nobody = harness.Identity(daemon, USER_NOBODY, GROUP_OWN)
    nobody.ask_all([("POST", "/v1/policy/reload", None)] * 200)
    denied = [event for event in daemon.events() if event["kind"] == "admin"]
    # Twenty a second are told, and no machine is slow enough to make two hundred of it.
    assert 20 <= len(denied) < 200


def test_rights_change_with_a_reload_on_an_open_connection(start):
    daemon = start(POLICY)
    program = """
import harness
connection = harness.UnixConnection(sys.argv[1])
for _ in sys.stdin:
    print(connection.ask("GET", "/v1/status").status, flush=True)
"""
    client = harness.Identity(daemon, USER_READ, GROUP_OWN).run(program, daemon.control, bufsize=1)

    def ask():
        client.stdin.write("go\n")
        client.stdin.flush()
        return client.stdout.readline().strip()

    assert ask() == "200"
    daemon.write_policy(POLICY.replace(f'users: ["{USER_READ}"], ', ""))
    assert daemon.post("/v1/policy/reload").json["ok"]
    assert ask() == "403"
    daemon.write_policy(POLICY)
    assert daemon.post("/v1/policy/reload").json["ok"]
    assert ask() == "200"
    client.stdin.close()
    assert client.wait(harness.PATIENCE) == 0
    client.stdout.close()


def test_mode_and_group_of_the_socket_change_with_a_reload(start):
    daemon = start(POLICY)
    daemon.write_policy(
        POLICY.replace('mode: "0666"\n  read', f'mode: "0660"\n  group: "{GROUP_READ}"\n  read')
    )
    assert daemon.post("/v1/policy/reload").json["ok"]
    status = daemon.control.stat()
    assert (status.st_mode & 0o777, status.st_gid) == (0o660, GROUP_READ)
    daemon.write_policy(
        POLICY.replace('mode: "0666"\n  read', 'mode: "0600"\n  group: "no-such-group"\n  read')
    )
    verdict = daemon.post("/v1/policy/reload").json
    assert not verdict["ok"] and "no-such-group" in (verdict["why"] or str(verdict["problems"]))
    status = daemon.control.stat()
    assert (status.st_mode & 0o777, status.st_gid) == (0o660, GROUP_READ)


def test_own_user_is_master_of_a_user_instance(folder):
    os.chown(folder.path, USER_OTHER, GROUP_OWN)
    daemon = harness.Daemon(
        folder, POLICY.replace("read:", "# read:").replace("admin:", "# admin:")
    )
    os.chown(daemon.config, USER_OTHER, GROUP_OWN)
    owner = harness.Identity(daemon, USER_OTHER, GROUP_OWN)
    stranger = harness.Identity(daemon, USER_NOBODY, GROUP_OWN)
    program = """
import os
os.execv(sys.argv[1], sys.argv[1:])
"""
    process = owner.run(
        program,
        harness.BUILD / "diagportd",
        "--user",
        "--config",
        daemon.config,
        "--state",
        folder.path / "state",
    )
    daemon.process = process
    harness.wait_for(daemon.is_up, "the control socket")
    assert owner.ask("GET", "/v1/status").json["user_instance"]
    assert owner.ask("POST", "/v1/policy/reload").json["ok"]
    assert stranger.ask("GET", "/v1/status").status == 403
    assert daemon.get("/v1/status").status == 200
    daemon.log.write_text("")
    daemon.stop()
    process.stdin.close()
    process.stdout.close()


def test_without_rights_in_the_policy_only_root_gets_in(start):
    daemon = start(POLICY.replace("read:", "# read:").replace("admin:", "# admin:"))
    admin = harness.Identity(daemon, USER_OTHER, GROUP_ADMIN)
    assert {answer.status for answer in admin.ask_all(requests())} == {403}
    assert daemon.get("/v1/status").status == 200
