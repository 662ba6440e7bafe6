#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""nonblocking:MS,AGE with real processes: a slow worker delays nobody, and all of its work counts.

usage: nobody_waits.py CASE --muster MUSTER --digits DIGITS

Workers sleep for their micro-batches. What could have been counted follows from how long these
took, so a host that wakes them late costs nothing here: only a worker that waits does.
"""
import functools
import json
import os
import subprocess
import tempfile

from base import CALM, main, must

MICRO, BATCH = 8, 32  # samples
FAST_MS = 40
SHARE = 0.95  # of what all workers compute together


def play(owner, slower, a):
    """Four workers, of which the last is so many times slower."""
    with tempfile.TemporaryDirectory() as folder:
        figures = os.path.join(folder, "run.json")
        subprocess.run(
            [a.muster, "run", "-n", "4", "--owner", owner, "--history", "16", *CALM,
             "--policy", "nonblocking:0,16", "--samples", "8000", "--json", figures, "--",
             a.digits, "--owner", owner, "--product", "plain", "--hidden", "8", "--batch",
             str(BATCH), "--micro", str(MICRO), "--delay", f"const:{FAST_MS}", "--delay",
             f"3:const:{FAST_MS * slower}"],
            stdin=subprocess.DEVNULL, timeout=120, check=True)
        with open(figures) as f:
            run = json.load(f)
    ranks = run["ranks"]
    elapsed_ms = run["commits"] * run["mean_step_ms"]
    could = [elapsed_ms / rank["mean_ready_ms"] * MICRO for rank in ranks]
    counted = [rank["samples_counted"] for rank in ranks]
    print(f"{sum(counted):g} of {sum(could):.0f} samples in {elapsed_ms / 1e3:.2f} s, "
          f"of the slow rank {counted[3]:g} of {could[3]:.0f}")
    must(sum(counted) >= SHARE * sum(could), "workers wait")
    must(abs(counted[3] - could[3]) <= 2 * MICRO, "the slow rank's work does not count")
    lost = [rank["late"] + rank["stale"] + rank["refused"] for rank in ranks]
    must(not any(lost), f"late, stale or refused: {lost}")
    # what was at hand when the job ended is of no version
    must(all(rank["samples_pushed"] - rank["samples_counted"] <= MICRO for rank in ranks),
         "a micro-batch was pushed and not counted")


main({f"{owner}_{slower}": functools.partial(play, owner, slower)
      for owner, slower in (("servers", 20), ("workers", 64))}, "muster", "digits",
     clock=("servers_20", "workers_64"))
