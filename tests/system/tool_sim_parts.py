#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster sim: parts of batches and steps of the worker's own, against models that are written here;
and when a late worker starts again.

usage: tool_sim_parts.py MUSTER [unittest's arguments]
"""
import itertools
import os
import random
import tempfile
import unittest

from simulated import P, Sim, given


class Parts(Sim):
    """Parts of batches, and steps of the worker's own, against models that are written here."""

    MICRO = 8
    LINES = 97

    @staticmethod
    def times(seed, workers=P):
        """Batches of 1 to 60 ms, in us: for each line one of each worker."""
        rng = random.Random(seed)
        return [[rng.randrange(1000, 60000) for _ in range(workers)] for _ in range(Parts.LINES)]

    def traced(self, times, *args):
        """The figures of a job whose batches take these times."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.csv")
            with open(path, "w", encoding="ascii") as f:
                f.write("step,worker,ready_us\n")
                f.writelines(f"{i},{r},{us}\n" for i, line in enumerate(times)
                             for r, us in enumerate(line))
            return self.job("-n", len(times[0]), "--delay", f"trace:{path}", *args)

    def counts_all(self, job, samples):
        """Each rank has contributed so many samples, and nothing was dropped."""
        for rank, want in zip(job["ranks"], samples, strict=True):
            self.assertEqual((rank["late"], rank["given_up"], rank["wasted_s"]), (0, 0, 0))
            self.assertEqual(rank["samples"], want)

    class Worker:
        """One that is computing: all times in ns."""

        def __init__(self, times):
            self.times, self.index, self.taken = times, 0, 0

        def part(self, count):
            return self.times[self.index % Parts.LINES] * count // Parts.MICRO

        def end(self, now):
            return now + self.part(Parts.MICRO) - self.part(self.taken)

        def asked(self, now, at):
            """Hands in at the first end of a micro-batch from @at on. Return: then, and how many
            micro-batches."""
            handed = 0
            while now < at:
                before = self.part(self.taken)
                self.taken += 1
                now += self.part(self.taken) - before
                handed += 1
                if self.taken == Parts.MICRO:
                    self.index, self.taken = self.index + 1, 0
            return now, handed

        def longest(self):
            return max(self.times) / Parts.MICRO

    def workers(self, times):
        return [self.Worker([line[r] * 1000 for line in times]) for r in range(len(times[0]))]

    def collect(self, workers, commits, trigger):
        """Steps in which all hand in at the end of a micro-batch after the trigger.
        @trigger(now): when that is. Return: steps in ns, triggers, samples by rank."""
        now, steps, triggers, samples = 0, [], [], [0] * len(workers)
        for _ in range(commits):
            at = trigger(now)
            came = [w.asked(now, at) for w in workers]
            samples = [s + handed for s, (_, handed) in zip(samples, came)]
            triggers.append(at - now)
            steps.append(max(then for then, _ in came) - now)
            now += steps[-1]
        return steps, triggers, [s / self.MICRO for s in samples]

    def test_nonblocking(self):
        """a step is the fastest batch, and at most a micro-batch of the slowest; all counts"""
        for seed in (1, 2, 3, 4):
            times = self.times(seed)
            job = self.traced(times, "--policy", "nonblocking", "--commits", 300)
            workers = self.workers(times)
            steps, triggers, samples = self.collect(
                workers, 300, lambda now, ws=workers: min(w.end(now) for w in ws))
            slowest = max(w.longest() for w in workers)
            self.assertTrue(all(t <= s <= t + slowest for s, t in zip(steps, triggers)))
            self.near(job["simulated_s"], sum(steps) / 1e9, 1e-8, f"seed {seed}")
            self.assertAlmostEqual(job["step_ms"]["max"], max(steps) / 1e6, 9)
            self.counts_all(job, samples)

    def test_nonblocking_is_exact(self):
        """from the first step on, with micro-batches that do not delay it: the fastest worker"""
        job = self.job("-n", 4, "--delay", "const:80", "--delay", "2:const:40", "--policy",
                       "nonblocking", "--commits", 50)
        self.assertEqual((job["step_ms"]["mean"], job["step_ms"]["max"]), (40, 40))
        self.assertEqual([r["samples"] for r in job["ranks"]], [25, 25, 50, 25])

    def test_grace(self):
        """nonblocking:MS waits for who was asked for so long at most, and drops what comes later"""
        args = ("-n", 4, "--delay", "const:40", "--delay", "3:const:800", "--commits", 200)
        free, bound = self.jobs(*args, *given("--policy", ["nonblocking", "nonblocking:5"]))
        # A micro-batch of the slowest takes 100 ms.
        self.assertAlmostEqual(free["step_ms"]["mean"], 100, 9)
        self.assertEqual(free["total"]["late"], 0)
        self.assertLessEqual(bound["step_ms"]["max"], 45)
        self.assertGreater(bound["ranks"][3]["late"] + bound["ranks"][3]["given_up"], 50)

    def finished(self, worker, end):
        """Micro-batches that a worker has finished by then who never waits."""
        now, count = 0, 0
        while now <= end:
            now, _ = worker.asked(now, now + 1)
            count += now <= end
        return count

    def test_nobody_waits(self):
        """nonblocking:0,16 counts all that workers compute who never wait, each part once"""
        draws = {"uniform": lambda rng: rng.randrange(16000, 24000),
                 "exponential": lambda rng: 1 + int(rng.expovariate(1 / 20000)),
                 "bimodal": lambda rng: rng.choice((20000,) * 19 + (200000,))}
        for (name, draw), slower in itertools.product(draws.items(), (2, 5, 20, 64)):
            rng = random.Random(f"{name} {slower}")
            times = [[draw(rng) * (slower if r == 0 else 1) for r in range(P)]
                     for _ in range(self.LINES)]
            job = self.traced(times, "--policy", "nonblocking:0,16", "--samples", 5000)
            end = round(job["simulated_s"] * 1e9)
            could = [self.finished(w, end) for w in self.workers(times)]
            got = [rank["samples"] * self.MICRO for rank in job["ranks"]]
            what = f"{name}, {slower} times as slow: {got} of {could}"
            self.assertEqual(job["total"]["stale"], 0, what)
            self.assertLessEqual(job["staleness"]["max"], 16, what)
            for have, most in zip(got, could, strict=True):  # but for what ends with the job
                self.assertLessEqual(abs(most - have), 1, what)

    def test_age_is_bounded_in_time(self):
        """after MS a step is made without a micro-batch that is older than AGE then"""
        args = ("-n", 4, "--delay", "const:40", "--delay", "3:const:4000", "--commits", 400)
        free, bound = self.jobs(*args, *given("--policy", ["nonblocking:0,3", "nonblocking:5,3"]))
        self.assertEqual((free["total"]["stale"], free["staleness"]["max"]), (0, 3))
        self.assertGreater(free["step_ms"]["max"], 350)  # three steps of its 500 ms are not held
        self.assertLessEqual(bound["step_ms"]["max"], 45)
        self.assertEqual(bound["ranks"][3]["counted"], 0)
        self.assertGreater(bound["ranks"][3]["stale"], 5)

    def test_anytime(self):
        """a step is the timer, and at most a micro-batch of the slowest; all of it counts"""
        for seed, timer in ((1, 70), (2, 70), (3, 11), (4, 200)):
            times = self.times(seed)
            job = self.traced(times, "--policy", f"anytime:{timer}", "--commits", 150)
            workers = self.workers(times)
            steps, _, samples = self.collect(workers, 150, lambda now, ms=timer: now + ms * 10**6)
            slowest = max(w.longest() for w in workers)
            self.assertTrue(all(timer * 10**6 <= s <= timer * 10**6 + slowest for s in steps))
            self.near(job["simulated_s"], sum(steps) / 1e9, 1e-8, f"seed {seed}")
            self.assertAlmostEqual(job["step_ms"]["max"], max(steps) / 1e6, 9)
            self.counts_all(job, samples)

    def test_deadline(self):
        """a step ends with the N-th batch, at the deadline, or with the first one after it"""
        delays = given("--delay", ["const:10", "1:const:20", "2:const:30", "3:const:200"])
        for policy, step, counted in (("deadline:25,4", 25, [100, 100, 0, 0]),
                                      ("deadline:100,2", 20, [100, 100, 0, 0]),
                                      ("deadline:5,2", 10, [100, 0, 0, 0])):
            job = self.job("-n", 4, *delays, "--policy", policy, "--commits", 100, "--late-start",
                           "now")
            self.assertEqual((job["step_ms"]["mean"], job["step_ms"]["max"]), (step, step), policy)
            self.assertEqual([r["counted"] for r in job["ranks"]], counted, policy)

    def test_local(self):
        """a step of local:T takes T batches of the slowest, or of the N-th"""
        for seed, steps in ((1, 1), (2, 4), (3, 10)):
            times = self.times(seed)
            want, line = 0, 0
            for _ in range(100):
                batches = [times[(line + i) % self.LINES] for i in range(steps)]
                want += max(sum(of_rank) for of_rank in zip(*batches))
                line += steps
            job = self.traced(times, "--policy", f"local:{steps}", "--commits", 100)
            self.assertAlmostEqual(job["simulated_s"], want / 1e6, 9)
            self.counts_all(job, [100 * steps] * P)
        job = self.job("-n", 3, "--delay", "const:10", "--delay", "2:const:50", "--policy",
                       "local:3,2", "--commits", 100)
        self.assertEqual(job["step_ms"]["mean"], 30)

    def test_elastic_averaging(self):
        """easgd pulls before it pushes, for which it does not wait; easgdsync waits for all"""
        job = self.job("-n", 1, "--delay", "const:20", "--policy", "easgd:4,0.5", "--commits", 51,
                       "--latency", "3ms")
        # From push to push: four batches, and a pull, which takes two latencies.
        self.assertAlmostEqual(job["step_ms"]["p50"], 86, delta=86 / 32)
        self.assertAlmostEqual(job["simulated_s"], 51 * 86e-3 + 6e-3, 9)
        job = self.job("-n", 3, "--delay", "const:20", "--delay", "2:const:30", "--policy",
                       "easgdsync:4,0.3", "--commits", 50)
        self.assertAlmostEqual(job["step_ms"]["mean"], 120, 9)
        self.counts_all(job, [200] * 3)

    def test_downpour(self):
        """only a fetch waits; a push does if the slot is still in use"""
        for policy, batches, pushes, waits in (("downpour:1,5", 5, 5, 1), ("downpour:2,3", 6, 3, 2),
                                               ("downpour:6,3", 6, 1, 2),
                                               ("downpour:1,1", 1, 1, 1)):
            job = self.job("-n", 1, "--delay", "const:20", "--policy", policy, "--latency", "3ms",
                           "--commits", 60 * pushes)
            self.assertAlmostEqual(job["simulated_s"] / 60, (20 * batches + 6 * waits) / 1e3,
                                   delta=1e-3, msg=policy)
            self.assertEqual(job["total"]["samples"], 60 * batches)
        # A push takes 25 ms, and so does each version, also the first: the answer to the fetch that
        # goes after the push.
        job = self.job("-n", 1, "--delay", "const:10", "--policy", "downpour:1,1000", "--size",
                       25000000, "--worker-rate", 1, "--commits", 101)
        self.assertAlmostEqual(job["simulated_s"], 25e-3 + 10e-3 + 25e-3 + 100 * 50e-3, 9)

    def job_of(self, policy, *switches):
        job = self.job("-n", P, "--delay", "exp:20", "--commits", 600, "--policy", policy,
                       *given("--switch", switches))
        self.assertEqual((job["commits"], job["ended_by"]), (600, "commits"))
        self.assertEqual(job["total"]["lost"], 0)
        return job

    def test_changes_of_the_policy(self):
        """from whole batches to parts of them, to steps of the worker's own, and back"""
        self.job_of("local:4", "easgdsync:4,0.1@100", "easgd:2,0.2@200", "local:1@300")
        job = self.job_of("bsp", "nonblocking@100", "anytime:30@200", "ssp:3@300",
                          "downpour:2,3@400", "bsp@500")
        self.job_of("nonblocking:0,4", "bsp@100", "nonblocking:2,8@200", "nonblocking@300",
                    "async@400", "nonblocking:0,1@500")
        # Until it fetches, a worker does not know of bsp: it pushes at most twice on its own, and
        # then what has accrued.
        self.assertLessEqual(job["total"]["late"], 3 * P)


class LateStarts(Sim):
    """Four equal workers, backup:3, and a nap that brings one of them out of phase."""

    def late(self, mode, *delays):
        """The share of the gradients of the rank that were late, in %, and the mean step."""
        job = self.job("-n", 4, "--policy", "backup:3", "--commits", 1000,
                       *given("--delay", delays), "--nap", "3@1010ms,207ms", "--late-start", mode)
        rank = job["ranks"][3]
        return 100 * rank["late"] / (rank["late"] + rank["counted"]), job["step_ms"]["mean"]

    def test_nap(self):
        """who starts at once stays out of phase for ever; who is held does not"""
        (now, of_now), (auto, of_auto), (commit, of_commit) = (
            self.late(mode, "const:20") for mode in ("now", "auto", "commit"))
        self.assertGreater(now, 90)
        self.assertLess(auto, 30)
        self.assertLess(commit, 20)
        self.assertEqual((of_now, of_auto, of_commit), (20, 20, 20))

    def test_jitter(self):
        """with jitter nobody is late for more than its fair share, and steps are as long"""
        for spread in (0.04, 0.2, 1, 2):
            delay = f"uniform:{20 - spread},{20 + spread}"
            (now, of_now), (auto, of_auto) = (self.late(mode, delay) for mode in ("now", "auto"))
            self.assertLess(auto, max(now, 25) + 2, delay)
            self.near(of_auto, of_now, 0.005, delay)

    def test_times_that_vary(self):
        """who might be quick is not held: steps are as long as where nobody is"""
        for delay in ("exp:20", "sexp:10,10", "lognormal:20,0.2"):
            (_, of_now), (_, of_auto), (_, of_commit) = (
                self.late(mode, delay) for mode in ("now", "auto", "commit"))
            self.assertLess(of_auto, 1.03 * of_now, delay)
            self.assertLess(of_auto, of_commit, delay)


if __name__ == "__main__":
    unittest.main()
