# SPDX-License-Identifier: MIT
"""Which samples each rank computes on, where all ranks know whose gradients are in a version."""
from __future__ import annotations

import enum
import math
import warnings
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

import torch

from ._records import Share

Sample = Tuple[int, int]  # (epoch, index)
_SAID = 8  # so many batches without a version between them are told of one by one
_NAMED = 8  # so many samples of them are named


class _Progress(enum.Enum):
    """How far the batch is that was handed out last."""
    SETTLED = 0     # its step is over, or there is none
    HANDED_OUT = 1
    SEEN = 2        # there was a forward() since
    ADDED = 3       # its gradient was added to those before, in no_sync()
    GIVEN = 4       # its gradient is handed over, in part at least
    PUSHED = 5      # the contribution with it is under way


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
    on_late="drop": done as well, of several batches for one step the first.
    That holds where a version has gradients that were computed on the version before: bsp, backup,
    ksync, deadline. DataLoader(num_workers=0) only: a batch depends on the version before it.
    Where the job goes on with another number of workers (muster workers N), the queue is dealt to
    them from the next version on.
    Ranks whose samplers differ are refused when they join. Its place is part of what a rank that
    comes back takes, and of what Sync.save() writes.

    Several batches for one step: all but the last in sync.no_sync(). sync.step(samples=...) is then
    the samples in all of them. From that number the other ranks know how many batches are done, so
    step() refuses one that does not fit. accumulate=N: each step has N batches, and samples may be
    any weight, such as a number of words.

    A batch that is given up (sync.abandon(); or the next one is drawn without a step()) is done,
    and one whose gradient was not finite is handed out again until it has been tried so many times
    (tries), then it is done. The rank computes on others in its place, which it draws from the
    whole set by itself. So the samples of such a batch are missing in this epoch, and those others
    are counted once more: a warning names the first of them. `given_up` says how many of this
    rank's that are."""

    def __init__(self, length: int, batch_size: int, *, seed: int = 0, on_late: str = "drop",
                 accumulate: Optional[int] = None, tries: int = 2):
        if on_late not in ("drop", "again"):
            raise ValueError(f'on_late is {on_late!r}; it is "drop" or "again"')
        if length < 1 or batch_size < 1:
            raise ValueError("a sampler needs at least one sample, and one in a batch")
        if accumulate is not None and accumulate < 1:
            raise ValueError(f"accumulate is {accumulate}; it is the number of batches of a step")
        if tries < 1:
            raise ValueError(f"tries is {tries}; a batch is tried once at least")
        self.length, self.batch_size, self.seed, self.on_late = length, batch_size, seed, on_late
        self.accumulate, self.tries = accumulate, tries
        self.rank, self.workers = 0, 1
        self.given_up = 0
        self.counted: Dict[int, int] = {}  # by rank: samples that are in versions
        self._joined = False
        self._epoch, self._turn = 0, 0
        self._queue: List[Sample] = []
        # Of this rank alone, and of the version that comes next:
        self._progress = _Progress.SETTLED
        self._row = 0  # the number of the batch, in its step, that this rank computes on
        self._in_place: Dict[int, List[Sample]] = {}  # by row: others, where a batch is given up
        self._tried: Dict[Tuple[Sample, ...], int] = {}
        self._given_up_here = 0
        # Of this rank alone, for good:
        self._bad: Set[int] = set()  # indices of what was given up
        self._drawn = 0

    def __repr__(self) -> str:
        each = "" if self.accumulate is None else f", accumulate={self.accumulate}"
        return (f"Sampler({self.length}, {self.batch_size}, seed={self.seed}, "
                f"on_late={self.on_late!r}{each})")

    def join(self, rank: int, workers: int) -> None:
        self.rank, self.workers, self._joined = rank, workers, True
        self._begin()

    def deal(self, workers: int) -> None:
        """The job has so many workers now. What comes next is dealt to them."""
        if workers != self.workers:
            self.workers = workers
            self._in_place.clear()
            self._tried.clear()

    def _begin(self) -> None:
        """There is another version: nothing is known of the batches that come next."""
        self._progress, self._row, self._given_up_here = _Progress.SETTLED, 0, 0
        self._in_place.clear()
        self._tried.clear()

    # ---- the queue, which is the same in all ranks ----

    def _permutation(self, epoch: int) -> List[Sample]:
        order = torch.Generator("cpu")
        order.manual_seed(self.seed + epoch)
        drawn = torch.randperm(self.length, generator=order, device="cpu").tolist()
        return [(epoch, i) for i in drawn]

    def _fill(self, batches: int, workers: int) -> None:
        """Enough of the queue for so many batches of each rank."""
        while len(self._queue) < batches * workers * self.batch_size:
            self._queue += self._permutation(self._epoch)
            self._epoch += 1

    def _part(self, rank: int, row: int, workers: int) -> slice:
        at = (row * workers + (rank + self._turn) % workers) * self.batch_size
        return slice(at, at + self.batch_size)

    def batch(self) -> List[Sample]:
        """(epoch, index) of the samples that this rank computes on now."""
        return self._batch(self._row)

    def _batch(self, row: int) -> List[Sample]:
        """The samples of one draw of this step. What lies beyond the queue of all ranks, which has
        one batch for each, is not kept, so that the state is the same in all."""
        if row in self._in_place:
            return self._in_place[row]
        self._fill(1, self.workers)
        part, ahead = self._part(self.rank, row, self.workers), self._queue
        epoch = self._epoch
        while len(ahead) < part.stop:
            ahead = ahead + self._permutation(epoch)
            epoch += 1
        return ahead[part]

    def _batches_of(self, share: Share) -> int:
        if self.accumulate is not None:
            return self.accumulate
        return max(1, math.ceil(getattr(share, "weight", 0) / self.batch_size))

    def version(self, shares: Iterable[Share], workers: int = 0) -> None:
        """A version has come. Sync calls it for each, in order. workers: that the job had when it
        was made; 0: as now."""
        workers = workers or self.workers
        inside = {share.rank: self._batches_of(share) for share in shares}
        rows = max(inside.values(), default=1)
        late_rows = self.accumulate or 1  # that a rank which is not in it has had at least
        self._fill(rows, workers)
        left: List[Sample] = []
        for row in range(rows):
            for position in range(workers):
                rank = (position - self._turn) % workers
                part = self._queue[self._part(rank, row, workers)]
                if row < inside.get(rank, 0):
                    self.counted[rank] = self.counted.get(rank, 0) + len(part)
                elif self.on_late == "again" or rank in inside or row >= late_rows:
                    left += part
        self._queue = left + self._queue[rows * workers * self.batch_size:]
        self._turn += 1
        self._begin()

    # ---- what becomes of a batch, as Sync tells it ----

    def seen(self) -> None:
        """There was a forward()."""
        if self._progress is _Progress.HANDED_OUT:
            self._progress = _Progress.SEEN

    def added(self) -> None:
        """There was a backward() in no_sync()."""
        if self._progress in (_Progress.HANDED_OUT, _Progress.SEEN):
            self._progress = _Progress.ADDED

    def given(self) -> None:
        """There was a backward() whose gradients are handed over."""
        if self._progress in (_Progress.HANDED_OUT, _Progress.SEEN, _Progress.ADDED):
            self._progress = _Progress.GIVEN

    def must_be_of(self, samples: float) -> None:
        """ValueError, in words: a step with so many samples is not one of the batches that were
        handed out for it."""
        batches = 0 if self._progress in (_Progress.SETTLED, _Progress.PUSHED) else self._row + 1
        if batches == 0:
            return
        if self.accumulate is not None:
            if batches != self.accumulate:
                raise ValueError(f"rank {self.rank}: Sampler(accumulate={self.accumulate}) is for "
                                 f"steps of as many batches, and this one has {batches}: all but "
                                 "the last in no_sync(), and step() after the last")
        elif math.ceil(samples / self.batch_size) != batches:
            raise ValueError(
                f"rank {self.rank}: samples is {samples:g}, and since the last step the Sampler "
                f"has handed out {batches} of {self.batch_size} samples: step(samples="
                f"{batches * self.batch_size}), for all ranks know from this number which samples "
                "are done. Where gradients are zeroed before a step, call sync.abandon(); where "
                f"samples are weights, Sampler(..., accumulate={batches})")

    def pushed(self) -> None:
        """The contribution is handed in. Its step may still raise Timeout: then the same batch is
        next, as it may count."""
        self._progress = _Progress.PUSHED

    def settled(self) -> None:
        """The step is over, or has failed. Without a version since, the same batch is next."""
        self._progress, self._row = _Progress.SETTLED, 0

    def refused(self, why: str) -> None:
        """The gradient was not finite."""
        rows = range(self._row + 1)
        batch = tuple(s for row in rows for s in self._batch(row))
        self._tried[batch] = self._tried.get(batch, 0) + 1
        if self._tried[batch] >= self.tries:
            self._give_up(rows, f"were tried {self._tried[batch]} times: {why}")
        self.settled()

    def abandoned(self) -> None:
        """All batches of this step are given up."""
        if self._progress in (_Progress.SETTLED, _Progress.PUSHED):
            return
        self._give_up(range(self._row + 1), "were given up")
        self.settled()

    def _give_up(self, rows: Sequence[int], why: str) -> None:
        batch = [sample for row in rows for sample in self._batch(row)]
        self._bad.update(index for _, index in batch)
        for row in rows:
            self._in_place[row] = self._others()
        self.given_up += len(batch)
        self._given_up_here += 1
        some = self._given_up_here
        if some > _SAID and some & (some - 1):
            return
        so_far = f" ({some} batches, one after the other)" if some > 1 else ""
        epochs = ", ".join(str(e) for e in sorted({epoch for epoch, _ in batch}))
        named = f"{[index for _, index in batch[:_NAMED]]}"
        if len(batch) > _NAMED:
            named += f" and {len(batch) - _NAMED} more"
        warnings.warn(f"rank {self.rank}: samples {named} of epoch {epochs}{so_far} {why}. They "
                      "are not learnt in this epoch; others are drawn in their place",
                      RuntimeWarning, stacklevel=3)

    def _others(self) -> List[Sample]:
        """A batch of this rank's own. Samples that were given up are not in it, as long as there
        are others."""
        draw = torch.Generator()
        self._drawn += 1
        draw.manual_seed((self.seed + 1) * 1000003 + self.rank * 7919 + self._drawn)
        order = torch.randperm(self.length, generator=draw).tolist()
        good = [i for i in order if i not in self._bad]
        if not good:
            self._bad.clear()
            good = order
        return [(self._epoch, i) for i in good[:self.batch_size]]

    def _next(self, anew: bool) -> List[Sample]:
        """The batch that is handed out now. anew: it is the first that an iterator asks for; the
        program has dropped another iterator, with what that has handed out last."""
        progress = self._progress
        if not self._joined:
            return self.batch()
        if progress is _Progress.PUSHED:
            return self._batch(0)
        if progress is _Progress.HANDED_OUT and not anew:
            raise RuntimeError(
                f"rank {self.rank}: muster.torch.Sampler was asked for a batch before the last one "
                "was used: DataLoader(num_workers=0); and where a batch is passed over before "
                "forward(), call sync.abandon()")
        if progress is _Progress.ADDED:
            if self.accumulate is not None and self._row + 1 >= self.accumulate:
                raise RuntimeError(
                    f"rank {self.rank}: Sampler(accumulate={self.accumulate}) was asked for a "
                    f"batch more before sync.step(): the backward() of the last of "
                    f"{self.accumulate} is outside of no_sync(), and step() comes after it")
            self._row += 1
        elif progress is _Progress.SEEN:
            self._give_up([self._row], "were given up")
        elif progress is _Progress.GIVEN:
            self.abandoned()
        self._progress = _Progress.HANDED_OUT
        return self.batch()

    def __iter__(self) -> Iterator[List[int]]:
        for number in range(len(self)):
            yield [index for _, index in self._next(number == 0)]

    def __len__(self) -> int:
        return max(1, self.length // (self.batch_size * self.workers))

    def state_dict(self) -> Dict[str, Any]:
        """The same in all ranks that have the same version, also where one has drawn its next batch
        already, for another number of workers."""
        epoch, queue = self._epoch, list(self._queue)
        while len(queue) >= self.length and queue[-self.length:] == self._permutation(epoch - 1):
            epoch -= 1  # nothing of it is taken yet
            del queue[-self.length:]
        return {"sampler": repr(self), "epoch": epoch, "turn": self._turn, "queue": queue,
                "counted": dict(self.counted)}

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
        self._begin()
