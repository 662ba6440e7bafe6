#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster sim --train: errors against formulas for a quadratic, digits, and answers to mistakes.

usage: tool_sim_train.py MUSTER DATA [unittest's arguments]

DATA is the directory with data sets; what wants the real digits (DATA/mnist) skips without them.
"""
import math
import os
import struct
import sys
import tempfile
import unittest

from simulated import Sim, given, run

MNIST = os.path.join(sys.argv.pop(1), "mnist")
ETA = 0.1
PLAIN = ("--optimizer", f"sgd:lr={ETA},momentum=0", "--lr-scale", "none")


def curvatures(dim, cond):
    return [cond ** (-i / (dim - 1)) for i in range(dim)]


class Train(Sim):
    def errors(self, *args):
        """The points of each policy."""
        return [job["errors"] for job in self.jobs(*args)]

    def points(self, *args):
        one, = self.errors(*args)
        return one


class Quadratic(Train):
    DIM, COND, SIGMA = 50, 5, 2

    def floor(self, per_commit, eta=ETA):
        """What the error of plain SGD comes to rest at, by its own recursion: in direction i the
        variance v of w obeys v = (1 - eta c)^2 v + eta^2 s, with s that of the mean gradient."""
        s = self.SIGMA ** 2 / self.DIM / per_commit
        return sum(eta * s / (2 * (2 - eta * c)) for c in curvatures(self.DIM, self.COND))

    def bound(self, per_commit):
        """Dutta et al. 2018, theorem 2 for J to infinity: eta L sigma^2 / (2 c K m), L = 1."""
        return ETA * self.SIGMA ** 2 / (2 / self.COND * per_commit)

    def rest(self, policy, batch, *args, workers=8, commits=16000):
        """The mean error after it has come to rest."""
        points = self.points("-n", workers, "--delay", "exp:20", "--policy", policy, "--force",
                             "--train", f"quadratic:dim={self.DIM},cond={self.COND},"
                             f"noise={self.SIGMA},batch={batch}", "--commits", commits,
                             "--every", "20commits", *(args or PLAIN))
        late = [p["error"] for p in points[len(points) // 4:]]
        return sum(late) / len(late)

    def test_floor(self):
        """K gradients of m samples leave the error that theory says, which goes with 1 / (K m)"""
        for k, m in ((1, 1), (1, 4), (2, 2), (4, 4), (8, 1)):
            rest = self.rest(f"ksync:{k}", m)
            self.near(rest, self.floor(k * m), 0.04, f"K = {k}, m = {m}")
            self.assertLess(rest, self.bound(k * m))

    def test_floor_of_stale(self):
        """Stale gradients leave more than fresh ones of the same number"""
        for k in (1, 4):
            self.assertGreater(self.rest(f"kasync:{k}", 4), 1.02 * self.floor(k * 4), f"K = {k}")

    def test_workers_are_a_batch(self):
        """bsp of P workers rests where one with P times the batch does"""
        self.near(self.rest("bsp", 2), self.rest("bsp", 16, workers=1), 0.04, "8 x 2 and 1 x 16")

    def test_schedule(self):
        """A tenth of the rate leaves a tenth of the error"""
        low = self.rest("bsp", 1, *PLAIN, "--lr-schedule", "steps:0.1,8", commits=60000)
        self.near(low, self.floor(8, ETA / 10), 0.06, "a tenth of the rate")

    def test_distance(self):
        """A bound by distance keeps a job with stale gradients from diverging"""
        def error(distance):
            return self.points("-n", 1, "--delay", "const:20", "--train",
                               "quadratic:dim=50,cond=5,noise=0.1", "--commits", 1000,
                               "--staleness", 40, "--staleness-ramp", 1, "--lr-scale", "none",
                               "--optimizer", "sgd:lr=0.2,momentum=0", "--lr-distance",
                               distance)[-1]["error"]

        # the rate of each version, and so each error, is as large as the bound lets it be
        self.assertGreater(error("1e9"), 1e3)
        self.assertLess(error("0.01"), 0.1)
        self.assertLess(error("0.001"), error("0.01") / 5)

    def test_descent(self):
        """Without noise the error falls as (1 - eta c)^2J in each direction"""
        for workers in (1, 8):
            points = self.points("-n", workers, "--delay", "const:20", "--train",
                                 "quadratic:dim=20,cond=30,noise=0", "--commits", 100, *PLAIN)
            for p in points:
                want = sum((1 - ETA * c) ** (2 * p["commits"]) for c in curvatures(20, 30)) / 20
                self.near(p["error"], want, 1e-3, f"after {p['commits']} commits")
                self.assertAlmostEqual(p["simulated_s"], p["commits"] * 0.02, 9)

    def test_time_and_noise(self):
        """A small K is ahead at first, for it commits more often, and a large K at the end"""
        few, many = self.errors(
            "-n", 8, "--delay", "exp:20", *given("--policy", ("ksync:1", "ksync:8")), "--force",
            "--train", "quadratic:cond=2,noise=3,batch=1", *PLAIN, "--commits", 3000,
            "--every", "50ms")
        for one, other in zip(few[:7], many):
            self.assertEqual(one["simulated_s"], other["simulated_s"])
        self.assertLess(few[6]["error"], 0.7 * many[6]["error"])
        few, many = ([p["error"] for p in points[100:140]] for points in (few, many))
        self.assertGreater(sum(few), 3 * sum(many))

    def test_staleness(self):
        """In the serial simulation the error rises with the staleness, and too much diverges"""
        ages = (0, 4, 8, 12)
        rest = []
        for points in self.errors("-n", 1, "--delay", "const:20", *given("--staleness", ages),
                                  "--train", "quadratic:dim=20,noise=1", "--commits", 20000,
                                  "--every", "50commits", *PLAIN):
            late = [p["error"] for p in points[len(points) // 4:]]
            rest.append(sum(late) / len(late))
        self.assertEqual(rest, sorted(rest))
        self.assertGreater(rest[-1], 1.5 * rest[0])
        job = self.job("-n", 1, "--delay", "const:20", "--staleness", 20, "--train",
                       "quadratic:noise=1", "--commits", 200000, *PLAIN, rc=1)
        self.assertEqual(job["ended_by"], "a version that is infinite or not a number")
        self.assertIsNone(job["errors"][-1]["error"])

    def test_optimizers(self):
        """Each optimiser of musterd finds the minimum"""
        for optimizer in ("sgd:lr=0.1,momentum=0.9,nesterov=1", "sgd:lr=1,clip=0.1",
                          "adagrad:lr=0.3", "rmsprop:lr=0.01", "adam:lr=0.03", "adamw:lr=0.03",
                          "lars:lr=1,trust=0.01", "lamb:lr=0.01"):
            last = self.points("-n", 4, "--delay", "exp:20", "--train",
                               "quadratic:dim=10,noise=0", "--commits", 600, "--optimizer",
                               optimizer)[-1]
            self.assertLess(last["error"], 0.02, optimizer)

    def test_all_policies(self):
        """Whatever the policy, it is learned under it, also with deaths and a switch"""
        for policy in ("bsp", "backup:6", "ksync:6", "kbatchsync:6", "kasync:4", "kbatchasync:4",
                       "softsync:4", "async", "bounded:4", "ssp:3", "nonblocking", "anytime:50",
                       "deadline:50,4", "local:4", "easgd:4,0.1", "easgdsync:4,0.1",
                       "downpour:2,4", "tickets:6"):
            job = self.job("-n", 8, "--delay", "exp:20", "--policy", policy, "--train",
                           "quadratic:dim=10", "--samples", 40000, "--latency", "1ms",
                           *(() if "easgd" in policy or "local" in policy else
                             ("--optimizer", "sgd:lr=0.05,momentum=0")))
            self.assertLess(job["errors"][-1]["error"], 0.1, policy)
            self.near(job["errors"][-1]["samples"], 40000, 0.01, policy)
        job = self.job("-n", 8, "--delay", "exp:20", "--policy", "bsp", "--switch", "async@500",
                       "--kill", "3@2s", "--join", "3@4s", "--train", "quadratic:dim=10",
                       "--commits", 3000, "--optimizer", "sgd:lr=0.05,momentum=0")
        self.assertLess(job["errors"][-1]["error"], 0.1)

    def test_adaptive(self):
        """AdaSync hears the losses: its K grows, so its steps are longer at the end"""
        for base in ("ksync", "kasync", "kbatchasync"):
            points = self.points("-n", 8, "--delay", "exp:20", "--policy", f"adasync:{base}",
                                 "--train", "quadratic:cond=2,noise=0.1", "--commits", 2000,
                                 "--every", "100commits", *PLAIN)
            times = [p["simulated_s"] for p in points]
            self.assertGreater(times[-1] - times[-2], 2 * (times[1] - times[0]), base)
            self.assertLess(points[-1]["error"], 0.01)

    def test_adasync_measures(self):
        """On even workers it is as soon at an error as bsp, and sooner where times vary or one
        worker is slow"""
        for times, most in ((("const:20",), 1.02), (("uniform:16,24",), 1.05),
                            (("sexp:10,10",), 0.95), (("exp:20",), 0.8),
                            (("const:20", "7:const:200"), 0.5)):
            for seed in (21, 22):
                curves = self.errors("-n", 8, *given("--delay", times), "--train",
                                     "quadratic:dim=50,cond=5,noise=1", "--samples", 16000,
                                     "--every", "20ms", "--seed", seed,
                                     *given("--policy", ("bsp", "adasync:ksync")))
                bsp, measured = (next(p["simulated_s"] for p in points if p["error"] < 0.05)
                                 for points in curves)
                self.assertLess(measured, most * bsp + 0.02, f"{times}, seed {seed}")

    def test_reported(self):
        """AdaSync follows the error that is reported with each point of the curve"""
        of_gradients, reported = self.errors(
            "-n", 8, "--delay", "exp:20", "--train", "quadratic:cond=2,noise=3", "--commits",
            1000, "--every", "10commits", "--optimizer", "sgd:lr=0.02,momentum=0", "--lr-scale",
            "none", *given("--policy", ("adasync:ksync,paper", "adasync:ksync,paper,loss=error")))
        # Noise keeps the loss of gradients high. The error is without noise, and falls.
        self.assertLess(2 * of_gradients[-1]["simulated_s"], reported[-1]["simulated_s"])
        rest = [sum(p["error"] for p in points[-20:]) for points in (of_gradients, reported)]
        self.assertLess(2 * rest[1], rest[0])

    def envelope(self, noise, family, adaptive):
        """Errors at each tenth of a second to 8 s, means of 5 seeds, over that of the K that is the
        best at that time. Return: the largest of each fixed K, and of the adaptive policy."""
        def curve(policy):
            curves = [[p["error"] for p in self.points(
                "-n", 8, "--delay", "exp:20", "--policy", policy, "--force", "--train",
                f"quadratic:dim=50,cond=5,noise={noise}", *PLAIN, "--every", "100ms", "--samples",
                27200, "--seed", seed)] for seed in range(1, 6)]
            return [sum(errors) / 5 for errors in zip(*(c[:81] for c in curves))]

        def worst(errors):
            self.assertEqual(len(errors), 81)
            return max(error / least for error, least in zip(errors, best))

        fixed = [curve(f"{family}:{k}") for k in (1, 2, 3, 4, 6, 8)]
        best = [min(errors) for errors in zip(*fixed)]
        return [worst(errors) for errors in fixed], worst(curve(f"adasync:{family}{adaptive}"))

    def test_adasync_envelope(self):
        """At any time AdaSync is no worse than the K that is the best then, and every fixed K is
        far from it at some time: with little noise, and with more where the loss that it follows
        is that of all data, as in the paper"""
        for noise, family, adaptive, most in ((0.1, "ksync", ",paper", 1.25),
                                              (0.1, "kasync", "", 1.25),
                                              (0.5, "ksync", ",1,100,paper,loss=error", 1.15),
                                              (0.3, "kasync", ",1,100,loss=error", 1.15)):
            fixed, found = self.envelope(noise, family, adaptive)
            self.assertLess(found, most, f"adasync:{family}{adaptive}, noise {noise}")
            self.assertGreater(min(fixed), 5, f"{family}, noise {noise}")

    def backups(self, policy, delay):
        """Means over 8 seeds: of the error until 20 s and from 10 s on, of the time to 0.004, which
        is above what any quorum from 4 on comes to rest at, and the geometric mean until 20 s."""
        areas, rests, times, wholes = [], [], [], []
        for seed in range(1, 9):
            points = self.points("-n", 8, "--train", "quadratic:dim=50,cond=5,noise=2", *PLAIN,
                                 "--every", "100ms", "--commits", 1050, "--seed", seed,
                                 "--delay", delay, "--policy", policy)
            points = [p for p in points if p["simulated_s"] < 20.05]
            errors = [p["error"] for p in points]
            areas.append(sum(errors) / len(errors))
            rests.append(sum(errors[100:]) / len(errors[100:]))
            times.append(next(p["simulated_s"] for p in points if p["error"] <= 0.004))
            wholes.append(math.exp(sum(map(math.log, errors)) / len(errors)))
        return [sum(f) / 8 for f in (areas, rests, times, wholes)]

    def test_dbw_changing(self):
        """Where delays change dbw is ahead of each backup:k: the error is less for less time. It
        is as fast as backup:4, which is the fastest, and comes to rest lower"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.csv")
            with open(path, "w", encoding="ascii") as f:
                f.write("step,worker,ready_us\n")
                for step in range(60):
                    for rank in range(8):
                        slow = rank >= 4 and step >= 40
                        f.write(f"{step},{rank},{200000 if slow else 20000}\n")
            area, rest, time, whole = self.backups("dbw", f"trace:{path}")
            for k in (5, 6, 7, 8):
                fixed = self.backups(f"backup:{k}", f"trace:{path}")
                self.assertLess(area, 0.85 * fixed[0], f"backup:{k}")
                self.assertLess(time, 0.6 * fixed[2], f"backup:{k}")
                self.assertLess(whole, 0.75 * fixed[3], f"backup:{k}")
            fixed = self.backups("backup:4", f"trace:{path}")
            self.assertLess(area, fixed[0])
            self.assertLess(rest, 0.65 * fixed[1])
            self.assertLess(whole, 0.75 * fixed[3])

    def test_dbw_varying(self):
        """Where the delays of all vary dbw is ahead of each backup:k over the whole job, and as
        soon at an error as the soonest of them"""
        for delay in ("exp:20", "pareto:10,1.5"):
            _, _, time, whole = self.backups("dbw", delay)
            fixed = [self.backups(f"backup:{k}", delay) for k in range(4, 9)]
            self.assertLess(whole, 0.9 * min(f[3] for f in fixed), delay)
            self.assertLess(time, 1.1 * min(f[2] for f in fixed), delay)

    def test_dbw_const(self):
        """Where delays do not change dbw is no worse than bsp, which is the best"""
        for dbw, bsp in zip(self.backups("dbw", "const:20"), self.backups("bsp", "const:20")):
            self.assertLess(dbw, 1.01 * bsp)

    def test_same_bytes(self):
        """The same command writes the same bytes, and another seed others"""
        args = ("-n", 5, "--delay", "exp:20", "--policy", "kasync:3", "--train", "quadratic",
                "--commits", 300, "--every", "100ms", "--table", "errors", "--csv", "-")
        first = run(*args)
        self.assertEqual(first, run(*args))
        self.assertEqual(first[0], 0)
        self.assertTrue(first[1].startswith("policy,simulated_s,commits,samples,error,loss\n"))
        self.assertNotEqual(first[1], run(*args, "--seed", 2)[1])

    def test_same_job(self):
        """Training changes no figure of the job"""
        args = ("-n", 8, "--delay", "exp:20", *given("--policy", ("ksync:4", "nonblocking")),
                "--commits", 500)
        for plain, trained in zip(self.jobs(*args), self.jobs(*args, "--train", "quadratic")):
            for name in ("step_ms", "staleness", "simulated_s", "wasted_time", "arrivals"):
                self.assertEqual(plain[name], trained[name])
            self.assertAlmostEqual(8 * plain["samples"], trained["samples"])


class Digits(Train):
    def setUp(self):
        rc, _, err = run("-n", 1, "--delay", "const:1", "--commits", 1, "--train",
                         "digits:hidden=1")
        if rc == 2 and "without zlib" in err:
            self.skipTest("muster was built without zlib")

    def test_drawn(self):
        """Drawn digits are learned, and the loss of contributions falls"""
        points = self.points("-n", 4, "--delay", "exp:20", "--train", "digits:hidden=32",
                             "--commits", 150)
        self.assertGreater(points[0]["error"], 0.8)
        self.assertLess(points[-1]["error"], 0.15)
        self.assertIsNone(points[0]["loss"])
        self.assertLess(points[-1]["loss"], 0.5 * points[1]["loss"])

    def test_tensors(self):
        """LARS and LAMB learn digits, whose layers have norms of their own"""
        for optimizer in ("lars:lr=10,momentum=0.9", "lamb:lr=0.02"):
            points = self.points("-n", 4, "--delay", "exp:20", "--train", "digits:hidden=32",
                                 "--commits", 150, "--optimizer", optimizer)
            self.assertLess(points[-1]["error"], 0.2, optimizer)

    @unittest.skipUnless(os.path.isdir(MNIST), f"no real digits in {MNIST}")
    def test_staleness(self):
        """Chen et al. 2016: the error on test digits rises with the staleness of gradients"""
        ends = [points[-1]["error"] for points in self.errors(
            "-n", 1, "--delay", "const:20", *given("--staleness", (0, 25, 40)), "--train",
            f"digits:{MNIST},hidden=32", "--commits", 2500, "--optimizer",
            "sgd:lr=0.05,momentum=0")]
        self.assertLess(1.2 * ends[0], ends[1])
        self.assertLess(2 * ends[1], ends[2])
        self.assertLess(ends[0], 0.08)

    def test_files(self):
        """A directory that is not there, and files that end too early, are refused by name"""
        with tempfile.TemporaryDirectory() as folder:
            self.refused(os.path.join(folder, "none"), "none")
            self.refused(folder, "t10k-images-idx3-ubyte")
            path = os.path.join(folder, "t10k-images-idx3-ubyte")
            with open(path, "wb") as f:
                f.write(struct.pack(">IIII", 0x803, 10, 28, 28) + bytes(100))
            with open(os.path.join(folder, "t10k-labels-idx1-ubyte"), "wb") as f:
                f.write(struct.pack(">II", 0x801, 10) + bytes(10))
            self.refused(folder, "ends after 100 of the 7840 bytes")

    def refused(self, folder, words):
        rc, _, err = run("-n", 1, "--delay", "const:1", "--train", f"digits:{folder}")
        self.assertEqual(rc, 2)
        self.assertIn("option --train: ", err)
        self.assertIn(words, err)


class Mistakes(Train):
    def test_refused(self):
        """What cannot be meant is refused with a sentence that names it"""
        quadratic = ("--train", "quadratic")
        for args, words in (
                (("--train", "quadratics"), '"quadratics" is neither quadratic nor digits'),
                (("--train", "quadratic:batch=0"), 'batch of quadratic is "0"'),
                (("--train", "quadratic:dim=1e9"), "at most 1e+07"),
                (("--every", "1s"), "--every means nothing without --train"),
                (("--optimizer", "adam"), "--optimizer means nothing without --train"),
                (("--lr-schedule", "warmup:10"), "--lr-schedule means nothing"),
                (("--lr-scale", "none"), "--lr-scale means nothing"),
                (("--lr-distance", "1"), "--lr-distance means nothing"),
                ((*quadratic, "--lr-distance", "1", "--policy", "bsp"), "does nothing under"),
                ((*quadratic, "--lr-distance", "1", "--policy", "kasync:2"), "one gradient each"),
                ((*quadratic, "--lr-distance", "1", "--policy", "tickets:4"), "not with tickets"),
                (("--staleness", "3"), "--staleness means nothing without --train"),
                (("--table", "errors"), "--table errors means nothing"),
                ((*quadratic, "--staleness-ramp", "3"), "means nothing without --staleness"),
                ((*quadratic, "--staleness", "3"), "goes with one worker, and --workers is 4"),
                ((*quadratic, "--staleness", "3", "--policy", "bsp"), "leave --policy out"),
                ((*quadratic, "--staleness", "x", "-n", "1"), '"x" is not a whole number'),
                ((*quadratic, "--staleness", "1", "-n", "1", "--switch", "async@3"),
                 "without --switch"),
                ((*quadratic, "--every", "7"), "neither a time nor a number of commits"),
                ((*quadratic, "--every", "0commits"), "neither a time nor"),
                ((*quadratic, "--optimizer", "sgdd"), "did you mean sgd?"),
                ((*quadratic, "--lr-schedule", "cosin:3"), "--lr-schedule"),
                ((*quadratic, "--policy", "local:4", "--optimizer", "sgd:lr=1"),
                 "contributes differences of parameters"),
                ((*quadratic, "--policy", "local:4", "--lr-schedule", "warmup:9"),
                 "--lr-schedule does nothing under --policy local:4"),
                ((*quadratic, "--lr-schedule", "linear:100"), "the rate is 0 from 100 samples on"),
                ((*quadratic, "--lr-schedule", "warmup:9", "--optimizer", "add"),
                 "which has no rate"),
                (("--train", "quadratic:batch=9", "--policy", "nonblocking"),
                 "its 9 samples do not make 8 equal micro-batches"),
                (("--train", "quadratic:dim=10000000", "-n", "60000"), "needs")):
            rc, _, err = run("-n", 4, "--delay", "const:1", *args)
            self.assertEqual(rc, 2, args)
            self.assertIn(words, err)

    def test_too_many_points(self):
        """A curve of more than a million points is refused, with what to do"""
        rc, _, err = run("-n", 4, "--delay", "const:1000", "--train", "quadratic:dim=1",
                         "--every", "1us", "-q")
        self.assertEqual(rc, 1)
        self.assertIn("let --every be longer", err)


if __name__ == "__main__":
    unittest.main()
