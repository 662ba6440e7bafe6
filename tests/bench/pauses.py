#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long a job makes no version where its server is killed and another is started at once
(--server-patience), beside how long a fresh start takes.

The workers are processes that are there all the time and compute nothing. In each round they join a
new server, which is the fresh start: from the start of the server's process to the first version
that a worker has. Then the server is killed (SIGKILL), again and again, each time some versions
later, and another is started in the same moment: from the kill to the next version that a worker
has. Workers own, and servers own with momentum and a checkpoint; there the versions that are void
have still to be made again. Printed are p50, p99 (nearest rank) and the longest, in ms, and the p50
of the pause as a multiple of the fresh start's.

usage: pauses.py BUILD [--workers N] [--mib N] [--rounds N] [--kills N]
"""
import argparse
import math
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAIT_S = 120
LATER = 3  # versions between a pause and the next kill


def read_line():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--workers", type=int, default=4)
    p.add_argument("--mib", type=float, default=100)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--kills", type=int, default=10)
    a = p.parse_args()
    os.environ["MUSTER_LIBRARY"] = str((a.build / "client" / "libmuster.so.0").resolve())
    sys.path.insert(0, str(ROOT / "client" / "python"))
    return a


# ---- a worker ----

def work(a, owner, address, rank, times):
    """Writes the time of each version that it is given, in ns, with the version and the
    generation: a line for each."""
    import muster
    with open(f"{times}.log", "w") as log:
        os.dup2(log.fileno(), 2)
    elems = int(a.mib * (1 << 18))
    with open(times, "w", buffering=1) as out, muster.Worker(
            elems, owner=owner, server=address, rank=rank, join_timeout=WAIT_S) as worker:
        done = worker.start(memoryview(bytearray(4 * elems)).cast("f")
                            if owner == "servers" else None)
        while not done.finished:
            worker.gradient()
            worker.push()
            done = worker.wait()
            print(time.monotonic_ns(), done.version, done.generation, file=out)


def fork(function, *arguments):
    pid = os.fork()
    if pid == 0:
        try:
            function(*arguments)
        finally:
            os._exit(0)
    return pid


# ---- the job ----

class Job:
    def __init__(self, a, owner, folder):
        self.a, self.owner, self.folder, self.server = a, owner, folder, None
        self.held = socket.socket()  # nobody else gets the port
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.held.getsockname()[1]}"
        state = f"{folder}/state"
        self.state = pathlib.Path(state)
        self.options = ["--owner", owner] + ([
            "--optimizer", "sgd:lr=0.1,momentum=0.9", "--state", state, "--resume", state,
            "--or-begin", "--checkpoint-every", str(LATER), "--checkpoint-rate", "0"]
            if owner == "servers" else [])

    def start(self):
        """Return: when."""
        at = time.monotonic_ns()
        self.log = open(f"{self.folder}/log", "a")
        self.server = subprocess.Popen(
            [self.a.build / "server" / "musterd", "-n", str(self.a.workers), "--listen",
             self.address, "--server-patience", "10min", *self.options], stderr=self.log)
        return at

    def is_saved(self):
        """Waits until there is something to go on from."""
        end = time.monotonic() + WAIT_S
        while self.owner == "servers" and not list(self.state.glob("v*.json")):
            if time.monotonic() > end:
                sys.exit("no version is saved")
            time.sleep(0.005)

    def lines(self):
        for rank in range(self.a.workers):
            path = pathlib.Path(f"{self.folder}/times.{rank}")
            for line in path.read_text().splitlines() if path.exists() else []:
                if line.count(" ") == 2:
                    yield tuple(map(int, line.split()))

    def first(self, generation, what=lambda version: True):
        """When a worker was first given a version of this generation that is @what."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            found = [at for at, version, number in self.lines()
                     if number == generation and what(version)]
            if found:
                return min(found)
            time.sleep(0.005)
        with open(f"{self.folder}/log") as f:
            sys.exit(f"generation {generation} makes no version: {f.read()[-2000:]}")

    def began(self, generation):
        """The version that it began with: of it no worker has been told COUNTED."""
        return min(version for _, version, number in self.lines() if number == generation)

    def run(self):
        """Return: how long the fresh start took, and each pause, in ms."""
        at, pauses = self.start(), []
        pids = [fork(work, self.a, self.owner, self.address, rank, f"{self.folder}/times.{rank}")
                for rank in range(self.a.workers)]
        try:
            fresh = self.first(1, lambda version: version > 0) - at
            for number in range(1, self.a.kills + 1):
                begin = self.began(number)
                self.first(number, lambda version, v=begin: version > v + LATER + 1)
                self.is_saved()
                self.server.kill()
                at = time.monotonic_ns()
                self.server.wait()
                self.start()
                self.first(number + 1)
                begin = self.began(number + 1)
                pauses.append(self.first(number + 1, lambda version, v=begin: version > v) - at)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            self.server.kill()
            self.server.wait()
            self.held.close()
        return fresh / 1e6, [pause / 1e6 for pause in pauses]


def line(name, times):
    times = sorted(times)
    print(f"  {name:12} p50 {statistics.median(times):8.1f}  "
          f"p99 {times[math.ceil(0.99 * len(times)) - 1]:8.1f}  max {times[-1]:8.1f}  "
          f"({len(times)})", flush=True)


def main():
    a = read_line()
    print(f"{a.workers} workers, {a.mib:g} MiB, {os.cpu_count()} processors, ms")
    for owner in ("workers", "servers"):
        fresh, pauses = [], []
        for _ in range(a.rounds):
            with tempfile.TemporaryDirectory(prefix="muster-test-") as folder:
                first, others = Job(a, owner, folder).run()
            fresh.append(first)
            pauses += others
        print(f"{owner} own")
        line("fresh start", fresh)
        line("pause", pauses)
        print(f"  {statistics.median(pauses) / statistics.median(fresh):.2f} times a fresh start")
    print(f"load {os.getloadavg()[0]:.1f}")


main()
