# SPDX-License-Identifier: MIT
"""Do all ranks compute on the same batches? A rank knows its own gradient and the mean: where all
are the same, the mean of several is the own one."""
from __future__ import annotations

import warnings
from typing import Dict, Iterable, List, Optional, Tuple

import torch

from . import _tensors
from ._layout import Layout
from ._records import Outcome, Verdict

_LOOKS = 64      # at versions with gradients of several ranks, this one's among them; then no more
_IN_A_ROW = 4    # so many have to be alike
_EACH = 1 << 10  # elements of each parameter that are compared
_ROUNDING = 1e-5  # of a mean of equal numbers, with weights; no two batches are as near in all

Given = Dict[int, Optional[Tuple[torch.Tensor, int]]]


class Alike:
    """In the first versions alone, and until it has warned."""

    def __init__(self, layout: Layout, wire: torch.dtype):
        self._layout, self._wire = layout, wire
        self._looks = self._row = 0
        self._versions: List[int] = []
        self._ranks: List[int] = []

    def look(self, out: Outcome, given: Given, rank: int) -> None:
        """Before the gradients are set to the mean. given: those of this rank, as they were handed
        over."""
        ranks = [share.rank for share in out.set if share.count > 0]
        if (self._looks >= _LOOKS or out.verdict != Verdict.COUNTED or len(ranks) < 2
                or out.counted_in != out.version or rank not in ranks or out.result is None):
            return
        alike = self._are_alike(_tensors.over(out.result), given)
        if alike is None:
            return
        self._looks += 1
        self._row = self._row + 1 if alike else 0
        self._versions = [*self._versions[1 - _IN_A_ROW:], out.version]
        self._ranks = sorted({*(self._ranks if self._row > 1 else ()), *ranks})

    def _are_alike(self, mean: torch.Tensor, given: Given) -> Optional[bool]:
        """None: there is nothing to tell it by, as where all is zero."""
        some = False
        for _, p in self._layout.params:
            if id(p) not in given:
                return None
            handed_over, changes = given[id(p)] or (None, 0)
            if p.grad is not handed_over or (p.grad is not None and p.grad._version != changes):
                return None  # it is of another batch by now
            if p.grad is None:
                continue  # this rank has not used it
            own = _tensors.flat(p.grad)[:_EACH].to(self._wire).float().cpu()
            at = self._layout.place[id(p)][0]
            if not torch.allclose(own, mean[at:at + len(own)], rtol=_ROUNDING, atol=0.0):
                return False
            some = some or bool(own.any())
        return True if some else None

    def warn(self, rank: int) -> None:
        """Called by step(). Where enough were alike; once."""
        if self._row < _IN_A_ROW:
            return
        self._looks, self._row = _LOOKS, 0
        warnings.warn(
            f"rank {rank}: in versions {_listed(self._versions)} the gradients of ranks "
            f"{_listed(self._ranks)} were the same. So these ranks compute on the same batches, "
            "and learn no more than one of them would, as with shuffle=True after "
            "torch.manual_seed(0) in all ranks. Let each rank draw in an order of its own: "
            "muster.torch.Sampler, or RandomSampler(data, generator="
            "torch.Generator().manual_seed(sync.rank))", RuntimeWarning, stacklevel=3)


def _listed(numbers: Iterable[int]) -> str:
    first = [str(n) for n in numbers]
    return ", ".join(first[:-1]) + " and " + first[-1]
