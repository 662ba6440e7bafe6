# SPDX-License-Identifier: MIT
"""A job in the machines of a Lab: its server, its workers, and proof of its history."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from checks import Disproved, Failed, check, until
from lab import LabError

SYSTEM = pathlib.Path(__file__).resolve().parents[1] / "system"
PORT = 17077
LATE = 2  # a verdict, as in muster.h
COUNTED = 1
# Unless a job is about leases, which it then has after this, nobody is taken for dead because an
# emulated processor has stood still.
CALM = ["--lease", "30s"]


def make_keys(tools, machines):
    """An authority and a certificate for each role. Return: the folder that each machine has."""
    machines[0].run([tools.muster, "key", "new", "/lab/keys"])
    for node in machines.nodes[1:]:
        shutil.copytree(machines[0].share / "keys", node.share / "keys")
    return "/lab/keys"


def identity(keys, role):
    """Options of a program that proves the role; without keys nobody has to prove anything."""
    if keys is None:
        return ["--insecure"]
    return ["--tls-ca", f"{keys}/ca.pem", "--tls-cert", f"{keys}/{role}.pem",
            "--tls-key", f"{keys}/{role}.key"]


class Job:
    """One server in node 0, and workers anywhere. tools has the paths of programs."""

    numbers = 0
    keys = None
    transport, lease = "verbs", CALM

    def __init__(self, tools, lab, *options, listen=True, keys=None):
        """keys: as of make_keys(), for control connections over TLS."""
        Job.numbers += 1
        self.tools, self.lab, self.name = tools, lab, f"job{Job.numbers}"
        host = "node0-control" if lab.count > 1 else "127.0.0.1"
        self.address = f"{host}:{PORT}"
        self.workers = {}
        self.keys = keys
        self.server = lab[0].start([tools.musterd, "--listen", self.address,
                                    *identity(keys, "server"), "--transport", self.transport,
                                    *self.lease, *options])
        if listen:
            self.server.wait_output("listening on")

    def start(self, rank, node, command, **env):
        """Any worker."""
        settings = {"MUSTER_SERVER": self.address, "MUSTER_RANK": str(rank)} | env
        if self.keys is not None:
            settings |= {"MUSTER_TLS_CA": f"{self.keys}/ca.pem",
                         "MUSTER_TLS_CERT": f"{self.keys}/worker.pem",
                         "MUSTER_TLS_KEY": f"{self.keys}/worker.key"}
        self.workers[rank] = self.lab[node].start(list(map(str, command)), settings)
        return self.workers[rank]

    def start_worker(self, rank, node, *options, elems=1237, **env):
        return self.start(rank, node, [self.tools.worker, f"/lab/{self.name}", elems, *options],
                          **env)

    def lines(self, rank, word="outcome"):
        """The lines that a test worker has logged so far and that begin so, each as its words."""
        words = []
        for node in self.lab.nodes:
            for path in node.share.glob(f"{self.name}.{rank}.*"):
                text = path.read_text()
                whole = text[:text.rfind("\n") + 1].splitlines()
                words += [line.split() for line in whole if line.startswith(word)]
        return words

    def pushes(self, rank):
        return len(self.lines(rank, "push"))

    def verdicts(self, rank):
        """The verdicts of a test worker, in order; of contributions only."""
        return [int(words[1]) for words in self.lines(rank) if int(words[1])]

    def newest(self, rank):
        seen = self.lines(rank)
        return int(seen[-1][4]) if seen else 0

    def wait_version(self, rank, version, seconds=120):
        try:
            return until(lambda: self.newest(rank) >= version, seconds,
                         f"rank {rank} sees version {version}")
        except Failed as e:
            nodes = "\n".join(node.describe() for node in self.lab.nodes)
            raise Failed(f"{e}; it saw {self.newest(rank)}; {self.said()}\n{nodes}") from None

    def until_enough(self):
        """Words for workers of a job that goes on until enough()."""
        return [f"0:until=/lab/{self.name}-enough", "0:finish=1"]

    def enough(self):
        for node in self.lab.nodes:
            (node.share / f"{self.name}-enough").touch()

    def said(self):
        each = [("musterd", self.server), *((f"rank {r}", w) for r, w in self.workers.items())]
        return "\n".join(f"--- {name}, {p.status}\n{p.output.strip()}" for name, p in each)

    def end(self, expected, server=0, seconds=120, living=None):
        """Waits for all to end; expected is the status of each rank. living: ranks to wait for."""
        end = time.monotonic() + seconds
        try:
            got = self.server.wait(seconds)
            codes = {rank: worker.wait(max(1, end - time.monotonic()))
                     for rank, worker in self.workers.items() if living is None or rank in living}
        except LabError as e:
            raise Failed(f"{e}\n{self.said()}") from None
        check(f"the server ends with {server}", got == server, self.said())
        check(f"the workers end with {expected}", codes == expected, self.said())
        return self

    def prove(self, script, words):
        """What is on the disk of every node, even of one that is off. words: of the script, by the
        path of the logs."""
        with tempfile.TemporaryDirectory() as folder:
            for node in self.lab.nodes:
                for path in node.share.glob(f"{self.name}.*"):
                    shutil.copy(path, folder)
            run = subprocess.run(
                [sys.executable, script, *words(os.path.join(folder, self.name))],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if run.returncode != 0:
            raise Disproved(f"NOT SO: {run.stdout.strip()}\n{self.said()}")
        print(run.stdout.strip(), flush=True)

    def check_history(self, *options):
        self.prove(SYSTEM / "check_history.py", lambda log: [log, *options])
