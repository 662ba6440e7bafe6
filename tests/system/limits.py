# SPDX-License-Identifier: MIT
"""What a process may have open is known before a job begins: what does not fit is refused at once,
with figures, and what is said to be enough is."""
import os
import re
import resource
import subprocess
import tempfile
import unittest

from base import TOOLS, run_tests, until, worker_environment
from server import SECONDS, Server

WORKERS = 20
REFUSED = (r"(\d+) workers need (\d+) file descriptors here \((\d+) each, (\d+) of the server's "
           r"own, (\d+) that are open already\), and (\d+) are allowed: raise the hard limit .*, "
           r"or take fewer workers")


def allow(files):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


def files_of(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0  # it is just ending


class Descriptors(unittest.TestCase):
    def refused(self, workers, files, *options):
        """Return: the figures of the refusal."""
        done = subprocess.run(
            [TOOLS.musterd, "--listen", "127.0.0.1:0", "-n", str(workers), *options], check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=SECONDS, preexec_fn=allow(files))
        self.assertEqual(done.returncode, 1, done.stderr)
        found = re.search(REFUSED, done.stderr)
        self.assertIsNotNone(found, done.stderr)
        return [int(figure) for figure in found.groups()]

    def test_too_few_are_refused_at_once_with_figures(self):
        workers, need, each, own, are_open, allowed = self.refused(1000, 1024)
        self.assertEqual((workers, each, allowed), (1000, 4, 1024))
        self.assertEqual(need, workers * each + own + are_open)

    def start_workers(self, server, folder, *words):
        return [subprocess.Popen(
            [TOOLS.worker, os.path.join(folder, "log"), "64", *words],
            env=os.environ | worker_environment(server.address, rank)) for rank in range(WORKERS)]

    def test_a_worker_takes_as_many_as_is_said(self):
        """Besides them the data side opens five of its own, and a few for a moment. The job goes on
        until it has been looked at with all workers at work."""
        each = self.refused(WORKERS, 64)[2]
        server = Server(TOOLS.musterd, "-n", str(WORKERS))
        before = most = files_of(server.process.pid)
        with tempfile.TemporaryDirectory() as folder:
            log, enough = os.path.join(folder, "log"), os.path.join(folder, "enough")
            workers = self.start_workers(server, folder, f"0:until={enough}", "0:finish=1")

            def has_begun(rank):
                path = f"{log}.{rank}.1"
                return os.path.exists(path) and os.path.getsize(path) > 1000

            def looked():
                nonlocal most
                most = max(most, files_of(server.process.pid))
                return all(map(has_begun, range(WORKERS)))

            self.assertTrue(until(looked, SECONDS))
            for _ in range(100):
                looked()
            with open(enough, "w", encoding="utf-8"):
                pass
            while server.process.poll() is None:
                looked()
            self.assertEqual([worker.wait(SECONDS) for worker in workers], [0] * WORKERS)
        self.assertEqual(server.process.wait(SECONDS), 0)
        server.log.close()
        self.assertAlmostEqual(most - before, WORKERS * each + 8, delta=8)

    def test_what_is_said_to_be_enough_is(self):
        """A server that has not one more than it asked for serves all of its workers, while
        strangers hold all the places that they can have."""
        need = self.refused(WORKERS, 64)[1]
        self.assertEqual(self.refused(WORKERS, need - 1)[1], need)
        # It inherits one more here, which it tells its port by, and closes.
        server = Server(TOOLS.musterd, "-n", str(WORKERS), "--commits", "20",
                        preexec_fn=allow(need + 1))
        strangers = [server.connect() for _ in range(100)]
        with tempfile.TemporaryDirectory() as folder:
            workers = self.start_workers(server, folder)
            self.assertEqual([worker.wait(SECONDS) for worker in workers], [0] * WORKERS)
        for stranger in strangers:
            stranger.close()
        self.assertEqual(server.process.wait(SECONDS), 0)
        server.log.close()

    def test_a_budget_says_the_same(self):
        _, need, each, own, are_open, _ = self.refused(WORKERS, 64)
        out = subprocess.run([TOOLS.musterd, "-n", str(WORKERS), "--budget", "4K"], check=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
        row = next(line for line in out.splitlines() if line.split()[0] == "0")
        self.assertEqual(int(row.split()[-1]), WORKERS * each + own)
        may = re.search(r"files that a server may open here: (\d+), of which (\d+) are open", out)
        self.assertEqual(int(may[1]), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        self.assertEqual(need - WORKERS * each - own, are_open)

    def test_a_run_ends_before_it_starts_a_worker(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "started")
            done = subprocess.run(
                [TOOLS.muster, "run", "-n", "1000", "--", "touch", trace],
                check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, timeout=SECONDS, preexec_fn=allow(1024))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(len(re.findall(REFUSED, done.stderr)), 1, done.stderr)
            self.assertNotIn("not started", done.stderr)
            self.assertFalse(os.path.exists(trace))


run_tests("muster", "musterd", "worker")
