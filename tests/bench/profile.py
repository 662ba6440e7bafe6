#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Where the time of a step goes: which functions run, and how many system calls each thread makes.

    profile.py [--build DIR] [--workers 4] [--servers 1] [--sizes 4K,100M] [--seconds 2]

Samples the whole host with perf while a job of real processes runs, and counts system calls with
perf trace, which slows the threads far less than strace does. Needs root, perf, and a host with
nothing else to do.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
OURS = ("musterd", "bench_step")
MEMBER = "musterd --join"
TOP = 14
CALL = re.compile(r"^\s+([a-z_0-9]+)\s+(\d+)\s+\d+\s+[\d.]+", re.M)
THREAD = re.compile(r"^ (\S+) \((\d+)\), (\d+) events", re.M)


class Job:
    """A job that does nothing but steps."""

    def __init__(self, build, workers, servers, size):
        self.build, self.folder = build, tempfile.TemporaryDirectory()
        self.out = open(os.path.join(self.folder.name, "out"), "w+", encoding="utf-8")
        self.run = subprocess.Popen(
            [build / "tools/muster", "run", "-n", str(workers), "--servers", str(servers),
             "--owner", "workers", "--", build / "tests/bench/bench_step", str(size // 4),
             str(10 ** 9)],
            stdout=self.out, stderr=subprocess.STDOUT, start_new_session=True)
        self.address = self.wait_for(r"listening on (\S+)")
        self.wait_for(r"starts:")

    def wait_for(self, pattern):
        for _ in range(200):
            found = re.search(pattern, pathlib.Path(self.out.name).read_text(encoding="utf-8"))
            if found:
                return found[1] if found.groups() else found[0]
            time.sleep(0.05)
        sys.exit(f"profile: the job does not start: {pathlib.Path(self.out.name).read_text()}")

    def processes(self):
        """Return: pid by name, one of each; a server beside the leader is MEMBER."""
        listing = subprocess.run(["ps", "-o", "pid=,comm=,args=", "-s", str(self.run.pid)],
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
        found = {}
        for line in listing.splitlines():
            pid, name, args = line.split(None, 2)
            found[MEMBER if name == "musterd" and "--join" in args else name] = int(pid)
        return found

    def version(self):
        ask = [self.build / "tools/muster", "status", "--json", "-", self.address]
        status = subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        return json.loads(status.stdout)["commits"]

    def end(self):
        os.killpg(self.run.pid, signal.SIGTERM)
        self.run.wait(20)
        self.out.close()
        self.folder.cleanup()


def perf(*words):
    return subprocess.run(["perf", *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False).stdout


def functions(job, seconds):
    """Return: (share of samples, program, function), the largest first; idle time left out."""
    data = os.path.join(job.folder.name, "perf.data")
    perf("record", "-q", "-a", "-e", "cpu-clock", "-F", 1999, "-o", data, "--", "sleep", seconds)
    counts = collections.Counter()
    for line in perf("script", "-i", data, "-F", "comm,ip,sym").splitlines():
        words = line.split()
        if len(words) >= 3:
            counts[words[0], words[2]] += 1
    total = sum(counts.values())
    return [(count / total, *key) for key, count in counts.most_common()], total


def calls(job, seconds):
    """Return: by program, each system call's number per step, its busiest thread's."""
    found = {}
    for name, pid in job.processes().items():
        if name not in (*OURS, MEMBER):
            continue
        before = job.version()
        text = perf("trace", "-s", "-p", pid, "--", "sleep", seconds)
        steps = max(1, job.version() - before)
        threads = list(THREAD.finditer(text))
        if not threads:
            sys.exit(f"profile: perf trace says nothing of {name}: {text[-300:]}")
        most = max(threads, key=lambda m: int(m[3]))
        rest = text[most.end():]
        end = THREAD.search(rest)
        table = CALL.findall(rest[:end.start()] if end else rest)
        found[name] = (steps, {call: int(count) / steps for call, count in table})
    return found


def show(size, a):
    job = Job(a.build, a.workers, a.servers, size)
    try:
        time.sleep(0.5)
        before, began = job.version(), time.monotonic()
        shares, _ = functions(job, a.seconds)
        steps = job.version() - before
        print(f"\n{size} bytes, {a.workers} workers, {a.servers} servers, "
              f"{(time.monotonic() - began) / max(1, steps) * 1e6:.0f} us a step")
        ours = sum(share for share, program, _ in shares if program in OURS)
        for share, program, function in shares[:TOP]:
            print(f"  {100 * share:5.1f} %  {program:11} {function}")
        print(f"  {100 * ours:5.1f} %  of both processors is muster's")
        for name, (count, table) in calls(job, a.seconds).items():
            line = ", ".join(f"{call} {rate:.2f}" for call, rate in
                             sorted(table.items(), key=lambda item: -item[1]) if rate >= 0.005)
            print(f"  {name}, its busiest thread, calls a step ({count} steps): {line or 'none'}")
    finally:
        job.end()


def sizes(text):
    found = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is no size, such as 4K")
    return int(found[1]) * UNITS[found[2]]


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    p.add_argument("--workers", type=int, default=4)
    p.add_argument("--servers", type=int, default=1)
    p.add_argument("--sizes", type=lambda text: [sizes(one) for one in text.split(",")],
                   default=[4 << 10, 100 << 20])
    p.add_argument("--seconds", type=float, default=2)
    a = p.parse_args()
    for size in a.sizes:
        show(size, a)


if __name__ == "__main__":
    main()
