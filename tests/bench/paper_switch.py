# SPDX-License-Identifier: MIT
"""Figures of papers.py about Sync-Switch: jobs of real processes, which sleep for their delays, and
the same jobs in the simulator."""
import numpy as np

import svg
from paper_tools import (Folder, Table, add_rows, digits, groups, interval, read_table, seeds,
                         simulate)


def schedule(s):
    """The rate falls to a tenth after each of the milestones."""
    return ["--lr-schedule",
            "steps:0.1," + ",".join(f"{m * s.samples:g}" for m in s.milestones)]


def learner(s, momentum=None):
    momentum = s.momentum if momentum is None else momentum
    return ["--optimizer", f"sgd:lr={s.rate},momentum={momentum:g}", *schedule(s)]


def bsp_first(share):
    return {0: "async", 1: "bsp"}.get(share, f"syncswitch:{share:g}")


def on_from(folder, policy, samples, *learner_options):
    """Options of a job that goes on from the checkpoint of the one before, and leaves its own."""
    return ["--policy", policy, "--samples", int(samples), "--state", folder.path / "state",
            "--resume", folder.path / "state", "--or-begin", *learner_options]


# ---- the switch point ----

def real(a, s, seed, share, first):
    """Return: accuracy, seconds. Where ASP comes first, the job ends at the change and another one
    goes on from its checkpoint, for `syncswitch` begins with bsp; momentum is in the checkpoint."""
    with Folder() as folder:
        if first == "bsp":
            job, end = folder.run(a, s, seed, ["--policy", bsp_first(share), "--samples",
                                               s.samples, *learner(s)], [s.delay])
            return end["accuracy"], job["wall_s"]
        part = (1 - share) * s.samples
        one, _ = folder.run(a, s, seed, on_from(folder, "async", part, *learner(s)), [s.delay])
        two, end = folder.run(a, s, seed, on_from(folder, "bsp", s.samples, *learner(s)),
                              [s.delay])
        return end["accuracy"], one["wall_s"] + two["wall_s"]


def simulated(a, s, seed, share, first):
    policy = [bsp_first(share)] if first == "bsp" else [
        "async", "--switch", f"bsp@{round((1 - share) * s.samples / s.batch)}"]
    job, = simulate(a, seed, "-n", s.workers, "--delay", s.delay, "--policy", *policy, "--samples",
                    s.samples, "--every", f"{s.samples}samples", *learner(s), "--train",
                    digits(a, s))
    return 1 - job["errors"][-1]["error"], job["simulated_s"]


SOURCES = {"real": real, "simulated": simulated}


def switchpoint(a, s):
    table = Table(a, a.name, "source", "first", "bsp_share", "accuracy", "half_interval",
                  "accuracy_sd", "seconds", "seconds_half", "seeds")
    for source in getattr(s, "sources", SOURCES):
        for first, shares in (("bsp", s.shares), ("async", s.reverse)):
            found = np.array([[SOURCES[source](a, s, seed, share, first) for share in shares]
                              for seed in seeds(s)])
            mean, half = interval(found)
            sd = found.std(axis=0, ddof=1) if s.seeds > 1 else 0 * mean
            for i, share in enumerate(shares):
                table.add(source, first, share, float(mean[i, 0]), float(half[i, 0]),
                          float(sd[i, 0]), float(mean[i, 1]), float(half[i, 1]), s.seeds)
    table.write()


def switchpoint_plots(a, s):
    rows = [{**row, "percent": 100 * row["bsp_share"]} for row in read_table(a, a.name)]
    plot = svg.Plot(f"Accuracy against the share of BSP, {s.workers} workers",
                    "BSP (% of the samples)", "accuracy on test digits (%)")
    times = svg.Plot("Time of the job against the share of BSP", "BSP (% of the samples)",
                     "time (s)")
    for (source, first), of_row in groups(rows, "source", "first"):
        name = f"{'BSP' if first == 'bsp' else 'ASP'} first, {source}"
        add_rows(plot, name, of_row, "percent", "accuracy", "half_interval", 100)
        if first == "bsp":
            add_rows(times, name, of_row, "percent", "seconds", "seconds_half")
    yield a.name, plot
    yield f"{a.name}-time", times


# ---- momentum at the switch ----

# The momentum of the first step after the change, and of all others; None: as before it.
TREATMENTS = {
    "kept": (None, None),
    "reset": (1e-9, None),  # then what is left of the old momentum is a billionth
    "coefficient / n": ("n", "n"),
    "no momentum": (0, 0),
}


def treated(a, s, seed, treatment):
    """One job up to the change, one for a single gradient, one for the rest."""
    first, rest = (None if m is None else s.momentum / s.workers if m == "n" else m
                   for m in TREATMENTS[treatment])
    with Folder() as folder:
        job, _ = folder.run(a, s, seed, on_from(folder, "bsp", s.share * s.samples, *learner(s)),
                            [s.delay])
        folder.run(a, s, seed, on_from(folder, "async", job["samples"] + s.batch,
                                       *learner(s, first)), [s.delay])
        _, end = folder.run(a, s, seed, on_from(folder, "async", s.samples, *learner(s, rest)),
                            [s.delay])
    return end["accuracy"]


def ramped(a, s, seed, stages):
    """The coefficient begins at its n-th part after the change, and rises in equal stages, each of
    an epoch. None at all: it is kept."""
    least = s.momentum / s.workers
    with Folder() as folder:
        job, end = folder.run(a, s, seed, on_from(folder, "bsp", s.share * s.samples,
                                                  *learner(s)), [s.delay])
        for stage in range(stages + 1):
            until = job["samples"] + s.epoch if stage < stages else s.samples
            rate = least + (s.momentum - least) * stage / stages if stages else s.momentum
            job, end = folder.run(a, s, seed, on_from(folder, "async", until, *learner(s, rate)),
                                  [s.delay])
    return end["accuracy"]


def momentum(a, s):
    """What becomes of it by one of the treatments above."""
    compare(a, s, {name: lambda seed, name=name: treated(a, s, seed, name)
                   for name in getattr(s, "treatments", TREATMENTS)})


def ramps(a, s):
    """In how many stages it comes back."""
    names = {0: "kept", 1: "1 stage"}
    compare(a, s, {names.get(n, f"{n} stages"): lambda seed, n=n: ramped(a, s, seed, n)
                   for n in s.stages})


def compare(a, s, plays):
    table = Table(a, a.name, "treatment", "accuracy", "half_interval", "accuracy_sd",
                  "less_than_kept", "half_interval_of_it", "seeds")
    found = {name: np.array([play(seed) for seed in seeds(s)]) for name, play in plays.items()}
    for name, values in found.items():
        mean, half = interval(values)
        less, less_half = interval(found["kept"] - values)
        table.add(name, float(mean), float(half), float(values.std(ddof=1)), float(less),
                  float(less_half), s.seeds)
    table.write()


def treatment_plots(a, s):
    rows = read_table(a, a.name)
    plot = svg.Plot(f"Momentum at the change, {100 * s.share:g} % BSP", "momentum (treatment)",
                    "accuracy on test digits (%)", names=[row["treatment"] for row in rows])
    for i, row in enumerate(rows):
        mean, half = 100 * row["accuracy"], 100 * row["half_interval"]
        plot.add(row["treatment"], [i], [mean], [mean - half], [mean + half])
    yield a.name, plot
