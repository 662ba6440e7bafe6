#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster beside Open MPI's MPI_Allreduce over shared memory and torch's Gloo all_reduce.

For each setting the peers run in turn, round by round (A B C A B C ...); medians over the rounds
are printed, their spread, and the ratio of a peer's time to muster's. All are measured by the same
code (peers/meter.h): workers begin a step together, it lasts as long as its slowest worker takes
from its call until the result is readable, and every result is checked.

The straggler rounds delay the last of the workers before each of its steps, and show what a step
takes the others.

usage: compare.sh [--build DIR] [options]
"""
import argparse
import collections
import json
import os
import pathlib
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

import tables

KIB, MIB = 1 << 10, 1 << 20
HERE = pathlib.Path(__file__).resolve().parent
SIZES = "4K,64K,1M,25M,100M"
STRAGGLER_SIZE = "1M"
DELAYS = "1,10,100"
RUN_LIMIT_S = 120
BUSY = 0.5  # load average
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None  # no disk beside what is measured
STEPS = ((64 * KIB, 5000, 200), (MIB, 2000, 50), (25 * MIB, 100, 3), (1 << 62, 30, 2))

# peer: as in tables; command: of the words of its driver
Run = collections.namedtuple("Run", "peer command")


class DriverError(Exception):
    pass


def size_of(text):
    units = {"K": KIB, "M": MIB, "G": MIB * KIB}
    try:
        size = int(text[:-1]) * units[text[-1:]] if text[-1:] in units else int(text)
    except ValueError:
        size = 0
    if size < 4 or size % 4:
        raise argparse.ArgumentTypeError(f"{text}: a size is a multiple of 4, such as 4K or 25M")
    return size


def list_of(kind):
    def parse(text):
        return [kind(word) for word in text.split(",")]
    return parse


def count(low, high):
    def parse(text):
        if not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text}: must be {low} to {high}")
        return int(text)
    return parse


# --- the host ------------------------------------------------------------------------------------

def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def host_lines(load):
    yield (f"host: {len(os.sched_getaffinity(0))} cores, {cpu_model()}, Linux "
           f"{platform.release()}, load average {load:.2f} at the start")
    if load > BUSY:
        yield (f"WARNING: the load average is above {BUSY}: something else runs here, and what "
               "spins collapses beside it; times and ratios are worth little")
    yield ("transport: shared memory (muster shm, Open MPI ob1 over vader), Gloo TCP over lo; "
           "pinning: none asked for; Open MPI binds as by default (CSV: cpus of rank 0)")


# --- the peers -----------------------------------------------------------------------------------

class Peers:
    """How each peer is started. Peers that are missing are told once and left out."""

    def __init__(self, args):
        self.build = pathlib.Path(args.build).resolve()
        self.args = args
        checks = {"muster": self.missing_muster, "mpi": self.missing_mpi,
                  "gloo": self.missing_gloo}
        self.names, self.skipped = [], []
        for name in args.only:
            sentence = checks[name]()
            if sentence:
                self.skipped.append(f"skipped: {name}: {sentence}")
            else:
                self.names.append(name)
        self.muster_by = self.choose_muster() if "muster" in self.names else None

    def program(self, name):
        return self.build / "tests/bench" / name

    def muster(self):
        return self.build / "tools/muster"

    def missing_muster(self):
        for path in (self.muster(), self.program("muster_allreduce")):
            if not path.exists():
                return f"{path} is not built"
        return None

    def missing_mpi(self):
        if shutil.which("mpirun") is None:
            return "mpirun is not installed (deploy/packages.sh bench)"
        if not self.program("mpi_allreduce").exists():
            return "its driver is not built: the build was configured without libopenmpi-dev"
        return None

    def missing_gloo(self):
        check = "import torch.distributed as d; assert d.is_gloo_available()"
        run = subprocess.run([sys.executable, "-c", check], stderr=subprocess.DEVNULL, check=False)
        if run.returncode != 0:
            return f"{sys.executable} has no torch with Gloo (deploy/packages.sh bench)"
        if not self.program("libbench_meter.so").exists():
            return f"{self.program('libbench_meter.so')} is not built"
        return None

    def choose_muster(self):
        """`muster bench` fills and checks everything, so it is held against others that do."""
        if self.args.muster != "auto":
            return self.args.muster
        if self.args.fill != "all":
            return "driver"
        run = subprocess.run([self.muster(), "bench", "--help"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, check=False)
        return "bench" if run.returncode == 0 else "driver"

    def muster_run(self, buffers, meter, options, name):
        own = "servers" if meter["delay-ms"] else "workers"
        return Run(name, [self.muster(), "run", "-q", "-n", meter["workers"], "--owner", own,
                          "--listen", "127.0.0.1:0", *options, *self.args.muster_options, "--",
                          self.program("muster_allreduce"), *words(meter, "muster", buffers)])

    def muster_bench(self, buffers, meter):
        size = meter["elems"] * 4
        return Run(f"muster {buffers}",
                   [self.muster(), "bench", "--workers", meter["workers"], "--sizes", size,
                    "--buffers", buffers, "--budget", f"{int(meter['seconds'] * 1000)}ms",
                    "--warmup", meter["warmup"], "-q", *self.args.muster_options, "--json",
                    meter["file"]])

    def mpi(self, meter):
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return Run("Open MPI", ["mpirun", *root, "--oversubscribe", "--mca", "mpi_yield_when_idle",
                                "1", "--mca", "pml", "ob1", "--mca", "btl", "self,vader", "-np",
                                meter["workers"], self.program("mpi_allreduce"),
                                *words(meter, "mpi", "own")])

    def gloo(self, meter):
        return Run("Gloo", [sys.executable, HERE / "peers/gloo_allreduce.py",
                            self.program("libbench_meter.so"), *words(meter, "gloo", "own")])

    def others(self, meter):
        return [self.mpi(meter)] * ("mpi" in self.names) + [self.gloo(meter)] * (
            "gloo" in self.names)

    def even(self, meter):
        """One round's runs where nobody is delayed."""
        runs = []
        for buffers in ("slot", "own") if "muster" in self.names else ():
            runs.append(self.muster_bench(buffers, meter) if self.muster_by == "bench" else
                        self.muster_run(buffers, meter, (), f"muster {buffers}"))
        return runs + self.others(meter)

    def delayed(self, meter):
        """The same with a straggler. One gradient is what it is: no rate is scaled, nothing is
        kept of the step before, so that a version tells what went into it."""
        options = ("--optimizer", "sgd:lr=1,momentum=0", "--lr-scale", "none", "--policy")
        policies = (("muster backup", f"backup:{meter['workers'] - 1}"), ("muster bsp", "bsp"))
        runs = [self.muster_run("slot", meter, (*options, policy), name)
                for name, policy in policies if "muster" in self.names]
        return runs + self.others(meter)


def words(meter, peer, buffers):
    options = [f"--{name}={value}" for name, value in meter.items()]
    return [*options, f"--peer={peer}", f"--buffers={buffers}"]


# --- running them --------------------------------------------------------------------------------

def execute(command):
    """Standard output of a command, which gets a group of its own and RUN_LIMIT_S."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=RUN_LIMIT_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt) as cause:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(cause, KeyboardInterrupt):
            raise
        raise DriverError(f"no end within {RUN_LIMIT_S} s") from None
    if process.returncode != 0:
        last = (err.strip() or out.strip()).splitlines()[-3:]
        raise DriverError(f"exit status {process.returncode}: {' / '.join(last)}")
    return out


def figure_in(text, path):
    """What a driver printed as a line of JSON, or `muster bench` wrote as a list of one."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if lines:
        figure = json.loads(lines[0])
    elif path.exists() and path.stat().st_size and path.read_bytes()[:1] == b"[":
        figure = json.loads(path.read_text())[0]
    else:
        raise DriverError("it printed no figures")
    if figure.get("checked", figure["samples"]) < figure["samples"]:
        raise DriverError(f"it checked {figure['checked']} results of {figure['samples']} steps")
    return figure


class Course:
    def __init__(self, args, peers):
        self.args, self.peers = args, peers
        self.rounds, self.failures = tables.Rounds(), []

    def run_one(self, run_of, index, meter):
        with tempfile.TemporaryDirectory(prefix="compare.", dir=self.args.scratch) as scratch:
            meter = {**meter, "file": pathlib.Path(scratch) / "meter"}
            run = run_of(meter)[index]
            try:
                figure = figure_in(execute(run.command), meter["file"])
            except DriverError as error:
                place = f"{tables.size_text(meter['elems'] * 4)}, {meter['workers']} workers"
                self.failures.append(f"{run.peer}, {place}: {error}")
                print(f"FAILED: {self.failures[-1]}", file=sys.stderr)
                return
        self.rounds.add(run.peer, {**figure, "delay_ms": meter["delay-ms"]})

    def turns(self, run_of, meter):
        runs = len(run_of({**meter, "file": "none"}))
        delay = f", one delayed by {meter['delay-ms']} ms" if meter["delay-ms"] else ""
        print(f"measuring {tables.size_text(meter['elems'] * 4)}, {meter['workers']} workers"
              f"{delay}", file=sys.stderr)
        for _ in range(self.args.rounds):
            for index in range(runs):
                self.run_one(run_of, index, meter)

    def even(self, size, workers):
        steps, warmup = next((s, w) for limit, s, w in STEPS if size <= limit)
        self.turns(self.peers.even, {
            "workers": workers, "elems": size // 4, "steps": steps, "warmup": warmup,
            "seconds": self.args.seconds, "delay-ms": 0, "fill": self.args.fill})

    def delayed(self, delay_ms):
        steps = max(20, min(300, int(self.args.seconds * 1000 / delay_ms)))
        self.turns(self.peers.delayed, {
            "workers": self.args.straggler_workers, "elems": self.args.straggler_size // 4,
            "steps": steps, "warmup": 3, "seconds": self.args.seconds, "delay-ms": delay_ms,
            "fill": "all"})


def show(rounds):
    for line in tables.table(rounds.rows()):
        print(line)
    print(flush=True)


def compare(args, peers):
    """Return: all that was measured, and what failed."""
    even, slow = Course(args, peers), Course(args, peers)
    if not args.no_even:
        for workers in args.workers:
            for size in args.sizes:
                even.even(size, workers)
        print(f"\nA step, median of {args.rounds} rounds. /slot, /own: a peer's time by muster's."
              "\nThe workers' gradient lies in muster's slot, or (own) in their own memory, as it"
              "\ndoes for the others; copies count.\n")
        show(even.rounds)
    if not args.no_stragglers:
        for delay_ms in args.delays:
            slow.delayed(delay_ms)
        print(f"\nOne of {args.straggler_workers} is delayed in each step: what a step takes the "
              f"others, median of {args.rounds} rounds;\nevery element written and checked. "
              "/backup: by what it takes under muster's backup.\n")
        show(slow.rounds)
    return (even.rounds, slow.rounds), even.failures + slow.failures


def finish(args, measured, failures):
    """Return: the exit status."""
    if args.csv:
        with open(args.csv, "w", encoding="utf-8", newline="") as file:
            tables.write_csv(file, (row for rounds in measured for row in rounds.rows()))
        print(f"figures: {args.csv}")
    wrong = sum(rounds.wrong() for rounds in measured)
    if wrong:
        print(f"WRONG: {wrong} elements")
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if wrong or failures else 0


def parse(argv):
    p = argparse.ArgumentParser(prog="compare.sh", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True, help="folder of a build with tests")
    p.add_argument("--rounds", type=count(1, 99), help="default 5; with --quick 1")
    p.add_argument("--sizes", type=list_of(size_of), help=f"bytes of a gradient; default {SIZES}")
    p.add_argument("--workers", type=list_of(count(2, 64)), help="default 2,4,8")
    p.add_argument("--only", type=list_of(str), default=["muster", "mpi", "gloo"], metavar="PEERS",
                   help="of muster,mpi,gloo")
    p.add_argument("--seconds", type=float, help="measured per run; default 1; with --quick 0.2")
    p.add_argument("--fill", choices=("marks", "all"), default="marks",
                   help="what is written and checked in each step: an element of each 4 KiB, the "
                        "rest being left where it was, or every one; default marks")
    p.add_argument("--csv", metavar="FILE", help="write all rows there")
    p.add_argument("--delays", type=list_of(count(1, 10000)), default=DELAYS,
                   help=f"of the straggler, in ms; default {DELAYS}")
    p.add_argument("--straggler-workers", type=count(2, 64), default=4, metavar="N")
    p.add_argument("--straggler-size", type=size_of, default=STRAGGLER_SIZE, metavar="SIZE")
    p.add_argument("--no-even", action="store_true", help="straggler rounds only")
    p.add_argument("--no-stragglers", action="store_true", help="none of them")
    p.add_argument("--muster", choices=("auto", "bench", "driver"), default="auto",
                   help="by `muster bench` (with --fill all only), or by the driver in peers/; "
                        "auto is the first where it can be. Straggler rounds are by the driver")
    p.add_argument("--muster-options", type=shlex.split, default=[], metavar="WORDS",
                   help="more options of muster, such as \"--shards 2\"")
    p.add_argument("--scratch", default=SCRATCH, help=argparse.SUPPRESS)
    p.add_argument("--quick", action="store_true",
                   help="one round of 4K,1M with 2,4 workers: that everything works")
    args = p.parse_args(argv)
    unknown = set(args.only) - {"muster", "mpi", "gloo"}
    if unknown:
        p.error(f"--only: no peer is called {', '.join(sorted(unknown))}")
    if args.muster == "bench" and args.fill != "all":
        p.error("--muster bench goes with --fill all: it fills and checks every element")
    args.rounds = args.rounds or (1 if args.quick else 5)
    args.seconds = args.seconds or (0.2 if args.quick else 1.0)
    args.sizes = args.sizes or list_of(size_of)("4K,1M" if args.quick else SIZES)
    args.workers = args.workers or ([2, 4] if args.quick else [2, 4, 8])
    return args


def main():
    args = parse(sys.argv[1:])
    load = os.getloadavg()[0]
    peers = Peers(args)
    for line in (*host_lines(load), *peers.skipped):
        print(line)
    if peers.muster_by:
        print("muster by " + ("`muster bench`" if peers.muster_by == "bench" else
                              "peers/muster_allreduce.c")
              + ("; every element" if args.fill == "all" else "; an element of each 4 KiB")
              + " written and checked in each step")
    if not peers.names:
        print("skipped: there is nobody to measure")
        return 77
    sys.stdout.flush()
    return finish(args, *compare(args, peers))


if __name__ == "__main__":
    sys.exit(main())
