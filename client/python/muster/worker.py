# SPDX-License-Identifier: MIT
"""A worker of a muster job: the calls of muster.h, with their contracts, as Python has them."""
from __future__ import annotations

import ctypes as c
import enum
import errno
import os
import select
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _library
from ._library import lib
from .view import Lease, View, view_of

TYPES = {"f32": 0, "bf16": 1, "f16": 2}
BYTES = {"f32": 4, "bf16": 2, "f16": 2}
OWNERS = {"servers": 0, "workers": 1}


class Verdict(enum.IntEnum):
    """What became of a push."""
    NONE = 0
    COUNTED = 1
    LATE = 2
    STALE = 3
    CANCELLED = 4
    REFUSED = 5


class Hint(enum.IntEnum):
    """What check() advises: go on; hand in what is finished; what is computed cannot count."""
    GO_ON = 0
    HAND_IN = 1
    GIVE_UP = 2


class Error(OSError):
    """A call of the library has failed. str() is its sentence, errno its number."""

    def __str__(self) -> str:
        return str(self.args[1])


class InvalidArgument(Error, ValueError):
    """An argument is wrong (EINVAL)."""


class NotFinite(Error, ArithmeticError):
    """An element is infinite or NaN (EDOM); that contribution has been given up."""


class Timeout(Error, TimeoutError):
    """The time was over (ETIMEDOUT); nothing is lost, call again."""


class Interrupted(Error, InterruptedError):
    """wake() has ended this wait (EINTR); nothing is lost, call again."""


class Busy(Error):
    """All gradient buffers are in flight (EAGAIN): wait() first."""


class SessionLost(Error, ConnectionError):
    """The session has ended (ENOTCONN): make another Worker."""


class JobFailed(Error):
    """The job has failed (EHOSTDOWN)."""


class Stale(Error):
    """Workers own, and this one is behind the history that the server keeps (ESTALE)."""


class Forked(Error):
    """Another process made this Worker, and this one is a child that it forked (ECHILD)."""


_ERRORS = {errno.EINVAL: InvalidArgument, errno.EDOM: NotFinite, errno.ETIMEDOUT: Timeout,
           errno.EINTR: Interrupted, errno.EAGAIN: Busy, errno.ENOTCONN: SessionLost,
           errno.EHOSTDOWN: JobFailed, errno.ESTALE: Stale, errno.ECHILD: Forked}


def _error(code: int, sentence: str) -> Error:
    return _ERRORS.get(-code, Error)(-code, sentence)


class Share(NamedTuple):
    """One rank's part in a version: how many contributions, and the samples in them."""
    rank: int
    count: int
    weight: float


@dataclass(frozen=True)
class Job:
    """The job as this worker joined it; as struct muster_job."""
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
    more: bool  # another outcome is ready: wait() again at once


def _close(handle: c.c_void_p, lock: threading.Lock) -> None:
    """Not while another thread is in a call, as at the end of the process."""
    if lock.acquire(blocking=False):
        lib.muster_close(handle)


class _Opening(threading.Thread):
    """muster_open(), in a thread: so Ctrl-C ends the call of the main thread, whatever it waits
    for. A handle that nobody wants any more is closed."""

    def __init__(self, options: _library.Options, keep: Any):
        super().__init__(name="muster-open", daemon=True)
        self.options, self.keep, self.handle = options, keep, c.c_void_p()
        self.code, self.sentence = 0, ""
        self.lock, self.unwanted = threading.Lock(), False

    def run(self) -> None:
        handle = c.c_void_p()
        code = lib.muster_open(c.byref(self.options), c.byref(handle))
        sentence = lib.muster_error(None).decode("utf-8", "replace") if code < 0 else ""
        with self.lock:
            self.code, self.sentence, self.handle = code, sentence, handle
            if self.unwanted and code == 0:
                lib.muster_close(handle)

    def result(self) -> c.c_void_p:
        self.start()
        try:
            self.join()
        except BaseException:
            with self.lock:
                if self.is_alive() and not self.handle and self.code == 0:
                    self.unwanted = True
                elif self.handle:
                    lib.muster_close(self.handle)
            raise
        if self.code < 0:
            raise _error(self.code, self.sentence)
        return self.handle


def _milliseconds(seconds: Optional[float]) -> int:
    return 0 if seconds is None else max(1, min(int(seconds * 1000), 0xffffffff))


class Worker:
    """A worker of a job; joins it at once.

    elems: the length of the vector. type, result_type: "f32", "bf16" or "f16". owner: "servers" or
    "workers". tensors: (name, elements) of each tensor, in order. server, job, rank and clip come
    from the environment where they are not given, as muster.h says of struct muster_options.
    join_timeout, wait_timeout: seconds.

    One thread at a time uses a Worker; check() and wake() may be called from any. While a call
    waits other Python threads run, and Ctrl-C ends it. A Worker belongs to the process that made
    it: in a child of fork() its calls raise Forked. `with Worker(...) as w` closes it; so does the
    end of the process, and the garbage collector."""

    def __init__(self, elems: int, *, server: Optional[str] = None, job: Optional[str] = None,
                 rank: int = -1, type: str = "f32", result_type: str = "f32",
                 owner: str = "servers", tensors: Optional[Sequence[Tuple[str, int]]] = None,
                 join_timeout: float = 60.0, wait_timeout: Optional[float] = None,
                 clip: float = 0.0):
        for name, value, known in (("type", type, TYPES), ("result_type", result_type, TYPES),
                                   ("owner", owner, OWNERS)):
            if value not in known:
                raise ValueError(f"{name} is {value!r}; it is one of {', '.join(known)}")
        self.type, self.result_type = type, result_type
        table = None
        if tensors is not None:
            table = (_library.Tensor * len(tensors))()
            first = 0
            for row, (name, count) in zip(table, tensors):
                row.name, row.first, row.count = name.encode(), first, count
                row.lr_scale = row.decay_scale = 1
                first += count
        options = _library.Options(
            size=c.sizeof(_library.Options), server=server and server.encode(),
            job=job and job.encode(), rank=rank, elems=elems, type=TYPES[type],
            result_type=TYPES[result_type], owner=OWNERS[owner], tensors=table,
            tensor_count=len(table) if table is not None else 0,
            join_ms=_milliseconds(join_timeout), wait_ms=_milliseconds(wait_timeout), clip=clip)
        self._pid, self._lock, self._woken = os.getpid(), threading.Lock(), False
        self._results: Lease = Lease()
        self._gradients: Lease = Lease()
        self._handle: Optional[c.c_void_p] = _Opening(options, table).result()
        self._finalizer = weakref.finalize(self, _close, self._handle, self._lock)
        known = lib.muster_job(self._handle).contents
        self.job = Job(known.name.decode(), known.policy.decode(), known.rank, known.incarnation,
                       known.workers, known.slots, known.elems, known.lease_ms / 1000,
                       known.patience_ms / 1000, known.first_version, known.first_samples)
        self._wait_seconds = (self.job.patience + self.job.lease if wait_timeout is None
                              else wait_timeout)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._handle is None else f"in job {self.job.name!r}"
        return f"<muster.Worker rank {self.job.rank} {state}>"

    # ---- how calls are made ----

    def _mine(self) -> c.c_void_p:
        if self._handle is None:
            raise SessionLost(errno.ENOTCONN, f"rank {self.job.rank}: this Worker has been closed")
        if os.getpid() != self._pid:
            raise Forked(errno.ECHILD, f"rank {self.job.rank}: process {self._pid} made this "
                         "Worker, and this one is a child that it forked; make another one here")
        return self._handle

    def _call(self, function: Any, *arguments: Any) -> int:
        handle = self._mine()
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("another thread is in a call of this Worker: one thread at a time "
                               "uses it, but for check() and wake()")
        try:
            code = function(handle, *arguments)
            if code >= 0:
                return code
            sentence = lib.muster_error(handle).decode("utf-8", "replace")
        finally:
            self._lock.release()
        raise _error(code, sentence)

    def _until_done(self, function: Any, *arguments: Any) -> int:
        """A wait that a signal has ended goes on, once Python's handler has run and not raised."""
        while True:
            try:
                return self._call(function, *arguments)
            except Interrupted:
                if self._woken:
                    self._woken = False
                    raise

    # ---- the loop ----

    def start(self, own: Any = None) -> Outcome:
        """Says that this worker is ready; returns the version that all start from. own: a start
        state to offer, a contiguous buffer of result_type[elems]. Waits at most join_timeout, then
        raises Timeout: call again."""
        address, keep = (None, None) if own is None else self._buffer(own, self.result_type)
        out = self._outcome()
        self._results.end()
        self._until_done(lib.muster_start, address, c.byref(out))
        del keep
        return self._told(out, 0)

    def gradient(self) -> View:
        """The buffer to fill next, type[elems], writable, with undefined contents; the same until
        it is pushed or abandoned. Raises Busy where all are in flight. bf16 is seen as uint16."""
        handle = self._mine()
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("another thread is in a call of this Worker")
        try:
            address = lib.muster_gradient(handle)
            sentence = lib.muster_error(handle).decode("utf-8", "replace")
        finally:
            self._lock.release()
        if not address:
            raise Busy(errno.EAGAIN, sentence or f"rank {self.job.rank}: there is no buffer: the "
                       "job or the session has ended")
        return view_of(address, self.job.elems, self.type, self._gradients, True, self)

    def push_range(self, first: int, count: int, src: Any = None) -> None:
        """Hands over a finished range of the contribution. src: a contiguous buffer of type[count],
        copied before this returns; None: it lies in gradient()."""
        self.push_ranges([(first, count, src)])

    def push_ranges(self, pieces: Iterable[Tuple[int, int, Any]]) -> None:
        """push_range() for each (first, count, src), in one call; src may also be an address. What
        comes before a piece that is refused has been handed over."""
        kept: List[Any] = []
        rows = []
        for first, count, src in pieces:
            if src is not None and not isinstance(src, int):
                src, keep = self._buffer(src, self.type, count)
                kept.append(keep)
            rows.append((first, count, src))
        table = (_library.Piece * len(rows))(*rows)
        self._call(lib.muster_push_ranges, table, len(rows))

    def push(self, weight: float = 1.0, *, loss: Optional[float] = None, sum: bool = False,
             full: bool = True, keep: bool = False) -> int:
        """Hands the contribution in, with the number of samples in it. The gradient's view ends,
        and unless keep the result's. Returns its ticket; 0 once the job is over."""
        mine = _library.Contribution(size=c.sizeof(_library.Contribution), weight=weight,
                                     loss=loss or 0.0, has_loss=loss is not None, sum=sum,
                                     full=full, keep=keep)
        ticket = c.c_uint64()
        if not keep:
            self._results.end()
        self._call(lib.muster_push, c.byref(mine), c.byref(ticket))
        self._gradients.end()
        return ticket.value

    def abandon(self) -> None:
        """Gives the unfinished contribution up; the next wait() says CANCELLED with ticket 0."""
        self._gradients.end()
        self._call(lib.muster_abandon)

    def check(self) -> Hint:
        """A hint for a busy worker; any thread, at any moment."""
        if self._handle is None or os.getpid() != self._pid:
            return Hint.GIVE_UP
        return Hint(lib.muster_check(self._handle))

    def pull(self) -> None:
        """Asks for the newest version without contributing; wait() brings it."""
        self._results.end()
        self._call(lib.muster_pull)

    def wait(self) -> Outcome:
        """Waits until the rule lets this worker go on; at most wait_timeout, then raises Timeout.
        Raises Interrupted where wake() was called."""
        out = self._outcome()
        self._results.end()
        if threading.current_thread() is not threading.main_thread():
            return self._told(out, self._until_done(lib.muster_wait, c.byref(out)))
        return self._told(out, self._wait_for_signals_too(out))

    def _wait_for_signals_too(self, out: _library.Outcome) -> int:
        """A signal that comes just before the library sleeps ends no sleep, so the main thread,
        in which Python handles signals, sleeps here, and not for long at a time."""
        end = time.monotonic() + self._wait_seconds
        try:
            ready = select.poll()
            ready.register(self.fileno(), select.POLLIN)
        except Error:  # this network has no descriptor, or the session has ended
            return self._until_done(lib.muster_wait, c.byref(out))
        while True:
            try:
                return self._until_done(lib.muster_try_wait, c.byref(out))
            except Busy:
                if time.monotonic() >= end:
                    raise Timeout(errno.ETIMEDOUT, f"rank {self.job.rank}: there was no outcome "
                                  f"within {self._wait_seconds:g} s; nothing is lost, wait again")
            ready.poll(100)

    def try_wait(self) -> Optional[Outcome]:
        """wait() without the wait: None where no outcome is ready yet. The result's view ends."""
        out = self._outcome()
        self._results.end()
        try:
            return self._told(out, self._until_done(lib.muster_try_wait, c.byref(out)))
        except Busy:
            return None

    def wake(self) -> None:
        """Ends the wait of another thread, or its next one: it raises Interrupted. Any thread."""
        if self._handle is not None and os.getpid() == self._pid:
            self._woken = True
            lib.muster_wake(self._handle)

    def fileno(self) -> int:
        """A descriptor for select and asyncio: readable when try_wait() may bring something. Try
        until None before each poll, and at least once in job.lease seconds."""
        return self._call(lib.muster_fd)

    def finish(self, why: str = "") -> None:
        """Ends the job for everybody; wait() then brings the last outcome."""
        self._call(lib.muster_finish, why.encode())

    def report(self, name: str, value: float) -> None:
        """Tells the servers a value that this worker has found out about the version it has."""
        self._call(lib.muster_report, name.encode(), value)

    def close(self) -> None:
        """Leaves the job: what was pushed still counts. All views end. A second call does nothing.
        In a child of fork() it frees the child's copy alone."""
        if self._handle is None:
            return
        if self._lock.locked() and os.getpid() == self._pid:
            raise RuntimeError("another thread is in a call of this Worker: wake() it first")
        self._results.end()
        self._gradients.end()
        self._handle = None
        self._finalizer()

    # ---- what goes in and comes out ----

    def _buffer(self, data: Any, kind: str, count: Optional[int] = None) -> Tuple[int, Any]:
        """The address of contiguous data, and what keeps them."""
        flat = memoryview(data).cast("B")
        count = self.job.elems if count is None else count
        if flat.nbytes != count * BYTES[kind]:
            raise ValueError(f"{count} elements of {kind} have {count * BYTES[kind]} bytes, and "
                             f"the buffer has {flat.nbytes}")
        if flat.readonly:
            flat = memoryview(bytearray(flat))
        held = (c.c_char * flat.nbytes).from_buffer(flat)
        return c.addressof(held), held

    @staticmethod
    def _outcome() -> _library.Outcome:
        return _library.Outcome(size=c.sizeof(_library.Outcome))

    def _told(self, out: _library.Outcome, code: int) -> Outcome:
        self._results = Lease()
        result = None
        if out.result:
            result = view_of(out.result, self.job.elems, self.result_type, self._results, False,
                             self)
        shares = tuple(Share(s.rank, s.count, s.weight) for s in out.set[:out.set_len])
        orders = out.orders
        return Outcome(Verdict(out.verdict), out.ticket, out.counted_in, out.version, out.fresh,
                       out.finished, result, shares, out.weight, orders.lr_scale,
                       orders.local_steps, orders.alpha, orders.push_every, orders.fetch_every,
                       code > 0)
