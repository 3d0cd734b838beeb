# SPDX-License-Identifier: Apache-2.0
"""A user who lingers: his manager, and an instance of the daemon of his own."""

import json
import pathlib
import pwd

import inside
import pytest
import services
from inside import SERVICE, run

NAME = "somebody"


class User(services.Manager):
    """Somebody, his manager, and his instance."""

    def __init__(self):
        entry = pwd.getpwnam(NAME)
        self.uid, self.home = entry.pw_uid, pathlib.Path(entry.pw_dir)
        self.folder_of_sockets = pathlib.Path(f"/run/user/{self.uid}/diagport")
        self.port = str(self.folder_of_sockets / "runtime.sock")
        self.policy = self.home / "own.yaml"
        units = self.home / ".config/systemd/user"
        self.become = ["setpriv", "--reuid", NAME, "--regid", NAME, "--init-groups", "env", f"HOME={self.home}",
                       f"XDG_RUNTIME_DIR=/run/user/{self.uid}"]
        super().__init__(units, self.home / "services", [*self.become, "systemctl", "--user"])
        self.as_himself("mkdir", "-p", units, self.folder)
        #: For a fake runtime of his.
        self.own = {"user": self.uid, "group": entry.pw_gid, "extra_groups": []}

    def as_himself(self, *command, **options):
        return run(*self.become, *map(str, command), **options)

    def drop_in(self, name, text):
        folder = self.units / f"{SERVICE}.d"
        self.as_himself("mkdir", "-p", folder)
        (folder / f"{name}.conf").write_text(text)
        self.systemctl("daemon-reload")

    def start(self, *rules, **keys):
        """His instance, with a policy of his if there are rules; its pid."""
        if rules or keys:
            for rule in rules:
                rule["match"] = {"container": "any", **rule["match"]}
            self.as_himself("tee", self.policy, input=json.dumps({"version": 1, **keys, "rules": rules}))
            command = f"/usr/local/sbin/diagportd --user --config {self.policy}"
            self.as_himself(*command.split(), "--check")
            self.drop_in("50-policy", f"[Service]\nExecStart=\nExecStart={command}\n")
        self.systemctl("start", SERVICE)
        return self.main_pid()

    def main_pid(self):
        return int(self.prop(SERVICE, "MainPID"))

    def is_active(self):
        return self.prop(SERVICE, "ActiveState") == "active"

    def next_pid(self, before):
        return inside.until(self.main_pid, lambda pid: pid not in (0, before))

    def ctl(self, *arguments, **options):
        return self.as_himself("diagportctl", *arguments, **options)

    def runtimes(self, **filters):
        known = json.loads(self.ctl("--json", "list"))["runtimes"]
        return [one for one in known if all(one[key] == value for key, value in filters.items())]


@pytest.fixture(scope="module")
def somebody():
    run("useradd", "--create-home", NAME)
    run("loginctl", "enable-linger", NAME)
    inside.until(lambda: inside.is_active(f"user@{inside.uid_of(NAME)}.service"))
    return User()
