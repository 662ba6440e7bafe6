#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One gradient, or start state, with a number that is not finite, under each --guard: the worker
refuses it and the job goes on to exact results; or the servers do not publish the version and the
job fails, naming it; or, unguarded, it passes.

usage: guard.py [--list] CASE --muster MUSTER --worker WORKER [--servers N]
"""
import functools
import json
import os
import re
import subprocess
import sys
import tempfile

from base import CALM, main, must, own_words, prove

WORKERS, BAD, COMMITS = 5, 3, 20
NAN = ["3:nan=6"]
START = ["0:start_nan=1"]
OWN = ["ranges=4"]
COPIES = ["--guard", "worker"]  # looks at what is copied, and not at what is computed in place
# Not all push at the same time: of two versions in one round of the server nobody sees the first,
# and what follows a version that nobody saw cannot be computed again.
APART = ["1:sleep_us=3000", "2:sleep_us=5000", "3:sleep_us=7000", "4:sleep_us=9000"]
SGD = ["--optimizer", "sgd:lr=0.1,momentum=0.9"]

# name: (options of muster run, of the workers, what comes of it, what is said)
CASES = {
    "off_in_place": (["--guard", "off"], NAN, "passes", None),
    "off_own": (["--guard", "off"], NAN + OWN, "passes", None),
    "worker_in_place": (["--guard", "worker"], NAN, "fails",
                        r"version 6 of rank 0, 1, 2, 3, 4 would not be finite.* gradient of rank 3 "
                        r".* first at element {at}\b"),
    "worker_own": (["--guard", "worker"], NAN + OWN, "goes on",
                   r"rank 3: element {at} of the gradient is NaN"),
    "full_in_place": (["--guard", "full"], NAN, "goes on",
                      r"rank 3: element {at} of the gradient is NaN"),
    "full_own": (["--guard", "full"], NAN + OWN, "goes on",
                 r"rank 3: element {at} of the gradient is NaN"),
    "default_in_place": ([], NAN, "goes on", r"rank 3: element {at} of the gradient is NaN"),
    "default_own": ([], NAN + OWN, "goes on", r"rank 3: element {at} of the gradient is NaN"),
    "start": ([], START, "goes on", r"rank 0: element {at} of the start state is NaN"),
    "start_workers_own": (["--owner", "workers"], ["owner=workers", *START], "goes on",
                          r"rank 0: element {at} of the start state is NaN"),
    "start_off": (["--guard", "off"], START, "passes", None),
    "last_commit": ([*COPIES, "--commits", "6"], NAN, "fails",
                    r"version 6 of rank .*gradient of rank 3"),
    "async": ([*COPIES, "--policy", "async", "--commits", "1000000"], NAN + APART, "fails",
              r"version \d+(?: of rank 3)? would not be finite.*gradient of rank 3"),
    "workers_own": ([*COPIES, "--owner", "workers"], ["owner=workers", "start=0", *NAN], "fails",
                    r"version 6 of rank .*gradient of rank 3"),
    "workers_own_goes_on": (["--owner", "workers"], ["owner=workers", "start=0", *NAN], "goes on",
                            r"rank 3: element {at} of the gradient is NaN"),
    "bf16": (COPIES, ["type=bf16", *NAN], "fails", r"version 6 of rank .*gradient of rank 3"),
    # Finite in f32, the whole way; only the result's type cannot hold it.
    "rounding": (["--optimizer", "sgd:lr=1,momentum=0"], ["result_type=f16", "3:big=6"], "fails",
                 r"version 6 of rank .*all gradients in it are finite.*overflows at element {at}"),
}
# As in exact.py: with two servers these come by all lines but for four of 12200.
PATHS = {"default_own", "full_in_place", "start", "async", "workers_own", "bf16", "rounding"}


def check_history(log, run, kills):
    rules = "none" if "workers" in run else "sgd:1,0" if "sgd:lr=1,momentum=0" in run \
        else "sgd:0.1,0.9"
    prove(log, "--optimizer", rules, *(["--kills"] if kills else []))


def play(case, a):
    run, words, comes, says = CASES[case]
    elems = 1237 + 4096 * (int(a.servers) - 1) * 2
    with tempfile.TemporaryDirectory() as d:
        log, figures = os.path.join(d, "log"), os.path.join(d, "run.json")
        if "--owner" not in run and "--optimizer" not in run:
            run = [*SGD, *run]
        got = subprocess.run(
            [a.muster, "run", "-n", str(WORKERS), "--commits", str(COMMITS), "--json", figures,
             "--servers", a.servers, "--grace", "60s", *CALM, *run, "--", a.worker,
             log, str(elems), *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        sys.stdout.write(got.stdout)
        sys.stderr.write(got.stderr)
        with open(figures) as f:
            job = json.load(f)
        text = got.stderr + got.stdout
        must(got.returncode == (1 if comes == "fails" else 0), f"exit {got.returncode}")
        if says:
            must(re.search(says.format(at=elems - 7), text), f"nobody says: {says}")
        if comes == "fails":
            must("would not be finite" in job["why"], f"the summary says: {job['why']}")
            last = re.search(r"version (\d+).*; the last good version is (\d+)", job["why"])
            # If there are several servers, another may be about to report an earlier one.
            must((last is not None) == (a.servers == "1"), f"the summary says: {job['why']}")
            must(last is None or int(last[2]) == int(last[1]) - 1, f"it says: {job['why']}")
            heard = re.findall(r"worker: (?:start|wait|push|gradient): rank (\d+) in job "
                               r".*would not be finite", text)
            missed = set(range(WORKERS)) - set(map(int, heard))
            must(missed <= own_words(log, text), "not every worker is told")
            check_history(log, run, kills=True)
        elif comes == "goes on":
            must(text.count("test_worker: refused") == 1, "it is not refused once")
            must(job["commits"] == COMMITS, f"{job['commits']} commits")
            check_history(log, run, kills=False)


main({case: functools.partial(play, case) for case in CASES}, "muster", "worker", paths=PATHS,
     servers="1")
