# SPDX-License-Identifier: MIT
"""An optimiser in a job: when its steps are made, at which rate, and what else changes it."""
from __future__ import annotations

import contextlib
import gc
import types
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from ._others import Others

_SCHEDULED = ("lr", "momentum", "betas")  # what schedulers of PyTorch change
_NONE: Dict[Any, Any] = {}  # of an optimiser that is not of PyTorch
_IDLE = 8  # versions, after which opt.step() has to have been called
_Group = Tuple[int, Dict[str, Any]]  # how many parameters, and the rest of a parameter group


def names_of(opt: torch.optim.Optimizer, differ: Sequence[str]) -> Tuple[str, ...]:
    """differ, as a tuple. ValueError, in words: parameter groups have no such value."""
    names = (differ,) if isinstance(differ, str) else tuple(differ)
    there = sorted({key for g in opt.param_groups for key in g} - {"params"})
    for name in names:
        if name not in there:
            raise ValueError(f"differ has {name!r}, and what parameter groups of this optimiser "
                             f"have is {', '.join(there)}")
    return names


def warn_of_two_momenta(opt: torch.optim.Optimizer, policy: str, rank: int, workers: int) -> None:
    """Gradients on old versions move parameters as a momentum does, and that of opt adds to it."""
    name, _, quorum = policy.partition(":")
    most = max((g.get("momentum", 0) for g in opt.param_groups), default=0)
    if name != "kasync" or not most or int(quorum) >= workers:
        return
    warnings.warn(f"rank {rank}: the optimiser has a momentum of {most:g}, and {policy} counts "
                  "gradients on old versions, which bring a momentum of their own: both together "
                  "may spoil what is learned. A momentum of 0 is the safe choice under kasync",
                  RuntimeWarning, stacklevel=4)


class Watch:
    """From its making until remove(): opt is then as it was before. If something has wrapped
    opt.step since, the wrapper of this class stays below it, and does nothing.

    Each opt.step() is made with the learning rates times `scale`, and is refused but in applies(),
    as that of each other optimiser of the same parameters (Others).
    differ: what in parameter groups may be another value in each rank. scheduler: its place may not
    change between versions either. has, whole: of Others."""

    def __init__(self, opt: torch.optim.Optimizer, differ: Sequence[str],
                 scheduler: Optional[Any], has: Callable[[Any], bool], whole: bool):
        self.scale, self.refuses, self.applying = 1.0, True, False
        self._opt, self._before, self._plain = opt, vars(opt).get("step"), opt.step
        self._differ = names_of(opt, differ)
        self._scheduler = scheduler
        self._seen: Optional[Tuple[Any, List[_Group]]] = None
        self._moments: Tuple[Any, int] = _NONE, 0
        self._steps = self._versions = 0
        self._first: List[torch.Tensor] = []

        def watched(_: Any, *args: Any, **kwargs: Any) -> Any:
            return self._step(*args, **kwargs)

        watched.__dict__.update(getattr(self._plain, "__dict__", {}))  # of schedulers
        self._ours = types.MethodType(watched, opt)
        opt.step = self._ours  # type: ignore[assignment, method-assign]
        self._others = Others(opt, has, lambda: (self.refuses, self.applying), whole)

    def _step(self, *args: Any, **kwargs: Any) -> Any:
        if self.refuses:
            raise RuntimeError(
                "opt.step() was called beside sync.step(), which calls it for each version: so "
                "this rank would make a step that the others do not make. Leave opt.step() out; "
                "or, where more belongs to a step, put all of it in the function that Sync calls "
                "for each version, Sync(model, opt, step=function)")
        self._steps += 1
        if self.scale == 1.0:
            return self._plain(*args, **kwargs)
        rates = [g["lr"] for g in self._opt.param_groups]
        for g in self._opt.param_groups:
            g["lr"] = g["lr"] * self.scale
        try:
            return self._plain(*args, **kwargs)
        finally:
            for g, rate in zip(self._opt.param_groups, rates):
                g["lr"] = rate

    @contextlib.contextmanager
    def applies(self) -> Iterator[None]:
        """A version is applied here."""
        if self._versions == 0:
            self._first = self._some()
        before, self.refuses, self.applying = self.refuses, False, True
        try:
            yield
        finally:
            self.refuses, self.applying = before, False
        self._versions += 1
        if self._versions == _IDLE:
            self._must_have_moved()

    def _some(self) -> List[torch.Tensor]:
        """Some elements of each parameter."""
        return [p.detach().reshape(-1)[:_IDLE].clone() for g in self._opt.param_groups
                for p in g["params"]]

    def _must_have_moved(self) -> None:
        now, self._first, first = self._some(), [], self._first
        if self._steps == 0 and len(now) == len(first) and all(map(torch.equal, now, first)):
            warnings.warn(f"the function that Sync calls for each version has been called {_IDLE} "
                          "times, and has changed no parameter: it has to call opt.step(), also "
                          "where it clips, or moves a schedule", RuntimeWarning, stacklevel=3)

    def remove(self) -> None:
        """A second call does nothing."""
        self.scale, self.refuses = 1.0, False
        self._others.remove()
        if vars(self._opt).get("step") is not self._ours:
            return
        if self._before is None:
            del self._opt.step
        else:
            self._opt.step = self._before  # type: ignore[assignment, method-assign]

    # ---- parameter groups ----

    def look(self) -> None:
        """Parameter groups and scheduler are as all ranks have them at this version."""
        self._seen = self._place(), self._now()
        self._moments = self._state(), self._count()

    def own(self) -> Tuple[List[Dict[str, Any]], Any]:
        """The values that may differ, for keep(). With the rate goes what a scheduler begins
        with."""
        names = (*self._differ, "initial_lr") if "lr" in self._differ else self._differ
        rates = getattr(self._scheduler, "base_lrs", None) if "lr" in self._differ else None
        return [{k: g[k] for k in names if k in g} for g in self._opt.param_groups], rates

    def keep(self, own: Tuple[List[Dict[str, Any]], Any]) -> None:
        groups, rates = own
        for g, values in zip(self._opt.param_groups, groups):
            g.update(values)
        if rates is not None:
            self._scheduler.base_lrs = rates  # type: ignore[union-attr]

    def _place(self) -> Any:
        return None if "lr" in self._differ else getattr(self._scheduler, "last_epoch", None)

    def _now(self) -> List[_Group]:
        return [(len(g["params"]), {k: _fixed(v) for k, v in g.items()
                                    if k != "params" and k not in self._differ})
                for g in self._opt.param_groups]

    def must_be_as_seen(self, rank: int, version: int) -> None:
        """Since look(), which comes after each version; ValueError, in words. The first call looks,
        for what a program does between Sync() and its first step, all ranks do."""
        if self._seen is None:
            self.look()
            return
        place, groups = self._seen
        changed = _changed(groups, self._opt.param_groups)
        if place != self._place():
            what = f"last_epoch of {type(self._scheduler).__name__}, which is the scheduler,"
            changed = what, place, self._place(), ""
        if changed is None and self._moments_are_others():
            raise ValueError(
                f"rank {rank}: the state of the optimiser, its moments, is another one than when "
                f"version {version} had been applied, as after opt.load_state_dict(): other ranks "
                "have not that one, or have changed to it at another version. Load a state before "
                "the first forward() of a job (sync.load(), in one rank), or change it in the "
                "function that Sync calls for each version")
        if changed is None:
            return
        what, was, now, key = changed
        who = self._who() if key in _SCHEDULED else ""
        own = (f' Where each rank is to have its own, and so other parameters than the others: '
               f'Sync(..., differ=("{key}",)).' if key else "")
        raise ValueError(
            f"rank {rank}: {what} was {was!r} when version {version} had been applied, and is "
            f"{now!r} now.{who} A rank that is late applies several versions in one sync.step(), "
            "so what is changed from version to version, as by schedule.step(), is changed in the "
            "function that Sync calls for each of them, after opt.step(): "
            f"Sync(model, opt, step=function, scheduler=schedule).{own}")

    def _state(self) -> Any:
        return getattr(self._opt, "state", _NONE)

    def _count(self) -> int:
        """How many parameters have moments. Who reads those of one that has none makes an empty
        row."""
        return sum(map(bool, self._state().values()))

    def _moments_are_others(self) -> bool:
        state, count = self._moments
        return self._state() is not state or self._count() != count

    def _who(self) -> str:
        """The schedulers of this optimiser. It costs much, and is for errors."""
        kinds = tuple(k for k in vars(torch.optim.lr_scheduler).values()
                      if isinstance(k, type) and k.__module__ == "torch.optim.lr_scheduler"
                      and hasattr(k, "step"))  # PyTorch 2 has other classes there, too
        found = sorted({type(o).__name__ for o in gc.get_objects() if issubclass(type(o), kinds)
                        and vars(o).get("optimizer") is self._opt})
        return f" {' and '.join(found)} of this optimiser may have done it." if found else ""


def _fixed(value: Any) -> Any:
    """That does not change with the group."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return tuple(value) if isinstance(value, list) else value


def _changed(was: List[_Group], now: List[Dict[str, Any]]) -> Optional[Tuple[str, Any, Any, str]]:
    """What has changed, in words; from and to; its name in the group, where it has one. What is new
    in a group a scheduler has put there when it was made."""
    if len(was) != len(now):
        return "the number of parameter groups", len(was), len(now), ""
    for at, ((count, values), group) in enumerate(zip(was, now)):
        if count != len(group["params"]):
            return f"the number of parameters of group {at}", count, len(group["params"]), ""
        for key, value in values.items():
            other = group.get(key, value)
            if other is not value and _fixed(other) != value:
                return f"{key} of parameter group {at}", value, _fixed(other), key
    return None
