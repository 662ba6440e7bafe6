# SPDX-License-Identifier: MIT
"""Ranks that train, and write what they have at each version; and what of it must be alike."""
import glob
import os
import re
import time
import zlib

from base import HANG_S, check, must, until
from torch_case import joined

# A process may stand still for seconds, in which a job makes hundreds of versions.
FAR = ("--history", "2", "--catch-up", "4096", "--min-workers", "1")
SAMPLES, BATCH = 60, 4


def network(torch, width=16):
    nn = torch.nn
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(6, width), nn.BatchNorm1d(width), nn.Tanh(), nn.Linear(width, 3))


class Training:
    """A rank: AdamW, clipping, a schedule, and a sampler. It writes a line for each version."""

    def __init__(self, rank, ranks, optimizer="AdamW", ddp=False, **options):
        import muster.torch
        import torch
        self.torch, self.rank, self.ranks = torch, rank, ranks
        self.model = network(torch)
        if ddp:
            self.model = torch.nn.parallel.DistributedDataParallel(
                self.model, process_group=muster.torch.alone())
        self.opt = getattr(torch.optim, optimizer)(self.model.parameters(), 0.01)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.opt, 0.999)
        self.sampler = muster.torch.Sampler(SAMPLES, BATCH, seed=3, on_late="again")
        self.options = options
        for p in self.model.parameters():
            p.register_hook(lambda _: self.in_backward())
        self.joins()

    def joins(self):
        import muster.torch
        rank, ranks = self.rank, self.ranks
        self.log = open(ranks.path(f"log.{rank}.{time.monotonic_ns():020}"), "w", buffering=1)
        self.sync = joined(muster, lambda: muster.torch.Sync(
            self.model, self.opt, self.apply, scheduler=self.schedule, sampler=self.sampler,
            **self.options))

    def in_backward(self):
        """Called for each of the six parameters."""

    def apply(self):
        self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.opt.step()
        self.schedule.step()

    def tell(self):
        state = self.opt.state_dict()
        sums = [p.detach() for p in self.model.parameters()]
        sums += [t for one in state["state"].values() for t in one.values()
                 if isinstance(t, self.torch.Tensor)]
        so_far = zlib.crc32(repr((state["param_groups"], self.schedule.last_epoch,
                                  self.sampler.state_dict())).encode())
        for t in sums:
            so_far = zlib.crc32(t.numpy().tobytes(), so_far)
        self.log.write(f"version {self.sync.version} {so_far:08x}\n")

    def step(self):
        import muster
        torch = self.torch
        indices = next(iter(self.sampler))
        draw = torch.Generator().manual_seed(len(indices) + sum(indices))
        x = torch.randn(BATCH, 6, generator=draw)
        self.opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(x), (x[:, :3]).argmax(1))
        loss.backward()
        settle, sync = self.sync._settle, self.sync

        def settled(this, out):
            settle(this, out)
            self.tell()

        sync._settle = settled
        try:
            done = sync.step(samples=BATCH)
        except KeyboardInterrupt:
            done = sync.step(samples=BATCH)
        finally:
            sync._settle = settle
        must(isinstance(done.verdict, muster.Verdict), done)

    def run(self, teller=0):
        """Until all of it is enough; the teller says so to the job. All are slow enough to look at.
        A rank that is behind the history when the job ends has not the last version: it returns
        None."""
        while not self.sync.finished:
            self.step()
            time.sleep(0.02)
            if self.rank == teller and os.path.exists(self.ranks.path("enough")):
                self.sync.finish("enough")
        self.sync.close()
        if not self.sync.complete:
            must(os.path.exists(self.ranks.path("enough")), "the job has not ended")
            return None
        return self.sampler.state_dict()


def lines(ranks, rank):
    """The lines of its newest session."""
    logs = sorted(glob.glob(ranks.path(f"log.{rank}.*")))
    if not logs:
        return []
    with open(logs[-1]) as f:
        return re.findall(r"^version (\d+) (\S+)$", f.read(), re.M)


def newest(ranks, rank):
    told = lines(ranks, rank)
    return int(told[-1][0]) if told else 0


def reaches(ranks, rank, version):
    must(until(lambda: newest(ranks, rank) >= version, HANG_S),
         f"rank {rank} does not reach version {version}: {lines(ranks, rank)[-3:]}",
         ranks.server.said())


def is_alike(ranks):
    """Ends the job. All have had the same bits at each version."""
    ranks.tell("enough")
    states = [s for s in ranks.ends() if s is not None]
    must(states and all(s == states[0] for s in states), "the samplers differ")
    bits, told = {}, 0
    for path in glob.glob(ranks.path("log.*")):
        with open(path) as f:
            for version, checksum in re.findall(r"^version (\d+) (\S+)$", f.read(), re.M):
                told += 1
                must(bits.setdefault(version, checksum) == checksum, path, "differs at", version)
    check(f"{told} checksums of {len(bits)} versions are alike", told > len(bits))
