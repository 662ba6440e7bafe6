# SPDX-License-Identifier: MIT
"""A recorded job of examples/digits, for what happens to it while it runs."""
import csv
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Job:
    """Each gradient takes a sleep of step_ms. Times are in us, from the start of the job, as in its
    recording."""

    def __init__(self, build, folder, workers, step_ms, *options):
        self.build, self.record = build, os.path.join(folder, "record.csv")
        self.run = subprocess.Popen(
            [build / "tools/muster", "run", "-n", str(workers), "--listen", "127.0.0.1:0",
             "--record", self.record, *options, "--", build / "client/examples/digits",
             "--product", "plain", "--hidden", "16", "--test-every", "0", "--delay",
             f"const:{step_ms}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = ""
        for line in self.run.stderr:
            said += line
            if re.search(r" starts: ", line):
                break
        else:
            sys.exit(f"the job does not start:\n{said}")
        self.began = time.monotonic()
        self.address = re.search(r"listens on (\S+): \d+ workers", said)[1]
        # The writer of that pipe must never wait.
        self.drain = subprocess.Popen(["cat"], stdin=self.run.stderr, stdout=subprocess.DEVNULL)

    def now(self):
        return (time.monotonic() - self.began) * 1e6

    def worker(self, rank):
        """Return: the process of that rank."""
        wanted = f"MUSTER_RANK={rank}".encode()
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or wanted not in (
                        entry / "environ").read_bytes().split(b"\0"):
                    continue
                stat = (entry / "stat").read_text(encoding="utf-8")
                if int(stat.rsplit(")", 1)[1].split()[1]) == self.run.pid:
                    return int(entry.name)
            except OSError:
                continue  # it has ended meanwhile
        sys.exit(f"there is no worker of rank {rank}")

    def rows(self):
        """Waits for the job's end. Return: its recording."""
        self.run.wait()
        self.drain.wait()
        with open(self.record, newline="", encoding="ascii") as f:
            return list(csv.DictReader(f))
