#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Digits are learnt, over real servers and workers, and every version is computed again.

usage: digits.py POLICY COMMITS ACCURACY --muster MUSTER --digits DIGITS
                 [--data DIR] [--delay SPEC ...] [--optimizer SPEC] [--product blas]
With --product blas DIGITS is the example itself, which tells no history: nothing is computed again.
Exits 77 where DIR is not there.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import history
from base import CALM


def main():
    p = argparse.ArgumentParser()
    p.add_argument("policy")
    p.add_argument("commits", type=int)
    p.add_argument("accuracy", type=float)
    p.add_argument("--muster", required=True)
    p.add_argument("--digits", required=True)
    p.add_argument("--data")
    p.add_argument("--delay", action="append", default=[])
    p.add_argument("--owner", default="servers")
    p.add_argument("--optimizer")
    p.add_argument("--product", default="plain")  # the same accuracy on every processor
    a = p.parse_args()
    if a.data and not os.path.isdir(a.data):
        print(f"skipped: there is no {a.data}")
        sys.exit(77)
    optimizer = ["--optimizer", a.optimizer] if a.optimizer else []
    options = [w for d in a.delay for w in ("--delay", d)] + (
        ["--data", a.data] if a.data else []
    )
    with tempfile.TemporaryDirectory() as d:
        run, digits = os.path.join(d, "run.json"), os.path.join(d, "digits.json")
        subprocess.run(
            [
                a.muster,
                "run",
                "-n",
                "5",
                "--policy",
                a.policy,
                *optimizer,
                "--commits",
                str(a.commits),
                "--owner",
                a.owner,
                "--grace",
                "60s",
                *CALM,
                "--json",
                run,
                "--",
                a.digits,
                "--owner",
                a.owner,
                "--json",
                digits,
                "--product",
                a.product,
                *options,
            ],
            check=True,
            timeout=340,  # less than what CTest gives it under a sanitizer
            stdin=subprocess.DEVNULL,
            env=os.environ | {"MUSTER_HISTORY": os.path.join(d, "log")},
        )
        # What auto is, as policies.md has it.
        deltas = a.policy.split(":")[0] in ("local", "easgd", "easgdsync")
        stale = a.policy.split(":")[0] in ("async", "bounded", "ssp", "kasync", "kbatchasync",
                                           "softsync", "downpour")
        auto = "add" if deltas else f"sgd:lr=0.1,momentum={0 if stale else 0.9}"
        rules = history.Rules((a.optimizer or auto) if a.owner == "servers" else "none")
        try:
            proof = history.prove(os.path.join(d, "log"), rules) if a.product == "plain" else None
        except history.Broken as e:
            sys.exit(f"digits: {e}")
        with open(run) as f:
            commits = json.load(f)["commits"]
        with open(digits) as f:
            result = json.load(f)
    accuracy = result["accuracy"]
    print(f"{a.policy}: accuracy {accuracy} after {commits} commits, {result['product']}")
    print(proof or "nothing is computed again")
    if result["product"] != a.product:
        sys.exit(f"expected the product to be {a.product}")
    if proof and (proof.lost or proof.newest != commits):
        sys.exit(f"{proof.checked} of {commits} commits could be computed again")
    if commits != a.commits or accuracy < a.accuracy:
        sys.exit(f"expected {a.commits} commits and at least {a.accuracy}")


main()
