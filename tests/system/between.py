#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workers of several servers that are hurt between one server and the next: exactly there, where
processes of a build for tests are made to stand (trip.c).

usage: between.py CASE --musterd TRIP_MUSTERD --worker TRIP_WORKER --lie-worker LIE_WORKER
       between.py --list

The job goes on without who is hurt; a worker of the same rank joins in its place; no version is
wrong, and every contribution had one verdict, or went with its session.
"""
import contextlib
import os
import signal
import sys
import tempfile
import time

from base import CALM, HANG_S, LEASE_S, cases, check, main, until
from servers import Job

WORKERS = 4
TELLER = 3  # who ends the job when it is told so; nobody hurts it
# A worker's headers go to all servers one after the other, beginning with that of its rank.
# Then the data of the next step, in ranges.
MOMENTS = {
    "header to one": ["after put header - v15"],
    "header to two": ["after put header - v15", "after put header - 1"],
    "about to the first": ["before put header - v15"],
    "data to one": ["after put header - v15", "before put data - 1", "after put data - 1"],
    "data in the middle": ["after put header - v15", "after put data - 5"],
}
# A server's, at an end that is about the victim: who puts it, and what.
SERVERS = {
    "the leader's answer": (0, "before put answer {rank} 12"),
    "a follower's answer": (1, "before put answer {rank} 12"),
    "another follower's answer, after": (2, "after put answer {rank} 12"),
    "the leader's verdict": (0, "before put verdict {rank} 12"),
}


class Scene(Job):
    """A job of three servers, each of whose processes has a folder for its trip."""

    elems = 12500

    def __init__(self, a, rank, stages, server=None, lease=CALM, sleep_us=2000):
        self.trips = tempfile.TemporaryDirectory()
        self.victim, self.where, self.sleep_us = rank, server, sleep_us
        name = f"rank{rank}" if server is None else "server"
        with open(os.path.join(self.trips.name, name), "w") as f:
            f.write("".join(line + "\n" for line in stages))
        self.base = os.path.join(self.trips.name, name)
        super().__init__(a, 3, "-n", str(WORKERS), "--policy", "backup:3", *lease, workers=0,
                         followers=0, **self.trip(server == 0))
        for index in (1, 2):
            self.joined(index)
        for r in range(WORKERS):
            self.works(r)

    def trip(self, is_where):
        """The environment of a process that stands at the moment, if this is the one."""
        return {"MUSTER_TRIP": self.trips.name} if is_where else {}

    def joined(self, index):
        """A server becomes the member with the lowest number that is free."""
        self.join(**self.trip(self.where == index))
        check("it joins", until(lambda: f"server {index} of 3 joined" in self.leader.said()))

    def works(self, rank, *words):
        self.work(rank, f"sleep_us={self.sleep_us}", "ranges=7", *self.ended_by(TELLER), *words,
                  **self.trip(self.where is None and rank == self.victim))

    def await_(self, what, condition):
        if not until(condition, HANG_S):
            sys.exit(f"between: {what}: {self.leader.said()}")

    def hold(self):
        self.await_("nobody stands at the moment", lambda: os.path.exists(self.base + ".held"))

    def go(self):
        with open(self.base + ".go", "w"):
            pass

    def settle(self, name, statuses):
        """All others end well; so does who has come in its place."""
        codes = [w.end(HANG_S)[0] for w in self.worker]
        status, log = self.leader.end(HANG_S)
        followers = [m.end(HANG_S)[0] for m in self.follower]
        others = [c for i, c in enumerate(codes) if i != self.victim]
        ok = not any(others) and status == 0 and not any(followers)
        check(f"{name}: {codes}, leader {status}, followers {followers}" + ("" if ok else log),
              ok and codes[self.victim] in statuses)
        self.proven("--kills")


def killed_at(a, name, rank, stages, server=None):
    with Scene(a, rank, stages, server) as s:
        s.hold()
        s.worker[rank].signal(signal.SIGKILL)
        s.worker[rank].process.wait()
        s.go()
        s.lost(rank)
        s.where = -1
        s.works(rank, "again=1")
        s.came_again(rank)
        s.end_job()
        s.settle(f"killed, {name}", {-9})


def stopped_at(a, scenes):
    """All of them at the same time, for each has to wait for its lease.

    @scenes: name, rank, stages and server of each."""
    lease = ("--lease", f"{LEASE_S}s")
    with contextlib.ExitStack() as stack:
        played = []
        for name, rank, stages, server in scenes:
            s = stack.enter_context(Scene(a, rank, stages, server, lease, sleep_us=8000))
            s.hold()
            s.worker[rank].signal(signal.SIGSTOP)
            if server is not None:
                s.go()
            played.append((name, rank, s))
        for name, rank, s in played:
            s.await_("it is not ended", lambda s=s, rank=rank:
                     f"rank {rank} was silent for its lease" in s.leader.said())
            s.go()
            s.worker[rank].signal(signal.SIGCONT)
            s.worker[rank].end(HANG_S)
            s.end_job()
            s.settle(f"stopped, {name}", {1})


def killed_between_headers(a):
    """In all orders of servers: worker w begins with server w modulo three."""
    for rank, name in ((0, "header to one"), (2, "header to one"), (1, "header to two"),
                       (0, "about to the first")):
        killed_at(a, f"rank {rank}, {name}", rank, MOMENTS[name])


def killed_amid_data(a):
    for rank, name in ((1, "data to one"), (2, "data in the middle")):
        killed_at(a, f"rank {rank}, {name}", rank, MOMENTS[name])


def stopped_between_headers(a):
    stopped_at(a, [(f"rank {rank}, {name}", rank, MOMENTS[name], None)
                   for rank, name in ((2, "header to one"), (1, "header to two"))])


def killed_while_servers_answer(a):
    for rank, (name, (server, stage)) in enumerate(SERVERS.items()):
        rank %= 3
        killed_at(a, f"rank {rank}, {name}", rank, [stage.format(rank=rank)], server)


def stopped_while_servers_answer(a):
    scenes = []
    for rank, name in ((1, "the leader's answer"), (2, "a follower's answer")):
        server, stage = SERVERS[name]
        scenes.append((f"rank {rank}, {name}", rank, [stage.format(rank=rank)], server))
    stopped_at(a, scenes)


class Gathering(Scene):
    """There are two servers, and the follower stands still where it dials the leader."""

    def __init__(self, a, stage, *options):
        self.trips = tempfile.TemporaryDirectory()
        self.base = os.path.join(self.trips.name, "server")
        with open(self.base, "w") as f:
            f.write(stage + "\n")
        Job.__init__(self, a, 2, "-n", "2", "--commits", "30", *options, workers=2, followers=0)
        self.join(MUSTER_TRIP=self.trips.name)
        self.hold()

    def stops(self, who):
        """The victim stops, and then the follower goes on."""
        self.stopped_one = self.leader.process if who == "leader" else self.follower[0].process
        self.stopped_one.send_signal(signal.SIGSTOP)
        self.go()

    def ends(self):
        """The victim goes on. Return: exit statuses, and what all of them said."""
        self.stopped_one.send_signal(signal.SIGCONT)
        ends = [p.end(HANG_S) for p in (self.leader, *self.follower, *self.worker)]
        said = "".join(words for _, words in ends)
        check("no assertion", "assertion" not in said)
        return [status for status, _ in ends], said


def stopped_while_one_dials_the_other(a):
    """The leader while the follower dials, the follower while and after it does; for less than a
    lease, but longer than one attempt to dial may take, and for longer than a lease."""
    stages = (("leader", "before dial - - 1"), ("follower", "before dial - - 1"),
              ("follower", "after dial - - 1"))
    seconds = LEASE_S / 2
    options = ["--lease", f"{LEASE_S}s", "--server-lease", "90s", "--join-timeout", "300s"]
    with contextlib.ExitStack() as stack:
        scenes = [stack.enter_context(Gathering(a, stage, *options)) for _, stage in stages]
        for (who, _), s in zip(stages, scenes):
            s.stops(who)
        time.sleep(seconds)
        for (who, stage), s in zip(stages, scenes):
            ends, said = s.ends()
            check(f"{who} stopped {stage[:11]} for {seconds} s: {ends}: {said[-300:]}",
                  ends == [0] * 4)
    for who, stage in stages:
        with Gathering(a, stage, "--lease", "800ms", "--join-timeout", "30s") as s:
            s.stops(who)
            time.sleep(1.5)
            ends, said = s.ends()
            check(f"{who} stopped {stage[:11]} for 1.5 s: {ends}",
                  ends == [0] * 4 or 1 in ends and "lease" in said)


def one_link_reset(a):
    """A worker's link with one of the servers breaks by itself: it ends in words, and its rank can
    be had again."""
    for part in range(3):
        with Job(a, 3, "-n", "4", "--policy", "backup:3", *CALM, workers=0) as job:
            words = ["sleep_us=2000", *job.ended_by(TELLER)]
            for rank in range(4):
                if rank == 2:
                    job.work(rank, *words, program=a.lie_worker,
                             MUSTER_LIE=f"{part} header 20 reset")
                else:
                    job.work(rank, *words)
            status, said = job.worker[2].end(HANG_S)
            check(f"it ends in words: {said.strip()[-100:]}", status == 1 and "rank 2" in said)
            job.lost(2)
            job.work(2, "sleep_us=1000", "again=1")
            job.came_again(2)
            job.end_job()
            codes = [w.end(HANG_S)[0] for w in job.worker]
            ends = [p.end(HANG_S)[0] for p in (job.leader, *job.follower)]
            check(f"link {part}: {codes}, servers {ends}",
                  codes == [0, 0, 1, 0, 0] and not any(ends))
            job.proven("--kills")


CASES = cases(killed_between_headers, killed_amid_data, stopped_between_headers,
              killed_while_servers_answer, stopped_while_servers_answer,
              stopped_while_one_dials_the_other, one_link_reset)
# Leases of eight seconds, and of less than one.
main(CASES, "musterd", "worker", "lie-worker",
     clock=("stopped_between_headers", "stopped_while_servers_answer",
            "stopped_while_one_dials_the_other"))
