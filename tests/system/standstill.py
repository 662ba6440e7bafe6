#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Jobs of several servers, of which one is stopped for a while, or for good: for how long the
others wait for it, and what they say when they do not any more.

usage: standstill.py CASE --musterd MUSTERD --worker WORKER
       standstill.py --list
"""
import contextlib
import re
import signal
import time

from base import cases, check, main
from server import SECONDS
from servers import LEASE, LONG, Job, all_fail

FROZEN = [*LONG[:-1], f"{LEASE}s", "--server-lease", f"{LEASE}s"]
GIVEN_UP = f"{LEASE} s (--server-lease)"


def follower_frozen(a):
    with Job(a, 3, *FROZEN) as job:
        job.runs()
        job.hurt(job.follower[1], signal.SIGSTOP)
        since = time.monotonic()
        all_fail(job, f"was silent for {GIVEN_UP}", job.follower[1:])
        check("no later than its lease says", time.monotonic() - since < 10 * LEASE)
        named = re.search(r"has failed: .*\(server \d of 3 \(127.0.0.1:\d+\) was silent for "
                          + re.escape(GIVEN_UP), job.leader.said())
        check("by its name", named)
        job.follower[1].signal(signal.SIGCONT)
        status, log = job.follower[1].end(SECONDS)
        check(f"it wakes, and goes: {log.splitlines()[-1]}", status == 1)


def leader_frozen(a):
    with Job(a, 3, *FROZEN) as job:
        job.runs()
        job.leader.process.send_signal(signal.SIGSTOP)
        for follower in job.follower:
            status, log = follower.end(10 * LEASE)
            check(f"a follower goes: {log.splitlines()[-1]}",
                  status == 1 and f"the leader was silent for {GIVEN_UP}" in log)
        for worker in job.worker:
            status, said = worker.end(SECONDS)
            # By its own count, or because followers have gone.
            check(f"a worker blames the leader: {said.strip()}",
                  status == 1 and re.search(rf"server 0 (\(of 0 to 2\) )?at {job.address},? "
                                            "(is|has been) silent", said))
        job.leader.process.send_signal(signal.SIGCONT)
        status, log = job.leader.end(SECONDS)
        why = re.search(r"has failed: (.*)", log)[1]
        # Which of its threads reads first what happened meanwhile is chance.
        check(f"the leader wakes, and blames no server: {why}",
              status == 1 and re.search("gives up: the leader was silent|fewer than 1 live|"
                                        r"rank \d is gone: its connection closed", why))
        job.proven("--kills")


def briefly(a, victim):
    """Away for less than a lease: nothing is lost, and nothing is said twice."""
    with Job(a, 3, "-n", "4", "--policy", "backup:3", workers=0) as job:
        job.work_all(4, "sleep_us=300", *job.until_told())
        job.runs()
        for _ in range(4):
            victim(job).send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            victim(job).send_signal(signal.SIGCONT)
            time.sleep(0.05)
        job.goes_on()
        job.end_job()
        ends = [child.end(SECONDS)[0] for child in (*job.worker, *job.follower)]
        check(f"all end well: {ends}", not any(ends) and job.leader.end(SECONDS)[0] == 0)
        job.proven()


def longer_than_a_lease(a, victim):
    """As long as workers wait for a server, servers wait for each other: nothing is lost. This also
    holds when
    it is away once more, until no time passes for workers any more."""
    with Job(a, 2, "-n", "3", "--commits", "600", "--lease", f"{LEASE}s",
             words=("sleep_us=1000",)) as job:
        job.runs()
        for leases in (1.2, 0.6):
            victim(job).send_signal(signal.SIGSTOP)
            time.sleep(leases * LEASE)
            victim(job).send_signal(signal.SIGCONT)
            time.sleep(0.2)
        ends = [child.end(SECONDS) for child in (*job.worker, *job.follower)]
        status, log = job.leader.end(SECONDS)
        said = log + "".join(said for _, said in ends)
        codes = [code for code, _ in ends]
        check(f"all end well: {codes}, {status}" + ("" if status == 0 else said),
              not any(codes) and status == 0)
        check("nobody was given up", "was silent" not in said and "is gone" not in said)
        job.proven()


def follower_away_for_longer_than_a_lease(a):
    longer_than_a_lease(a, lambda job: job.follower[0].process)


def leader_away_for_longer_than_a_lease(a):
    longer_than_a_lease(a, lambda job: job.leader.process)


def follower_away(a, seconds, *options):
    """The follower of a job, and of another beside it, for in one of them it may be away at a
    moment at which nobody could be blamed."""
    with contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(Job(a, 2, "-n", "3", "--commits", "60", *options,
                                        words=("sleep_us=3000", "2:sleep_us=40000")))
                for _ in range(2)]
        for job in jobs:
            job.runs()
        for job in jobs:
            job.follower[0].signal(signal.SIGSTOP)
        time.sleep(seconds)
        for job in jobs:
            job.follower[0].signal(signal.SIGCONT)
        for job in jobs:
            ends = [child.end(SECONDS)[0] for child in (*job.worker, *job.follower)]
            check(f"nobody is evicted: {ends}",
                  not any(ends) and job.leader.end(SECONDS)[0] == 0)
            job.proven()


def follower_away_for_longer_than_patience(a):
    """A worker that has told the leader is not blamed for what the follower has not."""
    follower_away(a, 7.5, "--lease", "20s", "--patience", "6s")


def follower_away_for_longer_than_lease_and_patience(a):
    """No time passes for workers while a server is silent: neither for what they have told one
    server and not the other, nor for the answers that lie at that one."""
    follower_away(a, 14.5, "--lease", "6500ms", "--patience", "7s", "--server-lease", "60s")


def follower_away_briefly(a):
    briefly(a, lambda job: job.follower[1].process)


def leader_away_briefly(a):
    briefly(a, lambda job: job.leader.process)


CASES = cases(follower_frozen, leader_frozen, follower_away_for_longer_than_a_lease,
              leader_away_for_longer_than_a_lease, follower_away_for_longer_than_patience,
              follower_away_for_longer_than_lease_and_patience, follower_away_briefly,
              leader_away_briefly)
# Leases and patience of seven seconds, or some more. The servers that are away briefly have a lease
# of 30 s.
main(CASES, "musterd", "worker",
     clock=("follower_frozen", "leader_frozen", "follower_away_for_longer_than_a_lease",
            "leader_away_for_longer_than_a_lease", "follower_away_for_longer_than_patience",
            "follower_away_for_longer_than_lease_and_patience"))
