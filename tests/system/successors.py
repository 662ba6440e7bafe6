#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What servers that are lost leave to those that take their place (--server-patience): who exits
with 75, which says "start me again", what workers are told, and what a server that is started again
waits for.

usage: successors.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER
       successors.py --list
"""
import contextlib
import errno
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile

from base import Child, cases, check, main, until
from server import ERROR, SECONDS, Server, error, hello
from servers import ELEMS, LONG, SOON, Job, wrote

AGAIN = 75
PATIENT = [*LONG, "--server-patience", "3s"]


def ends_again(name, child):
    status, log = child.end(SOON)
    check(f"{name} is to be started again: {status} {log[-200:]}", status == AGAIN)
    return log


def workers_end(job):
    for worker in job.worker:
        status, said = worker.end(SOON)
        check(f"a worker is told: {said.strip()[-120:]}", status == 1)


def a_lost_follower_ends_what_all_do(a):
    with Job(a, 3, *PATIENT) as job:
        job.runs()
        job.follower[0].signal(signal.SIGKILL)
        log = ends_again("the leader", job.leader)
        check("it says who is lost, and for how long workers wait",
              "of 3 (127.0.0.1" in log and "workers wait 3 s" in log)
        ends_again("the other follower", job.follower[1])
        workers_end(job)


def a_lost_leader_ends_what_all_do(a):
    with Job(a, 3, *PATIENT) as job:
        job.runs()
        job.leader.process.kill()
        for follower in job.follower:
            check("it says who is lost", "leader is gone" in ends_again("a follower", follower))
        workers_end(job)


def a_leader_that_is_told_to_end(a):
    """It ends by the signal, and the others because of it."""
    with Job(a, 2, *PATIENT) as job:
        job.runs()
        job.leader.process.terminate()
        check("it goes by the signal", job.leader.end(SOON)[0] == 128 + 15)
        ends_again("the follower", job.follower[0])
        workers_end(job)


def a_follower_that_is_told_to_end(a):
    with Job(a, 2, *PATIENT) as job:
        job.runs()
        job.follower[0].signal(signal.SIGTERM)
        check("it goes by the signal", job.follower[0].end(SOON)[0] == 128 + 15)
        ends_again("the leader", job.leader)
        workers_end(job)


def a_job_that_fails_is_not_started_again(a):
    """The loss of a worker is no fault of a server."""
    with Job(a, 2, *PATIENT, "--on-loss", "fail") as job:
        job.runs()
        job.worker[1].signal(signal.SIGKILL)
        ends = [s.end(SOON)[0] for s in (job.leader, *job.follower)]
        check(f"the job has failed: {ends}", ends == [1, 1])


def a_leader_with_too_few_workers(a):
    """The others may be with another leader, or come back."""
    with Job(a, 2, *PATIENT, "--min-workers", "3") as job:
        job.runs()
        job.worker[1].signal(signal.SIGKILL)
        log = ends_again("the leader", job.leader)
        check("it says how many it needs", "fewer than 3 live workers (--min-workers)" in log)
        ends_again("the follower", job.follower[0])


def a_leader_that_stood_still(a):
    """Its follower and its workers have given it up: it says why."""
    lease = ["--lease", "2s", "--server-lease", "4s"]
    for servers in (1, 2):
        with Job(a, servers, *PATIENT, *lease, "--min-workers", "3") as job:
            job.runs()
            job.leader.process.send_signal(signal.SIGSTOP)
            check("all give it up", until(lambda: all(
                child.process.poll() is not None for child in (*job.worker, *job.follower)),
                SECONDS))
            for follower in job.follower:
                ends_again("the follower", follower)
            job.leader.process.send_signal(signal.SIGCONT)
            log = ends_again("the leader", job.leader)
            stood = re.search(r"this server stood still for ([\d.]+) s", log)
            check(f"it says for how long it stood still: {log[-400:]}",
                  stood is not None and float(stood[1]) >= 3)


def codes_of(data):
    """The codes of the errors among these messages."""
    found = []
    while data:
        _, _, kind, length = struct.unpack_from("<IHHI", data)
        if kind == ERROR:
            found.append(error(data[12:12 + length])[0])
        data = data[12 + length:]
    return found


def what_workers_are_told(a):
    """Whether they may come back: not where muster run ends the run, and its server with it."""
    for options, signo, code in ((PATIENT, signal.SIGTERM, -errno.ERESTART),
                                 (PATIENT, signal.SIGUSR1, -errno.ENOTCONN),
                                 (LONG, signal.SIGTERM, -errno.ENOTCONN)):
        with Job(a, 1, *options, workers=0) as job, job.leader.connect() as s:
            s.settimeout(SECONDS)
            s.sendall(hello(rank=2, elems=job.elems))
            data = s.recv(1)  # of its welcome
            job.leader.process.send_signal(signo)
            while more := s.recv(65536):
                data += more
            check(f"after {signo} it is told {codes_of(data)}", codes_of(data) == [code])


def a_follower_finds_the_next_leader(a):
    """Whether it was there before the leader, with the one before, or while that one ends."""
    words = ["--servers", "2", "-n", "1", "--server-patience", "60s", "--join-timeout", "never"]
    with socket.create_server(("127.0.0.1", 0)) as held:
        address = f"127.0.0.1:{held.getsockname()[1]}"
    follower = Child([a.musterd, "--join", address, "--server-patience", "60s"])
    try:
        for number in range(3):
            leader = Server(a.musterd, *words, listen=address)
            try:
                check(f"leader {number} gets it", until(
                    lambda said=leader.said: "server 1 of 2 joined" in said(), SECONDS))
            finally:
                leader.kill()
        check("and it is the same", follower.process.poll() is None)
    finally:
        follower.kill()


def a_follower_without_a_leader_is_started_again(a):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        for more, status in (([], 1), (["--server-patience", "60s"], AGAIN)):
            done = Child([a.musterd, "--join", address, "--join-timeout", "300ms", *more])
            said = done.end(SECONDS)
            check(f"it ends with {status}: {said}", said[0] == status)


def a_directory_is_waited_for(a):
    """Its server may not have ended yet when the next one starts."""
    with Job(a, 1, "-n", "1", workers=0) as job:
        options = ["--state", job.path("state"), "--owner", "servers"]
        first = Server(a.musterd, "-n", "1", *options)
        try:
            at_once = Child([a.musterd, "--listen", "127.0.0.1:0", "-n", "1", *options])
            check("without --server-patience it is refused", at_once.end(SECONDS)[0] == 1 and
                  "is locked by process" in at_once.said())
            patient = [a.musterd, "--listen", "127.0.0.1:0", "-n", "1", *options,
                       "--server-patience", "60s"]
            short = Child([*patient, "--join-timeout", "200ms"])
            check("it is waited for as long as --join-timeout", short.end(SECONDS)[0] == 1 and
                  f"is locked by process {first.process.pid}" in short.said())
            told = Child([*patient])
            check("it says so", until(lambda: "waiting for the other" in told.said(), SECONDS))
            told.signal(signal.SIGTERM)
            check("a signal ends that", told.end(SECONDS)[0] == 128 + 15)
            second = Child(patient)
            check("it says so at once", until(
                lambda: f"locked by process {first.process.pid}" in second.said(), SECONDS))
            check("it does not listen yet", "listening on" not in second.said())
            first.process.terminate()
            check("then it is there", until(lambda: "listening on" in second.said(), SECONDS))
            second.kill()
        finally:
            first.kill()


def what_is_typed(a):
    """0s is no patience, and one that is shorter than a silence that is borne is warned of."""
    for typed, warned in (("0s", False), ("0", False), ("1s", True), ("1min", False)):
        server = Server(a.musterd, "-n", "1", "--server-patience", typed)
        try:
            said = until(lambda s=server: "listening on" in s.said(), SECONDS) and server.said()
            check(f"{typed} is taken", said)
            check(f"{typed} is warned of: {warned}",
                  ("--server-patience 1 s is shorter than --server-lease" in said) == warned)
        finally:
            server.kill()
    done = subprocess.run([a.musterd, "--server-patience", "soon"], check=False,
                          capture_output=True, text=True, timeout=SECONDS)
    check("other words are refused", done.returncode == 2 and "a duration" in done.stderr)


class Run:
    """muster run with a leader and a follower; when it is left, no process is."""

    def __init__(self, a, *args):
        self.run = Child([a.muster, "run", "--servers", "2", "--listen", "127.0.0.1:0", *args],
                         MUSTER_MUSTERD=a.musterd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run.kill()

    def server(self, option):
        """The process of the musterd with this option, when there is one."""
        found = []

        def look():
            tasks = f"/proc/{self.run.process.pid}/task/{self.run.process.pid}/children"
            with open(tasks) as f:
                children = f.read().split()
            for pid in children:
                with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as f:
                    if any(word.startswith(option) for word in f.read().split("\0")):
                        found.append(int(pid))
            return found

        check(f"there is a server with {option}", until(look, SECONDS))
        return found[0]

    def leader(self):
        return self.server("--listen=")

    def follower(self):
        return self.server("--join=")

    def says(self, what, times=1):
        check(f"it says {what!r} {times} times", until(
            lambda: len(re.findall(what, self.run.said())) >= times, SECONDS))


def run_starts_all_again(a):
    """All servers of a job that has lost one, at the same address, with its checkpoints."""
    with tempfile.TemporaryDirectory() as folder:
        state, log = os.path.join(folder, "state"), os.path.join(folder, "log")
        with Run(a, "-n", "2", "--state", state, "--commits", "100000", "--", a.worker, log,
                 str(ELEMS), "sleep_us=300") as run:
            check("it runs", until(lambda: wrote(f"{log}.0.1") > 5000, SECONDS))
            os.kill(run.follower(), signal.SIGKILL)
            run.says(r"server 1 was killed by signal 9 \(Killed\); it is started again at")
            run.says("musterd has ended because another server was lost, or it stood still; it is "
                     r"started again at \S+ \(1 of 5 times in 10 min\)")
            run.says(r"server 1 of 2 joined", 2)
            said = run.run.said()
            address = re.search(r"musterd listens on (\S+): ", said)[1]
            check("it has the same address", f"musterd listens on {address} again" in said)
            check(f"it looks for checkpoints: {said}", re.search(
                rf"there is no checkpoint in {state}|goes on from", said))
            run.run.signal(signal.SIGINT)
            check("the run ends by the signal", run.run.end(SECONDS)[0] == 128 + 2)


def run_replaces_servers_that_stand_still(a):
    with Run(a, "-n", "1", "--owner", "workers", "--lease", "1s", "--server-lease", "2s", "--",
             "sleep", "60") as run:
        run.says("server 1 of 2 joined")
        os.kill(run.leader(), signal.SIGSTOP)
        run.says(r"musterd has not answered for 2 s \(--server-lease\): it stands still")
        run.says("server 1 of 2 joined", 2)
        stopped = run.follower()
        os.kill(stopped, signal.SIGSTOP)
        os.kill(run.leader(), signal.SIGKILL)
        run.says("server 1 has not ended with its leader: it stands still, and is killed")
        run.says("server 1 of 2 joined", 3)
        check("that is another one", run.follower() != stopped)
        run.run.signal(signal.SIGINT)
        check("the run ends by the signal", run.run.end(SECONDS)[0] == 128 + 2)


CASES = cases(a_lost_follower_ends_what_all_do, a_lost_leader_ends_what_all_do,
              a_leader_that_is_told_to_end, a_follower_that_is_told_to_end,
              a_job_that_fails_is_not_started_again, a_leader_with_too_few_workers,
              a_leader_that_stood_still,
              what_workers_are_told, a_follower_finds_the_next_leader,
              a_follower_without_a_leader_is_started_again, a_directory_is_waited_for,
              what_is_typed, run_starts_all_again, run_replaces_servers_that_stand_still)
if __name__ == "__main__":
    # Leases of two seconds that are over, and must be over for nobody else.
    main(CASES, "musterd", "worker", "muster",
         clock=("a_leader_that_stood_still", "run_replaces_servers_that_stand_still"))
