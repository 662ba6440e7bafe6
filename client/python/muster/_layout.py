# SPDX-License-Identifier: MIT
"""What of a model travels, and where in the vector it is."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from . import _tensors

Scale = Callable[[str, torch.nn.Parameter], Tuple[float, float]]


class Layout:
    """First the trainable parameters, in order. Then the rest, frozen parameters and buffers, of
    which nothing but the start travels: each byte as a number. Then marks: rows of the table, each
    with an element of no meaning, for the servers refuse ranks whose tables differ.

    params: (name, parameter) of the trainable ones. place: the first element and the number of
    elements of a parameter, by its id(). trained: elements of all of them. elems: of the vector."""

    def __init__(self, model: torch.nn.Module, marks: List[str]):
        self.params = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        frozen = [(n, p) for n, p in model.named_parameters() if not p.requires_grad]
        self.rest = frozen + list(model.named_buffers())
        self.marks = marks
        self._check()
        self.place: Dict[int, Tuple[int, int]] = {}
        at = 0
        for _, p in self.params:
            self.place[id(p)] = (at, p.numel())
            at += p.numel()
        self.trained = at
        self.elems = at + sum(_tensors.packed(t) for _, t in self.rest) + len(marks)

    def _check(self) -> None:
        if not self.params:
            raise ValueError("the model has no parameter that requires a gradient")
        for name, p in self.params:
            if p.is_complex():
                raise TypeError(f"parameter {name} is complex: muster sums real numbers; make two "
                                "real parameters of it")
            if p.dtype != torch.float32:
                raise TypeError(f"parameter {name} is {p.dtype}: trainable parameters are float32 "
                                "here; model.float(), and torch.autocast where speed matters")
        for name, p in self.params + self.rest:
            _tensors.must_be_on_the_cpu(name, p)

    def longest(self) -> int:
        """Elements of the longest piece that is handed over at once: a parameter, or all the
        rest."""
        return max([n for _, n in self.place.values()] + [self.elems - self.trained])

    def table(self, scale: Optional[Scale] = None) -> List[Tuple[Any, ...]]:
        """Of Worker. scale: where servers have the optimiser, which then leaves the rest alone."""
        rows: List[Tuple[Any, ...]] = [
            (name, p.numel(), *(scale(name, p) if scale else ())) for name, p in self.params]
        still = (0.0, 1.0) if scale else ()
        rows += [(name, _tensors.packed(t), *still) for name, t in self.rest]
        return [r for r in rows + [(mark, 1, *still) for mark in self.marks] if r[1] > 0]

    def start(self) -> torch.Tensor:
        """The vector that the model is now."""
        return torch.cat([_tensors.flat(p) for _, p in self.params]
                         + [_tensors.pack(t) for _, t in self.rest]
                         + [torch.zeros(len(self.marks))])

    def set_parameters(self, vector: torch.Tensor) -> None:
        with torch.no_grad():
            for _, p in self.params:
                p.copy_(self.part(vector, p))

    def part(self, vector: torch.Tensor, p: torch.nn.Parameter) -> torch.Tensor:
        at, count = self.place[id(p)]
        return vector[at:at + count].view(p.shape)

    def set_rest(self, vector: torch.Tensor) -> None:
        at = self.trained
        for _, t in self.rest:
            _tensors.unpack(vector[at:at + _tensors.packed(t)], t.data)
            at += _tensors.packed(t)
