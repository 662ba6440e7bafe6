#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A worker in Python, which `debian.sh try` runs in a fresh Debian where python3-muster is."""
import numpy
import muster

ELEMS = 4

with muster.Worker(elems=ELEMS) as worker:
    out = worker.start(numpy.zeros(ELEMS, "f4"))
    while not out.finished:
        worker.gradient()[:] = numpy.array(out.result) - 1
        worker.push()
        out = worker.wait()
    print(f"version {out.version}: {out.result[0]:f}")
