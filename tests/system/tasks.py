# SPDX-License-Identifier: MIT
"""The processes and threads that may be started are known before the first: what cannot succeed is
refused at once, with figures, what is said to be enough is, and where a limit is lowered in the
middle that is said, and nothing hangs."""
import os
import re
import resource
import shutil
import subprocess
import tempfile
import unittest

import cgroup
from base import CALM, TOOLS, run_tests, until, worker_environment
from server import SECONDS, Server

WORKERS = 6
ANY_PORT = ("--listen", "127.0.0.1:0")
NOBODY = 54329  # a user with no processes; by chance it has none on any host
TAKE = r"they take (\d+) processes and threads, and (\d+) more are allowed; "
IN_GROUP = TAKE + r"control group (\S+) has (\d+), and its pids\.max is (\d+): raise that .*"
OF_USER = TAKE + r"this user has (\d+), and RLIMIT_NPROC is (\d+): raise that \(ulimit -u.*"
SERVER = r"musterd: no room for the threads of this server: "
RUN = rf"muster: no room for {WORKERS} workers and 1 server: "


def answer(command, **more):
    """Return: exit status and what is said."""
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=SECONDS, **more)
    return done.returncode, done.stderr


def start_workers(port, folder):
    return [subprocess.Popen(
        [TOOLS.worker, os.path.join(folder, "log"), "64"], stderr=subprocess.PIPE, text=True,
        env=os.environ | worker_environment(f"127.0.0.1:{port}", rank))
        for rank in range(WORKERS)]


def has_become(pid, user):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return f"\nUid:\t{user}\t" in f.read()


class Case(unittest.TestCase):
    def refused(self, command, pattern, **more):
        """Return: the figures of a refusal, which is said once."""
        rc, err = answer(command, **more)
        self.assertEqual(rc, 1, err)
        self.assertEqual(len(re.findall(pattern, err)), 1, err)
        return re.search(pattern, err).groups()

    def serves(self, server):
        """A job of this server, whose workers are outside, comes to its end."""
        with tempfile.TemporaryDirectory() as folder:
            workers = start_workers(server.port, folder)
            said = [worker.communicate(timeout=SECONDS)[1] for worker in workers]
            self.assertEqual([worker.returncode for worker in workers], [0] * WORKERS, said)
        self.assertEqual(server.process.wait(SECONDS), 0)
        server.log.close()


class InGroup(Case):
    def setUp(self):
        try:
            self.group = cgroup.Group(1000, "pids")
        except cgroup.Unavailable as e:
            self.skipTest(str(e))
        self.addCleanup(self.group.remove)

    def inside(self):
        return {"preexec_fn": self.group.enter}

    def test_a_server_is_refused_at_once_with_figures(self):
        self.group.limit(3)
        takes, more, name, has, most = self.refused(
            [TOOLS.musterd, *ANY_PORT, "-n", "3"], SERVER + IN_GROUP, **self.inside())
        self.assertEqual((int(more), int(has), int(most)), (2, 1, 3))
        self.assertRegex(name, self.group.name())
        self.assertGreater(int(takes), int(more))

    def test_what_is_said_to_be_enough_for_a_server_is(self):
        self.group.limit(1)
        takes = self.refused([TOOLS.musterd, *ANY_PORT, "-n", str(WORKERS)],
                             SERVER + IN_GROUP, **self.inside())[0]
        self.group.limit(1 + int(takes))
        self.serves(Server(TOOLS.musterd, "-n", str(WORKERS), "--commits", "20", **self.inside()))

    def test_the_threads_of_shards_count_where_the_length_is_known(self):
        self.group.limit(1)
        few, many = (int(self.refused(
            [TOOLS.musterd, *ANY_PORT, "-n", "3", "--elems", "10000000", "--shards", n],
            SERVER + IN_GROUP, **self.inside())[0]) for n in ("1", "8"))
        self.assertEqual(many - few, 7)

    def run_of(self, *program):
        return [TOOLS.muster, "run", "-n", str(WORKERS), *ANY_PORT, *CALM, "--grace", "60s",
                "--commits", "20", "--", *program]

    def test_a_run_is_refused_before_it_starts_a_process(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "started")
            self.group.limit(2 * WORKERS)
            takes, more, *_ = self.refused(self.run_of("touch", trace), RUN + IN_GROUP,
                                           **self.inside())
            self.assertGreaterEqual(int(takes), 2 * WORKERS + 1)
            self.assertEqual(int(more), 2 * WORKERS - 2)
            self.assertFalse(os.path.exists(trace))

    def test_what_is_said_of_a_run_is_hardly_less_than_it_takes(self):
        """Nothing is refused that would have worked: what a run takes is said within two."""
        self.group.limit(2 * WORKERS)
        takes = int(self.refused(self.run_of("true"), RUN + IN_GROUP, **self.inside())[0])
        with tempfile.TemporaryDirectory() as folder:
            self.group.limit(2 + takes + 2)
            rc, err = answer(self.run_of(TOOLS.worker, os.path.join(folder, "log"), "64"),
                             **self.inside())
            self.assertEqual(rc, 0, err)

    def refused_workers(self, server):
        """Return: what the workers of this server, none of which gets through, and it have said."""
        with tempfile.TemporaryDirectory() as folder:
            workers = start_workers(server.port, folder)
            said = [worker.communicate(timeout=SECONDS)[1] for worker in workers]
            self.assertNotIn(0, [worker.returncode for worker in workers], said)
        return "".join(said)

    def test_a_server_whose_limit_is_lowered_refuses_workers_until_it_is_raised(self):
        """It cannot start the first of the threads that a job takes."""
        server = Server(TOOLS.musterd, "-n", str(WORKERS), "--commits", "20", **self.inside())
        self.addCleanup(server.process.kill)
        self.group.limit(1)
        self.assertRegex(self.refused_workers(server),
                         r'cannot set up job "default" over shm: Resource temporarily unavailable: '
                         r"of processes and threads control group \S+ has 6, and its pids\.max is "
                         r"1: raise that")
        self.group.limit(100)
        self.serves(server)

    def test_a_server_that_cannot_start_all_threads_of_a_job_ends_it_with_a_sentence(self):
        """It has six, and a seventh closes what workers pass."""
        server = Server(TOOLS.musterd, "-n", str(WORKERS), **self.inside())
        self.addCleanup(server.process.kill)
        self.group.limit(7)
        said = self.refused_workers(server)
        self.assertEqual(server.process.wait(SECONDS), 1)
        server.log.seek(0)
        with server.log as log:
            why = re.search(r"cannot start the threads that move data \(1\): .* has 7, and its "
                            r"pids\.max is 7: raise .*", log.read())
        self.assertIsNotNone(why, said)
        self.assertIn(why[0], said)

    def test_a_limit_that_is_lowered_below_a_runs_processes_ends_it_with_a_sentence(self):
        """The server lowers it when it has started itself."""
        with tempfile.TemporaryDirectory() as folder:
            wrapper = os.path.join(folder, "musterd")
            with open(wrapper, "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\necho 11 > {self.group.outer}/{self.group.file}\n"
                        f'exec {TOOLS.musterd} "$@"\n')
            os.chmod(wrapper, 0o755)
            rc, err = answer(self.run_of("sleep", "60"), **self.inside(),
                             env=os.environ | {"MUSTER_MUSTERD": wrapper})
        self.assertEqual(rc, 1, err)
        self.assertRegex(err, r"cannot start sleep as rank \d: Resource temporarily unavailable: "
                              r"of processes and threads control group \S+ has \d+, and its "
                              r"pids\.max is 11: raise that")
        self.assertTrue(until(lambda: self.group.usage() == 0, SECONDS))

    def test_a_worker_without_room_for_its_thread_says_so(self):
        server = Server(TOOLS.musterd, "-n", "1")
        self.addCleanup(server.process.kill)
        self.group.limit(1)
        with tempfile.TemporaryDirectory() as folder:
            rc, err = answer([TOOLS.worker, os.path.join(folder, "log"), "64"], **self.inside(),
                             env=os.environ | {"MUSTER_SERVER": server.address})
        self.assertNotEqual(rc, 0)
        self.assertRegex(err, r"cannot start the heartbeat's thread: .* its pids\.max is 1: raise")
        server.stop()


class OfUser(Case):
    def setUp(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("only root, with setpriv, can be another user")
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        os.chown(self.home.name, NOBODY, NOBODY)
        rc, err = answer([*self.as_user(), TOOLS.musterd, "--version"])
        if rc != 0:
            self.skipTest(f"another user cannot execute {TOOLS.musterd}: {err.strip()}")

    def as_user(self):
        return ["env", f"XDG_RUNTIME_DIR={self.home.name}", "setpriv", f"--reuid={NOBODY}",
                f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]

    @staticmethod
    def allow(tasks):
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NPROC, (tasks, tasks))}

    def test_a_server_is_refused_at_once_with_figures(self):
        takes, more, has, most = self.refused(
            [*self.as_user(), TOOLS.musterd, *ANY_PORT, "-n", "3"], SERVER + OF_USER,
            **self.allow(4))
        self.assertEqual((int(more), int(has), int(most)), (3, 1, 4))
        self.assertGreater(int(takes), int(more))

    def test_others_of_this_user_count(self):
        sleeper = subprocess.Popen([*self.as_user(), "sleep", "600"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        self.assertTrue(until(lambda: has_become(sleeper.pid, NOBODY), SECONDS))
        figures = self.refused([*self.as_user(), TOOLS.musterd, *ANY_PORT, "-n", "3"],
                               SERVER + OF_USER, **self.allow(4))
        self.assertEqual([int(figure) for figure in figures[1:]], [2, 2, 4])

    def test_a_run_is_refused_before_it_starts_a_process(self):
        trace = os.path.join(self.home.name, "started")
        self.refused([*self.as_user(), TOOLS.muster, "run", "-n", str(WORKERS), *ANY_PORT,
                      "--", "touch", trace], RUN + OF_USER, **self.allow(2 * WORKERS))
        self.assertFalse(os.path.exists(trace))

    def test_what_is_said_of_a_run_is_hardly_less_than_it_takes(self):
        run = [*self.as_user(), TOOLS.muster, "run", "-n", str(WORKERS), *ANY_PORT, *CALM,
               "--grace", "60s", "--commits", "20", "--"]
        takes = int(self.refused([*run, "true"], RUN + OF_USER, **self.allow(3))[0])
        rc, err = answer([*run, TOOLS.worker, os.path.join(self.home.name, "log"), "64"],
                         **self.allow(2 + takes + 2))
        self.assertEqual(rc, 0, err)

    def test_root_is_not_bound(self):
        server = Server(TOOLS.musterd, "-n", "3", **self.allow(1))
        self.assertIsNone(server.process.poll())
        server.stop()


run_tests("muster", "musterd", "worker")
