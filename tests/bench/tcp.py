#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A step of muster over TCP beside Open MPI (TCP only), Gloo, and the floor: a program that moves
the same bytes over as many connections and does nothing else (peers/floor.c).

They take turns, round by round, and all are measured by the same code (peers/meter.h). Printed are
medians of the rounds; how muster stands to the floor and to the better peer; and the processor
time of the server and of all together, for each GiB of gradients. At last, what a step takes the
others under backup:N-1 when one of them is late, and when none is.

With --veth the server and each worker have a network namespace of their own, joined by a bridge.
That takes root. Then the last worker also plays one that sends, and is sent to, over a slow link.

usage: tcp.py BUILD [options]
"""
import argparse
import collections
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import compare
import tables

SIZES = "4K,64K,1M,16M,100M"
SUBNET = "10.213.0"
SERVER = f"{SUBNET}.1"
GIB = 1 << 30


# --- the hosts -----------------------------------------------------------------------------------

class Loopback:
    """All on this host."""

    listen = "127.0.0.1:0"
    environment: dict[str, str] = {}

    def muster(self, words):
        return words

    mpi = muster

    def slow(self, rank, rate):
        """Nothing is slow on loopback."""

    def ranks(self, words):
        return words


class Apart:
    """A namespace for the server, and one for each worker."""

    listen = f"{SERVER}:0"

    def __init__(self, stack, workers):
        self.prefix = f"mb{os.getpid()}"
        self.environment = {"BENCH_NETNS": f"/run/netns/{self.prefix}", "BENCH_ADDRESS": SERVER,
                            "GLOO_SOCKET_IFNAME": "eth0",
                            "PMIX_MCA_ptl_tcp_remote_connections": "1",
                            "PMIX_MCA_ptl_tcp_if_include": "br0"}
        self.make(stack, "s")
        inside = ["ip", "-n", f"{self.prefix}s"]
        run([*inside, "link", "add", "br0", "type", "bridge"])
        run([*inside, "addr", "add", f"{SERVER}/24", "dev", "br0"])
        run([*inside, "link", "set", "br0", "up"])
        for rank in range(workers):
            self.make(stack, f"w{rank}")
            run(["ip", "link", "add", "eth0", "netns", f"{self.prefix}w{rank}", "type", "veth",
                 "peer", "name", f"port{rank}", "netns", f"{self.prefix}s"])
            run([*inside, "link", "set", f"port{rank}", "master", "br0", "up"])
            worker = ["ip", "-n", f"{self.prefix}w{rank}"]
            run([*worker, "addr", "add", f"{SUBNET}.{10 + rank}/24", "dev", "eth0"])
            run([*worker, "link", "set", "eth0", "up"])

    def make(self, stack, name):
        run(["ip", "netns", "add", self.prefix + name])
        stack.callback(subprocess.run, ["ip", "netns", "del", self.prefix + name], check=False)
        run(["ip", "-n", self.prefix + name, "link", "set", "lo", "up"])

    def slow(self, rank, rate):
        """From now on a worker's link carries so much each way; None: what it can."""
        for namespace, device in ((f"w{rank}", "eth0"), ("s", f"port{rank}")):
            shape = ["qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "64k",
                     "latency", "50ms"] if rate else ["qdisc", "del", "dev", device, "root"]
            run(["tc", "-n", self.prefix + namespace, *shape])

    def muster(self, words):
        return ["ip", "netns", "exec", f"{self.prefix}s", *words]

    mpi = muster

    def ranks(self, words):
        """What ranks execute, whose starter tells them by one of two variables who they are."""
        script = (f'exec ip netns exec {self.prefix}w${{MUSTER_RANK:-$OMPI_COMM_WORLD_RANK}} "$@"')
        return ["sh", "-c", script, "sh", *words]


def run(words):
    subprocess.run(words, check=True)


# --- who is measured -----------------------------------------------------------------------------

class Contest:
    """How each is started."""

    def __init__(self, args, hosts):
        self.args, self.hosts = args, hosts
        self.build = pathlib.Path(args.build).resolve()

    def program(self, name):
        return self.build / "tests/bench" / name

    def words(self, meter, peer, server=None):
        return [*compare.words(meter, peer, "slot"), *([f"--server={server}"] if server else [])]

    def floor(self, meter):
        return [self.program("floor"), *self.words(meter, "floor", "receiver")]

    def muster(self, meter, threads, *options):
        beyond = ["--insecure"] if self.args.veth else []
        return self.hosts.muster([
            self.build / "tools/muster", "run", "-q", "-n", meter["workers"], "--listen",
            self.hosts.listen, "--transport", "tcp", "--io-threads", threads, "--owner",
            meter.get("owner", "workers"), *beyond, *options, *self.args.muster_options, "--",
            *self.hosts.ranks([self.program("muster_allreduce"),
                               *self.words(meter, "muster", "musterd")])])

    def mpi(self, meter):
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return self.hosts.mpi([
            "mpirun", *root, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "--mca", "pml",
            "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include",
            "eth0" if self.args.veth else "lo", "-np", meter["workers"],
            *self.hosts.ranks([self.program("mpi_allreduce"), *self.words(meter, "mpi")])])

    def gloo(self, meter):
        return [sys.executable, compare.HERE / "peers/gloo_allreduce.py",
                self.program("libbench_meter.so"), *self.words(meter, "gloo")]

    def all(self):
        contest = {"floor": self.floor}
        for threads in self.args.io_threads:
            contest[f"muster, {threads} threads"] = (
                lambda meter, threads=threads: self.muster(meter, threads))
        if "mpi" in self.args.only:
            contest["Open MPI"] = self.mpi
        if "gloo" in self.args.only:
            contest["Gloo"] = self.gloo
        return contest


class Rounds:
    """Figures of each, and what failed."""

    def __init__(self):
        self.figures, self.failures, self.wrong = collections.defaultdict(list), [], 0

    def take(self, name, command_of, meter):
        with tempfile.TemporaryDirectory(prefix="tcp.", dir=compare.SCRATCH) as scratch:
            meter = {**meter, "file": pathlib.Path(scratch) / "meter"}
            try:
                figure = compare.figure_in(compare.execute(command_of(meter)), meter["file"])
            except compare.DriverError as error:
                self.failures.append(f"{name}, {tables.size_text(meter['elems'] * 4)}: {error}")
                print(f"FAILED: {self.failures[-1]}", file=sys.stderr)
                return
        self.wrong += figure["wrong"]
        self.figures[name].append(figure)

    def median(self, name, what="p50_us"):
        return statistics.median(figure[what] for figure in self.figures[name])


# --- what is printed -----------------------------------------------------------------------------

def seconds_a_gib(rounds, name, size, workers):
    """The server's processor time and that of all, for what the workers contribute in a step."""
    gib = size * workers / GIB
    server = rounds.median(name, "server_cpu_us") / 1e6 / gib
    return server, server + rounds.median(name, "workers_cpu_us") / 1e6 / gib


def lines_of(rounds, size, workers):
    peers = [rounds.median(name) for name in ("Open MPI", "Gloo") if rounds.figures[name]]
    for name in [name for name, figures in rounds.figures.items() if figures]:
        p50 = rounds.median(name)
        low = min(figure["p50_us"] for figure in rounds.figures[name])
        high = max(figure["p50_us"] for figure in rounds.figures[name])
        floor = f"{rounds.median('floor') / p50:.2f}" if rounds.figures["floor"] else "-"
        peer = f"{min(peers) / p50:.2f}" if peers and name.startswith("muster") else "-"
        server, both = seconds_a_gib(rounds, name, size, workers)
        yield (f"{tables.size_text(size):>8}  {name:18} {tables.us(p50):>9} "
               f"{'(' + tables.us(low) + ' .. ' + tables.us(high) + ')':>21} {floor:>6} {peer:>6} "
               f"{server:8.2f} {both:8.2f}")


HEAD = (f"{'size':>8}  {'':18} {'p50 us':>9} {'(low .. high)':>21} {'/floor':>6} {'/peer':>6} "
        f"{'server s':>8} {'all s':>8}")


def steps_of(size):
    """And how many before those: each slot and each version is touched by then. With six the
    profile of 100 MiB was page faults for two fifths, with eight there were none."""
    steps, warmup = next((s, w) for limit, s, w in compare.STEPS if size <= limit)
    return steps, max(warmup, 12)


def even(args, contest):
    """Return: what failed, and wrong elements."""
    failures, wrong = [], 0
    print(HEAD)
    for size in args.sizes:
        steps, warmup = steps_of(size)
        meter = {"workers": args.workers, "elems": size // 4, "steps": steps, "warmup": warmup,
                 "seconds": args.seconds, "delay-ms": 0, "fill": "marks"}
        rounds = Rounds()
        for _ in range(args.rounds):
            for name, command_of in contest.all().items():
                rounds.take(name, command_of, meter)
        for line in lines_of(rounds, size, args.workers):
            print(line, flush=True)
        failures += rounds.failures
        wrong += rounds.wrong
    return failures, wrong


def late(args, contest):
    """Return: what failed, and wrong elements."""
    options = ("--optimizer", "sgd:lr=1,momentum=0", "--lr-scale", "none", "--policy",
               f"backup:{args.workers - 1}")
    rounds = Rounds()
    meter = {"workers": args.workers, "elems": args.late_size // 4, "warmup": 3, "steps": 40,
             "seconds": args.seconds, "fill": "all", "owner": "servers"}
    # Name, delay in ms (of one with a delay nobody waits for), and whether its link is slow.
    clean = "when none is late"
    runs = [(clean, 0, False), (f"with one of {args.workers} late by {args.delay} ms", args.delay,
                                False)]
    if args.veth:
        runs.append((f"with one of {args.workers} at {args.slow_link} each way", 1, True))
    for _ in range(args.rounds):
        for name, delay_ms, slow in runs:
            if slow:
                contest.hosts.slow(args.workers - 1, args.slow_link)
            rounds.take(name, lambda m: contest.muster(m, args.io_threads[-1], *options),
                        {**meter, "delay-ms": delay_ms})
            if slow:
                contest.hosts.slow(args.workers - 1, None)
    print(f"\n{tables.size_text(args.late_size)}, backup:{args.workers - 1}: what a step takes the "
          "others")
    for name, _, _ in runs:
        if rounds.figures[name] and rounds.figures[clean]:
            p50 = rounds.median(name)
            print(f"  {name}: {tables.us(p50)} us: {p50 / rounds.median(clean):.2f}")
    return rounds.failures, rounds.wrong


def parse(argv):
    p = argparse.ArgumentParser(prog="tcp.py", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", help="folder of a build with tests")
    p.add_argument("--rounds", type=compare.count(1, 99), default=5)
    p.add_argument("--seconds", type=float, default=0.5, help="measured per run; default 0.5")
    p.add_argument("--sizes", type=compare.list_of(compare.size_of), default=SIZES,
                   help=f"bytes of a gradient; default {SIZES}")
    p.add_argument("--workers", type=compare.count(2, 64), default=4)
    p.add_argument("--io-threads", type=compare.list_of(compare.count(0, 16)), default="0,1",
                   help="of the server; default 0,1")
    p.add_argument("--only", type=compare.list_of(str), default=["mpi", "gloo"], metavar="PEERS",
                   help="of mpi,gloo; none for neither")
    p.add_argument("--veth", action="store_true", help="in network namespaces, not over loopback")
    p.add_argument("--delay", type=compare.count(1, 10000), default=100, metavar="MS",
                   help="of the worker that is late; default 100")
    p.add_argument("--late-size", type=compare.size_of, default="1M", metavar="SIZE")
    p.add_argument("--slow-link", default="100mbit", metavar="RATE",
                   help="with --veth: of the worker that has a slow link; default 100mbit")
    p.add_argument("--no-even", action="store_true", help="only the steps with one late")
    p.add_argument("--no-late", action="store_true", help="none of those")
    p.add_argument("--muster-options", type=compare.shlex.split, default=[], metavar="WORDS",
                   help="more options of the server")
    args = p.parse_args(argv)
    unknown = set(args.only) - {"mpi", "gloo", "none"}
    if unknown:
        p.error(f"--only: no peer is called {', '.join(sorted(unknown))}")
    return args


def main():
    args = parse(sys.argv[1:])
    load = os.getloadavg()[0]
    print(f"{len(os.sched_getaffinity(0))} cores, {compare.cpu_model()}, load average {load:.2f} "
          f"at the start; {args.workers} workers, medians of {args.rounds} rounds; over "
          + ("veth and a bridge" if args.veth else "loopback"))
    print("/floor: the floor's time by this one's; /peer: the better peer's by muster's (above 1 "
          "muster is faster)\nserver s, all s: processor seconds for each GiB of gradients")
    failures, wrong = [], 0
    with contextlib.ExitStack() as stack:
        hosts = Apart(stack, args.workers) if args.veth else Loopback()
        os.environ.update(hosts.environment)
        contest = Contest(args, hosts)
        for part, left_out in ((even, args.no_even), (late, args.no_late)):
            if not left_out:
                failed, errors = part(args, contest)
                failures += failed
                wrong += errors
    if wrong:
        print(f"WRONG: {wrong} elements")
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if wrong or failures else 0


if __name__ == "__main__":
    sys.exit(main())
