#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gradients that are far too long, or not finite, under --norm-limit: each is refused once, with a
verdict of its own, status and summary name its rank, and the job goes on to exact results. And jobs
with --checksum, in which nothing is damaged.

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

WORKERS, BAD, COMMITS = 5, 3, 20
LIMIT = ["--norm-limit", "100"]
SGD = ["--optimizer", "sgd:lr=0.1,momentum=0.9"]

# name: (options of muster run, of the workers, how many of rank 3 are refused, are norms told)
CASES = {
    "long": (LIMIT, ["3:big=6"], 1, True),
    "long_sum_bf16": (LIMIT, ["3:big=6", "sum=1", "weights=1", "type=bf16"], 1, True),
    "nan": ([*LIMIT, "--guard", "off"], ["3:nan=6"], 1, True),
    "named_alone": (["--norm-limit", "1e9"], [], 0, True),
    "workers_own": ([*LIMIT, "--owner", "workers"], ["owner=workers", "3:big=6"], 1, True),
    "checksum": (["--checksum"], [], 0, False),
    "checksum_ranges": (["--checksum", *LIMIT], ["ranges=5", "type=bf16", "3:big=6"], 1, True),
}


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
            expect = refused if rank["rank"] == BAD else 0
            must(rank["outliers"] == expect and rank["damaged"] == 0 and rank["refused"] == 0,
                 f"rank {rank['rank']}: {rank['outliers']} outliers, {rank['damaged']} damaged")
            must((rank["norm"] is not None) == told, f"the norm is {rank['norm']}")
        must((job["norm_median"] is not None) == told, f"the median is {job['norm_median']}")
        largest = job["ranks"][BAD]["max_norm"]
        if "big=6" in " ".join(words):
            must(largest > 1e5, f"the largest norm of rank {BAD} is {largest}")
        must(not told or math.isfinite(largest), f"the largest norm is {largest}")
        must(("outliers" in got.stdout + got.stderr) == told, "the summary names no norms")
        prove(log, "--optimizer", rules)


main({case: functools.partial(play, case) for case in CASES}, "muster", "worker", servers="1")
