#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What an option of the server costs: `muster bench` with it and without, in turn.

In each round each size has one run with none of the options, and then one with each of them; the
ratio of their steps is that of neighbours in time. Medians of the ratios over the rounds are
printed, with their quartiles, and the load of the machine before and after. What is paid in few
steps shows in their mean, and not in their p50.

usage: paired.py MUSTER [--rounds N] [--sizes 4K,1M,100M] [--workers N] [--buffers slot|own]
                 [--budget TIME] [--of p50|mean] [--all OPTIONS] -- OPTIONS [-- OPTIONS]...

--all: what all runs have, in one word. The word NEW in options is a fresh directory for each run.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile


def read_line(words):
    """The script's own words, and the options of each run to compare."""
    groups = [[]]
    for word in words:
        if word == "--":
            groups.append([])
        else:
            groups[-1].append(word)
    p = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    p.add_argument("muster")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--sizes", default="4K,1M,100M")
    p.add_argument("--workers", default="3")
    p.add_argument("--buffers", default="slot")
    p.add_argument("--budget", default="1s")
    p.add_argument("--of", choices=("p50", "mean"), default="p50")
    p.add_argument("--all", default=[], type=shlex.split)
    a = p.parse_args(groups[0])
    if len(groups) == 1:
        p.error("what is to be compared follows --")
    return a, groups[1:]


def measure(a, size, options):
    """The bytes of a gradient, and a step in microseconds."""
    with tempfile.TemporaryDirectory() as new:
        options = [new if word == "NEW" else word for word in a.all + options]
        got = subprocess.run([a.muster, "bench", "-n", a.workers, "--sizes", size, "--buffers",
                              a.buffers, "--budget", a.budget, "--quiet", "--json", "-", *options],
                             check=True, stdout=subprocess.PIPE)
        row, = json.loads(got.stdout)
        return row["size_bytes"], row[f"{a.of}_us"]


def main():
    a, groups = read_line(sys.argv[1:])
    before = os.getloadavg()[0]
    plain, ratios = {}, {}
    for _ in range(a.rounds):
        for size in a.sizes.split(","):
            count, without = measure(a, size, [])
            plain.setdefault(count, []).append(without)
            for options in groups:
                _, us = measure(a, size, options)
                ratios.setdefault((" ".join(options), count), []).append(us / without)
    print(f"{a.rounds} rounds, {a.workers} workers, buffers {a.buffers}, {a.of}, {os.cpu_count()} "
          f"processors, load {before:.1f} before and {os.getloadavg()[0]:.1f} after")
    for size, us in plain.items():
        print(f"{size:>10} bytes without: {statistics.median(us):.1f} us")
    for (options, size), of in ratios.items():
        low, middle, high = statistics.quantiles(of, n=4) if len(of) > 1 else of * 3
        print(f"{size:>10} bytes {options}: {middle:.2f} ({low:.2f}, {high:.2f})")


main()
