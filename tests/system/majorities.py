#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ranks that are waited for when servers start in the place of lost ones, and leaders of which no
two go on at once: servers are lost together with a worker, come back after they have been replaced,
or have had a worker for themselves.

usage: majorities.py CASE --musterd MUSTERD --worker GOES_ON --trip-musterd TRIP_MUSTERD
       majorities.py --list
"""
import re
import signal
import socket
import tempfile
import threading
import time

from base import CALM, cases, check, main, must, until
from generations import AGAIN, SMALL, WORKERS, Line, exact, figures, undisturbed
from server import SECONDS, Server

QUICK = ["--return-timeout", "1s"]
LONG = "100000"  # versions: such a job does not end by itself


def began(server):
    """The number of the server's generation, and the version that it began with."""
    found = re.findall(r"goes on from version (\d+), .*: generation (\d+) of", server.said())
    return (int(found[-1][1]), int(found[-1][0])) if found else (0, 0)


class Detour(threading.Thread):
    """The one address of servers that take turns."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.listener = server, socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self):
        while True:
            caller = self.listener.accept()[0]
            try:
                called = socket.create_connection(self.server)
            except OSError:
                caller.close()
                continue
            for ends in ((caller, called), (called, caller)):
                threading.Thread(target=self.pass_on, args=ends, daemon=True).start()

    @staticmethod
    def pass_on(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


# ---- a host with the server and a rank is lost ----

def a_host_is_lost(a, policy, *words):
    """With default options, so the time includes the ten seconds of --return-timeout."""
    with Line(a, "--commits", "60", "--policy", policy, *CALM,
              "--join-timeout", "60s", workers=4) as job:
        job.join_all(*words, workers=4)
        job.reaches(10)
        job.worker[3].kill()
        job.server.kill()
        lost = time.monotonic()
        job.lead()
        must(until(lambda: began(job.server)[0] == 2, SECONDS), f"no start: {job.said()}")
        took = time.monotonic() - lost
        check(f"the start has waited for the fourth rank: {took:.1f} s", took >= 10)
        ends = job.ended(ranks=range(3))
        last = [end for end in ends if end[1] == "60"]
        check(f"three ranks go on to the end: {ends}",
              len(last) >= (3 if policy == "bsp" else 2) and len({end[2] for end in last}) == 1)
        job.is_over()


def host_is_lost_under_bsp(a):
    a_host_is_lost(a, "bsp", *SMALL)


def host_is_lost_under_a_quorum(a):
    a_host_is_lost(a, "backup:3", "comes_back=1", *SMALL)


def rank_without_a_version_counts(a):
    """It computes since the job has begun, so the others have made all versions without it."""
    with Line(a, "--commits", "60", "--policy", "backup:3", *QUICK, *CALM,
              "--join-timeout", "60s", workers=4) as job:
        job.join(0, "elems=1000", "pace_us=3000000", "comes_back=1")
        for rank in (1, 2, 3):
            job.join(rank, "elems=1000", "pace_us=5000", "comes_back=1")
        job.reaches(10)
        job.worker[3].kill()
        job.server.kill()
        check("rank 0 has had no version", job.newest(0) == 0)
        job.lead()
        must(until(lambda: began(job.server)[0] == 2, SECONDS), f"no start: {job.said()}")
        check("rank 0 is said to come back",
              re.search(r"rank 0 joined .*, again", job.server.said()))
        job.reaches(began(job.server)[1] + 1)


def rank_that_waits_for_a_state_brings_its_version(a):
    """Ranks 0 and 1 lack versions and wait for the state of rank 2, which stands still. Then rank 2
    and the server are lost, and the newest version that is left is one that rank 0 or 1 has."""
    with Line(a, "--commits", LONG, "--policy", "backup:1", "--force", "--history", "2",
              "--catch-up", "2", *QUICK, *CALM, "--join-timeout", "60s") as job:
        job.join_all(*SMALL, "comes_back=1")
        job.reaches(5)
        for rank in (0, 1):
            job.stop(rank)
        job.reaches(job.newest() + 20, 2)
        job.stop(2)
        for rank in (0, 1):
            job.worker[rank].process.send_signal(signal.SIGCONT)
        time.sleep(0.3)  # until they wait; it shows nothing if they do not, and is right then, too
        job.server.kill()
        job.worker[2].kill()
        job.lead()
        must(until(lambda: began(job.server)[0] == 2, SECONDS), f"no start: {job.said()}")
        goal = began(job.server)[1] + 5
        for rank in (0, 1):
            job.reaches(goal, rank)


def half_of_the_ranks_do_not_start(a):
    """The other half may be with another leader."""
    with Line(a, "--commits", "40", *QUICK, "--join-timeout", "4s", workers=4) as job:
        job.join_all(*SMALL, workers=4)
        job.reaches(5)
        for rank in (2, 3):
            job.worker[rank].kill()
        job.server.kill()
        job.lead()
        status, log = job.server.end(SECONDS)
        check(f"the start fails with {status}: {log[-900:]}", status == 1 and
              "missing: rank 2, 3; of 4 ranks 2 have come back, and a start without the others "
              "needs 3, more than half" in log)
        check("it has not begun", began(job.server) == (0, 0))


def options_that_need_all_ranks_are_warned_of(a):
    few = "--min-workers 2 is at most half of 4 workers: if a server is lost, a new start will " \
          "need all 4; with --min-workers 3 or more"
    short = "--join-timeout 5 s is not above --return-timeout 10 s"
    patient, plain = ["--server-patience", "1min"], ["--workers", "4"]
    for words, warnings in ((["--min-workers", "2", *patient], [few]),
                            (["--min-workers", "3", *patient], []), (patient, []),
                            (["--min-workers", "2", "--join-timeout", "5s"], []),
                            (["--join-timeout", "5s", *patient], [short])):
        server = Server(a.musterd, *plain, *words)
        until(lambda s=server: "listening on" in s.said(), SECONDS)
        said = server.said()
        server.kill()
        check(f"{words}: {warnings}", [w in said for w in (few, short)]
              == [w in warnings for w in (few, short)])


# ---- a rank that comes later ----

def rank_that_comes_later_counts(a):
    """It has pushed for the version that the generation goes on from, and has not had it."""
    commits = 200
    with tempfile.TemporaryDirectory() as folder, \
            Line(a, "--commits", str(commits), *QUICK, *CALM, "--history", str(commits)) as job:
        a.musterd, plain = a.trip_musterd, a.musterd
        job.trips(folder, "before put answer 2 20\n")
        job.kill_server()
        for rank in range(WORKERS):  # rank 2 pushes first, so another one is answered first
            job.join(rank, "elems=1000", f"pace_us={100 if rank == 2 else 2000}")
        job.is_held()
        a.musterd, job.env = plain, {}
        must(until(lambda: max(job.newest(0), job.newest(1)) == job.newest(2) + 1, SECONDS),
             job.said())
        had = job.newest(2)
        job.worker[2].process.send_signal(signal.SIGSTOP)
        job.kill_server()
        must(until(lambda: began(job.server) == (2, had + 1), SECONDS), job.said())
        job.reaches(had + 3, 0)
        job.worker[2].process.send_signal(signal.SIGCONT)
        last = job.ended()[2]
        check("the rank has all versions", last[1] == str(commits))
        check("and nothing of it was cancelled", figures(last)["cancelled"] == 0)
        check("nor withdrawn", not job.lines(2, "withdrawn"))
        job.is_over()


def rank_of_an_old_line_is_told(a):
    """Rank 2 alone has made versions with the old leader, which the others have not seen."""
    commits = 200
    with tempfile.TemporaryDirectory() as folder, \
            Line(a, "--commits", str(commits), "--policy", "backup:1", "--force", *QUICK, *CALM,
                 "--history", str(commits)) as job:
        a.musterd, plain = a.trip_musterd, a.musterd
        job.trips(folder, "after put answer 2 60\n")
        job.kill_server()
        for rank in range(WORKERS):
            job.join(rank, "comes_back=1", "elems=1000", f"pace_us={5000 if rank == 2 else 2000}")
        job.reaches(5, 2)
        for rank in (0, 1):
            job.worker[rank].process.send_signal(signal.SIGSTOP)
        job.is_held()
        a.musterd, job.env = plain, {}
        job.worker[2].process.send_signal(signal.SIGSTOP)
        had = job.newest(2)
        job.kill_server()
        for rank in (0, 1):
            job.worker[rank].process.send_signal(signal.SIGCONT)
        must(until(lambda: began(job.server)[0] == 2, SECONDS), f"no start: {job.said()}")
        first = began(job.server)[1]
        check(f"versions {first + 1} to {had} are on another line", had > first)
        job.worker[2].process.send_signal(signal.SIGCONT)
        job.ended()
        told = [int(words[1]) for words in job.lines(2, "withdrawn")]
        check(f"rank 2 is told once that they are void: {told}", told == [had - first])
        check("the others are not", not job.lines(0, "withdrawn") + job.lines(1, "withdrawn"))
        one_line(job, first)
        job.is_over()


def one_line(job, first):
    """After that version all ranks have the same of each, rank 2 from the state on that it took."""
    taken = [int(words[1]) for words in job.lines(2, "took")]
    check(f"rank 2 has taken a state: {taken}", taken != [])
    digests = {}
    for rank in range(WORKERS):
        lines = job.lines(rank)
        if rank == 2:
            lines = lines[next(i for i, words in enumerate(lines) if words[0] == "took"):]
        for kind, version, digest in (w[:3] for w in lines if w[0] in ("version", "took", "end")):
            if int(version) > first:
                digests.setdefault(version, set()).add(digest)
    differ = {v: d for v, d in digests.items() if len(d) > 1}
    must(not differ, f"ranks differ at versions {differ}: {job.said()}")


# ---- an old leader that wakes ----

def old_leader_wakes(a):
    """It stands still for three of its leases, while the workers have gone to another server."""
    commits = 400
    digest = undisturbed(a, commits, *SMALL)
    lease = ["--lease", "1s", "--server-lease", "1s"]
    with Line(a, "--commits", str(commits), *lease) as job:
        host, port = job.listen.split(":")
        detour = Detour((host, int(port)))
        job.listen = detour.address
        job.join_all(*SMALL, "wait_ms=20000")
        job.reaches(20)
        job.server.process.send_signal(signal.SIGSTOP)
        still = time.monotonic()
        next_one = Server(a.musterd, *job.patient, *job.options, listen="127.0.0.1:0")
        job.before.append(job.server)
        job.server = next_one
        detour.server = (host, next_one.port)
        must(until(lambda: began(next_one)[0] == 2, SECONDS), f"no start: {job.said()}")
        time.sleep(max(0, still + 3 - time.monotonic()))
        check("the next server makes versions", job.newest() > began(next_one)[1])
        job.before[-1].process.send_signal(signal.SIGCONT)
        status, log = job.before[-1].end(SECONDS)
        check(f"the old one ends with {status}: {log[-300:]}", status == AGAIN)
        exact(job, commits, digest, "-110")


CASES = cases(host_is_lost_under_bsp, host_is_lost_under_a_quorum,
              rank_without_a_version_counts, rank_that_waits_for_a_state_brings_its_version,
              half_of_the_ranks_do_not_start,
              options_that_need_all_ranks_are_warned_of,
              rank_that_comes_later_counts, rank_of_an_old_line_is_told, old_leader_wakes)
if __name__ == "__main__":
    main(CASES, "musterd", "worker", "trip-musterd", clock=("old_leader_wakes",),
         paths=("rank_of_an_old_line_is_told",))
