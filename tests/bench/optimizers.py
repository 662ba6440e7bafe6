#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a whole step takes with each optimiser, beside what memory takes at least for its bytes.

    optimizers.py BUILD [--rounds N] [--mib 100] [--workers 2] [--samples N] [--only NAME,...]

In each round each row, an optimiser with or without a moving average, has a job of real processes
(bench_step: workers push and wait, and nothing else) and, right after it, the same streams in loops
that only read and write (bench_streams). What has to be moved: each gradient, the parameters, what
the optimiser keeps and the average are read; what it keeps, the average and the result are written.
An optimiser with a reduce phase cannot begin with the step before it has been through the vector:
it writes the mean, and reads it in a second pass, and with it again what the first pass has read.

Told are medians over the rounds: of the p50 of a step, of its ratio to that of the first row in the
same round, of the time of the streams, and of its ratio to the step before it; of ratios also the
quartiles. The least step and the least time of the streams are those of all rounds.
"""
import argparse
import collections
import os
import pathlib
import statistics
import subprocess
import sys

AVERAGE = 0.9

# Name: the optimiser, how many vectors it keeps, what its first pass reads besides the gradients
# (None: it has no reduce phase, and one pass is all).
ROWS = {
    "sgd": ("sgd:momentum=0", 0, None),
    "momentum": ("sgd:momentum=0.9", 1, None),
    "nesterov": ("sgd:momentum=0.9,nesterov=1", 1, None),
    "clip": ("sgd:momentum=0.9,clip=1", 1, ()),
    "outer": ("outer", 1, None),
    "adagrad": ("adagrad", 1, None),
    "rmsprop": ("rmsprop:momentum=0.9", 2, None),
    "adam": ("adam", 2, None),
    "adamw": ("adamw", 2, None),
    "lars": ("lars", 1, ("theta",)),
    "lamb": ("lamb", 2, ("theta", "state", "state")),
}
Pass = collections.namedtuple("Pass", "reads replaced")  # and one stream is written


def passes(workers, states, first, averages):
    """What a commit of that many gradients has to go through."""
    replaced = states + averages
    if first is None:
        return [Pass(workers + 1 + replaced, replaced)]
    return [Pass(workers + len(first), 0), Pass(2 + replaced, replaced)]


def vectors(some):
    return sum(p.reads + p.replaced + 1 for p in some)


def told(command):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def step_ms(a, optimizer, averages):
    """(p50, least)"""
    policy = ["--policy", "local:1"] if optimizer == "outer" else []
    average = ["--average", AVERAGE] if averages else []
    out = told([a.build / "tools/muster", "run", "-q", "-n", a.workers, "--owner", "servers",
                "--listen", "127.0.0.1:0", "--lease", "60s", "--grace", "60s",
                "--optimizer", optimizer, *policy, *average, "--",
                a.build / "tests/bench/bench_step", a.mib << 18, a.samples, "servers"])
    _, _, p50, _, least = next(line for line in out.splitlines()
                               if line.startswith("step ")).split()
    return float(p50) / 1e3, float(least) / 1e3


def streams_ms(a, some):
    """(median, least) of all passes together."""
    out = told([a.build / "tests/bench/bench_streams", "--mib", a.mib, "--threads",
                min(2, os.cpu_count()), "--rounds", 2, *(f"{p.reads}:{p.replaced}" for p in some)])
    found = [line.split() for line in out.splitlines()]
    return tuple(sum(float(line[i]) for line in found) / 1e3 for i in (1, 2))


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{middle:.2f} ({low:.2f}, {high:.2f})"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--mib", type=int, default=100)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--samples", type=int, default=20)
    p.add_argument("--only", default=",".join(ROWS))
    a = p.parse_args()
    rows = [(name, averages) for averages in (False, True) for name in a.only.split(",")]
    steps, streams = collections.defaultdict(list), collections.defaultdict(list)
    before = os.getloadavg()[0]
    for _ in range(a.rounds):
        for row in rows:
            optimizer, states, first = ROWS[row[0]]
            steps[row].append(step_ms(a, optimizer, row[1]))
            streams[row].append(streams_ms(a, passes(a.workers, states, first, row[1])))
    print(f"{a.rounds} rounds of {a.samples} steps, {a.workers} workers, {a.mib} MiB, "
          f"{os.cpu_count()} processors, load {before:.1f} before and {os.getloadavg()[0]:.1f} "
          "after\n")
    print("| optimiser | vectors moved | step, ms | that of the first row | streams, ms | "
          "streams / step | least step, streams, ms |\n|---|---|---|---|---|---|---|")
    for row in rows:
        _, states, first = ROWS[row[0]]
        mine, memory = ([one[0] for one in some[row]] for some in (steps, streams))
        least = [min(one[1] for one in some[row]) for some in (steps, streams)]
        beside = [own / plain[0] for own, plain in zip(mine, steps[rows[0]])]
        print(f"| `{row[0]}`{', average' if row[1] else ''} | "
              f"{vectors(passes(a.workers, states, first, row[1]))} | "
              f"{statistics.median(mine):.1f} | {quartiles(beside)} | "
              f"{statistics.median(memory):.1f} | "
              f"{quartiles([s / step for s, step in zip(memory, mine)])} | "
              f"{least[0]:.1f}, {least[1]:.1f} |")


if __name__ == "__main__":
    sys.exit(main())
