#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Proves from the workers' logs that every version is what its set says, to the bit (history.py).

usage: check_history.py LOG [--group G] [--optimizer sgd:LR,MU|add|none] [--lr-scale linear|none]
                        [--compensate] [--kills] [--seen VERDICT] [--count N] [--versions N]
"""
import argparse
import sys

import history


def check(a):
    rules = history.Rules(a.optimizer, a.group, a.lr_scale, a.compensate)
    proof = history.prove(a.log, rules, a.kills)
    if a.seen and history.VERDICTS.index(a.seen) not in proof.verdicts:
        raise history.Broken(f"nobody had the verdict {a.seen}: the case is too easy")
    if proof.newest < a.versions:
        raise history.Broken(f"only {proof.newest} versions, {a.versions} expected")
    for version, count in enumerate(proof.counts, 1):
        if a.count and count != a.count:
            raise history.Broken(f"version {version} was made of {count}, not {a.count}")
    if proof.checked == 0:
        raise history.Broken("no version could be checked")
    print(proof)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("log")
    p.add_argument("--group", type=int, default=8)
    p.add_argument("--optimizer", default="none")
    p.add_argument("--lr-scale", default="linear")
    p.add_argument("--compensate", action="store_true")
    p.add_argument("--kills", action="store_true", help="workers may end badly")
    p.add_argument("--seen", choices=history.VERDICTS, help="somebody must have had it")
    p.add_argument("--count", type=int, help="contributions that each version must have")
    p.add_argument("--versions", type=int, default=1, help="at least so many must have been seen")
    try:
        check(p.parse_args())
    except history.Broken as e:
        sys.exit(f"check_history: {e}")


main()
