# SPDX-License-Identifier: MIT
"""States as bytes: what a rank gives to one that comes back, and what save() writes.

A state is a tree of tensors, numbers, strings, bytes, lists, tuples and dicts, with Counter and
OrderedDict among them. What is read is of the types that were written. Reading one runs nothing
that is in it, so that bytes of anybody are safe to read: they are a head, a tree in JSON, and the
data of the tensors."""
from __future__ import annotations

import json
import struct
import zlib
from collections import Counter, OrderedDict
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch

from . import _tensors

_HEAD = struct.Struct("<8sIQQ")  # magic, checksum of all after it, bytes of JSON, bytes of data
_MAGIC = b"mstate1\n"
_TYPES = {str(t)[len("torch."):]: t for t in _tensors.KNOWN}
_NAMES = {t: name for name, t in _TYPES.items()}
_DICTS = {"dict": dict, "Counter": Counter, "OrderedDict": OrderedDict}  # by tag
_LISTS = {"list": list, "tuple": tuple}


def raw(tensor: torch.Tensor) -> memoryview:
    """The bytes of a tensor, in the order of its elements."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else memoryview(b"")


class _Writer:
    def __init__(self) -> None:
        self.pieces: List[Any] = []
        self.at = 0

    def keep(self, raw: Any) -> List[int]:
        self.pieces.append(raw)
        self.at += len(raw)
        return [self.at - len(raw), len(raw)]

    def row(self, value: Any, where: str) -> Any:
        """JSON that stands for the value; lists are what has several parts, with a tag in front."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, torch.Tensor) and value.dtype in _NAMES and not value.is_sparse:
            return ["tensor", _NAMES[value.dtype], list(value.shape), *self.keep(raw(value))]
        if isinstance(value, (bytes, bytearray)):
            return ["bytes", *self.keep(value)]
        if isinstance(value, torch.Size):
            value = tuple(value)
        for tag, exact in _LISTS.items():  # a subclass would come back as another type
            if type(value) is exact:
                return [tag, *(self.row(v, f"{where}[{i}]") for i, v in enumerate(value))]
        for tag, exact in _DICTS.items():
            if type(value) is exact:
                return [tag, *([self.row(k, where), self.row(v, f"{where}[{k!r}]")]
                               for k, v in value.items())]
        kind = str(getattr(value, "dtype", "")) or type(value).__qualname__
        raise TypeError(f"a state cannot have the {kind} at {where}: it has tensors, numbers, "
                        "strings, bytes, lists, tuples, dicts, Counter and OrderedDict; choose "
                        "what is in it with Sync(..., state=(get, set))")


def pieces(state: Any) -> List[Any]:
    """The state as bytes in several parts: the tree, and the data, which are not copied. TypeError
    names what cannot be in one, and where it is."""
    writer = _Writer()
    return [json.dumps(writer.row(state, "state")).encode(), *writer.pieces]


def encode(state: Any) -> bytearray:
    """The state as bytes. TypeError as of pieces()."""
    tree, *data = pieces(state)
    out = bytearray(_HEAD.size) + tree
    for piece in data:
        out += piece
    behind = memoryview(out)[_HEAD.size:]
    _HEAD.pack_into(out, 0, _MAGIC, zlib.crc32(behind), len(tree), len(behind) - len(tree))
    return out


def look_at(state: Any) -> None:
    """TypeError names what cannot be in a state, and where it is; no data are copied."""
    _Writer().row(state, "state")


class _Reader:
    """Takes the parts in the order in which they were written, each once: so whatever the tree
    says, no more memory is used than there are bytes."""

    def __init__(self, data: memoryview):
        self.data, self.at = data, 0

    def part(self, at: int, length: int) -> memoryview:
        if at != self.at or not 0 <= length <= len(self.data) - at:
            raise ValueError("a part lies outside, or where another one is")
        self.at += length
        return self.data[at:at + length]

    def tensor(self, name: str, shape: List[int], at: int, length: int) -> torch.Tensor:
        raw = self.part(at, length)
        if min(shape, default=0) < 0:
            raise ValueError("a size is negative")
        flat = (torch.frombuffer(bytearray(raw), dtype=_TYPES[name]) if length > 0
                else torch.empty(0, dtype=_TYPES[name], device="cpu"))
        return flat.reshape(shape)

    def value(self, row: Any) -> Any:
        if not isinstance(row, list):
            return row
        kind, rest = row[0], row[1:]
        if kind == "tensor":
            return self.tensor(*rest)
        if kind == "bytes":
            return bytes(self.part(*rest))
        if kind in _DICTS:
            return _DICTS[kind]({self.value(k): self.value(v) for k, v in rest})
        return _LISTS[kind](self.value(r) for r in rest)


def decode(raw: Any) -> Any:
    """What encode() was given. ValueError, in words, for any bytes that are not a whole state."""
    flat = memoryview(raw).cast("B")
    if len(flat) < _HEAD.size or bytes(flat[:len(_MAGIC)]) != _MAGIC:
        raise ValueError(f"these {len(flat)} bytes are no state of muster.torch")
    _, checksum, tree, data = _HEAD.unpack_from(flat)
    behind = flat[_HEAD.size:]
    if tree + data != len(behind):
        raise ValueError(f"a state of {_HEAD.size + tree + data} bytes has been cut short, or has "
                         f"grown: there are {len(flat)} bytes")
    if zlib.crc32(behind) != checksum:
        raise ValueError("the bytes of a state have been changed: its checksum is another")
    try:
        reader = _Reader(behind[tree:])
        state = reader.value(json.loads(bytes(behind[:tree])))
        if reader.at != data:
            raise ValueError("there are bytes that are part of nothing")
        return state
    except (ValueError, TypeError, LookupError, RuntimeError) as e:  # RecursionError is the last
        raise ValueError(f"a state cannot be read: {e}") from e


def _buffers(model: torch.nn.Module) -> Iterator[Tuple[str, Dict[str, Any], str]]:
    """Each buffer that the model may have, persistent or not: its name, the dict that it is in, and
    its key there. It may be None."""
    for prefix, module in model.named_modules(remove_duplicate=False):
        for key in module._buffers.keys():  # by which alone a ScriptModule lists them
            yield (f"{prefix}.{key}" if prefix else key), module._buffers, key


def _forms(tensors: Dict[str, Any], grow: Any) -> Dict[str, Tuple[Any, ...]]:
    """grow: the names of those that may be longer elsewhere, or not there yet."""
    return {name: () if name in grow else
            (tuple(t.shape), str(t.dtype)) if isinstance(t, torch.Tensor) else (type(t),)
            for name, t in tensors.items()}


def _differ(what: str, theirs: Dict[str, Any], own: Dict[str, Any]) -> None:
    for name in [*own, *theirs]:
        if own.get(name) != theirs.get(name):
            raise ValueError(f"it is of another {what}: {name} is {theirs.get(name, 'not there')} "
                             f"in it, and {own.get(name, 'not there')} here")


class Whole:
    """All of a model that the next version is applied to: parameters and buffers, the optimiser,
    and the scheduler if there is one."""

    def __init__(self, model: torch.nn.Module, opt: torch.optim.Optimizer,
                 scheduler: Optional[Any]):
        self.model, self.opt, self.scheduler = model, opt, scheduler

    def _kinds(self) -> Dict[str, Any]:
        return {"optimizer": type(self.opt).__name__,
                "parameter groups": [len(g["params"]) for g in self.opt.param_groups],
                "scheduler": type(self.scheduler).__name__ if self.scheduler else None}

    def place_of_scheduler(self) -> Optional[Dict[str, Any]]:
        """Without its functions, which some schedulers of torch 1.13 have in it; those of the rank
        that takes the state stay."""
        if not self.scheduler:
            return None
        return {k: v for k, v in self.scheduler.state_dict().items() if not callable(v)}

    def get(self) -> Any:
        model = dict(self.model.state_dict())
        apart = {name: there[key] for name, there, key in _buffers(self.model)
                 if name not in model and there[key] is not None}
        return {"kinds": self._kinds(), "model": model, "buffers": apart,
                "optimizer": self.opt.state_dict(), "scheduler": self.place_of_scheduler()}

    def check(self, state: Any) -> None:
        """ValueError: the state is of something else."""
        parts = state if isinstance(state, dict) else {}
        if not all(isinstance(parts.get(p), dict)
                   for p in ("kinds", "model", "buffers", "optimizer")):
            raise ValueError("it is not the state of a model and its optimiser")
        self._check_model(parts)
        _differ("optimiser or scheduler", parts["kinds"], self._kinds())
        if isinstance(parts.get("scheduler"), dict) != bool(self.scheduler):
            raise ValueError("it lacks the place of the scheduler")
        groups = parts["optimizer"].get("param_groups")
        counts = [len(g.get("params", ())) if isinstance(g, dict) else -1
                  for g in (groups if isinstance(groups, list) else ())]
        if (not isinstance(parts["optimizer"].get("state"), dict)
                or counts != self._kinds()["parameter groups"]):
            raise ValueError("it has no parameter groups like those of the optimiser")

    def _check_model(self, parts: Dict[str, Any]) -> None:
        """Buffers may have grown, or have been made, since this rank's were. What they are of, and
        how many dimensions they have, stays."""
        own = {name: there[key] for name, there, key in _buffers(self.model)}
        theirs = {**parts["model"], **parts["buffers"]}
        now = {**self.model.state_dict(), **{n: t for n, t in own.items() if t is not None}}
        for name, tensor in own.items():
            other = theirs.get(name)
            if other is not None and not isinstance(other, torch.Tensor):
                raise ValueError(f"it is of another model: buffer {name} is no tensor in it")
            if other is not None and tensor is not None and (
                    other.dtype != tensor.dtype or other.dim() != tensor.dim()):
                raise ValueError(f"it is of another model: buffer {name} is of {other.dtype} and "
                                 f"{other.dim()} dimensions in it, and of {tensor.dtype} and "
                                 f"{tensor.dim()} here")
        _differ("model", _forms({**dict.fromkeys(own), **theirs}, own),
                _forms({**dict.fromkeys(own), **now}, own))

    def _make_room(self, tensors: Dict[str, Any]) -> None:
        """Gives each buffer the shape that it has in the state."""
        on = next(self.model.parameters()).device
        for name, there, key in _buffers(self.model):
            own, theirs = there[key], tensors.get(name)
            if theirs is None:
                there[key] = None
            elif own is None or own.shape != theirs.shape:
                there[key] = theirs.to(on, copy=True)

    def set(self, state: Any) -> None:
        tensors = {**state["model"], **state["buffers"]}
        self._make_room(tensors)
        with torch.no_grad():
            for name, there, key in _buffers(self.model):
                if name in state["buffers"]:
                    there[key].copy_(tensors[name])
        self.model.load_state_dict(state["model"])
        self.opt.load_state_dict(state["optimizer"])
        if self.scheduler:
            self.scheduler.load_state_dict(state["scheduler"])
