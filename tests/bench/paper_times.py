# SPDX-License-Identifier: MIT
"""Figures of papers.py that are about times alone: nothing is trained."""
import collections
import csv
import math
import types

import numpy as np

import svg
import switches
from paper_tools import (Folder, Table, add_rows, given, groups, interval, kth, read_table,
                         seeds, simulate)


def step_ms(a, s, seed, workers, policy, *delays):
    """The mean time from commit to commit."""
    job, = simulate(a, seed, "-n", workers, *given("--delay", delays), "--policy", policy,
                    "--force", "--commits", s.commits)
    return job["step_ms"]["mean"]


# ---- stragglers ----

def slow_workers(s, count, factor, spread=0.0):
    """Delays: the first @count workers take @factor times as long as the others."""
    def delay(k):
        return f"uniform:{(1 - spread) * s.mean_ms * k:g},{(1 + spread) * s.mean_ms * k:g}"
    return [delay(1), *(f"{rank}:{delay(factor)}" for rank in range(count) if factor != 1)]


def gradient_ms(a, s, seed, policy, count, factor):
    """The simulated time for one counted gradient."""
    job, = simulate(a, seed, "-n", s.workers,
                    *given("--delay", slow_workers(s, count, factor, s.spread)), "--policy", policy,
                    "--samples", s.samples)
    return job["simulated_s"] * 1e3 / job["samples"]


def live_ms(a, s, seed, policy, count, factor):
    with Folder() as folder:
        job, _ = folder.run(a, s, seed, ["--policy", policy, "--samples", s.live_samples * s.batch],
                            slow_workers(s, count, factor, s.spread))
    return job["wall_s"] * 1e3 / job["samples"] * s.batch


def stragglers(a, s):
    """The time of a job, relative to the same job without stragglers."""
    table = Table(a, a.name, "source", "policy", "stragglers", "factor", "inflation",
                  "half_interval", "seeds")
    for policy in s.policies:
        for count in s.counts:
            found = [[gradient_ms(a, s, seed, policy, count, factor) /
                      gradient_ms(a, s, seed, policy, 0, 1) for factor in s.factors]
                     for seed in seeds(s)]
            mean, half = interval(found)
            for factor, m, h in zip(s.factors, mean, half):
                table.add("simulated", policy, count, factor, float(m), float(h), s.seeds)
    for policy in s.live_policies:
        found = {count: [] for count in s.counts}
        for seed in range(s.first_seed, s.first_seed + s.live_seeds):
            even = live_ms(a, s, seed, policy, 0, 1)
            for count in s.counts:
                found[count].append(live_ms(a, s, seed, policy, count, s.live_factor) / even)
        for count, values in found.items():
            mean, half = interval(values)
            table.add("live", policy, count, s.live_factor, float(mean), float(half), s.live_seeds)
    table.write()


def straggler_plots(a, s):
    plot = svg.Plot(f"Time of a job with stragglers, {s.workers} workers",
                    "time of a straggler's gradient (times that of the others)",
                    "time of the job (times that without stragglers)")
    for (source, policy, count), rows in groups(read_table(a, a.name), "source", "policy",
                                                "stragglers"):
        live = ", live" if source == "live" else ""
        add_rows(plot, f"{policy}, {count:g} slow{live}", rows, "factor", "inflation",
                 "half_interval")
    yield a.name, plot


# ---- backups at a fixed N ----

def speedup(a, s):
    """t(0) / t(b) x N / (N + b): what a machine gives, where b of them are spare."""
    table = Table(a, a.name, "delay", "b", "step_ms", "speedup", "per_machine", "half_interval",
                  "seeds")
    for name, delay in s.delays.items():
        steps = np.array([[step_ms(a, s, seed, s.needed + b, f"backup:{s.needed}", delay)
                           for b in s.spare] for seed in seeds(s)])
        share = np.array([s.needed / (s.needed + b) for b in s.spare])
        mean, half = interval(steps[:, :1] / steps * share)
        for i, b in enumerate(s.spare):
            table.add(name, b, float(steps[:, i].mean()), float(mean[i] / share[i]),
                      float(mean[i]), float(half[i]), s.seeds)
    table.write()


def speedup_plots(a, s):
    plot = svg.Plot(f"backup:{s.needed} of {s.needed} + b workers", "b, spare workers (number)",
                    "speed-up for each machine (times that of b = 0)")
    for delay, rows in groups(read_table(a, a.name), "delay"):
        add_rows(plot, delay, rows, "b", "per_machine", "half_interval")
    yield a.name, plot


# ---- the k-th arrival ----

def recorded(path):
    """Return: a row of sorted arrival times in s for each step of the recording."""
    steps = collections.defaultdict(list)
    with open(path, newline="", encoding="ascii") as f:
        for row in csv.DictReader(f):
            steps[row["step"]].append(float(row["ready_us"]) / 1e6)
    return np.array([sorted(times) for times in steps.values()])


def drawn_times(s):
    rng = np.random.default_rng(1)
    return np.sort(rng.lognormal(math.log(s.median_s), s.sigma, (s.steps, s.workers)), axis=1)


def arrivals(a, s):
    path = a.shared / "stragglers/llm_dp32.csv" if a.shared else None
    real = path is not None and path.exists() and not a.quick
    times = recorded(path) if real else drawn_times(s)
    source = "recorded" if real else "drawn"
    n = times.shape[1]
    table = Table(a, a.name, "source", "k", "mean_s", "half_interval", "median_s", "speedup",
                  "rate_of_all", "steps")
    mean, half = interval(times)
    for k in range(1, n + 1):
        faster = mean[-1] / mean[k - 1]
        table.add(source, k, float(mean[k - 1]), float(half[k - 1]),
                  float(np.median(times[:, k - 1])), float(faster), float(faster * k / n),
                  len(times))
    table.write()
    cdf = Table(a, f"{a.name}-cdf", "k", "seconds", "share")
    for back in s.last:
        ordered = np.sort(times[:, n - 1 - back])
        for i, seconds in enumerate(ordered, 1):
            cdf.add(n - back, float(seconds), i / len(ordered))
    cdf.write()


def arrival_plots(a, _):
    rows = read_table(a, a.name)
    of_n = f"k-th of {len(rows)} gradients"
    plot = svg.Plot(f"The {of_n}, {rows[0]['source']}", "k (gradients)",
                    "time from the step's start (s)")
    add_rows(plot, "mean", rows, "k", "mean_s", "half_interval")
    add_rows(plot, "median", rows, "k", "median_s")
    yield a.name, plot
    cdf = svg.Plot(f"Steps in which the {of_n} is there, {rows[0]['source']}",
                   "time from the step's start (s)", "steps (%)")
    for k, of_k in groups(read_table(a, f"{a.name}-cdf"), "k"):
        add_rows(cdf, f"k = {k:g}", of_k, "seconds", "share", factor=100)
    yield f"{a.name}-cdf", cdf


# ---- steps against formulas ----

def steps(a, s):
    """K-sync against the order statistic, K-batch-async against K E[X] / P."""
    table = Table(a, a.name, "policy", "delay", "k", "formula_ms", "simulated_ms", "half_interval",
                  "seeds")
    ks = range(1, s.workers + 1)
    half_ms = s.mean_ms / 2
    rows = [("ksync", f"exp:{s.mean_ms}", lambda k: s.mean_ms * kth(k, s.workers)),
            ("ksync", f"sexp:{half_ms:g},{half_ms:g}",
             lambda k: half_ms + half_ms * kth(k, s.workers))]
    rows += [("kbatchasync", delay, lambda k: s.mean_ms * k / s.workers)
             for delay in (f"exp:{s.mean_ms}", f"sexp:{half_ms:g},{half_ms:g}",
                           f"uniform:{0.5 * s.mean_ms:g},{1.5 * s.mean_ms:g}")]
    for policy, delay, formula in rows:
        found = [[step_ms(a, s, seed, s.workers, f"{policy}:{k}", delay) for k in ks]
                 for seed in seeds(s)]
        mean, half = interval(found)
        for k, m, h in zip(ks, mean, half):
            table.add(policy, delay, k, float(formula(k)), float(m), float(h), s.seeds)
    table.write()


FORMULAS = {("ksync", "exp"): "formula E[X(K:P)], exp", ("ksync", "sexp"): "the same, sexp",
            ("kbatchasync", "exp"): "formula K E[X] / P"}


def step_plots(a, s):
    """Each formula is a solid line, and what was simulated are dashes over it."""
    plot = svg.Plot(f"Mean step of {s.workers} workers, {s.mean_ms} ms a gradient", "K (gradients)",
                    "time of a step (ms)")
    rows = [((policy, delay.partition(":")[0]), of_row) for (policy, delay), of_row in
            groups(read_table(a, a.name), "policy", "delay")]
    for key, of_row in rows:
        if key in FORMULAS:
            add_rows(plot, FORMULAS[key], of_row, "k", "formula_ms")
    for (policy, delay), of_row in rows:
        add_rows(plot, f"{policy}, {delay}", of_row, "k", "simulated_ms", "half_interval")
    yield a.name, plot


# ---- what a switch costs ----

def switch_cost(a, s):
    """The longest time without a counted gradient, in real jobs, where nothing changes and where
    the policy does. Of longest times there is no mean: medians and ranges."""
    job = types.SimpleNamespace(build=a.build, workers=s.workers, step=s.step_ms,
                                servers=s.servers)
    found = switches.rounds(job, s.rounds, s.quiet_s, s.after_s)
    table = Table(a, a.name, "event", "median_ms", "least_ms", "most_ms", "steps", "rounds")
    for event, ms in found.items():
        median = float(np.median(ms))
        table.add(event, median, float(min(ms)), float(max(ms)), median / s.step_ms, s.rounds)
    table.write()


def switch_plots(a, s):
    """Beside what a restart takes, by the set-up."""
    rows = read_table(a, a.name)
    names = [row["event"] for row in rows] + ["published: a restart"]
    plot = svg.Plot("What a change of the policy costs", "event (kind)",
                    "longest time without a gradient (ms)", log_y=True, names=names)
    for i, row in enumerate(rows):
        plot.add(row["event"], [i], [row["median_ms"]], [row["least_ms"]], [row["most_ms"]])
    low, high = (1e3 * seconds for seconds in s.restart_s)
    plot.add(names[-1], [len(rows)], [(low * high) ** 0.5], [low], [high])
    yield a.name, plot
