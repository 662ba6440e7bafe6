#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The curves of the papers behind the policies, at a small scale: `muster sim --train` on digits.

    papers_sim.py --out DIR [--build DIR] [--data DIR] [--seeds 5] [--scale 1] [--only NAME]

ksync, kasync   error against time and against commits for K of 8 workers (Dutta et al. 2018)
ksync-noise, kasync-noise
                the same on a quadratic with much noise: a small K is ahead at first, a large K at
                the end
backup          commits to an error, time of a commit, and their product, for N + b workers of a
                fixed sum (Chen et al. 2016)
staleness       error against the age of gradients, one after the other (Chen et al. 2016)
blocking        loss against time and time to a loss, for bsp, nonblocking and async, as the workers
                differ more and more (He, Dube 2022)

Each writes CSV and SVG into DIR. Everything is simulated, so the same seeds give the same figures
on any machine. What is written is the mean over the seeds, and its confidence interval of 95 % by
Student's t. Without --data (with MNIST's files) digits are drawn. --scale makes jobs shorter.
"""
import argparse
import csv
import json
import math
import pathlib
import subprocess
import sys

import numpy as np

import svg

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKERS, MEAN_MS = 8, 20
HIDDEN, BATCH = 32, 32
NOISY = "quadratic:dim=50,cond=5,noise=4,batch=1"
LIMIT_S = 600
# Student's t for 95 %, two-sided, by degrees of freedom.
T95 = (0, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
       2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)


def interval(values):
    """The mean along the first axis, and half of its confidence interval."""
    values = np.asarray(values, dtype=float)
    n = len(values)
    if n < 2:
        return values.mean(axis=0), np.zeros(values.shape[1:])
    t = T95[n - 1] if n <= len(T95) else 1.96
    return values.mean(axis=0), t * values.std(axis=0, ddof=1) / math.sqrt(n)


def kth(k, n):
    """The mean of the k-th of n exponential times of mean 1 (Renyi 1953)."""
    return sum(1 / i for i in range(n - k + 1, n + 1))


def digits(a):
    return f"digits{':' + str(a.data) + ',' if a.data else ':'}hidden={HIDDEN},batch={BATCH}"


def simulate(a, seed, *args, problem=None):
    """Return: the jobs of one simulation."""
    command = [a.build / "tools/muster", "sim", "-q", "--json", "-", "--seed", seed, "--train",
               problem or digits(a), *args]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
    if done.returncode not in (0, 1):  # 1: a job that was trained too fast, and has failed
        sys.exit(f"papers_sim: {' '.join(map(str, command))}:\n{done.stderr}")
    return json.loads(done.stdout)["jobs"]


def seeds(a):
    return range(1, a.seeds + 1)


def column(points, name):
    """One figure of all points; what is missing is NaN."""
    return np.array([math.nan if p[name] is None else p[name] for p in points])


def first_below(points, name, target):
    """The first point at which the figure is below the target; None: there is none."""
    return next((p for p in points if p[name] is not None and p[name] < target), None)


class Table:
    """A CSV file."""

    def __init__(self, a, name, *columns):
        self.path, self.rows = a.out / f"{name}.csv", [columns]

    def add(self, *row):
        """What is missing is an empty field."""
        self.rows.append([x if not isinstance(x, float) else f"{x:.6g}" if math.isfinite(x) else ""
                          for x in row])

    def write(self):
        with open(self.path, "w", newline="", encoding="utf-8") as f:
            csv.writer(f, lineterminator="\n").writerows(self.rows)
        print(self.path)


def draw(a, name, plot):
    path = a.out / f"{name}.svg"
    plot.write(path)
    print(path)


def add_band(plot, name, xs, means, halves):
    plot.add(name, xs, means, means - halves, means + halves)


# ---- K of P ----

def k_curves(a, family, problem=None, name_of="test digits"):
    """Plain SGD at one rate, as in the theory: the same for all K."""
    end_s = 8 * a.scale
    runs = {}
    for k in (1, 2, 4, 8):
        commits = int(end_s * 1e3 / (MEAN_MS * kth(k, WORKERS)))
        runs[k] = [simulate(a, seed, "-n", WORKERS, "--delay", f"exp:{MEAN_MS}", "--policy",
                            f"{family}:{k}", "--force", "--commits", commits, "--every",
                            f"{int(end_s * 1e6 / 40)}us", "--lr-scale", "none", "--optimizer",
                            "sgd:lr=0.1,momentum=0", problem=problem)[0]["errors"]
                   for seed in seeds(a)]
    title = f"{family}-noise" if problem else family
    table = Table(a, title, "policy", "against", "x", "error", "half_interval", "seeds")
    for against, name, log in (("simulated_s", "seconds", False), ("commits", "commits", True)):
        plot = svg.Plot(f"{family}:K of {WORKERS}, exponential times of {MEAN_MS} ms", name,
                        f"error on {name_of}", log_x=log, log_y=True)
        for k, curves in runs.items():
            last = min(column(c, against)[-1] for c in curves)
            grid = (np.geomspace(1, last, 40) if log else np.linspace(0, last, 41))
            mean, half = interval([np.interp(grid, column(c, against), column(c, "error"))
                                   for c in curves])
            add_band(plot, f"K = {k}", grid, mean, half)
            for x, y, h in zip(grid, mean, half):
                table.add(f"{family}:{k}", name, float(x), float(y), float(h), a.seeds)
        draw(a, f"{title}-{name}", plot)
    table.write()


# ---- backup workers ----

def backup(a):
    """N and b for N + b = 16: the rate goes with N, as by default."""
    total, target = 16, 0.08
    table = Table(a, "backup", "b", "commits", "commits_half", "step_ms", "step_ms_half", "time_s",
                  "time_s_half", "seeds")
    plot = svg.Plot(f"backup:N, N + b = {total}, to an error of {100 * target:g} %", "b",
                    "of the value for b = 0")
    drawn = {"commits": [], "time of a commit": [], "time to the error": []}
    spare = (0, 1, 2, 3, 4, 6, 8)
    for b in spare:
        found = []
        for seed in seeds(a):
            job, = simulate(a, seed, "-n", total, "--delay", f"sexp:{MEAN_MS / 2},{MEAN_MS / 2}",
                            "--policy", f"backup:{total - b}", "--commits", int(400 * a.scale),
                            "--every", "4commits", "--optimizer", "sgd:lr=0.2,momentum=0")
            point = first_below(job["errors"], "error", target)
            step = job["step_ms"]["mean"]
            found.append((point["commits"], step, point["simulated_s"]) if point else
                         (math.nan, step, math.nan))
        mean, half = interval(found)
        table.add(b, *(float(x) for pair in zip(mean, half) for x in pair), a.seeds)
        for name, m, h in zip(drawn, mean, half):
            drawn[name].append((m, h))
    for name, values in drawn.items():
        mean, half = (np.array(column) for column in zip(*values))
        add_band(plot, name, spare, mean / mean[0], half / mean[0])
    draw(a, "backup", plot)
    table.write()


# ---- staleness ----

def staleness(a):
    ages = (0, 5, 10, 15, 20, 25, 30, 40, 50)
    table = Table(a, "staleness", "rate", "staleness", "error", "half_interval", "seeds")
    plot = svg.Plot("One worker, gradients that are S commits old", "S", "error on test digits",
                    log_y=True)
    for rate in (0.1, 0.05, 0.02):
        ends = []
        for seed in seeds(a):
            args = [word for age in ages for word in ("--staleness", age)]
            jobs = simulate(a, seed, "-n", 1, "--delay", f"const:{MEAN_MS}", *args, "--commits",
                            int(2500 * a.scale), "--every", f"{int(2500 * a.scale)}commits",
                            "--optimizer", f"sgd:lr={rate},momentum=0")
            ends.append([column(job["errors"], "error")[-1] for job in jobs])
        mean, half = interval(ends)
        add_band(plot, f"rate {rate}", ages, mean, half)
        for age, y, h in zip(ages, mean, half):
            table.add(rate, age, float(y), float(h), a.seeds)
    draw(a, "staleness", plot)
    table.write()


# ---- workers that differ ----

def delays(spread):
    """The slowest worker takes @spread times as long as the fastest; all vary by 20 %. The mean
    rate of the cluster is the same for each spread."""
    slow = [spread ** (rank / (WORKERS - 1)) for rank in range(WORKERS)]
    unit = MEAN_MS * sum(1 / s for s in slow) / WORKERS
    return [word for rank, s in enumerate(slow)
            for word in ("--delay", f"{rank}:uniform:{0.8 * unit * s:.6g},{1.2 * unit * s:.6g}")]


def blocking(a):
    target, policies, spreads = 0.35, ("bsp", "nonblocking", "async"), (1, 2, 4, 8)
    end_s = 8 * a.scale
    curves = Table(a, "blocking-curves", "spread", "policy", "seconds", "loss", "half_interval",
                   "seeds")
    times = Table(a, "blocking", "spread", "policy", "time_to_loss_s", "half_interval", "seeds")
    reached = {policy: [] for policy in policies}
    for spread in spreads:
        plot = svg.Plot(f"Slowest worker {spread} times as slow as the fastest", "seconds",
                        "training loss", log_y=True)
        samples = int(end_s * 1e3 / MEAN_MS * WORKERS * BATCH)
        grid = np.linspace(end_s / 40, end_s, 40)
        jobs = [simulate(a, seed, "-n", WORKERS, *delays(spread),
                         *(word for policy in policies for word in ("--policy", policy)),
                         "--samples", samples, "--every", f"{int(end_s * 1e6 / 80)}us",
                         "--optimizer", "sgd:lr=0.2,momentum=0") for seed in seeds(a)]
        for i, policy in enumerate(policies):
            losses = []
            for points in (of_seed[i]["errors"] for of_seed in jobs):
                given = [p for p in points if p["loss"] is not None]
                losses.append(np.interp(grid, column(given, "simulated_s"), column(given, "loss"),
                                        right=math.nan))
            mean, half = interval(losses)
            add_band(plot, policy, grid, mean, half)
            for x, y, h in zip(grid, mean, half):
                curves.add(spread, policy, float(x), float(y), float(h), a.seeds)
            found = [first_below(of_seed[i]["errors"], "loss", target) for of_seed in jobs]
            mean, half = interval([p["simulated_s"] if p else math.nan for p in found])
            reached[policy].append((float(mean), float(half)))
            times.add(spread, policy, float(mean), float(half), a.seeds)
        draw(a, f"blocking-{spread}", plot)
    plot = svg.Plot(f"Time to a training loss of {target:g}",
                    "slowest worker, times the fastest", "seconds", log_x=True)
    for policy, values in reached.items():
        mean, half = (np.array(column) for column in zip(*values))
        add_band(plot, policy, spreads, mean, half)
    draw(a, "blocking", plot)
    curves.write()
    times.write()


FIGURES = {
    "ksync": lambda a: k_curves(a, "ksync"),
    "kasync": lambda a: k_curves(a, "kasync"),
    "ksync-noise": lambda a: k_curves(a, "ksync", NOISY, "a quadratic"),
    "kasync-noise": lambda a: k_curves(a, "kasync", NOISY, "a quadratic"),
    "backup": backup,
    "staleness": staleness,
    "blocking": blocking,
}


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    p.add_argument("--data", type=pathlib.Path)
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--scale", type=float, default=1)
    p.add_argument("--only", choices=FIGURES, action="append")
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    for name in a.only or FIGURES:
        FIGURES[name](a)


if __name__ == "__main__":
    main()
