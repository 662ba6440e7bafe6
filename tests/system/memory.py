# SPDX-License-Identifier: MIT
"""What musterd says that a job will take is what it then takes, and no more than it is allowed."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

from server import Server

ELEMS = 1 << 19  # 2 MiB in f32
WORKERS = 10
VECTOR = 4 * ELEMS
SESSION = 3 * VECTOR  # two slots, and where results are copied to
SMALL = 1 << 20  # headers and records, colours, queues
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MUSTERD = CROWD = ""


def size(text):
    value, unit = text.split()
    return float(value) * UNITS[unit]


def resident(pid):
    """Bytes, those that are shared with its workers included."""
    with open(f"/proc/{pid}/status") as f:
        return 1024 * int(re.search(r"^VmRSS:\s+(\d+) kB", f.read(), re.M)[1])


def announced(log):
    said = re.search(r"memory: (.+?) for \d+ workers, (.+?) for sums and versions, of (.+)", log)
    return size(said[1]) + size(said[2])


class Memory(unittest.TestCase):
    def run_job(self, *options):
        """Return: musterd's log, and its resident memory with all commits but the last made."""
        with tempfile.TemporaryDirectory() as folder:
            server = Server(MUSTERD, "-n", str(WORKERS), "--commits", "12", *options)
            owner = "workers" if "workers" in options else "servers"
            workers = [subprocess.Popen(
                [CROWD, os.path.join(folder, "log"), str(ELEMS), f"owner={owner}"],
                env=os.environ | {"MUSTER_SERVER": f"127.0.0.1:{server.port}",
                                  "MUSTER_RANK": str(rank)}) for rank in range(WORKERS)]
            most = 0
            while server.process.poll() is None:
                try:
                    most = max(most, resident(server.process.pid))
                except (OSError, TypeError):
                    break  # it is just ending
                time.sleep(0.01)
            for worker in workers:
                worker.wait(60)
            server.process.wait(60)
            server.log.seek(0)
            with server.log as log:
                return log.read(), most

    def check_job(self, vectors, *options):
        """Apart from its sessions the server is to take so many vectors."""
        log, most = self.run_job(*options)
        self.assertAlmostEqual(announced(log), WORKERS * SESSION + vectors * VECTOR, delta=SMALL)
        self.assertLessEqual(most, announced(log), log)
        # What is filled in each step is really there: a slot of each worker, and some versions.
        self.assertGreater(most, (WORKERS + 2) * VECTOR, log)

    def test_bsp_takes_what_it_says(self):
        """4 versions, momentum, the sum of one group."""
        self.check_job(4 + 1 + 1, "--policy", "bsp")

    def test_history_and_groups_summed_early_are_in_it(self):
        """4 versions and 16 of history, the sums of two groups."""
        self.check_job(20 + 2, "--policy", "bsp", "--owner", "workers", "--group", "4")

    def test_folds_are_in_it(self):
        """4 versions, momentum, half of the quorum in folds."""
        self.check_job(4 + 1 + 10, "--policy", "kbatchasync:20")

    def test_without_room_for_early_sums_the_job_runs_without_them(self):
        """Slots and the private area of 10 workers take 60 MiB, versions and momentum 10, the sums
        of two groups another 4."""
        wide, _ = self.run_job("--policy", "bsp", "--group", "4")
        tight, _ = self.run_job("--policy", "bsp", "--group", "4", "--memory", "72M")
        self.assertGreater(announced(wide), 72 << 20)
        self.assertLessEqual(announced(tight), 72 << 20)

    def test_what_does_not_fit_is_refused_with_figures(self):
        server = Server(MUSTERD, "-n", str(WORKERS), "--memory", "50M")
        worker = subprocess.run(
            [CROWD, "/dev/null", str(ELEMS)], stderr=subprocess.PIPE, text=True, check=False,
            env=os.environ | {"MUSTER_SERVER": f"127.0.0.1:{server.port}", "MUSTER_RANK": "0"})
        server.process.terminate()
        server.process.wait(10)
        server.log.close()
        self.assertNotEqual(worker.returncode, 0)
        self.assertRegex(worker.stderr, r"no memory for job .* need .* more than --memory 50")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--musterd", required=True)
    p.add_argument("--crowd", required=True)
    a, rest = p.parse_known_args()
    MUSTERD, CROWD = a.musterd, a.crowd
    unittest.main(argv=[sys.argv[0], *rest])
