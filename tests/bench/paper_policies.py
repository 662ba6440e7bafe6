# SPDX-License-Identifier: MIT
"""Figures of papers.py that hold policies against each other as most papers do: the error, or the
training loss, against time and against the work that was done. Trained in `muster sim --train`.

A line of such a figure is a policy with its own optimiser and, where the set-up says so, its own
number of workers. Each job goes on until both the time and the samples of the set-up are over, so
that each axis shows every line to its end.
"""
import math

import numpy as np

import svg
from paper_tools import (Table, add_band, column, digits, given, interval, read_table, seeds,
                         simulate)

POINTS = 40  # of a line, unless the set-up says so
AXES = {"seconds": ("simulated_s", "time (s)"),
        "samples": ("samples", "samples that counted (number)"),
        "commits": ("commits", "commits (number)")}
MEASURES = {"loss": (1, "training loss (nats)"), "error": (100, "error on test digits (%)"),
            "value": (1, "value of the quadratic (1 at the start)")}


def points(s):
    return getattr(s, "points", POINTS)


def kind(s):
    """The name that `muster sim` has for what is measured."""
    return "error" if s.measure == "value" else s.measure


def cluster(s, line):
    """Options of the workers and their network, with or without training."""
    return ["-n", line.get("workers", s.workers), *given("--delay", s.delays),
            *getattr(s, "network", ()), "--policy", line["policy"], "--force"]


def problem(a, s):
    name = digits(a, s) if s.problem == "digits" else f"{s.problem},batch={s.batch}"
    return f"{name},lr={s.rate}"


def rate(a, s, line):
    """The samples that count in a second. A policy that learns from norms has none without
    training."""
    if line["policy"].startswith("dbw"):
        return 0
    job, = simulate(a, s.first_seed, *cluster(s, line), "--samples",
                    200 * line.get("workers", s.workers))
    return job["samples"] * s.batch / job["simulated_s"]


def jobs(a, s):
    """Return: for each line what the jobs of all seeds have come to."""
    rates = {name: rate(a, s, line) for name, line in s.lines.items()}
    for name, line in s.lines.items():
        fastest = rates[name] or max(rates.values())
        samples = int(max(1.1 * fastest * s.end_s, s.samples))
        every = min(s.end_s, s.samples / fastest) / points(s)
        yield name, [simulate(
            a, seed, *cluster(s, line), "--samples", samples, "--every",
            f"{int(every * 1e6)}us", "--lr-scale", line.get("scale", s.scale),
            *(("--optimizer", line["optimizer"]) if "optimizer" in line else ()), "--train",
            problem(a, s))[0] for seed in seeds(s)]


def grid(s, against, curves):
    """Where a line is drawn: as far as all its jobs went, and not beyond the set-up."""
    last = min(column(c, AXES[against][0])[-1] for c in curves)
    if against == "commits":
        return np.unique(np.geomspace(1, max(last, 2), points(s)).round())
    end = s.end_s if against == "seconds" else s.samples
    return np.linspace(0, end, points(s) + 1)[1:]


def drawn(curve, against, s, xs):
    """The figure of one job at each of @xs. A point that has the same x as the one before says
    nothing new."""
    known = [p for p in curve if p[kind(s)] is not None]
    if not known:
        return np.full(len(xs), math.nan)
    at, first = np.unique(column(known, AXES[against][0]), return_index=True)
    return np.interp(xs, at, column(known, kind(s))[first], math.nan, math.nan)


def curves(a, s):
    table = Table(a, a.name, "line", "against", "x", s.measure, "half_interval", "seeds")
    ages = Table(a, f"{a.name}-jobs", "line", "policy", "workers", "step_ms", "staleness_mean",
                 "staleness_max", "seeds")
    for name, found in jobs(a, s):
        of_line = [job["errors"] for job in found]
        for against in s.against:
            xs = grid(s, against, of_line)
            mean, half = interval([drawn(curve, against, s, xs) for curve in of_line])
            for x, y, h in zip(xs, mean, half):
                table.add(name, against, float(x), float(y), float(h), s.seeds)
        line = s.lines[name]
        ages.add(name, line["policy"], line.get("workers", s.workers),
                 float(np.mean([job["step_ms"]["mean"] for job in found])),
                 float(np.mean([job["staleness"]["mean"] for job in found])),
                 max(job["staleness"]["max"] for job in found), s.seeds)
    table.write()
    ages.write()


def plots(a, s):
    """The pictures of such a figure, from its table."""
    rows = read_table(a, a.name)
    factor, label = MEASURES[s.measure]
    for against in s.against:
        plot = svg.Plot(s.title, AXES[against][1], label, log_x=against == "commits", log_y=True)
        for name in s.lines:
            of_line = [r for r in rows if r["line"] == name and r["against"] == against]
            add_band(plot, name, column(of_line, "x"), factor * column(of_line, s.measure),
                     factor * column(of_line, "half_interval"))
        yield f"{a.name}-{against}", plot
