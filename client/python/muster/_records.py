# SPDX-License-Identifier: MIT
"""What a Worker tells and is told, as muster.h has it: records; verdicts and hints by name."""
from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple, Optional, Tuple

from .view import View


class Verdict(enum.IntEnum):
    """What became of a push."""
    NONE = 0
    COUNTED = 1
    LATE = 2
    STALE = 3
    CANCELLED = 4
    REFUSED = 5
    OUTLIER = 6
    DAMAGED = 7


class Hint(enum.IntEnum):
    """What check() advises: go on; hand in what is finished; what is computed cannot count."""
    GO_ON = 0
    HAND_IN = 1
    GIVE_UP = 2


class Share(NamedTuple):
    """One rank's part in a version: how many contributions, and the samples in them."""
    rank: int
    count: int  # type: ignore[assignment]  # a tuple has count()
    weight: float


class Region(NamedTuple):
    """Memory of a Worker: a buffer of gradient(), which is writable, or a place of results."""
    address: int
    size: int  # bytes
    writable: bool


@dataclass(frozen=True)
class Job:
    """The job as this worker joined it, and the policy in force; as struct muster_job."""
    name: str
    policy: str
    rank: int
    incarnation: int
    workers: int
    slots: int
    elems: int
    lease: float     # seconds
    patience: float  # seconds
    first_version: int
    first_samples: float


@dataclass(frozen=True)
class Outcome:
    """What became of a push, and the version to go on with; as struct muster_outcome."""
    verdict: Verdict
    ticket: int
    counted_in: int
    version: int
    fresh: bool
    finished: bool
    result: Optional[View]  # read only; valid until the next push without keep, pull or wait
    set: Tuple[Share, ...]
    weight: float
    lr_scale: float
    local_steps: int
    alpha: float
    push_every: int
    fetch_every: int
    by_micro: bool  # every micro-batch is wanted when it is finished: push(part=True)
    # The newest version that this worker has heard of: `version`, or a later one. If finished, the
    # last of the job, which a worker that owns parameters may lack.
    newest: int
    # Of the servers that this comes from, from 1: another one than before where a server was lost,
    # and the job has gone on. 0: musterd --server-patience is 0.
    generation: int
    # So many of this worker's last versions, or more, are void: the job goes on without them.
    withdrawn: int
    # Of the job when the version was made; 0: not known. Now there are Worker.job.workers.
    workers: int
    more: bool  # another outcome is ready: wait() again at once


class Part(NamedTuple):
    """A part of a worker's state, as struct muster_part: parts of the same name are compared.
    value: for people, where it is short. kernel: not of the state, but of what computes."""
    name: str
    digest: int
    value: str = ""
    kernel: bool = False


@dataclass(frozen=True)
class Agreement:
    """What has come of agree(); as struct muster_agreement."""
    state: Optional[bytes]  # of another worker, which is to replace the own one
    version: int
    source: int  # the rank whose state all begin with
    why: str
    kernels_differ: bool


class Difference(NamedTuple):
    """What difference() says; as struct muster_difference."""
    version: int  # after which this worker had something else
    source: int   # a rank of those that have something else
    why: str
    kernels_differ: bool  # one of the two came late, and computes with other kernels
