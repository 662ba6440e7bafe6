# SPDX-License-Identifier: MIT
"""Optimisers over the parameters of a job beside the one that Sync was given: what each of them
does outside of a version is done in this rank alone, or to an optimiser that makes no step."""
from __future__ import annotations

import functools
import gc
import types
import warnings
import weakref
from typing import Any, Callable, Optional, Tuple

import torch

_METHODS = ("step", "zero_grad")


class Others:
    """From its making until remove(): all optimisers of PyTorch that have one of the parameters,
    those that are there and those that are made.

    opt: that of Sync. has(parameter): it is one of the job. now(): whether the job goes on, and no
    version is applied; and whether one is. In the first case step() is refused, and so is
    zero_grad() of one that was made since, which the program takes for that of Sync. whole: the
    state of a rank is opt with its moments, and not what the program says itself."""

    def __init__(self, opt: torch.optim.Optimizer, has: Callable[[Any], bool],
                 now: Callable[[], Tuple[bool, bool]], whole: bool):
        self._opt, self._has, self._now, self._whole = opt, has, now, whole
        self._over = self._told = False
        self._found: "weakref.WeakSet[torch.optim.Optimizer]" = weakref.WeakSet()
        self._ours: "weakref.WeakSet[Any]" = weakref.WeakSet()  # functions
        for other in gc.get_objects():
            if issubclass(type(other), torch.optim.Optimizer):
                self.look_at(other, "step")
        _listen(self)

    def look_at(self, other: torch.optim.Optimizer, *methods: str) -> None:
        groups = vars(other).get("param_groups", ())
        if other is self._opt or not any(self._has(p) for g in groups for p in g["params"]):
            return
        self._found.add(other)
        for name in methods:
            self._replace(other, name)

    def made(self, other: torch.optim.Optimizer) -> None:
        """Just now. What is made where a version is applied takes part in versions."""
        self.look_at(other, *(_METHODS if self._whole and self._now()[0] else _METHODS[:1]))

    def _replace(self, other: torch.optim.Optimizer, name: str) -> None:
        plain, before, weak = getattr(other, name), vars(other).get(name), weakref.ref(self)

        def watched(this: Any, *args: Any, **kwargs: Any) -> Any:
            there = weak()
            if there is not None and not there._over:
                there._must_be_let(this, name)
            done = plain(*args, **kwargs)
            if there is not None and name == "step":
                there._look_at_moments(this)
            return done

        watched.__dict__.update(getattr(plain, "__dict__", {}))  # of schedulers
        watched.before = before  # type: ignore[attr-defined]
        self._ours.add(watched)
        setattr(other, name, types.MethodType(watched, other))

    def _must_be_let(self, other: torch.optim.Optimizer, name: str) -> None:
        if not self._now()[0]:
            return
        kind, ours = type(other).__name__, type(self._opt).__name__
        if name == "step":
            raise RuntimeError(
                f"step() of another optimiser, {kind}, was called beside sync.step(), and it has "
                "parameters of this job: so this rank would make a step that the others do not "
                "make. Sync calls step() of the optimiser that it was given for each version; "
                "where another one belongs to a version, call it in the function that Sync calls, "
                "Sync(model, opt, step=function, state=(get, set))")
        raise RuntimeError(
            f"zero_grad() of an optimiser, {kind}, that was made after this Sync, over the same "
            f"parameters: sync.step() calls that which Sync was given, {ours}, so this one would "
            "have no effect. Make the optimiser before Sync; to begin with another one later, "
            "sync.close() in all ranks, and another Sync in another job; to change rates, do it in "
            "the function that Sync calls for each version")

    def _look_at_moments(self, other: torch.optim.Optimizer) -> None:
        """It has made a step. As part of a version it has what a later one depends on?"""
        if self._told or not self._whole or not self._now()[1] or other.state is self._opt.state:
            return
        if all(value is None for row in other.state.values() for value in row.values()):
            return
        self._told = True
        warnings.warn(f"step() of {type(other).__name__} is part of a version, and that optimiser "
                      "is not the one that Sync was given: a rank that comes back would take the "
                      "state of the others without its moments, and have other parameters from "
                      "then on. Name both in Sync(model, opt, step, state=(get, set))",
                      RuntimeWarning, stacklevel=4)

    def remove(self) -> None:
        """A second call does nothing. If something has wrapped a method since, the wrapper of this
        class stays below it, and does nothing."""
        self._over = True
        _present.discard(self)
        for other in list(self._found):
            for name in _METHODS:
                function = getattr(vars(other).get(name), "__func__", None)
                if function is None or function not in self._ours:
                    continue
                if function.before is None:
                    delattr(other, name)
                else:
                    setattr(other, name, function.before)
        self._found.clear()
        if not _present:
            _listen_no_more()


_present: "weakref.WeakSet[Others]" = weakref.WeakSet()
_before: Optional[Any] = None  # Optimizer.__init__, while that of this module is in its place


def _listen(others: Others) -> None:
    """To all optimisers that are made. PyTorch 1.13 has no hook for what they do."""
    global _before
    _present.add(others)
    if _before is not None:
        return
    _before = plain = torch.optim.Optimizer.__init__

    @functools.wraps(plain)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        for there in list(_present):
            there.made(self)

    init.muster = True  # type: ignore[attr-defined]
    torch.optim.Optimizer.__init__ = init  # type: ignore[assignment, method-assign]


def _listen_no_more() -> None:
    global _before
    if getattr(torch.optim.Optimizer.__init__, "muster", False):
        torch.optim.Optimizer.__init__ = _before  # type: ignore[assignment, method-assign]
        _before = None
