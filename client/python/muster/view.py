# SPDX-License-Identifier: MIT
"""Views of the library's memory that end with what they show."""
from __future__ import annotations

import ctypes as c
import sys
from typing import Any, Dict, List, Tuple

ITEMS: Dict[str, Tuple[Any, str]] = {
    "f32": (c.c_float, "f"), "bf16": (c.c_uint16, "H"), "f16": (c.c_uint16, "H")}


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

    numpy() or np.asarray(view) is an array, memoryview(view.memory) a buffer, view[i] an element
    or a list, len(view) the number of elements; view[...] = array writes to a gradient. When the
    memory gets other contents, at the next push, pull or wait, the view has ended: it raises
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
            return array.astype(dtype)
        return array.copy() if copy else array

    def __len__(self) -> int:
        return len(self._flat)

    def __getitem__(self, index: Any) -> Any:
        if self._kind == "f16":
            return self.numpy()[index].tolist()
        part = self._flat[index]
        if not isinstance(part, memoryview):
            return part
        with part:
            return part.tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is Ellipsis:
            index = slice(None)
        halves = self._kind == "f16"
        if (halves or isinstance(index, slice)) and not isinstance(value, memoryview):
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
