#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workers of several servers that are hurt between one server and the next: exactly there, where
processes of a build for tests are made to stand (trip.c).

usage: between.py CASE --musterd TRIP_MUSTERD --worker TRIP_WORKER --lie-worker LIE_WORKER
       between.py --list

The job goes on without who is hurt; a worker of the same rank joins in its place; no version is
wrong, and every contribution had one verdict, or went with its session.
"""
import os
import signal
import sys
import tempfile
import time

from base import cases, check, main, until
from servers import Job

LEASE = 0.6
WORKERS = 4
# Of a worker: its headers go to all servers one after the other, beginning with that of its rank.
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

    def __init__(self, a, commits, rank, stages, server=None):
        self.trips = tempfile.TemporaryDirectory()
        self.victim, self.where = rank, server
        name = f"rank{rank}" if server is None else "server"
        with open(os.path.join(self.trips.name, name), "w") as f:
            f.write("".join(line + "\n" for line in stages))
        self.base = os.path.join(self.trips.name, name)
        options = ["-n", str(WORKERS), "--policy", "backup:3", "--commits", str(commits),
                   "--lease", f"{int(LEASE * 1000)}ms"]
        super().__init__(a, 3, *options, workers=0, followers=0, **self.trip(server == 0))
        for index in (1, 2):
            self.joined(index)
        for r in range(WORKERS):
            self.works(r)

    def trip(self, is_where):
        """The environment of a process that stands at the moment, if this is the one."""
        return {"MUSTER_TRIP": self.trips.name} if is_where else {}

    def joined(self, index):
        """Seats are taken in the order of coming."""
        self.join(**self.trip(self.where == index))
        check("it joins", until(lambda: f"server {index} of 3 joined" in self.leader.said()))

    def works(self, rank):
        self.work(rank, "sleep_us=2000", "ranges=7",
                  **self.trip(self.where is None and rank == self.victim))

    def await_(self, what, condition):
        if not until(condition, 15):
            sys.exit(f"between: {what}: {self.leader.said()}")

    def hold(self):
        self.await_("nobody stands at the moment", lambda: os.path.exists(self.base + ".held"))

    def go(self):
        with open(self.base + ".go", "w"):
            pass

    def is_lost(self):
        return f"rank {self.victim} " in self.leader.said().replace("joined", "")

    def settle(self, name, statuses):
        """All others end well; so does who has come in its place."""
        codes = [w.end(30)[0] for w in self.worker]
        status, log = self.leader.end(10)
        followers = [m.end(10)[0] for m in self.follower]
        others = [c for i, c in enumerate(codes) if i != self.victim]
        ok = not any(others) and status == 0 and not any(followers)
        check(f"{name}: {codes}, leader {status}, followers {followers}" + ("" if ok else log),
              ok and codes[self.victim] in statuses)
        self.proven("--kills")


def killed_at(a, name, rank, stages, server=None):
    with Scene(a, 120, rank, stages, server) as s:
        s.hold()
        s.worker[rank].signal(signal.SIGKILL)
        s.worker[rank].process.wait()
        s.go()
        s.await_("its loss is not told", s.is_lost)
        s.where = -1
        s.works(rank)
        s.settle(f"killed, {name}", {-9})


def stopped_at(a, name, rank, stages, server=None):
    with Scene(a, 450, rank, stages, server) as s:
        s.hold()
        s.worker[rank].signal(signal.SIGSTOP)
        if server is not None:
            s.go()
        s.await_("it is not ended", lambda: "was silent for its lease" in s.leader.said())
        s.go()
        s.worker[rank].signal(signal.SIGCONT)
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
    for rank, name in ((2, "header to one"), (1, "header to two")):
        stopped_at(a, f"rank {rank}, {name}", rank, MOMENTS[name])


def killed_while_servers_answer(a):
    for rank, (name, (server, stage)) in enumerate(SERVERS.items()):
        rank %= 3
        killed_at(a, f"rank {rank}, {name}", rank, [stage.format(rank=rank)], server)


def stopped_while_servers_answer(a):
    for rank, name in ((1, "the leader's answer"), (2, "a follower's answer")):
        server, stage = SERVERS[name]
        stopped_at(a, f"rank {rank}, {name}", rank, [stage.format(rank=rank)], server)


class Gathering(Scene):
    """Of two servers the follower stands where it dials the leader."""

    def __init__(self, a, stage):
        self.trips = tempfile.TemporaryDirectory()
        self.base = os.path.join(self.trips.name, "server")
        with open(self.base, "w") as f:
            f.write(stage + "\n")
        Job.__init__(self, a, 2, "-n", "2", "--commits", "30", "--lease", "800ms",
                     "--join-timeout", "4s", workers=2, followers=0)
        self.join(MUSTER_TRIP=self.trips.name)
        self.hold()

    def ends(self):
        return [self.leader.end(10)[0], *(c.end(10)[0] for c in (*self.follower, *self.worker))]


def stopped_while_one_dials_the_other(a):
    """The leader while the follower dials, the follower while and after it does; for less than a
    lease, and for longer."""
    for who, stage in (("leader", "before dial - - 1"), ("follower", "before dial - - 1"),
                       ("follower", "after dial - - 1")):
        for seconds in (0.4, 1.5):
            with Gathering(a, stage) as s:
                victim = s.leader.process if who == "leader" else s.follower[0].process
                victim.send_signal(signal.SIGSTOP)
                s.go()
                time.sleep(seconds)
                victim.send_signal(signal.SIGCONT)
                ends = s.ends()
                said = s.leader.said() + s.follower[0].end(1)[1]
                check("no assertion", "assertion" not in said)
                check(f"{who} stopped {stage[:11]} for {seconds} s: {ends}",
                      ends == [0] * 4 or seconds > 1 and 1 in ends and "lease" in said)


def one_link_reset(a):
    """A worker's link with one of the servers breaks by itself: it ends in words, and its rank can
    be had again."""
    for part in range(3):
        with Job(a, 3, "-n", "4", "--policy", "backup:3", "--commits", "100", workers=0) as job:
            for rank in range(4):
                if rank == 2:
                    job.work(rank, "sleep_us=2000", program=a.lie_worker,
                             MUSTER_LIE=f"{part} header 20 reset")
                else:
                    job.work(rank, "sleep_us=2000")
            status, said = job.worker[2].end(10)
            check(f"it ends in words: {said.strip()[-100:]}", status == 1 and "rank 2" in said)
            job.work(2, "sleep_us=1000")
            codes = [w.end(20)[0] for w in job.worker]
            ends = [job.leader.end(10)[0], *(m.end(10)[0] for m in job.follower)]
            check(f"link {part}: {codes}, servers {ends}",
                  codes == [0, 0, 1, 0, 0] and not any(ends))
            job.proven("--kills")


CASES = cases(killed_between_headers, killed_amid_data, stopped_between_headers,
              killed_while_servers_answer, stopped_while_servers_answer,
              stopped_while_one_dials_the_other, one_link_reset)
main(CASES, "musterd", "worker", "lie-worker")
