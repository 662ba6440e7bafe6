# SPDX-License-Identifier: MIT
"""Views of the library's memory that end with what they show."""
from __future__ import annotations

import ctypes as c
import sys
from typing import Any, Dict, List, Tuple

ITEMS: Dict[str, Tuple[Any, str]] = {
    "f32": (c.c_float, "f"), "bf16": (c.c_uint16, "H"), "f16": (c.c_uint16, "H")}


def _floats(halves: Any) -> Any:
    """The values of bf16 in an array, or an element, of uint16."""
    import numpy
    wide = numpy.asarray(halves).astype(numpy.uint32)
    return numpy.left_shift(wide, numpy.uint32(16)).view(numpy.float32)


def _bits(value: Any) -> Any:
    """Numbers as bf16, rounded to nearest, ties to even; uint16, and what NumPy knows as bfloat16,
    are such bits already."""
    import numpy
    given = numpy.asarray(value)
    if given.dtype.name in ("uint16", "bfloat16"):
        return given.view(numpy.uint16)
    with numpy.errstate(over="ignore"):  # what is too large becomes infinite
        floats = given.astype(numpy.float32)
    bits = floats.reshape(-1).view(numpy.uint32)
    rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16
    rounded = numpy.where(numpy.isnan(floats.reshape(-1)), bits >> 16 | 0x40, rounded)
    return rounded.astype(numpy.uint16).reshape(floats.shape)


class Lease:
    """How long views are valid: until end()."""

    def __init__(self) -> None:
        self.views: List["View"] = []

    def end(self) -> None:
        """Ends the views. BufferError where one cannot be ended, because something that was made
        from it without a copy still reads it: then the call that would have changed the memory does
        not take place."""
        kept = [v for v in self.views if not v._release()]
        self.views = kept
        if kept:
            raise BufferError(
                "something still uses the memory of a result or gradient whose time is over (an "
                "array or tensor made from its view): copy what is to be kept, and drop the rest")


class View:
    """A view of the library's memory, of a result or of a gradient.

    view[i] is an element or a list, len(view) the number of elements; view[...] = array writes to a
    gradient. What is read so is a float, and what is written is converted, of any type of view; an
    array or a memoryview of uint16 that is written to bf16 is taken as its bits. numpy() or
    np.asarray(view) is an array, of float32, float16 or the bits of bf16 in uint16, which NumPy
    does not have; np.asarray(view, "f4") converts them; memoryview(view.memory) is a buffer. When
    the memory gets other contents, at the next push, pull or wait, the view has ended: it raises
    ValueError, in words, and does not show another version. Arrays that were made from it cannot be
    ended, so while one is there that call raises BufferError instead: drop it first (del), or use
    np.array(view), a copy. A view keeps its Worker; after close() it has ended."""

    __slots__ = ("_base", "_memory", "_ended", "_kind", "_writable", "_owner", "__weakref__")

    def __init__(self, base: Any, kind: str, writable: bool, owner: Any):
        self._base, self._kind, self._writable, self._owner = base, kind, writable, owner
        self._ended = False
        self._begin()

    def _begin(self) -> None:
        flat = memoryview(self._base).cast("B").cast(ITEMS[self._kind][1])
        self._memory = flat if self._writable else flat.toreadonly()

    @property
    def _flat(self) -> memoryview:
        if self._ended:
            what, ends = (("gradient", "push() or abandon()") if self._writable else
                          ("result", "push() without keep, pull(), wait()"))
            raise ValueError(f"this view of a {what} has ended, for its memory was released: the "
                             f"next {ends} and close() end it; take the view anew, or copy what is "
                             "to be kept (np.array(view))")
        return self._memory

    @property
    def memory(self) -> memoryview:
        """The buffer: f32 as "f", f16 and bf16, which Python's buffers do not have, as "H"."""
        return self._flat[:]

    def numpy(self) -> Any:
        """An array over the memory, not a copy; f16 as float16, bf16 as uint16."""
        import numpy
        array = numpy.asarray(self._flat[:])  # the slice raises where NumPy would not
        return array.view(numpy.float16) if self._kind == "f16" else array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return (_floats(array) if self._kind == "bf16" else array).astype(dtype)
        return array.copy() if copy else array

    def __len__(self) -> int:
        return len(self._flat)

    def __getitem__(self, index: Any) -> Any:
        if self._kind != "f32":
            part = self.numpy()[index]
            return (_floats(part) if self._kind == "bf16" else part).tolist()
        part = self._flat[index]
        if not isinstance(part, memoryview):
            return part
        with part:
            return part.tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is Ellipsis:
            index = slice(None)
        if isinstance(value, memoryview) and isinstance(index, slice):
            self._flat[index] = value
        elif self._kind == "bf16":
            self.numpy()[index] = _bits(value)
        elif self._kind == "f16" or isinstance(index, slice):
            self.numpy()[index] = value
        else:
            self._flat[index] = value

    def __repr__(self) -> str:
        return f"<muster.View {self._kind}>"

    def _release(self) -> bool:
        """Whatever was made from the buffer without a copy holds the base, which else is held here
        alone: by this object, and by the call that counts."""
        try:
            self._memory.release()
        except BufferError:
            return False
        if sys.getrefcount(self._base) > 2:
            self._begin()
            return False
        self._ended = True
        return True


def view_of(address: int, elems: int, kind: str, lease: Lease, writable: bool, owner: Any) -> View:
    view = View((ITEMS[kind][0] * elems).from_address(address), kind, writable, owner)
    lease.views.append(view)
    return view
