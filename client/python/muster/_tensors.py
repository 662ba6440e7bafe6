# SPDX-License-Identifier: MIT
"""Tensors as they travel: flat, in f32, and over the library's memory."""
from __future__ import annotations

import ctypes
from typing import Any

import torch


def flat(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1)


def must_be_on_the_cpu(name: str, tensor: torch.Tensor) -> None:
    """TypeError, in words: the library would read another memory's address as one of its own."""
    if tensor.device.type != "cpu":
        raise TypeError(f"{name} is on {tensor.device}: muster.torch reads the memory of the CPU "
                        "only: model.cpu(), before Sync or Served is made")


def pack(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor as numbers from 0 to 255 in f32: exact for any type and values."""
    row = flat(tensor).contiguous()
    raw = (row.view(torch.int16) if row.dtype == torch.bfloat16 else row).numpy().tobytes()
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).float() if raw else torch.zeros(0)


def unpack(numbers: torch.Tensor, into: torch.Tensor) -> None:
    if into.numel() == 0:
        return
    raw = bytearray(numbers.to(torch.uint8).numpy().tobytes())
    with torch.no_grad():
        into.copy_(torch.frombuffer(raw, dtype=into.dtype).view(into.shape))


def packed(tensor: torch.Tensor) -> int:
    """How many numbers pack() makes of it."""
    return tensor.numel() * tensor.element_size()


def over(view: Any) -> torch.Tensor:
    """A tensor over the library's memory, to be read at once and dropped."""
    return _over(view, None)


def lent(view: Any) -> torch.Tensor:
    """The same, to be kept: the view cannot be ended while a tensor is made of this memory. Torch
    cannot be told that it may not be written to."""
    return _over(view, (view, view.numpy()))


def _over(view: Any, kept: Any) -> torch.Tensor:
    import numpy
    array = view.numpy()
    shared = (ctypes.c_float * len(array)).from_address(array.ctypes.data)
    shared.kept = kept  # type: ignore[attr-defined]
    return torch.from_numpy(numpy.frombuffer(shared, numpy.float32))
