#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long a job of several servers makes no version while its policy changes, and a worker dies.

    switches.py [--build DIR] [--servers 2] [--workers 5] [--step 20] [--rounds 10]

Each gradient takes a sleep of --step ms. A round goes from bsp to async and back; before it goes
back, a worker is killed with SIGKILL. What is told is the longest time between two gradients that
count, from a change until a second after it, and the same where nothing changes.
"""
import argparse
import bisect
import csv
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from late_starts import ROOT, worker_of

QUIET_S, AFTER_S = 1.0, 1.0


class Job:
    def __init__(self, a, folder):
        self.build, self.record = a.build, os.path.join(folder, "record.csv")
        self.run = subprocess.Popen(
            [a.build / "tools/muster", "run", "-n", str(a.workers), "--servers", str(a.servers),
             "--listen", "127.0.0.1:0", "--commits", str(int(1e7)), "--record", self.record, "--",
             a.build / "client/examples/digits", "--hidden", "16", "--test-every", "0", "--delay",
             f"const:{a.step}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.run.stderr:
            if found := re.search(r"listens on (\S+): \d+ workers", line):
                self.address = found[1]
            if re.search(r"starts:", line):
                break
        self.began = time.monotonic()
        # Whoever writes there must never wait.
        self.drain = subprocess.Popen(["cat"], stdin=self.run.stderr, stdout=subprocess.DEVNULL)

    def change(self, policy):
        """Return: when it was asked for, in us from the start of the job."""
        at = (time.monotonic() - self.began) * 1e6
        subprocess.run([self.build / "tools/muster", "policy", self.address, policy], check=True,
                       stdout=subprocess.DEVNULL)
        return at

    def end(self):
        self.run.send_signal(signal.SIGINT)
        self.run.wait()
        self.drain.wait()
        with open(self.record, newline="", encoding="ascii") as f:
            return [float(row["ready_us"]) for row in csv.DictReader(f)
                    if row["verdict"] == "counted"]


def longest(times, begin, end):
    first = max(bisect.bisect_left(times, begin) - 1, 0)
    inside = times[first:bisect.bisect_right(times, end) + 1]
    return max(b - a for a, b in zip(inside, inside[1:])) / 1e3


def play(a, killed):
    """One round. Return: the longest pauses in ms: bsp, to async, async, at the kill, to bsp."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job(a, folder)
        time.sleep(QUIET_S)
        at = [(time.monotonic() - job.began - QUIET_S / 2) * 1e6, job.change("async")]
        time.sleep(AFTER_S + QUIET_S)
        now = (time.monotonic() - job.began) * 1e6
        at += [now - QUIET_S / 2 * 1e6, now]
        os.kill(worker_of(killed, job.run.pid), signal.SIGKILL)
        at.append(job.change("bsp"))
        time.sleep(AFTER_S + 0.2)
        times = job.end()
    ends = (0.5, AFTER_S, 0.5, 0.5, AFTER_S)
    return [longest(times, begin, begin + s * 1e6) for begin, s in zip(at, ends)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--step", type=int, default=20, help="ms")
    parser.add_argument("--rounds", type=int, default=10)
    a = parser.parse_args()

    found = [play(a, 1 + i % (a.workers - 1)) for i in range(a.rounds)]
    print(f"{a.servers} servers, {a.workers} workers, gradients of {a.step} ms, {a.rounds} rounds; "
          f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}\n")
    print("| longest time without a counted gradient, in ms | median | range |\n|---|---|---|")
    for name, column in zip(("bsp", "from bsp to async", "async", "async, a worker is killed",
                             "from async to bsp"), zip(*found)):
        print(f"| {name} | {statistics.median(column):.1f} | "
              f"{min(column):.1f} to {max(column):.1f} |")


if __name__ == "__main__":
    sys.exit(main())
