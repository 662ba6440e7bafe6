# SPDX-License-Identifier: MIT
"""What a loop is told that goes on when the job has ended."""
from __future__ import annotations

import warnings

_IN_VAIN = 100_000  # calls of batches(), one after the other: no loop over epochs makes as many


class Over:
    """The calls that a rank makes after the end."""

    def __init__(self) -> None:
        self._steps = self._loops = 0

    def step(self, rank: int, version: int) -> None:
        """Where a loop calls step() again and again."""
        self._steps += 1
        if self._steps == 2:
            warnings.warn(f"rank {rank}: the job has ended with version {version}, so step() does "
                          "nothing, and what is computed for it is lost: leave the loop when "
                          "sync.finished is True, or go over sync.batches(), which ends then",
                          RuntimeWarning, stacklevel=3)

    def batches(self, rank: int, version: int) -> None:
        """Where a loop calls batches(). RuntimeError, in words: it would never end."""
        self._loops += 1
        said = (f"rank {rank}: the job has ended with version {version}, so batches() has no "
                "batch: one loop over it takes the place of the loops over epochs, and until=N "
                "ends the job for good")
        if self._loops > _IN_VAIN:
            raise RuntimeError(f"{said}. It was called {self._loops} times since then: a loop "
                               "that waits for anything else, such as a number of steps, never "
                               "ends")
        warnings.warn(said, RuntimeWarning, stacklevel=3)
