#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster tune: workers report a value that is known beforehand for each share of bsp, so that the
answer is, too.

usage: tool_tune.py --muster MUSTER --musterd MUSTERD --reporter REPORTER [unittest's arguments]
"""
import json
import os
import signal
import subprocess

from base import CALM, TOOLS, run_tests, tagged, until
from scene import Scene
from server import SECONDS


class Tune(Scene):
    def start(self, *options, words=(), program=None):
        name, value = self.mark.split("=")
        return subprocess.Popen(
            [TOOLS.muster, "tune", "syncswitch", "-n", "2", "--samples", "40", "--metric", "score",
             "--listen", "127.0.0.1:0", "--grace", f"{SECONDS}s", *CALM, *options, "--",
             *(program or (TOOLS.reporter, *words))], text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {name: value, "MUSTER_MUSTERD": TOOLS.musterd})

    def tune(self, *options, **more):
        process = self.start(*options, **more)
        out, err = process.communicate(timeout=200)
        return process.returncode, out, err

    def figures(self, *options, **more):
        """Return: the figures of a search that ends well."""
        rc, out, err = self.tune("-q", "--json", "-", *options, **more)
        self.assertEqual(rc, 0, err)
        return json.loads(out)

    def test_bisection(self):
        """the smallest share that is enough is found, as far as so many tries can tell"""
        found = self.figures("--runs", "1", "--tries", "4", words=["threshold=0.3"])
        self.assertEqual([t["share"] for t in found["tried"]], [1, 0.5, 0.25, 0.375, 0.3125])
        self.assertEqual([t["kept"] for t in found["tried"]], [True, True, False, True, True])
        self.assertEqual((found["state"], found["share"], found["policy"]),
                         ("done", 0.3125, "syncswitch:0.3125"))

    def test_seeds(self):
        """each run of a share has another seed, and the mean of the runs decides"""
        rc, out, err = self.tune("--runs", "3", "--tries", "1", "--seed", "6", "--json",
                                 self.path("x"), words=["threshold=0.7", "jitter=0.3"])
        self.assertEqual(rc, 0, err)
        with open(self.path("x")) as f:
            found = json.load(f)
        for tried, base in zip(found["tried"], (1, 0)):
            self.assertEqual([run["seed"] for run in tried["runs"]], [6, 7, 8])
            for run, jitter in zip(tried["runs"], (-0.3, 0.3, -0.3)):
                self.assertAlmostEqual(run["value"], base + jitter)
            self.assertAlmostEqual(tried["mean"], base - 0.1)
            self.assertAlmostEqual(tried["deviation"], 0.34641016, 6)
        self.assertAlmostEqual(found["wanted"], 0.89)
        self.assertIn("the runs of bsp differ by more than the tolerance", err)
        self.assertIn("bsp, run 2 of 3, seed 7: score 1.3 after", err)

    def test_chance(self):
        """where the runs differ by more than what decides, that is told, with the runs that would
        tell; the answer is there all the same"""
        rc, out, err = self.tune("-q", "--runs", "3", "--tries", "2", "--tolerance", "0.3",
                                 "--json", self.path("x"), words=["threshold=0.3", "chance=0.3"])
        self.assertEqual(rc, 0, err)
        with open(self.path("x")) as f:
            found = json.load(f)
        self.assertEqual([t["sure"] for t in found["tried"]], [None, False, False])
        self.assertEqual([t["kept"] for t in found["tried"]], [True, True, False])
        self.assertEqual((found["share"], found["sure"]), (0.5, False))
        self.assertEqual(found["runs_to_tell"], max(t["runs_to_tell"] for t in found["tried"][1:]))
        self.assertRegex(out, r"syncswitch:0\.5 .*  kept, perhaps by chance\n")
        runs = found["runs_to_tell"]
        self.assertIn("use: --policy syncswitch:0.5 --samples 40\nby chance, perhaps: 2 of 2 "
                      f"decisions; {runs} runs of each would tell\n", out)
        self.assertRegex(err, rf"chance may have made the choice: 2 of 2 decisions .* {runs} ")

    def test_one_run(self):
        """one run of each share says nothing of chance, which is told"""
        rc, out, err = self.tune("-q", "--runs", "1", "--tries", "1", words=["threshold=0.3"])
        self.assertEqual(rc, 0)
        self.assertIn("one run of each says nothing of chance", out)
        self.assertIn("use --runs 2 at the least", err)

    def test_lower(self):
        """where less is better, a share that has more is not kept"""
        found = self.figures("--runs", "1", "--tries", "2", "--lower",
                             words=["threshold=0.6", "lower=1"])
        self.assertEqual([t["kept"] for t in found["tried"]], [True, False, True])
        self.assertEqual((found["share"], found["wanted"]), (0.75, -0.99))

    def test_tolerance(self):
        """what is worse by no more than the tolerance is kept"""
        found = self.figures("--runs", "1", "--tries", "2", "--tolerance", "1",
                             words=["threshold=0.9"])
        self.assertEqual((found["share"], found["policy"]), (0.25, "syncswitch:0.25"))

    def test_table(self):
        """the table says what was tried, and then which options to use"""
        rc, out, err = self.tune("-q", "--runs", "2", "--tries", "2", words=["threshold=0.5"])
        self.assertEqual(rc, 0, err)
        self.assertRegex(out, r"policy +runs +score +deviation +time\n"
                         r"bsp +2 +1 +0 +\S+ \w+  the measure\n"
                         r"syncswitch:0\.5 +2 +1 +0 +\S+ \w+  kept\n"
                         r"syncswitch:0\.25 +2 +0 +0 +\S+ \w+  not kept\n"
                         r"wanted: score of at least 0\.99, .*\n"
                         r"use: --policy syncswitch:0\.5 --samples 40\n$")

    def test_nothing_less(self):
        """if no smaller share is enough, the answer is bsp"""
        rc, out, _ = self.tune("-q", "--runs", "1", "--tries", "2", words=["threshold=1"])
        self.assertEqual(rc, 0)
        self.assertIn("no smaller share that was tried is enough\nuse: --policy bsp ", out)

    def test_other_metric(self):
        """a metric that nobody reports is an error that names the run, and what was reported"""
        rc, out, err = self.tune("-q", "--runs", "1", words=["metric=accuracy", "progress=1"])
        self.assertEqual(rc, 1)
        self.assertRegex(err, r'run 1 of 1 with bsp, seed 1: no worker has reported "score"; '
                         r'what was reported is ("progress", "accuracy"|"accuracy", "progress")\n')

    def test_failing_run(self):
        """a run that fails ends the search, with its name and what is known"""
        rc, out, err = self.tune("-q", "--runs", "2", "--tries", "3", "--json", self.path("x"),
                                 words=["threshold=0.1", "fail_at=0.25"])
        self.assertEqual(rc, 1)
        self.assertRegex(err, r"run 1 of 2 with syncswitch:0\.25, seed 1: "
                         r"rank \d exited with status 3\n")
        self.assertRegex(out, r"syncswitch:0\.25 +0 .* not finished\n")
        self.assertIn("so far: --policy syncswitch:0.5 --samples 40\n", out)
        with open(self.path("x")) as f:
            found = json.load(f)
        self.assertEqual((found["state"], found["share"], found["tried"][-1]["mean"]),
                         ("failed", 0.5, None))

    def test_no_worker(self):
        """a program that cannot join is named as muster run names it"""
        rc, _, err = self.tune("-q", program=("sh", "-c", "exit 7"))
        self.assertEqual(rc, 1)
        self.assertRegex(err, r"run 1 of 3 with bsp, seed 1: rank \d exited with status 7 before")

    def test_interrupt(self):
        """a signal ends the processes of the run, and what is known is printed"""
        process = self.start("--runs", "1", "--json", self.path("x"), "--samples", "2000",
                             words=["threshold=0.3", "sleep_ms=2"])
        line = process.stderr.readline()
        while line and "bsp, run 1 of 1" not in line:
            line = process.stderr.readline()
        self.assertTrue(until(lambda: len(tagged(self.mark)) >= 4, SECONDS))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, err)
        self.assertRegex(out, r"bsp +1 +1 .*\n(syncswitch:\S+ +1 .*\n)*"
                         r"syncswitch:\S+ +0 .* not finished\n")
        self.assertRegex(out, r"so far: --policy (bsp|syncswitch:\S+) --samples 2000\n")
        with open(self.path("x")) as f:
            self.assertEqual(json.load(f)["state"], "interrupted")
        self.assertTrue(until(lambda: not tagged(self.mark), SECONDS))

    def test_usage(self):
        """wrong usage is 2, and says what would be right"""
        whole = ["syncswitch", "-n", "2", "--samples", "9", "--metric", "score", "--", "true"]
        for args, sentence in (
                (["adasync", *whole[1:]], "syncswitch is the one"),
                (whole[:5] + whole[7:], "--metric NAME"),
                (whole[:7], "no program"),
                (whole[:1] + whole[3:], "-n W"),
                (whole[:3] + whole[5:], "--samples N"),
                (whole[:1] + ["--higher", "--lower"] + whole[1:], "both ways"),
                (whole[:1] + ["--policy", "bsp"] + whole[1:], "unknown option --policy"),
                (whole[:1] + ["--owner", "workers"] + whole[1:], "--owner servers"),
                (whole[:1] + ["--tries", "11"] + whole[1:], "from 1 to 10"),
                (whole[:1] + ["--json", "/nowhere/x"] + whole[1:], "cannot write /nowhere/x")):
            done = subprocess.run([TOOLS.muster, "tune", *args], text=True, capture_output=True,
                                  timeout=100)
            self.assertEqual((done.returncode, sentence in done.stderr), (2, True),
                             (args, done.stderr))

    def test_file(self):
        """options may come from a file, but none that lets one run go on from another"""
        conf = self.path("c.conf")
        with open(conf, "w") as f:
            f.write('policy = "async";\n')
        found = self.figures("-c", conf, "--runs", "1", "--tries", "1", words=["threshold=0.3"])
        self.assertEqual(found["policy"], "syncswitch:0.5")
        with open(conf, "w") as f:
            f.write(f'state = "{self.path("state")}";\n')
        rc, _, err = self.tune("-c", conf)
        self.assertEqual((rc, "each run begins anew" in err), (2, True), err)


run_tests("muster", "musterd", "reporter")
