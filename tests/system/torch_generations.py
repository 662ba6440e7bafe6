#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster.torch where servers are killed and started again (--server-patience): nothing is in the
loop for it, all ranks have the same bits at every version, and each sample counts once.

usage: torch_generations.py CASE --musterd MUSTERD --library LIBMUSTER --muster MUSTER
       torch_generations.py --list
"""
import contextlib
import dataclasses
import glob
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter

from base import CALM, HANG_S, HERE, Child, check, main, must, until
import torch_data
from server import SECONDS, Server
from torch_case import PACKAGE, Ranks, prepare, together
from torch_training import BATCH, SAMPLES, Training, network, newest, reaches

RANKS, KILLS, MOST = 3, 25, 6
PATIENT = ("--server-patience", "120s", "--history", "64")


class Account(Training):
    """A rank that also writes which samples each of its steps has computed on, and the verdict."""

    def joins(self):
        import muster.torch
        self.sampler = muster.torch.Sampler(SAMPLES, BATCH, seed=3, on_late=self.ranks.on_late)
        self.account = open(self.ranks.path(f"account.{self.rank}"), "a", buffering=1)
        super().joins()

    def writes(self, samples, verdict):
        json.dump([samples, verdict], self.account)
        self.account.write("\n")

    def step(self):
        import muster
        samples = self.sampler.batch()
        step = self.sync.step

        def accounted(**how):
            try:
                done = step(**how)
            except muster.LeftOut:
                self.writes(samples, "OVER")
                raise
            self.writes(samples, done.verdict.name)
            return done

        self.sync.step = accounted
        try:
            super().step()
        finally:
            del self.sync.step


def works(rank, ranks):
    return Account(rank, ranks).run()


class Lives(Ranks):
    """Ranks whose server is killed, and started again at the same address."""

    def __init__(self, a, count, work, *options, on_late="again"):
        self.on_late = on_late
        # Bound here, so that nobody else gets the port while no server has it.
        self.held = socket.socket()
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind(("127.0.0.1", 0))
        self.listen = f"127.0.0.1:{self.held.getsockname()[1]}"
        self.a, self.options = a, (*PATIENT, *options)
        super().__init__(a, count, work, *self.options, listen=self.listen)

    def __exit__(self, *of):
        super().__exit__(*of)
        self.held.close()

    def kill_server(self, *more):
        self.server.kill()
        self.server = Server(self.a.musterd, *self.words, *more, listen=self.listen)


def at_random(ranks, seed, kill):
    """Calls @kill KILLS times, at versions that are drawn, somewhere in the version after them."""
    draw, version = random.Random(seed), 0
    for _ in range(KILLS):
        version = max(version, newest(ranks, 0)) + draw.randint(1, MOST)
        must(until(lambda v=version: newest(ranks, 0) >= v, HANG_S),
             f"rank 0 does not reach version {version}", ranks.server.said())
        time.sleep(draw.uniform(0, 0.02))
        kill()


def same_bits(ranks):
    """All ranks have told the same digest of each version: of parameters, moments, groups, schedule
    and sampler."""
    bits, told = {}, 0
    for path in glob.glob(ranks.path("log.*")):
        with open(path) as f:
            for version, checksum in re.findall(r"^version (\d+) (\S+)$", f.read(), re.M):
                told += 1
                must(bits.setdefault(int(version), checksum) == checksum, path, "differs at",
                     version)
    must(set(bits) >= set(range(1, max(bits) + 1)), "versions are missing:", sorted(bits))
    return told, max(bits)


def accounted(ranks, place):
    """What has counted, and how many contributions there were of each verdict."""
    counted, over, verdicts = Counter(), Counter(), Counter()
    for path in glob.glob(ranks.path("account.*")):
        with open(path) as f:
            told = [json.loads(line) for line in f]
        for samples, verdict in told:
            verdicts[verdict] += 1
            if verdict == "COUNTED":
                counted.update(map(tuple, samples))
        # Who is over has not heard whether it was counted. And the last version of all is made of
        # what has come by then: where late batches are dropped, those of the others are.
        samples, verdict = told[-1]
        if verdict != "COUNTED":
            over.update(map(tuple, samples))
    left = Counter(map(tuple, place["queue"]))
    every = Counter((epoch, i) for epoch in range(place["epoch"]) for i in range(SAMPLES))
    must(counted + left <= every <= counted + left + over, "these have not counted once:",
         (counted + left - every) + (every - counted - left))
    return verdicts


def killed_25_times(a, policy, on_late):
    prepare(a)
    with Lives(a, RANKS, works, "--policy", policy, on_late=on_late) as ranks:
        at_random(ranks, 35, ranks.kill_server)
        ranks.tell("enough")
        places = ranks.ends()
        must(all(place == places[0] for place in places), "the samplers differ:", places)
        told, last = same_bits(ranks)
        verdicts = accounted(ranks, places[0])
        must(verdicts["CANCELLED"] > 0, "no kill has hit a contribution:", verdicts)
        print(f"{policy}: {told} checksums of {last} versions are alike, and of "
              f"{places[0]['epoch']} epochs each sample has counted once, or is still to come: "
              f"{dict(verdicts)}")
        check("the last server ends well", ranks.server.end(SECONDS)[0] == 0)


def sync_under_bsp(a):
    """Nobody is late there, and a batch that a kill has cancelled is no late one: it is computed
    on again."""
    killed_25_times(a, "bsp", "drop")


def sync_under_a_quorum(a):
    """There the ranks that take part in a version differ, and one that is late takes several."""
    killed_25_times(a, "backup:2", "again")


# ---- another number of workers ----

def works_while_it_may(rank, ranks):
    """The place of its sampler at the end; None: the job has gone on without this rank."""
    import muster
    rank_is = Account(rank, ranks)
    try:
        return rank_is.run()
    except muster.LeftOut as e:
        must(f"rank {rank} is over" in str(e), e)
        return None


def goes_on_with(ranks, workers):
    """Asks for that number, once all have made some versions; starts those that are new, and waits
    for those that are over."""
    before = len(ranks.pids)
    for rank in range(before):
        reaches(ranks, rank, newest(ranks, 0) + 4)
    done = subprocess.run([ranks.a.muster, "workers", str(workers), ranks.listen],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=HANG_S, check=False)
    check(done.stdout.strip(), done.returncode == 0)
    for rank in range(before, workers):
        ranks.pids.append(ranks.fork(rank, works_while_it_may))
    for rank in range(workers, before):
        must(ranks.end(rank) is None, f"rank {rank} has not been told that it is over")
    del ranks.pids[workers:]


def dealt_to_others(a):
    """Ranks are 2, then 3, then 1: each sample of an epoch has counted once all the same."""
    prepare(a)
    with Lives(a, 2, works_while_it_may, "--policy", "bsp", "--catch-up", "4096",
               on_late="again") as ranks:
        for workers in (3, 1):
            goes_on_with(ranks, workers)
        reaches(ranks, 0, newest(ranks, 0) + 4)
        ranks.tell("enough")
        places = ranks.ends()
        told, last = same_bits(ranks)
        verdicts = accounted(ranks, places[0])
        print(f"{told} checksums of {last} versions are alike, and of {places[0]['epoch']} epochs "
              f"each sample has counted once, or is still to come: {dict(verdicts)}")
        check("all three ranks have counted", len(places[0]["counted"]) == 3)
        check("the server ends well", ranks.server.end(SECONDS)[0] == 0)


# ---- servers own ----

SERVED = ("--owner", "servers", "--optimizer", "adam:lr=0.01", "--checkpoint-every", "7")


def serves(rank, ranks):
    """A rank of Served, which writes what it has at each version. Return: by how much versions have
    gone down, and the most that a step has missed."""
    import torch
    import muster.torch
    model, draw = network(torch), torch.Generator().manual_seed(rank)
    x = torch.randn(BATCH, 6, generator=draw)
    back, missed, last, newest_so_far = [], [], 0, 0
    with open(ranks.path(f"log.{rank}.0"), "w", buffering=1) as log, \
            muster.torch.Served(model, copy=rank > 0) as served:
        while not served.finished:
            model.zero_grad()
            model(x).square().mean().backward()
            done = served.step(samples=BATCH)
            missed.append(done.missed)
            back += [last - done.version] if done.version < last else []
            last = done.version
            so_far = 0
            for p in model.parameters():
                so_far = zlib.crc32(p.detach().numpy().tobytes(), so_far)
            log.write(f"version {done.version} {so_far:08x}\n")
            time.sleep(0.01)
            # the last version is made of what is there: it must not have been made before
            newest_so_far = max(newest_so_far, last)
            if rank == 0 and last == newest_so_far and os.path.exists(ranks.path("enough")):
                served.finish("enough")
    return back, max(missed)


def served_from_checkpoints(a):
    """Versions go down, to that of a checkpoint, and are made again with the same bits."""
    prepare(a)
    with tempfile.TemporaryDirectory(prefix="muster-test-") as state:
        with Lives(a, RANKS, serves, *SERVED, "--policy", "bsp", "--state", state, "--resume",
                   state, "--or-begin") as ranks:
            for version in (17, 27, 37, 47):
                must(until(lambda v=version: newest(ranks, 0) >= v, HANG_S), "version", version,
                     "is not reached:", ranks.server.said())
                must(until(lambda: glob.glob(f"{state}/v*.json"), HANG_S), "nothing is saved")
                ranks.kill_server()
            ranks.tell("enough")
            back, missed = zip(*ranks.ends())
            told, last = same_bits(ranks)
            check(f"{told} checksums of {last} versions are alike, which went down by {back}",
                  all(sum(b) > 0 for b in back))
            check(f"no step has missed one: {missed}", set(missed) == {0})
            check("the last server ends well", ranks.server.end(SECONDS)[0] == 0)


def missed_after_versions_went_down(a):
    """Six versions are void, and the job has made two since: this rank has missed one besides the
    one that it has."""
    prepare(a)

    def work(rank, ranks):
        import torch
        import muster.torch
        model = torch.nn.Linear(2, 1)
        with muster.torch.Served(model) as served:
            waits, missed = served.worker.wait, []
            for void in (0, 6):
                served.version += 10
                newest = served.version - void + 2
                served.worker.wait = lambda n=newest, w=void: dataclasses.replace(
                    waits(), version=n, withdrawn=w)
                model(torch.ones(1, 2)).sum().backward()
                missed.append(served.step()[1:3])
            return missed

    with Ranks(a, 1, work, *SERVED[:4]) as ranks:
        check("missed", ranks.ends() == [[(12, 1), (18, 1)]])


# ---- muster run ----

def musterd_of(run):
    """The process of the server that this muster run has started last, when there is one."""
    found = []

    def look():
        with open(f"/proc/{run.process.pid}/task/{run.process.pid}/children") as f:
            children = f.read().split()
        for pid in children:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as f:
                if any(word.startswith("--listen=") for word in f.read().split("\0")):
                    found.append(int(pid))
        return found

    must(until(look, HANG_S), "there is no server:", run.said())
    return found[0]


def under_muster_run(a):
    """Any musterd is killed, as often as muster run starts it again; the loop of the program has
    nothing for it, and the run ends with 0."""
    prepare(a)
    program = os.path.join(HERE, "programs", "drawn_again.py")
    for policy in ("bsp", "backup:2"):
        with tempfile.TemporaryDirectory(prefix="muster-test-") as folder:
            run = Child([a.muster, "run", "-n", str(torch_data.RANKS), "--owner", "workers", *CALM,
                         "--listen", "127.0.0.1:0", "--grace", "60s", "--policy", policy,
                         "--history", "64", "--", sys.executable, program, folder, "even"],
                        MUSTER_LIBRARY=a.library, PYTHONPATH=PACKAGE, OMP_NUM_THREADS="1")
            try:
                for version in (3, 9, 15, 20, 24):
                    must(until(lambda v=version: os.path.exists(f"{folder}/first.{v}"), HANG_S),
                         f"version {version} does not come:", run.said())
                    os.kill(musterd_of(run), signal.SIGKILL)
                status, said = run.end(SECONDS)
            finally:
                run.kill()
            must(status == 0 and "(5 of 5 times in 10 min)" in said, status, said)
            accounts = [torch_data.account(folder, rank) for rank in range(torch_data.RANKS)]
            torch_data.adds_up(accounts)
            verdicts = Counter(step["verdict"] for steps, _ in accounts for step in steps)
            check(f"{policy}: {dict(verdicts)}", verdicts["CANCELLED"] > 0)


CASES, BY_HAND = together(bsp=(sync_under_bsp,), quorum=(sync_under_a_quorum,),
                          resized=(dealt_to_others,),
                          served=(served_from_checkpoints, missed_after_versions_went_down),
                          muster_run=(under_muster_run,))
main(CASES, "musterd", "library", "muster", unlisted=BY_HAND)
