#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a batch takes over networks of several speeds: the table of docs/tcp.md, by muster sim.

Workers have a host each, and so has the server (or each of two). Every host's link carries that
rate, each way, and nothing else. A batch of a worker takes 100 ms to compute, 90 to 110.

Printed is the time in which as many batches are counted as there are workers, and how many times as
fast that is as bsp. With --slow the last worker is a straggler.

usage: networks.py MUSTER [--workers N] [--batch-ms MS] [--batches N] [--slow FACTOR] [--json FILE]
"""
import argparse
import json
import subprocess

RATES = (("100 Mbit/s", 0.0125), ("1 Gbit/s", 0.125), ("10 Gbit/s", 1.25), ("25 Gbit/s", 3.125),
         ("100 Gbit/s", 12.5))  # in GB/s
SIZES = (("1 MB", 10**6), ("100 MB", 10**8), ("1 GB", 10**9))
# What is compared: its name, the policy (N is all workers but one), the bytes' divisor, servers.
COLUMNS = (("bsp", "bsp", 1, 1), ("bsp, bf16", "bsp", 2, 1), ("bsp, 2 servers", "bsp", 1, 2),
           ("backup:N", "backup:{N}", 1, 1), ("ssp:3", "ssp:3", 1, 1),
           ("local:8", "local:8", 1, 1), ("local:64", "local:64", 1, 1))


def batch_s(args, column, rate, size):
    """Seconds in which as many batches are counted as there are workers."""
    _, policy, share, servers = column
    steps = int(policy.split(":")[1]) if policy.startswith("local") else 1
    policy = policy.replace("{N}", str(args.workers - 1))
    low, high = 0.9 * args.batch_ms, 1.1 * args.batch_ms
    slow = f"{args.workers - 1}:uniform:{low * args.slow:g},{high * args.slow:g}"
    done = subprocess.run(
        [args.muster, "sim", "-n", str(args.workers), "--policy", policy, "--delay",
         f"uniform:{low:g},{high:g}", "--delay", slow, "--size", str(size // share),
         "--worker-rate", str(rate),
         "--server-rate", str(rate), "--servers", str(servers), "--lease", "1h", "--patience",
         "10h", "--samples", str(args.batches * args.workers * steps), "--json", "-"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    job, = json.loads(done.stdout)["jobs"]
    return job["simulated_s"] / job["samples"] * args.workers


def figure(seconds):
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"


def table(args):
    rows = []
    for rate_name, rate in RATES:
        for size_name, size in SIZES:
            cells = {column[0]: batch_s(args, column, rate, size) for column in COLUMNS}
            rows.append({"rate": rate_name, "size": size_name, "seconds": cells})
    return rows


def show(args, rows):
    names = [name.replace("N", str(args.workers - 1)) for name, *_ in COLUMNS]
    print("| link | vector | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 2) + "|")
    for row in rows:
        first, *others = row["seconds"].values()
        cells = [figure(first)] + [f"{figure(s)}, {first / s:.2g}" for s in others]
        print(f"| {row['rate']} | {row['size']} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("muster")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--batch-ms", type=float, default=100)
    parser.add_argument("--batches", type=int, default=200, help="of each worker, in exchanges")
    parser.add_argument("--slow", type=float, default=1, help="the last worker takes so many times "
                        "as long")
    parser.add_argument("--json", help="write the figures there, too")
    args = parser.parse_args()
    rows = table(args)
    show(args, rows)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
