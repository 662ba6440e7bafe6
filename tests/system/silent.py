#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Servers that stand still for a while, or for good: what their workers are told, and who pays.

A server that is stopped must neither cost a worker its session nor look healthy; nor may one whose
control thread lives while its data thread does not. A server that makes its memory lives.

usage: silent.py CASE --musterd TRIP_MUSTERD --worker WORKER
"""
import os
import signal
import tempfile
import time

import base
import servers
from base import cases, check, main, until
from server import SECONDS, STATUS, ask_status
from servers import LEASE

SERVER_LEASE = LEASE + 3  # s, where that is what a case is about


class Job(base.Job):
    """A server that can be stopped, and its workers."""

    def __init__(self, a, *options, trips=None):
        super().__init__(a, "-n", "2", "--lease", f"{LEASE}s", *options,
                         **({"MUSTER_TRIP": self.trips(trips)} if trips else {}))
        self.work_all(2, "sleep_us=2000", *self.ended_by(0))
        self.begin(2000)

    def trips(self, stages):
        """Where the server's data thread is held, and how."""
        self.trip = tempfile.TemporaryDirectory()
        with open(os.path.join(self.trip.name, "server"), "w") as f:
            f.write(stages)
        return self.trip.name

    def all_say(self, words):
        return all(words in worker.said() for worker in self.worker)

    def ends_well(self):
        """It has gone on until now, however long this test has taken."""
        self.end_job()
        codes = self.codes(SECONDS)
        status, log = self.server.end(SECONDS)
        check(f"all end well: {codes}, {status}: {log[-300:]}", codes == [0, 0] and status == 0)
        check("nobody was lost", "silent" not in log and "is gone" not in log)


def away_for(a, leases):
    with Job(a) as job:
        job.stopped(leases * LEASE)
        job.ends_well()


def half_a_lease(a):
    away_for(a, 0.5)


def one_and_a_half_leases(a):
    away_for(a, 1.5)


def longer_than_a_lease(a):
    with Job(a, "--server-lease", "50s") as job:
        job.server.process.send_signal(signal.SIGSTOP)
        told = until(lambda: job.all_say("wait again"), SECONDS)
        job.server.process.send_signal(signal.SIGCONT)
        check(f"workers are told: {job.worker[0].said()}", told)
        name = f"the server at {job.address} has been silent for"
        check("by the server's name", job.all_say(name))
        job.ends_well()


def longer_than_the_lease_of_servers(a):
    with Job(a, "--server-lease", f"{SERVER_LEASE}s") as job:
        job.server.process.send_signal(signal.SIGSTOP)
        codes = job.codes(SECONDS)
        job.server.process.send_signal(signal.SIGCONT)
        job.server.stop()
        check(f"the sessions are over: {job.worker[1].said()}",
              codes == [1, 1] and job.all_say(f"--server-lease {SERVER_LEASE} s"))


def data_thread_stands_still(a):
    """Its control thread lives, answers whoever asks, and knows better than to say that all is
    well."""
    with Job(a, "--server-lease", f"{SERVER_LEASE}s", trips="before put answer - 100\n") as job:
        codes = job.codes(SECONDS)
        base = os.path.join(job.trip.name, "server")
        check("the data thread was held", os.path.exists(base + ".held"))
        check("the control thread was not", job.server.say(bytes(16)) is not None)
        with open(base + ".go", "w"):
            pass
        job.server.stop()
        check(f"the sessions are over: {job.worker[0].said()}",
              codes == [1, 1] and job.all_say(f"--server-lease {SERVER_LEASE} s"))


def memory_takes_long_to_make(a):
    """Longer than anybody here would wait for a server that is silent, or for a job to start."""
    gathers = 20  # s, longer than any of them stands still by chance
    with tempfile.TemporaryDirectory() as trip:
        base_name = os.path.join(trip, "server")
        with open(base_name, "w") as f:
            f.write("before open - - 1\n")
        with servers.Job(a, 2, "-n", "2", "--commits", "20", "--lease", f"{LEASE}s",
                         "--join-timeout", f"{gathers}s", workers=0, followers=0,
                         MUSTER_TRIP=trip) as job:
            # The time that they take to come is none of the leader's, which stands still meanwhile,
            # and none of the follower's, which comes last.
            job.leader.process.send_signal(signal.SIGSTOP)
            job.work_all(2)
            check("the workers come", until(lambda: job.leader.unread() == 2, SECONDS))
            follower = job.join("--join-timeout", f"{gathers}s")
            check("the follower comes", until(lambda: job.leader.unread() == 3, SECONDS))
            job.leader.process.send_signal(signal.SIGCONT)
            check("memory is being made",
                  until(lambda: os.path.exists(base_name + ".held"), SECONDS))
            time.sleep(gathers + LEASE)
            with job.leader.connect() as s:
                s.settimeout(SECONDS)
                s.sendall(ask_status())
                check("the leader answers meanwhile", s.recv(8)[6] == STATUS)
            check("nobody has given up",
                  all(child.process.poll() is None for child in (follower, job.leader)))
            with open(base_name + ".go", "w"):
                pass
            codes = job.codes(SECONDS)
            ends = [job.leader.end(SECONDS), follower.end(SECONDS)]
            check(f"all end well: {codes}, {ends}", codes == [0, 0] and
                  [status for status, _ in ends] == [0, 0])
            job.proven()


CASES = cases(half_a_lease, one_and_a_half_leases, longer_than_a_lease,
              longer_than_the_lease_of_servers, data_thread_stands_still,
              memory_takes_long_to_make)
main(CASES, "musterd", "worker")
