#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What musterd --record writes of real jobs, and what muster plan makes of recordings: of real ones
whatever no clock decides, and who is slow in recordings whose times are made up.

usage: plan.py CASE --muster MUSTER --worker WORKER [--digits DIGITS] [--data FOLDER]
       plan.py --list
"""
import collections
import csv
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from base import CALM, cases, check, main, must

HEADER = ["rank", "version", "start_us", "ready_us", "verdict"]
WORKERS = 4


def job(a, folder, policy, record, *options, program=None, commits=60, expect=0):
    """Runs a job whose rank 2 is slow. Return: its figures, to which the seconds that the command
    took are added, and what it said. @expect: 3: rows of its recording are missing."""
    figures = os.path.join(folder, "figures")
    began = time.monotonic()
    program = program or [a.worker, os.path.join(folder, "log"), "16384", "sleep_us=4000",
                          "rounds=1000000", "2:sleep_us=30000"]
    done = subprocess.run(
        [a.muster, "run", "-n", str(WORKERS), "--policy", policy, "--listen", "127.0.0.1:0",
         *CALM, "--grace", "60s", "--commits", str(commits), "--json", figures, "--record", record,
         *options, "--", *program],
        text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    took = time.monotonic() - began
    must(done.returncode == expect, "the job failed:", done.stdout, done.stderr)
    with open(figures, encoding="utf-8") as f:
        told = json.load(f)
    must(told["state"] == "finished" and len(told["missing"]) == (expect != 0), told)
    return {**told, "command_s": took}, done.stderr


def read(path):
    """Return: the rows of a recording, all of whose lines are whole."""
    with open(path, newline="", encoding="ascii") as f:
        text = f.read()
    must(text.endswith("\n"), "its last line has no end:", text[-80:])
    lines = list(csv.reader(text.splitlines()))
    must(lines[0] == HEADER, "its header:", lines[0])
    must(all(len(line) == len(HEADER) for line in lines), "a line is not whole")
    return [dict(zip(HEADER, line)) for line in lines[1:]]


def agrees(rows, figures):
    """Each rank has as many gradients of each verdict as the summary says."""
    count = collections.Counter((int(row["rank"]), row["verdict"]) for row in rows)
    for rank in figures["ranks"]:
        for verdict in ("counted", "late", "stale", "refused", "given_up"):
            must(count[rank["rank"], verdict] == rank[verdict], "rank", rank["rank"], verdict,
                 count, json.dumps(rank))
    ready = [float(row["ready_us"]) for row in rows]
    check("its rows are in the order of their ends", ready == sorted(ready))
    check("no gradient is ready before its start",
          all(row["start_us"] == "" or float(row["start_us"]) <= float(row["ready_us"])
              for row in rows))
    # The job's time ends with the last version; gradients that were under way then come later.
    check("what counts is there before the job's end",
          all(float(row["ready_us"]) <= figures["wall_s"] * 1e6 + 1
              for row in rows if row["verdict"] == "counted"))
    check("no row is later than the command", ready[-1] <= figures["command_s"] * 1e6)


def plan(a, *options):
    """Return: what muster plan says, and its figures."""
    said = subprocess.run([a.muster, "plan", *options], text=True, capture_output=True, timeout=60)
    must(said.returncode == 0, "no plan:", said.stderr)
    figures = subprocess.run([a.muster, "plan", *options, "--json", "-"], text=True,
                             capture_output=True, timeout=60, check=True).stdout
    return said.stdout, json.loads(figures)


def write(path, rows):
    """A recording of gradients {(rank, version): (start_us, ready_us)}; rank 2's are late."""
    with open(path, "w", newline="", encoding="ascii") as f:
        lines = csv.writer(f, lineterminator="\n")
        lines.writerow(HEADER)
        for (rank, version), (start, ready) in sorted(rows.items(), key=lambda row: row[1][1]):
            lines.writerow([rank, version, start, ready, "late" if rank == 2 else "counted"])


def under_backup(steps):
    """Rank 2 needs 120 ms, the others 16 and some; it misses the steps that it is too slow for."""
    rows = {}
    for version in range(steps):
        begun = 17000 * version
        for rank in (0, 1, 3):
            rows[rank, version] = begun, begun + 16000 + 70 * rank + 13 * version % 500
        if version % 7 == 0:
            rows[2, version] = begun, begun + 118500
    return rows


def under_async(each):
    """Nobody waits: the versions that rank 2 reads are further and further apart."""
    needs = 16000, 16100, 120000, 16300  # microseconds of a gradient of each rank
    ends = sorted((ready, rank, ready - took) for rank, took in enumerate(needs)
                  for ready in range(took, each * 16000, took))
    rows, version = {}, 0
    read_at = dict.fromkeys(range(WORKERS), 0)
    for ready, rank, start in ends:
        rows[rank, read_at[rank]] = start, ready
        version += 1
        read_at[rank] = version
    return rows


def names_rank_2(a, record):
    said, figures = plan(a, "--trace", record)
    slow = [rank["rank"] for rank in figures["slow_ranks"] if rank["persistent"]]
    must(slow == [2], "slow in most steps:", slow, said)
    must("rank 2 is slow in most steps" in said and "rank 1 is slow" not in said, said)
    return said, figures


def backup(a):
    """A run with backup workers records each gradient and its verdict."""
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record.csv")
        figures, said = job(a, folder, "backup:3", record)
        rows = read(record)
        agrees(rows, figures)
        check("the log says how many gradients are recorded",
              f"{len(rows)} gradients are recorded in {record}" in said)
        _, figures = plan(a, "--trace", record)
        must(figures["ranks"] == WORKERS, json.dumps(figures))


def straggler(a):
    """The plan of a run with backup workers names the straggler, and does not wait for it."""
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record.csv")
        write(record, under_backup(60))
        said, figures = names_rank_2(a, record)
        for name, choice in (("ksync", figures["told"]), ("backup", figures["untold"])):
            must(choice["choice"] == "quorum" and choice["quorum"] < WORKERS, choice, said)
            must(f"--policy {name}:{choice['quorum']}" in said, said)
            must(choice["gradients"] > 1 and choice["saved_us"] > 0, choice)


def delayed(a):
    """The plan of a run of digits with a delay, under bsp, has each step of each rank."""
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record.csv")
        figures, _ = job(a, folder, "bsp", record, program=[
            a.digits, "--delay", "const:3", "--delay", "2:const:100"], commits=40)
        agrees(read(record), figures)
        _, figures = plan(a, "--trace", record)
        must(figures["ranks"] == WORKERS and figures["steps"] == 40 and
             figures["input"]["missing"] == 0, json.dumps(figures))


def given_up(a):
    """A gradient given up is a row; how long it would have taken is not known. Rank 2 never
    has a gradient whole."""
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record.csv")
        figures, _ = job(a, folder, "ksync:3", record, program=[
            a.digits, "--delay", "const:90", "--delay", "2:const:60000"], commits=40)
        rows = read(record)
        agrees(rows, figures)
        check("rank 2 gives gradients up",
              any(row["rank"] == "2" and row["verdict"] == "given_up" for row in rows))
        said, figures = plan(a, "--trace", record)
        must(figures["told"]["choice"] == "unknown" and figures["told"]["policy"] is None, said)
        must("the trace cannot tell" in said, said)


def two_servers(a):
    """The leader of two servers records all of the job."""
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record.csv")
        figures, _ = job(a, folder, "backup:3", record, "--servers", "2")
        agrees(read(record), figures)


def never_waits(a):
    """So is a run of workers that never wait."""
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record.csv")
        figures, _ = job(a, folder, "async", record, commits=300)
        agrees(read(record), figures)


def asynchronous(a):
    """Gradients of workers that never wait are compared by their order."""
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record.csv")
        write(record, under_async(60))
        done = subprocess.run([a.muster, "plan", "--trace", record], text=True,
                              capture_output=True, timeout=60)
        must(done.returncode == 1 and "--pair order" in done.stderr, done.stderr)
        done = subprocess.run([a.muster, "plan", "--trace", record, "--pair", "order", "--to",
                               "10"], text=True, capture_output=True, timeout=60)
        must(done.returncode == 0 and "rank 2 is slow in most steps" in done.stdout,
             done.stdout + done.stderr)


def full(a):
    """A disk that is full from the beginning costs the recording, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        figures, said = job(a, folder, "bsp", "/dev/full", expect=3)
        rows = 60 * WORKERS
        missing = f"{rows} of the {rows} rows of the recording /dev/full: No space left on device"
        check("what is missing is in the figures", figures["missing"] == [missing])
        check("and in the summary", f"\nmissing: {missing}\n" in said)
        check("all commits are made", figures["commits"] == 60)
        must(said.count("cannot write to the recording") == 1, said)
        must(re.search(r"cannot write to the recording /dev/full: No space left on device; it ends "
                       r"after 0 rows, and its last line may be cut, and the job goes on", said),
             said)
        must(f"0 gradients are recorded in /dev/full, and {60 * WORKERS} are missing" in said, said)


def fills_up(a):
    """A disk that fills up while the job runs has whole lines only, as many as the log says."""
    with tempfile.TemporaryDirectory() as folder:
        disk, copy = os.path.join(folder, "disk"), os.path.join(folder, "copy.csv")
        os.mkdir(disk)
        mount = ["unshare", "-rm", "sh", "-c",
                 'mount -t tmpfs -o size=16k none "$0" || exit 77; "$@"; rc=$?; '
                 f'cp "$0/r.csv" {copy}; exit $rc', disk]
        if subprocess.run([*mount, "true"], capture_output=True, check=False).returncode != 0:
            print("skipped: no file system can be mounted here")
            sys.exit(77)
        done = subprocess.run(
            [*mount, a.muster, "run", "-n", "4", "--listen", "127.0.0.1:0", "--commits", "400",
             *CALM, "--grace", "60s", "--record", os.path.join(disk, "r.csv"), "--", a.worker,
             os.path.join(folder, "log"), "1000", "rounds=1000000", "sleep_us=500"],
            text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
        must(done.returncode == 3, "the job failed, or nothing is missing:", done.stderr)
        rows = read(copy)
        found = re.search(r"No space left on device; it ends after (\d+) rows, and the job goes on",
                          done.stderr)
        must(found and int(found[1]) == len(rows) > 100, len(rows), done.stderr)
        must(re.search(rf"{len(rows)} gradients are recorded in \S+, and {1600 - len(rows)} are "
                       "missing", done.stderr), done.stderr)


def reader_stands_still(a):
    """A pipe whose reader takes nothing delays neither the job nor its end."""
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        figures, said = job(a, folder, "bsp", pipe, program=[
            a.worker, os.path.join(folder, "log"), "1000", "rounds=1000000"], commits=2000,
                            expect=3)
        check("all commits are made", figures["commits"] == 2000)
        must("its reader takes nothing" in said and "are missing" in said, said)
        os.close(reader)


def production(a):
    """The planner gives the known figures of a production job."""
    trace = os.path.join(a.data or "", "stragglers", "llm_dp32.csv")
    if not os.path.exists(trace):
        print(f"skipped: there is no {trace}")
        sys.exit(77)
    said, figures = plan(a, "--trace", trace)
    rows = {row["quorum"]: row for row in figures["quorums"]}
    for quorum, steps, gradients in ((30, 1.116, 1.046), (24, 1.234, 0.926)):
        must(round(rows[quorum]["steps"], 3) == steps, quorum, rows[quorum])
        must(round(rows[quorum]["gradients"], 3) == gradients, quorum, rows[quorum])
    must(figures["steps"] == 45 and figures["ranks"] == 32, said)
    must(figures["told"]["policy"] == "ksync:30", said)
    check("the slowest rank wanders", not any(r["persistent"] for r in figures["slow_ranks"]))
    again, _ = plan(a, "--trace", trace)
    check("the same seed says the same", said == again)


def shown(a):
    """Text, plot, CSV and JSON have the same figures."""
    with tempfile.TemporaryDirectory() as folder:
        trace, table = os.path.join(folder, "trace.csv"), os.path.join(folder, "table.csv")
        with open(trace, "w", encoding="ascii") as f:
            f.write("step,worker,ready_us\n")
            for step in range(20):
                f.writelines(f"{step},{rank},{1000 + 10 * rank + step}\n" for rank in range(3))
                f.write(f"{step},3,{4000 if step % 4 == 0 else 1030}\n")
        said, figures = plan(a, "--trace", trace, "--plot", "--csv", table)
        with open(table, newline="", encoding="ascii") as f:
            rows = list(csv.DictReader(f))
        for k, (row, k_th, quorum) in enumerate(zip(rows, figures["arrivals"],
                                                    figures["quorums"])):
            must(int(row["k"]) == quorum["quorum"] == k + 1, row, quorum)
            for name in ("mean_us", "p50_us", "p90_us"):
                must(abs(float(row[name]) - k_th[name]) < 0.001, row, k_th)
            must(abs(float(row["gradients"]) - quorum["gradients"]) < 1e-6, row, quorum)
        bars = re.findall(r"^ +(\d) +\S+ \S+  (#+-*)$", said, re.M)
        must([k for k, _ in bars] == ["1", "2", "3", "4"], said)
        must(len(bars[3][1]) == 60 > len(bars[2][1]), said)
        must(re.search(r"^ +4 +1\.7\d ms +1\.0\d ms +4\.00 ms +1\.000 ", said, re.M), said)


def draw(path, steps, ranks, factor):
    """A trace of times from 18 to 22 ms; that of a rank in a step is @factor times as long."""
    draws = random.Random(5)
    with open(path, "w", encoding="ascii") as f:
        f.write("step,worker,ready_us\n")
        for step in range(steps):
            for rank in range(ranks):
                f.write(f"{step},{rank},{draws.uniform(18000, 22000) * factor(step, rank):.3f}\n")


def simulate(a, trace, ranks, *policies):
    """Return: counted gradients a second under each policy, in the simulator."""
    options = [word for policy in policies for word in ("--policy", policy)]
    said = subprocess.run([a.muster, "sim", "-n", str(ranks), "--delay", f"trace:{trace}", *options,
                           "--json", "-"], text=True, capture_output=True, timeout=60, check=True)
    return [job["total"]["counted"] / job["simulated_s"] for job in json.loads(said.stdout)["jobs"]]


def simulated(a):
    """What the planner says of backup workers is what the simulator does on the same trace, also
    where ranks are slow in their turn, or for a while."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.csv")
        for ranks, factor in ((8, lambda step, rank: 3 if step // 20 % 8 == rank else 1),
                              (8, lambda step, rank: 5 if rank == 3 and 70 <= step < 130 else 1),
                              (4, lambda step, rank: 5 if step // 25 % 4 == rank else 1),
                              (6, lambda step, rank: 2.2 if rank in (1, 4) else 1)):
            draw(trace, 200, ranks, factor)
            _, figures = plan(a, "--trace", trace)
            rates = simulate(a, trace, ranks, "bsp", f"backup:{ranks - 1}", f"backup:{ranks - 2}")
            rows = {row["quorum"]: row["backup"]["gradients"] for row in figures["quorums"]}
            for quorum, rate in zip((ranks - 1, ranks - 2), rates[1:]):
                must(abs(rows[quorum] / (rate / rates[0]) - 1) < 0.03, quorum, rows, rates)
            low, high = figures["untold"]["gradients_interval"]
            must(low <= figures["untold"]["gradients"] <= high, figures["untold"])


def promised(a):
    """All slow ranks are named, and what replacing all of them brings is what the simulator does
    with other times in their place."""
    with tempfile.TemporaryDirectory() as folder:
        trace, other = os.path.join(folder, "trace.csv"), os.path.join(folder, "other.csv")
        for ranks, slow, factor, steps in ((6, {1, 4}, 2.3, range(200)),
                                           (8, {0, 2, 5, 7}, 3, range(200)),
                                           (8, {3}, 4, range(70, 130))):
            draw(trace, 200, ranks, lambda step, rank, slow=slow, factor=factor, steps=steps:
                 factor if rank in slow and step in steps else 1)
            draw(other, 200, ranks, lambda step, rank: 1)
            said, figures = plan(a, "--trace", trace)
            must({r["rank"] for r in figures["slow_ranks"] if r["straggler"]} == slow, said)
            truth = simulate(a, other, ranks, "bsp")[0] / simulate(a, trace, ranks, "bsp")[0]
            must(abs(figures["replaced"]["steps"] / truth - 1) < 0.02, truth, said)
            must(all(f"rank {rank} is slow in " in said for rank in slow), said)
        must("rank 3 is slow in 60 of 200 steps, from step 70 to 129;" in said, said)
        must("most steps" not in said, said)


def refused(a):
    """What is no trace is refused with a sentence, and what says little is advised nothing by."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.csv")
        for rows, sentence in (([(0, 0, 5), (1, 0, 6)], "2 steps and 1 workers"),
                               ([(0, 0, 5), (0, 1, 6)], "1 steps and 2 workers"),
                               ([(0, 0, 5), (0, 1, "nan")], 'ready_us is "nan"'),
                               ([(0, 0, 5), (0, 1, -1)], 'ready_us is "-1"'),
                               ([(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)], "all times are 0"),
                               ([(0, 0, 5), (1, 4, 5)], "8 are missing")):
            with open(trace, "w", encoding="ascii") as f:
                f.write("step,worker,ready_us\n")
                f.writelines(f"{step},{rank},{us}\n" for step, rank, us in rows)
            done = subprocess.run([a.muster, "plan", "--trace", trace], text=True,
                                  capture_output=True, timeout=60)
            must(done.returncode == 1 and sentence in done.stderr, sentence, done.stderr)
        with open(trace, "w", newline="", encoding="ascii") as f:
            lines = csv.writer(f, lineterminator="\n")
            lines.writerow(HEADER)
            lines.writerows([rank, step, 0, 100 + rank + step % 5, "counted"]
                            for step in range(100) for rank in range(3 if step < 50 else 2))
        said, figures = plan(a, "--trace", trace)
        must("rank 2 has no gradient after step 49\n" in said, said)
        must(not any(r["straggler"] for r in figures["slow_ranks"]), said)
        draw(trace, 100, 4, lambda step, rank: 5)
        said, figures = plan(a, "--trace", trace)
        must(figures["told"]["policy"] == figures["untold"]["policy"] == "bsp", said)
        must("no rank is persistently slow" in said, said)


CASES = cases(backup, straggler, two_servers, never_waits, asynchronous, full, fills_up,
              reader_stands_still, production, simulated, promised, refused, shown, delayed,
              given_up)
if __name__ == "__main__":
    main(CASES, "muster", "worker", "digits", "data", unlisted=("delayed", "given_up"))
