#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Servers that end, and what must not keep them from it.

usage: ends.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER
"""
import contextlib
import os
import random
import signal
import subprocess
import tempfile
import time

from base import (CALM, HANG_S, LEASE_S, Job, cases, check, main, own_words, tagged,
                  until)
from server import ask_status

SLOW = ["sleep_us=20000"]


def has_begun(pid):
    """It takes its signals itself. A process that blocks all of them is only starting a thread."""
    with open(f"/proc/{pid}/status") as f:
        masks = dict(line.split() for line in f if line.startswith(("SigCgt", "SigBlk")))

    def has(mask, signo):
        return int(masks[mask + ":"], 16) >> signo - 1 & 1

    return has("SigCgt", signal.SIGTERM) or (
        has("SigBlk", signal.SIGTERM) and not has("SigBlk", signal.SIGUSR2))


def sigterm(a):
    with Job(a, "-n", "2", *CALM) as job:
        job.work_all(2, *SLOW)
        job.begin()
        status, log = job.server.stop()
        check(f"SIGTERM with workers at work ends the server with 143, not {status}: {log[-300:]}",
              status == 143)
        for code, said in job.ends(HANG_S):
            check(f"its workers are told: {said.strip()}",
                  code == 1 and "ended by signal 15" in said)


def sigterm_with_a_stopped_worker(a):
    with Job(a, "-n", "2", *CALM) as job:
        job.work_all(2, *SLOW)
        job.begin()
        job.worker[1].signal(signal.SIGSTOP)
        status, _ = job.server.stop()
        job.worker[1].signal(signal.SIGCONT)
        check(f"SIGTERM with a stopped worker ends the server with 143, not {status}",
              status == 143)
        check("both workers end", job.codes(HANG_S) == [1, 1])


def sigkill(a):
    with Job(a, "-n", "2", "--lease", "60s") as job:
        job.work_all(2, *SLOW)
        job.begin()
        job.server.kill()
        began = time.monotonic()
        for code, said in job.ends(HANG_S):
            check(f"kill -9 of the server ends its workers with a sentence: {said.strip()}",
                  code == 1 and said)
        check("at once, not after a lease", time.monotonic() - began < 30)


def status_before_anybody(a):
    with Job(a, "-n", "2") as job:
        got = subprocess.run([a.muster, "status", "--timeout", f"{HANG_S}s", job.address],
                             capture_output=True, text=True, timeout=2 * HANG_S)
        job.server.stop()
        check(f"status before the first worker: {got.stdout.strip()}{got.stderr.strip()}",
              got.returncode == 0)


def many_watchers(a):
    with Job(a, "-n", "2", "--commits", "20", *CALM) as job:
        watchers = []
        for _ in range(100):
            s = job.server.connect()
            s.sendall(ask_status())
            watchers.append(s)
        job.work_all(2)
        check("a hundred watchers do not keep workers out", job.codes(HANG_S) == [0, 0])
        check("and the server ends", job.server.end(HANG_S)[0] == 0)


def strangers_while_the_server_stands_still(a):
    """The server finds all connections at once when it goes on, and workers are among them."""
    for before, after in (30, 80), (70, 20):
        with Job(a, "-n", "2", "--commits", "20", *CALM) as job:
            job.server.process.send_signal(signal.SIGSTOP)
            strangers = [job.server.connect() for _ in range(before)]
            job.work_all(2)
            check("workers are connected", until(lambda j=job: j.server.connected() >= before + 2,
                                                 HANG_S))
            strangers += [job.server.connect() for _ in range(after)]
            job.server.process.send_signal(signal.SIGCONT)
            check(f"{before} strangers before workers and {after} after them do not keep them out",
                  job.codes(HANG_S) == [0, 0])
            check("and the server ends", job.server.end(HANG_S)[0] == 0)


def heartbeat_flood(a):
    with Job(a, "-n", "2", "--commits", "60", *CALM) as job:
        job.work_all(2, "sleep_us=5000")
        loud = job.server.connect()
        loud.setblocking(False)
        flood = ask_status() * 300
        end = time.monotonic() + HANG_S
        while any(w.process.poll() is None for w in job.worker) and time.monotonic() < end:
            try:
                loud.send(flood)
            except (BlockingIOError, ConnectionError):
                time.sleep(0.001)
        check("a flood of questions that are never read does not stop the job",
              job.codes(HANG_S) == [0, 0])
        loud.close()
        check("and the server ends", job.server.end(HANG_S)[0] == 0)


def all_hear(job, what, words):
    """Job and workers fail; these with such words, unless the server has said why too late."""
    ends = job.ends(HANG_S)
    status, log = job.server.end(HANG_S)
    for rank, (code, said) in enumerate(ends):
        check(f"{what}: {said.strip()}",
              code == 1 and (words in said or rank in own_words(job.log, log)))
    check(f"the server fails, and says so: {log[-300:]}", status == 1 and words in log)


def join_timeout(a):
    """The server stands still until it has the hellos of the two who are there: the time that they
    take to come is none of its timeout."""
    with Job(a, "-n", "3", "--join-timeout", "20s", *CALM) as job:
        job.server.process.send_signal(signal.SIGSTOP)
        job.work_all(2)
        check("two say hello", until(lambda: job.server.unread() == 2, HANG_S))
        job.server.process.send_signal(signal.SIGCONT)
        all_hear(job, "a worker too few", "missing: rank 2")


def nobody_joins(a):
    with Job(a, "-n", "3", "--join-timeout", "1s") as job:
        status, said = job.server.end(HANG_S)
        check("the server fails", status == 1)
        check(f"in words: {said}", "no worker came within 1 s (--join-timeout)" in said
              and f"MUSTER_SERVER={job.address}" in said)


def all_who_came_were_refused(a):
    """The server's last sentence is about those who called in vain, and not that nobody came."""
    with Job(a, "-n", "3", "--join-timeout", "2s") as job:
        job.server.process.send_signal(signal.SIGSTOP)
        for rank in range(2):
            job.work(rank, MUSTER_JOB="other")
        check("two say hello", until(lambda: job.server.unread() == 2, HANG_S))
        job.server.process.send_signal(signal.SIGCONT)
        status, said = job.server.end(HANG_S)
        check(f"in words: {said.splitlines()[-1]}", status == 1 and "no worker came" not in said
              and "no worker was let in within 2 s (--join-timeout): 2 called and were refused, "
              "the last because" in said and '"other"' in said.splitlines()[-1])


def stopped_before_anybody_joins(a):
    """Time in which the server stood still is not the workers'. One has called meanwhile, and is
    still to be linked and to start when the server goes on."""
    timeout_s = 8
    with Job(a, "-n", "1", "--join-timeout", f"{timeout_s}s", *CALM) as job:
        job.server.process.send_signal(signal.SIGSTOP)
        until_s = time.monotonic() + timeout_s + 1
        job.work(0, "rounds=3")
        check("a worker is connected", until(lambda: job.server.connected() == 1, HANG_S))
        time.sleep(max(0, until_s - time.monotonic()))
        job.server.process.send_signal(signal.SIGCONT)
        check("the worker takes part", job.codes(HANG_S) == [0])
        check("and the server ends", job.server.end(HANG_S)[0] == 0)


def all_workers_hang(a):
    with Job(a, "-n", "2", "--patience", "1s", *CALM) as job:
        job.work_all(2, "sleep_us=10000000")
        status, said = job.server.end(HANG_S)
        check("the server fails", status == 1)
        for rank in range(2):
            check(f"it names rank {rank}: {said}", f"rank {rank} is alive" in said)
        check("and ends in words", "missing: rank 0, 1" in said)
        for code, told in job.ends(HANG_S):
            check(f"a worker that wakes is told: {told.strip()}",
                  code == 1 and "--patience" in told)


def nobody_offers(a):
    with Job(a, "-n", "2", *CALM) as job:
        job.work_all(2, "start=0")
        all_hear(job, "no start state", "start state")


def rejoin(a):
    with Job(a, "-n", "3", "--policy", "bsp", *CALM) as job:
        job.work_all(3, "sleep_us=5000", "2:die=5", *job.ended_by(0))
        job.lost(2)
        job.work(2, "sleep_us=5000", "again=1")
        job.came_again(2)
        job.end_job()
        check("a rank that died comes back, and all stay to the end",
              job.codes(HANG_S) == [0, 0, -9, 0])
        job.proven("--kills")
        check("the server finishes", job.server.end(HANG_S)[0] == 0)


def goes_on(job, rank):
    """Does this worker get further versions?"""
    log = f"{job.log}.{rank}.1"
    size = os.path.getsize(log)
    return until(lambda: os.path.getsize(log) > size + 2000, HANG_S)


def at_any_moment(a, signo, seeds, sleep_us, *lease):
    """One of five workers gets a signal at a random moment; backup:4 must not care. As many jobs
    as seeds, which wait for a lease at the same time."""
    with contextlib.ExitStack() as stack:
        hit = []
        for seed in seeds:
            chance = random.Random(seed)
            wait_s, victim = chance.random() * 0.5, chance.randrange(5)
            job = stack.enter_context(Job(a, "-n", "5", "--policy", "backup:4", *lease))
            job.work_all(5, f"sleep_us={sleep_us}", *job.ended_by((victim + 1) % 5))
            job.begin()
            time.sleep(wait_s)
            job.worker[victim].signal(signo)
            hit.append((seed, job, victim))
        for seed, job, victim in hit:
            job.lost(victim)
            check(f"seed {seed}: the others go on", goes_on(job, (victim + 1) % 5))
            job.worker[victim].signal(signal.SIGCONT)
            job.worker[victim].end(HANG_S)
            job.end_job()
            codes, status = job.codes(HANG_S), job.server.end(HANG_S)[0]
            wanted = [0] * 5
            wanted[victim] = -9 if signo == signal.SIGKILL else 1
            check(f"seed {seed}: the job finishes, with {codes}", status == 0 and codes == wanted)
            job.proven("--kills")


def kill_at_any_moment(a):
    for seed in range(12) if a.moments == "all" else range(3):
        at_any_moment(a, signal.SIGKILL, [seed], 1000, *CALM)


def freeze_at_any_moment(a):
    groups = (range(100, 103), range(103, 106))
    for seeds in groups if a.moments == "all" else groups[:1]:
        at_any_moment(a, signal.SIGSTOP, seeds, 8000, "--lease", f"{LEASE_S}s")


def a_frozen_worker_wakes_evicted(a):
    with Job(a, "-n", "3", "--policy", "bsp", "--lease", f"{LEASE_S}s") as job:
        job.work_all(3, "sleep_us=500", *job.ended_by(0))
        job.begin()
        job.worker[1].signal(signal.SIGSTOP)
        job.lost(1)
        job.worker[1].signal(signal.SIGCONT)
        status, said = job.worker[1].end(HANG_S)
        check(f"it is told why: {said.strip()}", status == 1 and "silent for its lease" in said)
        job.end_job()
        check("the others finish",
              [*job.codes(HANG_S), job.server.end(HANG_S)[0]] == [0, 1, 0, 0])
        job.proven("--kills")


def a_run_of_servers_is_ended_in_any_phase(a):
    """SIGTERM or Ctrl-C to muster run, or to all of its group: it says so, and nothing is left."""
    for i, wait_s in enumerate((0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4)):
        mark = f"MUSTER_ENDS={os.getpid()}.{i}"
        with tempfile.TemporaryDirectory() as d:
            run = subprocess.Popen(
                [a.muster, "run", "-n", "3", "--servers", "3", "--listen", "127.0.0.1:0",
                 "--grace", "2s", "--", a.worker, os.path.join(d, "log"), "20001", *SLOW],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, start_new_session=True,
                env=dict(os.environ, **dict([mark.split("=")])))
            signo = signal.SIGINT if i % 2 else signal.SIGTERM
            check("it has begun", until(lambda: has_begun(run.pid), HANG_S))
            time.sleep(wait_s)
            (os.killpg if i % 4 < 2 else os.kill)(run.pid, signo)
            said, _ = run.communicate(timeout=HANG_S)
        check(f"{signo.name} after {wait_s} s: {run.returncode}",
              run.returncode == 128 + signo and "assertion" not in said)
        check("in words", f"signal {int(signo)}" in said or f"by {signo.name}" in said)
        check("nothing is left", until(lambda: not tagged(mark), HANG_S))


def a_server_that_dies_before_the_start(a):
    """Nobody waits for it until the join timeout, and it is named."""
    mark = f"MUSTER_ENDS={os.getpid()}"
    run = subprocess.Popen(
        [a.muster, "run", "-n", "2", "--servers", "2", "--listen", "127.0.0.1:0", "--", "sleep",
         "300"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=dict(os.environ, **dict([mark.split("=")])))

    def follower():
        found = []
        for pid in tagged(mark):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
                found += [pid] if b"--join=" in f.read() else []
        return found

    check("a follower is there", until(follower, HANG_S))
    os.kill(follower()[0], signal.SIGKILL)
    said, _ = run.communicate(timeout=HANG_S)
    check(f"it ends: {said.strip().splitlines()[-1]}",
          run.returncode == 1 and "server 1" in said and "before the job had started" in said)
    check("nothing is left", until(lambda: not tagged(mark), HANG_S))


CASES = cases(sigterm, sigterm_with_a_stopped_worker, sigkill, status_before_anybody,
              many_watchers, strangers_while_the_server_stands_still, heartbeat_flood,
              join_timeout, nobody_joins, all_who_came_were_refused,
              stopped_before_anybody_joins, all_workers_hang,
              nobody_offers, rejoin, kill_at_any_moment, freeze_at_any_moment,
              a_frozen_worker_wakes_evicted, a_run_of_servers_is_ended_in_any_phase,
              a_server_that_dies_before_the_start)
# Leases and join timeouts of eight seconds; a sleep of ten that has to be longer than a patience;
# and workers wait two seconds to be told why their job has ended.
main(CASES, "musterd", "worker", "muster", moments="all",
     clock=("sigterm", "stopped_before_anybody_joins", "all_workers_hang", "freeze_at_any_moment",
            "a_frozen_worker_wakes_evicted"))
