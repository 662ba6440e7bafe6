# SPDX-License-Identifier: MIT
"""What of a model travels, and where in the vector it is."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from . import _device, _tensors

Scale = Callable[[str, torch.nn.Parameter], Tuple[float, float]]
_NAME_MAX = 255  # MUSTER_TENSOR_NAME_MAX


def _form(name: str, tensor: torch.Tensor, trained: bool) -> str:
    """The mark of a tensor. The name comes last, for a sentence of the server cuts what is long.
    All that is trained has one type."""
    form = "shape" if trained else str(tensor.dtype)[len("torch."):]
    form += f" {'x'.join(map(str, tensor.shape)) or 'scalar'}: "
    return form + name.encode()[-(_NAME_MAX - len(form)):].decode(errors="ignore")


def _links_of(model: torch.nn.Module) -> List[Tuple[Dict[str, Any], str, Any]]:
    return [(there, key, held) for module in model.modules()
            if not isinstance(module, torch.jit.ScriptModule)  # in which nothing is replaced
            for there in (module._modules, module._parameters)
            for key, held in there.items() if held is not None]


class Layout:
    """First the trainable parameters, in order. Then the rest, frozen parameters and buffers, of
    which nothing but the start travels: each byte as a number. Then marks: rows of the table, each
    with an element of no meaning, for the servers refuse ranks whose tables differ. There is one
    for each tensor, with its shape, and others that the caller gives.

    params: (name, parameter) of the trainable ones. frozen: of the others. place: the first element
    and the number of elements of a trainable one, by its id(). trained: elements of all of them.
    elems: of the vector.
    device: where all tensors of the model are."""

    _links: List[Tuple[Dict[str, Any], str, Any]]  # of modules to modules and parameters

    def __init__(self, model: torch.nn.Module, marks: List[str]):
        self.params = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        self.frozen = [(n, p) for n, p in model.named_parameters() if not p.requires_grad]
        self.rest = self.frozen + list(model.named_buffers())
        self._check()
        self.marks = [_form(n, t, t.requires_grad) for n, t in self.params + self.rest] + marks
        self.device = self.params[0][1].device
        self.place: Dict[int, Tuple[int, int]] = {}
        at = 0
        for _, p in self.params:
            self.place[id(p)] = (at, p.numel())
            at += p.numel()
        self.trained = at
        self._model = model
        self._links = _links_of(model)
        self.elems = at + sum(_tensors.packed(t) for _, t in self.rest) + len(self.marks)

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
        first, on = self.params[0][0], self.params[0][1].device
        for name, t in self.params + self.rest:
            _device.must_be_known(name, t)
            if t.device != on:
                raise TypeError(f"{name} is on {t.device}, and {first} on {on}: muster.torch takes "
                                "models all of which is on one device")
            if t.dtype not in _tensors.KNOWN or t.layout != torch.strided:
                raise TypeError(f"{name} is {t.dtype}, {t.layout}: frozen parameters and buffers "
                                "must be dense, and of a type that NumPy has, or bfloat16")

    def must_be_in_the_model(self) -> None:
        """ValueError, in words: a parameter is not in the model any more, as where a module of it
        has been replaced. It costs a look at each, and at each module."""
        if all(there.get(key) is held for there, key, held in self._links):
            return
        here = set(map(id, self._model.parameters()))
        gone = [name for name, p in self.params if id(p) not in here]
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            raise ValueError(f"parameter {gone[0]}{more}, which the model had when it was given to "
                             "muster.torch, is not in it any more, and what is there instead is "
                             "not part of the job: no version would change it. Replace modules and "
                             "parameters before that; values are changed in place, in the function "
                             "that applies versions")
        self._links = _links_of(self._model)  # another name, as after torch.nn.utils.prune

    def must_be_there(self, name: str, tensor: torch.Tensor) -> None:
        """TypeError, in words: a tensor of the model, or its gradient, is somewhere else."""
        _device.must_be_known(name, tensor)
        if tensor.device != self.device:
            raise TypeError(f"{name} is on {tensor.device}, and the model was on {self.device} "
                            "when it was given to muster.torch: move a model before that")

    def longest(self) -> int:
        """Elements of the longest piece that is handed over at once: a parameter, or all the
        rest."""
        return max([n for _, n in self.place.values()] + [self.elems - self.trained])

    def table(self, scale: Optional[Scale] = None) -> List[Tuple[Any, ...]]:
        """The tensors that Worker is given. scale: where servers have the optimiser, which then
        leaves
        the rest alone."""
        rows: List[Tuple[Any, ...]] = [
            (name, p.numel(), *(scale(name, p) if scale else ())) for name, p in self.params]
        still, usual = ((0.0, 1.0), (1.0, 1.0)) if scale else ((), ())
        rows += [(name, _tensors.packed(t), *still) for name, t in self.rest]
        return [r for r in rows + [(mark, 1, *usual) for mark in self.marks] if r[1] > 0]

    def start(self) -> torch.Tensor:
        """The vector that the model is now."""
        return torch.cat([_tensors.flat(p).cpu() for _, p in self.params]
                         + [_tensors.pack(t) for _, t in self.rest]
                         + [torch.zeros(len(self.marks), dtype=torch.float32, device="cpu")])

    def parameters(self, vector: torch.Tensor) -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
        """For each its data, and those that the vector has for it."""
        for _, p in self.params:
            yield p.detach(), self.part(vector, p)

    def gradients(self, vector: torch.Tensor) -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
        """For each parameter its gradient, which is made if there is none, and what the vector has
        for it."""
        for _, p in self.params:
            if p.grad is None:
                p.grad = torch.empty_like(p, memory_format=torch.contiguous_format)
            yield p.grad.detach(), self.part(vector, p)

    def part(self, vector: torch.Tensor, p: torch.nn.Parameter) -> torch.Tensor:
        at, count = self.place[id(p)]
        return vector[at:at + count].view(p.shape)

    def set_rest(self, vector: torch.Tensor) -> None:
        at = self.trained
        for _, t in self.rest:
            _tensors.unpack(vector[at:at + _tensors.packed(t)], t.data)
            at += _tensors.packed(t)
