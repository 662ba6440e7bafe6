#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Proves from the workers' logs that every version is what its set says, to the bit (history.py).

usage: check_history.py LOG [--group G] [--optimizer SPEC] [--weigh samples|one]
                        [--lr-scale auto|linear|none|samples:B] [--lr-schedule SPEC] [--compensate]
                        [--recomputed] [--clip C] [--lr-distance C] [--kills] [--seen VERDICT]
                        [--never VERDICT] [--told N] [--count N] [--finished] [--versions N]
                        [--policy VERSION:POLICY]...

SPEC is none, or an optimiser as musterd has it (adagrad:lr=0.1,clip=5); sgd:0.1,0.9 is short for a
rate and a momentum. A last figure tensors=N says that the worker gave N tensors with scales.
"""
import argparse
import sys

import history


def change(text):
    version, _, policy = text.partition(":")
    return int(version), policy


def check(a):
    rules = history.Rules(a.optimizer, a.group, a.lr_scale, a.compensate, a.weigh,
                          a.lr_schedule, a.clip, a.lr_distance)
    proof = history.prove(a.log, rules, a.kills, a.policy)
    if a.seen and history.VERDICTS.index(a.seen) not in proof.verdicts:
        raise history.Broken(f"nobody had the verdict {a.seen}: the case is too easy")
    if a.never:
        proof.must_not_have(history.VERDICTS.index(a.never))
    if a.recomputed:
        proof.must_not_be_stale_again()
    if proof.told < a.told:
        raise history.Broken(f"only {proof.told} verdicts were told, {a.told} expected")
    if proof.newest < a.versions:
        raise history.Broken(f"only {proof.newest} versions, {a.versions} expected")
    for version, count in enumerate(proof.counts, 1):
        ends = a.finished and version == proof.newest and count < a.count
        if a.count and count != a.count and not ends:
            raise history.Broken(f"version {version} was made of {count}, not {a.count}")
    if a.clip and rules.shortened == 0:
        raise history.Broken(f"no contribution is longer than {a.clip}: the case is too easy")
    if a.lr_distance and not a.kills and not 0 < rules.bounded < proof.checked:
        raise history.Broken(f"the distance bounds {rules.bounded} of {proof.checked} rates: the "
                             "case says too little")
    if proof.checked == 0:
        raise history.Broken("no version could be checked")
    print(proof)


def main(words=None):
    """@words: of the command line, by default this process's own."""
    p = argparse.ArgumentParser()
    p.add_argument("log")
    p.add_argument("--group", type=int, default=8)
    p.add_argument("--optimizer", default="none")
    p.add_argument("--lr-scale", default="auto")
    p.add_argument("--lr-schedule", default="constant")
    p.add_argument("--weigh", default="samples")
    p.add_argument("--clip", type=float, default=0, help="options.clip of the workers")
    p.add_argument("--lr-distance", type=float, default=0)
    p.add_argument("--compensate", action="store_true")
    p.add_argument("--kills", action="store_true", help="workers may end badly")
    p.add_argument("--seen", choices=history.VERDICTS, help="somebody must have had it")
    p.add_argument("--never", choices=history.VERDICTS, help="nobody may have had it")
    p.add_argument("--recomputed", action="store_true",
                   help="what was stale must not have been stale again")
    p.add_argument("--told", type=int, default=0, help="at least so many verdicts must be told")
    p.add_argument("--count", type=int, help="contributions that each version must have")
    p.add_argument("--finished", action="store_true",
                   help="a worker ends the job: its last version has what was counted by then")
    p.add_argument("--versions", type=int, default=1, help="at least so many must have been seen")
    p.add_argument("--policy", type=change, action="append", default=[],
                   help="it is in force from that version on, in a job that has changed it")
    try:
        check(p.parse_args(words))
    except history.Broken as e:
        sys.exit(f"check_history: {e}")


if __name__ == "__main__":
    main()
