#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs one job of real processes and proves its history to the bit.

usage: exact.py CASE --muster MUSTER --crowd CROWD [--servers S]
       exact.py --list
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SGD = "sgd:lr=0.1,momentum=0.9"
SLOW = ["sleep_us=500", "4:sleep_us=4000"]  # rank 4 crawls

# name: (workers, options of the run, options of the crowd, options of the check, exit status)
CASES = {
    "bsp": (3, ["--policy", "bsp", "--commits", "40"], [], ["sgd:0.1,0.9"], 0),
    "bsp_plain_sgd": (
        3,
        ["--policy", "bsp", "--commits", "20", "--optimizer", "sgd:lr=0.05,momentum=0"],
        [],
        ["sgd:0.05,0"],
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
        ["--policy", "backup:4", "--commits", "200"],
        SLOW,
        ["sgd:0.1,0.9", "--seen", "late"],
        0,
    ),
    "backup_all_but_two": (
        5,
        ["--policy", "backup:-2", "--commits", "200"],
        SLOW,
        ["sgd:0.1,0.9", "--seen", "late"],
        0,
    ),
    "ksync": (
        4,
        ["--policy", "ksync:2", "--commits", "60"],
        [],
        ["sgd:0.1,0.9", "--count", "2", "--seen", "late"],
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
        ["--policy", "bounded:2", "--commits", "400"],
        ["1:sleep_us=500"],
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
        ["--policy", "backup:4", "--owner", "workers", "--commits", "200", "--history", "400"],
        ["owner=workers", *SLOW],
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
    "keep": (3, ["--policy", "async", "--commits", "60"], ["keep=3"], ["sgd:0.1,0.9"], 0),
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
        ["--policy", "backup:4", "--commits", "60", "--lease", "1s"],
        ["2:stop=10"],
        ["sgd:0.1,0.9", "--kills"],
        0,
    ),
    "freeze_under_bsp_shrinks": (
        3,
        ["--policy", "bsp", "--commits", "40", "--lease", "1s"],
        ["2:stop=10"],
        ["sgd:0.1,0.9", "--kills"],
        0,
    ),
    "patience": (
        3,
        ["--policy", "bsp", "--commits", "20", "--patience", "300ms"],
        ["1:sleep_us=2000000"],
        ["sgd:0.1,0.9", "--kills"],
        0,
    ),
}
ELEMS = 1237


def leftovers(before):
    """What the job left in the places it could leave something in."""
    return sorted(set(listing()) - set(before))


def listing():
    return [
        os.path.join(d, n)
        for d in ("/dev/shm", "/tmp")
        for n in os.listdir(d)
        if "muster" in n and not n.startswith("muster-vm-")  # machines of other tests
    ]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("case", nargs="?")
    p.add_argument("--list", action="store_true")
    p.add_argument("--muster")
    p.add_argument("--crowd")
    p.add_argument("--servers", default="1", help="that share the vector, of which each has a part")
    a = p.parse_args()
    if a.list:
        print("\n".join(CASES))
        return
    workers, run, crowd, check, status = CASES[a.case]
    elems = next((w[6:] for w in crowd if w.startswith("elems=")), str(ELEMS))
    if a.servers != "1":
        elems = str(int(elems) + 4096 * int(a.servers))
    before = listing()
    with tempfile.TemporaryDirectory() as d:
        log, figures = os.path.join(d, "log"), os.path.join(d, "run.json")
        got = subprocess.run(
            [
                a.muster,
                "run",
                "-n",
                str(workers),
                "--grace",
                "2s",
                "--json",
                figures,
                "--servers",
                a.servers,
                *run,
                "--",
                a.crowd,
                log,
                elems,
                *crowd,
            ],
            stdin=subprocess.DEVNULL,
            timeout=100,
        )
        if got.returncode != status:
            sys.exit(f"muster run exited with {got.returncode}, not {status}")
        subprocess.run(
            [
                sys.executable,
                os.path.join(HERE, "check_history.py"),
                log,
                "--optimizer",
                *check,
            ],
            check=True,
        )
        with open(figures) as f:
            told = json.load(f)
        commits = [int(w) for k, w in zip(run, run[1:]) if k == "--commits"]
        if status == 0 and commits and told["commits"] != commits[0]:
            sys.exit(f"{told['commits']} commits, not {commits[0]}")
    if leftovers(before):
        sys.exit(f"left behind: {leftovers(before)}")


main()
