#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a step takes under each policy: by formula, in `muster sim`, and with real processes.

    formulas.py [--build DIR] [--workers 8] [--mean 100] [--commits 60] [--rounds 3]
                [--only POLICY]

Real workers are those of examples/digits, which sleep for the delays that `muster sim` draws with
the same seed. So both make the same steps, and their times may be compared after few of them. The
formulas are of means, and are held against a long simulation. The rounds differ in their seeds.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH, MICROS = 32, 8
LONG = 20000  # commits of the long simulation
LIMIT_S = 600

# policy; formula: its words, or "" where there is none; ms: what it says for a mean of 1, or None;
# often: how many times as many commits as under bsp are made
Row = collections.namedtuple("Row", "policy formula ms often")


def kth(k, n):
    """The mean of the k-th of n exponential times of mean 1 (Renyi 1953)."""
    return sum(1 / i for i in range(n - k + 1, n + 1))


def slowest_sum(n, batches):
    """The mean of the largest of n sums of so many exponential times of mean 1."""
    x = np.linspace(0, 10 * batches + 40, 200001)
    below = 1 - np.exp(-x) * sum(x ** i / math.factorial(i) for i in range(batches))
    above = 1 - below ** n
    return float(np.sum(above[1:] + above[:-1]) * (x[1] - x[0]) / 2)


def rows(n, mean):
    """n: workers; mean: of a gradient's time, in ms."""
    half = n // 2
    return [
        Row("bsp", f"E[X({n}:{n})]", kth(n, n), 1),
        Row(f"ksync:{n - 1}", f"E[X({n - 1}:{n})]", kth(n - 1, n), 1),
        Row(f"ksync:{half}", f"E[X({half}:{n})]", kth(half, n), 2),
        Row(f"backup:{n - 1}", "", None, 1),
        Row(f"kbatchsync:{n}", "K E[X] / P", 1, 2),
        Row(f"kasync:{half}", "", None, 2),
        Row(f"kbatchasync:{n}", "K E[X] / P", 1, 2),
        Row("async", "E[X] / P", 1 / n, n),
        Row("ssp:3", "", None, n),
        Row("nonblocking", "", None, 4),
        Row(f"anytime:{1.5 * mean:g}", "the timer, and up to a micro-batch", None, 1),
        Row(f"deadline:{1.5 * mean:g},{n - 2}", "", None, 1),
        Row("local:4", "E[max of P sums of 4 X]", slowest_sum(n, 4), 1 / 3),
        Row("easgd:4,0.1", "4 E[X] / P", 4 / n, n / 2),
        Row("easgdsync:4,0.1", "", None, 1 / 3),
        Row("downpour:2,4", "2 E[X] / P", 2 / n, n / 2),
    ]


def told(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        sys.exit(f"formulas: {' '.join(map(str, command))}:\n{done.stderr}")
    return done


def simulated(a, policy, commits, seed):
    """Return: the mean step in ms."""
    done = told([a.build / "tools/muster", "sim", "-n", a.workers, "--policy", policy, "--delay",
                 f"exp:{a.mean}", "--micro", MICROS, "--commits", commits, "--seed", seed,
                 "--patience", "1h", "--json", "-", "-q"])
    job = json.loads(done.stdout)["jobs"][0]
    return job["simulated_s"] / job["commits"] * 1e3


def real(a, policy, commits, seed):
    with tempfile.TemporaryDirectory() as folder:
        figures = os.path.join(folder, "figures")
        told([a.build / "tools/muster", "run", "-n", a.workers, "--policy", policy, "--listen",
              "127.0.0.1:0", "--commits", commits, "--json", figures, "--",
              a.build / "client/examples/digits", "--product", "plain", "--hidden", 16, "--batch",
              BATCH, "--micro", BATCH // MICROS, "--test-every", 0, "--delay", f"exp:{a.mean}",
              "--seed", seed])
        with open(figures, encoding="utf-8") as f:
            job = json.load(f)
        return job["wall_s"] / job["commits"] * 1e3


def machine():
    cpu = [line.split(":", 1)[1].strip() for line in
           pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
           if line.startswith("model name")]
    return f"{len(cpu)} x {cpu[0] if cpu else '?'}, load {os.getloadavg()[0]:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--mean", type=float, default=100, help="of a gradient's time, in ms")
    parser.add_argument("--commits", type=int, default=60, help="of a real run under bsp")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="policies whose names begin like this")
    a = parser.parse_args()
    a.mean = f"{a.mean:g}"

    print(f"{a.workers} workers, gradients of exp:{a.mean} ms, {a.rounds} rounds; {machine()}\n")
    print("| policy | formula | ms | simulated | with real processes, to the simulated ones |")
    print("|---|---|---|---|---|")
    for row in rows(a.workers, float(a.mean)):
        if a.only and not row.policy.startswith(a.only):
            continue
        commits = max(int(a.commits * row.often), 10)
        ratio = []
        for seed in range(1, a.rounds + 1):
            ratio.append(real(a, row.policy, commits, seed) /
                         simulated(a, row.policy, commits, seed))
        formula = "" if row.ms is None else f"{row.ms * float(a.mean):.1f}"
        print(f"| `{row.policy}` | {row.formula} | {formula} | "
              f"{simulated(a, row.policy, LONG, 1):.1f} | {np.mean(ratio):.3f} "
              f"({min(ratio):.3f} to {max(ratio):.3f}) |", flush=True)


if __name__ == "__main__":
    main()
