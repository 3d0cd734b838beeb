# SPDX-License-Identifier: Apache-2.0
"""The service with a daemon whose system calls can be made to fail: tests/faults, in its sandbox."""

import os
import pwd
import shutil

import faults
import inside

LIBRARY = "/usr/local/lib/diagport-faults.so"


class Place:
    """Where the daemon finds what is shared with it."""

    @staticmethod
    def file(name, content):
        path = inside.STATE / name
        path.write_text(content)
        user = pwd.getpwnam("diagport")
        os.chown(path, user.pw_uid, user.pw_gid)
        return str(path)


def install(*lines):
    """For daemons that are started from now on; with more lines for their unit. They must have records already."""
    shutil.copy(faults.LIBRARY, LIBRARY)
    made = faults.Faults(Place)
    variables = {**made.environment, "LD_PRELOAD": LIBRARY}
    lines = ["[Service]", *lines, *(f'Environment="{name}={value}"' for name, value in variables.items())]
    inside.drop_in(inside.SERVICE, "50-test", "\n".join(lines) + "\n")
    return made
