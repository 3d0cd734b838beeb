# SPDX-License-Identifier: Apache-2.0
"""System calls that fail, one at a time, in a whole life of a daemon. See scenario.py for what has to hold.

A sample of them; all of them with DIAGPORT_FAULTS_ALL=1. A sample of another seed with DIAGPORT_FAULTS_SEED=N.
"""

import concurrent.futures
import errno
import multiprocessing
import os
import random

import pytest
from faults import Faults
from harness import UNDER
from scenario import ERRORS, PARTS, Scenario, cases

SAMPLE = 120
#: How often a call may be missed that not every life makes.
LIVES = 4
SEED = int(os.environ.get("DIAGPORT_FAULTS_SEED", "1"))

pytestmark = pytest.mark.skipif(bool(UNDER), reason="what the daemon runs under makes calls of its own")


def breaks(case, n_descriptors):
    """What is wrong when that happens; nothing, if all is well. Whatever happens, it has to have happened.

    No two lives make the same number of calls: where one made fewer than planned, an earlier one fails in the next.
    """
    name, nth, *rest = case
    for _ in range(LIVES):
        scenario = Scenario((name, nth, *rest), n_descriptors)
        try:
            scenario.run()
            made = scenario.counts[rest[-1]].get(name, 0)
        except BaseException as wrong:  # What is known about it goes to another process.
            last = "\n    ".join(scenario.daemon.log.seen[-20:]) if scenario.daemon.log else ""
            return f"{case}, as number {nth}: {wrong!r}\n    {last}"
        if scenario.n_struck() == 1:
            return None
        # As many were made and it was missed: the call was in the making when it was told to fail.
        nth = nth if made > nth else made * 3 // 4
    return f"{case}: it never struck: {made} calls were made, number {nth} was to fail, {scenario.n_struck()} did"


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


def calls():
    """{part of a life: {name: how often}}: at the start the same in each life, after that nearly so."""
    lives = [Scenario((None, None, None, part)) for part in PARTS * 3]
    for life in lives:
        life.run()
    counts = {}
    for part in PARTS:
        seen = [life.counts[part] for life in lives if part in life.counts]
        counts[part] = {name: min(each.get(name, 0) for each in seen) for name in set().union(*seen)}
    return counts, lives[0].n_descriptors


def test_each_call_fails_once():
    counts, n_descriptors = calls()
    # Those of the probe's workers have names of their own, and the same rows.
    names = {name.removeprefix("probe.") for part in counts.values() for name in part}
    assert set(ERRORS) == names, "each call has a row, and each row a call"
    chosen = some([case for part in PARTS for case in cases(counts[part], part)])
    with concurrent.futures.ProcessPoolExecutor(4, multiprocessing.get_context("fork")) as pool:
        wrong = [what for what in pool.map(breaks, chosen, [n_descriptors] * len(chosen)) if what]
    assert not wrong, f"{len(wrong)} of {len(chosen)}:\n" + "\n".join(wrong[:10])


def test_what_never_fails_is_no_test():
    assert "it never struck: 0 calls were made" in breaks(("nothing", 0, "EMFILE", "first"), None)


def test_where_fewer_calls_are_made_than_planned_an_earlier_one_fails():
    assert breaks(("accept4", 1000, "EMFILE", "first"), None) is None


@pytest.mark.parametrize(
    "name, error",
    [
        ("accept4", "EMFILE"), ("accept4", "EPERM"), ("epoll_ctl", "ENOMEM"), ("getsockopt", "ENOBUFS"),
        ("open", "EMFILE"), ("probe.opendir", "EMFILE"), ("probe.read", "EIO"), ("pidfd_open", "EMFILE"), ("poll", "ENOMEM"), ("read", "EIO"),
        ("recv", "ENOMEM"), ("send", "ENOBUFS"), ("write", "EAGAIN"),
    ],
)
def test_a_call_fails_for_a_while(name, error):
    """From the time when the daemon is ready on, many times in a row: nobody spins, and all is well afterwards."""
    for _ in range(LIVES):
        scenario = Scenario((name, None, error, "first"))
        scenario.run()
        # Not every life makes every call.
        if scenario.n_struck() > 0:
            return
    raise AssertionError(f"{name} never struck in {LIVES} lives")


def test_a_used_folder_that_cannot_be_read_is_no_new_one(daemon, folder):
    """Whether somebody took the records away, or there were none, is not known then."""
    faults = Faults(folder)
    (folder / "state").mkdir(mode=0o700)
    (folder / "state/records.damaged").write_text("")
    faults.fail("readdir", errno.EIO, times=1000)
    one = daemon([], environment=faults.environment)
    assert faults.hits("readdir") > 0
    assert one.log.count("the file of records is missing from the state folder") == 1
