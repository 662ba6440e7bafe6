#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gradients that are far too long, or not finite, under --norm-limit: each is refused once, with a
verdict of its own, status and summary name its rank, and the job goes on to exact results. And jobs
with --checksum: nothing is damaged; or a bit of what one worker pushed is changed before servers
read it, that worker is told, and the version is the mean of the others.

usage: outliers.py [--list] CASE --muster MUSTER --worker WORKER [--servers N]
"""
import functools
import json
import math
import os
import subprocess
import sys
import tempfile

from base import CALM, main, must, prove

WORKERS, BAD, COMMITS, AT = 5, 3, 20, 6
ONE = {"outliers": 1}
LIMIT = ["--norm-limit", "100"]
SGD = ["--optimizer", "sgd:lr=0.1,momentum=0.9"]

# name: (options of muster run, of the workers, what of rank 3 is refused, are norms told)
CASES = {
    "long": (LIMIT, ["3:big=6"], ONE, True),
    "long_sum_bf16": (LIMIT, ["3:big=6", "sum=1", "weights=1", "type=bf16"], ONE, True),
    "nan": ([*LIMIT, "--guard", "off"], ["3:nan=6"], ONE, True),
    "named_alone": (["--norm-limit", "1e9"], [], {}, True),
    "workers_own": ([*LIMIT, "--owner", "workers"], ["owner=workers", "3:big=6"], ONE, True),
    "checksum": (["--checksum"], [], {}, False),
    "checksum_ranges": (["--checksum", *LIMIT], ["ranges=5", "type=bf16", "3:big=6"], ONE, True),
    "damaged": (["--checksum"], ["3:ranges=5", "3:damage=6", "3:rounds=6"], {"damaged": 1}, False),
    "damaged_named": (["--checksum", *LIMIT], ["ranges=5", "3:damage=6"], {"damaged": 1}, True),
}
# As in exact.py: with two servers these come by all lines but for some ten of 12100.
PATHS = {"checksum_ranges", "damaged", "nan", "workers_own"}


def play(case, a):
    run, words, refused, told = CASES[case]
    elems = 1237 + 4096 * 3 * (int(a.servers) + 1)
    rules = "none" if "workers" in run else "sgd:0.1,0.9"
    run = run if "workers" in run else [*run, *SGD]
    with tempfile.TemporaryDirectory() as d:
        log, figures = os.path.join(d, "log"), os.path.join(d, "run.json")
        got = subprocess.run(
            [a.muster, "run", "-n", str(WORKERS), "--commits", str(COMMITS), "--json", figures,
             "--servers", a.servers, "--grace", "60s", *CALM, *run, "--", a.worker,
             log, str(elems), *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        sys.stdout.write(got.stdout)
        sys.stderr.write(got.stderr)
        must(got.returncode == 0, f"exit {got.returncode}")
        with open(figures) as f:
            job = json.load(f)
        must(job["commits"] == COMMITS, f"{job['commits']} commits")
        for rank in job["ranks"]:
            expect = refused if rank["rank"] == BAD else {}
            for verdict in ("outliers", "damaged", "refused"):
                must(rank[verdict] == expect.get(verdict, 0),
                     f"rank {rank['rank']}: {rank[verdict]} {verdict}")
            leaves = rank["rank"] == BAD and f"{BAD}:rounds={AT}" in words
            must(rank["counted"] == (AT - 1 if leaves else COMMITS),
                 f"rank {rank['rank']}: {rank['counted']} counted")
            must((rank["norm"] is not None) == told, f"the norm is {rank['norm']}")
        must((job["norm_median"] is not None) == told, f"the median is {job['norm_median']}")
        largest = job["ranks"][BAD]["max_norm"]
        if "big=6" in " ".join(words):
            must(largest > 1e5, f"the largest norm of rank {BAD} is {largest}")
        must(not told or math.isfinite(largest), f"the largest norm is {largest}")
        must(("outliers" in got.stdout + got.stderr) == (told or bool(refused)),
             "the summary names no norms")
        prove(log, "--optimizer", rules,
              *(["--seen", "damaged"] if "damaged" in refused else []))


main({case: functools.partial(play, case) for case in CASES}, "muster", "worker", paths=PATHS,
     servers="1")
