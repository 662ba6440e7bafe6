# SPDX-License-Identifier: MIT
"""Figures of papers.py that are about times alone: nothing is trained."""
import collections
import csv
import math
import types

import numpy as np

import svg
import switches
from paper_tools import Folder, Table, add_band, draw, given, interval, kth, seeds, simulate


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
    plot = svg.Plot(f"Time of a job with stragglers, {s.workers} workers",
                    "a straggler's gradient, times that of the others",
                    "time, of that without stragglers")
    for policy in s.policies:
        for count in s.counts:
            found = [[gradient_ms(a, s, seed, policy, count, factor) /
                      gradient_ms(a, s, seed, policy, 0, 1) for factor in s.factors]
                     for seed in seeds(s)]
            mean, half = interval(found)
            add_band(plot, f"{policy}, {count} slow", s.factors, mean, half)
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
            plot.add(f"{policy}, {count} slow, live", [s.live_factor], [float(mean)],
                     [float(mean - half)], [float(mean + half)])
            table.add("live", policy, count, s.live_factor, float(mean), float(half), s.live_seeds)
    draw(a, a.name, plot)
    table.write()


# ---- backups at a fixed N ----

def speedup(a, s):
    """t(0) / t(b) x N / (N + b): what a machine gives, where b of them are spare."""
    table = Table(a, a.name, "delay", "b", "step_ms", "speedup", "per_machine", "half_interval",
                  "seeds")
    plot = svg.Plot(f"backup:{s.needed} of {s.needed} + b workers", "b",
                    "speed-up, times N / (N + b)")
    for name, delay in s.delays.items():
        steps = np.array([[step_ms(a, s, seed, s.needed + b, f"backup:{s.needed}", delay)
                           for b in s.spare] for seed in seeds(s)])
        share = np.array([s.needed / (s.needed + b) for b in s.spare])
        mean, half = interval(steps[:, :1] / steps * share)
        add_band(plot, name, s.spare, mean, half)
        for i, b in enumerate(s.spare):
            table.add(name, b, float(steps[:, i].mean()), float(mean[i] / share[i]),
                      float(mean[i]), float(half[i]), s.seeds)
    draw(a, a.name, plot)
    table.write()


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
    plot = svg.Plot(f"The k-th of {n} gradients, {source}", "k", "seconds from the step's start")
    ks = np.arange(1, n + 1)
    mean, half = interval(times)
    add_band(plot, "mean", ks, mean, half)
    plot.add("median", ks, np.median(times, axis=0))
    for k in ks:
        faster = mean[-1] / mean[k - 1]
        table.add(source, int(k), float(mean[k - 1]), float(half[k - 1]),
                  float(np.median(times[:, k - 1])), float(faster), float(faster * k / n),
                  len(times))
    draw(a, a.name, plot)
    table.write()
    cdf = svg.Plot(f"Steps in which the k-th of {n} gradients is there, {source}",
                   "seconds from the step's start", "share of steps")
    for back in s.last:
        ordered = np.sort(times[:, n - 1 - back])
        cdf.add(f"k = {n - back}", ordered, np.arange(1, len(ordered) + 1) / len(ordered))
    draw(a, f"{a.name}-cdf", cdf)


# ---- steps against formulas ----

def steps(a, s):
    """K-sync against the order statistic, K-batch-async against K E[X] / P."""
    table = Table(a, a.name, "policy", "delay", "k", "formula_ms", "simulated_ms", "half_interval",
                  "seeds")
    plot = svg.Plot(f"Mean step of {s.workers} workers, {s.mean_ms} ms a gradient", "K", "ms")
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
        add_band(plot, f"{policy}, {delay.split(':')[0]}", list(ks), mean, half)
        for k, m, h in zip(ks, mean, half):
            table.add(policy, delay, k, float(formula(k)), float(m), float(h), s.seeds)
    for name, formula in (("formula E[X(K:P)]", rows[0][2]), ("formula, sexp", rows[1][2]),
                          ("formula K E[X] / P", rows[2][2])):
        plot.add(name, list(ks), [formula(k) for k in ks])
    draw(a, a.name, plot)
    table.write()


# ---- what a switch costs ----

def switch_cost(a, s):
    """The longest time without a counted gradient, in real jobs, where nothing changes and where
    the policy does; beside a restart's. Of longest times there is no mean: medians and ranges."""
    job = types.SimpleNamespace(build=a.build, workers=s.workers, step=s.step_ms,
                                servers=s.servers)
    found = switches.rounds(job, s.rounds, s.quiet_s, s.after_s)
    table = Table(a, a.name, "event", "median_ms", "least_ms", "most_ms", "steps", "rounds")
    plot = svg.Plot("What a change of the policy costs", "", "longest time without a gradient, ms",
                    log_y=True)
    for i, (event, ms) in enumerate(found.items()):
        median = float(np.median(ms))
        table.add(event, median, float(min(ms)), float(max(ms)), median / s.step_ms, s.rounds)
        plot.add(event, [i], [median], [min(ms)], [max(ms)])
    low, high = (1e3 * seconds for seconds in s.restart_s)
    plot.add("published: a restart", [len(found)], [(low * high) ** 0.5], [low], [high])
    draw(a, a.name, plot)
    table.write()
