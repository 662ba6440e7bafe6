#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What muster makes of soft-RoCE, beside ib_write_bw and ib_write_lat in the same machines.

All are run in turn, round by round, and medians are printed; shares count, times mean nothing under
emulation. A share is muster's rate by ib_write_bw's, or ib_write_lat's time of as many bytes by
muster's. ib_write_bw is run with its own queue of 128 and with shorter ones, the best counts: what
it has in flight, two machines lose.

Arithmetic is emulated too, and takes a hundred times what it takes a processor. So whole steps are
run a second time with one gradient copied instead of all summed, and the split of a step (split.py)
says how long the sum took.

With --servers, between two machines with a worker in each: whole steps with one server, and with
two, of which one is in each machine.

usage: verbs.py BUILD [--nodes 1|2] [--rounds N]
       verbs.py BUILD --servers [--rounds N]
"""
import argparse
import os
import pathlib
import re
import signal
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "vm"))
import lab  # noqa: E402
import split  # noqa: E402

MIB = 1 << 20
DEPTHS = (4, 16, 128)  # of ib_write_bw's queue
TRIES = 3
LARGE = (2, MIB // 4, 30)  # workers, elements, steps
SMALL = (1, 1024, 300)
SHARED = (2, MIB // 4, 15)
COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
TROUBLE = ("completer_retry_err", "duplicate_request", "out_of_seq_request", "rcvd_rnr_err",
           "send_rnr_err")
PARTS = (("transfer", "first byte posted to slot full"),
         ("others", "to all slots full"),
         ("answer", "all slots full to result usable"),
         ("full to first byte", "of it to first byte of a result posted"),
         ("sum", "of it the sum alone"),
         ("posted to usable", "last byte posted to result usable"))


class Bench:
    def __init__(self, machines, build):
        self.server, self.client = machines.nodes[0], machines.nodes[-1]
        self.build = build
        self.figures = {}

    def add(self, name, value):
        self.figures.setdefault(name, []).append(value)

    def median(self, name):
        return statistics.median(self.figures[name])

    def perftest(self, tool, size, count, options=""):
        """The last line of figures that the client prints."""
        common = f"{tool} -R -d rxe0 -F -s {size} -n {count} {options}"
        for _ in range(TRIES):
            server = self.server.start(f"stdbuf -oL {common}")
            server.wait_output("Waiting for client", 20)
            client = self.client.run(f"{common} node0", timeout=120, check=False)
            if client.status != 0:  # its server says so before it listens
                server.kill(signal.SIGKILL)
            server.wait(20)
            rows = [line.split() for line in client.output.splitlines()
                    if re.match(rf"\s*{size}\s", line)]
            if client.status == 0 and rows:
                return [float(word) for word in rows[-1]]
        raise lab.LabError(f"{common}: {client.output}")

    def lane(self, size, count):
        """Return: bytes, one way p50 and p99 in us, MiB/s."""
        program = f"{self.build}/tests/bench/bench_verbs"
        server = self.server.start(f"{program} serve")
        address = server.wait_output(r"^verbs:\S+$", 20).group(0)
        out = self.client.run(f"{program} {address} {size} {count}", timeout=120).output
        server.wait(20)
        return [float(word) for word in out.split()]

    def steps(self, shape, musterd="server/musterd", step="bench_step", probe=""):
        """Whole steps: the server in one machine, the workers in the other. Return: p50 in us."""
        workers, elems, count = shape
        bench = f"{self.build}/tests/bench/{step} {elems} {count}"
        server = self.server.start(
            f"{probe and probe + 'server'} {self.build}/{musterd} --listen 0.0.0.0:17077 --insecure"
            f" -n {workers} --transport verbs --owner workers --log-level warn"
            f"{probe and ' --shards 1'}")
        address = "MUSTER_SERVER=node0-control:17077"
        if self.server is self.client:
            address = "MUSTER_SERVER=127.0.0.1:17077"
        jobs = [self.client.start(f"{probe and probe + str(rank)} {address} MUSTER_RANK={rank}"
                                  f" {bench}") for rank in range(workers)]
        for job in jobs:
            if job.wait(200) != 0:
                raise lab.LabError(f"bench_step: {job.output}{server.output}")
        server.wait(20)
        return float(jobs[0].output.split()[2])

    def shared_steps(self, shape, servers):
        """The same with a worker in each machine, and a server in each of as many."""
        workers, elems, count = shape
        machines = (self.server, self.client)
        common = f"{self.build}/server/musterd --transport verbs --log-level warn"
        leader = self.server.start(f"{common} --listen 0.0.0.0:17077 --insecure -n {workers}"
                                   f" --owner workers --servers {servers}")
        followers = [node.start(f"{common} --join node0-control:17077 --insecure")
                   for node in machines[1:servers]]
        jobs = [machines[rank % 2].start(
            f"MUSTER_SERVER=node0-control:17077 MUSTER_RANK={rank}"
            f" {self.build}/tests/bench/bench_step {elems} {count}") for rank in range(workers)]
        for job in jobs:
            if job.wait(200) != 0:
                raise lab.LabError(f"bench_step: {job.output}{leader.output}")
        for process in (leader, *followers):
            process.wait(20)
        return float(jobs[0].output.split()[2])

    def probed(self, shape, sum_):
        return self.steps(shape, "tests/bench/probed_musterd", "probed_step",
                          f"MUSTER_PROBE_SUM={sum_} MUSTER_PROBE=/tmp/probe.")

    def split(self, name, shape):
        self.probed(shape, "sum")
        server = split.read(self.server.get_file("/tmp/probe.server"))
        workers = [split.read(self.client.get_file(f"/tmp/probe.{rank}"))
                   for rank in range(shape[0])]
        one_clock = self.server is self.client
        for part, value in split.split(server, workers, one_clock).items():
            self.add(f"{name}: {part}", value)

    def counters(self):
        out = self.server.run(f"cd {COUNTERS} && grep . *").output
        return {k: int(v) for k, v in (line.split(":") for line in out.splitlines())}

    def servers_round(self):
        for depth in DEPTHS:
            self.add(f"ib_write_bw -t {depth}",
                     self.perftest("ib_write_bw", MIB, 12, f"-t {depth}")[3])
        for servers in (1, 2):
            self.add(f"{servers} servers: step", self.shared_steps(SHARED, servers))

    def round(self):
        for depth in DEPTHS:
            self.add(f"ib_write_bw -t {depth}",
                     self.perftest("ib_write_bw", MIB, 60, f"-t {depth}")[3])
        self.add("lane", self.lane(MIB, 60)[3])
        for size in (64, 4096):
            self.add(f"ib_write_lat {size}", self.perftest("ib_write_lat", size, 1000)[4])
            self.add(f"one way {size}", self.lane(size, 1000)[1])
        self.add("4 KiB: step", self.steps(SMALL))
        self.add("1 MiB: step", self.steps(LARGE))
        self.add("1 MiB: step without sum", self.probed(LARGE, "copy"))
        self.split("4 KiB", SMALL)
        self.split("1 MiB", LARGE)


def rate_of(shape, step_us):
    """MiB/s, in and out."""
    workers, elems, _ = shape
    return 2 * workers * elems * 4 / MIB / (step_us / 1e6)


def row(name, figure, share=None):
    print(f"{name:44}{figure:>16}" + (f"{share:8.2f}" if share is not None else ""))


def report_bw(bench):
    """Return: the best, which shares are of."""
    for depth in DEPTHS:
        row(f"ib_write_bw 1 MiB, {depth} in flight",
            f"{bench.median(f'ib_write_bw -t {depth}'):.1f} MiB/s")
    return max(bench.median(f"ib_write_bw -t {depth}") for depth in DEPTHS)


def report_servers(bench):
    print(f"{'':44}{'median':>16}{'share':>8}")
    bw = report_bw(bench)
    for servers in (1, 2):
        rate = rate_of(SHARED, bench.median(f"{servers} servers: step"))
        row(f"2 workers x 1 MiB, steps, servers: {servers}", f"{rate:.1f} MiB/s", rate / bw)


def report_rates(bench):
    bw = report_bw(bench)
    rates = (("one lane, 1 MiB, put to notice", bench.median("lane")),
             ("2 workers x 1 MiB, steps, in and out", rate_of(LARGE, bench.median("1 MiB: step"))),
             ("  the same, copied instead of summed",
              rate_of(LARGE, bench.median("1 MiB: step without sum"))))
    for name, rate in rates:
        row(name, f"{rate:.1f} MiB/s", rate / bw)


def report_times(bench):
    for size, text in ((64, "64 B"), (4096, "4 KiB")):
        lat = bench.median(f"ib_write_lat {size}")
        way = bench.median(f"one way {size}")
        row(f"ib_write_lat {text}", f"{lat:.1f} us")
        row(f"notifying put of {text}, one way", f"{way:.1f} us", lat / way)
    step, lat = bench.median("4 KiB: step"), bench.median("ib_write_lat 4096")
    row("step of 1 worker, 4 KiB, there and back", f"{step:.1f} us", 2 * lat / step)


def report_split(bench, name, what):
    print(f"split of {what}")
    for part, text in PARTS:
        if f"{name}: {part}" in bench.figures:
            row(f"  {text}", f"{bench.median(f'{name}: {part}'):.1f} us")


def report_rounds(bench):
    print("rounds")
    for name, values in bench.figures.items():
        print(f"  {name}: {' '.join(f'{v:.1f}' for v in values)}")


def report(bench, before, after):
    print(f"{'':44}{'median':>16}{'share':>8}")
    report_rates(bench)
    report_times(bench)
    report_split(bench, "4 KiB", "a step of 1 worker, 4 KiB")
    report_split(bench, "1 MiB", "a step of 2 workers, 1 MiB each")
    report_rounds(bench)
    grown = {k: after[k] - before[k] for k in after if after[k] != before[k]}
    print(f"packets sent {grown.get('sent_pkts', 0)}, received {grown.get('rcvd_pkts', 0)}; "
          + ", ".join(f"{k} {grown.get(k, 0)}" for k in TROUBLE))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--nodes", type=int, choices=(1, 2), default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", action="store_true")
    args = parser.parse_args()
    build = pathlib.Path(args.build).resolve()
    os.chdir(build)  # machines see this folder, wherever it is

    def servers():
        with lab.Lab(nodes=2) as machines:
            bench = Bench(machines, str(build))
            for _ in range(args.rounds):
                bench.servers_round()
            report_servers(bench)
            report_rounds(bench)

    def body():
        with lab.Lab(nodes=args.nodes) as machines:
            bench = Bench(machines, str(build))
            bench.steps(SMALL)  # a machine that has just booted is busy with itself
            before = bench.counters()
            for _ in range(args.rounds):
                bench.round()
            report(bench, before, bench.counters())

    lab.main(servers if args.servers else body)


if __name__ == "__main__":
    main()
