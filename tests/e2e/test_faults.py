# SPDX-License-Identifier: Apache-2.0
"""System calls that fail, one at a time, in a whole life of a daemon. See scenario.py for what has to hold.

A sample of them; all of them with DIAGPORT_FAULTS_ALL=1. A sample of another seed with DIAGPORT_FAULTS_SEED=N.
"""

import concurrent.futures
import multiprocessing
import os
import random

import pytest
from harness import UNDER
from scenario import Scenario, cases

SAMPLE = 120
SEED = int(os.environ.get("DIAGPORT_FAULTS_SEED", "1"))

pytestmark = pytest.mark.skipif(bool(UNDER), reason="what the daemon runs under makes calls of its own")


def breaks(case, n_descriptors):
    """What is wrong when that happens; nothing, if all is well."""
    scenario = Scenario(case, n_descriptors)
    try:
        scenario.run()
        return None
    except BaseException as wrong:  # What is known about it goes to another process.
        last = "\n    ".join(scenario.daemon.log.seen[-20:]) if scenario.daemon.log else ""
        return f"{case}: {wrong!r}\n    {last}"


def some(every):
    """All names are in a sample, each as often as its share, and always the same ones."""
    if os.environ.get("DIAGPORT_FAULTS_ALL"):
        return every
    dice = random.Random(SEED)
    names = {}
    for case in every:
        names.setdefault((case[0], case[2]), []).append(case)
    one_of_each = [dice.choice(of_name) for of_name in names.values()]
    return one_of_each + dice.sample(every, max(0, SAMPLE - len(one_of_each)))


def test_each_call_fails_once():
    first = Scenario()
    counts = first.run()
    for _ in range(2):
        again = Scenario(None, first.n_descriptors).run()
        counts = {name: min(count, again.get(name, 0)) for name, count in counts.items()}
    # The start of the daemon's life is the same each time, the rest nearly so.
    chosen = some(cases(counts))
    with concurrent.futures.ProcessPoolExecutor(4, multiprocessing.get_context("fork")) as pool:
        wrong = [what for what in pool.map(breaks, chosen, [first.n_descriptors] * len(chosen)) if what]
    assert not wrong, f"{len(wrong)} of {len(chosen)}:\n" + "\n".join(wrong[:10])


@pytest.mark.parametrize(
    "name, error",
    [
        ("accept4", "EMFILE"), ("accept4", "EPERM"), ("epoll_ctl", "ENOMEM"), ("getsockopt", "ENOBUFS"),
        ("open", "EMFILE"), ("opendir", "EMFILE"), ("pidfd_open", "EMFILE"), ("poll", "ENOMEM"), ("read", "EIO"),
        ("recv", "ENOMEM"), ("send", "ENOBUFS"), ("write", "EAGAIN"),
    ],
)
def test_a_call_fails_for_a_while(name, error):
    """From the time when the daemon is ready on, many times in a row: nobody spins, and all is well afterwards."""
    Scenario((name, None, error)).run()
