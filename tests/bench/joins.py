#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long workers take to join a server, with certificates and without, in turn.

The workers are threads of one process, each with a session of its own to one server on the same
host; they call muster_open() at the same moment. In each round all join a server without
certificates, and all join one that has them (TLS 1.3, both sides prove who they are). Printed are
the medians over the rounds, with their quartiles: the time until the last has joined, and how
long one call takes.

usage: joins.py BUILD [--workers 8,256] [--rounds N]
"""
import argparse
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ELEMS = 256
WAIT_S = 120.0


def read_line():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--workers", default="8,256", type=lambda text: list(map(int, text.split(","))))
    p.add_argument("--rounds", type=int, default=7)
    a = p.parse_args()
    os.environ["MUSTER_LIBRARY"] = str(a.build / "client" / "libmuster.so")
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "client" / "python"))
    return a


class Server:
    """A server of one job; with `keys`, a folder of `muster key new`, it wants certificates."""

    def __init__(self, build, workers, keys):
        tls = [f"--tls-ca={keys}/ca.pem", f"--tls-cert={keys}/server.pem",
               f"--tls-key={keys}/server.key"] if keys else []
        self.process = subprocess.Popen(
            [build / "server" / "musterd", "-n", str(workers), "--listen", "127.0.0.1:0", *tls],
            stderr=subprocess.PIPE, text=True)
        self.address = None
        for line in self.process.stderr:
            found = re.search(r"127\.0\.0\.1:\d+", line)
            if found:
                self.address = found.group()
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.kill()
        self.process.wait()


def set_environment(keys):
    for name, file in (("CA", "ca.pem"), ("CERT", "worker.pem"), ("KEY", "worker.key")):
        if keys:
            os.environ[f"MUSTER_TLS_{name}"] = f"{keys}/{file}"
        else:
            os.environ.pop(f"MUSTER_TLS_{name}", None)


def join_all(muster, address, workers):
    """Seconds until the last has joined, and of each call."""
    barrier, calls, joined = threading.Barrier(workers + 1), [], []

    def join(rank):
        barrier.wait()
        begin = time.monotonic()
        joined.append(muster.Worker(ELEMS, server=address, rank=rank, join_timeout=WAIT_S))
        calls.append(time.monotonic() - begin)

    threads = [threading.Thread(target=join, args=(rank,)) for rank in range(workers)]
    for thread in threads:
        thread.start()
    barrier.wait()
    begin = time.monotonic()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begin
    if len(calls) != workers:
        raise SystemExit(f"{workers - len(calls)} of {workers} workers could not join")
    return took, calls


def quartiles(seconds):
    low, middle, high = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else seconds * 3
    return f"{1e3 * middle:8.1f} ms ({1e3 * low:.1f}, {1e3 * high:.1f})"


def main():
    a = read_line()
    import muster
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        keys = f"{folder}/keys"
        subprocess.run([a.build / "tools" / "muster", "key", "new", keys], check=True,
                       stdout=subprocess.DEVNULL)
        for workers in a.workers:
            last = {None: [], keys: []}
            each = {None: [], keys: []}
            for _ in range(a.rounds):
                for which in (None, keys):
                    set_environment(which)
                    with Server(a.build, workers, which) as server:
                        took, calls = join_all(muster, server.address, workers)
                    last[which].append(took)
                    each[which].append(statistics.median(calls))
            for which, name in ((None, "without"), (keys, "with")):
                print(f"{workers:4} workers, {name:8} certificates: all after "
                      f"{quartiles(last[which])}, a call {quartiles(each[which])}", flush=True)
    print(f"{a.rounds} rounds, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")


main()
