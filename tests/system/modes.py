#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Policies whose workers do more, or less, than a gradient for each batch: real processes of
muster_train() (programs/micro.c), whose versions and contributions are computed again to the bit.

usage: modes.py CASE --muster MUSTER --worker WORKER [--servers S]
       modes.py CASE --log LOG
       modes.py --list [--threads | --paths]
"""
import functools
import json
import os
import subprocess
import tempfile

import numpy as np

import history
from base import CALM, listing, main, must, status_of
from mode_cases import CASES, MICROS
from policies import policy_of
from vectors import values

RATE = np.float32(2.0 ** -10)  # as micro.c has it
# How many may be given up between two contributions: a worker that is not scheduled in the time of
# grace gives up some of each of the steps that others go on with.
SKIPPED_MAX = 200 * MICROS
# Other figures than another case has, and no other message between threads.
ONE_THREADS_MATTER = {"nonblocking_grace", "deadline_quorum", "local_one", "downpour_fetches_more"}
# As in exact.py: with two servers these come by all lines but for eight of 12400.
PATHS = {"nonblocking_grace", "anytime", "deadline", "local_kill", "local_outer_quorum",
         "easgd_kill", "downpour_kill"}


# ---- what workers contributed, computed again ----


class Batches:
    """The micro-batches of a session, in order."""

    def __init__(self, log):
        self.log, self.next = log, 1

    def sum(self, count):
        """The sum of the next so many, as the worker adds them up."""
        total = None
        for number in range(self.next, self.next + count):
            one = values(self.log.elems, self.log.rank, self.log.incarnation, number)
            total = one if total is None else total + one
        self.next += count
        return total[:: self.log.stride]

    def mean(self):
        """The mean of the next batch."""
        return self.sum(MICROS) / np.float32(MICROS)


def gradients(log, numbers, parameters):
    """The sums of contributions that take what is finished: the next micro-batches, none twice,
    none left
    out. Only where a time of grace may end, what is at hand may be given up; then the next
    contribution begins after that."""
    batches = Batches(log)
    may_skip = log.policy.startswith("nonblocking:") and "," not in log.policy
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
    if policy_of(case.policy).by_micro:
        must(all(push.weight == 1 for push in pushes), "a contribution is no micro-batch")
        ages = [push.verdict[1] - 1 - push.tag for push in pushes
                if push.verdict and push.verdict[0] == history.COUNTED]
        must(max(ages) > 0, "every micro-batch counts in the version after its own")
    if case.partial:
        must(any(push.weight % MICROS for push in pushes), "every contribution ends with a batch")
    quorum = policy_of(case.policy).quorum_of(case.policy)
    if case.policy.startswith("deadline"):
        must(max(proof.counts) <= quorum, f"a version has more than {quorum}: {proof.counts}")
    if case.fewer:
        must(min(proof.counts) < quorum, f"every version has {quorum}")


def prove(case, log):
    try:
        proof = history.prove(log, history.Rules(case.optimizer), case.kills)
    except history.Broken as e:
        must(False, e)
    count = check_contributions(case, proof)
    check_promises(case, proof)
    print(proof)
    print(f"{count} contributions are what their micro-batches make")
    must(count > 0 and proof.newest == case.commits and (case.kills or not proof.lost),
         f"{proof.checked} of {case.commits} versions, {count} contributions")


def play(case, a):
    if a.log:
        prove(case, a.log)
        return
    before = listing()
    with tempfile.TemporaryDirectory() as folder:
        log, figures = os.path.join(folder, "log"), os.path.join(folder, "run.json")
        got = subprocess.run(
            [a.muster, "run", "--grace", "60s", "--json", figures, "--servers", a.servers, *CALM,
             *case.options(), "--", a.worker, *case.arguments(int(a.servers))],
            stdin=subprocess.DEVNULL, timeout=300, env=os.environ | {"MUSTER_HISTORY": log})
        with open(figures) as f:
            status = status_of(json.load(f))
        must(got.returncode == status, f"muster run exited with {got.returncode}, not {status}")
        must(not status or case.kills, "a worker failed that nobody killed")
        prove(case, log)
    left = sorted(listing() - before)
    must(not left, f"left behind: {left}")


# --servers: that share the vector. --log: of a job that was run elsewhere, which is to be proven.
main({name: functools.partial(play, case) for name, case in CASES.items()}, "muster", "worker",
     leave_out=ONE_THREADS_MATTER, paths=PATHS, servers="1", log="")
