# SPDX-License-Identifier: MIT
"""What batches() says of a loader, so that no rank trains on too little without a word."""
from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any, Iterable

from ._sampler import Sampler
from ._records import Share

_VERSIONS = 50  # that a rank has seen before it is said how many of its samples are in them


_REMEDY = ("give batches() what that is made of, such as the DataLoader or a list, or an object "
           "whose __iter__() begins anew each time")


def _is_gone_over_once(loader: Any) -> bool:
    return isinstance(loader, Iterator) and not isinstance(loader, itertools.cycle)


def below(loader: Any) -> Any:
    """What is in a progress bar, such as tqdm."""
    inner = getattr(loader, "iterable", None)
    return loader if hasattr(loader, "batch_sampler") or inner is None else inner


def check(loader: Any, rank: int) -> None:
    """Warns of what can be gone over once only, unless it never ends, and of a sampler that gives
    each rank a part of the data."""
    if _is_gone_over_once(loader):
        warnings.warn(f"rank {rank}: batches() goes over its loader again and again, and a "
                      f"{type(loader).__name__} can be gone over once: if it ends before the job "
                      f"does, that will be an error. If it may, {_REMEDY}",
                      RuntimeWarning, stacklevel=3)
    loader = below(loader)
    batches = getattr(loader, "batch_sampler", None)
    for sampler in (getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None)):
        parts = getattr(sampler, "num_replicas", 1)
        if parts > 1:
            warnings.warn(f"rank {rank}: the loader's {type(sampler).__name__} gives each of "
                          f"{parts} ranks a part of the data (num_replicas). A slow rank's "
                          "gradients may never count, and then nobody learns its part. Let each "
                          "rank draw from all data: muster.torch.Sampler, or RandomSampler(data, "
                          "generator=torch.Generator().manual_seed(sync.rank))",
                          RuntimeWarning, stacklevel=3)
            return


def check_end(loader: Any, rank: int, version: int, batches: int, epoch: int) -> None:
    """The loader has come to its end with so many batches, and the job has not. Raises TypeError or
    ValueError where there is none to go on with."""
    if _is_gone_over_once(loader):
        raise TypeError(f"rank {rank}: at version {version} of the job the {type(loader).__name__} "
                        f"that batches() goes over is used up, after {batches} batches: {_REMEDY}")
    if batches == 0 and epoch == 0:
        raise ValueError(f"rank {rank}: the loader has no batch")
    if batches == 0:
        raise ValueError(f"rank {rank}: the loader has no batch any more: batches() has gone over "
                         f"it {epoch} times before. The __iter__() of a {type(loader).__name__}, "
                         "and that of an IterableDataset, has to begin anew each time")


class Counted:
    """The samples in the versions that this rank has applied, and how many of them are its own."""

    def __init__(self) -> None:
        self.versions, self.own, self.all = 0, 0.0, 0.0

    def add(self, shares: Iterable[Share], rank: int) -> None:
        self.versions += 1
        for share in shares:
            self.all += share.weight
            self.own += share.weight if share.rank == rank else 0.0

    def warns(self, loader: Any, rank: int, workers: int) -> bool:
        """Once there is enough to tell. Return: it has warned."""
        ours = getattr(below(loader), "batch_sampler", None)
        if self.versions < _VERSIONS or self.own * workers * 2 >= self.all:
            return False
        if isinstance(ours, Sampler) and ours.on_late == "again":
            return False  # others have its samples
        warnings.warn(f"rank {rank}: of the samples in the last {self.versions} versions "
                      f"{100 * self.own / self.all:.1f} % are of this rank, and a fair share of "
                      f"{workers} ranks would be {100 / workers:.1f} %: it is late too often. What "
                      "it alone has of the data is hardly learnt: let each rank draw from all "
                      "data, or use muster.torch.Sampler (docs/pytorch.md, Data)",
                      RuntimeWarning, stacklevel=3)
        return True
