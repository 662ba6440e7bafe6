#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Jobs whose number of workers changes while they run: by muster workers, or by another --workers
of the server that takes the place of one that is lost.

usage: resized.py CASE --musterd MUSTERD --muster MUSTER --worker GOES_ON --library LIBMUSTER
       resized.py --list
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

import base
from base import HERE, Child, cases, check, main, must, until
from generations import Line, figures
from server import SECONDS

OVER = -43  # EIDRM
WORDS = ["pace_us=2000", "comes_back=1"]


class Resized(Line):
    def __init__(self, a, workers, *options, **how):
        super().__init__(a, "--policy", "bsp", *options, workers=workers, **how)
        self.ranks, self.rank_of = workers, []
        # Each of several servers has 4096 elements at least.
        self.elems = 300 if how.get("servers", 1) == 1 else 8192

    def ask(self, *words):
        """muster workers: the exit status, and what it says."""
        done = subprocess.run([self.a.muster, "workers", *map(str, words), self.listen],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)
        return done.returncode, done.stdout

    def goes_on_with(self, workers):
        """Asks for that number, and starts ranks that are new."""
        status, said = self.ask(workers)
        check(f"muster workers {workers}: {said.strip()}",
              status == 0 and f"goes on with {workers} worker" in said)
        self.has(workers)

    def has(self, workers):
        for rank in range(self.ranks, workers):
            self.join(rank, *WORDS)
        before, self.ranks = self.ranks, workers
        for rank in range(workers, before):
            self.is_told(rank)

    def is_told(self, rank):
        """It is over for this rank, in words."""
        worker = [w for w, r in zip(self.worker, self.rank_of) if r == rank][-1]
        status, said = worker.end(SECONDS)
        last = " ".join(sum(self.lines(rank, "error")[-1:], []))
        check(f"rank {rank} ends with {status}: {last}",
              status == 3 and last.startswith(f"error {OVER} ") and
              f"rank {rank} is over: " in last and f"has {self.ranks} worker" in last)

    def join(self, rank, *words):
        self.rank_of.append(rank)
        return super().join(rank, f"elems={self.elems}", *words)

    def is_at(self, more):
        """So many versions have been made since, and each rank has a part in them. A rank that has
        taken a state has a version, and need not have counted in any."""
        since, ranks = max(self.newest(rank) for rank in range(self.ranks)), range(self.ranks)
        for rank in ranks:
            self.reaches(since + more, rank)

        def all_count():
            told = [of for version, told in self.sets().items() if version > since
                    for _, of in told]
            return set(ranks) <= {rank for of in told for rank in of}
        must(until(all_count, SECONDS), f"not all ranks count: {self.said()}")

    def sets(self):
        """By version, what each rank says: its digest and the ranks in it. The last version of a
        rank that is over may have been made again: more than half of the ranks begin without it."""
        found, last = {}, {}
        for rank in range(16):
            for words in self.lines(rank, "version"):
                said = words[2], tuple(map(int, words[3:]))
                last[rank] = int(words[1]), said
                if rank < self.ranks:
                    found.setdefault(int(words[1]), set()).add(said)
        for rank in range(self.ranks, 16):
            for words in self.lines(rank, "version"):
                version, said = int(words[1]), (words[2], tuple(map(int, words[3:])))
                if (version, said) != last[rank]:
                    found.setdefault(version, set()).add(said)
        return found


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def digest(parameter):
    crc = 0xFFFFFFFF
    for byte in parameter.tobytes():
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return f"{crc ^ 0xFFFFFFFF:08x}"


def step(parameter, version, ranks):
    """What goes_on.c pushes and applies, computed here."""
    bits, i = parameter.view(np.uint32) % 13, np.arange(len(parameter), dtype=np.uint64)
    total = sum(((version * 31 + rank * 7 + i + bits) % 1000).astype(np.float32) for rank in ranks)
    return parameter - np.float32(0.001) * (total / np.float32(len(ranks)))


def are_exact(job, numbers):
    """Each version is the mean of its ranks, every rank has its bits, and all ranks that there were
    have made versions together.
    @numbers: of workers, in the order in which the job had them."""
    parameter, had, sets = np.zeros(job.elems, np.float32), [], job.sets()
    for version in range(max(sets)):
        told = sets[version + 1]
        must(len(told) == 1, f"version {version + 1} differs: {told}")
        (said, ranks), = told
        # Nobody waits for a new rank that has its state a moment later.
        most = max(numbers[max(0, len(had) - 1):len(had) + 1])
        must(max(ranks) < most, f"version {version + 1} is of {ranks}")
        if ranks == tuple(range(len(ranks))) and len(ranks) in numbers[len(had):len(had) + 1]:
            had.append(len(ranks))
        parameter = step(parameter, version, ranks)
        must(digest(parameter) == said, f"version {version + 1} of {ranks} is not their mean")
    check(f"{len(sets)} versions are exact, of {had} ranks", had == numbers)


def ends(job):
    """The job ends well, and each rank that is left has one verdict of each contribution."""
    status, said = job.ask_finish()
    check(f"it is finished: {said.strip()[-200:]}", status == 0)
    for rank in range(job.ranks):
        worker = [w for w, r in zip(job.worker, job.rank_of) if r == rank][-1]
        must(worker.end(SECONDS)[0] == 0, job.said())
        bad = job.lines(rank, "wrong") + job.lines(rank, "error")
        must(not bad, f"rank {rank}:", *bad)
        told = figures(job.lines(rank, "end")[0])
        must(told["pushed"] == told["counted"] + told["cancelled"] + told["late"], told)
    job.is_over()


def finish(job):
    done = subprocess.run([job.a.muster, "finish", job.listen], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=SECONDS, check=False)
    return done.returncode, done.stdout


Resized.ask_finish = finish


def four_grow_to_eight_and_shrink_to_three(a):
    with Resized(a, 4) as job:
        job.join_all(*WORDS, workers=4)
        job.is_at(10)
        job.goes_on_with(8)
        job.is_at(10)
        job.goes_on_with(3)
        job.is_at(10)
        ends(job)
        are_exact(job, [4, 8, 3])


def in_place_of_a_lost_server(job, workers):
    """The server is killed, and the next one has this number in its command line."""
    job.server.kill()
    job.options[1] = str(workers)
    job.lead()
    job.has(workers)


def another_command_line(a):
    with Resized(a, 3) as job:
        job.join_all(*WORDS, workers=3)
        job.is_at(5)
        in_place_of_a_lost_server(job, 5)
        job.is_at(5)
        job.kill_server()
        job.is_at(5)
        in_place_of_a_lost_server(job, 2)
        job.is_at(5)
        ends(job)
        are_exact(job, [3, 5, 2])


def old_command_line_goes_on_with_the_number_in_force(a):
    with Resized(a, 3) as job:
        job.join_all(*WORDS, workers=3)
        job.is_at(5)
        job.goes_on_with(5)
        for _ in range(2):
            job.is_at(5)
            job.kill_server()  # which says --workers 3
        job.is_at(5)
        job.goes_on_with(2)
        job.is_at(5)
        job.kill_server()
        job.is_at(5)
        ends(job)
        are_exact(job, [3, 5, 2])


def server_is_killed_while_new_ranks_are_awaited(a):
    with Resized(a, 3) as job:
        job.join_all(*WORDS, workers=3)
        job.is_at(5)
        check("it is asked for", job.ask(4)[0] == 0)
        must(until(lambda: "goes on with 4 workers" in job.server.said(), SECONDS), job.said())
        job.kill_server()
        job.has(4)
        job.is_at(5)
        ends(job)
        are_exact(job, [3, 4])


def two_servers_begin_anew(a):
    with Resized(a, 2, servers=2) as job:
        job.join_all(*WORDS, workers=2)
        job.is_at(5)
        job.goes_on_with(4)
        job.is_at(5)
        job.goes_on_with(3)
        job.is_at(5)
        check("both servers are the same processes",
              all(s.process.poll() is None for s in (job.server, *job.follower)))
        ends(job)
        are_exact(job, [2, 4, 3])


def over_tcp(a):
    with Resized(a, 2, transport="tcp") as job:
        job.join_all(*WORDS, workers=2)
        job.is_at(5)
        job.goes_on_with(3)
        job.is_at(5)
        job.goes_on_with(1)
        job.is_at(5)
        ends(job)
        are_exact(job, [2, 3, 1])


# ---- servers own ----

class Served(Resized):
    """The servers go on from the checkpoint that they write when the generation ends."""

    def __init__(self, a, workers, state, *options):
        super().__init__(a, workers, "--optimizer", "sgd:lr=0.25,momentum=0", "--state", state,
                         "--resume", state, "--or-begin", *options, owner="servers")

    def join(self, rank, *_):
        self.rank_of.append(rank)
        self.worker.append(Child(
            [sys.executable, os.path.join(HERE, "programs", "served.py"), self.path("log")],
            **base.worker_environment(self.listen, rank), MUSTER_LIBRARY=self.a.library,
            PYTHONPATH=os.path.join(HERE, "..", "..", "client", "python")))
        return self.worker[-1]


def servers_own(a):
    with tempfile.TemporaryDirectory() as state, Served(a, 2, state) as job:
        job.join_all(workers=2)
        job.is_at(5)
        job.goes_on_with(4)
        job.is_at(5)
        job.goes_on_with(1)
        job.is_at(5)
        ends(job)
        theta, sets, numbers, ranks = np.float32(0), job.sets(), [], ()
        for version in range(1, max(sets) + 1):
            # The servers know no set of the version that they have gone on from.
            ranks = max((of for _, of in sets[version]), default=()) or ranks
            numbers += [len(ranks)] if numbers[-1:] != [len(ranks)] else []
            must(ranks == tuple(range(len(ranks))), f"version {version} is of {ranks}")
            theta -= np.float32(0.25) * np.float32(sum(r + 1 for r in ranks) / len(ranks))
            must({said for said, _ in sets[version]} == {repr(theta)},
                 f"version {version} of {ranks} is {sets[version]}, not {theta!r}")
        check(f"{len(sets)} versions are exact, of {numbers} ranks", numbers == [2, 4, 1])


# ---- muster run ----

def under_muster_run(a):
    """A rank that is over is no failure of the run, which goes on to tell of the job."""
    for servers in ("1", "2"):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            run = Child([a.muster, "run", "-n", "3", "--servers", servers, "--owner", "workers",
                         "--listen", "127.0.0.1:0", "--grace", f"{SECONDS}s", "--", a.worker, log,
                         "elems=8192", *WORDS], MUSTER_MUSTERD=a.musterd)

            def lines(rank, process=1):
                with open(f"{log}.{rank}.{process}") as f:
                    return f.read()

            def asks(*words):
                done = subprocess.run([a.muster, *words, address], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      timeout=SECONDS, check=False)
                check(done.stdout.strip(), done.returncode == 0)

            def goes_on():
                before = lines(0).count("version")
                must(until(lambda: lines(0).count("version") > before + 5, SECONDS), run.said())

            try:
                must(until(lambda: re.search(r"musterd listens on (\S+): ", run.said()) and
                           os.path.exists(f"{log}.2.1"), SECONDS), run.said())
                address = re.search(r"musterd listens on (\S+): ", run.said())[1]
                goes_on()
                asks("workers", "2")
                must(until(lambda: f"error {OVER} rank 2" in lines(2), SECONDS), run.said())
                goes_on()
                asks("finish")
                status, said = run.end(SECONDS)
            finally:
                run.kill()
            must(status == 0 and "rank 2 exited with status 3: the job goes on with 2 workers" in
                 said, f"{servers} servers: the run ends with {status}: {said}")


def ranks_that_are_left_out_are_awaited_by_name(a):
    """All ranks of the smaller job are there, and the others may be with another server."""
    with Resized(a, 4) as job:
        job.join_all(*WORDS, workers=4)
        job.is_at(3)
        for worker in job.worker[2:]:
            worker.kill()
        job.server.kill()
        job.options[1] = "2"
        job.options[job.options.index("--join-timeout") + 1] = "2s"
        job.lead()
        status, log = job.server.end(SECONDS)
        check(f"the start fails with {status}: {log[-900:]}", status == 1 and
              "all 2 workers are there, but the job had 4 before, of which only 2 have come back "
              "within 2 s" in log and "missing: rank 2, 3" in log and "--workers 4" in log)


def nothing_else_is_taken(a):
    with Resized(a, 3, "--policy", "ksync:2", "--min-workers", "2") as job:
        job.join_all(*WORDS, workers=3)
        job.is_at(3)
        for number, status, *words in (
                ("0", 2, "from 1 to 4096"), ("4097", 2, "from 1 to 4096"), ("-1", 2, "option -1"),
                ("many", 2, "number"), ("3", 0, "has 3 workers already"),
                ("1", 1, "cannot go on with 1 workers", "--min-workers 2")):
            done, said = job.ask(number)
            check(f"muster workers {number} ends with {done}: {said.strip()}",
                  done == status and all(word in said for word in words))
        check("the job has noticed nothing", job.newest(0) >= 3 and
              "generation is over" not in job.server.said())
    with Resized(a, 3, "--policy", "ksync:3", "--min-workers", "1") as job:
        job.join_all(*WORDS, workers=3)
        job.is_at(3)
        done, said = job.ask(2)
        check(f"a quorum that is too large: {said.strip()}",
              done == 1 and "cannot go on with 2 workers" in said and "ksync:3" in said)
    with Resized(a, 3, patience=None) as job:
        job.join_all(*WORDS, workers=3)
        job.is_at(3)
        done, said = job.ask(4)
        check(f"without patience: {said.strip()}", done == 1 and "--server-patience" in said)


CASES = cases(four_grow_to_eight_and_shrink_to_three, another_command_line,
              old_command_line_goes_on_with_the_number_in_force,
              server_is_killed_while_new_ranks_are_awaited, two_servers_begin_anew, over_tcp,
              servers_own, under_muster_run, ranks_that_are_left_out_are_awaited_by_name,
              nothing_else_is_taken)
if __name__ == "__main__":
    main(CASES, "musterd", "muster", "worker", "library",
         paths=("four_grow_to_eight_and_shrink_to_three", "two_servers_begin_anew",
                "nothing_else_is_taken"))
