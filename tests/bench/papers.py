#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The figures of docs/papers.md: the curves of the papers of the policies, at a small scale.

    papers.py [--quick | --redraw] [--only NAME]... [--out DIR] [--build DIR] [--data DIR]

Each figure writes CSV and SVG into a folder of DIR (docs/papers), and what it was made with into
setup.json. A picture is drawn from its table and from nothing else, so --redraw makes all pictures
anew in a second, without a job. What is told is the mean over the seeds, and its confidence
interval of 95 % by Student's t. --quick makes all of them from very short jobs, which show only
that everything works. --data has mnist/ and stragglers/; without it digits are drawn. The set-up of
each figure stands in FIGURES, and was written down before the figure was made.
"""
import argparse
import json
import pathlib
import sys
import types

try:
    import paper_policies as policies
    import paper_switch as switch
    import paper_times as times
    import paper_training as training
    from paper_tools import ROOT, draw
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

DIGITS = {"hidden": 32, "batch": 32}
K_OF_8 = {"workers": 8, "mean_ms": 20, "ks": (1, 2, 4, 8), "seeds": 5}
K_DIGITS = {**K_OF_8, "problem": "digits", "hidden": 32, "batch": 4, "rate": 0.1, "end_s": 16}
K_LOW = {**K_OF_8, "problem": "quadratic:dim=50,cond=5,noise=0.3", "batch": 1, "rate": 0.1,
         "end_s": 12}
K_HIGH = {**K_OF_8, "problem": "quadratic:dim=50,cond=5,noise=4", "batch": 1, "rate": 0.1,
          "end_s": 8}
K_QUICK = {"ks": (1, 8), "seeds": 2, "end_s": 0.1}
SWITCH = {**DIGITS, "workers": 8, "delay": "exp:5", "samples": 96000, "rate": 0.3, "momentum": 0.9,
          "milestones": (0.5, 0.75), "seeds": 7}
SWITCH_QUICK = {"workers": 2, "samples": 640, "seeds": 2, "delay": "exp:1"}

# A network over which an exchange takes about as long as a gradient: 25 450 parameters, 20 ms.
SLOW_NET = ("--size", "100K", "--worker-rate", "0.01")
# Against what each of these papers shows its curves.
WORK = {**DIGITS, "problem": "digits", "against": ("seconds", "samples"), "seeds": 5}
ROUNDS = {**WORK, "against": ("seconds", "commits")}
WORK_QUICK = {"seeds": 1, "end_s": 0.05, "samples": 640, "points": 4}


def fixed(*policies, **more):
    """Lines that are named as their policies."""
    return {policy: {"policy": policy, **more} for policy in policies}


def paced(period):
    """EASGD and Downpour with one period, as the paper that compares them has them."""
    return {f"easgd, T = {period}": {"policy": f"easgd:{period},0.1125"},
            f"downpour, T = {period}": {"policy": f"downpour:{period},{period}", "scale": "none",
                                        "optimizer": "sgd:lr=0.1,momentum=0"}}


def replicas(workers, optimizer):
    spec = {"SGD": "sgd:lr=0.1,momentum=0", "Adagrad": "adagrad:lr=0.01"}[optimizer]
    return {f"{workers} workers, {optimizer}": {"policy": "downpour:1,1", "workers": workers,
                                                "optimizer": spec}}


DBW = {**ROUNDS, "workers": 16, "delays": ("exp:20",), "scale": "none", "rate": 0.1,
       "lines": {name: {**line, "optimizer": "sgd:lr=0.1,momentum=0"} for name, line in
                 fixed("bsp", "backup:12", "backup:8", "backup:4", "dbw:1").items()}}
DBW_QUICK = {**WORK_QUICK, "lines": {name: DBW["lines"][name] for name in ("bsp", "dbw:1")}}

# Name: what is run, the function, the set-up, what --quick changes in it.
FIGURES = {
    "ksync": ("K-sync and AdaSync on digits", training.k_curves, {**K_DIGITS, "family": "ksync"},
              K_QUICK),
    "kasync": ("K-async and AdaSync on digits", training.k_curves,
               {**K_DIGITS, "family": "kasync"}, K_QUICK),
    "ksync-quadratic": ("K-sync and AdaSync on a quadratic with little noise", training.k_curves,
                        {**K_LOW, "family": "ksync"}, K_QUICK),
    "ksync-short": ("K-sync, and AdaSync with intervals of 10 gradients, on that quadratic",
                    training.k_curves, {**K_LOW, "family": "ksync", "interval": 10}, K_QUICK),
    "kasync-quadratic": ("K-async and AdaSync on a quadratic with little noise",
                         training.k_curves, {**K_LOW, "family": "kasync"}, K_QUICK),
    "ksync-noise": ("K-sync and AdaSync on a quadratic with much noise", training.k_curves,
                    {**K_HIGH, "family": "ksync"}, K_QUICK),
    "switchpoint": ("Accuracy against the share of BSP, BSP first and ASP first",
                    switch.switchpoint,
                    {**SWITCH, "shares": (0, .02, .05, .1, .25, .5, 1), "reverse": (.25, .5)},
                    {**SWITCH_QUICK, "shares": (0, .5, 1), "reverse": (.5,)}),
    "switchpoint-16": ("The same with 16 workers, simulated", switch.switchpoint,
                       {**SWITCH, "workers": 16, "rate": 0.6, "sources": ("simulated",),
                        "shares": (0, .02, .05, .1, .25, .5, 1), "reverse": (.25, .5)},
                       {**SWITCH_QUICK, "shares": (0, .5, 1), "reverse": (.5,)}),
    "momentum": ("What becomes of momentum at the change from BSP to ASP", switch.momentum,
                 {**SWITCH, "share": 0.1},
                 {**SWITCH_QUICK, "share": 0.5, "treatments": ("kept", "reset")}),
    "ramps": ("Momentum that comes back in stages after the change from BSP to ASP", switch.ramps,
              {**SWITCH, "share": 0.1, "stages": (0, 1, 4, 8), "epoch": 8000, "seeds": 5},
              {**SWITCH_QUICK, "share": 0.5, "stages": (0, 1), "epoch": 64}),
    "stragglers": ("BSP and ASP under one and two slow workers, simulated and live",
                   times.stragglers,
                   {**DIGITS, "hidden": 16, "workers": 8, "mean_ms": 20, "spread": 0.1,
                    "policies": ("bsp", "async", "backup:-1"), "counts": (1, 2),
                    "factors": (1, 1.25, 1.5, 2, 3, 4, 5), "samples": 20000, "seeds": 5,
                    "live_policies": ("bsp", "async"), "live_factor": 3, "live_samples": 800,
                    "live_seeds": 5},
                   {"factors": (1, 3), "samples": 400, "seeds": 2, "live_samples": 32,
                    "live_seeds": 1, "mean_ms": 2, "workers": 3}),
    "backup": ("Commits, time of a commit and their product at a fixed N + b", training.backup,
               {**DIGITS, "total": 16, "delay": "sexp:10,10", "spare": (0, 1, 2, 3, 4, 6, 8),
                "drawn": (0, 2, 4, 8), "rate": 0.2, "commits": 400, "target": 0.08, "seeds": 5},
               {"spare": (0, 8), "drawn": (0, 8), "commits": 8, "target": 0.9, "seeds": 2}),
    "speedup": ("What a machine gives at a fixed N, with b spare ones", times.speedup,
                {"needed": 50, "spare": (0, 1, 2, 3, 4, 5, 6, 8, 10),
                 "delays": {"lognormal 0.05": "lognormal:20,0.05",
                            "lognormal 0.1": "lognormal:20,0.1",
                            "lognormal 0.2": "lognormal:20,0.2", "10 + exp 10": "sexp:10,10"},
                 "commits": 4000, "seeds": 5},
                {"spare": (0, 3), "commits": 50, "seeds": 2}),
    "staleness": ("One worker whose gradients are S commits old", training.staleness,
                  {**DIGITS, "ages": (0, 5, 10, 15, 20, 25, 30, 40, 50), "rates": (.1, .05, .02),
                   "commits": 2500, "seeds": 5},
                  {"ages": (0, 20), "rates": (.1,), "commits": 20, "seeds": 2}),
    "blocking": ("bsp, nonblocking, async and local, as the workers differ more",
                 training.blocking,
                 {**DIGITS, "workers": 8, "mean_ms": 20, "end_s": 8, "target": 0.35, "rate": 0.2,
                  "policies": ("bsp", "nonblocking", "nonblocking:0,16", "async", "local:4"),
                  "spreads": (1, 2, 4, 8, 16, 32, 64), "seeds": 5},
                 {"end_s": 0.1, "target": 2.3, "spreads": (1, 8), "seeds": 2}),
    "dbw": ("Dynamic backup workers beside fixed ones, on digits", policies.curves,
            {**DBW, "batch": 8, "end_s": 8, "samples": 40000, "measure": "loss",
             "title": "16 workers, exponential times of 20 ms, 8 digits in a gradient"},
            DBW_QUICK),
    "dbw-quadratic": ("Dynamic backup workers beside fixed ones, on a quadratic with noise",
                      policies.curves,
                      {**DBW, "problem": "quadratic:dim=50,cond=5,noise=2", "batch": 8,
                       "end_s": 8, "samples": 40000, "measure": "value",
                       "title": "16 workers, exponential times of 20 ms, a quadratic with noise"},
                      DBW_QUICK),
    "softsync": ("n-softsync with its discount for staleness, and without", policies.curves,
                 {**WORK, "workers": 16, "delays": ("sexp:10,10",), "scale": "none", "rate": 0.3,
                  "end_s": 4, "samples": 100000, "measure": "error",
                  "title": "n-softsync, 16 workers, 10 ms and an exponential time",
                  "lines": {
                      name: {"policy": policy, "optimizer": "sgd:lr=0.3,momentum=0"}
                      for name, policy in (
                          ("hardsync (bsp)", "bsp"), ("1-softsync", "softsync:16"),
                          ("4-softsync", "softsync:4"), ("16-softsync", "softsync:1"),
                          ("4, no discount", "kbatchasync:4"),
                          ("16, no discount", "kbatchasync:1"))}},
                 WORK_QUICK),
    "ssp": ("SSP between BSP and asynchronous steps, where gradients are slow now and then",
            policies.curves,
            {**WORK, "workers": 8, "delays": ("uniform:18,22", "mix:0.05,10"), "scale": "linear",
             "rate": 1, "end_s": 8, "samples": 60000, "measure": "loss",
             "title": "SSP, 8 workers; one gradient in 20 takes ten times as long",
             "lines": fixed("bsp", "ssp:1", "ssp:4", "ssp:16", "async",
                            optimizer="sgd:lr=1,momentum=0")},
            WORK_QUICK),
    "easgd": ("EASGD and Downpour as the period of the exchange grows", policies.curves,
              {**WORK, "workers": 8, "delays": ("uniform:18,22",), "network": SLOW_NET,
               "scale": "auto", "rate": 0.1, "end_s": 8, "samples": 80000, "measure": "error",
               "title": "Elastic averaging and Downpour, 8 workers, a slow network",
               "lines": {**paced(1), **paced(4), **paced(16)}}, WORK_QUICK),
    "downpour": ("Downpour with SGD and with Adagrad, as there are more workers", policies.curves,
                 {**WORK, "workers": 8, "delays": ("sexp:10,10",), "scale": "none", "rate": 0.1,
                  "end_s": 8, "samples": 100000, "measure": "error",
                  "title": "Downpour, 10 ms and an exponential time",
                  "lines": {"1 worker, SGD": {"policy": "bsp", "workers": 1,
                                              "optimizer": "sgd:lr=0.1,momentum=0"},
                            **replicas(8, "SGD"), **replicas(32, "SGD"),
                            **replicas(8, "Adagrad"), **replicas(32, "Adagrad")}}, WORK_QUICK),
    "local": ("Averaged parameters after T steps of each worker", policies.curves,
              {**ROUNDS, "workers": 8, "delays": ("uniform:18,22",), "network": SLOW_NET,
               "scale": "auto", "rate": 0.1, "end_s": 12, "samples": 150000, "measure": "error",
               "title": "Federated averaging, 8 workers, a slow network",
               "lines": fixed("local:1", "local:5", "local:20", "local:100")}, WORK_QUICK),
    "arrivals": ("When the k-th gradient of a step is there, in a production job (45 steps)",
                 times.arrivals,
                 {"last": (0, 1, 2, 4, 8), "median_s": 7, "sigma": 0.1, "workers": 32,
                  "steps": 45}, {}),
    "steps": ("Mean steps beside formulas", times.steps,
              {"workers": 8, "mean_ms": 20, "commits": 20000, "seeds": 5},
              {"commits": 200, "seeds": 2}),
    "switchcost": ("How long a job makes no version while its policy changes", times.switch_cost,
                   {"servers": 2, "workers": 5, "step_ms": 20, "rounds": 10, "quiet_s": 1,
                    "after_s": 1, "restart_s": (184, 204)},
                   {"servers": 1, "workers": 3, "rounds": 1, "quiet_s": 0.2, "after_s": 0.2}),
}


# What draws the pictures of a figure, by what makes its tables.
PLOTS = {training.k_curves: training.k_plots, training.backup: training.backup_plots,
         training.staleness: training.staleness_plots, training.blocking: training.blocking_plots,
         policies.curves: policies.plots, switch.switchpoint: switch.switchpoint_plots,
         switch.momentum: switch.treatment_plots, switch.ramps: switch.treatment_plots,
         times.stragglers: times.straggler_plots, times.speedup: times.speedup_plots,
         times.arrivals: times.arrival_plots, times.steps: times.step_plots,
         times.switch_cost: times.switch_plots}
# The folder of a figure, by the first word of its name; else that word.
FOLDERS = {"arrivals": "backup", "blocking": "nonblocking", "momentum": "syncswitch",
           "ramps": "syncswitch", "speedup": "backup", "staleness": "backup", "steps": "ksync",
           "stragglers": "syncswitch", "switchcost": "syncswitch", "switchpoint": "syncswitch"}


def folder(out, name):
    word = name.partition("-")[0]
    return out / FOLDERS.get(word, word)


def shared_data():
    """Where the data sets lie if nobody says: beside the checkout."""
    return next((p for p in (ROOT / "../shared/data", ROOT / "shared/data") if p.is_dir()), None)


def write_setup(a, path, name, setup):
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if a.first_seed != 1:
        setup = {**setup, "first_seed": a.first_seed}
    known[name] = {"what": FIGURES[name][0], "digits": "real" if a.mnist else "drawn", **setup}
    path.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quick", action="store_true", help="very short jobs")
    p.add_argument("--redraw", action="store_true", help="only the pictures, from the tables")
    p.add_argument("--only", choices=FIGURES, action="append", metavar="NAME",
                   help="of: " + ", ".join(FIGURES))
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/papers")
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    p.add_argument("--data", type=pathlib.Path, default=shared_data())
    p.add_argument("--drawn", action="store_true", help="drawn digits, though there are real ones")
    p.add_argument("--first-seed", type=int, default=1, metavar="N",
                   help="the seeds are N, N + 1, ... (1)")
    a = p.parse_args()
    if a.first_seed < 1:
        p.error(f"--first-seed {a.first_seed}: it must be at least 1")
    if a.quick and a.redraw:
        p.error("--quick makes tables of very short jobs, --redraw makes none: say one of them")
    a.shared = a.data
    mnist = a.data / "mnist" if a.data else None
    a.mnist = str(mnist.resolve()) if mnist and mnist.is_dir() and not a.drawn else ""
    out = a.out
    for name in a.only or FIGURES:
        text, function, setup, quick = FIGURES[name]
        setup = {**setup, **(quick if a.quick else {})}
        a.name, a.out = name, folder(out, name)
        a.out.mkdir(parents=True, exist_ok=True)
        print(f"{name}: {text}", flush=True)
        told = types.SimpleNamespace(first_seed=a.first_seed, **setup)
        if not a.redraw:
            function(a, told)
            write_setup(a, out / "setup.json", name, setup)
        for picture, plot in PLOTS[function](a, told):
            draw(a, picture, plot)


if __name__ == "__main__":
    main()
