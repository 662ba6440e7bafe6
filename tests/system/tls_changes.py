#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What changes under a job that runs: its certificates, its authority, the clock. A peer that is
connected goes on; a newcomer is judged by what holds when it comes.

usage: tls_changes.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER --clock CLOCK

CLOCK is a library by which the wall clock of a process jumps (programs/clock.c).
"""
import os
import shutil
import struct
import tempfile

import tls
from base import Child, HANG_S, cases, check, main, until, worker_environment
from server import Server
from tls import environment, make_keys, options

YEAR_S = 365 * 86400
ENDS_WELL = [0, 0, 0]


class Job(tls.Job):
    """Ranks 0 and 1 go on until the test ends the job; rank 2 leaves at once, for newcomers."""

    def __init__(self, a):
        super().__init__(a, "-n", "3", "--policy", "backup:2", "--min-workers", "1")

    def __enter__(self):
        try:
            for rank in range(2):
                self.member(rank, "sleep_us=2000", *self.ended_by(0))
            self.member(2, "rounds=1")
            self.begin(ranks=[0, 1])
            check("the third leaves", self.worker[2].end(HANG_S)[0] == 0)
        except BaseException:
            self.__exit__()  # which nobody else calls then
            raise
        return self

    def goes_on(self):
        self.begin(os.path.getsize(f"{self.log}.0.1") + 5000, ranks=[0])
        check("the job goes on", "is gone" not in self.server.said())

    def refuses(self, what, keys, *words, cert="worker", **env):
        """A newcomer is told all these words, and the job does not notice."""
        status, said = Child([self.a.worker, self.log, str(self.elems)],
                             **worker_environment(self.address, 2), **environment(keys, cert),
                             **env).end(HANG_S)
        check(f"{what} is refused: {said.strip()}",
              status == 1 and all(word in said for word in words))
        self.goes_on()

    def lets_in(self, keys, rounds=3):
        newcomer = self.work(2, f"rounds={rounds}", "again=1", **environment(keys, "worker"))
        check("a newcomer joins and ends well", newcomer.end(HANG_S)[0] == 0)
        self.goes_on()

    def says(self, words):
        check(f"the server says: {words}", until(lambda: words in self.server.said(), HANG_S))

    def finish(self):
        self.end_job()
        codes = self.codes(HANG_S)
        check(f"all workers end well: {codes}", not any(codes))
        check("and so does the server", self.server.end(HANG_S)[0] == 0)
        self.proven("--kills")


# ---- the authority ----

def put(source, target):
    """As whoever replaces a file without a moment in which it is half there."""
    shutil.copy(source, target + ".new")
    os.chmod(target + ".new", 0o600)
    os.replace(target + ".new", target)


def put_both(one, other, target):
    with open(target + ".both", "w") as out:
        for keys in one, other:
            with open(f"{keys}/ca.pem") as f:
                out.write(f.read())
    put(target + ".both", target)


def another_authority(a):
    """A change at one end only, then at the other end. A worker that came before stays."""
    with Job(a) as job:
        old, new = shutil.copytree(job.keys, job.path("old")), make_keys(a, job.path("new"))
        job.refuses("one of another authority", new, "not from the authority",
                    f"{new}/ca.pem", "both ends")
        status, said = job.tool("status", job.address, keys=new)
        check(f"so is a tool: {said.strip()}", status == 2 and f"{new}/ca.pem" in said)
        put(f"{new}/server.pem", f"{job.keys}/server.pem")
        job.lets_in(old)
        job.says("have changed and are not taken")
        check("it names the file", f"{job.keys}/server." in job.server.said())
        put(f"{new}/server.key", f"{job.keys}/server.key")
        put(f"{new}/ca.pem", f"{job.keys}/ca.pem")
        job.refuses("one of the old authority", old, "not from the authority", f"{old}/ca.pem",
                    "both ends")
        job.says("new connections use what is in")
        status, said = job.tool("status", job.address, keys=old)
        check(f"so is a tool: {said.strip()}", status == 2 and f"{old}/ca.pem" in said)
        job.lets_in(new)
        job.finish()
        after = Server(a.musterd, "-n", "1", *options(job.keys, "server"))
        try:
            for keys, ends in (old, 1), (new, 0):
                status, said = Child([a.worker, job.path("after"), "100", "rounds=3"],
                                     **worker_environment(after.address, 0),
                                     **environment(keys, "worker")).end(HANG_S)
                check(f"a server that starts with them: {said.strip()[-300:]}", status == ends)
            check("it ends well", after.end(HANG_S)[0] == 0)
        finally:
            after.kill()


def an_authority_by_and_by(a):
    """Both are believed for a while, so that at no moment anybody is kept out."""
    with Job(a) as job:
        old, new = shutil.copytree(job.keys, job.path("old")), make_keys(a, job.path("new"))
        moved = shutil.copytree(new, job.path("moved"))
        put_both(old, new, f"{job.keys}/ca.pem")
        job.lets_in(old)
        put_both(old, new, f"{moved}/ca.pem")
        job.lets_in(moved)
        put_both(old, new, f"{old}/ca.pem")
        put(f"{new}/server.pem", f"{job.keys}/server.pem")
        put(f"{new}/server.key", f"{job.keys}/server.key")
        job.lets_in(old)
        job.lets_in(moved)
        put(f"{new}/ca.pem", f"{job.keys}/ca.pem")
        job.refuses("one of the old authority", old, "believes another authority",
                    f"{old}/worker.pem", "certificates of the same one")
        job.lets_in(new)
        job.finish()


# ---- the clock ----

class Clock:
    """By which the wall clock of some processes is wrong."""

    def __init__(self, library):
        self.file = tempfile.NamedTemporaryFile()
        self.jumps(0)
        checks = os.environ.get("ASAN_OPTIONS", "")
        self.environment = {"LD_PRELOAD": library, "MUSTER_TEST_CLOCK": self.file.name,
                            "ASAN_OPTIONS": f"{checks}:verify_asan_link_order=0".lstrip(":")}

    def jumps(self, seconds):
        self.file.seek(0)
        self.file.write(struct.pack("<q", seconds))
        self.file.flush()


class JumpingJob(Job):
    def __init__(self, a):
        self.clock = Clock(a.clock)
        # Only the server is started so; it inherits what this process has.
        before = {name: os.environ.get(name) for name in self.clock.environment}
        os.environ.update(self.clock.environment)
        try:
            super().__init__(a)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def clock_of_the_server(a, years, words):
    with JumpingJob(a) as job:
        job.clock.jumps(years * YEAR_S)
        job.refuses("a newcomer", job.keys, f"{job.keys}/worker.pem", *words)
        status, said = job.tool("status", job.address)
        check(f"so is a tool: {said.strip()}",
              status == 2 and all(word in said for word in (f"{job.keys}/operator.pem", *words)))
        job.clock.jumps(0)
        job.lets_in(job.keys)
        job.finish()


def a_clock_that_jumps_ahead(a):
    """By 20 years, when all certificates have expired; then it comes back."""
    clock_of_the_server(a, 20, ["has expired", "are its dates and the clock there right?"])


def a_clock_that_jumps_back(a):
    """To before the certificates were made; then it comes back."""
    clock_of_the_server(a, -20, ["is not valid yet", "are its dates and the clock there right?"])


def clocks_of_workers(a):
    """Clocks that are wrong keep their own workers out, and nobody else."""
    with Job(a) as job:
        clock = Clock(a.clock)
        for years, words in (20, "has expired"), (-20, "is not valid yet"):
            clock.jumps(years * YEAR_S)
            job.refuses(f"one whose clock is wrong by {years} years", job.keys, words, "clock",
                        **clock.environment)
        job.lets_in(job.keys)
        job.finish()


if __name__ == "__main__":
    main(cases(another_authority, an_authority_by_and_by, a_clock_that_jumps_ahead,
               a_clock_that_jumps_back, clocks_of_workers),
         "musterd", "worker", "muster", "clock")
