# SPDX-License-Identifier: MIT
"""Figures of papers.py that are trained in `muster sim --train`: the same seeds give the same
figures on any machine."""
import math

import numpy as np

import svg
from paper_tools import (Table, add_band, add_rows, column, digits, given, groups, interval, kth,
                         read_table, seeds, simulate)


def first_below(points, name, target):
    """The first point at which the figure is below the target; None: there is none."""
    return next((p for p in points if p[name] is not None and p[name] < target), None)


# ---- K of P, and AdaSync ----

def adasync(s):
    """Its interval is that of muster, or as the set-up says."""
    return (f"adasync:{s.family}" + (f",1,{s.interval}" if hasattr(s, "interval") else "") +
            (",paper" if s.family == "ksync" else ""))


def k_policies(s):
    return [f"{s.family}:{k}" for k in s.ks] + [adasync(s)]


def k_runs(a, s):
    """Return: for each policy the curves of all seeds. A job ends after as many gradients as could
    count in the time, and its curve is cut there."""
    runs = {}
    for policy in k_policies(s):
        fastest = (s.workers / s.mean_ms if policy.startswith("adasync") else
                   (lambda k: k / (s.mean_ms * kth(k, s.workers)))(int(policy.split(":")[1])))
        gradients = 1.05 * fastest * 1e3 * s.end_s + s.workers
        runs[policy] = [simulate(
            a, seed, "-n", s.workers, "--delay", f"exp:{s.mean_ms}", "--policy", policy, "--force",
            "--samples", int(gradients * s.batch), "--every", f"{int(s.end_s * 1e6 / 40)}us",
            "--lr-scale", "none", "--optimizer", f"sgd:lr={s.rate},momentum=0", "--train",
            digits(a, s) if s.problem == "digits" else f"{s.problem},batch={s.batch}")[0]["errors"]
            for seed in seeds(s)]
        for curve in runs[policy]:
            curve[:] = [p for p in curve if p["simulated_s"] <= s.end_s * 1.0001]
    return runs


def k_envelope(a, s, runs, grid):
    """How far AdaSync is above the best fixed K at each time: the ratio of their errors, by seed.
    The best K is the one whose mean error is least, so the envelope is chosen in hindsight."""
    table = Table(a, f"{a.name}-envelope", "seconds", "best", "best_error", "adasync_error",
                  "ratio", "half_interval", "seeds")
    on_grid = {policy: np.array([np.interp(grid, column(c, "simulated_s"), column(c, "error"))
                                 for c in curves]) for policy, curves in runs.items()}
    ada = on_grid.pop(adasync(s))
    for i, t in enumerate(grid[1:], 1):
        best = min(on_grid, key=lambda policy, i=i: on_grid[policy][:, i].mean())
        ratio, half = interval(ada[:, i] / np.maximum(on_grid[best][:, i], 1e-12))
        table.add(float(t), best, float(on_grid[best][:, i].mean()), float(ada[:, i].mean()),
                  float(ratio), float(half), s.seeds)
    table.write()


def k_curves(a, s):
    """Plain SGD at one rate, as in the theory: the same for all K."""
    runs = k_runs(a, s)
    table = Table(a, a.name, "policy", "against", "x", "error", "half_interval", "seeds")
    for against, name, log in (("simulated_s", "seconds", False), ("commits", "commits", True)):
        for policy, curves in runs.items():
            last = min(column(c, against)[-1] for c in curves)
            grid = (np.geomspace(1, max(last, 2), 40) if log else np.linspace(0, s.end_s, 41))
            mean, half = interval([np.interp(grid, column(c, against), column(c, "error"))
                                   for c in curves])
            for x, y, h in zip(grid, mean, half):
                table.add(policy, name, float(x), float(y), float(h), s.seeds)
    table.write()
    k_envelope(a, s, runs, np.linspace(0, s.end_s, 41))


def k_plots(a, s):
    of, factor = (("error on test digits (%)", 100) if s.problem == "digits" else
                  ("value of the quadratic (1 at the start)", 1))
    for against, rows in groups(read_table(a, a.name), "against"):
        log = against == "commits"
        plot = svg.Plot(f"{s.family}:K of {s.workers}, exponential times of {s.mean_ms} ms",
                        "commits (number)" if log else "time (s)", of, log_x=log, log_y=True)
        for policy, of_policy in groups(rows, "policy"):
            label = "AdaSync" if policy.startswith("adasync") else f"K = {policy.split(':')[1]}"
            add_rows(plot, label, of_policy, "x", "error", "half_interval", factor)
        yield f"{a.name}-{against}", plot


# ---- backup workers ----

def backup_curves(a, s, curves):
    """The error of each b against commits and against time, as far as all its jobs went."""
    table = Table(a, f"{a.name}-curves", "b", "against", "x", "error", "half_interval", "seeds")
    for against, name in (("commits", "commits"), ("simulated_s", "seconds")):
        last = min(column(c, against)[-1] for of_b in curves.values() for c in of_b)
        grid = np.linspace(0, last, 41)
        for b in s.drawn:
            mean, half = interval([np.interp(grid, column(c, against), column(c, "error"))
                                   for c in curves[b]])
            for x, y, h in zip(grid, mean, half):
                table.add(b, name, float(x), float(y), float(h), s.seeds)
    table.write()


def backup(a, s):
    """N and b for a fixed N + b: the rate goes with N, as by default."""
    table = Table(a, a.name, "b", "commits", "commits_half", "step_ms", "step_ms_half", "time_s",
                  "time_s_half", "seeds")
    curves = {b: [] for b in s.spare}
    for b in s.spare:
        found = []
        for seed in seeds(s):
            job, = simulate(a, seed, "-n", s.total, "--delay", s.delay, "--policy",
                            f"backup:{s.total - b}", "--force", "--commits", s.commits, "--every",
                            "4commits", "--optimizer", f"sgd:lr={s.rate},momentum=0", "--train",
                            digits(a, s))
            curves[b].append(job["errors"])
            point = first_below(job["errors"], "error", s.target)
            step = job["step_ms"]["mean"]
            found.append((point["commits"], step, point["simulated_s"]) if point else
                         (math.nan, step, math.nan))
        mean, half = interval(found)
        table.add(b, *(float(x) for pair in zip(mean, half) for x in pair), s.seeds)
    table.write()
    backup_curves(a, s, curves)


def backup_plots(a, s):
    rows = read_table(a, a.name)
    plot = svg.Plot(f"backup:N, N + b = {s.total}, to an error of {100 * s.target:g} %",
                    "b, workers that may be late (number)", "ratio to that for b = 0 (1 at b = 0)")
    for name, kind in (("commits", "commits"), ("time of a commit", "step_ms"),
                       ("time to the error", "time_s")):
        add_rows(plot, name, rows, "b", kind, f"{kind}_half", 1 / (rows[0][kind] or math.nan))
    yield a.name, plot
    for against, of_axis in groups(read_table(a, f"{a.name}-curves"), "against"):
        plot = svg.Plot(f"backup:N, N + b = {s.total}",
                        "commits (number)" if against == "commits" else "time (s)",
                        "error on test digits (%)", log_y=True)
        for b, of_b in groups(of_axis, "b"):
            add_rows(plot, f"b = {b:g}", of_b, "x", "error", "half_interval", 100)
        yield f"{a.name}-{against}", plot


# ---- staleness ----

def staleness(a, s):
    table = Table(a, a.name, "rate", "staleness", "error", "half_interval", "seeds")
    for rate in s.rates:
        ends = []
        for seed in seeds(s):
            jobs = simulate(a, seed, "-n", 1, "--delay", "const:20",
                            *given("--staleness", s.ages), "--commits", s.commits, "--every",
                            f"{s.commits}commits", "--optimizer", f"sgd:lr={rate},momentum=0",
                            "--train", digits(a, s))
            ends.append([column(job["errors"], "error")[-1] for job in jobs])
        mean, half = interval(ends)
        for age, y, h in zip(s.ages, mean, half):
            table.add(rate, age, float(y), float(h), s.seeds)
    table.write()


def staleness_plots(a, _):
    plot = svg.Plot("One worker, gradients that are S commits old", "S (commits)",
                    "error on test digits (%)", log_y=True)
    for rate, rows in groups(read_table(a, a.name), "rate"):
        add_rows(plot, f"rate {rate:g}", rows, "staleness", "error", "half_interval", 100)
    yield a.name, plot


# ---- workers that differ ----

def delays(s, spread):
    """The slowest worker takes @spread times as long as the fastest; all vary by 20 %. The mean
    rate of the cluster is the same for each spread."""
    slow = [spread ** (rank / (s.workers - 1)) for rank in range(s.workers)]
    unit = s.mean_ms * sum(1 / x for x in slow) / s.workers
    return given("--delay", [f"{rank}:uniform:{0.8 * unit * x:.6g},{1.2 * unit * x:.6g}"
                             for rank, x in enumerate(slow)])


def blocking_jobs(a, s, seed, spread):
    """Return: each policy's job. What workers do on their own has the rate of the problem, and no
    optimiser of the server's."""
    samples = int(s.end_s * 1e3 / s.mean_ms * s.workers * s.batch)
    common = ["-n", s.workers, *delays(s, spread), "--samples", samples, "--every",
              f"{int(s.end_s * 1e6 / 80)}us"]
    own = [p for p in s.policies if p.startswith("local")]
    rest = [p for p in s.policies if p not in own]
    jobs = simulate(a, seed, *common, *given("--policy", rest), "--optimizer",
                    f"sgd:lr={s.rate},momentum=0", "--train", digits(a, s))
    if own:
        jobs += simulate(a, seed, *common, *given("--policy", own), "--train",
                         digits(a, s) + f",lr={s.rate}")
    return {job["policy"]: job for job in jobs}


def blocking_curve(job, grid, along="simulated_s"):
    known = [p for p in job["errors"] if p["loss"] is not None]
    return np.interp(grid, column(known, along), column(known, "loss"), right=math.nan)


def blocking_by_samples(a, s, jobs):
    """What a sample is worth in the parts of batches. jobs: of the last spread."""
    table = Table(a, f"{a.name}-samples", "spread", "policy", "samples", "loss", "half_interval",
                  "seeds")
    most = s.end_s * 1e3 / s.mean_ms * s.workers * s.batch
    grid = np.linspace(most / 40, most, 40)
    for policy in [p for p in s.policies if p.startswith(("bsp", "nonblocking"))]:
        mean, half = interval([blocking_curve(of_seed[policy], grid, "samples")
                               for of_seed in jobs])
        for x, y, h in zip(grid, mean, half):
            table.add(s.spreads[-1], policy, float(x), float(y), float(h), s.seeds)
    table.write()


def blocking(a, s):
    curves = Table(a, f"{a.name}-curves", "spread", "policy", "seconds", "loss", "half_interval",
                   "seeds")
    times = Table(a, a.name, "spread", "policy", "time_to_loss_s", "half_interval",
                  "samples_per_s", "mean_age", "seeds")
    grid = np.linspace(s.end_s / 40, s.end_s, 40)
    for spread in s.spreads:
        jobs = [blocking_jobs(a, s, seed, spread) for seed in seeds(s)]
        for policy in s.policies:
            mean, half = interval([blocking_curve(of_seed[policy], grid) for of_seed in jobs])
            for x, y, h in zip(grid, mean, half):
                curves.add(spread, policy, float(x), float(y), float(h), s.seeds)
            found = [first_below(of_seed[policy]["errors"], "loss", s.target) for of_seed in jobs]
            mean, half = interval([p["simulated_s"] if p else math.nan for p in found])
            rate = np.mean([j[policy]["samples"] / j[policy]["simulated_s"] for j in jobs])
            age = np.mean([j[policy]["staleness"]["mean"] for j in jobs])
            times.add(spread, policy, float(mean), float(half), float(rate), float(age), s.seeds)
    blocking_by_samples(a, s, jobs)
    curves.write()
    times.write()


def blocking_plots(a, s):
    for spread, rows in groups(read_table(a, f"{a.name}-curves"), "spread"):
        plot = svg.Plot(f"Slowest worker {spread:g} times as slow as the fastest", "time (s)",
                        "training loss (nats)", log_y=True)
        for policy, of_policy in groups(rows, "policy"):
            add_rows(plot, policy, of_policy, "seconds", "loss", "half_interval")
        yield f"{a.name}-{spread:g}", plot
    plot = svg.Plot(f"Slowest worker {s.spreads[-1]:g} times as slow as the fastest",
                    "samples counted (samples)", "training loss (nats)", log_y=True)
    for policy, rows in groups(read_table(a, f"{a.name}-samples"), "policy"):
        add_rows(plot, policy, rows, "samples", "loss", "half_interval")
    yield f"{a.name}-samples", plot
    plot = svg.Plot(f"Time to a training loss of {s.target:g}",
                    "time of the slowest worker's gradient (times the fastest's)", "time (s)",
                    log_x=True, log_y=True)
    for policy, rows in groups(read_table(a, a.name), "policy"):
        add_rows(plot, policy, rows, "spread", "time_to_loss_s", "half_interval")
    yield a.name, plot
