#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workers that own their parameters, lack versions that the server no longer keeps, and take the
state of another worker. At each version, all that have it have the same bits.

usage: state_transfer.py CASE --musterd MUSTERD --muster MUSTER --transfer PROGRAM
                   --transfer-lie PROGRAM
       state_transfer.py --list
"""
import errno
import glob
import json
import os
import random
import re
import signal
import struct
import subprocess

from base import CALM, Child, HANG_S, Job, cases, check, main, must, until, worker_environment
from server import SECONDS, Server, each, fields, frame, hello, read_error

# A process may stand still for seconds, in which a job makes hundreds of versions.
FAR = ("--owner", "workers", "--history", "2", "--catch-up", "4096", "--patience", "60s", *CALM)
LEASE_S = 30  # that of CALM
WELCOME, BEHIND, GIVE, TOOK = 2, 29, 31, 33


class Run(Job):
    """A job of programs/state_transfer.c."""

    def __init__(self, a, workers, *options):
        a.worker = a.transfer
        super().__init__(a, "-n", str(workers), *(options or FAR))

    def work(self, rank, *words, program=None, **env):
        self.worker.append(Child([program or self.a.transfer, self.log, *words],
                                 **worker_environment(self.address, rank), **env))
        return self.worker[-1]

    def start(self, workers, *words):
        """The words are for all. Rank 0 ends the job."""
        for rank in range(workers):
            self.work(rank, f"until={self.path('enough')}", *words)
        self.reaches(0, 1, 5)

    def lines(self, rank, session):
        path = f"{self.log}.{rank}.{session}"
        if not os.path.exists(path):
            return []
        with open(path) as f:
            return f.read().split("\n")[:-1]

    def has(self, rank, session, word):
        return [line for line in self.lines(rank, session) if line.startswith(word)]

    def newest(self, rank, session=1):
        versions = self.has(rank, session, "version ")
        return int(versions[-1].split()[1]) if versions else 0

    def reaches(self, rank, session, version):
        must(until(lambda: self.newest(rank, session) >= version, HANG_S),
             f"rank {rank} does not reach version {version}:", self.lines(rank, session)[-3:],
             self.server.said())

    def says(self, rank, session, word, times=1):
        must(until(lambda: len(self.has(rank, session, word)) >= times, HANG_S),
             f"rank {rank} never says {word}:", self.lines(rank, session)[-3:],
             self.server.said())

    def goes_on(self, versions=20):
        """The others make so many versions more."""
        self.reaches(0, 1, self.newest(0) + versions)

    def goes_on_without(self, rank, versions):
        """Stops the rank; the others make so many versions more. If one of them lacked versions at
        that moment, it may have asked this rank for its state, and the job waits for that: then the
        rank goes on, gives it, and is stopped again."""
        for _ in range(10):
            self.worker[rank].signal(signal.SIGSTOP)
            enough = self.newest(0) + versions
            if until(lambda enough=enough: self.newest(0) >= enough, LEASE_S / 3):
                return
            self.worker[rank].signal(signal.SIGCONT)
            self.goes_on(1)
        must(False, f"the others do not go on without rank {rank}:", self.server.said())

    def kill(self, rank):
        """Its session is over then, and the job has left the history behind."""
        self.worker[rank].kill()
        self.lost(rank)
        self.goes_on(5)

    def is_back(self, rank, session):
        """It has the newest versions again, with others."""
        self.says(rank, session, "took ")
        self.reaches(rank, session, self.newest(0) + 5)

    def is_alike(self, teller=0):
        """Ends the job. All have had the same bits at each version."""
        self.end_job()
        must(self.worker[teller].end(SECONDS)[0] == 0, self.lines(teller, 1)[-3:])
        bits, told = {}, 0
        for path in glob.glob(f"{self.log}.*"):
            with open(path) as f:
                found = re.findall(r"^version (\d+) (\S+)$", f.read(), re.M)
            for version, checksum in found:
                told += 1
                must(bits.setdefault(version, checksum) == checksum, path, "differs at", version)
        check(f"{told} checksums of {len(bits)} versions are alike", told > len(bits))


def killed_at_any_point(a):
    """A rank is killed and restarted again and again. The others go on under bsp."""
    draw = random.Random(17)
    with Run(a, 3) as job:
        job.start(3)
        for session in range(2, 5):
            job.goes_on(draw.randint(1, 30))
            job.kill(2)
            job.worker[2] = job.work(2)
            job.is_back(2, session)
        job.is_alike()


def stopped_for_longer_than_the_history(a):
    """Its session goes on; so does the job."""
    with Run(a, 3, "--policy", "backup:2", *FAR) as job:
        job.start(3)
        job.reaches(2, 1, 2)
        job.goes_on_without(2, 30)
        job.worker[2].signal(signal.SIGCONT)
        job.is_back(2, 1)
        job.is_alike()


def nobody_waits_for_who_is_behind(a):
    """While it has been told that it is behind, and has not taken the state, the others make 100
    versions under bsp."""
    with Run(a, 3) as job:
        job.start(3)
        job.kill(2)
        job.work(2, f"hold_take={job.path('take')}")
        job.says(2, 2, "stale")
        job.goes_on(100)
        must(not job.has(2, 2, "took "), "it has taken a state too early")
        with open(job.path("take"), "w"):
            pass
        job.is_back(2, 2)
        job.is_alike()


def outrun_by_the_job(a):
    """Again and again the job makes more versions than are kept before that worker has taken the
    state: it gets a newer one each time, the log says so, and in the end it is back."""
    options = ("--owner", "workers", "--history", "2", "--catch-up", "2", "--patience", "60s",
               *CALM)
    with Run(a, 3, *options) as job:
        job.start(3)
        job.kill(2)
        job.work(2, f"lag={job.path('take')}")
        for n in range(4, 1000):  # from then on it takes them at once
            with open(job.path(f"take.{n}"), "w"):
                pass
        for n in (1, 2, 3):
            must(until(lambda n=n: job.server.said().count("rank 2 comes back with the state") >= n,
                       HANG_S), job.server.said())
            job.goes_on(40)
            with open(job.path(f"take.{n}"), "w"):
                pass
        job.is_back(2, 2)
        said = job.server.said()
        for n in (1, 2, 3):
            must(re.search(r"rank 2 gets a newer state: .* more than the 4 versions .* \("
                           rf"{n} in a row; raise --catch-up, now 2, or --history, now 2\)", said),
                 n, said)
        check("it has taken four states", len(job.has(2, 2, "took ")) >= 4)
        job.is_alike()


def finished(job, rank, session=1):
    """The version that it has at the end, the last of the job, and what else it says."""
    said = re.match(r"finished (\d+) of (\d+)(.*)", job.lines(rank, session)[-1])
    must(said, job.lines(rank, session)[-3:])
    return int(said[1]), int(said[2]), said[3]


class Held(Run):
    """Rank 2 of three stands still from version 1 on, and the others have made 30 more. So neither
    of these can have been outrun."""

    def __init__(self, a, *words, takes_later=False):
        super().__init__(a, 3, "--policy", "backup:2", *FAR)
        enough = f"until={self.path('enough')}"
        for rank in range(2):
            self.work(rank, enough, *words)
        self.work(2, enough, f"hold={self.path('hold')}", "hold_at=1",
                  *([f"hold_take={self.path('take')}"] if takes_later else []))
        self.reaches(2, 1, 1)
        self.reaches(0, 1, self.newest(2) + 30)

    def let(self, what="hold"):
        with open(self.path(what), "w"):
            pass

    def others_end(self):
        self.end_job()
        must([self.worker[rank].end(SECONDS)[0] for rank in (0, 1)] == [0, 0], self.server.said())


def behind_when_the_job_ends(a):
    """A rank that lacks versions which are gone hears of the end as all do, without an error, and
    knows that it has not the last version."""
    with Held(a) as job:
        job.others_end()
        job.let()
        must(job.worker[2].end(SECONDS)[0] == 0, job.lines(2, 1)[-3:], job.server.said())
        has, last, more = finished(job, 2)
        check(f"it has version {has} of {last}{more}", has < last and more
              and finished(job, 0) == (last, last, "") and not job.has(2, 1, "error "))
        must(job.server.end(SECONDS)[0] == 0, job.server.said())


def waits_for_a_state_when_the_job_ends(a):
    """Nobody gives one any more: muster_take_state() says so, and the last outcome comes."""
    with Held(a, "silent=1") as job:
        job.let()
        job.says(2, 1, "stale")
        job.others_end()
        must(job.worker[2].end(SECONDS)[0] == 0, job.lines(2, 1)[-3:], job.server.said())
        has, last, _ = finished(job, 2)
        errors = job.has(2, 1, "error ")
        check(f"it is told: {errors}", len(errors) == 1 and has < last and errors[0].startswith(
            f"error -{errno.ESHUTDOWN} rank 2: the job has ended with version {last}"))


def is_sent_a_state_when_the_job_ends(a):
    """It takes it, and has all versions after it, though nobody else is there any more."""
    with Held(a, takes_later=True) as job:
        job.let()
        must(until(lambda: "rank 2 comes back with the state" in job.server.said(), HANG_S),
             job.server.said())
        job.goes_on()
        job.others_end()
        job.let("take")
        must(job.worker[2].end(SECONDS)[0] == 0, job.lines(2, 1)[-3:], job.server.said())
        check(f"it has the last version: {finished(job, 2)}", finished(job, 2) == finished(job, 0)
              and job.has(2, 1, "version ")[-1] == job.has(0, 1, "version ")[-1])


def donor_killed_while_it_gives(a):
    """Another is asked."""
    with Run(a, 4) as job:
        job.start(4, "pad=50000000", "teller=1", f"die_giving={job.path('dies')}")
        job.kill(3)
        job.work(3, "pad=50000000")
        job.says(3, 2, "took ")
        must(job.worker[0].end(SECONDS)[0] == -signal.SIGKILL, "the donor was not killed")
        job.reaches(3, 2, job.newest(1) + 5)
        job.is_alike(1)


def taker_killed_while_it_takes(a):
    """The server has begun to send it the state. Others go on, and the next session gets one."""
    with Run(a, 3) as job:
        job.start(3, "pad=20000000")
        job.kill(2)
        job.worker[2] = job.work(2, "pad=20000000", f"hold_take={job.path('never')}")
        job.says(2, 2, "stale")
        must(until(lambda: "comes back with the state" in job.server.said(), HANG_S),
             "it is not sent a state:", job.server.said())
        job.kill(2)
        job.worker[2] = job.work(2, "pad=20000000")
        job.is_back(2, 3)
        job.is_alike()


def donor_that_lies(a):
    """It is hung up on, with a sentence, and another is asked."""
    for lie, sentence in (("newer", "broke the protocol"), ("older", "broke the protocol"),
                          ("unasked", "that nobody asked for"), ("gap", "with a gap"),
                          ("mixed", "of two versions"), ("cut", "of two versions")):
        with Run(a, 3) as job:
            job.work(0, "pad=600000", program=a.transfer_lie, STATE_TRANSFER_LIE=lie)
            for rank in (1, 2):
                job.work(rank, "pad=600000", "teller=1", f"until={job.path('enough')}")
            job.reaches(1, 1, 5)
            job.worker[2].kill()
            job.lost(2)
            job.reaches(1, 1, job.newest(1) + 5)
            job.work(2, "pad=600000")
            job.says(0, 1, "error ")
            error = job.has(0, 1, "error ")[0]
            must(error.startswith(f"error -{errno.EPROTO} ") and sentence in error, lie, error)
            job.says(2, 2, "took ")
            job.reaches(2, 2, job.newest(1) + 5)
            job.is_alike(1)


def two_at_once(a):
    with Run(a, 4) as job:
        job.start(4)
        job.kill(2)
        job.kill(3)
        job.work(2)
        job.work(3)
        job.is_back(2, 2)
        job.is_back(3, 2)
        job.is_alike()


def straggler_with_a_history_of_two(a):
    """It falls behind again and again, and comes back each time."""
    with Run(a, 4, "--policy", "backup:3", *FAR) as job:
        for rank in range(4):
            job.work(rank, f"until={job.path('enough')}",
                     f"pause_ms={200 if rank == 3 else 2}")
        job.says(3, 1, "took ", times=3)
        job.is_alike()


def too_large_or_none(a):
    """A donor whose state is larger than the server takes is told so, and one that has none says
    so; another is asked."""
    size = 8 + 2 * 1000 * 4
    with Run(a, 4, "--state-max", str(size), *FAR) as job:
        for rank, word in enumerate(("short=1", "none=1", "pad=0", "pad=0")):
            job.work(rank, f"until={job.path('enough')}", word)
        job.reaches(0, 1, 5)
        job.kill(3)
        job.work(3)
        job.is_back(3, 2)
        errors = job.has(0, 1, "error ")
        must(not errors or re.match(rf"error -{errno.EMSGSIZE} .*{size + 1} bytes.*--state-max",
                                    errors[0]), errors)
        told = (f"rank 0 cannot give its state to a worker that comes back: it has {size + 1} "
                f"bytes, and --state-max is {size}: start the server with a larger --state-max")
        must(not errors or until(lambda: told in job.server.said(), HANG_S), job.server.said())
        job.is_alike()


def too_large_for_the_server(a):
    """The operator is told: by the log, and by the status with the figures."""
    size = 8 + 2 * 1000 * 4
    with Run(a, 2, "--state-max", str(size), *FAR) as job:
        job.start(2, "short=1")
        check("there is none yet", status(a, job)["state_too_large"] is None)
        job.kill(1)
        must(job.work(1).end(SECONDS)[0] == 3, "it was not refused")
        told = (f"rank 0 cannot give its state to a worker that comes back: it has {size + 1} "
                f"bytes, and --state-max is {size}: start the server with a larger")
        must(until(lambda: told in job.server.said(), HANG_S), job.server.said())
        said = status(a, job)
        check(f"the status has it: {said['state_too_large']}", said["state_max"] == size
              and said["state_too_large"] == {"rank": 0, "bytes": size + 1})
        job.is_alike()


def status(a, job):
    done = subprocess.run([a.muster, "status", "--timeout", f"{SECONDS}s", "--json", "-",
                           job.address], text=True, capture_output=True, timeout=HANG_S)
    must(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def nobody_gives(a):
    """The worker is refused in words; the job goes on."""
    with Run(a, 3) as job:
        job.start(3, "none=1")
        job.kill(2)
        must(job.work(2).end(SECONDS)[0] == 3, "it was not refused")
        error = job.has(2, 2, "error ")[-1]
        must(error.startswith(f"error -{errno.ESTALE} ") and "no other worker has given" in error,
             error)
        job.goes_on()
        job.is_alike()


def who_does_not_come_back(a):
    """Without the option it is refused at once; where nothing is wanted, nothing is taken."""
    with Run(a, 2) as job:
        job.start(2, "misuse=1")
        job.kill(1)
        status, said = job.work(1, "plain=1").end(SECONDS)
        must(status == 1 and "options.comes_back" in said, status, said)
        errors = job.has(0, 1, "error ")
        must(len(errors) == 2 and f"error -{errno.EINVAL} nobody wants a state" in errors[0] and
             f"error -{errno.EINVAL} there is no state to take" in errors[1], errors)
        job.is_alike()


def piece(number, version, offset, total, data, too_large=0):
    return frame(GIVE, fields(*each("QQQQQ", number, version, too_large, offset, total), data))


def hostile(a):
    """A worker that gives or takes what nobody asked for is hung up on, with a sentence."""
    for data, sentence in (
            (piece(1, 0, 0, 4, b"abcd"), "a state that nobody asked for"),
            (piece(0, 0, 0, 0, b""), "a state that nobody asked for"),
            (piece(1, 0, 4, 8, b"abcd"), "a state with a gap"),
            (piece(1, 0, 0, 1 << 60, b"abcd"), "larger than --state-max"),
            (piece(0, 0, 0, 0, b"", 9), "a state that nobody asked for"),
            (frame(TOOK, fields(*each("Q", 1))), "has taken a state that it was not sent")):
        server = Server(a.musterd, "-n", "2", "--owner", "workers")
        with server.connect() as s:
            s.settimeout(SECONDS)
            s.sendall(hello(rank=0, owner=1, comes_back=1))
            kind, length = struct.unpack("<HI", s.recv(12, 0x100)[6:])  # MSG_WAITALL
            must(kind == WELCOME, kind)
            s.recv(length, 0x100)
            s.sendall(data)
            code, said = read_error(s)
            must(code == -errno.EPROTO and sentence in said, code, said)
        server.stop()
        print(said)


if __name__ == "__main__":
    main(cases(killed_at_any_point, stopped_for_longer_than_the_history,
               nobody_waits_for_who_is_behind, outrun_by_the_job, behind_when_the_job_ends,
               waits_for_a_state_when_the_job_ends, is_sent_a_state_when_the_job_ends,
               donor_killed_while_it_gives, taker_killed_while_it_takes, donor_that_lies,
               two_at_once, straggler_with_a_history_of_two, too_large_or_none,
               too_large_for_the_server,
               nobody_gives, who_does_not_come_back, hostile),
         "musterd", "muster", "transfer", "transfer-lie",
         clock=("hostile",))  # a caller has five seconds for its hello
