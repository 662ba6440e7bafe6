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
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from live import ROOT, Job

QUIET_S, AFTER_S = 1.0, 1.0  # before anything happens, and after a change
EVENTS = ("bsp", "from bsp to async", "async", "async, one is killed", "from async to bsp")


def change(job, policy):
    """Return: when it was asked for."""
    at = job.now()
    subprocess.run([job.build / "tools/muster", "policy", job.address, policy], check=True,
                   stdout=subprocess.DEVNULL)
    return at


def longest(times, begin, end):
    """NaN: nothing was counted until the end, as on a machine that stands still."""
    first = max(bisect.bisect_left(times, begin) - 1, 0)
    inside = times[first:bisect.bisect_right(times, end) + 1]
    return max((b - a for a, b in zip(inside, inside[1:])), default=math.nan) / 1e3


def play(a, killed, quiet_s=QUIET_S, after_s=AFTER_S):
    """One round. Return: the longest pauses in ms, one for each of EVENTS."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job(a.build, folder, a.workers, a.step, "--servers", str(a.servers))
        time.sleep(quiet_s)
        at = [job.now() - quiet_s / 2 * 1e6, change(job, "async")]
        time.sleep(after_s + quiet_s)
        at += [job.now() - quiet_s / 2 * 1e6, job.now()]
        os.kill(job.worker(killed), signal.SIGKILL)
        at.append(change(job, "bsp"))
        time.sleep(after_s + 0.2)
        job.run.send_signal(signal.SIGINT)
        times = [float(row["ready_us"]) for row in job.rows() if row["verdict"] == "counted"]
    ends = (quiet_s / 2, after_s, quiet_s / 2, quiet_s / 2, after_s)
    return [longest(times, begin, begin + s * 1e6) for begin, s in zip(at, ends)]


def rounds(a, count, *times_s):
    """Another worker is killed in each round. Return: the longest pauses in ms, by event."""
    found = [play(a, 1 + i % (a.workers - 1), *times_s) for i in range(count)]
    return dict(zip(EVENTS, zip(*found)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--step", type=int, default=20, help="ms")
    parser.add_argument("--rounds", type=int, default=10)
    a = parser.parse_args()

    found = rounds(a, a.rounds)
    print(f"{a.servers} servers, {a.workers} workers, gradients of {a.step} ms, {a.rounds} rounds; "
          f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}\n")
    print("| longest time without a counted gradient, in ms | median | range |\n|---|---|---|")
    for name, column in found.items():
        print(f"| {name} | {statistics.median(column):.1f} | "
              f"{min(column):.1f} to {max(column):.1f} |")


if __name__ == "__main__":
    sys.exit(main())
