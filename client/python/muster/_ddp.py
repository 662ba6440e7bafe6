# SPDX-License-Identifier: MIT
"""DistributedDataParallel around a model: over a group of one, for a larger one waits."""
from __future__ import annotations

import gc
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def alone() -> Any:
    """A process group of this process alone, for DistributedDataParallel(model, process_group=
    muster.torch.alone()): a model that is wrapped in it keeps its code. Uses no network."""
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    if dist.get_world_size() == 1:
        return dist.group.WORLD
    groups = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
    return groups[dist.get_rank()]


def bare(model: torch.nn.Module, taker: str) -> torch.nn.Module:
    """The model without a DistributedDataParallel around it. taker: what is to have it, for the
    sentence of ValueError."""
    if not isinstance(model, DistributedDataParallel):
        return model
    size = dist.get_world_size(model.process_group)
    if size > 1:
        raise ValueError(
            f"the model is in DistributedDataParallel over {size} ranks, which wait for each "
            f"other in every forward and backward, so that the slowest sets the pace: give {taker} "
            "the bare model, or DistributedDataParallel(model, "
            "process_group=muster.torch.alone())")
    return model.module


def over(model: torch.nn.Module) -> str:
    """What has changed a gradient, if a DistributedDataParallel is around the model that was made
    after the hooks on it. It costs much, and is for errors."""
    if not any(type(o) is DistributedDataParallel and o.module is model for o in gc.get_objects()):
        return ""
    return ("A DistributedDataParallel around this model may have done it, which was made later: "
            "leave it out, or give it to Sync, over a group of one (muster.torch.alone()). ")
