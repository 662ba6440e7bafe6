#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A rank of a job whose servers own the parameters. Rank r contributes r + 1 in every element.

usage: served.py LOG [WORD]...

It writes the lines of goes_on.c to LOG.RANK.1, with the first parameter in place of a digest."""
import os
import sys
import time
from collections import Counter

import numpy as np

import muster

ELEMS = 100


def told(log, out):
    theta = np.asarray(out.result)
    if (theta != theta[0]).any():
        log.write(f"wrong version {out.version} has several values\n")
    log.write(f"version {out.version} {theta[0]!r} {' '.join(str(s.rank) for s in out.set)}\n")
    return theta[0]


def serve(log):
    verdicts = Counter()
    with muster.Worker(ELEMS) as worker:
        out = worker.start(np.zeros(ELEMS, np.float32))
        while not out.finished:
            time.sleep(0.002)
            np.asarray(worker.gradient())[:] = worker.job.rank + 1
            worker.push()
            out = worker.wait()
            verdicts[out.verdict.name] += 1
            if out.withdrawn:
                log.write(f"wrong {out.withdrawn} versions are void\n")
            if out.fresh:
                last = told(log, out)
        pushed = verdicts["COUNTED"] + verdicts["CANCELLED"] + verdicts["LATE"]
        log.write(f"end {out.version} {last!r} pushed {pushed} counted {verdicts['COUNTED']} "
                  f"cancelled {verdicts['CANCELLED']} late {verdicts['LATE']}\n")


def main():
    with open(f"{sys.argv[1]}.{os.environ['MUSTER_RANK']}.1", "a", buffering=1) as log:
        try:
            serve(log)
        except muster.Error as e:
            log.write(f"error -{e.errno} {e}\n")
            sys.exit(3)


if __name__ == "__main__":
    main()
