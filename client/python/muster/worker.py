# SPDX-License-Identifier: MIT
"""A worker of a muster job: the calls of muster.h, with their contracts, as Python has them."""
from __future__ import annotations

import contextlib
import ctypes as c
import errno
import operator
import os
import select
import threading
import time
import weakref
from dataclasses import replace
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple

from . import _arguments, _library
from ._library import lib
from ._records import Agreement, Difference, Hint, Job, Outcome, Part, Region, Share, Verdict
from .view import Lease, View, view_of

TYPES = {"f32": 0, "bf16": 1, "f16": 2}
OWNERS = {"servers": 0, "workers": 1}
# The longest sleep of the main thread, in seconds: a signal that the kernel gives to another thread
# does not end it.
_NAP = 0.1
_I32, _U64 = 2 ** 31 - 1, 2 ** 64 - 1  # the largest of int32_t and of uint64_t


class Error(OSError):
    """A call of the library has failed. str() is its sentence, errno its number. One of a worker of
    a DataLoader, which PyTorch makes again of its text, has no number."""

    def __str__(self) -> str:
        return str(self.args[-1]) if self.args else ""


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
    """Workers own, and this one is behind the history that the server keeps (ESTALE). With
    comes_back the session goes on: take_state()."""


class LeftOut(Error):
    """The job goes on with fewer workers, as an operator has asked for, and this rank is none of
    them (EIDRM)."""


class Forked(Error):
    """Another process made this Worker, and this one is a child that it forked (ECHILD)."""


_ERRORS = {errno.EINVAL: InvalidArgument, errno.EDOM: NotFinite, errno.ETIMEDOUT: Timeout,
           errno.EINTR: Interrupted, errno.EAGAIN: Busy, errno.ENOTCONN: SessionLost,
           errno.EHOSTDOWN: JobFailed, errno.ESTALE: Stale, errno.EIDRM: LeftOut,
           errno.ECHILD: Forked}


def _error(code: int, sentence: str) -> Error:
    return _ERRORS.get(-code, Error)(-code, sentence)


class _Opening(threading.Thread):
    """muster_open(), in a thread: so Ctrl-C ends the call of the main thread, whatever it waits
    for. It owns the handle, also one that nobody wants any more when it is there."""

    def __init__(self, options: _library.Options, keep: Any):
        super().__init__(name="muster-open", daemon=True)
        self.options, self.keep, self.handle = options, keep, c.c_void_p()
        self.code, self.sentence = 0, ""
        self.lock, self.unwanted, self.done = threading.Lock(), False, threading.Event()

    def run(self) -> None:
        handle = c.c_void_p()
        code = lib.muster_open(c.byref(self.options), c.byref(handle))
        sentence = lib.muster_error(None).decode("utf-8", "replace") if code < 0 else ""
        with self.lock:
            self.code, self.sentence, self.handle = code, sentence, handle
        if self.unwanted:
            self.close()
        self.done.set()

    def result(self) -> c.c_void_p:
        self.start()
        while not self.done.wait(_NAP):
            pass
        if self.code < 0:
            raise _error(self.code, self.sentence)
        return self.handle

    def close(self) -> None:
        """Now, or once it is open. A second call does nothing."""
        with self.lock:
            self.unwanted = True
            handle = c.c_void_p(self.handle.value)
            self.handle.value = None  # for all who have it: check() and wake() of other threads
        lib.muster_close(handle)


def _close(opening: _Opening, lock: threading.Lock) -> None:
    """Not while another thread is in a call, as at the end of the process."""
    if lock.acquire(blocking=False):
        opening.close()


class _Answer:
    """What a call of the library brings, until the program has it: Ctrl-C may come in the instant
    after the call. extend() and map() make the call and keep its code with no Python in between,
    where the exception could come."""

    def __init__(self, out: Any, *arguments: Any):
        self.out, self.codes = out, []  # type: Tuple[Any, List[int]]
        self.arguments = [(a,) for a in arguments or (c.byref(out),)]

    def ask(self, function: Any, handle: c.c_void_p) -> int:
        self.codes.clear()
        self.codes.extend(map(function, (handle,), *self.arguments))
        return self.codes[0]

    def is_there(self) -> bool:
        return bool(self.codes) and self.codes[0] >= 0


def _table(tensors: Sequence[Tuple[Any, ...]]) -> Any:
    table = (_library.Tensor * len(tensors))()
    first = 0
    for row, (name, count, *scales) in zip(table, tensors):
        row.name = _arguments.text("the name of a tensor", name)
        row.first, row.count = first, _arguments.whole(f"the length of {name}", count, 0, _U64)
        row.lr_scale, row.decay_scale = scales or (1, 1)
        first += row.count
    return table


def _rows(parts: Sequence[Part]) -> Any:
    return (_library.Part * len(parts))(*[
        _library.Part(p.name.encode(), p.value.encode(), p.digest, p.kernel) for p in parts])


class Worker:
    """A worker of a job; joins it at once.

    elems: the length of the vector. type, result_type: "f32", "bf16" or "f16". owner: "servers" or
    "workers". tensors: (name, elements) of each tensor, in order, or (name, elements, lr_scale,
    decay_scale), as muster.h says of struct muster_tensor. server, job, rank and clip come
    from the environment where they are not given, as muster.h says of struct muster_options.
    join_timeout, wait_timeout: seconds, float("inf") among them. comes_back: owner="workers", and
    this program answers state_wanted() and takes states, so that it may join a job that is running.
    start_version: of the state that start() offers; the newest one counts.
    Certificates come from the environment, MUSTER_TLS_CA and so on.

    One thread at a time uses a Worker; check() and wake() may be called from any. While a call
    waits other Python threads run, and Ctrl-C ends it. A Worker belongs to the process that made
    it: in a child of fork() its calls raise Forked. `with Worker(...) as w` closes it; so does the
    end of the process, and the garbage collector."""

    def __init__(self, elems: int, *, server: Optional[str] = None, job: Optional[str] = None,
                 rank: int = -1, type: str = "f32", result_type: str = "f32",
                 owner: str = "servers", tensors: Optional[Sequence[Tuple[Any, ...]]] = None,
                 join_timeout: float = 60.0, wait_timeout: Optional[float] = None,
                 clip: float = 0.0, comes_back: bool = False, start_version: int = 0):
        for name, value, known in (("type", type, TYPES), ("result_type", result_type, TYPES),
                                   ("owner", owner, OWNERS)):
            if value not in known:
                raise ValueError(f"{name} is {value!r}; it is one of {', '.join(known)}")
        self.type, self.result_type = type, result_type
        table = None if tensors is None else _table(tensors)
        options = _library.Options(
            size=c.sizeof(_library.Options), server=_arguments.text("server", server or None),
            job=_arguments.text("job", job or None),
            rank=_arguments.whole("rank", rank, -_I32 - 1, _I32),
            elems=_arguments.whole("elems", elems, 0, _U64), type=TYPES[type],
            result_type=TYPES[result_type], owner=OWNERS[owner], tensors=table,
            tensor_count=len(table) if table is not None else 0,
            join_ms=_arguments.milliseconds("join_timeout", join_timeout),
            wait_ms=_arguments.milliseconds("wait_timeout", wait_timeout),
            clip=_arguments.real("clip", clip), comes_back=bool(comes_back),
            start_version=_arguments.whole("start_version", start_version, 0, _U64))
        self._pid, self._lock, self._woken = os.getpid(), threading.Lock(), False
        self._finished = False  # an outcome has said so
        self._generation = 0  # of the last outcome
        self._abandoned = 0
        self._results: Lease = Lease()
        self._gradients: Lease = Lease()
        self._answer: Optional[_Answer] = None  # an outcome, or a state
        self._ticket = c.c_uint64()
        self._difference = _library.Difference(size=c.sizeof(_library.Difference))
        opening = _Opening(options, table)
        try:
            self._handle: Optional[c.c_void_p] = opening.result()
            self._finalizer = weakref.finalize(self, _close, opening, self._lock)
            self._learn(wait_timeout)
        except BaseException:
            opening.close()
            raise

    def _learn(self, wait_timeout: Optional[float]) -> None:
        self._look_at_job()
        self._wait_seconds = (self.job.patience + self.job.lease if wait_timeout is None
                              else wait_timeout)

    def _look_at_job(self) -> None:
        """Another generation may have another number of workers."""
        known = lib.muster_job(self._handle).contents
        self.job = Job(known.name.decode(), known.policy.decode(), known.rank, known.incarnation,
                       known.workers, known.slots, known.elems, known.lease_ms / 1000,
                       known.patience_ms / 1000, known.first_version, known.first_samples)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._handle is None else f"in job {self.job.name!r}"
        return f"<muster.Worker rank {self.job.rank} {state}>"

    # ---- how calls are made ----

    def is_mine(self) -> bool:
        """Did this process make it, and not the one that has forked this one?"""
        return os.getpid() == self._pid

    def must_be_mine(self) -> None:
        """Raises Forked in a child of the process that made this Worker, and SessionLost after
        close(), as other calls do."""
        self._mine()

    def _mine(self) -> c.c_void_p:
        if not self._handle:
            raise SessionLost(errno.ENOTCONN, f"rank {self.job.rank}: this Worker has been closed: "
                              "make another one")
        if os.getpid() != self._pid:
            raise Forked(errno.ECHILD, f"rank {self.job.rank}: process {self._pid} made this "
                         "Worker, and this one is a child that it forked; make another one here")
        return self._handle

    def _made(self, ask: Callable[[c.c_void_p], int]) -> int:
        """Makes a call of the library. A lock that `with` takes is given back whenever Ctrl-C
        comes. The look before it tells of a mistake; it need not find each."""
        handle = self._mine()
        if self._lock.locked():
            raise RuntimeError("another thread is in a call of this Worker: one thread at a time "
                               "uses it, but for check() and wake()")
        with self._lock:
            code = ask(handle)
            if code >= 0:
                return code
            sentence = lib.muster_error(handle).decode("utf-8", "replace")
        raise _error(code, sentence)

    def _call(self, function: Any, *arguments: Any) -> int:
        return self._made(lambda handle: function(handle, *arguments))

    def _again(self, ask: Callable[[c.c_void_p], int]) -> None:
        """A wait that a signal has ended goes on, once Python's handler has run and not raised."""
        while True:
            try:
                self._made(ask)
                return
            except Interrupted:
                if self._woken:
                    self._woken = False
                    raise

    def _by_another(self, ask: Callable[[c.c_void_p], int]) -> Callable[[c.c_void_p], int]:
        """A signal that comes just before the library sleeps ends no sleep, so for the main thread,
        in which Python handles signals, another one makes the call."""
        if threading.current_thread() is not threading.main_thread():
            return ask

        def asked(handle: c.c_void_p) -> int:
            codes: List[int] = []
            begun: List[bool] = []
            wanted, done = [True], threading.Event()

            def call() -> None:
                begun.append(True)
                if wanted:
                    codes.append(ask(handle))
                done.set()

            try:
                threading.Thread(target=call, name="muster-call", daemon=True).start()
                while not done.wait(_NAP):
                    pass
            finally:  # the handle is another caller's only when this one has returned
                wanted.clear()
                while begun and not done.is_set():
                    with contextlib.suppress(BaseException):
                        lib.muster_wake(handle)
                        done.wait(_NAP)
            return codes[0]

        return asked

    # ---- the loop ----

    def start(self, own: Any = None) -> Outcome:
        """Says that this worker is ready; returns the version that all start from. own: a start
        state to offer, a contiguous buffer of result_type[elems]: TypeError where it is of another
        type. f32 is float32 of NumPy and f16 is float16; bf16 is uint16, the upper halves of
        float32, or bfloat16 of ml_dtypes; bytes may be of any type. Waits at most join_timeout,
        then raises Timeout: call again. Raises Stale where the job is running and this worker comes
        back: take_state() then brings the version to go on with, and start() is not called
        again."""
        address, keep = (None, None) if own is None else _arguments.data(
            "own", own, self.result_type, self.job.elems)
        answer = self._asked(address)
        if not answer.is_there():
            self._again(self._by_another(lambda h: answer.ask(lib.muster_start, h)))
        del keep
        return self._told(answer, False)

    def gradient(self) -> View:
        """The buffer to fill next, type[elems], writable, with undefined contents; the same until
        it is pushed or abandoned. Raises Busy where all are in flight, or the job has ended, and
        SessionLost where the session has ended. What is written to view[i] is converted to the
        type, bf16 included; a uint16 array is taken as the bits of bf16."""
        found: List[Optional[int]] = []

        def ask(handle: c.c_void_p) -> int:
            found.append(lib.muster_gradient(handle))
            return 0 if found[0] else -errno.EAGAIN

        try:
            self._made(ask)
        except Busy as e:
            self._call(lib.muster_push_ranges, None, 0)  # which tells of a session that has ended
            raise Busy(errno.EAGAIN, f"rank {self.job.rank}: there is no buffer: the job has ended"
                       if self._finished else str(e)) from None
        assert found[0] is not None
        return view_of(found[0], self.job.elems, self.type, self._gradients, True, self)

    def regions(self) -> List[Region]:
        """All buffers of gradient() and all places of results, for programs that make them known
        to a device. Neither their number nor their places change before close()."""
        table = (_library.Region * self._call(lib.muster_regions, None, 0))()
        self._call(lib.muster_regions, table, len(table))
        return [Region(r.base, r.bytes, r.writable) for r in table]

    def push_range(self, first: int, count: int, src: Any = None) -> None:
        """Hands over a finished range of the contribution. src: a contiguous buffer of type[count],
        copied before this returns, and TypeError where it is of another type, as own of start();
        None: it lies in gradient()."""
        self.push_ranges([(first, count, src)])

    def push_ranges(self, pieces: Iterable[Tuple[int, int, Any]]) -> None:
        """push_range() for each (first, count, src), in one call; src may also be an address, that
        of the range in gradient() too, where musterd --guard looks at it, and nothing is copied.
        What comes before a piece that is refused has been handed over."""
        kept: List[Any] = []
        rows = []
        for first, count, src in pieces:
            first = _arguments.whole("first", first, 0, _U64)
            count = _arguments.whole("count", count, 0, _U64)
            if src is not None and not isinstance(src, int):
                src, keep = _arguments.data("src", src, self.type, count)
                kept.append(keep)
            rows.append((first, count, src))
        table = (_library.Piece * len(rows))(*rows)  # type: ignore[misc]
        self._call(lib.muster_push_ranges, table, len(rows))

    def push(self, weight: float = 1.0, *, loss: Optional[float] = None, sum: bool = False,
             full: bool = True, keep: bool = False, part: bool = False) -> int:
        """Hands the contribution in, with the number of samples in it. The gradient's view ends,
        and unless keep the result's. Returns its ticket; 0 once the job is over. Where Ctrl-C has
        ended the call, `ticket` says whether it had been handed in. Raises NotFinite, which names
        the tensor, where an element is infinite or NaN (musterd --guard): then the contribution
        has been given up, and the next gradient() begins another one. part: a micro-batch, whose
        batch goes on in the next contribution, where Outcome.by_micro says that these are wanted;
        else it counts as a whole batch."""
        mine = _library.Contribution(size=c.sizeof(_library.Contribution), weight=weight,
                                     loss=loss or 0.0, has_loss=loss is not None, sum=sum,
                                     full=full and not part, keep=keep, part=part)
        self._nothing_waits()
        if not keep:
            self._results.end()
        self._gradients.end()
        self._call(lib.muster_push, c.byref(mine), c.byref(self._ticket))
        return self._ticket.value

    @property
    def pid(self) -> int:
        """The number of the process that made this Worker, and may use it."""
        return self._pid

    @property
    def ticket(self) -> int:
        """The ticket of the last contribution that was handed in; 0: none, or the job was over.
        Tickets rise, and not always by one (abandon())."""
        return self._ticket.value

    def abandon(self) -> None:
        """Gives the unfinished contribution up; the next wait() says CANCELLED with ticket 0. The
        result's view stays: nothing is asked for before wait(). Where check() says HAND_IN, this
        tells the servers that there is nothing, which takes a number among the tickets."""
        self._gradients.end()
        self._abandoned += 1
        self._call(lib.muster_abandon)

    @property
    def abandoned(self) -> int:
        """How often abandon() was called: what had been handed over before that is gone."""
        return self._abandoned

    def check(self) -> Hint:
        """A hint for a busy worker; any thread, at any moment."""
        handle = self._handle
        if not handle or os.getpid() != self._pid:
            return Hint.GIVE_UP
        return Hint(lib.muster_check(handle))

    def pull(self) -> None:
        """Asks for the newest version without contributing; wait() brings it."""
        self._nothing_waits()
        self._results.end()
        self._call(lib.muster_pull)

    def wait(self) -> Outcome:
        """Waits until the rule lets this worker go on; at most wait_timeout, then raises Timeout.
        Raises Interrupted where wake() was called, Stale where take_state() is to come first.
        Ctrl-C loses nothing: the next wait() brings what the one that it has ended had found."""
        answer = self._asked()
        if not answer.is_there():
            if threading.current_thread() is threading.main_thread():
                self._wait_for_signals_too(answer)
            else:
                self._again(lambda h: answer.ask(lib.muster_wait, h))
        return self._told(answer)

    def _wait_for_signals_too(self, answer: _Answer) -> None:
        """As _by_another() says; but the main thread, which waits for each version, sleeps itself,
        and not for long at a time."""
        end = time.monotonic() + self._wait_seconds
        try:
            ready = select.poll()
            ready.register(self.fileno(), select.POLLIN)
        except Error:  # this network has no descriptor, or the session has ended
            return self._again(lambda h: answer.ask(lib.muster_wait, h))
        while True:
            try:
                return self._again(lambda h: answer.ask(lib.muster_try_wait, h))
            except Busy:
                if time.monotonic() >= end:
                    raise Timeout(errno.ETIMEDOUT, f"rank {self.job.rank}: there was no outcome "
                                  f"within {self._wait_seconds:g} s; nothing is lost, wait again")
            ready.poll(_NAP * 1000)

    def try_wait(self) -> Optional[Outcome]:
        """wait() without the wait: None where no outcome is ready yet. The result's view ends."""
        answer = self._asked()
        try:
            if not answer.is_there():
                self._again(lambda h: answer.ask(lib.muster_try_wait, h))
        except Busy:
            return None
        return self._told(answer)

    # ---- states ----

    def state_wanted(self) -> bool:
        """Is this worker to give its state to one that comes back? To be asked after each outcome,
        when its version has been applied. Waits for nobody."""
        return self._call(lib.muster_state_wanted) == 1

    def give_state(self, state: Any) -> None:
        """Where state_wanted(): this worker's state, as of the version of the last outcome: a
        contiguous buffer of any bytes, which is copied. None: it gives none now, and another worker
        is asked. Raises InvalidArgument where nobody wants one; Error with EMSGSIZE where it is
        larger than musterd --state-max, and another is asked; Busy where the last one is still
        being sent: offer one after the next outcome."""
        flat = memoryview(state if state is not None else b"").cast("B")
        held = (c.c_char * flat.nbytes).from_buffer(
            memoryview(bytearray(flat)) if flat.readonly else flat)
        self._call(lib.muster_give_state, c.byref(held), flat.nbytes)

    def take_state(self) -> Tuple[int, bytes]:
        """After Stale: the state of another worker, and its version, which this worker has then;
        wait() brings the one after it. Waits at most wait_timeout, then raises Timeout: call
        again. Raises Stale where no other worker gave one, or this one has joined and the job has
        ended: the session is over then. Raises Error with ESHUTDOWN where the job has ended, and
        wait() brings the last outcome, of the version that this worker has."""
        if self._answer is None or not isinstance(self._answer.out, _library.Taken):
            self._nothing_waits()
            self._results.end()
            out = _library.Taken()
            self._answer = _Answer(out, *(c.byref(out, getattr(_library.Taken, part).offset)
                                          for part in ("state", "bytes", "version")))
        answer = self._answer
        if not answer.is_there():
            self._again(self._by_another(lambda h: answer.ask(lib.muster_take_state, h)))
        taken = answer.out.version, c.string_at(answer.out.state, answer.out.bytes)
        self._answer = None
        self._look_at_job()
        return taken

    def agree(self, parts: Sequence[Part], give: Callable[[], Any], version: int = 0) -> Agreement:
        """Where workers own, after start() and before the first push: agrees with all other
        workers on the state that they begin with. parts: what the state is made of. give() returns
        it as bytes; it is called only where this worker's state is wanted. version: that the state
        is of, in the job that it comes from. Waits at most wait_timeout for all who started with
        this worker to call it, then raises Timeout: call again."""
        rows = _rows(parts)
        claim = _library.Claim(size=c.sizeof(_library.Claim), version=version, parts=rows,
                               part_count=len(parts))
        out = _library.Agreement(size=c.sizeof(_library.Agreement))
        codes: List[int] = []

        def ask(handle: c.c_void_p, state: Any = None, size: int = 0) -> int:
            codes[:] = [lib.muster_agree(handle, c.byref(claim), state, size, c.byref(out))]
            return codes[0]

        self._again(self._by_another(ask))
        if codes[0] == 1:
            flat = bytearray(give())
            held = (c.c_char * len(flat)).from_buffer(flat)
            self._again(self._by_another(lambda h: ask(h, c.byref(held), len(flat))))
        return Agreement(c.string_at(out.state, out.state_bytes) if out.state else None,
                         out.version, out.source, (out.why or b"").decode("utf-8", "replace"),
                         out.kernels_differ)

    def compare(self, parts: Sequence[Part], digests: Sequence[int] = (), *, first: int = 0,
                each: int = 1, section: int = 0, takes: bool = False,
                last: bool = False) -> None:
        """Where workers own: says what this worker has after the version of the last outcome, for
        the leader to compare with what others say of the same version. parts: rates and the like.
        digests: of `each` tensors each, from tensor `first` on, such as digest() makes. section:
        where they are of a section of each tensor, its number, from 1; those of the same section
        are compared. takes: if it differs, wait() is to raise Stale, so that it takes the state of
        another. last: of the job, whose workers are all to end with the same. Waits for nobody.
        Raises Busy where the connection takes no message now."""
        values = (c.c_uint64 * len(digests))(*digests)
        mine = _library.Comparison(size=c.sizeof(_library.Comparison), parts=_rows(parts),
                                   part_count=len(parts), tensors=values,
                                   tensor_count=len(digests), first=first, each=each,
                                   section=section, takes=takes, last=last)
        self._call(lib.muster_compare, c.byref(mine))

    def difference(self) -> Optional[Difference]:
        """Has the leader found that this worker has something else than others? It says so once,
        and again only after this worker has taken a state. Waits for nobody."""
        out = self._difference
        if self._call(lib.muster_difference, c.byref(out)) == 0:
            return None
        return Difference(out.version, out.source, out.why.decode("utf-8", "replace"),
                          out.kernels_differ)

    @staticmethod
    def digest(data: Any, before: int = 0) -> int:
        """CRC32C of the bytes of a contiguous buffer. before: the digest of what comes before
        them."""
        flat = memoryview(data).cast("B")
        held = (c.c_char * flat.nbytes).from_buffer(
            memoryview(bytearray(flat)) if flat.readonly else flat)
        return int(lib.muster_digest(before, c.byref(held), flat.nbytes))

    def average(self) -> Tuple[int, memoryview]:
        """The version, and the moving average of the parameters right after its commit, for
        evaluation (musterd --average). The version was the newest when the servers came to serve
        this worker; they serve one after the other. The average is elems floats, whatever the type
        of results: a copy of the caller's own, which stays. The library holds another copy until
        the next call or close().

        For the thread that uses the Worker; another may wake() it. No commit waits for it. While it
        waits, this worker counts as one that computes, for which a step may wait. May be called
        after the last outcome of the job too. Waits at most wait_timeout, then raises Timeout: call
        again, and it goes on with what has come; Interrupted, where wake() has ended it, likewise.
        Raises Error with ENOTSUP where the servers keep none, InvalidArgument before start(), and
        SessionLost also if the job has ended and its leader has gone before all had come."""
        out = _library.Averaged()
        answer = _Answer(out, *(c.byref(out, getattr(_library.Averaged, part).offset)
                                for part in ("average", "version")))
        self._again(self._by_another(lambda h: answer.ask(lib.muster_average, h)))
        return out.version, memoryview(c.string_at(out.average, 4 * self.job.elems)).cast("f")

    def wake(self) -> None:
        """Ends the wait of another thread, or its next one: it raises Interrupted. Any thread."""
        handle = self._handle
        if handle and os.getpid() == self._pid:
            self._woken = True
            lib.muster_wake(handle)

    def fileno(self) -> int:
        """A descriptor for select and asyncio: readable when try_wait() may bring something. Try
        until None before each poll, and at least once in job.lease seconds."""
        return self._call(lib.muster_fd)

    def finish(self, why: str = "") -> None:
        """Ends the job for everybody; wait() then brings the last outcome."""
        self._call(lib.muster_finish, _arguments.text("why", why))

    def goal(self, version: int) -> int:
        """Has the job end with this version, for everybody, and returns the version that it ends
        with: this one, or a lower one, for the least of musterd --commits and of what its workers
        have given counts. No worker is given a version after it. To be called after start(), by all
        workers with the same version, before their first push(). One that the job has made already
        ends it now. Waits for the server's answer, at most wait_timeout, then raises Timeout: call
        again. Raises Error with EACCES where the server leaves this to an operator (musterd
        --finish operator), who gives --commits. After the end of the job it returns its last
        version."""
        version = operator.index(version)
        if not 0 < version < 1 << 64:
            raise InvalidArgument(errno.EINVAL, f"rank {self.job.rank}: a job cannot end with "
                                  f"version {version}; the first that workers make is version 1")
        ends = c.c_uint64()
        self._again(self._by_another(lambda h: int(lib.muster_goal(h, version, c.byref(ends)))))
        return ends.value

    def report(self, name: str, value: float) -> None:
        """Tells the servers a value that this worker has found out about the version it has."""
        self._call(lib.muster_report, _arguments.text("name", name),
                   _arguments.real("value", value))

    def close(self) -> None:
        """Leaves the job: what was pushed still counts. All views end. A second call does nothing.
        In a child of fork() it frees the child's copy alone."""
        if self._handle is None:
            return
        if self._lock.locked() and os.getpid() == self._pid:
            raise RuntimeError("another thread is in a call of this Worker: wake() it first")
        self._results.end()
        self._gradients.end()
        self._answer = None
        self._handle = None
        self._finalizer()

    # ---- what goes in and comes out ----

    def _asked(self, *before: Any) -> _Answer:
        """Where the next outcome comes to, or has come to already. before: the arguments of this
        call that come before it; those of an earlier call, which has failed, are forgotten."""
        if self._answer is None or not isinstance(self._answer.out, _library.Outcome):
            self._nothing_waits()
            self._results.end()
            out = _library.Outcome(size=c.sizeof(_library.Outcome))
            self._answer = _Answer(out)
        if not self._answer.is_there():
            self._answer.arguments = [(a,) for a in (*before, c.byref(self._answer.out))]
        return self._answer

    def _nothing_waits(self) -> None:
        if self._answer is not None and self._answer.is_there():
            raise RuntimeError(f"rank {self.job.rank}: Ctrl-C has ended a call that had succeeded: "
                               "make it again, for what it brings")

    def _told(self, answer: _Answer, more: bool = True) -> Outcome:
        out = answer.out
        self._results = Lease()
        result = None
        if out.result:
            result = view_of(out.result, self.job.elems, self.result_type, self._results, False,
                             self)
        shares = tuple(Share(s.rank, s.count, s.weight) for s in out.set[:out.set_len])
        orders = out.orders
        told = Outcome(Verdict(out.verdict), out.ticket, out.counted_in, out.version, out.fresh,
                       out.finished, result, shares, out.weight, orders.lr_scale,
                       orders.local_steps, orders.alpha, orders.push_every, orders.fetch_every,
                       orders.by_micro, out.newest, out.generation, out.withdrawn,
                       out.workers, more and answer.codes[0] > 0)
        self._answer, self._finished = None, told.finished
        if told.generation != self._generation:
            self._look_at_job()
            self._generation = told.generation
        policy = lib.muster_job(self._handle).contents.policy.decode()
        if policy != self.job.policy:
            self.job = replace(self.job, policy=policy)
        return told
