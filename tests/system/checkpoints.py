#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checkpoints of real jobs: how they are made, what they survive, and how a job goes on from one.

usage: checkpoints.py CASE --muster MUSTER --musterd MUSTERD --worker WORKER
       checkpoints.py --list [--threads]
"""
import functools
import glob
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile

import numpy as np

from base import (CALM, CALM_STOP, HANG_S, Child, Job, cases, check, main, must, until,
                  worker_environment)
from server import Server
from tool_checkpoint import crc32c
from vectors import values

WORKERS = 3


class Folder:
    """A directory of checkpoints, and jobs that use it."""

    def __init__(self, a):
        self.a = a
        self.folder = tempfile.TemporaryDirectory(prefix="muster-test-")
        self.state = os.path.join(self.folder.name, "state")

    def run(self, commits, *options, worker=(), expect=0, elems=20001, workers=WORKERS):
        """A job that writes its checkpoints there. Return: what it said."""
        command = [self.a.muster, "run", "-n", str(workers), *CALM, "--grace", "60s",
                   "--quiet", "--listen", "127.0.0.1:0",  # else a taken port makes a second start
                   "--commits", str(commits), "--state", self.state, *options, "--",
                   self.a.worker, os.path.join(self.folder.name, "log"), str(elems), *worker]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        said = done.stdout + done.stderr
        must(done.returncode == expect, f"{commits} commits: exit {done.returncode}:", said)
        return said

    def versions(self):
        """The versions that have a manifest."""
        return sorted(int(re.search(r"v(\d+)\.json$", path).group(1))
                      for path in glob.glob(os.path.join(self.state, "v*.json")))

    def manifest(self, version):
        with open(os.path.join(self.state, f"v{version:010}.json")) as f:
            return json.load(f)

    def vectors(self, version):
        """The bytes of each tensor, whatever files they are in."""
        whole = {}
        for part in self.manifest(version)["parts"]:
            with open(os.path.join(self.state, part["file"]), "rb") as f:
                length, = struct.unpack("<Q", f.read(8))
                header, data = json.loads(f.read(length)), f.read()
            for name, t in header.items():
                if name != "__metadata__":
                    whole[name] = whole.get(name, b"") + data[slice(*t["data_offsets"])]
        return whole


# ---- going on ----

BITS = [
    # options of the job, of the workers, servers before and after
    (["--optimizer", "adam:lr=0.01"], [], 1, 1),
    (["--optimizer", "adamw:lr=0.01", "--lr-schedule", "warmup:50+stairs:0.5,30"],
     ["result_type=bf16", "type=bf16"], 3, 2),
    (["--optimizer", "sgd:lr=0.1,momentum=0.9,clip=3,decay=0.01", "--shards", "2"],
     ["tensors=7", "scales=1"], 2, 3),
    (["--optimizer", "rmsprop:lr=0.01", "--shards", "3"], ["result_type=f16"], 1, 3),
    (["--optimizer", "lamb:lr=0.01"], ["tensors=5"], 2, 1),
    (["--optimizer", "adagrad:lr=0.1"], ["result_type=f16"], 1, 2),
    (["--optimizer", "lars:lr=0.1"], ["tensors=6"], 3, 1),
    (["--optimizer", "outer", "--policy", "local:1"], [], 2, 3),
    (["--optimizer", "adam:lr=0.01", "--average", "0.6", "--shards", "2"],
     ["result_type=bf16"], 2, 3),
]


def goes_on_bit_for_bit(a):
    """Whatever the optimiser keeps, and also with another number of servers."""
    for options, worker, before, after in BITS:
        whole, cut = Folder(a), Folder(a)
        worker = ["by_version=1", *worker]
        whole.run(24, "--servers", str(before), *options, worker=worker)
        cut.run(11, "--servers", str(before), *options, worker=worker)
        cut.run(24, "--servers", str(after), "--resume", cut.state, *options, worker=worker)
        must(cut.manifest(24)["samples"] == whole.manifest(24)["samples"] == 24 * WORKERS,
             "the samples do not go on")
        check(f"{options[1:]}: version 24 has the same bits, {before} servers and then {after}",
              whole.vectors(24) == cut.vectors(24))


def workers_may_offer_nothing(a):
    """The servers have the state; the table of tensors comes from a worker."""
    folder = Folder(a)
    options = ["--optimizer", "sgd:lr=0.1,momentum=0.9"]
    worker = ["by_version=1", "tensors=4", "scales=1"]
    folder.run(5, *options, worker=worker)
    folder.run(9, "--resume", folder.state, *options, worker=[*worker, "start=0"])
    again = Folder(a)
    again.run(9, *options, worker=worker)
    check("a job whose workers offer no state goes on with the scales of its tensors",
          folder.vectors(9) == again.vectors(9))


def workers_own(a):
    """Servers have no parameters then: the manifest is the checkpoint."""
    folder = Folder(a)
    worker = ["owner=workers", "by_version=1"]
    folder.run(6, "--owner", "workers", worker=worker)
    must(folder.manifest(6)["parts"] == [], "a file of vectors that nobody has")
    folder.run(10, "--owner", "workers", "--resume", folder.state, worker=worker)
    check("versions go on where workers own", folder.versions()[-1] == 10)


def steps_of_bsp(theta, momentum, versions, workers):
    """What sgd:lr=0.5,momentum=0.5 makes of the gradients of by_version=1, each of one sample."""
    half = np.float32(0.5)
    for version in versions:
        gradients = [values(len(theta), rank, 1, version + 1) for rank in range(workers)]
        mean = functools.reduce(np.add, gradients) / np.float32(workers)
        momentum = half * momentum + mean
        theta = theta - half * momentum
    return theta, momentum


def another_number_of_workers(a):
    """Fewer, and then more than ever: the mean is of those there are, and all else goes on."""
    folder = Folder(a)
    options = ["--optimizer", "sgd:lr=0.5,momentum=0.5", "--resume", folder.state, "--or-begin"]
    samples, version, incarnations, before, workers_before = 0, 0, [], None, 0
    for commits, workers in ((7, 3), (12, 2), (18, 5)):
        said = folder.run(commits, *options, "--log-level", "info", worker=["by_version=1"],
                          workers=workers)
        m = folder.manifest(commits)
        samples += (commits - version) * workers
        incarnations = [1 + sum(incarnations[rank:rank + 1]) for rank in range(workers)]
        must(m["workers"] == workers and m["samples"] == samples, "the manifest has", m)
        must(m["values"]["incarnations"] == incarnations, "sessions are counted as",
             m["values"]["incarnations"], "must be", incarnations)
        after = [np.frombuffer(folder.vectors(commits)[name], np.float32)
                 for name in ("parameters", "momentum")]
        if version > 0:
            expected = steps_of_bsp(*before, range(version, commits), workers)
            check(f"version {commits} of {workers} workers is to the bit what follows from "
                  f"version {version}",
                  all(np.array_equal(x, y) for x, y in zip(after, expected)))
            check("and the log says how many there are", re.search(
                rf"workers are {workers} from now on, and were {workers_before}", said))
        before, version, workers_before = after, commits, workers


def under_policies_that_do_not_wait(a):
    """Every contribution is a version. The workers of the second job have gone before its last
    version is saved or have not, so that nothing is said here of their clocks."""
    folder = Folder(a)
    for commits in 30, 60:
        folder.run(commits, "--policy", "ssp:3", "--resume", folder.state, "--or-begin",
                   "--checkpoint-every", "7")
    m = folder.manifest(60)
    check("an asynchronous job goes on", m["samples"] == 60)
    check("its ranks have their second sessions", m["values"]["incarnations"] == [2] * WORKERS)


def momentum_goes_on(a):
    """What is left out of the optimiser follows the policy of the first start alone."""
    for first, then, optimizer, said_then in (
            ("async", "bsp", "sgd:lr=0.1,momentum=0", "the optimiser is sgd:lr=0.1,momentum=0, as"),
            ("bsp", "async", "sgd:lr=0.1,momentum=0.9",
             "the momentum of 0.9 of the optimiser sgd stays")):
        folder = Folder(a)
        folder.run(10, "--policy", first)
        said = folder.run(20, "--policy", then, "--resume", folder.state, "--log-level", "info")
        kept = [folder.manifest(version)["optimizer"] for version in (10, 20)]
        must(said_then in said, f"{first}, then {then}:", said)
        check(f"{first} begins with {optimizer}, and {then} goes on with it",
              kept == [optimizer] * 2)


def adaptive_policies_go_on(a):
    """Sync-Switch has changed before the checkpoint, and does not begin with bsp again."""
    folder = Folder(a)
    policy = ["--policy", "syncswitch:0.5", "--samples", "60", "--log-level", "info"]
    said = folder.run(0, *policy)
    must("async is in force" in said or "now async" in said, "it does not change:", said)
    last = folder.versions()[-1]
    said = folder.run(last + 9, *policy[:2], "--samples", "90", "--log-level", "info", "--resume",
                      folder.state)
    check("its controller goes on where it was", "the policy goes on where it was" in said)
    values = folder.manifest(folder.versions()[-1])["values"]
    check("and is done with bsp", values["syncswitch.done"] == 1 and values["syncswitch.at"] < 45)


def adaptive_policies_begin_anew(a):
    """Losses of one name have no ratio to those of another, and bsp keeps no figures. The job goes
    on, and one warning says that its policy does not."""
    folder = Folder(a)
    for commits, policy in ((5, "bsp"), (10, "adasync:kasync,2,1,loss=one"),
                            (15, "adasync:kasync,2,1,loss=other")):
        said = folder.run(commits, "--policy", policy, "--resume", folder.state, "--or-begin",
                          "--log-level", "info")
        must("the policy goes on" not in said, policy, "goes on:", said)
        warned = [line for line in said.splitlines() if "the policy begins anew: " in line]
        if commits == 5:
            must(not warned, "a job that has nothing to go on from warns:", said)
        elif commits == 10:
            check("after bsp an adaptive policy begins anew", len(warned) == 1 and
                  "version 5 was written under bsp" in warned[0] and
                  '"adasync.wanted"' in warned[0])
        else:
            check("so does one that follows another loss", len(warned) == 1 and
                  "written under adasync:kasync,2,1,loss=one, and adasync:kasync,2,1,loss=other "
                  "cannot go on" in warned[0])
    said = folder.run(20, "--policy", "bsp", "--resume", folder.state)
    check("a fixed policy does not warn", "begins anew" not in said)


def figures_at_their_ends_go_on(a):
    """Samples and losses as large as muster.h lets them be, and as small, through checkpoints of a
    job that goes on from each. 1025 versions of the largest weight are more samples than a job
    counts."""
    folder = Folder(a)
    most, least = 2.0 ** 53, 2.0 ** -53
    policy = ["--policy", "adasync:kbatchsync,1,3"]
    begun = {}
    for commits, weight, told in ((4, most, 1e308), (8, least, 5e-324), (12, most, -1e308),
                                  (1100, most, 1.7e308), (1104, 1, 1)):
        worker = [f"weight={weight!r}", f"told={told!r}"]
        said = folder.run(commits, *policy, "--resume", folder.state, "--or-begin", "--log-level",
                          "info", elems=16, worker=worker)
        must(not begun or f"goes on from version {max(begun)}" in said,
             f"{commits} commits: it does not go on:", said)
        must("begins anew: version" not in said and "cannot be used" not in said,
             f"{commits} commits:", said)
        begun[commits] = folder.manifest(folder.versions()[-1])
        counted = begun[commits]["values"]["samples"]
        must(begun[commits]["samples"] == int(counted) and 0 < counted <= 2.0 ** 63,
             "samples", begun[commits])
    check("what a job counts ends at 2^63", begun[1104]["values"]["samples"] == 2.0 ** 63)
    listed = subprocess.run([a.muster, "checkpoint", folder.state, "--verify"],
                            capture_output=True, text=True)
    check("and muster checkpoint says of the last one what --resume does",
          listed.returncode == 0 and "verified" in listed.stdout)


def figures_that_no_job_has_are_named(a):
    """The manifest is in order but for one figure in it. The older one is taken, and both programs
    say why."""
    folder = Folder(a)
    worker = ["by_version=1"]
    folder.run(9, "--checkpoint-every", "5", worker=worker)
    path = os.path.join(folder.state, "v0000000009.json")
    with open(path, "rb") as f:
        text = f.read()
    kept = re.sub(rb'("values": \{\s*"samples": )[^,]*', rb"\g<1>1e300",
                  text[:text.index(b'  "crc32c": "')])
    must(b"1e300" in kept, "the manifest has other values:", text.decode())
    with open(path, "wb") as f:
        f.write(kept + b'  "crc32c": "%08x"\n}\n' % crc32c(kept))
    listed = subprocess.run([a.muster, "checkpoint", folder.state, "--verify"],
                            capture_output=True, text=True)
    check("muster checkpoint names it", listed.returncode == 1
          and "1e+300 samples are counted" in listed.stdout + listed.stderr)
    said = folder.run(12, "--resume", folder.state, "--log-level", "info", worker=worker)
    check("so does --resume", "1e+300 samples are counted, and a job counts from 0 to" in said)
    check("the one before is taken", "goes on from version 5" in said)


# ---- violence ----

def ended_again_and_again(a):
    """The server is killed, or stopped, at any moment while it writes one checkpoint after the
    other. What is left always holds, and in the end the job is the one that nobody has ended."""
    rand = random.Random(7)
    folder, whole = Folder(a), Folder(a)
    options = ["--optimizer", "adam:lr=0.01", "--workers", str(WORKERS), *CALM]
    worker = ["by_version=1"]
    seen = 0
    for turn in range(12):
        server = Server(a.musterd, "--state", folder.state, "--resume", folder.state, "--or-begin",
                        "--checkpoint-every", "1", *options)
        workers = [Child([a.worker, os.path.join(folder.folder.name, "log"), "20001", *worker],
                         **worker_environment(server.address, rank)) for rank in range(WORKERS)]
        last = seen
        until(lambda: (folder.versions() or [0])[-1] >= last + rand.randrange(1, 40), HANG_S)
        if turn % 2 == 0:
            server.kill()
        else:
            must(server.stop()[0] == 128 + signal.SIGTERM, "it does not end:", server.said())
        for w in workers:
            w.end(HANG_S)
        seen = (folder.versions() or [0])[-1]
        must(seen > last, "no checkpoint was made:", server.said())
        verify = subprocess.run([a.muster, "checkpoint", folder.state, "--verify"],
                                capture_output=True, text=True)
        must(verify.returncode == 0, "a checkpoint does not hold:", verify.stdout, verify.stderr)
    folder.run(seen + 5, "--optimizer", "adam:lr=0.01", "--resume", folder.state, worker=worker)
    whole.run(seen + 5, "--optimizer", "adam:lr=0.01", worker=worker)
    check(f"ended 12 times, version {seen + 5} has the bits of a job that was not",
          folder.vectors(seen + 5) == whole.vectors(seen + 5))


def stopped_by_a_signal(a):
    """The newest version is saved before the server ends."""
    folder = Folder(a)
    with Job(a, "--workers", "2", *CALM, *CALM_STOP, "--state", folder.state, "--checkpoint-every",
             "0") as job:
        job.work_all(2, "sleep_us=1000")
        job.begin()
        status, said = job.server.stop()
    check("the server ends by the signal", status == 128 + signal.SIGTERM)
    version = folder.versions()[-1]
    check("and has said what it has saved", f"checkpoint of version {version}" in said)
    with Job(a, "--workers", "2", "--resume", folder.state, "--commits", str(version + 3)) as job:
        job.work_all(2)
        check("a job goes on from there", job.codes(HANG_S) == [0, 0])


def stopped_while_a_step_gathers(a, early, servers=1):
    """Rank 0 is in the middle of its fourth gradient, and stays there until it dies. Of the others,
    @early have handed theirs in, and the last ones are where rank 0 is. What is saved is the
    version before that step, and the job goes on as if nobody had stopped it. That those who have
    handed in may be all that is left of the job changes nothing."""
    folder, whole = Folder(a), Folder(a)
    options = ["--optimizer", "adam:lr=0.01", "--servers", str(servers)]
    state = ["--workers", str(WORKERS), *CALM, *CALM_STOP, "--state", folder.state]
    held = [rank for rank in range(WORKERS) if rank == 0 or rank > early]
    with Job(a, *state, *options, "--checkpoint-every", "0") as job:
        followers = [Child([a.musterd, "--join", job.address, *CALM_STOP, "--state",
                            folder.state])
                     for _ in range(servers - 1)]
        job.elems = 20001
        job.work_all(WORKERS, "by_version=1", *[f"{rank}:stop=3" for rank in held])

        def gathers():
            asked = subprocess.run([a.muster, "status", "--json", "-", job.address],
                                   capture_output=True, text=True)
            told = json.loads(asked.stdout) if asked.returncode == 0 else {"state": ""}
            return told["state"] == "running" and told["commits"] == 3 and [
                rank["counted"] for rank in told["ranks"]] == [
                    3 if rank in held else 4 for rank in range(WORKERS)]

        must(until(gathers, HANG_S), "the step does not gather:", job.server.said())
        must(folder.versions() == [], "something has been saved already")
        job.server.process.terminate()
        check(f"with {servers} servers and {early} contributions in the open step, the version "
              "before it is saved", until(lambda: folder.versions() == [3], HANG_S))
        for rank in held:
            job.worker[rank].kill()
        must(None not in [worker.end(HANG_S)[0] for worker in job.worker], "a worker hangs")
        check("the server ends by the signal",
              job.server.end(HANG_S)[0] == 128 + signal.SIGTERM)
        must(None not in [f.end(HANG_S)[0] for f in followers], "a follower stays for ever")
    must(folder.versions() == [3], "other versions have been saved:", folder.versions())
    must(folder.manifest(3)["samples"] == 3 * WORKERS, "a contribution of the open step counts")
    folder.run(6, *options, "--resume", folder.state, worker=["by_version=1"])
    whole.run(6, *options, worker=["by_version=1"])
    check("the job that goes on from there has the bits of one that nobody has stopped",
          folder.vectors(6) == whole.vectors(6))


def stopped_before_a_contribution(a):
    stopped_while_a_step_gathers(a, 0)


def stopped_after_contributions(a):
    stopped_while_a_step_gathers(a, 1)
    stopped_while_a_step_gathers(a, 2)


def servers_stopped_after_a_contribution(a):
    stopped_while_a_step_gathers(a, 1, servers=2)


def servers_stopped_by_a_signal(a):
    """The followers stay until their parts are written."""
    folder = Folder(a)
    options = ["--state", folder.state, "--workers", "2", *CALM, *CALM_STOP]
    with Job(a, *options, "--servers", "3", "--checkpoint-every", "0") as job:
        followers = [Child([a.musterd, "--join", job.address, *CALM_STOP, "--state",
                            folder.state])
                     for _ in range(2)]
        job.elems = 20000
        job.work_all(2, "sleep_us=1000")
        job.begin()
        status, said = job.server.stop()
        ends = [f.end(HANG_S)[0] for f in followers]
    must(None not in ends, "a follower stays for ever")
    version = folder.versions()[-1]
    check("a checkpoint of three servers is made when the leader is stopped",
          status == 128 + signal.SIGTERM and len(folder.manifest(version)["parts"]) == 3)


def stop_all(a):
    """Stops leader and follower at the same time. Return: exit statuses, and how many parts the
    newest version has that is saved."""
    folder = Folder(a)
    options = ["--state", folder.state, "--workers", "2", *CALM, *CALM_STOP]
    with Job(a, *options, "--servers", "2", "--checkpoint-every", "0") as job:
        follower = Child([a.musterd, "--join", job.address, *CALM_STOP, "--state",
                          folder.state])
        job.elems = 20000
        job.work_all(2, "sleep_us=1000")
        job.begin()
        follower.signal(signal.SIGTERM)
        job.server.process.terminate()
        ends = [server.end(HANG_S)[0] for server in (job.server, follower)]
    saved = folder.versions()
    return ends, len(folder.manifest(saved[-1])["parts"]) if saved else 0


def all_are_stopped_by_a_signal(a):
    """As a scheduler does it."""
    ends, parts = stop_all(a)
    check(f"both end by the signal: {ends}", ends == [128 + signal.SIGTERM] * 2)
    check("and have saved the newest version, each its part", parts == 2)


def follower_leaves_before_the_order_to_save(a):
    """Both are stopped, and the leader stands still until its follower has waited long enough and
    left. Nobody has the follower's part then, so the leader does not wait for it either."""
    folder = Folder(a)
    options = ["--state", folder.state, "--workers", "2", *CALM, "--server-lease", "3600s"]
    with Job(a, *options, "--servers", "2", "--checkpoint-every", "0") as job:
        follower = Child([a.musterd, "--join", job.address, "--stop-timeout", "500ms", "--state",
                          folder.state])
        job.elems = 20000
        job.work_all(2, "sleep_us=1000")
        job.begin()
        job.server.process.send_signal(signal.SIGSTOP)
        follower.signal(signal.SIGTERM)
        job.server.process.terminate()
        ended, waited = follower.end(HANG_S)
        must(ended is not None, "the follower stays for ever")
        must("or in 0.5 s (--stop-timeout)" in waited, "it waits for another time:", waited)
        job.server.process.send_signal(signal.SIGCONT)
        status, said = job.server.end(HANG_S)
    check("a leader does not wait for the part of a follower that has left",
          status == 128 + signal.SIGTERM)
    # Where it stood still within a step, it hears of the follower before it sees its signal.
    check("says that there is no checkpoint, or that the follower has given up", re.search(
        r"no checkpoint of version \d+: a server could not write its part|server 1 .* gives up",
        said))
    check("and makes none", folder.versions() == [])


def follower_is_stopped_by_a_signal(a):
    """It tells its leader, which ends the job."""
    folder = Folder(a)
    options = ["--state", folder.state, "--workers", "2", *CALM]
    with Job(a, *options, "--servers", "2", "--checkpoint-every", "10") as job:
        follower = Child([a.musterd, "--join", job.address, "--stop-timeout", "500ms", "--state",
                          folder.state])
        job.elems = 20000
        job.work_all(2, "sleep_us=1000")
        must(until(lambda: len(folder.versions()) > 0, HANG_S), "no checkpoint is made")
        follower.signal(signal.SIGTERM)
        check("a follower that is stopped alone ends", follower.end(HANG_S)[0] is not None)
        status, said = job.server.end(HANG_S)
        check("and with it the job", status == 1 and "the server was ended by signal 15" in said)
    check("checkpoints made before are there", len(folder.versions()) > 0)


def disk_is_full(a):
    """A small disk of its own, in a namespace of its own."""
    folder = Folder(a)
    os.mkdir(folder.state)
    mount = f"mount -t tmpfs -o size=120k tmpfs {folder.state}"
    may = subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True, text=True)
    if may.returncode != 0:
        print("skipped: no disk can be mounted here:", may.stderr.strip())
        sys.exit(77)
    figures = os.path.join(folder.folder.name, "figures")
    for servers in 2, 1:
        job = [a.muster, "run", "-n", "2", *CALM, "--quiet", "--commits", "9", "--state",
               folder.state, "--servers", str(servers), "--json", figures, "--checkpoint-every",
               "4", "--", a.worker, os.path.join(folder.folder.name, "log"), "20001"]
        done = subprocess.run(["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", *job],
                              capture_output=True, text=True, timeout=300)
        check(f"a job of {servers} whose disk is full goes on to its end, and its status says that "
              "something is missing", done.returncode == 3)
        with open(figures, encoding="utf-8") as f:
            told = json.load(f)
        check("so do the figures", told["state"] == "finished" and len(told["missing"]) == 1 and
              told["missing"][0].startswith("the checkpoint of version 9: "))
    check("and says with figures what it cannot write", re.search(
        r"version 4: cannot write .*: the file needs [\d.]+ KiB, and the disk has [\d.]+ KiB left",
        done.stderr))
    # Its last word on that may come after the job's last version, which is ten milliseconds away.
    check("and which checkpoint there is", "there is none before" in done.stderr)


def disk_is_read_only(a):
    """A read-only mount, which root cannot write to either."""
    folder = Folder(a)
    folder.run(3)
    mount = f"mount --bind {folder.state} {folder.state} && mount -o remount,bind,ro {folder.state}"
    may = subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True, text=True)
    if may.returncode != 0:
        print("skipped: nothing can be mounted here:", may.stderr.strip())
        sys.exit(77)
    job = [a.muster, "run", "-n", "2", *CALM, "--quiet", "--commits", "9", "--state", folder.state,
           "--resume", folder.state, "--", a.worker, os.path.join(folder.folder.name, "log"),
           "20001"]
    done = subprocess.run(["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", *job],
                          capture_output=True, text=True, timeout=300)
    check("a job that could never write a checkpoint is refused at its start",
          done.returncode == 1 and "Read-only file system" in done.stderr)
    check("by the name of the directory", folder.state in done.stderr)
    check("what was there is there", folder.versions() == [3])


def disk_hangs(a):
    """A FIFO in the place of a manifest, which nobody opens: the disk does not answer."""
    folder = Folder(a)
    os.mkdir(folder.state)
    fifo = os.path.join(folder.state, "v0000000005.json.tmp")
    os.mkfifo(fifo)
    with Job(a, "--workers", "2", *CALM, "--state", folder.state, "--checkpoint-every",
             "5") as job:
        job.work_all(2, "sleep_us=1000", *job.ended_by(0))

        def version():
            asked = subprocess.run([a.muster, "status", "--json", "-", job.address],
                                   capture_output=True, text=True)
            return json.loads(asked.stdout)["commits"] if asked.returncode == 0 else 0

        check("the job goes on", until(lambda: version() >= 100, HANG_S))
        check("without a checkpoint", folder.versions() == [])
        with open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb"):
            check("what could not be written is named when the disk answers", until(
                lambda: "no checkpoint of version 5: " in job.server.said(), HANG_S))
        check("and a newer version is saved", until(lambda: folder.versions(), HANG_S))
        job.end_job()
        check("the workers have not noticed", job.codes(HANG_S) == [0, 0])
        check("the server has finished", job.server.end(HANG_S)[0] == 0)


def disk_is_lost(a):
    """The job goes on, and says what it cannot write."""
    folder = Folder(a)
    with Job(a, "--workers", "2", "--state", folder.state, "--checkpoint-every", "5") as job:
        job.work_all(2, "sleep_us=1000", *job.ended_by(0))
        must(until(lambda: len(folder.versions()) > 0, HANG_S), "no checkpoint is made")
        os.rename(folder.state, folder.state + ".gone")
        must(until(lambda: "no checkpoint of version" in job.server.said(), HANG_S),
             "nothing is said:", job.server.said())
        os.mkdir(folder.state)
        check("checkpoints are made again when the disk is back",
              until(lambda: len(folder.versions()) > 0, HANG_S))
        job.end_job()
        check("and the job has not noticed", job.codes(HANG_S) == [0, 0])
        check("the server has finished", job.server.end(HANG_S)[0] == 0)


# ---- what is refused ----

def damage(path):
    with open(path, "r+b") as f:
        f.seek(-5, os.SEEK_END)
        byte = f.read(1)
        f.seek(-5, os.SEEK_END)
        f.write(bytes([byte[0] ^ 4]))


def older_one_is_taken(a):
    """Where the newest cannot be used, by name."""
    folder = Folder(a)
    worker = ["by_version=1"]
    folder.run(9, "--checkpoint-every", "5", worker=worker)
    must(folder.versions() == [5, 9], "versions", folder.versions())
    os.truncate(os.path.join(folder.state, folder.manifest(9)["parts"][0]["file"]), 5000)
    said = folder.run(12, "--resume", folder.state, "--log-level", "info", worker=worker)
    check("a file that is cut is named", "the checkpoint of version 9 cannot be used" in said)
    check("the one before is taken", "goes on from version 5" in said)
    check("and the job goes on", folder.versions()[-1] == 12)


def flipped_bits_are_found(a):
    folder = Folder(a)
    worker = ["by_version=1"]
    folder.run(9, "--checkpoint-every", "5", worker=worker)
    damage(os.path.join(folder.state, folder.manifest(9)["parts"][0]["file"]))
    said = folder.run(12, "--resume", folder.state, "--log-level", "info", worker=worker)
    check("data that have changed are named", "the checkpoint of version 9 cannot be used" in said)
    check("the one before is taken", "goes on from version 5" in said)


def newest_cannot_be_opened(a):
    """A link to itself says as little of a file as a wrong owner does, but is one for root too."""
    folder = Folder(a)
    worker = ["by_version=1"]
    folder.run(9, "--checkpoint-every", "5", worker=worker)
    path = os.path.join(folder.state, folder.manifest(9)["parts"][0]["file"])
    os.rename(path, path + ".there")
    os.symlink(path, path)
    said = folder.run(12, "--resume", folder.state, expect=1, worker=worker)
    check("a file that cannot be opened is named",
          f"cannot open {path}: Too many levels of symbolic links" in said)
    check("with what to do", re.search(r"start again; or move .*v0000000009\.json away", said))
    check("no older version is taken, and none set aside", folder.versions() == [5, 9])
    os.rename(path + ".there", path)
    said = folder.run(12, "--resume", folder.state, "--log-level", "info", worker=worker)
    check("the newest is taken when it can be opened again", "goes on from version 9" in said)


def refuses(a):
    folder = Folder(a)
    folder.run(4, "--job", "one", "--optimizer", "adam")
    resume = ["--resume", folder.state]

    def said_of(*options, **more):
        return folder.run(8, *options, expect=1, **more)

    check("a job of another name", 'it is of the job "one"' in said_of(*resume, "--job", "two"))
    check("another optimiser",
          'is of --optimizer adam:' in said_of(*resume, "--job", "one", "--optimizer", "sgd"))
    check("another length", "whose vector has 20001 elements"
          in said_of(*resume, "--job", "one", "--optimizer", "adam", elems=500))
    check("another length, and the server is told which", "--elems says 500"
          in said_of(*resume, "--job", "one", "--optimizer", "adam", "--elems", "500"))
    check("a directory without a name",
          "option --state: the directory has no name" in folder.run(8, "--state", "", expect=2))
    check("another type", "with results of f32; this worker has"
          in said_of(*resume, "--job", "one", "--optimizer", "adam", worker=["result_type=f16"]))
    check("another owner", "--owner servers, this one has --owner workers"
          in said_of(*resume, "--job", "one", "--owner", "workers", worker=["owner=workers"]))
    empty = os.path.join(folder.folder.name, "empty")
    os.mkdir(empty)
    said = said_of("--resume", empty, "--job", "one", "--optimizer", "adam")
    check("a directory without any", "there is no checkpoint in" in said and "--or-begin" in said)
    check("a job that begins anew in a directory that is not empty",
          "go on from there with --resume" in said_of("--job", "one", "--server-patience", "0"))
    check("the checkpoint is still there", folder.versions() == [4])
    check("a job whose servers are started again goes on from there", "goes on from version 4" in
          folder.run(8, "--job", "one", "--log-level", "info", expect=0))


def one_server_writes(a):
    folder = Folder(a)
    with Job(a, "--workers", "1", "--state", folder.state) as job:
        second = subprocess.run([a.musterd, "--workers", "1", "--listen", "127.0.0.1:0",
                                 "--state", folder.state], capture_output=True, text=True)
        check("a directory that a live server writes to is refused, with its process",
              second.returncode == 1 and str(job.server.process.pid) in second.stderr)


def followers_need_the_directory(a):
    folder = Folder(a)
    with Job(a, "--workers", "1", "--servers", "2", "--state", folder.state,
             "--join-timeout", f"{HANG_S}s") as job:
        follower = Child([a.musterd, "--join", job.address])
        job.elems = 20000
        job.work(0)
        _, said = follower.end(HANG_S)
    check("a follower without --state says what it needs", "start this server with --state" in said)


CASES = cases(goes_on_bit_for_bit, workers_may_offer_nothing, workers_own,
              another_number_of_workers, under_policies_that_do_not_wait, momentum_goes_on,
              adaptive_policies_go_on,
              adaptive_policies_begin_anew, figures_at_their_ends_go_on,
              figures_that_no_job_has_are_named, ended_again_and_again, stopped_by_a_signal,
              stopped_before_a_contribution, stopped_after_contributions,
              servers_stopped_after_a_contribution, servers_stopped_by_a_signal,
              all_are_stopped_by_a_signal, follower_leaves_before_the_order_to_save,
              follower_is_stopped_by_a_signal, disk_is_full, disk_is_read_only, disk_hangs,
              disk_is_lost, older_one_is_taken, flipped_bits_are_found, newest_cannot_be_opened,
              refuses, one_server_writes, followers_need_the_directory)

if __name__ == "__main__":
    main(CASES, "muster", "musterd", "worker")
