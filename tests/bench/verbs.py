#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What muster makes of soft-RoCE, beside ib_write_bw and ib_write_lat in the same machines.

All are run in turn, round by round, and medians are printed; shares count, times mean nothing under
emulation. `share` is muster's rate by ib_write_bw's, or ib_write_lat's time by muster's.

usage: verbs.py BUILD [--nodes 1|2] [--rounds N]
"""
import argparse
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "vm"))
import lab  # noqa: E402

MIB = 1 << 20
COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
TROUBLE = ("completer_retry_err", "duplicate_request", "out_of_seq_request", "rcvd_rnr_err",
           "send_rnr_err")


class Bench:
    def __init__(self, machines, build):
        self.server, self.client = machines.nodes[0], machines.nodes[-1]
        self.build = build
        self.figures = {}

    def add(self, name, value):
        self.figures.setdefault(name, []).append(value)

    def median(self, name):
        return statistics.median(self.figures[name])

    def perftest(self, tool, size, count):
        """The last line of figures that the client prints."""
        common = f"{tool} -R -d rxe0 -F -s {size} -n {count}"
        server = self.server.start(f"stdbuf -oL {common}")
        server.wait_output("Waiting for client", 20)
        out = self.client.run(f"{common} node0", timeout=120).output
        server.wait(20)
        rows = [line.split() for line in out.splitlines() if re.match(rf"\s*{size}\s", line)]
        return [float(word) for word in rows[-1]]

    def lane(self, size, count):
        program = f"{self.build}/tests/bench/bench_verbs"
        server = self.server.start(f"{program} serve")
        server.wait_output("verbs:", 20)
        address = re.search(r"verbs:\S+", server.output).group(0)
        out = self.client.run(f"{program} {address} {size} {count}", timeout=120).output
        server.wait(20)
        return [float(word) for word in out.split()]

    def steps(self, workers, elems, count):
        """Whole steps: the server in one machine, the workers in the other."""
        bench = f"{self.build}/tests/bench/bench_step {elems} {count}"
        server = self.server.start(
            f"{self.build}/server/musterd --listen 0.0.0.0:17077 -n {workers} --transport verbs"
            f" --owner workers --log-level warn")
        address = "MUSTER_SERVER=node0-control:17077"
        if self.server is self.client:
            address = "MUSTER_SERVER=127.0.0.1:17077"
        jobs = [self.client.start(f"{address} MUSTER_RANK={rank} {bench}")
                for rank in range(workers)]
        for job in jobs:
            if job.wait(200) != 0:
                raise lab.LabError(f"bench_step: {job.output}{server.output}")
        server.wait(20)
        words = jobs[0].output.split()
        return float(words[2]) / 1e6

    def counters(self):
        out = self.server.run(f"cd {COUNTERS} && grep . *").output
        return {k: int(v) for k, v in (line.split(":") for line in out.splitlines())}

    def round(self):
        self.add("ib_write_bw", self.perftest("ib_write_bw", MIB, 60)[3])
        bytes_, p50, p99, rate = self.lane(MIB, 60)
        self.add("lane", rate)
        self.add("ib_write_lat", self.perftest("ib_write_lat", 64, 1000)[4])
        bytes_, p50, p99, rate = self.lane(64, 1000)
        self.add("one way", p50)
        self.add("one way p99", p99)
        self.add("step 4 KiB", self.steps(1, 1024, 300) * 1e6)
        self.add("steps", 2 * 2 * MIB / MIB / self.steps(2, MIB // 4, 40))


def report(bench, before, after):
    bw, lat = bench.median("ib_write_bw"), bench.median("ib_write_lat")
    rows = (
        ("ib_write_bw 1 MiB", f"{bw:.1f} MiB/s", ""),
        ("one lane, 1 MiB, put to notice", f"{bench.median('lane'):.1f} MiB/s",
         f"{bench.median('lane') / bw:.2f}"),
        ("2 workers x 1 MiB, in and out", f"{bench.median('steps'):.1f} MiB/s",
         f"{bench.median('steps') / bw:.2f}"),
        ("ib_write_lat 64 B", f"{lat:.1f} us", ""),
        ("notifying put of 64 B, one way", f"{bench.median('one way'):.1f} us",
         f"{lat / bench.median('one way'):.2f}"),
        ("step of 1 worker, 4 KiB, both ways", f"{bench.median('step 4 KiB'):.1f} us",
         f"{lat / bench.median('step 4 KiB'):.2f}"),
    )
    print(f"{'':36}{'median':>14}{'share':>8}")
    for name, figure, share in rows:
        print(f"{name:36}{figure:>14}{share:>8}")
    for name, values in bench.figures.items():
        print(f"  {name}: {' '.join(f'{v:.1f}' for v in values)}")
    grown = {k: after[k] - before[k] for k in after if after[k] != before[k]}
    print(f"packets sent {grown.get('sent_pkts', 0)}, received {grown.get('rcvd_pkts', 0)}; "
          + ", ".join(f"{k} {grown.get(k, 0)}" for k in TROUBLE))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--nodes", type=int, choices=(1, 2), default=1)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()

    def body():
        with lab.Lab(nodes=args.nodes) as machines:
            bench = Bench(machines, str(pathlib.Path(args.build).resolve()))
            before = bench.counters()
            for _ in range(args.rounds):
                bench.round()
            report(bench, before, bench.counters())

    lab.main(body)


if __name__ == "__main__":
    main()
