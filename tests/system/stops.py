#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whatever ends a job, and at whatever moment of a save: each checkpoint is the version that it
names, to the bit. The versions are computed here, from the start, without any server.

usage: stops.py CASE --muster MUSTER --held-musterd HELD_MUSTERD --musterd MUSTERD --worker WORKER
       stops.py --list
"""
import functools
import json
import os
import re
import signal
import subprocess
import time

import numpy as np

import history
import optimizer_step
from base import CALM, CALM_STOP, HANG_S, Child, Job, cases, check, main, must, until
from checkpoints import Folder
from vectors import values

WORKERS, ELEMS = 2, 9001  # as many as two servers need
OPTIMIZERS = ["sgd:lr=0.1,momentum=0.9", "adam:lr=0.01", "lamb:lr=0.01"]
# The calls of fsync() of one save: for the part and its name, for the manifest and its name.
MOMENTS = {"part": 1, "its name": 2, "manifest": 3, "the manifest's name": 4}


class Versions:
    """What bsp makes of the gradients of by_version=1, each of one sample."""

    def __init__(self, optimizer):
        self.row, _, figures = optimizer.partition(":")
        self.figures = optimizer_step.figures(self.row, dict(f.split("=")
                                                             for f in figures.split(",")))
        self.version, self.states = 0, optimizer_step.NONE
        self.theta = values(ELEMS, 999, 0, 0)

    def to(self, version):
        """[parameters, states ...] of a version that is not older than the last."""
        one = np.float32(1)
        while self.version < version:
            self.version += 1
            gradients = [values(ELEMS, rank, 1, self.version) for rank in range(WORKERS)]
            mean = functools.reduce(np.add, gradients) / np.float32(WORKERS)
            step = optimizer_step.Step(self.figures, self.version, 1.0, one, one,
                                       lambda vector: history.norms_of(vector, 0))
            self.theta, self.states = optimizer_step.STEPS[self.row](step, self.theta, mean,
                                                                     self.states)
        return [self.theta, *self.states]


def is_exact(folder, optimizer):
    """Every checkpoint that is there is its version, made of all workers."""
    versions = Versions(optimizer)
    for version in folder.versions():
        made = folder.manifest(version)["values"]["contributions"]
        must(made == [1] * WORKERS, f"version {version} is made of {made}")
        saved = folder.vectors(version)
        expected = versions.to(version)
        must(len(saved) == len(expected), "it has", list(saved))
        for name, vector in zip(folder.manifest(version)["groups"], expected):
            must(np.array_equal(np.frombuffer(saved[name], np.float32), vector),
                 f"the checkpoint of version {version} has other {name} than that version")
    return True


class Saving(Job):
    """A job that saves all the time, on a disk that takes nothing from the @held-th fsync() on."""

    elems = ELEMS

    def __init__(self, a, folder, held, optimizer, servers=1, *options, worker=(),
                 stop=CALM_STOP):
        self.disk = os.path.join(folder.folder.name, "disk")
        os.mkdir(self.disk)
        for number in range(1, held):
            self.let(number)
        self.held, musterd = held, a.musterd
        a.musterd = a.held_musterd
        super().__init__(a, "--workers", str(WORKERS), *CALM, *stop, "--state", folder.state,
                         "--servers", str(servers), "--checkpoint-every", "20",
                         "--checkpoint-rate", "0", "--optimizer", optimizer, *options,
                         MUSTER_HELD=self.disk)
        a.musterd = musterd
        self.followers = [Child([musterd, "--join", self.address, *stop, "--state", folder.state])
                          for _ in range(servers - 1)]
        self.work_all(WORKERS, "by_version=1", "sleep_us=300", *worker)

    def let(self, name):
        with open(os.path.join(self.disk, str(name)), "w"):
            pass

    def children(self):
        return [*self.worker, *self.followers]

    def commits(self):
        asked = subprocess.run([self.a.muster, "status", "--json", "-", self.address],
                               capture_output=True, text=True)
        return json.loads(asked.stdout)["commits"] if asked.returncode == 0 else 0

    def saves(self):
        """The save that is held back is under way, and versions are made meanwhile."""
        asks = os.path.join(self.disk, f"{self.held}.asks")
        must(until(lambda: os.path.exists(asks), HANG_S), "nothing is saved:", self.server.said())
        more = self.commits() + 25
        must(until(lambda: self.commits() >= more, HANG_S), "the job waits for the disk")

    def ended(self):
        """(the server's exit status, what it said), when all are gone."""
        status, said = self.server.end(HANG_S)
        must(None not in [child.end(HANG_S)[0] for child in self.children()],
             "a process stays for ever")
        return status, said


def waits_for(said, before=""):
    """The version that a server says it waits for, and of what before that."""
    found = re.search(rf"ends when the checkpoint of version (\d+), the newest, is written{before}"
                      r".*; at the latest in 300 s \(--patience\), or at another signal", said)
    return int(found.group(1)) if found else None


def ends_while_saving(a, moment, optimizer, servers, term, finish):
    """@term, @finish: the server gets SIGTERM, an operator ends the job; or both at once."""
    folder = Folder(a)
    with Saving(a, folder, MOMENTS[moment], optimizer, servers) as job:
        job.saves()
        if finish:
            operator = Child([a.muster, "finish", "--timeout", f"{HANG_S}s", job.address])
            must(term or until(lambda: "is finished at version" in job.server.said(), HANG_S),
                 "the job does not end:", job.server.said())
        if term:
            job.server.process.terminate()
            must(until(lambda: "was ended by signal" in job.server.said(), HANG_S),
                 "the server does not hear of its signal")
        job.let("all")
        status, said = job.ended()
        if finish:
            must(operator.end(HANG_S)[0] is not None, "muster finish waits for ever")
    expected = 128 + signal.SIGTERM if term else 0
    must(status == expected, "exit status", status, said)
    newest = folder.versions()[-1]
    must(f"checkpoint of version {newest}: " in said, "it does not say what is saved:", said)
    if term and not finish:
        must(waits_for(said, r", after that of version \d+, begun .* s ago") == newest,
             "nor what it waits for:", said)
    check(f"{optimizer}, {servers} servers, ended while the {moment} is written: version {newest} "
          "is exact", is_exact(folder, optimizer))


def by_a_signal(a):
    """At every moment, with every one of these optimisers, and with each number of servers."""
    moments = list(MOMENTS) * 2
    for optimizer in OPTIMIZERS:
        for servers in 1, 2:
            ends_while_saving(a, moments.pop(0), optimizer, servers, True, False)


def by_an_operator(a):
    for moment in MOMENTS:
        ends_while_saving(a, moment, OPTIMIZERS[0], 1, False, True)


def by_both(a):
    for moment in MOMENTS:
        ends_while_saving(a, moment, OPTIMIZERS[0], 1, True, True)


def run_is_interrupted(a):
    """By a signal to muster run, after which rank 0 still goes on. Without the other worker it
    makes no version."""
    folder = Folder(a)
    log = os.path.join(folder.folder.name, "log")
    command = [a.muster, "run", "-n", str(WORKERS), *CALM, "--quiet", "--listen", "127.0.0.1:0",
               "--log-level", "info", "--state", folder.state, "--checkpoint-every", "20",
               "--optimizer", OPTIMIZERS[0], "--grace", "1s", "--", "sh", "-c",
               'test "$MUSTER_RANK" != 0 || trap "" TERM; exec "$@"', "sh", a.worker, log,
               str(ELEMS), "by_version=1", "sleep_us=300"]
    run = Child(command)
    try:
        must(until(lambda: len(folder.versions()) > 1, HANG_S), "nothing is saved:", run.said())
        run.signal(signal.SIGTERM)
        status, said = run.end(HANG_S)
    finally:
        run.kill()
    check("muster run ends by its signal", status == 128 + signal.SIGTERM)
    check("musterd is told first", "musterd ends the job and saves it" in said)
    check("and what it has saved is exact", is_exact(folder, OPTIMIZERS[0]))


def run_and_its_server_are_signalled(a):
    """As a service manager does it. That is no second signal, which would end the save."""
    for first in "musterd", "muster run":
        folder = Folder(a)
        disk = os.path.join(folder.folder.name, "disk")
        os.mkdir(disk)
        for number in range(1, 5):
            with open(os.path.join(disk, str(number)), "w"):
                pass
        run = Child([a.muster, "run", "-n", str(WORKERS), *CALM, "--quiet", "--listen",
                     "127.0.0.1:0", "--log-level", "info", "--state", folder.state,
                     "--checkpoint-every", "20", "--checkpoint-rate", "0", "--optimizer",
                     OPTIMIZERS[0], "--", a.worker, os.path.join(folder.folder.name, "log"),
                     str(ELEMS), "by_version=1", "sleep_us=300"],
                    MUSTER_MUSTERD=a.held_musterd, MUSTER_HELD=disk)
        try:
            must(until(lambda: os.path.exists(os.path.join(disk, "5.asks")), HANG_S),
                 "nothing is saved:", run.said())
            children = subprocess.run(["ps", "--ppid", str(run.process.pid), "-o", "pid=,comm="],
                                      capture_output=True, text=True).stdout.splitlines()
            musterd = next(int(pid) for pid, name in map(str.split, children)
                           if name == "held_musterd")
            for pid in sorted([musterd, run.process.pid], reverse=first == "musterd"):
                os.kill(pid, signal.SIGTERM)
            must(until(lambda: waits_for(run.said()), HANG_S), "it waits for nothing:", run.said())
            time.sleep(2)  # longer than a server stays after a second signal
            with open(os.path.join(disk, "all"), "w"):
                pass
            status, said = run.end(HANG_S)
        finally:
            run.kill()
        must(status == 128 + signal.SIGTERM, "exit status", status)
        check(f"after signals to both, {first} first, the newest version is saved",
              folder.versions()[-1] == waits_for(said) and is_exact(folder, OPTIMIZERS[0]))


def all_servers(a):
    """Leader and follower are stopped together, and the disk takes longer than a follower waits for
    a leader that goes on."""
    for moment in "part", "manifest":
        folder = Folder(a)
        with Saving(a, folder, MOMENTS[moment], OPTIMIZERS[0], 2, stop=()) as job:
            job.saves()
            job.server.process.terminate()
            job.followers[0].signal(signal.SIGTERM)
            must(until(lambda: waits_for(job.server.said()), HANG_S), "it waits for nothing")
            time.sleep(6)
            job.let("all")
            status, said = job.ended()
        check(f"both stopped while the {moment} is written: the newest version is saved",
              status == 128 + signal.SIGTERM and folder.versions()[-1] == waits_for(said)
              and is_exact(folder, OPTIMIZERS[0]))


def after_the_end(a):
    """The job is over, and its last version is being written."""
    folder = Folder(a)
    with Saving(a, folder, MOMENTS["part"], OPTIMIZERS[0], 1, "--commits", "60") as job:
        must(until(lambda: "is finished at version 60" in job.server.said(), HANG_S),
             "the job does not end:", job.server.said())
        job.server.process.terminate()
        must(until(lambda: waits_for(job.server.said()) == 60, HANG_S),
             "it does not say what it waits for:", job.server.said())
        job.let("all")
        job.ended()
    check("a signal after the end of the job waits for its last version",
          folder.versions()[-1] == 60 and is_exact(folder, OPTIMIZERS[0]))


def by_two_signals(a):
    """An operator who signals twice does not wait for the disk."""
    folder = Folder(a)
    with Saving(a, folder, MOMENTS["manifest"], OPTIMIZERS[0]) as job:
        job.saves()
        job.server.process.terminate()
        must(until(lambda: waits_for(job.server.said()), HANG_S), "it waits for nothing")
        job.server.process.terminate()
        status, said = job.ended()
    check("the server ends", status == 128 + signal.SIGTERM)
    check("and says what is not complete", "that was being written is not complete" in said)
    check("there is no checkpoint", folder.versions() == [])


def with_all_that_is_kept(a):
    """Results of 16 bits, an average, two shards: what is saved is what a job has that nobody has
    stopped."""
    options = ["--average", "0.6", "--shards", "2", "--optimizer", "adam:lr=0.01"]
    worker = ["result_type=bf16", "type=bf16"]
    folder, whole = Folder(a), Folder(a)
    with Saving(a, folder, MOMENTS["its name"], "adam:lr=0.01", 1, *options[:4],
                worker=worker) as job:
        job.saves()
        job.server.process.terminate()
        must(until(lambda: waits_for(job.server.said()), HANG_S), "it waits for nothing")
        job.let("all")
        job.ended()
    newest = folder.versions()[-1]
    whole.run(newest, *options, worker=["by_version=1", *worker], elems=ELEMS, workers=WORKERS)
    check(f"version {newest} has the bits of a job that nobody has stopped",
          folder.vectors(newest) == whole.vectors(newest))


CASES = cases(by_a_signal, by_an_operator, by_both, run_is_interrupted,
              run_and_its_server_are_signalled, all_servers, after_the_end, by_two_signals,
              with_all_that_is_kept)

if __name__ == "__main__":
    # muster run waits two seconds for its server, and a follower five for its leader.
    main(CASES, "muster", "musterd", "held-musterd", "worker",
         clock=("run_is_interrupted", "run_and_its_server_are_signalled", "all_servers"))
