#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Policies whose workers do more, or less, than a gradient for each batch: real processes of
muster_train() (programs/micro.c), whose versions and contributions are computed again to the bit.

usage: modes.py CASE --muster MUSTER --worker WORKER [--servers S]
       modes.py --list [--threads]
"""
import dataclasses
import functools
import os
import subprocess
import tempfile

import numpy as np

import history
from base import CALM, listing, main, must
from policies import policy_of
from vectors import values

RATE = np.float32(2.0 ** -10)  # as micro.c has it
MICROS = 4  # micro-batches of a batch
SKIPPED_MAX = 4 * MICROS  # how many may be given up between two contributions
SLOW = ["sleep_us=500", "3:sleep_us=3000"]  # rank 3 crawls
DIES = ["2:die=30"]


@dataclasses.dataclass(frozen=True)
class Case:
    policy: str
    commits: int = 60
    workers: int = 4
    words: tuple = tuple(SLOW)
    never: tuple = ()  # verdicts that nobody may have
    partial: bool = False  # some contribution ends in the middle of a batch
    fewer: bool = False  # some version has fewer contributions than its quorum

    @property
    def kills(self):
        return any("die=" in word for word in self.words)


CASES = {
    # Nobody is late, and so all micro-batches count that are handed in.
    "nonblocking": Case("nonblocking", 100, never=("late", "stale", "refused"), partial=True),
    "nonblocking_grace": Case("nonblocking:2", 100, never=("stale", "refused"), partial=True),
    "nonblocking_kill": Case("nonblocking", 100, words=(*SLOW, *DIES), partial=True),
    "anytime": Case("anytime:10", 40, never=("late", "stale", "refused"), partial=True),
    "anytime_kill": Case("anytime:10", 40, words=(*SLOW, *DIES)),
    # A batch of rank 3 takes at least 200 ms, so a step cannot have it by its deadline.
    "deadline": Case("deadline:60,4", 30, words=("sleep_us=500", "3:sleep_us=50000"), fewer=True),
    "deadline_quorum": Case("deadline:60000,3", 60),
    "deadline_kill": Case("deadline:60,4", 30, words=(*SLOW, *DIES)),
    "local": Case("local:3", 40, never=("late", "stale", "refused")),
    "local_one": Case("local:1", 40, never=("late", "stale", "refused")),
    "local_quorum": Case("local:3,3", 60),
    "local_kill": Case("local:3,-1", 40, words=(*SLOW, *DIES)),
    "easgd": Case("easgd:3,0.25", 100, never=("late", "stale", "refused")),
    "easgd_kill": Case("easgd:3,0.25", 100, words=(*SLOW, *DIES)),
    "easgdsync": Case("easgdsync:3,0.225", 40, never=("late", "stale", "refused")),
    "downpour": Case("downpour:2,3", 100, never=("late", "stale", "refused")),
    "downpour_fetches_more": Case("downpour:5,1", 60, never=("late", "stale", "refused")),
    "downpour_kill": Case("downpour:2,3", 100, words=(*SLOW, *DIES)),
}
# Other figures than another case has, and no other message between threads.
ONE_THREADS_MATTER = {"nonblocking_grace", "deadline_quorum", "local_one", "downpour_fetches_more"}
ELEMS = 333
DELTAS = ("local", "easgd", "easgdsync")


# ---- what workers contributed, computed again ----


class Batches:
    """The micro-batches of a session, in order."""

    def __init__(self, log):
        self.log, self.next = log, 1

    def sum(self, count):
        """Of the next so many; as the worker adds them up."""
        total = None
        for number in range(self.next, self.next + count):
            one = values(self.log.elems, self.log.rank, self.log.incarnation, number)
            total = one if total is None else total + one
        self.next += count
        return total[:: self.log.stride]

    def mean(self):
        """Of the next batch."""
        return self.sum(MICROS) / np.float32(MICROS)


def gradients(log, numbers, parameters):
    """Of contributions that take what is finished: the next micro-batches, none twice, none left
    out. Only where a time of grace may end, what is at hand may be given up; then the next
    contribution begins behind that."""
    batches = Batches(log)
    may_skip = log.policy.startswith("nonblocking:")
    for push in log.pushes.values():
        begin, skipped = batches.next, 0
        wanted = batches.sum(int(push.weight))
        while may_skip and skipped < SKIPPED_MAX and wanted.tobytes() != push.gradient().tobytes():
            skipped += 1
            batches.next = begin + skipped
            wanted = batches.sum(int(push.weight))
        yield push, wanted


def differences(log, numbers, parameters):
    """Steps on the version that the push is tagged with."""
    batches = Batches(log)
    for push in log.pushes.values():
        x = base = parameters[push.tag]
        for _ in range(int(numbers[0])):
            x = x - RATE * batches.mean()
        yield push, x - base


def elastic(log, numbers, parameters):
    """Steps on parameters of the worker's own, which move towards the version of the tag."""
    batches, x = Batches(log), parameters[log.outcomes[0].version]
    for push in log.pushes.values():
        for _ in range(int(numbers[0])):
            x = x - RATE * batches.mean()
        z = np.float32(numbers[1]) * (x - parameters[push.tag])
        x = x - z
        yield push, z


def accrued(log, numbers, parameters):
    """The sum of the mean gradients of so many batches."""
    batches = Batches(log)
    for push in log.pushes.values():
        total = batches.mean()
        for _ in range(int(numbers[0]) - 1):
            total = total + batches.mean()
        yield push, total


CONTRIBUTIONS = {"local": differences, "easgd": elastic, "easgdsync": elastic, "downpour": accrued}


def check_contributions(case, proof):
    """Return: how many were compared."""
    name, _, numbers = case.policy.partition(":")
    again, count = CONTRIBUTIONS.get(name, gradients), 0
    for log in proof.logs:
        try:
            for push, wanted in again(log, numbers.split(","), proof.parameters):
                must(push.gradient().tobytes() == wanted.tobytes(),
                     f"{push}: it is not what its micro-batches make")
                count += 1
        except KeyError as e:  # a version that nobody is left to tell of
            must(case.kills, f"{log.path}: version {e} could not be computed again")
    return count


# ---- what a policy promises ----


def check_promises(case, proof):
    for verdict in case.never:
        proof.must_not_have(history.VERDICTS.index(verdict))
    pushes = [push for log in proof.logs for push in log.pushes.values()]
    if case.partial:
        must(any(push.weight % MICROS for push in pushes), "every contribution ends with a batch")
    quorum = policy_of(case.policy).quorum_of(case.policy)
    if case.policy.startswith("deadline"):
        must(max(proof.counts) <= quorum, f"a version has more than {quorum}: {proof.counts}")
    if case.fewer:
        must(min(proof.counts) < quorum, f"every version has {quorum}")


def play(case, a):
    elems = ELEMS + (4096 * int(a.servers) if a.servers != "1" else 0)
    optimizer = "add" if case.policy.split(":")[0] in DELTAS else "sgd:lr=0.1,momentum=0.9"
    before = listing()
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        got = subprocess.run(
            [a.muster, "run", "-n", str(case.workers), "--grace", "60s", "--servers", a.servers,
             *CALM, "--policy", case.policy, "--optimizer", optimizer, "--commits",
             str(case.commits), "--", a.worker, str(elems), str(MICROS), *case.words],
            stdin=subprocess.DEVNULL, timeout=300, env=os.environ | {"MUSTER_HISTORY": log})
        must(got.returncode == 0, f"muster run exited with {got.returncode}")
        try:
            proof = history.prove(log, history.Rules(optimizer), case.kills)
        except history.Broken as e:
            must(False, e)
        count = check_contributions(case, proof)
        check_promises(case, proof)
    print(proof)
    print(f"{count} contributions are what their micro-batches make")
    must(count > 0 and proof.newest == case.commits and (case.kills or not proof.lost),
         f"{proof.checked} of {case.commits} versions, {count} contributions")
    left = sorted(listing() - before)
    must(not left, f"left behind: {left}")


# --servers: that share the vector, of which each has a part.
main({name: functools.partial(play, case) for name, case in CASES.items()}, "muster", "worker",
     leave_out=ONE_THREADS_MATTER, servers="1")
