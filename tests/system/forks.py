#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workers that fork in the middle of a contribution: the session stays the parent's alone.

usage: forks.py CASE --musterd MUSTERD --forked FORKED
       forks.py --list
"""
import contextlib
import os
import signal

import base
from base import HANG_S, Child, cases, check, main

LEASE = 60


class Job(base.Job):
    """A server where workers own, and one that forks."""

    def __init__(self, a, workers, what):
        super().__init__(a, "--workers", str(workers), "--owner", "workers", "--lease", f"{LEASE}s")
        self.forked = Child([a.forked, what], MUSTER_SERVER=self.address)

    def children(self):
        return [self.forked]


def parent_goes_on(a, what, workers=1):
    with Job(a, workers, what) as job:
        code, said = job.forked.end(HANG_S)
        check(f"the worker is well: {said.strip()}", code == 0)
        status, log = job.server.end(HANG_S)
        check("and so is the server", status == 0 and " is gone" not in log)


def child_closes(a):
    parent_goes_on(a, "close")


def child_calls(a):
    parent_goes_on(a, "calls")


def child_opens_its_own(a):
    parent_goes_on(a, "open", workers=2)


def parent_dies(a, what):
    """The child has the parent's descriptors no more, so the parent's end shows long before its
    lease is over."""
    with Job(a, 1, what) as job:
        check("the parent is killed", job.forked.end(HANG_S)[0] == -signal.SIGKILL)
        child = int(job.forked.said().splitlines()[0])
        try:
            status, log = job.server.end(LEASE / 2)
            os.kill(child, 0)
            check(f"the server has noticed: {log.splitlines()[-1]}",
                  status == 1 and "rank 0 is gone" in log)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def parent_dies_while_its_child_lives(a):
    parent_dies(a, "hold")


def parent_dies_while_another_program_lives(a):
    parent_dies(a, "exec")


CASES = cases(child_closes, child_calls, child_opens_its_own, parent_dies_while_its_child_lives,
              parent_dies_while_another_program_lives)
main(CASES, "musterd", "forked")
