# SPDX-License-Identifier: MIT
"""States as bytes: what a rank gives to one that comes back, and what save() writes.

A state is a tree of tensors, numbers, strings, bytes, lists, tuples and dicts. Reading one runs
nothing that is in it, so that bytes of anybody are safe to read: they are a head, a tree in JSON,
and the data of the tensors."""
from __future__ import annotations

import json
import struct
import zlib
from typing import Any, Dict, List, Optional, Tuple

import torch

from . import _tensors

_HEAD = struct.Struct("<8sIQQ")  # magic, checksum of all after it, bytes of JSON, bytes of data
_MAGIC = b"mstate1\n"
_TYPES = {str(t)[len("torch."):]: t for t in _tensors.KNOWN}
_NAMES = {t: name for name, t in _TYPES.items()}


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
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return [kind, *(self.row(v, f"{where}[{i}]") for i, v in enumerate(value))]
        if isinstance(value, dict):
            return ["dict", *([self.row(k, where), self.row(v, f"{where}[{k!r}]")]
                              for k, v in value.items())]
        kind = str(getattr(value, "dtype", "")) or type(value).__qualname__
        raise TypeError(f"a state cannot have the {kind} at {where}: it has tensors, numbers, "
                        "strings, bytes, lists, tuples and dicts; choose what is in it with "
                        "Sync(..., state=(get, set))")


def encode(state: Any) -> bytearray:
    """The state as bytes. TypeError names what cannot be in one, and where it is."""
    writer = _Writer()
    tree = json.dumps(writer.row(state, "state")).encode()
    out = bytearray(_HEAD.size) + tree
    for piece in writer.pieces:
        out += piece
    behind = memoryview(out)[_HEAD.size:]
    _HEAD.pack_into(out, 0, _MAGIC, zlib.crc32(behind), len(tree), writer.at)
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
                else torch.empty(0, dtype=_TYPES[name]))
        return flat.reshape(shape)

    def value(self, row: Any) -> Any:
        if not isinstance(row, list):
            return row
        kind, rest = row[0], row[1:]
        if kind == "tensor":
            return self.tensor(*rest)
        if kind == "bytes":
            return bytes(self.part(*rest))
        if kind == "dict":
            return {self.value(k): self.value(v) for k, v in rest}
        return {"list": list, "tuple": tuple}[kind](self.value(r) for r in rest)


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


def _forms(tensors: Dict[str, Any]) -> Dict[str, Tuple[Any, ...]]:
    return {name: (tuple(t.shape), str(t.dtype)) if isinstance(t, torch.Tensor) else (type(t),)
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
        return {"kinds": self._kinds(), "model": dict(self.model.state_dict()),
                "optimizer": self.opt.state_dict(), "scheduler": self.place_of_scheduler()}

    def check(self, state: Any) -> None:
        """ValueError: the state is of something else."""
        parts = state if isinstance(state, dict) else {}
        if not all(isinstance(parts.get(p), dict) for p in ("kinds", "model", "optimizer")):
            raise ValueError("it is not the state of a model and its optimiser")
        _differ("model", _forms(parts["model"]), _forms(self.model.state_dict()))
        _differ("optimiser or scheduler", parts["kinds"], self._kinds())
        if isinstance(parts.get("scheduler"), dict) != bool(self.scheduler):
            raise ValueError("it lacks the place of the scheduler")
        groups = parts["optimizer"].get("param_groups")
        counts = [len(g.get("params", ())) if isinstance(g, dict) else -1
                  for g in (groups if isinstance(groups, list) else ())]
        if (not isinstance(parts["optimizer"].get("state"), dict)
                or counts != self._kinds()["parameter groups"]):
            raise ValueError("it has no parameter groups like those of the optimiser")

    def set(self, state: Any) -> None:
        self.model.load_state_dict(state["model"])
        self.opt.load_state_dict(state["optimizer"])
        if self.scheduler:
            self.scheduler.load_state_dict(state["scheduler"])
