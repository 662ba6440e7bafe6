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

    def __init__(self, a, workers, what, transport):
        super().__init__(a, "--workers", str(workers), "--owner", "workers", "--lease",
                         f"{LEASE}s", "--transport", transport)
        self.forked = Child([a.forked, what], MUSTER_SERVER=self.address)

    def children(self):
        return [self.forked]


def inherited(pid):
    """What a process has open of its parent's links: sockets, and what threads sleep on."""
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return [link for link in links if link.startswith(("socket:", "anon_inode:"))]


def parent_goes_on(a, what, workers=1, transport="shm"):
    with Job(a, workers, what, transport) as job:
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


def parent_dies(a, what, transport="shm"):
    """The child has the parent's descriptors no more, so the parent's end shows long before its
    lease is over."""
    with Job(a, 1, what, transport) as job:
        check("the parent is killed", job.forked.end(HANG_S)[0] == -signal.SIGKILL)
        said = job.forked.said().splitlines()
        child = int(next(line for line in said if line.isdigit()))
        try:
            check(f"its child has nothing of its links: {inherited(child)}", not inherited(child))
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


def child_calls_over_tcp(a):
    parent_goes_on(a, "calls", transport="tcp")


def child_opens_its_own_over_tcp(a):
    parent_goes_on(a, "open", workers=2, transport="tcp")


def parent_dies_while_its_child_lives_over_tcp(a):
    parent_dies(a, "hold", "tcp")


CASES = cases(child_closes, child_calls, child_opens_its_own, parent_dies_while_its_child_lives,
              parent_dies_while_another_program_lives, child_calls_over_tcp,
              child_opens_its_own_over_tcp, parent_dies_while_its_child_lives_over_tcp)
main(CASES, "musterd", "forked")
