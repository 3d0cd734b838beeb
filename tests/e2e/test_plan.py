# SPDX-License-Identifier: Apache-2.0
"""One whole plan, as a fake runtime sees it."""

import harness


def test_a_plan_is_applied_in_order(daemon, fake, folder):
    hook = folder / "Hook.dll"
    hook.write_bytes((harness.BUILD / "tests/fake/fake-runtime").read_bytes()[:4096])
    one = daemon(
        f"""rules:
  - name: all
    match: all
    env: {{{{ A: "1", OLD: new, GONE: null }}}}
    startup_hooks: [ {{{{ path: {hook} }}}} ]
"""
    )
    runtime = fake(one.socket, "hooks=unchecked", environment={"OLD": "x", "GONE": "y"})
    assert runtime.commands() == [
        "kind",
        "info3",
        "env A=1",
        "env OLD=new",
        "unset GONE",
        f"hook {hook}",
        "resume",
    ]
    assert runtime.end() == 0
    one.wait(r"gone .*outcome=applied")
