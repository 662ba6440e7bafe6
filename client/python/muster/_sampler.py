# SPDX-License-Identifier: MIT
"""Which samples each rank computes on, where all ranks know whose gradients are in a version."""
from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Tuple

import torch

from .worker import Share


class Sampler(torch.utils.data.Sampler[List[int]]):
    """Batches of indices, drawn by every rank from the whole set, of which the verdict is known.

        sampler = muster.torch.Sampler(len(data), 32, seed=1)
        sync = muster.torch.Sync(model, opt, sampler=sampler)
        for x, y in sync.batches(DataLoader(data, batch_sampler=sampler)): ...

    The indices are a queue that is the same in all ranks: a permutation for each epoch, one after
    the other. Rank r takes the r-th batch of the queue. With each version all ranks hear who is in
    it; the batches of those ranks are done, and what the others computed on is
    on_late="again": left at the head of the queue, where another rank has it next (the ranks take
    turns), so that every sample is counted once in each epoch, whoever is slow;
    on_late="drop": done as well.
    That holds where a version has gradients that were computed on the version before: bsp, backup,
    ksync, deadline. DataLoader(num_workers=0) only: a batch depends on the version before it.
    Ranks whose samplers differ are refused when they join. Its place is part of what a rank that
    comes back takes, and of what Sync.save() writes."""

    def __init__(self, length: int, batch_size: int, *, seed: int = 0, on_late: str = "drop"):
        if on_late not in ("drop", "again"):
            raise ValueError(f'on_late is {on_late!r}; it is "drop" or "again"')
        if length < 1 or batch_size < 1:
            raise ValueError("a sampler needs at least one sample, and one in a batch")
        self.length, self.batch_size, self.seed, self.on_late = length, batch_size, seed, on_late
        self.rank, self.workers = 0, 1
        self._joined = False
        self._epoch, self._turn = 0, 0
        self._queue: List[Tuple[int, int]] = []  # (epoch, index)
        self._waiting = False
        self.counted: Dict[int, int] = {}  # by rank: samples that are in versions

    def __repr__(self) -> str:
        return (f"Sampler({self.length}, {self.batch_size}, seed={self.seed}, "
                f"on_late={self.on_late!r})")

    def join(self, rank: int, workers: int) -> None:
        self.rank, self.workers, self._joined, self._waiting = rank, workers, True, False

    def _fill(self) -> None:
        while len(self._queue) < self.workers * self.batch_size:
            order = torch.Generator("cpu")
            order.manual_seed(self.seed + self._epoch)
            drawn = torch.randperm(self.length, generator=order, device="cpu").tolist()
            self._queue += [(self._epoch, i) for i in drawn]
            self._epoch += 1

    def _part(self, rank: int) -> slice:
        at = (rank + self._turn) % self.workers * self.batch_size
        return slice(at, at + self.batch_size)

    def batch(self) -> List[Tuple[int, int]]:
        """(epoch, index) of the samples that this rank computes on now."""
        self._fill()
        return self._queue[self._part(self.rank)]

    def version(self, shares: Iterable[Share]) -> None:
        """A version has come. Sync calls it for each, in order."""
        self._fill()
        inside = {share.rank for share in shares}
        left: List[Tuple[int, int]] = []
        for position in range(self.workers):
            rank = (position - self._turn) % self.workers
            part = self._queue[self._part(rank)]
            if rank in inside:
                self.counted[rank] = self.counted.get(rank, 0) + len(part)
            elif self.on_late == "again":
                left += part
        self._queue = left + self._queue[self.workers * self.batch_size:]
        self._turn += 1

    def settled(self) -> None:
        """The step is over, or has failed. Sync calls it; without a version since, the same batch
        is next."""
        self._waiting = False

    def __iter__(self) -> Iterator[List[int]]:
        for _ in range(len(self)):
            if self._waiting:
                raise RuntimeError("muster.torch.Sampler was asked for a batch before the step of "
                                   "the last one was over: DataLoader(num_workers=0), and one "
                                   "sync.step() for each batch")
            self._waiting = self._joined
            yield [index for _, index in self.batch()]

    def __len__(self) -> int:
        return max(1, self.length // (self.batch_size * self.workers))

    def state_dict(self) -> Dict[str, Any]:
        """The same in all ranks that have the same version, also where one has drawn its next batch
        already."""
        self._fill()
        return {"sampler": repr(self), "epoch": self._epoch, "turn": self._turn,
                "queue": list(self._queue), "counted": dict(self.counted)}

    def check_state(self, state: Any) -> None:
        """ValueError, in words: it is not a state of such a sampler."""
        forms = {"sampler": str, "epoch": int, "turn": int, "queue": list, "counted": dict}
        if not isinstance(state, dict) or not all(isinstance(state.get(name), form)
                                                  for name, form in forms.items()):
            raise ValueError("it is not the state of a sampler")
        if state["sampler"] != repr(self):
            raise ValueError(f"it is of {state['sampler']}, and here is {self!r}")
        for pair in state["queue"]:
            if not (isinstance(pair, (tuple, list)) and len(pair) == 2
                    and all(isinstance(n, int) for n in pair) and 0 <= pair[1] < self.length):
                raise ValueError(f"its queue has {pair!r} in it, which is no sample")

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self.check_state(state)
        self._epoch, self._turn = state["epoch"], state["turn"]
        self._queue, self.counted = list(state["queue"]), dict(state["counted"])
