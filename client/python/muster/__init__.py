# SPDX-License-Identifier: MIT
"""muster: a gradient aggregation server for data-parallel training with stragglers.

    import muster

    with muster.Worker(elems=1000) as w:
        out = w.start(numpy.zeros(1000, "f4"))
        while not out.finished:
            w.gradient()[:] = compute(out.result)
            w.push(weight=32)
            out = w.wait()

muster.torch has the same for PyTorch: Sync, in place of DistributedDataParallel, and Served, for
jobs whose servers have the optimiser."""
from ._library import VERSION as __version__
from ._records import Agreement, Difference, Hint, Job, Outcome, Part, Region, Share, Verdict
from .view import View
from .worker import (Busy, Error, Forked, Interrupted, InvalidArgument, JobFailed, LeftOut,
                     NotFinite, SessionLost, Stale, Timeout, Worker)

__all__ = ["Agreement", "Busy", "Difference", "Error", "Forked", "Hint", "Interrupted",
           "InvalidArgument", "Job", "JobFailed", "LeftOut", "NotFinite", "Outcome", "Part",
           "Region", "SessionLost", "Share", "Stale", "Timeout", "Verdict", "View", "Worker",
           "__version__"]
