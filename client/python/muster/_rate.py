# SPDX-License-Identifier: MIT
"""The learning rate of an optimiser, multiplied in each of its steps."""
from __future__ import annotations

import types
from typing import Any

import torch


class Rate:
    """Each opt.step() is made with its learning rates times `scale`, until remove(): opt is then as
    it was before. If something has wrapped opt.step since, this wrapper stays below it, and
    multiplies by 1."""

    def __init__(self, opt: torch.optim.Optimizer):
        self.scale = 1.0
        self._opt, self._before, self._plain = opt, vars(opt).get("step"), opt.step

        def scaled(_: Any, *args: Any, **kwargs: Any) -> Any:
            return self._step(*args, **kwargs)

        scaled.__dict__.update(getattr(self._plain, "__dict__", {}))  # of schedulers
        self._ours = types.MethodType(scaled, opt)
        opt.step = self._ours  # type: ignore[assignment, method-assign]

    def _step(self, *args: Any, **kwargs: Any) -> Any:
        rates = [g["lr"] for g in self._opt.param_groups]
        for g in self._opt.param_groups:
            g["lr"] = g["lr"] * self.scale
        try:
            return self._plain(*args, **kwargs)
        finally:
            for g, rate in zip(self._opt.param_groups, rates):
                g["lr"] = rate

    def remove(self) -> None:
        """A second call does nothing."""
        self.scale = 1.0
        if vars(self._opt).get("step") is not self._ours:
            return
        if self._before is None:
            del self._opt.step
        else:
            self._opt.step = self._before  # type: ignore[assignment, method-assign]
