# SPDX-License-Identifier: MIT
"""What the function that applies versions uses, and no state has: a rank that takes the state of
another keeps its own of it, and has other ones than all others from then on."""
from __future__ import annotations

import contextlib
import inspect
import types
import warnings
from typing import Any, Dict, Iterator, List, Optional, Set

import torch


def _used(function: Any, deep: bool = True) -> Iterator[Any]:
    """(name, value) of what a function of Python uses from outside, and what those do that it
    calls; of a method also what it uses of its object."""
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, types.FunctionType):
        return
    outside: Dict[str, Any] = {}
    with contextlib.suppress(TypeError, ValueError):
        found = inspect.getclosurevars(plain)
        outside = {**found.globals, **found.nonlocals}
    own = getattr(getattr(function, "__self__", None), "__dict__", {})
    for name in plain.__code__.co_names:
        if name in own:
            outside[name] = own[name]
    for name, value in outside.items():
        yield name, value
        if deep and isinstance(value, types.FunctionType):
            yield from _used(value, False)


def _tensors(value: Any) -> List[torch.Tensor]:
    """What somebody who keeps an average of a model has it in."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, torch.nn.Module):
        return [*value.parameters(), *value.buffers()]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)) and all(isinstance(v, torch.Tensor) for v in value):
        return list(value)
    return []


def _is_scheduler(value: Any) -> bool:
    return type(value).__module__ == "torch.optim.lr_scheduler" and hasattr(value, "step")


def warn(function: Any, model: torch.nn.Module, scheduler: Optional[Any], rank: int) -> None:
    """For a state that Sync makes itself, with this model and scheduler. To be called after the
    first version, when all is there that the function uses."""
    known: Set[int] = {id(t) for t in _tensors(model)}
    kept: List[str] = []
    for name, value in _used(function):
        if _is_scheduler(value) and value is not scheduler and not _is_part(value, scheduler):
            warnings.warn(
                f"rank {rank}: the function that Sync calls for each version moves {name}, a "
                f"{type(value).__name__}, which Sync was not given: a rank that takes the state of "
                f"another, as one does that was killed or is late, would have another rate than "
                f"all others. Sync(..., scheduler={name})", RuntimeWarning, stacklevel=5)
        elif any(id(t) not in known for t in _tensors(value)) and name not in kept:
            kept.append(name)
    if kept:
        warnings.warn(
            f"rank {rank}: the function that Sync calls for each version uses "
            f"{' and '.join(kept)}, with tensors that are not the model's: if they change, such as "
            "an average of the weights, a rank that takes the state of another keeps its own. "
            "Sync(..., state=(get, set)) says what a state has", RuntimeWarning, stacklevel=5)


def _is_part(value: Any, scheduler: Optional[Any]) -> bool:
    """Schedulers can be made of others."""
    parts = vars(scheduler).get("_schedulers", ()) if scheduler is not None else ()
    return any(part is value for part in parts)
