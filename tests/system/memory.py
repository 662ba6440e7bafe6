# SPDX-License-Identifier: MIT
"""What musterd says that a job will take is what it then takes, and no more than it is allowed;
and what --budget says beforehand is what the job's servers say."""
import contextlib
import os
import re
import subprocess
import tempfile
import time
import unittest

import cgroup
from base import TOOLS, run_tests, until, worker_environment
from server import SECONDS, Server
from servers import newest

ELEMS = 1 << 19  # 2 MiB in f32
WORKERS = 10
VECTOR = 4 * ELEMS
SESSION = 3 * VECTOR  # two slots, and where results are copied to
SMALL = VECTOR * 3 // 4  # headers and records, colours, queues, statistics
ROUNDED = 2 * (1 << 20) // 20  # the two figures are told to a tenth of a MiB
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def size(text):
    value, unit = text.split()
    return float(value) * UNITS[unit]


def resident(pid):
    """Bytes, those that are shared with its workers included, and the pages of its program and
    libraries not, which are no part of a job; 0: it is just ending."""
    try:
        with open(f"/proc/{pid}/status") as f:
            text = f.read()
        return 1024 * sum(int(re.search(rf"^{kind}:\s+(\d+) kB", text, re.M)[1])
                          for kind in ("RssAnon", "RssShmem"))
    except (OSError, TypeError):
        return 0


def said(log):
    """Return: for workers, for sums and versions."""
    line = re.search(r"memory: (.+?) for \d+ workers, (.+?) for sums and versions, of (.+)", log)
    return size(line[1]), size(line[2])


def announced(log):
    return sum(said(log))


def budget(*options):
    """Return: a row for each server, by column; and what a worker takes of a device."""
    out = subprocess.run([TOOLS.musterd, "--memory", "900G", *map(str, options)], check=True,
                         text=True, stdout=subprocess.PIPE).stdout
    names = ("server", "elements", "shards", "a worker", "workers", "own", "memory",
             "queue pairs", "registered", "files")
    rows = []
    for line in out.splitlines():
        words = re.findall(r"[\d.]+ [KMGT]?i?B|\S+", line)
        if len(words) == len(names) and words[0].isdigit():
            rows.append(dict(zip(names, words)))
    worker = re.search(r"each worker: (\d+) queue pairs, (.+?) registered", out)
    return rows, worker


class Memory(unittest.TestCase):
    def run_job(self, *options, follower=None):
        """@follower: takes a second server's log. Return: musterd's log, and what its job has made
        resident when a dozen commits have been made. What the program itself had before is no
        part of a job."""
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            server = Server(TOOLS.musterd, "-n", str(WORKERS), *options)
            before = resident(server.process.pid)
            log, enough = os.path.join(folder, "log"), os.path.join(folder, "enough")
            if follower is not None:
                second = stack.enter_context(subprocess.Popen(
                    [TOOLS.musterd, "--join", server.address], stderr=follower))
                stack.callback(second.wait, SECONDS)
            owner = "workers" if "workers" in options else "servers"
            workers = [subprocess.Popen(
                [TOOLS.worker, log, str(ELEMS), f"owner={owner}", f"0:until={enough}",
                 "0:finish=1"],
                env=os.environ | worker_environment(server.address, rank))
                for rank in range(WORKERS)]
            self.assertTrue(until(lambda: newest(log + ".0.1") >= 12, SECONDS))
            most = resident(server.process.pid)
            with open(enough, "w", encoding="utf-8"):
                pass
            while server.process.poll() is None:
                most = max(most, resident(server.process.pid))
                time.sleep(0.01)
            for worker in workers:
                worker.wait(SECONDS)
            server.process.wait(SECONDS)
            server.log.seek(0)
            with server.log as log:
                return log.read(), most - before

    def check_job(self, vectors, *options):
        """Apart from its sessions the server is to take so many vectors."""
        log, most = self.run_job(*options)
        self.assertAlmostEqual(announced(log), WORKERS * SESSION + vectors * VECTOR, delta=SMALL)
        self.assertLessEqual(most, announced(log) + ROUNDED, log)
        # What is filled in each step is really there: a slot of each worker, and some versions.
        self.assertGreater(most, (WORKERS + 2) * VECTOR, log)

    def test_bsp_takes_what_it_says(self):
        """4 versions, momentum, the sum of one group."""
        self.check_job(4 + 1 + 1, "--policy", "bsp")

    def test_history_and_groups_summed_early_are_in_it(self):
        """4 versions, 8 of history and 4 for who comes back, the sums of two groups."""
        self.check_job(16 + 2, "--policy", "bsp", "--owner", "workers", "--group", "4")

    def test_partial_sums_are_in_it(self):
        """4 versions, momentum, half of the quorum in partial sums."""
        self.check_job(4 + 1 + 10, "--policy", "kbatchasync:20", "--optimizer",
                       "sgd:lr=0.1,momentum=0.9")

    def test_without_room_for_early_sums_the_job_runs_without_them(self):
        """Slots and the private area of 10 workers take 60 MiB, versions and momentum 10, the sums
        of two groups another 4."""
        wide, _ = self.run_job("--policy", "bsp", "--group", "4")
        tight, _ = self.run_job("--policy", "bsp", "--group", "4", "--memory", "72M")
        self.assertGreater(announced(wide), 72 << 20)
        self.assertLessEqual(announced(tight), 72 << 20)

    def test_a_budget_is_what_servers_then_say(self):
        """One server, and both of two whose parts differ."""
        job = ("--policy", "backup:9", "--memory", "900G", "--shards", "2")
        log, _ = self.run_job(*job)
        rows, worker = budget("-n", WORKERS, "--budget", VECTOR, *job)
        self.assertIsNone(worker)
        self.assertEqual([(size(row["workers"]), size(row["own"])) for row in rows], [said(log)])
        job = (*job, "--servers", "2", "--partition", "2,1")
        with tempfile.TemporaryFile("w+") as follower:
            log, most = self.run_job(*job, follower=follower)
            follower.seek(0)
            logs = log, follower.read()
        rows, _ = budget("-n", WORKERS, "--budget", VECTOR, *job)
        self.assertEqual([(size(row["workers"]), size(row["own"])) for row in rows],
                         [said(log) for log in logs])
        self.assertGreater(size(rows[0]["own"]), 1.5 * size(rows[1]["own"]))
        self.assertLessEqual(most, announced(logs[0]), logs[0])

    def test_a_budget_over_verbs_counts_pairs_and_what_is_registered(self):
        """64 workers, 8 servers, 1 GiB: of each worker a slot and a page of ends, of each server
        the versions; two queue pairs a worker and server, and two for each other server."""
        elems = 1 << 28
        rows, worker = budget("-n", 64, "--servers", 8, "--budget", "1G", "--transport", "verbs")
        part = 4 * elems / 8
        self.assertEqual([(row["elements"], row["queue pairs"]) for row in rows],
                         [(str(elems // 8), str(2 * (64 + 7)))] + [(str(elems // 8), "130")] * 7)
        for row in rows:
            registered = (64 + 4) * part
            self.assertAlmostEqual(size(row["registered"]), registered, delta=registered / 100)
        self.assertEqual(worker[1], "16")
        self.assertAlmostEqual(size(worker[2]), 2 * 4 * elems, delta=elems // 20)
        twice, _ = budget("-n", 64, "--servers", 8, "--budget", "1G", "--transport", "verbs",
                          "--data-address", "10.0.0.1,10.0.1.1")
        self.assertEqual([row["queue pairs"] for row in twice], ["284"] + ["260"] * 7)

    def test_servers_of_one_host_divide_its_processors(self):
        """Over shared memory, unless they are given processors; over verbs each has all."""
        here = sorted(os.sched_getaffinity(0))
        cores = len(here)
        job = ("-n", 2, "--budget", "256M", "--servers", 3)
        divided = [cores // 3 + (i < cores % 3) if cores >= 3 else cores for i in range(3)]
        given = ("--cpus", ",".join(map(str, here)))
        for more, shards in (((), divided), (("--transport", "verbs"), [cores] * 3),
                             (given, [cores] * 3), (("--shards", "5"), [5] * 3)):
            rows, _ = budget(*job, *more)
            self.assertEqual([int(row["shards"]) for row in rows], [min(n, 16) for n in shards])
        rows, _ = budget("-n", 2, "--budget", "256M", "--servers", 2)
        halves = [(cores + 1) // 2, cores // 2] if cores >= 2 else [1, 1]
        self.assertEqual([int(row["shards"]) for row in rows], [min(n, 16) for n in halves])

    def refusal(self, *options):
        """What the first worker is told of a job that is refused."""
        server = Server(TOOLS.musterd, "-n", str(WORKERS), *options)
        worker = subprocess.run(
            [TOOLS.worker, "/dev/null", str(ELEMS), "owner=servers"], stderr=subprocess.PIPE,
            text=True, check=False, env=os.environ | worker_environment(server.address, 0))
        server.process.terminate()
        server.process.wait(SECONDS)
        server.log.close()
        self.assertNotEqual(worker.returncode, 0)
        return worker.stderr

    def test_what_does_not_fit_is_refused_with_figures(self):
        said = self.refusal("--memory", "50M")
        self.assertRegex(said, r"no memory for job .* need .* more than --memory 50")
        self.assertNotIn("--lr-distance", said)

    def test_the_versions_that_a_distance_keeps_are_in_it_and_refused_with_figures(self):
        """One of each worker and one more, 22 MiB; and four that each job has, momentum and the
        slots and copies of 10 workers, 70 MiB."""
        job = ("--policy", "async", "--optimizer", "sgd:lr=0.1,momentum=0.9")
        distance = (*job, "--lr-distance", "0.5")
        log, _ = self.run_job(*job, "--memory", "80M")
        self.assertLess(announced(log), 80 << 20)
        self.assertRegex(
            self.refusal(*distance, "--memory", "80M"),
            r"no memory for job .*: 10 workers with 2 slots need 6\.\d MiB each and the server "
            r"3[2-4]\.\d MiB, of which --lr-distance takes 11 versions of 2\.0 MiB, in all more "
            r"than --memory 80\.0 MiB; raise that limit")
        kept, _ = self.run_job(*distance, "--memory", "100M")
        self.assertAlmostEqual(announced(kept) - announced(log), (WORKERS + 1) * VECTOR,
                               delta=SMALL)

    def group(self, limit):
        try:
            group = cgroup.Group(limit)
        except cgroup.Unavailable as e:
            self.skipTest(str(e))
        self.addCleanup(group.remove)
        return group

    def test_a_control_group_above_its_own_limits_it(self):
        """10 workers with 2 slots and results of 16 MiB: 480 MiB; the group's parent has 300."""
        group = self.group(300 << 20)
        server = Server(TOOLS.musterd, "-n", str(WORKERS), preexec_fn=group.enter)
        worker = subprocess.Popen(
            [TOOLS.worker, "/dev/null", str(4 << 20)], stderr=subprocess.PIPE, text=True,
            env=os.environ | worker_environment(server.address, 0))
        try:
            said = worker.communicate(timeout=SECONDS)[1]
        except subprocess.TimeoutExpired:  # it was let in, and waits for the others
            said = ""
            worker.kill()
            worker.communicate()
        _, log = server.stop()
        self.assertRegex(said, r"no memory for job .* need 48\.\d MiB each .* more than "
                         r"2\d\d\.\d MiB, 3/4 of what is free in control group \S*" + group.name() +
                         f", {group.file} 300.0 MiB; raise that limit, or lower", log)

    def test_a_group_that_shrinks_refuses_who_comes_and_the_job_goes_on(self):
        """A session takes three vectors of 4 MiB; the group is left two and a half."""
        group, elems, vector = self.group(300 << 20), 1 << 20, 4 << 20
        with tempfile.TemporaryDirectory() as folder:
            end = os.path.join(folder, "end")
            server = Server(TOOLS.musterd, "-n", "3", "--policy", "backup:2",
                            preexec_fn=group.enter)

            self.addCleanup(server.process.kill)

            def start(rank, log):
                worker = subprocess.Popen(
                    [TOOLS.worker, os.path.join(folder, log), str(elems), "rounds=1000000",
                     "sleep_us=5000", f"until={end}", "again=1"], stderr=subprocess.PIPE,
                    text=True, env=os.environ | worker_environment(server.address, rank))
                self.addCleanup(worker.kill)
                return worker

            workers = [start(rank, "log") for rank in range(3)]
            self.wait_for(server, "starts: ")
            # Until all that a step touches has been touched.
            log = os.path.join(folder, "log.0.1")
            self.assertTrue(until(lambda: newest(log) >= 20, SECONDS))
            workers[2].kill()
            workers[2].communicate()
            self.wait_for(server, "rank 2 is gone")
            group.limit(group.usage() + 5 * vector // 2)
            late = start(2, "late")
            said = late.communicate(timeout=SECONDS)[1]
            self.assertRegex(said, r"no memory for another worker of job \"default\" now: it needs "
                             r"12\.\d MiB, more than all \S+ MiB of what is free in control group "
                             r"\S*" + group.name() + rf", {group.file} \S+ MiB; raise that limit")
            group.limit(300 << 20)
            again = start(2, "again")
            self.wait_for(server, "rank 2 joined .*, again")
            with open(end, "w", encoding="utf-8"):
                pass
            for worker in (*workers[:2], again):
                self.assertEqual(worker.communicate(timeout=SECONDS), (None, ""))
                self.assertEqual(worker.returncode, 0)
            self.assertEqual(server.process.wait(SECONDS), 0)
            server.log.close()

    def wait_for(self, server, pattern, count=1):
        if not until(lambda: len(re.findall(pattern, server.said())) >= count, SECONDS):
            self.fail(f"musterd never says {pattern}:\n{server.said()}")


run_tests("musterd", "worker")
