# SPDX-License-Identifier: MIT
"""PyTorch: Sync(model, opt) stands in place of DistributedDataParallel; a slow rank delays nobody.
Served(model) is for jobs whose servers have the optimiser.

    sync = muster.torch.Sync(model, opt)
    for x, y in sync.batches(loader):
        opt.zero_grad()
        loss(model(x), y).backward()
        sync.step(samples=len(x))

The job of a Sync is started with musterd --owner workers. Every rank applies every version of the
mean gradient, in order, so that parameters are the same to the bit on all ranks."""
from ._ddp import alone
from ._rank import Step
from ._sampler import Sampler
from ._served import Served
from ._sync import Diverged, Sync

__all__ = ["Diverged", "Sampler", "Served", "Step", "Sync", "alone"]
