#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs one job of real processes and proves its history to the bit.

usage: exact.py CASE --muster MUSTER --worker WORKER [--servers S]
       exact.py --list [--paths]
"""
import functools
import json
import os
import subprocess
import tempfile

from base import CALM, LEASE_S, listing, main, must, prove, status_of
from exact_steps import SGD, STEPS

SLOW = ["sleep_us=500", "4:sleep_us=4000"]  # rank 4 crawls
# And ends the job, which is under a policy that does not wait for it, but not before it was late:
# it need not be the slower one where the others stand still.
CRAWLS = [*SLOW, "4:rounds=40", "4:sees=late", "4:finish=1"]
# The same where workers own: who stands still for ten seconds finds the versions in the history.
KEPT = ["--history", "3000"]
CRAWLS_KEPT = ["sleep_us=4000", "4:sleep_us=20000", *CRAWLS[2:]]
# A lease that is waited for is longer than others stand still on a busy host. It is for workers:
# they are evicted, and the others go on.
STANDS = ["--lease", f"{LEASE_S}s", "--server-lease", "60s"]

# name: (workers, options of the run, options of the workers, options of the check, exit status)
CASES = {
    "bsp": (3, ["--policy", "bsp", "--commits", "40"], [], ["sgd:0.1,0.9"], 0),
    **STEPS,
    "backup": (
        5,
        ["--policy", "backup:3"],
        CRAWLS,
        ["sgd:0.1,0.9", "--seen", "late"],
        0,
    ),
    "backup_all_but_two": (
        5,
        ["--policy", "backup:-2"],
        CRAWLS,
        ["sgd:0.1,0.9", "--seen", "late"],
        0,
    ),
    "ksync": (
        4,
        ["--policy", "ksync:2"],
        ["3:rounds=40", "3:sees=late", "3:finish=1"],
        ["sgd:0.1,0.9", "--count", "2", "--finished", "--seen", "late"],
        0,
    ),
    "kbatchsync": (
        3,
        ["--policy", "kbatchsync:7", "--commits", "30"],
        ["2:sleep_us=3000"],
        ["sgd:0.1,0.9", "--count", "7"],
        0,
    ),
    "kasync": (
        4,
        ["--policy", "kasync:2", "--commits", "60"],
        [],
        ["sgd:0.1,0.9", "--count", "2"],
        0,
    ),
    "kbatchasync": (
        3,
        ["--policy", "kbatchasync:8", "--commits", "30"],
        ["2:sleep_us=3000"],
        ["sgd:0.1,0.9", "--count", "8"],
        0,
    ),
    "softsync": (
        4,
        ["--policy", "softsync:2", "--commits", "60"],
        ["1:sleep_us=4000"],
        ["sgd:0.1,0.9", "--count", "2", "--compensate"],
        0,
    ),
    "async": (
        4,
        ["--policy", "async", "--commits", "120"],
        [],
        ["sgd:0.1,0.9", "--count", "1"],
        0,
    ),
    "async_one_each": (
        6,
        ["--policy", "async", "--commits", "400"],
        ["sleep_us=60"],
        ["sgd:0.1,0.9", "--count", "1"],
        0,
    ),
    "bounded": (
        4,
        ["--policy", "bounded:2"],
        ["1:sleep_us=500", "1:rounds=80", "1:sees=stale", "1:finish=1"],
        ["sgd:0.1,0.9", "--count", "1", "--seen", "stale"],
        0,
    ),
    # What was stale and is computed again counts, though the others are ten times as fast.
    "bounded_slow": (
        3,
        ["--policy", "bounded:2"],
        ["sleep_us=500", "2:sleep_us=8000", "2:rounds=12", "2:sees=stale", "2:finish=1"],
        ["sgd:0.1,0.9", "--count", "1", "--seen", "stale", "--recomputed"],
        0,
    ),
    "ssp": (
        4,
        ["--policy", "ssp:2", "--commits", "100"],
        ["1:sleep_us=5000"],
        ["sgd:0.1,0.9", "--count", "1"],
        0,
    ),
    "add_deltas": (
        3,
        ["--policy", "async", "--optimizer", "add", "--commits", "60"],
        [],
        ["add"],
        0,
    ),
    "workers_own": (
        3,
        ["--policy", "bsp", "--owner", "workers", "--commits", "40"],
        ["owner=workers", "start=0"],
        ["none"],
        0,
    ),
    "workers_own_backup": (
        5,
        ["--policy", "backup:3", "--owner", "workers", *KEPT],
        ["owner=workers", *CRAWLS_KEPT],
        ["none", "--seen", "late"],
        0,
    ),
    "sums_and_weights": (
        3,
        ["--policy", "bsp", "--commits", "30"],
        ["sum=1", "weights=1"],
        ["sgd:0.1,0.9"],
        0,
    ),
    "weights": (
        3,
        ["--policy", "bsp", "--commits", "30"],
        ["weights=1"],
        ["sgd:0.1,0.9"],
        0,
    ),
    "weights_one": (
        3,
        ["--policy", "bsp", "--weigh", "one", "--commits", "30"],
        ["weights=1", "1:sum=1"],
        ["sgd:0.1,0.9", "--weigh", "one"],
        0,
    ),
    "weights_repeat": (
        3,
        ["--policy", "kbatchasync:8", "--commits", "30"],
        ["weights=1", "1:sum=1", "2:sleep_us=3000"],
        ["sgd:0.1,0.9", "--count", "8"],
        0,
    ),
    "weights_async": (
        3,
        ["--policy", "async", "--commits", "60"],
        ["weights=1", "1:sum=1"],
        ["sgd:0.1,0.9", "--count", "1"],
        0,
    ),
    "weights_softsync": (
        4,
        ["--policy", "softsync:2", "--commits", "60"],
        ["weights=1", "1:sleep_us=4000"],
        ["sgd:0.1,0.9", "--count", "2", "--compensate"],
        0,
    ),
    "groups_of_two": (
        5,
        ["--policy", "backup:4", "--group", "2", "--commits", "40"],
        [],
        ["sgd:0.1,0.9", "--group", "2"],
        0,
    ),
    "bf16": (
        3,
        ["--policy", "bsp", "--commits", "30"],
        ["type=bf16", "result_type=bf16"],
        ["sgd:0.1,0.9"],
        0,
    ),
    "f16_in": (3, ["--policy", "bsp", "--commits", "30"], ["type=f16"], ["sgd:0.1,0.9"], 0),
    "f16_results": (
        3,
        ["--policy", "kbatchsync:5", "--commits", "20"],
        ["result_type=f16"],
        ["sgd:0.1,0.9"],
        0,
    ),
    "ranges": (3, ["--policy", "bsp", "--commits", "30"], ["ranges=7"], ["sgd:0.1,0.9"], 0),
    "registered": (
        3,
        ["--policy", "bsp", "--commits", "30"],
        ["ranges=7", "registered=1"],
        ["sgd:0.1,0.9"],
        0,
    ),
    "into": (
        3,
        ["--policy", "bsp", "--commits", "30"],
        ["ranges=7", "registered=1", "into=1"],
        ["sgd:0.1,0.9"],
        0,
    ),
    "into_bf16_async": (
        4,
        ["--policy", "async", "--buffers", "3", "--commits", "200"],
        ["into=1", "result_type=bf16", "keep=3"],
        ["sgd:0.1,0.9", "--count", "1"],
        0,
    ),
    "into_workers_own": (
        5,
        ["--policy", "backup:3", "--owner", "workers", *KEPT],
        ["owner=workers", "into=1", *CRAWLS_KEPT],
        ["none", "--seen", "late"],
        0,
    ),
    "into_kill": (
        5,
        ["--policy", "backup:4", "--commits", "60"],
        ["2:die=10", "into=1"],
        ["sgd:0.1,0.9", "--kills"],
        0,
    ),
    "keep": (3, ["--policy", "async", "--commits", "60"], ["keep=3"], ["sgd:0.1,0.9"], 0),
    # An ask goes to the leader alone, and must not overtake the header before it.
    "keep_bsp": (
        4,
        ["--policy", "bsp", "--commits", "300"],
        ["keep=1"],
        ["sgd:0.1,0.9", "--never", "late"],
        0,
    ),
    "keep_ssp": (
        6,
        ["--policy", "ssp:1", "--commits", "600"],
        ["keep=1", "5:sleep_us=300"],
        ["sgd:0.1,0.9", "--count", "1"],
        0,
    ),
    "keep_kasync": (
        4,
        ["--policy", "kasync:2", "--buffers", "3", "--commits", "300"],
        ["keep=1"],
        ["sgd:0.1,0.9", "--count", "2"],
        0,
    ),
    "keep_async": (
        4,
        ["--policy", "async", "--buffers", "3", "--commits", "400"],
        ["keep=1"],
        ["sgd:0.1,0.9", "--count", "1"],
        0,
    ),
    "abandon": (3, ["--policy", "async", "--commits", "60"], ["abandon=4"], ["sgd:0.1,0.9"], 0),
    # What is left out of the optimiser follows the policy: old gradients bring a momentum.
    "async_auto": (3, ["--policy", "async", "--commits", "60"], [], ["sgd:0.1,0"], 0),
    "finish": (3, ["--policy", "bsp"], ["1:rounds=20", "1:finish=1"], ["sgd:0.1,0.9"], 0),
    "all_leave": (3, ["--policy", "bsp"], ["rounds=20"], ["sgd:0.1,0.9"], 0),
    "one_leaves": (
        3,
        ["--policy", "bsp", "--commits", "40"],
        ["1:rounds=10"],
        ["sgd:0.1,0.9"],
        0,
    ),
    "many_chunks": (
        3,
        ["--policy", "kbatchasync:4", "--chunk", "4K", "--commits", "12"],
        ["elems=9001"],
        ["sgd:0.1,0.9"],
        0,
    ),
    "few_buffers": (
        4,
        ["--policy", "async", "--buffers", "3", "--commits", "80"],
        ["3:sleep_us=20000"],
        ["sgd:0.1,0.9"],
        0,
    ),
    "kill_under_backup": (
        5,
        ["--policy", "backup:4", "--commits", "60"],
        ["2:die=10"],
        ["sgd:0.1,0.9", "--kills"],
        0,
    ),
    "kill_under_bsp_shrinks": (
        3,
        ["--policy", "bsp", "--commits", "40"],
        ["2:die=10"],
        ["sgd:0.1,0.9", "--kills"],
        0,
    ),
    # Rank 2 has heard no verdict of its 90 pushes when it dies; its next session is told all, and
    # ends the job.
    "kill_and_be_told": (
        3,
        ["--policy", "async"],
        ["0:sleep_us=5000", "1:sleep_us=5000", "2:mute=100", "2:die=90"],
        ["sgd:0.1,0.9", "--kills", "--told", "86"],
        0,
    ),
    "kill_under_bsp_fails": (
        3,
        ["--policy", "bsp", "--commits", "40", "--on-loss", "fail"],
        ["2:die=10"],
        ["sgd:0.1,0.9", "--kills"],
        1,
    ),
    "too_few_left": (
        3,
        ["--policy", "bsp", "--commits", "40", "--min-workers", "3"],
        ["2:die=10"],
        ["sgd:0.1,0.9", "--kills"],
        1,
    ),
    "freeze_under_backup": (
        5,
        ["--policy", "backup:4", "--commits", "60", *STANDS],
        ["2:stop=10"],
        ["sgd:0.1,0.9", "--kills"],
        0,
    ),
    "freeze_under_bsp_shrinks": (
        3,
        ["--policy", "bsp", "--commits", "40", *STANDS],
        ["2:stop=10"],
        ["sgd:0.1,0.9", "--kills"],
        0,
    ),
    "patience": (
        3,
        ["--policy", "bsp", "--commits", "20", "--patience", f"{LEASE_S}s", *STANDS],
        ["1:sleep_us=20000000"],
        ["sgd:0.1,0.9", "--kills"],
        0,
    ),
}
# With two servers these together come by the lines that all cases come by, but for some twenty of
# 13900, as gcov counts them. Sanitizers look at code, not at each policy: they run no others.
PATHS = {
    "lars_shards",  # the trust ratios of tensors, norms, several threads, bf16, repeats
    "clip_shards",  # a norm of all threads' parts, momentum, nesterov
    "lamb_whole",  # two passes over one direction
    "rmsprop", "adagrad_shards", "adam_async", "adamw", "add_deltas",  # kernels of their own
    "f16_results", "groups_of_two",  # conversions, partial sums
    "worker_clip_weights", "into", "abandon", "keep_async",  # ranges, sources, what is held
    "into_workers_own", "schedule_workers_own",  # what is late, history, mapped memory
    "schedule", "schedule_async", "distance_kill",  # the rate
    "bounded", "backup_all_but_two", "tensors_without_scales",
    "kill_and_be_told", "too_few_left", "clip_all_leave", "clip_kill_fails", "patience",  # ends
}
ELEMS = 1237
# A worker that dies there is followed by another session, which ends the job.
COMES_AGAIN = "kill_and_be_told"
AGAIN = '"$0" "$@" || exec "$0" "$@" again=1 rounds=20 finish=1'


def play(case, a):
    workers, run, words, check, status = CASES[case]
    elems = next((w[6:] for w in words if w.startswith("elems=")), str(ELEMS))
    if a.servers != "1":
        elems = str(int(elems) + 4096 * int(a.servers))
    again = ["sh", "-c", AGAIN] if case == COMES_AGAIN else []
    # A worker that stops itself never goes; all others may stand still for a while before they do.
    grace = "2s" if any("stop=" in w for w in words) else "60s"
    if not {"--optimizer", "--owner"} & set(run) and case != "async_auto":
        run = ["--optimizer", SGD, *run]
    before = listing()
    with tempfile.TemporaryDirectory() as d:
        log, figures = os.path.join(d, "log"), os.path.join(d, "run.json")
        got = subprocess.run(
            [a.muster, "run", "-n", str(workers), "--grace", grace, "--json", figures, "--servers",
             a.servers, *CALM, *run, "--", *again, a.worker, log, elems, *words],
            stdin=subprocess.DEVNULL, timeout=300)
        prove(log, "--optimizer", *check)
        with open(figures) as f:
            told = json.load(f)
        wanted = status or status_of(told)
        must(got.returncode == wanted, f"muster run exited with {got.returncode}, not {wanted}")
        must(wanted == 0 or "--kills" in check, "a worker failed that nobody killed")
        commits = [int(w) for k, w in zip(run, run[1:]) if k == "--commits"]
        finished = told["state"] == "finished"
        must(finished == (status == 0), f"the job is {told['state']}: {told['why']}")
        must(not finished or not commits or told["commits"] == commits[0],
             f"{told['commits']} commits, not {commits}")
    left = sorted(listing() - before)
    must(not left, f"left behind: {left}")


# --servers: that share the vector, of which each has a part.
# Leases of eight seconds, and histories that last for ten, look at a clock.
main({case: functools.partial(play, case) for case in CASES}, "muster", "worker",
     paths=PATHS, servers="1", quick=("bsp", "backup", "async"),
     clock=[case for case, (_, run, *_) in CASES.items() if {"--lease", "--history"} & set(run)])
