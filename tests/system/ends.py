#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Servers that end, and what must not keep them from it.

usage: ends.py CASE --musterd MUSTERD --crowd CROWD --muster MUSTER
"""
import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from scene import tagged, until
from server import ASK_STATUS, Server, frame

SLOW = ["sleep_us=20000"]


class Workers:
    def __init__(self, crowd, server, count, *options):
        self.dir = tempfile.TemporaryDirectory()
        env = dict(os.environ, MUSTER_SERVER=f"127.0.0.1:{server.port}")
        self.each = [
            subprocess.Popen(
                [crowd, os.path.join(self.dir.name, "log"), "100", *options],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=dict(env, MUSTER_RANK=str(r)),
            )
            for r in range(count)
        ]

    def end(self, seconds):
        """[(exit status, what it said)]; whoever is not over by then fails the test."""
        try:
            return [(w.wait(seconds), w.stderr.read()) for w in self.each]
        except subprocess.TimeoutExpired:
            sys.exit("ends: a worker hangs")
        finally:
            for w in self.each:
                if w.poll() is None:
                    w.kill()
                    w.wait()


def has_begun(pid):
    """It takes its signals itself."""
    with open(f"/proc/{pid}/status") as f:
        masks = dict(line.split() for line in f if line.startswith(("SigCgt", "SigBlk")))
    return any(int(mask, 16) >> signal.SIGTERM - 1 & 1 for mask in masks.values())


def check(what, ok):
    if not ok:
        sys.exit(f"ends: {what}")
    print(what)


def sigterm(a):
    server = Server(a.musterd, "-n", "2")
    workers = Workers(a.crowd, server, 2, *SLOW)
    time.sleep(0.5)
    status, log = server.stop()
    check(
        f"SIGTERM with workers at work ends the server with 143, not {status}: {log[-300:]}",
        status == 143,
    )
    for code, said in workers.end(5):
        check(
            f"its workers are told: {said.strip()}", code == 1 and "ended by signal 15" in said
        )


def sigterm_with_a_stopped_worker(a):
    server = Server(a.musterd, "-n", "2")
    workers = Workers(a.crowd, server, 2, *SLOW)
    time.sleep(0.5)
    workers.each[1].send_signal(signal.SIGSTOP)
    status, _ = server.stop()
    workers.each[1].send_signal(signal.SIGCONT)
    check(
        f"SIGTERM with a stopped worker ends the server with 143, not {status}", status == 143
    )
    check("both workers end", [c for c, _ in workers.end(5)] == [1, 1])


def sigkill(a):
    server = Server(a.musterd, "-n", "2")
    workers = Workers(a.crowd, server, 2, *SLOW)
    time.sleep(0.5)
    server.process.kill()
    server.process.wait()
    began = time.monotonic()
    for code, said in workers.end(5):
        check(
            f"kill -9 of the server ends its workers with a sentence: {said.strip()}",
            code == 1 and said,
        )
    check("at once, not after a lease", time.monotonic() - began < 2)


def status_before_anybody(a):
    server = Server(a.musterd, "-n", "2")
    got = subprocess.run(
        [a.muster, "status", f"127.0.0.1:{server.port}"],
        capture_output=True,
        text=True,
        timeout=10,
    )
    server.stop()
    check(
        f"status before the first worker: {got.stdout.strip()}{got.stderr.strip()}",
        got.returncode == 0,
    )


def crowd_of_watchers(a):
    server = Server(a.musterd, "-n", "2", "--commits", "20")
    watchers = []
    for _ in range(100):
        s = server.connect()
        s.sendall(frame(ASK_STATUS, b"\x00\x00\x00\x00"))
        watchers.append(s)
    workers = Workers(a.crowd, server, 2)
    check(
        "a hundred watchers do not keep workers out", [c for c, _ in workers.end(20)] == [0, 0]
    )
    check("and the server ends", server.process.wait(20) == 0)


def heartbeat_flood(a):
    server = Server(a.musterd, "-n", "2", "--commits", "60")
    rude = Workers(a.crowd, server, 2, "sleep_us=5000")
    loud = server.connect()
    loud.setblocking(False)
    flood = frame(ASK_STATUS, b"\x00\x00\x00\x00") * 300
    until = time.monotonic() + 20
    while any(w.poll() is None for w in rude.each) and time.monotonic() < until:
        try:
            loud.send(flood)
        except (BlockingIOError, ConnectionError):
            time.sleep(0.001)
    check(
        "a flood of questions that are never read does not stop the job",
        [c for c, _ in rude.end(5)] == [0, 0],
    )
    loud.close()
    check("and the server ends", server.process.wait(20) == 0)


def join_timeout(a):
    server = Server(a.musterd, "-n", "3", "--join-timeout", "1s")
    workers = Workers(a.crowd, server, 2)
    for code, said in workers.end(10):
        check(f"a worker too few: {said.strip()}", code == 1 and "missing: rank 2" in said)
    check("the server fails", server.process.wait(10) == 1)


def nobody_offers(a):
    server = Server(a.musterd, "-n", "2")
    workers = Workers(a.crowd, server, 2, "start=0")
    for code, said in workers.end(10):
        check(f"no start state: {said.strip()}", code == 1 and "start state" in said)
    check("the server fails", server.process.wait(10) == 1)


def check_history(workers):
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run(
        [
            sys.executable,
            os.path.join(here, "check_history.py"),
            os.path.join(workers.dir.name, "log"),
            "--optimizer",
            "sgd:0.1,0.9",
            "--kills",
        ],
        check=True,
    )


def rejoin(a):
    server = Server(a.musterd, "-n", "3", "--policy", "bsp", "--commits", "200")
    workers = Workers(a.crowd, server, 3, "sleep_us=5000", "2:die=5")
    time.sleep(0.6)
    env = dict(os.environ, MUSTER_SERVER=f"127.0.0.1:{server.port}", MUSTER_RANK="2")
    again = subprocess.run(
        [a.crowd, os.path.join(workers.dir.name, "log"), "100", "sleep_us=5000"],
        env=env,
        timeout=30,
        stdin=subprocess.DEVNULL,
    )
    check("a rank that died comes back and stays to the end", again.returncode == 0)
    check("the others went on", sorted(c for c, _ in workers.end(10)) == [-9, 0, 0])
    check_history(workers)
    check("the server finishes", server.process.wait(10) == 0)


def at_any_moment(a, signo, seeds):
    """One of five workers gets a signal at a random moment; backup:4 must not care."""
    hits = 0
    for seed in seeds:
        chance = random.Random(seed)
        server = Server(
            a.musterd, "-n", "5", "--policy", "backup:4", "--commits", "800", "--lease", "1s"
        )
        workers = Workers(a.crowd, server, 5, "sleep_us=1000")
        time.sleep(0.2 + chance.random() * 0.5)
        victim = workers.each[chance.randrange(5)]
        victim.send_signal(signo)
        status = server.process.wait(30)
        if signo == signal.SIGSTOP:
            victim.send_signal(signal.SIGCONT)
        codes = [c for c, _ in workers.end(10)]
        hits += any(codes)
        check(
            f"seed {seed}: the job finishes, with {codes}",
            status == 0 and sum(c != 0 for c in codes) <= 1,
        )
        check_history(workers)
    check(f"{hits} of {len(seeds)} were hit in mid-run", 2 * hits > len(seeds))


def kill_at_any_moment(a):
    at_any_moment(a, signal.SIGKILL, range(12))


def freeze_at_any_moment(a):
    at_any_moment(a, signal.SIGSTOP, range(100, 106))


def a_frozen_worker_wakes_evicted(a):
    server = Server(
        a.musterd, "-n", "3", "--policy", "bsp", "--commits", "4000", "--lease", "500ms"
    )
    workers = Workers(a.crowd, server, 3, "sleep_us=500")
    time.sleep(0.5)
    workers.each[1].send_signal(signal.SIGSTOP)
    time.sleep(1.2)
    workers.each[1].send_signal(signal.SIGCONT)
    ends = workers.end(30)
    check(
        f"it is told why: {ends[1][1].strip()}",
        ends[1][0] == 1 and "silent for its lease" in ends[1][1],
    )
    check("the others finish", [ends[0][0], ends[2][0], server.process.wait(10)] == [0, 0, 0])
    check_history(workers)


def a_run_of_servers_is_ended_in_any_phase(a):
    """SIGTERM or Ctrl-C to muster run, or to all of its group: it says so, and nothing is left."""
    for i, wait_s in enumerate((0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4)):
        mark = f"MUSTER_ENDS={os.getpid()}.{i}"
        with tempfile.TemporaryDirectory() as d:
            run = subprocess.Popen(
                [a.muster, "run", "-n", "3", "--servers", "3", "--listen", "127.0.0.1:0",
                 "--grace", "2s", "--", a.crowd, os.path.join(d, "log"), "20001", *SLOW],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, start_new_session=True,
                env=dict(os.environ, **dict([mark.split("=")])))
            signo = signal.SIGINT if i % 2 else signal.SIGTERM
            until(lambda: has_begun(run.pid))
            time.sleep(wait_s)
            (os.killpg if i % 4 < 2 else os.kill)(run.pid, signo)
            said, _ = run.communicate(timeout=15)
        check(f"{signo.name} after {wait_s} s: {run.returncode}",
              run.returncode == 128 + signo and "assertion" not in said)
        check("in words", f"signal {int(signo)}" in said or f"by {signo.name}" in said)
        check("nothing is left", until(lambda: not tagged(mark), 3))


def a_server_that_dies_before_the_start(a):
    """Nobody waits for it until the join timeout, and it is named."""
    mark = f"MUSTER_ENDS={os.getpid()}"
    run = subprocess.Popen(
        [a.muster, "run", "-n", "2", "--servers", "2", "--listen", "127.0.0.1:0", "--", "sleep",
         "50"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=dict(os.environ, **dict([mark.split("=")])))

    def member():
        found = []
        for pid in tagged(mark):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
                found += [pid] if b"--join=" in f.read() else []
        return found

    check("a member is there", until(member, 10))
    os.kill(member()[0], signal.SIGKILL)
    said, _ = run.communicate(timeout=20)
    check(f"it ends: {said.strip().splitlines()[-1]}",
          run.returncode == 1 and "server 1" in said and "before the job had started" in said)
    check("nothing is left", until(lambda: not tagged(mark), 3))


CASES = {
    f.__name__: f
    for f in (
        sigterm,
        sigterm_with_a_stopped_worker,
        sigkill,
        status_before_anybody,
        crowd_of_watchers,
        heartbeat_flood,
        join_timeout,
        nobody_offers,
        rejoin,
        kill_at_any_moment,
        freeze_at_any_moment,
        a_frozen_worker_wakes_evicted,
        a_run_of_servers_is_ended_in_any_phase,
        a_server_that_dies_before_the_start,
    )
}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("case", nargs="?")
    p.add_argument("--list", action="store_true")
    for name in ("--musterd", "--crowd", "--muster"):
        p.add_argument(name)
    a = p.parse_args()
    if a.list:
        print("\n".join(CASES))
    else:
        CASES[a.case](a)


main()
