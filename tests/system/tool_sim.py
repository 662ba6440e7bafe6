#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster sim: its figures against what can be computed elsewhere, and its answers to mistakes.

Jobs are so long that the noise of a seed lies well inside of every bound.

usage: tool_sim.py MUSTER [unittest's arguments]
"""
import csv
import io
import json
import os
import re
import resource
import tempfile
import unittest

from simulated import P, Sim, given, run


def harmonic(n):
    return sum(1 / i for i in range(1, n + 1))


class Formulas(Sim):
    """Dutta et al., Slow and Stale Gradients Can Win the Race, AISTATS 2018: the mean step."""

    def test_ksync(self):
        """K-sync takes the K-th order statistic of P gradients, exponential and shifted"""
        for k, commits in ((1, 160000), (4, 60000), (7, 60000), (8, 60000)):
            order = harmonic(P) - harmonic(P - k)
            length = ("-n", P, "--policy", f"ksync:{k}", "--checks", "inf", "--commits", commits)
            self.near(self.step(*length, "--delay", "exp:20"), 20 * order, 0.01, f"exp, K = {k}")
            self.near(self.step(*length, "--delay", "sexp:10,10"), 10 + 10 * order, 0.01,
                      f"shifted, K = {k}")

    def test_kbatchsync(self):
        """K-batch-sync takes K/(P mu), where gradients are exponential"""
        for k, commits in ((1, 160000), (4, 60000), (12, 60000)):
            self.near(self.step("-n", P, "--policy", f"kbatchsync:{k}", "--delay", "exp:20",
                                "--commits", commits), 20 * k / P, 0.01, f"K = {k}")

    def test_kbatchasync(self):
        """K-batch-async takes K E[X]/P, whatever the distribution, and so does async"""
        for delay, mean in (("exp:20", 20), ("sexp:10,10", 20), ("uniform:5,35", 20),
                            ("pareto:10,3", 15)):
            for policy, k in (("kbatchasync:4", 4), ("kbatchasync:11", 11), ("softsync:4", 4),
                              ("async", 1)):
                self.near(self.step("-n", P, "--policy", policy, "--delay", delay, "--samples",
                                    200000), mean * k / P, 0.01, f"{policy}, {delay}")

    def test_kasync(self):
        """K-async takes as long as K-sync where gradients are exponential: they have no memory"""
        for k in (3, 6):
            self.near(self.step("-n", P, "--policy", f"kasync:{k}", "--delay", "exp:20",
                                "--commits", 60000), 20 * (harmonic(P) - harmonic(P - k)), 0.01,
                      f"K = {k}")

    def test_nonblocking(self):
        """with small micro-batches nonblocking takes m/P, where batches are exponential"""
        self.near(self.step("-n", P, "--policy", "nonblocking", "--micro", 100000, "--delay",
                            "exp:20", "--commits", 100000), 20 / P, 0.01, "nonblocking")

    def test_arrivals(self):
        """the k-th arrival of a step of bsp is the k-th order statistic"""
        job = self.job("-n", P, "--policy", "bsp", "--delay", "exp:20", "--commits", 100000)
        self.assertEqual([(a["k"], a["steps"]) for a in job["arrivals"]],
                         [(k, 100000) for k in range(1, P + 1)])
        for a in job["arrivals"]:
            self.near(a["mean_ms"], 20 * (harmonic(P) - harmonic(P - a["k"])), 0.01, f"k = {a}")


EVEN = "uniform:900,1100"
# Mean steps in seconds of 8 workers and 7, 6 or 4 of them as the quorum, from a simulation that was
# written for the design of the policies, without the ledger: late workers finish their gradient
# (Chen et al. 2016); they look at the hint four times; they look at once; TensorFlow's tickets.
# And bsp, which waits for all that are alive. There late workers start again at once.
COMPARED = {
    "exponential": (["exp:1000"], [],
                    {7: (1.94, 1.78, 1.72, 1.75), 6: (1.54, 1.30, 1.22, 1.32),
                     4: (1.04, 0.75, 0.64, 1.03)}, 2.73),
    "shifted": (["sexp:500,500"], [],
                {7: (1.48, 1.40, 1.36, 1.43), 6: (1.28, 1.17, 1.11, 1.25),
                 4: (1.04, 0.90, 0.82, 1.07)}, 1.87),
    "slow": ([EVEN, "7:uniform:2700,3300"], [],
             {7: (1.08, 1.08, 1.08, 1.42), 6: (1.05, 1.05, 1.05, 1.23),
              4: (1.03, 1.02, 1.00, 1.14)}, 3.00),
    "dead": ([EVEN], ["--kill", "7@0s"],
             {7: (1.08, 1.08, 1.08, 1.47), 6: (1.05, 1.05, 1.05, 1.31),
              4: (1.03, 1.02, 1.00, 1.19)}, None),
    "tail": ([EVEN, "mix:0.02,10"], [],
             {7: (1.50, 1.18, 1.15, 1.45), 6: (1.19, 1.06, 1.04, 1.30),
              4: (1.05, 1.02, 0.99, 1.21)}, 2.42),
}


class Comparison(Sim):
    def compare(self, name):
        delays, more, table, of_all = COMPARED[name]
        length = ["-n", P, *given("--delay", delays), *more, "--commits", 20000, "--late-start",
                  "now"]
        for quorum, want in table.items():
            chen, at_once, tickets = self.jobs(
                *length, *given("--policy", [f"backup:{quorum}", f"ksync:{quorum}",
                                             f"tickets:{quorum}"]))
            four = self.job(*length, "--policy", f"ksync:{quorum}", "--checks", 4)
            for job, seconds in zip((chen, four, at_once, tickets), want, strict=True):
                self.near(job["step_ms"]["mean"] / 1e3, seconds, 0.03,
                          f"{name}, {job['policy']}")
        if of_all is not None:
            self.near(self.step(*length) / 1e3, of_all, 0.03, f"{name}, bsp")


for row in COMPARED:
    def case(self, row=row):
        self.compare(row)
    case.__doc__ = f"the mean steps of a comparison made without the ledger: {row}"
    setattr(Comparison, f"test_{row}", case)


class Network(Sim):
    """Gradients of 100 ms and 100 MB, links of 1 GB/s: what is alike can be computed by hand."""

    def of(self, *args):
        return self.step("-n", P, "--delay", "const:100", "--commits", 50, *args)

    def test_incast(self):
        """all send at once, and all are answered at once, over the link of their server"""
        for servers, want in ((1, 100 + 2 * 800), (2, 100 + 2 * 400), (4, 100 + 2 * 200)):
            self.assertAlmostEqual(self.of("--size", 100000000, "--server-rate", 1, "--servers",
                                           servers), want, 3)

    def test_own_link(self):
        """a worker alone has no more than its own link, whichever of the two is narrower"""
        self.assertAlmostEqual(self.of("--size", 100000000, "--worker-rate", 1), 300, 3)
        self.assertAlmostEqual(self.of("--size", 100000000, "--worker-rate", 1, "--server-rate",
                                       10), 300, 3)
        self.assertAlmostEqual(self.of("--size", 100000000, "--worker-rate", 1, "--server-rate",
                                       4), 100 + 2 * 200, 3)

    def test_latency(self):
        """a latency up and one down; of further servers, one more to the leader and one back"""
        self.assertAlmostEqual(self.of("--latency", "5ms"), 110, 6)
        self.assertAlmostEqual(self.of("--latency", "5ms", "--servers", 3), 120, 6)
        self.assertAlmostEqual(self.of("--latency", "5ms", "--servers", 2, "--size", 100000000,
                                       "--server-rate", 1), 100 + 2 * 400 + 20, 3)


class Life(Sim):
    def test_death(self):
        """a step does not wait for a worker that has died; its gradient is lost"""
        job = self.job("-n", 4, "--delay", "const:100", "--delay", "3:const:130", "--commits", 100,
                       "--kill", "3@200ms")
        # Steps of 130 ms to 130; then 70 more without rank 3: the step that had waited ends at 230.
        self.assertEqual((job["commits"], job["ended_by"]), (100, "commits"))
        self.assertAlmostEqual(job["simulated_s"], 0.13 + 99 * 0.1, 9)
        self.assertEqual([(r["counted"], r["lost"]) for r in job["ranks"]],
                         [(100, 0), (100, 0), (100, 0), (1, 1)])
        self.assertAlmostEqual(job["ranks"][3]["wasted_s"], 0.07, 9)

    def test_return(self):
        """a rank that has died contributes again once another process has joined"""
        job = self.job("-n", 4, "--delay", "const:100", "--commits", 100, "--kill", "3@250ms",
                       "--join", "3@1050ms")
        # Joins in the step that ends at 1.1 s, is in the roster of the next, and begins there.
        self.assertEqual([r["counted"] for r in job["ranks"]], [100, 100, 100, 2 + 100 - 11])

    def test_freeze(self):
        """a worker that is frozen holds its step up until the lease is over, and no longer"""
        job = self.job("-n", 4, "--delay", "const:100", "--commits", 100, "--freeze", "1@250ms",
                       "--lease", "2s")
        self.assertGreater(job["step_ms"]["max"], 1000)
        self.assertLess(job["step_ms"]["max"], 2500)
        self.assertEqual([r["counted"] for r in job["ranks"]], [100, 2, 100, 100])
        job = self.job("-n", 4, "--delay", "const:100", "--commits", 100, "--freeze", "1@250ms",
                       "--lease", "2s", "--policy", "backup:3")
        self.assertLess(job["step_ms"]["max"], 101)

    def test_frozen_rank_comes_again(self):
        """another process of a frozen rank tries until the lease of the first is over"""
        job = self.job("-n", 4, "--delay", "const:100", "--commits", 100, "--freeze", "1@250ms",
                       "--join", "1@300ms", "--lease", "2s", "--policy", "backup:3")
        self.assertGreater(job["ranks"][1]["counted"] + job["ranks"][1]["late"], 70)

    def test_patience(self):
        """a worker that is alive but takes longer than patience is ended"""
        job = self.job("-n", 4, "--delay", "const:100", "--delay", "2:const:5000", "--commits",
                       100, "--patience", "1s")
        self.assertAlmostEqual(job["simulated_s"], 0.1 + 1 + 99 * 0.1, 6)
        self.assertEqual([r["counted"] for r in job["ranks"]], [100, 100, 0, 100])

    def test_failure(self):
        """a job that fails, or hangs, is told of with status 1, and its figures are given"""
        job = self.job("-n", 4, "--delay", "const:100", "--kill", "1@250ms", "--on-loss", "fail",
                       rc=1)
        self.assertEqual((job["ended_by"], job["commits"]), ("a loss", 2))
        job = self.job("-n", 4, "--delay", "const:100", "--kill", "1@250ms", "--min-workers", 4,
                       rc=1)
        self.assertEqual((job["ended_by"], job["commits"]), ("too few workers", 2))
        rc, _, err = run("-n", 4, "--delay", "const:100", "--kill", "1@250ms", "--policy",
                         "tickets:4")
        self.assertEqual(rc, 1)
        self.assertIn("tickets:4: the job hangs after 2 commits", err)

    def test_switch(self):
        """a switch takes effect at its version: 50 steps of bsp, then 50 of async"""
        job = self.job("-n", 8, "--delay", "const:100", "--commits", 100, "--switch", "async@50")
        # From then on eight commits come every 100 ms.
        self.assertAlmostEqual(job["simulated_s"], 5 + 0.7, 9)
        self.assertEqual(job["total"]["counted"], 8 * 50 + 50)
        job = self.job("-n", 8, "--delay", "const:100", "--commits", 100, "--switch", "bsp@48",
                       "--policy", "async", "--switch", "async@60")
        self.assertAlmostEqual(job["simulated_s"], 0.6 + 12 * 0.1 + 0.5, 9)

    def test_adaptive(self):
        """half of the samples in steps of bsp, the other half under async"""
        job = self.job("-n", 8, "--delay", "const:100", "--samples", 800, "--policy",
                       "syncswitch:0.5")
        self.assertEqual(job["commits"], 50 + 400)
        self.assertAlmostEqual(job["simulated_s"], 5 + 5, 9)

    def test_stragglers(self):
        """with a straggler, greedy and elastic save a third of the time or more; without, none"""
        slow = ("-n", 8, "--delay", "const:20", "--delay", "3:const:60")
        for words, most in ((slow, 0.67), (slow[:4], 1)):
            plain, *others = (self.job(*words, "--policy", f"syncswitch:0.5{online}")
                              for online in ("", ",greedy", ",elastic"))
            for job in others:
                self.assertLessEqual(job["simulated_s"], most * plain["simulated_s"])
                if most == 1:
                    self.assertEqual(job["commits"], plain["commits"])

    def test_switch_from_the_beginning(self):
        """a switch at version 0 takes effect with version 1, as only a lower quorum does at once"""
        job = self.job("-n", 8, "--delay", "const:100", "--commits", 9, "--switch", "async@0")
        self.assertLess(job["simulated_s"], 0.4)


class Figures(Sim):
    def test_who_is_slow_counts_under_bounded(self):
        """What was stale is computed again, and is not stale again, whatever the times are"""
        for seed in (101, 102, 103):
            for times in (("const:20", "7:const:100"), ("uniform:18,22", "7:uniform:90,110"),
                          ("exp:20", "7:exp:400")):
                job = self.job("-n", 8, "--samples", 4000, "--policy", "bounded:8", "--seed", seed,
                               *given("--delay", times))
                slow = job["ranks"][7]
                self.assertGreaterEqual(slow["counted"], slow["stale"] - 1, times)
                self.assertGreater(slow["counted"], 4, times)
                self.assertEqual(job["staleness"]["max"], 8)

    def test_staleness(self):
        """async: P - 1 versions on average; ssp and bounded keep their bounds"""
        async_job, bounded, ssp = self.jobs("-n", P, "--delay", "exp:20", "--samples", 20000,
                                            *given("--policy", ["async", "bounded:4", "ssp:2"]))
        self.near(async_job["staleness"]["mean"], P - 1, 0.01, "async")
        self.assertEqual(bounded["staleness"]["max"], 4)
        self.assertEqual(bounded["total"]["late"], 0)
        self.assertGreater(bounded["total"]["stale"], 0)
        counted = [r["counted"] for r in ssp["ranks"]]
        self.assertLessEqual(max(counted) - min(counted), 3)

    def test_waste(self):
        """what backup drops and what ksync has given up, and their time, are wasted"""
        bsp, backup, ksync = self.jobs(
            "-n", 4, "--delay", "const:100", "--delay", "3:const:1000", "--samples", 3000,
            *given("--policy", ["bsp", "backup:3", "ksync:3"]))
        self.assertEqual((bsp["wasted_gradients"], bsp["wasted_time"], bsp["saved"]), (0, 0, 0))
        self.assertEqual((backup["commits"], ksync["commits"]), (1000, 1000))
        # In 1000 steps of 100 ms the slow one pushes every second, and is late.
        self.assertIn(backup["ranks"][3]["late"], (99, 100))
        late = backup["ranks"][3]["late"]
        self.assertAlmostEqual(backup["wasted_gradients"], late / (3000 + late), 9)
        self.assertAlmostEqual(backup["ranks"][3]["wasted_s"], late, 9)
        # It gives up at every commit, having computed for the whole step.
        self.assertIn(ksync["ranks"][3]["given_up"], (999, 1000))
        self.assertAlmostEqual(ksync["wasted_time"], ksync["ranks"][3]["given_up"] /
                               (3000 + ksync["ranks"][3]["given_up"]), 9)
        # A step of 1000 ms counts four gradients; ten of 100 ms count thirty.
        self.assertAlmostEqual(backup["saved"], 1 - (100 / 3) / (1000 / 4), 6)

    def test_trace(self):
        """times from a file: the slowest of each line of bsp"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.csv")
            with open(path, "w", encoding="ascii") as f:
                f.write("step,worker,ready_us\n0,0,10000\n0,1,20000\n1,0,40000\n1,1,30000\n")
            job = self.job("-n", 2, "--delay", f"trace:{path}", "--commits", 200)
        self.assertAlmostEqual(job["step_ms"]["mean"], 30, 9)
        self.assertAlmostEqual(job["step_ms"]["max"], 40, 9)
        self.near(job["step_ms"]["p50"], 20, 0.04, "p50")


class Output(Sim):
    SMALL = ("-n", 5, "--delay", "exp:20", "--samples", 2000,
             *given("--policy", ["bsp", "backup:4", "ksync:4", "tickets:4"]))

    @staticmethod
    def masked(text):
        return re.sub(r'("?(?:wall_s|\w+_per_s)"?:? )[0-9.e+-]+', r"\1X", text)

    def test_same_seed(self):
        """the same seed gives the same bytes, but for wall_s and *_per_s; another gives others"""
        for view in ("steps", "arrivals", "ranks"):
            for more in ((), ("--json", "-"), ("--csv", "-")):
                rc, first, _ = run(*self.SMALL, "--table", view, *more)
                self.assertEqual(rc, 0)
                self.assertEqual(self.masked(run(*self.SMALL, "--table", view, *more)[1]),
                                 self.masked(first))
                self.assertNotEqual(self.masked(run(*self.SMALL, "--table", view, *more,
                                                    "--seed", 2)[1]), self.masked(first))

    def test_same_delays(self):
        """a policy has the same figures alone and beside others: each has the same delays"""
        alone = self.job(*self.SMALL[:6], "--policy", "ksync:4")
        beside = self.jobs(*self.SMALL)[2]
        self.assertEqual([alone[key] for key in ("commits", "step_ms", "ranks", "arrivals")],
                         [beside[key] for key in ("commits", "step_ms", "ranks", "arrivals")])

    def test_tables(self):
        """a row for each policy; for each k; for each rank of each policy"""
        rows = {}
        for view in ("steps", "arrivals", "ranks"):
            rc, out, err = run(*self.SMALL, "--table", view)
            self.assertEqual((rc, err), (0, ""))
            rows[view] = [line for line in out.splitlines() if not line.startswith("#")]
        self.assertEqual([row.split()[0] for row in rows["steps"][2:]],
                         ["bsp", "backup:4", "ksync:4", "tickets:4"])
        self.assertEqual([row.split()[0] for row in rows["arrivals"]],
                         ["k", "1", "2", "3", "4", "5"])
        self.assertEqual([row.split()[:2] for row in rows["ranks"][1:8]],
                         [["bsp", str(r)] for r in range(5)] + [["bsp", "all"], ["backup:4", "0"]])

    def test_csv(self):
        """the figures of the JSON"""
        jobs = self.jobs(*self.SMALL)
        rows = list(csv.DictReader(io.StringIO(run(*self.SMALL, "--csv", "-")[1])))
        self.assertEqual([row["policy"] for row in rows], [job["policy"] for job in jobs])
        for row, job in zip(rows, jobs, strict=True):
            self.assertAlmostEqual(float(row["mean_step_ms"]), job["step_ms"]["mean"], 5)
            self.assertEqual(int(row["samples"]), job["total"]["counted"])
            self.assertAlmostEqual(float(row["wasted_time"]), job["wasted_time"], 5)
            self.assertEqual(row["ended_by"], "samples")
        ranks = list(csv.DictReader(io.StringIO(run(*self.SMALL, "--csv", "-", "--table",
                                                    "ranks")[1])))
        self.assertEqual([int(row["late"]) for row in ranks],
                         [rank["late"] for job in jobs for rank in job["ranks"]])
        arrivals = list(csv.DictReader(io.StringIO(run(*self.SMALL, "--csv", "-", "--table",
                                                       "arrivals")[1])))
        self.assertEqual([(row["policy"], int(row["k"]), int(row["steps"])) for row in arrivals],
                         [(job["policy"], a["k"], a["steps"]) for job in jobs
                          for a in job["arrivals"]])

    def test_files(self):
        """--csv and --json write files; -q prints nothing"""
        with tempfile.TemporaryDirectory() as folder:
            table, figures = os.path.join(folder, "t.csv"), os.path.join(folder, "f.json")
            rc, out, err = run(*self.SMALL, "--csv", table, "--json", figures, "-q")
            self.assertEqual((rc, out, err), (0, "", ""))
            with open(table, encoding="utf-8") as f:
                self.assertEqual(len(f.readlines()), 5)
            with open(figures, encoding="utf-8") as f:
                self.assertEqual(len(json.load(f)["jobs"]), 4)

    def test_many(self):
        """ten thousand workers, and more than a real job may have, fit in memory"""
        for workers, policy in ((10000, "backup:9900"), (10000, "async"), (65536, "bsp")):
            job = self.job("-n", workers, "--delay", "exp:1000", "--samples", 3 * workers,
                           "--policy", policy)
            self.assertGreaterEqual(job["total"]["counted"], 3 * workers)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.assertLess(peak, 1 << 20)  # KiB


# What is typed; what the answer must hold.
RIGHT = "-n 8 --delay exp:20 "
MISTAKES = [
    ("", "--workers is missing", "-n 8"),
    ("-n 8", "--delay is missing", "--delay exp:20"),
    ("-n 0 --delay exp:20", '"0"', "from 1 to 65536"),
    ("-n -1 --delay exp:20", '"-1"', "from 1 to 65536"),
    ("-n 65537 --delay exp:20", '"65537"', "from 1 to 65536"),
    (RIGHT + "--policy bps", '"bps"', "did you mean bsp?"),
    (RIGHT + "--policy nope", 'unknown policy "nope"'),
    (RIGHT + "--policy backup", "backup:4"),
    (RIGHT + "--policy backup:9", "backup:9", "8 workers"),
    (RIGHT + "--policy backup:-8", "leaves nobody"),
    (RIGHT + "--policy backup:2", "more than half", "--force"),
    (RIGHT + "--policy bsp --policy ksync:9", "ksync:9", "8 workers"),
    (RIGHT + "--policy kbatchsync:2000000000", "needs", "GiB"),
    (RIGHT + "--policy tickets", "tickets needs a number", "tickets:4"),
    (RIGHT + "--policy tickets:0", "tickets:4"),
    (RIGHT + "--policy tickets:-2", "tickets:4"),
    (RIGHT + "--policy tickets:9", "tickets:9", "8 workers"),
    (RIGHT + "--policy tickets:4 --servers 2", "one server"),
    (RIGHT + "--policy tickets:4 --switch bsp@5", "--switch"),
    ("-n 8 --delay exp", '"exp"'),
    ("-n 8 --delay exp:-1", "exp:MEAN"),
    ("-n 8 --delay nope:3", "a model is one of"),
    ("-n 8 --delay exp:20 --delay exp:30", "already given"),
    ("-n 8 --delay mix:0.1,10", "multiplies another model"),
    ("-n 8 --delay exp:20 --delay 8:exp:30", "ranks of 8 workers are 0 to 7"),
    ("-n 8 --delay exp:20 --delay 99999999999999999999:exp:30", "0 to 7"),
    ("-n 8 --delay 3:exp:20", "rank 0 takes no time"),
    ("-n 8 --delay const:0", "rank 0 takes no time"),
    ("-n 8 --delay trace:/nonexistent", "/nonexistent", "No such file"),
    (RIGHT + "--checks x", '"x"', "inf"),
    (RIGHT + "--checks -1", '"-1"', "inf"),
    (RIGHT + "--checks 1000001", "1000000"),
    (RIGHT + "--commits 0", '"0"'),
    (RIGHT + "--commits -5", '"-5"'),
    (RIGHT + "--samples -5", '"-5"'),
    (RIGHT + "--latency -5ms", '"-5ms"'),
    (RIGHT + "--latency 2min", '"2min"', "1min"),
    (RIGHT + "--size 5", "--worker-rate or --server-rate"),
    (RIGHT + "--size 9999999G --server-rate 1", "9999999G"),
    (RIGHT + "--server-rate 1", "--server-rate", "--size 100M"),
    (RIGHT + "--worker-rate -1 --size 5", '"-1"'),
    (RIGHT + "--server-rate nan --size 5", '"nan"'),
    (RIGHT + "--servers 65", '"65"', "from 1 to 64"),
    (RIGHT + "--kill 8@5s", "ranks of 8 workers are 0 to 7"),
    (RIGHT + "--kill -1@5s", '"-1@5s"', "3@20s"),
    (RIGHT + "--kill 1@-5s", '"1@-5s"', "3@20s"),
    (RIGHT + "--kill 1", '"1"', "3@20s"),
    (RIGHT + "--kill 1@5", '"1@5"', "3@20s"),
    (RIGHT + "--kill 1@5s --kill 1@6s", "already been killed"),
    (RIGHT + "--freeze 1@5s --freeze 1@6s", "already frozen"),
    (RIGHT + "--nap 1@5s", '"1@5s"', "3@20s,200ms"),
    (RIGHT + "--nap 1@5s,0ms", '"1@5s,0ms"', "how long"),
    (RIGHT + "--nap 8@5s,1s", "ranks of 8 workers are 0 to 7"),
    (RIGHT + "--kill 1@5s --nap 1@6s,1s", "already been killed"),
    (RIGHT + "--micro 0", '"0"', "from 1 to 1000000"),
    (RIGHT + "--micro 1000001", '"1000001"', "from 1 to 1000000"),
    (RIGHT + "--late-start soon", '"soon"', "auto|now|commit"),
    (RIGHT + "--policy anytime", "anytime:50"),
    (RIGHT + "--policy local:0", "local:10"),
    (RIGHT + "--join 1@5s", "not been killed"),
    (RIGHT + "--kill 1@5s --join 1@5s", "at the same time"),
    (RIGHT + "--policy adasync:ksync", "follows the loss"),
    (RIGHT + "--train quadratic --policy adasync:ksync,loss=loss", '"loss"', "say loss=error"),
    (RIGHT + "--policy syncswitch:0.1 --commits 9", "say --samples N"),
    (RIGHT + "--switch adasync:ksync@5", "changes by itself", "--policy"),
    (RIGHT + "--switch async", "async@500"),
    (RIGHT + "--switch async@x", "async@500"),
    (RIGHT + "--switch async@-5", "async@500"),
    (RIGHT + "--switch asink@5", 'unknown policy "asink"'),
    (RIGHT + "--switch ksync:9@5", "ksync:9@5", "8 workers"),
    (RIGHT + "--switch kbatchsync:500@5", "after bsp", "can hold"),
    (RIGHT + "--switch local:4@5", "after bsp", "differences of parameters"),
    (RIGHT + "--switch async@5 --switch easgd:4,0.1@9", "after async@5", "another optimiser"),
    (RIGHT + "--switch async@5 --switch bsp@5", "another switch at version 5"),
    (RIGHT + "--commits 10 --switch async@10", "ends at version 10"),
    (RIGHT + "--lease 1ns", '"1ns"'),
    (RIGHT + "--min-workers 9", "--min-workers 9", "1 to 8"),
    (RIGHT + "--table nope", '"nope"', "steps|arrivals|ranks"),
    (RIGHT + "--json /nonexistent/x", "/nonexistent/x"),
    (RIGHT + "--csv /nonexistent/x", "/nonexistent/x"),
    (RIGHT + "--json - --csv -", "both"),
    (RIGHT + "nonsense", '"nonsense"', "options only"),
    (RIGHT + "--polixy bsp", "did you mean --policy?"),
]


class Mistakes(unittest.TestCase):
    def test_mistakes(self):
        """each is answered in one sentence, with what is right, and with status 2"""
        for typed, *holds in MISTAKES:
            rc, out, err = run(*typed.split())
            with self.subTest(typed=typed, err=err):
                self.assertEqual((rc, out), (2, ""))
                sentence, see = err.splitlines()
                self.assertEqual(see, "muster: see muster sim --help")
                for what in holds:
                    self.assertIn(what, sentence)

    def test_help(self):
        rc, out, err = run("--help")
        self.assertEqual((rc, err), (0, ""))
        self.assertIn("--checks N", out)


if __name__ == "__main__":
    unittest.main()
