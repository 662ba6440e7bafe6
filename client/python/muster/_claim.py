# SPDX-License-Identifier: MIT
"""What a rank says of its state, so that ranks with another one are found and named."""
from __future__ import annotations

import hashlib
import re
import weakref
from typing import Any, Iterable, List, Sequence, Tuple

import torch

from . import _state
from ._records import Part

_GROUPS = 6  # that have parts of their own; so many parts are left for all else
_TEXT = 63   # MUSTER_PART_TEXT_MAX

# Of each model the version that its parameters are of, over all jobs it has been in.
_versions: "weakref.WeakKeyDictionary[torch.nn.Module, int]" = weakref.WeakKeyDictionary()


def version_of(model: torch.nn.Module) -> int:
    return _versions.get(model, 0)


def is_of(model: torch.nn.Module, version: int) -> None:
    _versions[model] = version


def _short(value: Any) -> str:
    """For people: printable, and as short as a value of a part may be."""
    text = "".join(ch if ch.isprintable() else "?" for ch in str(value))
    raw = text.encode()
    return text if len(raw) <= _TEXT else raw[:_TEXT - 3].decode(errors="ignore") + "..."


def _digest(*pieces: Any) -> int:
    """A digest of all bytes, in one go. SHA-1, of which processors have instructions, takes less
    than half the time of BLAKE2."""
    whole = hashlib.sha1(usedforsecurity=False)
    for piece in pieces:
        whole.update(piece)
    return int.from_bytes(whole.digest()[:8], "little")


def _sorted(content: Any) -> Any:
    """A state dict that was read may have its keys in another order."""
    if not isinstance(content, dict):
        return content
    return {k: _sorted(v) for k, v in sorted(content.items(), key=lambda item: str(item[0]))}


def _of(name: str, content: Any, value: Any = "") -> Part:
    content = _sorted(content)
    return Part(_short(name), _digest(*_state.pieces(content)), _short(value))


def _plain(content: Any) -> Any:
    """Numbers of NumPy as those of Python, and of what is in no state the name of its type."""
    if isinstance(content, dict):
        return {str(k): _plain(v) for k, v in content.items()}
    if isinstance(content, (list, tuple)):
        return [_plain(v) for v in content]
    try:
        _state.look_at(content)
    except TypeError:
        if hasattr(content, "tolist"):
            return _plain(content.tolist())
        return type(content).__qualname__
    return content


def _of_any(name: str, content: Any, value: Any = "") -> Part:
    """A part, also of what a program may have put there while it trains."""
    try:
        return _of(name, content, value)
    except TypeError:
        return _of(name, _plain(content), value)


def _tensors(name: str, tensors: Iterable[Tuple[str, torch.Tensor]]) -> List[Part]:
    named = list(tensors)
    pieces = [piece for n, t in named for piece in (n.encode() + b"\0", _state.raw(t))]
    return [Part(name, _digest(*pieces))] if named else []


def _own(differ: Sequence[str]) -> Tuple[str, ...]:
    """What schedulers begin with belongs to the rate."""
    return (*differ, "initial_lr") if "lr" in differ else tuple(differ)


def _group(name: str, group: Any, differ: Sequence[str]) -> List[Part]:
    rest = {k: v for k, v in group.items() if k not in ("params", "lr", *_own(differ))}
    words = ", ".join(f"{k} {v}" for k, v in rest.items() if k != "initial_lr")
    if "lr" not in group or "lr" in differ:
        return [_of_any(name, rest, words)]
    return [_of_any(f"lr of {name}", group["lr"], group["lr"]), _of_any(name, rest, words)]


def _groups(opt: torch.optim.Optimizer, differ: Sequence[str]) -> List[Part]:
    groups = opt.param_groups
    parts = [part for i, g in enumerate(groups[:_GROUPS])
             for part in _group(f"group {i}", g, differ)]
    rest = [{k: v for k, v in g.items() if k != "params" and k not in _own(differ)}
            for g in groups[_GROUPS:]]
    return parts + ([_of_any("groups that follow", rest)] if rest else [])


def of_place(opt: torch.optim.Optimizer, whole: "_state.Whole",
             differ: Sequence[str]) -> List[Part]:
    """What decides the next step besides parameters and moments: parameter groups, and the place of
    the scheduler."""
    parts = _groups(opt, differ)
    place = whole.place_of_scheduler()
    if place is not None and "lr" not in differ:
        parts.append(_of_any("scheduler", place, f"at step {place.get('last_epoch', '?')}"))
    return parts


def of_whole(whole: "_state.Whole", differ: Sequence[str]) -> List[Part]:
    """A model, its optimiser, and its scheduler. differ: what in parameter groups is not compared;
    nor is a scheduler, where that is the rate."""
    parts = _tensors("parameters", whole.model.named_parameters())
    parts += _tensors("buffers", whole.model.named_buffers())
    parts.append(_of("moments of the optimiser", whole.opt.state_dict()["state"]))
    return parts + of_place(whole.opt, whole, differ)


def of_tree(tree: Any) -> List[Part]:
    """A state that is the program's own."""
    return [_of("state", tree)]


def of_sampler(place: Any) -> Part:
    return _of("sampler", place)


def of_kernels(device: torch.device) -> List[Part]:
    """What decides which bits the same step gives: the release of torch, and what it runs on."""
    found = re.search(r"CPU capability usage: (\S+)", torch.__config__.show())
    rows = {"torch": torch.__version__, "device": device.type}
    if device.type == "cpu":
        rows["ATEN_CPU_CAPABILITY"] = found.group(1) if found else "unknown"
        rows["OMP_NUM_THREADS"] = str(torch.get_num_threads())
    else:
        rows["GPU"] = torch.cuda.get_device_name(device)
        rows["CUDA"] = str(torch.version.cuda)
    return [Part(name, _digest(value.encode()), _short(value), True)
            for name, value in rows.items()]
