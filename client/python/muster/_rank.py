# SPDX-License-Identifier: MIT
"""A model in a job: its gradients go out while backward() makes them, and outcomes come in."""
from __future__ import annotations

import contextlib
import errno
import sys
import warnings
import weakref
from collections import deque
from typing import (Any, Callable, ContextManager, Deque, Dict, Iterable, Iterator, List,
                    NamedTuple, Optional, Tuple)

import torch
from torch.nn.parallel import DistributedDataParallel

from . import _arguments, _ddp, _device, _loader, _tensors
from ._hooks import Hooks, must_take_hooks
from ._layout import Layout
from ._over import Over
from ._records import Hint, Outcome, Share, Verdict
from ._sampler import Sampler
from .worker import (Busy, InvalidArgument, JobFailed, LeftOut, NotFinite, SessionLost, Timeout,
                     Worker)

WIRE = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
# Where others make versions as fast as this rank applies them, a step returns when it has applied
# this many times those that were there when it began, and at least so many.
_CATCHES_UP, _AT_ONCE = 8, 64
# Of one parameter so many elements are compared, in the first steps, and then in one of so many.
_PROBE, _EACH = 1 << 14, 16
_FLUSH_BYTES = 256 << 10  # gradients that are smaller together are handed over in one call
# What a sentence of the library has in it that is about the model of this rank, or its length.
_OF_THE_MODEL = ("another model:", "the same model", "table of tensors", "names of tensors",
                 "options.tensors", "elements of")


class Step(NamedTuple):
    """What a step() has brought. verdict: of this rank's gradient. version: which all parameters
    are of now. missed: versions since the last step besides that one, because this rank was late:
    Sync has applied them too, Served has passed them over. set: who is in the last version."""
    verdict: Verdict
    version: int
    missed: int
    set: Tuple[Share, ...]


class Round:
    """From one step() to the next. There is a new one for each, so that whenever Ctrl-C comes, what
    is here is of one step."""

    def __init__(self, ticket: int):
        self.before = ticket  # of the push before it
        # Gradients that are handed over, by id() of the parameter: the tensor, and the number that
        # PyTorch counts up with each change of it, at that moment; None: there was none. As long as
        # a tensor is kept here, no other one has its place in memory.
        self.given: Dict[int, Optional[Tuple[torch.Tensor, int]]] = {}
        self.slot: Optional[torch.Tensor] = None  # where a device copies gradients to
        self.pieces: List[Tuple[int, int, torch.Tensor]] = []  # whose copies have begun
        self.bytes = 0
        # Pieces with a common event after their copies. They are handed over after the event.
        self.copies: Deque[Tuple[Any, List[Tuple[int, int, torch.Tensor]]]] = deque()
        self.fired = False    # there was a backward()
        self.told = False     # a second one was refused: gradients are not what was handed over
        self.running = False  # a backward() that hands gradients over has begun, and not ended
        # What it will call, as long as that is there: PyTorch drops it with the backward().
        self.ends: Callable[[], Any] = lambda: None
        self.sound = True     # what is in `given` is in `pieces` or `copies`, or handed over
        self.gave_up = self.asked = False
        self.failed: Optional[Exception] = None
        self.handed_in = False
        self.verdict, self.versions = Verdict.NONE, 0  # of this gradient; since the last step
        self.out: Optional[Outcome] = None
        self.most: Optional[int] = None  # versions, after which the step returns though others wait


def _samples(given: Any) -> float:
    """As a number. It is looked at before anything is handed in or hidden. TypeError, ValueError,
    in words: such as the closure or the loss that opt.step() may take."""
    if callable(given) or getattr(given, "requires_grad", False):
        what = "a loss" if hasattr(given, "requires_grad") else "a function"
        raise TypeError(f"step() was given {what}: what it takes is samples, the number of those "
                        "whose mean gradient this is, after forward() and backward()")
    samples = _arguments.real("samples", given)
    if not 2.0 ** -53 <= samples <= 2.0 ** 53:
        raise ValueError(f"samples is {given!r}: a number above 0 is wanted, of those whose mean "
                         "gradient this is")
    return samples


def _as_it_is(grad: Optional[torch.Tensor]) -> Optional[Tuple[torch.Tensor, int]]:
    return None if grad is None else (grad, grad._version)


class Rank:
    """What Sync and Served have in common. They say what an outcome brings.

    finished: the job has ended. complete: it has, and version is its last; False in a rank that
    lacks versions which the server no longer had. version: which all parameters are of."""

    _owner = ""  # of Worker
    _worker: Worker  # once it has joined

    def __init__(self, model: torch.nn.Module, wire: str, marks: List[str]):
        """Looks at the model. marks: what else has to be the same in all ranks, in words."""
        if wire not in WIRE:
            raise ValueError(f"wire is {wire!r}; it is one of {', '.join(WIRE)}")
        self._model, self._wire_name, self._wire = model, wire, WIRE[wire]
        self._bare = _ddp.bare(model, type(self).__name__)
        must_take_hooks(self._bare)
        self._layout = Layout(self._bare, marks)
        self._device = _device.of(self._layout.device)
        self._zeros = torch.zeros(self._layout.longest(), dtype=self._wire, device="cpu")
        self.finished = self.complete = self._finishing = False
        self.version = self._last = 0  # _last: of the job, once it has ended
        self._counted = _loader.Counted()
        self._keep_local = False
        self._stale_slot = False  # what was handed over of the contribution is to be given up
        self._abandoned = 0  # worker.abandoned, without what the program has abandoned itself
        self._given_up = 0  # batches, since the last that has counted
        self._looks = 0  # at gradients, in step()
        self._passes = 0  # over loaders
        self._after = Over()
        ddp: Any = self._model if isinstance(self._model, DistributedDataParallel) else None
        self._in_ddp = ddp is not None
        # Then all gradients of a bucket are views of one tensor, and are counted as one.
        self._in_views = self._in_ddp and bool(getattr(ddp, "gradient_as_bucket_view", False))
        self._hooks = Hooks(self._ready, self._bucket_ready, self._begun)
        self._closed = False
        self._why_closed, self._goes_on = "close() was called", f". To go on, make {self._remedy}"

    def _open(self, **options: Any) -> Worker:
        try:
            return Worker(self._layout.elems, type=self._wire_name, owner=self._owner, **options)
        except InvalidArgument as e:
            sentence = str(e)
            if "--owner" in sentence:
                mine, other = ("Sync", "Served") if self._owner == "workers" else ("Served", "Sync")
                hint = (f"muster.torch.{mine} is for jobs whose {self._owner} own the parameters; "
                        f"for this one there is muster.torch.{other}")
            elif any(words in sentence for words in _OF_THE_MODEL):
                hint = self._compared()
            else:
                raise
            raise InvalidArgument(e.errno, f"{sentence} ({hint})") from e

    def _begin(self) -> None:
        """Once there is a worker."""
        try:
            self._round = Round(0)
            self._device.open(self._worker)
            self._start()
            self._hooks.listen(self._model, self._layout.params)
        except Timeout as e:
            self._leave()
            why = str(e).split("; call ")[0]  # which nobody can who has no object
            raise Timeout(e.errno, f"{why}; this rank has left the job: make another "
                          f"{type(self).__name__}, with a longer join_timeout if ranks begin "
                          "further apart") from e
        except BaseException:
            self._leave()  # a rank that has failed is not waited for
            raise

    # ---- what the two differ in ----

    _remedy = ""  # for a program that goes on with one that has left the job
    _place = ""   # for what a program wants to do to gradients
    _sampler: Optional[Sampler] = None

    def _compared(self) -> str:
        """What has to be the same in all ranks, for a rank that was refused."""
        raise NotImplementedError

    def _start(self) -> None:
        """Takes the version that all start from."""
        raise NotImplementedError

    def _push(self, samples: float, part: bool) -> None:
        self._worker.push(samples, part=part)

    def _next(self) -> Outcome:
        raise NotImplementedError

    def _settle(self, this: Round, out: Outcome) -> None:
        """Takes the version that the outcome brings. A second time it does nothing."""
        raise NotImplementedError

    def _over(self) -> None:
        """The step is over, or has failed."""
        if self._sampler is not None:
            self._sampler.settled()

    def _check_sampler(self, sampler: Sampler) -> None:
        """ValueError, in words: not with the batches of this one."""
        raise NotImplementedError

    # ---- gradients go out ----

    def _begun(self) -> None:
        if self._round.running:
            self._forget()
        elif self._are_gone(self._round):
            self._give_up_batch()
        if self._sampler is not None:
            self._sampler.seen()

    def _is_pending(self) -> bool:
        """A gradient has been handed in, and its step has raised an error, such as Timeout: what is
        computed before that step is over is not handed over."""
        return self._round.handed_in or self._worker.ticket != self._round.before

    def _are_gone(self, this: Round) -> bool:
        """The program has zeroed gradients that were handed over, by setting them to None."""
        return bool(this.given) and not self._is_pending() and any(
            this.given.get(id(p)) is not None and p.grad is None for _, p in self._layout.params)

    def _give_up_batch(self) -> None:
        this, stale = self._round, self._stale_slot
        stale |= bool(this.given) or this.running or not this.sound
        self._given_up += 1
        self._forget()
        self._stale_slot = stale

    def _look_for_abandon(self) -> None:
        """Has the program called worker.abandon() itself?"""
        if self._worker.abandoned != self._abandoned:
            self._abandoned = self._worker.abandoned
            self._given_up += 1
            self._round = Round(self._worker.ticket)

    def _fires(self) -> None:
        """In a backward(). It ends well if what is queued here is called. If that is gone instead,
        this is another backward() than the one that has begun, which was interrupted."""
        self._look_for_abandon()
        if self._round.running and self._round.ends() is None:
            self._forget()
        this = self._round
        this.fired = True
        if not this.running:
            if self._sampler is not None:
                self._sampler.given()

            def ends() -> None:
                self._ends(this)

            try:
                this.ends, this.running = weakref.ref(ends), True
                torch.autograd.Variable._execution_engine.queue_callback(ends)
            finally:
                del ends  # which the traceback of an error, or of Ctrl-C, would keep

    def _ends(self, this: Round) -> None:
        """The backward()."""
        this.running = False
        self._device.backward_is_over()
        if this is self._round and not self._closed:
            self._flush()
            if self._in_ddp:  # which is to copy its buckets to the gradients yet
                torch.autograd.Variable._execution_engine.queue_callback(lambda: self._note(this))

    def _note(self, this: Round) -> None:
        for _, p in self._layout.params:
            if id(p) in this.given:
                this.given[id(p)] = _as_it_is(p.grad)

    def _bucket_ready(self, bucket: Any) -> None:
        if self._stays_here():  # also where an evaluation has let DDP expect another backward()
            return
        names = {id(p): n for n, p in self._layout.params}
        self._fires()
        for p in bucket.parameters():
            # Not bucket.gradients(): they have the elements in the order of memory, which is
            # another one where a parameter is not contiguous, as with channels_last.
            self._give(names[id(p)], p, p.grad)
        self._flush()

    def _stays_here(self) -> bool:
        """In a backward(): its gradients are not to be handed over."""
        if self._keep_local and self._sampler is not None:
            self._sampler.added()
        return self._keep_local or self.finished or self._closed or self._is_pending()

    def _ready(self, name: str, p: torch.nn.Parameter) -> None:
        if self._stays_here():
            return
        self._fires()
        self._give(name, p, p.grad)

    def _give(self, name: str, p: torch.nn.Parameter, grad: Optional[torch.Tensor]) -> None:
        if id(p) in self._round.given:
            if not self._is_zeroed(p, grad):
                self._round.running, self._round.told = False, True
                raise RuntimeError(
                    f"parameter {name}: backward() has run twice since the last step(), and "
                    "gradients have not been zeroed: put all but the last into "
                    "`with sync.no_sync()`")
            self._give_up_batch()
            self._fires()
        this = self._round
        at, n = self._layout.place[id(p)]
        if this.failed is not None:
            this.given[id(p)] = _as_it_is(grad)
            return
        if grad is None:
            data = self._zeros[:n]
        elif grad.is_sparse:
            raise TypeError(f"the gradient of {name} is sparse: muster sums dense vectors; "
                            "Embedding(sparse=False)")
        else:
            self._layout.must_be_there(f"the gradient of {name}", grad)
            try:
                data = self._device.fetch(grad, self._wire, lambda: self._slot()[at:at + n])
            except OSError as e:
                this.failed, this.given[id(p)] = e, _as_it_is(grad)
                return
        was_sound, this.sound = this.sound, False
        this.given[id(p)] = _as_it_is(grad)
        this.pieces.append((at, n, data))
        this.bytes += data.numel() * data.element_size()
        this.sound = was_sound
        if this.bytes >= _FLUSH_BYTES:
            self._flush()

    def _is_zeroed(self, p: torch.nn.Parameter, grad: Optional[torch.Tensor]) -> bool:
        """A gradient that was handed over is there anew: was it zeroed meanwhile? Else backward()
        has added to it, which is one change. Where views are counted as one that cannot be told;
        what is there, a sum, is then handed over in place of what was."""
        noted = self._round.given[id(p)]
        if noted is None or grad is None or self._in_views:
            return True
        return grad is not noted[0] or grad._version != noted[1] + 1

    def _must_be_as_handed_over(self, this: Round) -> None:
        """All gradients of this round lie in the slot. PyTorch counts the changes of a tensor, but
        not those by way of .data: so one parameter is looked at besides, another one each time, in
        each of the first steps, and later in some."""
        params = () if this.told else self._layout.params
        self._looks += 1
        turn, rest = divmod(self._looks, _EACH)
        probes = turn == 0 or rest == 0
        probed = (turn or rest) % len(self._layout.params) if probes else -1
        for at, (name, p) in enumerate(params):
            noted = this.given.get(id(p))
            if noted is None:
                continue
            changed = p.grad is not noted[0] or p.grad._version != noted[1]
            if not changed and at != probed:
                continue
            if p.grad is None or not self._is_in_slot(p, p.grad, changed):
                self._forget()
                self._over()
                raise RuntimeError(self._changed(name, p))

    def _is_in_slot(self, p: torch.nn.Parameter, grad: torch.Tensor, whole: bool) -> bool:
        at, n = self._layout.place[id(p)]
        n = n if whole else min(n, _PROBE)
        slot = _tensors.over(self._worker.gradient(), self._wire)
        return torch.equal(slot[at:at + n], _tensors.flat(grad)[:n].to(self._wire).cpu())

    def _changed(self, name: str, p: torch.nn.Parameter) -> str:
        if p.grad is None:
            return (f"rank {self.rank}: the gradient of {name} is gone, which backward() had "
                    "handed over: zero_grad() comes after step(); sync.abandon() gives a batch up. "
                    "This one is given up")
        return (f"rank {self.rank}: the gradient of {name} was changed after backward(), which had "
                "handed it over by then, so the change would have no effect. "
                f"{_ddp.over(self._bare)}{self._place} This batch is given up")

    def _slot(self) -> torch.Tensor:
        """All of the slot that this contribution is put in."""
        this = self._round
        if this.slot is None:
            if self._stale_slot:
                self._give_up()
            this.slot = _tensors.over(self._worker.gradient(), self._wire)
        return this.slot

    def _give_up(self) -> None:
        """What of the contribution there is."""
        self._device.finish()
        self._worker.abandon()
        self._abandoned = self._worker.abandoned
        self._stale_slot = False

    def _flush(self, wait: bool = False) -> None:
        """Hands over the pieces that have been copied; wait: all of them. Raises nothing of the
        library's inside backward(): what fails, step() says."""
        this = self._round
        was_sound, this.sound = this.sound, False
        if this.pieces:
            this.copies.append((self._device.mark(), this.pieces))
            this.pieces, this.bytes = [], 0
        try:
            if self._stale_slot:
                self._give_up()
            while this.failed is None and this.copies and (wait or this.copies[0][0].query()):
                copied, pieces = this.copies.popleft()
                copied.synchronize()
                self._worker.push_ranges(
                    (at, n, data.data_ptr()) for at, n, data in pieces if n > 0)
        except OSError as e:
            this.failed = e
        this.sound = was_sound

    def _forget(self) -> None:
        """Nothing of this round has been handed over, whatever was."""
        self._stale_slot = True
        self._round = Round(self._worker.ticket)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """For all micro-batches of a step but the last: gradients stay here and add up."""
        inner: ContextManager[Any] = contextlib.nullcontext()
        if isinstance(self._model, DistributedDataParallel):
            inner = self._model.no_sync()  # type: ignore[operator]
        before, self._keep_local = self._keep_local, True
        try:
            with inner:
                yield
            self._round.fired = True
            if self._sampler is not None:
                self._sampler.added()
        except BaseException:
            self._round.running = True  # gradients may have been added to in part
            raise
        finally:
            self._keep_local = before

    def abandon(self) -> None:
        """Gives up the batch that was computed since the last step(), in part or as a whole, with
        what no_sync() has added up: nothing of it is handed in, and the gradients are None. The
        next forward() and backward() begin another one. Its samples are done: a Sampler has other
        ones in their place. The same is done for a loop that zeroes gradients and goes on with the
        next batch, without a step(). What a step() has handed in that has raised Timeout counts all
        the same. Under bsp and others that wait for every rank, a rank that gives up each batch
        delays all, for musterd --patience at most."""
        if self.finished:
            return
        self._must_be_in()
        if not self._is_pending():
            self._give_up_batch()
            for _, p in self._layout.params:
                p.grad = None
            if self._sampler is not None:
                self._sampler.abandoned()

    def check(self) -> bool:
        """Between micro-batches, all but the last in no_sync(): is it worth while to go on with
        this batch? False: the servers want what is finished now, or it cannot count any more: call
        step(), which does what is right in either case. It hands in the micro-batches that are
        finished, or nothing where none is, with the verdict NONE; or it gives the batch up, with
        the verdict CANCELLED.
        What is handed in must be the mean over step(samples=...), which are then those of the
        finished micro-batches. Where each loss was divided by N for N micro-batches, and only k are
        finished, the gradients are k / N of that mean: multiply them by N / k before step()."""
        hint = self._worker.check()
        self._round.gave_up = hint == Hint.GIVE_UP
        self._round.asked = hint == Hint.HAND_IN
        return hint == Hint.GO_ON

    # ---- outcomes come in ----

    def _hand_in(self, samples: float, part: bool) -> None:
        if self._worker.ticket != self._round.before:
            return  # Ctrl-C came when the push was over
        self._look_for_abandon()
        if self._round.running:
            self._forget()
            self._over()
            raise RuntimeError("the last backward() was interrupted, or raised an error: "
                               "zero_grad(), and forward and backward() again")
        if not self._round.sound:  # Ctrl-C came in this function; all is still in the gradients
            self._forget()
            self._round.fired = True
        this = self._round
        if not this.fired and not this.gave_up and not this.asked:
            # Before torch 2.1 the hooks of a parameter that was moved are not called.
            for name, p in self._layout.params:
                self._layout.must_be_there(name, p)
            raise RuntimeError("step() without a backward() since the last step(), or since the "
                               "batch was given up; or that was of another model, such as a copy; "
                               "or the type of parameters has changed since this "
                               f"{type(self).__name__} was made. Gradients that a program sets "
                               "itself, as from torch.autograd.grad(), are set in `with "
                               "sync.no_sync()`")
        if this.gave_up or not this.fired:
            self._give_up()
            return
        if self._sampler is not None:
            self._sampler.must_be_of(samples)
        this.sound = False
        for name, p in self._layout.params:
            if id(p) not in this.given:
                self._give(name, p, p.grad)
        rest = self._layout.elems - self._layout.trained
        if rest > 0:
            this.pieces.append((self._layout.trained, rest, self._zeros))
        self._flush(wait=True)
        if this.failed is None:
            self._must_be_as_handed_over(this)
            try:
                self._device.give_back()
                self._push(samples, part)
                if self._sampler is not None:
                    self._sampler.pushed()
            except OSError as e:
                this.failed = e
        if this.failed is not None:
            self._device.finish()
            self._forget()
            failed, this.failed = this.failed, None
            self._stale_slot = not isinstance(failed, (NotFinite, Busy))
            if isinstance(failed, Busy):
                # The job has ended; or servers that ask for what is ready have been told of each
                # batch that was given up that there is none. Either way they have something to say.
                self._round.gave_up = True
                return
            if isinstance(failed, NotFinite) and self._sampler is not None:
                self._sampler.refused(str(failed))
            self._over()
            try:
                raise failed
            finally:
                del failed  # else error and frame would hold each other, and the frame holds this

    def _must_be_in(self) -> None:
        if self._closed:
            raise SessionLost(errno.ENOTCONN, f"rank {self.rank}: this {type(self).__name__} has "
                              f"left the job, in which it had version {self.version}: "
                              f"{self._why_closed}{self._goes_on}")
        self._worker.must_be_mine()

    def _must_train_the_same(self) -> None:
        """As when this object was made. It is called in each step, and costs a look at each."""
        try:
            self._layout.must_be_in_the_model()
        except ValueError as e:
            raise ValueError(f"rank {self.rank}: {e}") from None

    def _step(self, samples: float, part: bool) -> Step:
        self._must_be_in()
        self._must_train_the_same()
        samples = _samples(samples)
        try:
            return self._steps(samples, part)
        except (SessionLost, JobFailed, LeftOut) as e:
            self._why_closed = str(e) + self._given_up_so_far()
            e.args = (e.errno, self._why_closed)
            if isinstance(e, (JobFailed, LeftOut)):
                self._goes_on = ""
            self._leave()
            raise

    def _given_up_so_far(self) -> str:
        """What the server cannot know, for which this rank has made no steps."""
        if self._given_up == 0:
            return ""
        some = "1 batch was" if self._given_up == 1 else f"{self._given_up} batches were"
        return f"; since the last that counted, {some} given up"

    def _steps(self, samples: float, part: bool) -> Step:
        this = self._round
        if not this.handed_in:
            self._hand_in(samples, part)
            this = self._round
            this.handed_in = True
        while True:
            if this.out is None:
                self._device.give_back()
                this.out = self._next()
            if this.out.verdict != Verdict.NONE and (this.out.ticket != 0 or this.gave_up):
                this.verdict = this.out.verdict
            if this.most is None:
                this.most = max(_AT_ONCE, _CATCHES_UP * (this.out.newest - self.version))
            self._settle(this, this.out)
            if this.out.finished or not this.out.more:
                break
            if this.versions >= this.most and not self._finishing:
                break
            this.out = None
        self._over()
        if this.verdict == Verdict.COUNTED:
            self._given_up = 0
        self.finished = this.out.finished
        if self.finished:
            self._ended(this.out)
        done = Step(this.verdict, self.version, max(0, this.versions - 1), this.out.set)
        self._round = Round(self._worker.ticket)
        return done

    def _ended(self, out: Outcome) -> None:
        self._last, self.complete = out.newest, self.version >= out.newest
        if not self.complete:
            warnings.warn(f"rank {self.rank}: the job has ended with version {out.newest}, and its "
                          f"server no longer had the versions after {self.version}, which this "
                          "rank has (musterd --history): complete is False here; another rank has "
                          "the last version", RuntimeWarning, stacklevel=4)

    # ---- the job ----

    def batches(self, loader: Iterable[Any], until: Optional[int] = None) -> Iterator[Any]:
        """The batches of the loader, over and over until the job has ended. A sampler with
        set_epoch() hears of each epoch. until: the job ends with this version, in all ranks: no
        rank applies one after it. The least of what ranks give here and of musterd --commits
        counts; a rank that has given more is warned. A version that the job has made already ends
        it now. In a job that goes on from a checkpoint versions begin with that of the checkpoint.
        Raises Error with EACCES where only an operator may end the job.
        Raises ValueError for a loader without a batch, and TypeError when one that can be gone over
        once only, such as a generator, is used up before the end of the job; of such a one it warns
        before. Warns of a DistributedSampler, and in a rank whose samples hardly count."""
        sampler = getattr(_loader.below(loader), "batch_sampler", None)
        if isinstance(sampler, Sampler):
            self._check_sampler(sampler)
        _loader.check(loader, self.rank)
        return self._go_over(loader, until)

    def _go_over(self, loader: Any, until: Optional[int]) -> Iterator[Any]:
        sampler: Any = getattr(_loader.below(loader), "sampler", None)
        epoch, told = 0, False  # the loop may leave this generator, and make another one
        if self.finished:
            self._after.batches(self.rank, self.version)
        while not self.finished:
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(self._passes)
            self._passes += 1
            batches = 0
            for batch in loader:
                batches += 1
                if until is not None:
                    self._ends_with(until)
                    until = None
                yield batch
                if self.finished:
                    return
                told = told or self._counted.warns(loader, self.rank, self.workers)
            _loader.check_end(loader, self.rank, self.version, batches, epoch)
            epoch += 1

    def _ends_with(self, until: int) -> None:
        ends = self._worker.goal(_arguments.whole("until", until, 1, 2 ** 64 - 1))
        if ends < until:
            warnings.warn(f"rank {self.rank}: until={until}, and the job ends with version {ends}: "
                          "another rank has given that, or musterd --commits, and the least counts",
                          RuntimeWarning, stacklevel=3)

    @property
    def rank(self) -> int:
        return self._worker.job.rank

    @property
    def workers(self) -> int:
        return self._worker.job.workers

    @property
    def worker(self) -> Worker:
        """The Worker below, for report(), wake() and the like."""
        return self._worker

    def finish(self, why: str = "") -> None:
        """Ends the job for all ranks; the step() that follows brings the last version. Raises Error
        with EACCES where only an operator may do so (musterd --finish operator), and Busy where the
        connection to the server takes no message now: call it again."""
        self._worker.finish(why)
        self._finishing = True

    def close(self) -> None:
        """Leaves the job, and takes the hooks off the model, which then is as it was before. A
        second call does nothing. Dropping this object does the same."""
        self._closed = True
        self._hooks.remove()
        self._layout.params = []
        self._device.close()
        self._worker.close()

    def _leave(self) -> None:
        """close(), where an error is under way: the program has to hear of that one, and not that
        something still reads the memory of a version, or that a thread is in a call. Then the
        worker leaves the job later: when that has ended, and nothing refers to it any more."""
        with contextlib.suppress(BufferError, RuntimeError):
            self.close()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """At the end of the process the Worker does what is to be done. Then modules, such as sys,
        may have lost what is in them; what this function has stays."""
        if hasattr(self, "_worker") and not is_finalizing():
            self._leave()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, error: Optional[type], *_: Any) -> None:
        if error is None:
            self.close()
        else:
            self._leave()
