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

SGD = "sgd:lr=0.1,momentum=0.9"
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
    "bsp_plain_sgd": (
        3,
        ["--policy", "bsp", "--commits", "20", "--optimizer", "sgd:lr=0.05,momentum=0"],
        [],
        ["sgd:0.05,0"],
        0,
    ),
    "nesterov": (
        3,
        ["--policy", "bsp", "--commits", "30", "--optimizer", SGD + ",nesterov=1,decay=0.01"],
        [],
        ["sgd:0.1,0.9,nesterov=1,decay=0.01"],
        0,
    ),
    "clip": (
        3,
        ["--policy", "kbatchsync:3", "--commits", "40", "--optimizer", SGD + ",clip=12"],
        [],
        ["sgd:0.1,0.9,clip=12"],
        0,
    ),
    "adagrad": (
        3,
        ["--policy", "bsp", "--commits", "40", "--optimizer", "adagrad:lr=0.1"],
        [],
        ["adagrad:lr=0.1"],
        0,
    ),
    "adagrad_shards": (
        3,
        ["--policy", "kbatchasync:3", "--commits", "30", "--shards", "3", "--chunk", "4K",
         "--optimizer", "adagrad:lr=0.1,epsilon=1e-6,decay=0.01,clip=5"],
        ["elems=23001", "result_type=bf16", "tensors=900", "scales=1"],
        ["adagrad:lr=0.1,epsilon=1e-6,decay=0.01,clip=5,tensors=900"],
        0,
    ),
    "rmsprop": (
        3,
        ["--policy", "backup:2", "--commits", "40", "--optimizer", "rmsprop"],
        [],
        ["rmsprop:lr=0.045"],
        0,
    ),
    "rmsprop_shards": (
        3,
        ["--policy", "kbatchasync:3", "--commits", "30", "--shards", "3", "--chunk", "4K",
         "--optimizer", "rmsprop:lr=0.01,alpha=0.99,epsilon=1e-8,inside=0,start=0,momentum=0,"
         "decay=0.01,clip=5"],
        ["elems=23001", "result_type=bf16", "tensors=900", "scales=1"],
        ["rmsprop:lr=0.01,alpha=0.99,epsilon=1e-8,inside=0,start=0,momentum=0,decay=0.01,clip=5,"
         "tensors=900"],
        0,
    ),
    "adam": (
        3,
        ["--policy", "bsp", "--commits", "40", "--optimizer", "adam:lr=0.01"],
        [],
        ["adam:lr=0.01"],
        0,
    ),
    "adam_async": (
        4,
        ["--policy", "async", "--commits", "120", "--optimizer", "adam:lr=0.1,beta1=0.5,decay=0.1"],
        ["keep=3"],
        ["adam:lr=0.1,beta1=0.5,decay=0.1", "--count", "1"],
        0,
    ),
    "adamw": (
        3,
        ["--policy", "bsp", "--commits", "40", "--optimizer", "adamw"],
        ["type=bf16"],
        ["adamw:lr=0.001"],
        0,
    ),
    "adamw_shards": (
        3,
        ["--policy", "kbatchasync:3", "--commits", "30", "--shards", "3", "--chunk", "4K",
         "--optimizer", "adamw:lr=0.1,beta2=0.9,epsilon=1e-3,decay=0.5,clip=5"],
        ["elems=23001", "result_type=bf16", "tensors=900", "scales=1"],
        ["adamw:lr=0.1,beta2=0.9,epsilon=1e-3,decay=0.5,clip=5,tensors=900"],
        0,
    ),
    "lars": (
        3,
        ["--policy", "bsp", "--commits", "40", "--optimizer", "lars:trust=0.1"],
        ["tensors=30", "scales=1"],
        ["lars:lr=1,trust=0.1,tensors=30"],
        0,
    ),
    "lars_whole": (
        3,
        ["--policy", "kasync:2", "--commits", "40", "--optimizer",
         "lars:lr=0.5,momentum=0,decay=0,trust=0.1,epsilon=0"],
        ["result_type=f16"],
        ["lars:lr=0.5,momentum=0,decay=0,trust=0.1,epsilon=0"],
        0,
    ),
    "lars_shards": (
        3,
        ["--policy", "kbatchasync:3", "--commits", "30", "--shards", "3", "--chunk", "4K",
         "--optimizer", "lars:nesterov=1,decay=0.1,trust=0.1"],
        ["elems=23001", "result_type=bf16", "tensors=900", "scales=1"],
        ["lars:lr=1,nesterov=1,decay=0.1,trust=0.1,tensors=900"],
        0,
    ),
    "lamb": (
        3,
        ["--policy", "bsp", "--commits", "40", "--optimizer", "lamb:lr=0.1"],
        ["tensors=2", "scales=1"],
        ["lamb:lr=0.1,tensors=2"],
        0,
    ),
    "lamb_shards": (
        3,
        ["--policy", "bsp", "--commits", "30", "--shards", "3", "--chunk", "12K", "--optimizer",
         "lamb:lr=0.05,beta1=0.5,beta2=0.9,epsilon=1e-3,decay=0.2"],
        ["elems=23001", "result_type=bf16", "tensors=7", "scales=1"],
        ["lamb:lr=0.05,beta1=0.5,beta2=0.9,epsilon=1e-3,decay=0.2,tensors=7"],
        0,
    ),
    "lamb_whole": (
        4,
        ["--policy", "async", "--commits", "60", "--shards", "3", "--optimizer", "lamb:lr=0.01"],
        ["elems=23001"],
        ["lamb:lr=0.01", "--count", "1"],
        0,
    ),
    "clip_async": (
        4,
        ["--policy", "async", "--commits", "120", "--optimizer", "sgd:lr=0.1,momentum=0.9,clip=1"],
        ["keep=3"],
        ["sgd:0.1,0.9,clip=1", "--count", "1"],
        0,
    ),
    "clip_shards": (
        3,
        ["--policy", "bsp", "--commits", "20", "--shards", "3", "--chunk", "4K", "--optimizer",
         SGD + ",nesterov=1,decay=0.01,clip=5"],
        ["elems=23001", "result_type=bf16"],
        ["sgd:0.1,0.9,nesterov=1,decay=0.01,clip=5"],
        0,
    ),
    "clip_all_leave": (
        3,
        ["--policy", "bsp", "--optimizer", SGD + ",clip=5"],
        ["rounds=20"],
        ["sgd:0.1,0.9,clip=5"],
        0,
    ),
    "clip_kill_fails": (
        3,
        ["--policy", "bsp", "--commits", "40", "--on-loss", "fail", "--optimizer", SGD + ",clip=5"],
        ["2:die=10"],
        ["sgd:0.1,0.9,clip=5", "--kills"],
        1,
    ),
    # Where contributions are sums, the norm of their means is as different as their weights are.
    "worker_clip": (
        3,
        ["--policy", "bsp", "--commits", "30"],
        ["clip=8", "sum=1", "weights=1"],
        ["sgd:0.1,0.9", "--clip", "8"],
        0,
    ),
    "worker_clip_weights": (
        3,
        ["--policy", "kbatchsync:4", "--commits", "30", "--optimizer", SGD + ",clip=3"],
        ["clip=5", "weights=1", "type=f16", "ranges=7"],
        ["sgd:0.1,0.9,clip=3", "--clip", "5"],
        0,
    ),
    "worker_clip_softsync": (
        4,
        ["--policy", "softsync:2", "--commits", "60"],
        ["1:sleep_us=4000", "clip=3", "type=bf16", "ranges=3", "registered=1"],
        ["sgd:0.1,0.9", "--count", "2", "--compensate", "--clip", "3"],
        0,
    ),
    "tensors": (
        3,
        ["--policy", "kbatchsync:4", "--commits", "30", "--optimizer",
         SGD + ",nesterov=1,decay=0.01"],
        ["tensors=700", "scales=1"],
        ["sgd:0.1,0.9,nesterov=1,decay=0.01,tensors=700"],
        0,
    ),
    "tensors_plain": (
        3,
        ["--policy", "async", "--commits", "60", "--optimizer", "sgd:lr=0.1,momentum=0"],
        ["tensors=5", "scales=1", "result_type=f16"],
        ["sgd:0.1,0,tensors=5"],
        0,
    ),
    "tensors_without_scales": (
        3,
        ["--policy", "bsp", "--commits", "20"],
        ["0:tensors=5", "2:tensors=5"],
        ["sgd:0.1,0.9"],
        0,
    ),
    "tensors_shards": (
        3,
        ["--policy", "bsp", "--commits", "20", "--shards", "3", "--chunk", "4K", "--optimizer",
         SGD + ",decay=0.01,clip=5"],
        ["elems=23001", "result_type=bf16", "tensors=1700", "scales=1"],
        ["sgd:0.1,0.9,decay=0.01,clip=5,tensors=1700"],
        0,
    ),
    "tensors_kill": (
        5,
        ["--policy", "backup:4", "--commits", "60", "--optimizer", SGD + ",decay=0.01"],
        ["tensors=9", "scales=1", "2:die=10"],
        ["sgd:0.1,0.9,decay=0.01,tensors=9", "--kills"],
        0,
    ),
    "decay": (
        3,
        ["--policy", "kbatchsync:5", "--commits", "20", "--optimizer",
         "sgd:lr=0.1,momentum=0,decay=0.05"],
        ["result_type=bf16"],
        ["sgd:0.1,0,decay=0.05"],
        0,
    ),
    "schedule": (
        3,
        ["--policy", "bsp", "--commits", "40", "--lr-schedule",
         "warmup:100+steps:0.5,200,300+cosine:1000,0.1"],
        ["weights=1"],
        ["sgd:0.1,0.9", "--lr-schedule", "warmup:100+steps:0.5,200,300+cosine:1000,0.1"],
        0,
    ),
    "schedule_async": (
        4,
        ["--policy", "async", "--commits", "200", "--optimizer", "adam:lr=0.01", "--lr-schedule",
         "stairs:0.9,20+exp:0.5,500+linear:900,0.2"],
        ["weights=1"],
        ["adam:lr=0.01", "--lr-schedule", "stairs:0.9,20+exp:0.5,500+linear:900,0.2", "--count",
         "1"],
        0,
    ),
    "schedule_workers_own": (
        3,
        ["--policy", "bsp", "--owner", "workers", "--commits", "40", "--lr-schedule",
         "warmup:50+stairs:0.5,100"],
        ["owner=workers", "start=0", "weights=1"],
        ["none", "--lr-schedule", "warmup:50+stairs:0.5,100"],
        0,
    ),
    # All begin with version 0, and none can be left behind: so all but one of their first gradients
    # are stale.
    "distance_ssp": (
        4,
        ["--policy", "ssp:9", "--commits", "120", "--lr-distance", "0.001"],
        ["keep=3", "1:sleep_us=2000"],
        ["sgd:0.1,0.9", "--lr-distance", "0.001", "--count", "1"],
        0,
    ),
    "distance_shards": (
        3,
        ["--policy", "ssp:1", "--commits", "60", "--shards", "3", "--chunk", "4K",
         "--optimizer", SGD + ",clip=5", "--lr-distance", "0.001", "--lr-schedule", "warmup:10"],
        ["elems=23001", "result_type=bf16", "tensors=900", "scales=1"],
        ["sgd:0.1,0.9,clip=5,tensors=900", "--lr-distance", "0.001", "--lr-schedule", "warmup:10",
         "--count", "1"],
        0,
    ),
    "distance_lars": (
        3,
        ["--policy", "ssp:2", "--commits", "60", "--optimizer", "lars:trust=0.1", "--lr-distance",
         "0.001"],
        ["tensors=30", "scales=1", "into=1"],
        ["lars:lr=1,trust=0.1,tensors=30", "--lr-distance", "0.001", "--count", "1"],
        0,
    ),
    "distance_kill": (
        5,
        # nobody is far ahead of who dies, so the job is not over before
        ["--policy", "ssp:2", "--commits", "100", "--lr-distance", "1e-6", "--optimizer",
         "adam:lr=0.01"],
        ["2:die=5", "3:die=9"],
        ["adam:lr=0.01", "--lr-distance", "1e-6", "--count", "1", "--kills"],
        0,
    ),
    "bsp_lr_scale_none": (
        3,
        ["--policy", "backup:2", "--commits", "20", "--lr-scale", "none"],
        [],
        ["sgd:0.1,0.9", "--lr-scale", "none"],
        0,
    ),
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
