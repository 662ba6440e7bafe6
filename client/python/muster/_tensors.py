# SPDX-License-Identifier: MIT
"""Tensors as they travel: flat, in f32, and over the library's memory."""
from __future__ import annotations

import ctypes
from typing import Any

import torch

# Types of which pack() can take the bytes; a gradient is of those that Rank knows.
KNOWN = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64,
         torch.complex128, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8,
         torch.bool)


def flat(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1)


def pack(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor as numbers from 0 to 255 in f32: exact for any type and values."""
    row = flat(tensor).cpu().contiguous()
    raw = (row.view(torch.int16) if row.dtype == torch.bfloat16 else row).numpy().tobytes()
    if not raw:
        return torch.zeros(0, dtype=torch.float32, device="cpu")
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).float()


def unpack(numbers: torch.Tensor, into: torch.Tensor) -> None:
    if into.numel() == 0:
        return
    raw = bytearray(numbers.to(torch.uint8).numpy().tobytes())
    with torch.no_grad():
        into.copy_(torch.frombuffer(raw, dtype=into.dtype).view(into.shape))


def packed(tensor: torch.Tensor) -> int:
    """How many numbers pack() makes of it."""
    return tensor.numel() * tensor.element_size()


def over(view: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor over the library's memory. It does not keep the view from ending, so a caller that
    has it
    does not use it longer than the view is valid."""
    return _over(view, dtype, None)


def lent(view: Any) -> torch.Tensor:
    """The same, to be kept: the view cannot be ended while a tensor is made of this memory. Torch
    cannot be told that it may not be written to."""
    return _over(view, torch.float32, (view, view.numpy()))


def _over(view: Any, dtype: torch.dtype, kept: Any) -> torch.Tensor:
    array = view.numpy()
    shared = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    shared.kept = kept  # type: ignore[attr-defined]
    return torch.frombuffer(shared, dtype=dtype)
