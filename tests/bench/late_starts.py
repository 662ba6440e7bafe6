#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What --late-start does in real jobs: equal workers under backup:N-1, of which one is stopped for
a while, and so comes out of phase with the others.

    late_starts.py [--build DIR] [--workers 4] [--step 20] [--nap 200] [--after 6] [--trials 11]

Each gradient takes a sleep of --step ms. The settings take turns. What is told is from the time
after the nap: the share of late gradients, of all ranks and of the one that was stopped, and the
versions made in a second.
"""
import argparse
import os
import pathlib
import signal
import statistics
import tempfile
import time

from live import ROOT, Job

MODES = ("now", "auto", "commit")
BEFORE_S = 1.5  # the ledger knows how long steps and gradients take by then


def trial(a, mode):
    """Return: the rows of the time after the nap."""
    steps = (BEFORE_S + a.nap / 1e3 + a.after + 0.5) * 1e3 / a.step
    with tempfile.TemporaryDirectory() as folder:
        job = Job(a.build, folder, a.workers, a.step, "--policy", f"backup:{a.workers - 1}",
                  "--late-start", mode, "--commits", str(int(steps)))
        time.sleep(BEFORE_S)
        stopped = job.worker(a.workers - 1)
        os.kill(stopped, signal.SIGSTOP)
        time.sleep(a.nap / 1e3)
        os.kill(stopped, signal.SIGCONT)
        since = job.now()
        return [row for row in job.rows()
                if since <= float(row["ready_us"]) < since + a.after * 1e6]


def late_share(rows):
    judged = [row for row in rows if row["verdict"] in ("counted", "late")]
    return 100 * sum(row["verdict"] == "late" for row in judged) / len(judged)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--step", type=int, default=20, help="ms")
    parser.add_argument("--nap", type=int, default=200, help="ms")
    parser.add_argument("--after", type=float, default=6, help="s that are looked at")
    parser.add_argument("--trials", type=int, default=11)
    a = parser.parse_args()

    shares = {mode: [] for mode in MODES}
    for _ in range(a.trials):
        for mode in MODES:
            rows = trial(a, mode)
            own = [row for row in rows if row["rank"] == str(a.workers - 1)]
            versions = sum(row["verdict"] == "counted" for row in rows) / (a.workers - 1)
            shares[mode].append((late_share(rows), late_share(own), versions / a.after))
    print(f"{a.workers} workers, steps of {a.step} ms, a nap of {a.nap} ms, {a.trials} trials, "
          f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}\n")
    print("| `--late-start` | late, of all gradients | late, of the stopped worker's: median, "
          "range | versions a second: median, range |")
    print("|---|---|---|---|")
    for mode in MODES:
        every, own, rate = zip(*shares[mode])
        print(f"| `{mode}` | {min(every):.0f} to {max(every):.0f} % | "
              f"{statistics.median(own):.0f} %, {min(own):.0f} to {max(own):.0f} % | "
              f"{statistics.median(rate):.1f}, {min(rate):.1f} to {max(rate):.1f} |")


if __name__ == "__main__":
    main()
