# SPDX-License-Identifier: MIT
"""What a program gives, looked at before it goes to the library, which sees nothing but bytes: a
number that C cannot hold would wrap, a text would end at its first NUL, and the bytes of another
type would count as a gradient."""
from __future__ import annotations

import ctypes as c
import math
import operator
from typing import Any, Optional, Tuple

BYTES = {"f32": 4, "bf16": 2, "f16": 2}
# What an array of NumPy, or of another library with such types, has to be of. NumPy has no bf16:
# ml_dtypes has, or the upper halves of f32 lie in uint16.
_ARRAYS = {"f32": ("float32",), "bf16": ("bfloat16", "uint16"), "f16": ("float16",)}
# The formats of buffers without such a type, as of array.array, memoryview and ctypes.
_FORMATS = {"f32": ("f",), "bf16": ("H",), "f16": ("e", "H")}
_RAW = ("B", "b", "c")  # bytes, bytearray, mmap: of no type
_NATIVE = ("", "@", "=", "<" if memoryview(c.c_uint16(1)).tobytes()[0] == 1 else ">")
_LONGEST_MS = 0xffffffff  # seven weeks


def whole(name: str, value: Any, least: int, most: int) -> int:
    """The value as an int. TypeError, ValueError: it is none, or not in the range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, {_kind(value)}: an integer is wanted") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}: it is an integer from {least} to {most}")
    return number


def real(name: str, value: Any) -> float:
    """The value as a float. TypeError: it is no number."""
    try:
        math.isnan(value)  # takes what is a number, and no text
    except TypeError:
        raise TypeError(f"{name} is {value!r}, {_kind(value)}: a number is wanted") from None
    return float(value)


def milliseconds(name: str, seconds: Any) -> int:
    """A time-out for the library. None: 0, for which the library has its own. Infinity and what is
    very long: the longest there is."""
    if seconds is None:
        return 0
    value = real(name, seconds)
    if not value >= 0:
        raise ValueError(f"{name} is {value:g}: it is a number of seconds, float('inf') among them")
    return max(1, int(min(value * 1000, _LONGEST_MS)))


def text(name: str, value: Optional[str]) -> Optional[bytes]:
    """A text for C; None stays."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, {_kind(value)}: a str is wanted")
    if "\0" in value:
        raise ValueError(f"{name} is {value!r}, which has a NUL in it, and would end there")
    return value.encode()


def data(what: str, given: Any, kind: str, count: int) -> Tuple[int, Any]:
    """The address of contiguous data of that type, and what keeps them. TypeError: they are of
    another type, or no buffer; ValueError: of another length, or not contiguous."""
    flat = _flat(what, given, kind)
    if flat.nbytes != count * BYTES[kind]:
        raise ValueError(f"{count} elements of {kind} are wanted, and {what} has "
                         f"{flat.nbytes // BYTES[kind]}, in {flat.nbytes} bytes")
    if flat.readonly:
        flat = memoryview(bytearray(flat))
    held = (c.c_char * flat.nbytes).from_buffer(flat)
    return c.addressof(held), held


def _flat(what: str, given: Any, kind: str) -> memoryview:
    """The bytes of a buffer that has been found to be of the type."""
    dtype = getattr(given, "dtype", None)
    name = None if dtype is None else str(getattr(dtype, "name", dtype))
    if name == "bfloat16" and kind == "bf16" and hasattr(given, "view"):
        given = given.view("uint16")  # such arrays give no buffer
    try:
        flat = memoryview(given)
    except (TypeError, ValueError):
        hint = ""
        if hasattr(given, "numpy"):  # a View, or a tensor of PyTorch
            hint = ": give its numpy(), of a tensor on a device tensor.detach().cpu().numpy()"
        raise TypeError(f"{what} is {_kind(given)}, which is no buffer of {kind}{hint}") from None
    if name is not None:
        if name not in _ARRAYS[kind] or flat.format[:-1] not in _NATIVE:
            raise _wrong(what, dtype, kind)
    elif flat.format[-1:] not in _FORMATS[kind] + _RAW or flat.format[:-1] not in _NATIVE:
        raise _wrong(what, f"format {flat.format!r}", kind)
    if not flat.c_contiguous:
        raise ValueError(f"{what} is not contiguous: numpy.ascontiguousarray()")
    return memoryview(flat.tobytes()) if flat.format[:-1] else flat.cast("B")


def _wrong(what: str, found: Any, kind: str) -> TypeError:
    wanted = " or ".join(_ARRAYS[kind])
    remedy = (f"array.astype({wanted!r})" if kind != "bf16" else
              "the upper halves of float32 in uint16, or write to gradient(), which takes floats")
    return TypeError(f"{what} is of {found}, and {kind} is wanted ({wanted} of NumPy, in the order "
                     f"of bytes of this host): {remedy}")


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
