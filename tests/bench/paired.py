#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What an option of the server costs: `muster bench` with it and without, in turn.

In each round one run has none of the options, and one run has each of them; the ratio of the p50
steps of a round is that of neighbours in time. Medians of the ratios over the rounds are printed,
with their quartiles, and the load of the machine before and after.

usage: paired.py MUSTER [--rounds N] [--sizes 4K,1M,100M] [--workers N] [--buffers slot|own]
                 [--budget TIME] -- OPTIONS [-- OPTIONS]...
"""
import argparse
import json
import os
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
    a = p.parse_args(groups[0])
    if len(groups) == 1:
        p.error("what is to be compared follows --")
    return a, groups[1:]


def measure(a, options):
    """The p50 of a step in microseconds, by size."""
    with tempfile.NamedTemporaryFile() as f:
        subprocess.run([a.muster, "bench", "-n", a.workers, "--sizes", a.sizes, "--buffers",
                        a.buffers, "--budget", a.budget, "--quiet", "--json", f.name, *options],
                       check=True, stdout=subprocess.DEVNULL)
        return {row["size_bytes"]: row["p50_us"] for row in json.load(f)}


def main():
    a, groups = read_line(sys.argv[1:])
    before = os.getloadavg()[0]
    plain, ratios = {}, {}
    for _ in range(a.rounds):
        without = measure(a, [])
        for size, us in without.items():
            plain.setdefault(size, []).append(us)
        for options in groups:
            for size, us in measure(a, options).items():
                ratios.setdefault((" ".join(options), size), []).append(us / without[size])
    print(f"{a.rounds} rounds, {a.workers} workers, buffers {a.buffers}, {os.cpu_count()} "
          f"processors, load {before:.1f} before and {os.getloadavg()[0]:.1f} after")
    for size, us in plain.items():
        print(f"{size:>10} bytes without: {statistics.median(us):.1f} us")
    for (options, size), of in ratios.items():
        low, middle, high = statistics.quantiles(of, n=4) if len(of) > 1 else of * 3
        print(f"{size:>10} bytes {options}: {middle:.2f} ({low:.2f}, {high:.2f})")


main()
