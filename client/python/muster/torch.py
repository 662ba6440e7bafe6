# SPDX-License-Identifier: MIT
"""PyTorch: Sync(model, opt) stands in place of DistributedDataParallel; a slow rank delays nobody.

    sync = muster.torch.Sync(model, opt)
    for x, y in sync.batches(loader):
        opt.zero_grad()
        loss(model(x), y).backward()
        sync.step(samples=len(x))

The job is started with musterd --owner workers. Every rank applies every version of the mean
gradient, in order, so that parameters are the same to the bit on all ranks."""
from __future__ import annotations

import contextlib
import errno
import os
import secrets
import types
import warnings
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from . import _signals, _state, _tensors
from ._sampler import Sampler
from .worker import (Busy, Error, Hint, InvalidArgument, JobFailed, NotFinite, Outcome, SessionLost,
                     Share, Stale, Verdict, Worker)

__all__ = ["Sampler", "Step", "Sync", "alone"]

_WIRE = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
_FLUSH_BYTES = 256 << 10  # gradients that are smaller together are handed over in one call


class Step(NamedTuple):
    """What a sync.step() has brought. verdict: of this rank's gradient. version: which all
    parameters are of now. missed: versions that were applied besides the last, because this rank
    was late. set: who is in the last version."""
    verdict: Verdict
    version: int
    missed: int
    set: Tuple[Share, ...]


def alone() -> Any:
    """A process group of this process alone, for DistributedDataParallel(model, process_group=
    muster.torch.alone()): a model that is wrapped in it keeps its code. Uses no network."""
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    if dist.get_world_size() == 1:
        return dist.group.WORLD
    groups = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
    return groups[dist.get_rank()]


class _Round:
    """From one step() to the next. There is a new one for each, so that whenever Ctrl-C comes, what
    is here is of one step."""

    def __init__(self, ticket: int):
        self.before = ticket  # of the push before it
        self.given: Set[int] = set()
        self.pieces: List[Tuple[int, int, torch.Tensor]] = []
        self.bytes = 0
        self.fired = False    # there was a backward()
        self.running = False  # a backward() that hands gradients over has begun, and not ended
        self.sound = True     # what is in `given` is in `pieces` or handed over
        self.gave_up = self.asked = False
        self.failed: Optional[Exception] = None
        self.handed_in = False
        self.verdict, self.applied = Verdict.NONE, 0
        self.out: Optional[Outcome] = None


class Sync:
    """Keeps the parameters of all ranks of a job the same, from a common start on.

    model: a Module, or a DistributedDataParallel one over a process group of one (alone()). Its
    trainable parameters are f32 on the CPU; buffers and frozen parameters may have any type.
    opt: the optimiser. step: what applies one version, with every gradient set to the version's
    mean; opt.step by default. It clips, schedules and calls opt.step() itself, and is called for
    every version in order, in a late rank several times in one sync.step(). What it does must
    depend on the gradients and on earlier calls alone, for then all ranks stay the same.
    scheduler: one whose place belongs to the state, such as step() moves. sampler: a Sampler.
    state: (get, set) in place of all that is named above but the sampler: get() returns what a rank
    needs to apply the next version, a tree of tensors, numbers, strings, bytes, lists, tuples and
    dicts, and set(tree) makes it so.
    wire: "f32", "bf16" or "f16", how gradients travel. lr_scale: multiply the learning rate of each
    opt.step() by the version's orders.lr_scale (musterd --lr-scale); else it is the user's.
    server, job, rank, join_timeout, wait_timeout: of Worker.

    All ranks begin with the lowest rank's parameters and buffers, frozen ones included: the
    constructor waits until all ranks are there. Buffers go their own way afterwards, as those of
    BatchNorm do. A parameter that this rank did not use counts as a gradient of zeros.
    In a job that is running, the constructor takes the state of another rank instead: so a rank
    that was killed comes back when it is started again. So does one that has fallen behind the
    versions that the servers keep, in step(). Any rank gives its state in step(), where it calls
    get() and copies the bytes; if that fails, it warns, and another rank is asked.
    Raises TypeError or ValueError in words where a model will not do, and the errors of Worker. One
    thread uses a Sync, which must be the one that calls backward()."""

    def __init__(self, model: torch.nn.Module, opt: torch.optim.Optimizer,
                 step: Optional[Callable[[], Any]] = None, *, scheduler: Optional[Any] = None,
                 sampler: Optional[Sampler] = None,
                 state: Optional[Tuple[Callable[[], Any], Callable[[Any], Any]]] = None,
                 wire: str = "f32", lr_scale: bool = False,
                 server: Optional[str] = None, job: Optional[str] = None, rank: int = -1,
                 join_timeout: float = 60.0, wait_timeout: Optional[float] = None):
        if wire not in _WIRE:
            raise ValueError(f"wire is {wire!r}; it is one of {', '.join(_WIRE)}")
        self._model, self._opt, self._wire = model, opt, _WIRE[wire]
        self._ddp = isinstance(model, DistributedDataParallel)
        bare = self._bare(model)
        self._params = [(n, p) for n, p in bare.named_parameters() if p.requires_grad]
        frozen = [(n, p) for n, p in bare.named_parameters() if not p.requires_grad]
        self._rest = frozen + list(bare.named_buffers())
        self._check_model()
        self._scale = 1.0
        if lr_scale:
            self._scale_rate()
        self._apply = step or (lambda: opt.step())
        self._sampler = sampler
        whole = _state.Whole(bare, opt, scheduler)
        self._get, self._set = state or (whole.get, whole.set)
        self._check = whole.check if state is None else lambda _: None
        if state is None:
            _state.look_at(whole.get())  # else a mistake would show when the first rank comes back
        self._lay_out()
        self.finished = False
        self.version = 0
        self._keep_local = False
        self._torn: Optional[int] = None  # the version that was not applied whole
        self._stepped = self._came_back = False
        self._taken: Optional[Tuple[int, bytes]] = None  # a state that is to be set
        self._stale_slot = False  # what was handed over of the contribution is to be given up
        self._hooks: List[Any] = []
        self._closed = False
        self._worker = self._join(server=server, job=job, rank=rank, join_timeout=join_timeout,
                                  wait_timeout=wait_timeout)
        try:
            self._round = _Round(0)
            if sampler is not None:
                sampler.join(self.rank, self.workers)
            self._start()
            self._listen()
        except BaseException:
            self.close()  # a rank without a Sync is not waited for
            raise

    def _join(self, **where: Any) -> Worker:
        wire = next(name for name, t in _WIRE.items() if t == self._wire)
        try:
            return Worker(self._elems, type=wire, owner="workers", tensors=self._table(),
                          comes_back=True, **where)
        except InvalidArgument as e:
            ours = "none" if self._sampler is None else repr(self._sampler)
            raise InvalidArgument(e.errno, f"{e} (of muster.torch.Sync these are the parameters, "
                                  f"the buffers and the sampler, here {ours})") from e

    # ---- the model ----

    @staticmethod
    def _bare(model: torch.nn.Module) -> torch.nn.Module:
        if not isinstance(model, DistributedDataParallel):
            return model
        size = dist.get_world_size(model.process_group)
        if size > 1:
            raise ValueError(
                f"the model is in DistributedDataParallel over {size} ranks, which wait for each "
                "other in every forward and backward, so that the slowest sets the pace: give Sync "
                "the bare model, or DistributedDataParallel(model, "
                "process_group=muster.torch.alone())")
        return model.module

    def _check_model(self) -> None:
        if not self._params:
            raise ValueError("the model has no parameter that requires a gradient")
        for name, p in self._params:
            if p.is_complex():
                raise TypeError(f"parameter {name} is complex: muster sums real numbers; make two "
                                "real parameters of it")
            if p.dtype != torch.float32:
                raise TypeError(f"parameter {name} is {p.dtype}: trainable parameters are float32 "
                                "here; model.float(), and torch.autocast where speed matters")
        for name, p in self._params + self._rest:
            if p.device.type != "cpu":
                raise TypeError(f"{name} is on {p.device}: only models on the CPU are supported; "
                                "model.cpu()")
        known = {id(p) for _, p in self._params}
        for group in self._opt.param_groups:
            for p in group["params"]:
                if p.requires_grad and id(p) not in known:
                    raise ValueError("the optimiser has a parameter that the model does not have: "
                                     "make the optimiser from model.parameters()")

    def _lay_out(self) -> None:
        self._place: Dict[int, Tuple[int, int]] = {}
        at = 0
        for _, p in self._params:
            self._place[id(p)] = (at, p.numel())
            at += p.numel()
        self._trained = at
        # Of the rest nothing but the start travels: each byte as a number.
        rest = sum(_tensors.packed(t) for _, t in self._rest)
        self._elems = at + rest + len(self._sampler_row())
        longest = max([n for _, n in self._place.values()] + [self._elems - at])
        self._zeros = torch.zeros(longest, dtype=self._wire)

    def _table(self) -> List[Tuple[str, int]]:
        rows = [(name, p.numel()) for name, p in self._params]
        rows += [(name, _tensors.packed(t)) for name, t in self._rest] + self._sampler_row()
        return [r for r in rows if r[1] > 0]

    def _sampler_row(self) -> List[Tuple[str, int]]:
        """A row of the table, and an element of no meaning: the servers compare the tables."""
        return [] if self._sampler is None else [(repr(self._sampler), 1)]

    def _start(self) -> None:
        own = torch.cat([_tensors.flat(p) for _, p in self._params]
                        + [_tensors.pack(t) for _, t in self._rest]
                        + [torch.zeros(len(self._sampler_row()))])
        try:
            out = self._worker.start(own.numpy())
        except Stale:
            self._come_back()
            return
        self.version = out.version
        if out.result is None:
            return
        first = torch.from_numpy(out.result.numpy().copy())
        with torch.no_grad():
            for _, p in self._params:
                at, count = self._place[id(p)]
                p.copy_(first[at:at + count].view(p.shape))
        at = self._trained
        for _, t in self._rest:
            _tensors.unpack(first[at:at + _tensors.packed(t)], t.data)
            at += _tensors.packed(t)

    def _scale_rate(self) -> None:
        plain = self._opt.step

        def scaled(_: Any, *args: Any, **kwargs: Any) -> Any:
            rates = [g["lr"] for g in self._opt.param_groups]
            for g in self._opt.param_groups:
                g["lr"] = g["lr"] * self._scale
            try:
                return plain(*args, **kwargs)
            finally:
                for g, rate in zip(self._opt.param_groups, rates):
                    g["lr"] = rate

        scaled.__dict__.update(getattr(plain, "__dict__", {}))  # what schedulers leave there
        self._opt.step = types.MethodType(scaled, self._opt)  # type: ignore[method-assign]

    # ---- gradients go out ----

    def _listen(self) -> None:
        """Also to forward(), as a backward() that was interrupted has no end."""
        self._hooks.append(self._model.register_forward_pre_hook(lambda *_: self._begun()))
        if self._ddp:
            self._listen_to_buckets()
            return
        for name, p in self._params:
            if hasattr(p, "register_post_accumulate_grad_hook"):
                hook = p.register_post_accumulate_grad_hook(lambda q, n=name: self._ready(n, q))
                self._hooks.append(hook)
            else:  # the node that adds to p.grad; torch before 2.1 has no other way
                node = p.expand_as(p).grad_fn.next_functions[0][0]
                hook = node.register_hook(lambda *_, n=name, q=p: self._ready(n, q))
                self._hooks += [hook, node]

    def _listen_to_buckets(self) -> None:
        """A DistributedDataParallel takes a hook once and keeps it: the hook asks which Sync there
        is now."""
        present = getattr(self._model, "_muster_sync", None)
        if present is None:
            present = self._model._muster_sync = [lambda: None]  # type: ignore[assignment]

            def hook(_, bucket):  # without annotations: torch 1.13 compares them as written
                sync = present[0]()
                if sync is not None:
                    sync._bucket_ready(bucket)
                done: Any = torch.futures.Future()
                done.set_result(bucket.buffer())
                return done

            self._model.register_comm_hook(None, hook)
        present[0] = weakref.ref(self)

    def _begun(self) -> None:
        if self._round.running:
            self._forget()

    def _fires(self) -> None:
        """In a backward(). It ends well if what is queued here is called."""
        this = self._round
        this.fired = True
        if not this.running:
            this.running = True
            torch.autograd.Variable._execution_engine.queue_callback(lambda: self._ends(this))

    def _ends(self, this: _Round) -> None:
        """The backward(). The gradients are the user's to change from now on."""
        this.running = False
        if this is self._round and not self._closed:
            self._flush()

    def _bucket_ready(self, bucket: Any) -> None:
        if self.finished or self._closed:
            return
        names = {id(p): n for n, p in self._params}
        self._fires()
        for p, grad in zip(bucket.parameters(), bucket.gradients()):
            self._give(names[id(p)], p, grad)
        self._flush()  # DistributedDataParallel may use the bucket for something else

    def _ready(self, name: str, p: torch.nn.Parameter) -> None:
        if self._keep_local or self.finished or self._closed:
            return
        self._fires()
        self._give(name, p, p.grad)

    def _give(self, name: str, p: torch.nn.Parameter, grad: Optional[torch.Tensor]) -> None:
        this = self._round
        if this.failed is not None:
            return
        if id(p) in this.given:
            this.running = False
            raise RuntimeError(f"parameter {name}: backward() has run twice since the last step(): "
                               "put all but the last into `with sync.no_sync()`")
        if grad is None:
            data = self._zeros[:p.numel()]
        elif grad.is_sparse:
            raise TypeError(f"the gradient of {name} is sparse: muster sums dense vectors; "
                            "Embedding(sparse=False)")
        else:
            data = _tensors.flat(grad).to(self._wire).contiguous()
        was_sound, this.sound = this.sound, False
        this.given.add(id(p))
        this.pieces.append((*self._place[id(p)], data))
        this.bytes += data.numel() * data.element_size()
        this.sound = was_sound
        if this.bytes >= _FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Raises nothing of the library's inside backward(): what fails, step() says."""
        this = self._round
        was_sound, this.sound = this.sound, False
        try:
            if self._stale_slot:
                self._worker.abandon()
                self._stale_slot = False
            if this.pieces and this.failed is None:
                self._worker.push_ranges(
                    (at, n, data.data_ptr()) for at, n, data in this.pieces if n > 0)
        except OSError as e:
            this.failed = e
        this.pieces, this.bytes = [], 0
        this.sound = was_sound

    def _forget(self) -> None:
        """Nothing of this round has been handed over, whatever was."""
        self._stale_slot = True
        self._round = _Round(self._worker.ticket)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """For all micro-batches of a step but the last: gradients stay here and add up."""
        inner = self._model.no_sync() if self._ddp else contextlib.nullcontext()
        before, self._keep_local = self._keep_local, True
        try:
            with inner:
                yield
            self._round.fired = True
        except BaseException:
            self._round.running = True  # gradients may have been added to in part
            raise
        finally:
            self._keep_local = before

    def check(self) -> bool:
        """Between micro-batches: is it worth while to go on with this batch? False: the servers
        want what is finished now, or it cannot count any more: call step(), which does what is
        right in either case."""
        hint = self._worker.check()
        self._round.gave_up = hint == Hint.GIVE_UP
        self._round.asked = hint == Hint.HAND_IN
        return hint == Hint.GO_ON

    # ---- versions come in ----

    def _hand_in(self, samples: float) -> None:
        if self._worker.ticket != self._round.before:
            return  # Ctrl-C came when the push was over
        if self._round.running:
            self._forget()
            raise RuntimeError("the last backward() was interrupted, or raised an error: "
                               "opt.zero_grad(), and forward and backward() again")
        if not self._round.sound:  # Ctrl-C came in this function; all is still in the gradients
            self._forget()
            self._round.fired = True
        this = self._round
        if not this.fired and not this.gave_up and not this.asked:
            raise RuntimeError("step() without a backward() since the last step()")
        if this.gave_up or not this.fired:
            self._worker.abandon()
            self._stale_slot = False
            return
        this.sound = False
        for name, p in self._params:
            if id(p) not in this.given:
                self._give(name, p, p.grad)
        if self._elems > self._trained:
            this.pieces.append((self._trained, self._elems - self._trained, self._zeros))
        self._flush()
        if this.failed is None:
            try:
                self._worker.push(samples)
            except OSError as e:
                this.failed = e
        if this.failed is not None:
            self._forget()
            self._stale_slot = not isinstance(this.failed, NotFinite)
            if self._sampler is not None:
                self._sampler.settled()
            raise this.failed

    def _set_gradients(self, out: Outcome) -> None:
        assert out.result is not None
        mean = _tensors.over(out.result)
        for _, p in self._params:
            at, count = self._place[id(p)]
            part = mean[at:at + count].view(p.shape)
            if p.grad is None:
                p.grad = part.clone()
            else:
                p.grad.detach().copy_(part)

    def step(self, samples: float = 1.0) -> Step:
        """In place of opt.step(): hands this rank's gradient in, waits until the policy lets it go
        on, and applies each version since, in order. samples: how many are in the mean gradient; a
        version is the mean over its samples (musterd --weigh).
        Afterwards parameters are of the version that is returned, and gradients hold its mean.
        Raises RuntimeError where there was no backward(); NotFinite, which names the tensor, and
        the step may be repeated with another batch (a Sampler gives the same one again, as all
        ranks know whose it is); Timeout and Ctrl-C, after which step() called
        again goes on with the same step; errors that end the job. Ctrl-C never leaves a version
        that is applied in part: it is raised when step has been called, or, if it comes twice, this
        Sync is of no use any more, as when step or set has raised an error, or the session is lost:
        it leaves the job, and another one, made anew, takes the state of another rank.
        Gradients have been copied when backward() is over, and may be changed; but that of a
        parameter which the last backward() did not reach is copied here."""
        if self.finished:
            return Step(Verdict.NONE, self.version, 0, ())
        self._must_be_whole()
        self._stepped = True
        try:
            return self._steps(samples)
        except (SessionLost, JobFailed):
            self.close()
            raise

    def _steps(self, samples: float) -> Step:
        this = self._round
        if not this.handed_in:
            self._hand_in(samples)
            this = self._round
            this.handed_in = True
        while True:
            if this.out is None:
                this.out = self._next()
            self._settle(this, this.out)
            if this.out.finished or not this.out.more:
                break
            this.out = None
        if self._sampler is not None:
            self._sampler.settled()
        self.finished = this.out.finished
        done = Step(this.verdict, self.version, max(0, this.applied - 1), this.out.set)
        self._round = _Round(self._worker.ticket)
        return done

    def _next(self) -> Outcome:
        while True:
            try:
                if self._taken is not None:  # Ctrl-C came before it was set
                    self._come_back()
                return self._worker.wait()
            except Stale:
                self._come_back()

    def _settle(self, this: _Round, out: Outcome) -> None:
        """A second time it does nothing."""
        if out.verdict != Verdict.NONE and (out.ticket != 0 or this.gave_up):
            this.verdict = out.verdict
        if out.fresh and out.result is not None and out.version != self.version:
            with self._becomes(out.version):
                self._set_gradients(out)
                self._scale = out.lr_scale
                if self._sampler is not None:
                    self._sampler.version(out.set)
                self._apply()
                this.applied += 1
        self._offer_state()

    @contextlib.contextmanager
    def _becomes(self, version: int) -> Iterator[None]:
        """What is done here makes the parameters those of the version. If it fails, they are of
        none, and nobody is to wait for this rank."""
        with _signals.not_in_the_middle():
            self._torn = version
            try:
                yield
            except BaseException:
                self.close()
                raise
            self.version, self._torn = version, None

    def _must_be_whole(self) -> None:
        if self._torn is not None:
            raise RuntimeError(f"rank {self.rank}: version {self._torn} was applied in part, as an "
                               "error or Ctrl-C came meanwhile, so the parameters are of no "
                               "version: make another Sync, which takes the state of another rank")

    # ---- states ----

    def _packed_state(self) -> bytearray:
        sampler = None if self._sampler is None else self._sampler.state_dict()
        return _state.encode({"version": self.version, "state": self._get(), "sampler": sampler})

    def _read_state(self, raw: Any) -> Dict[str, Any]:
        read = _state.decode(raw)
        if not isinstance(read, dict) or set(read) != {"version", "state", "sampler"}:
            raise ValueError("these bytes are a state, but not one that a Sync has made")
        if (read["sampler"] is None) != (self._sampler is None):
            raise ValueError("it is of a job with a sampler, and here is none" if read["sampler"]
                             else f"it is of a job without a sampler, and here is {self._sampler}")
        if self._sampler is not None:
            self._sampler.check_state(read["sampler"])
        self._check(read["state"])
        return read

    def _set_state(self, read: Dict[str, Any], version: int) -> None:
        with self._becomes(version):
            if self._sampler is not None:
                self._sampler.load_state_dict(read["sampler"])
            self._set(read["state"])

    def _offer_state(self) -> None:
        """If a rank wants a state. That nobody hears of an error here would be wrong, and so would
        be that this rank ends because of another."""
        if not self._worker.state_wanted():
            return
        raw = None
        try:
            raw = self._packed_state()
        except Exception as e:
            warnings.warn(f"rank {self.rank} cannot give its state to a rank that comes back; "
                          f"another is asked: {e}", RuntimeWarning, stacklevel=3)
        try:
            self._worker.give_state(raw)
        except Busy:
            pass  # after the next outcome
        except Error as e:
            if e.errno not in (errno.EMSGSIZE, errno.ENOMEM):
                raise
            warnings.warn(f"{e}; another rank is asked", RuntimeWarning, stacklevel=3)

    def _come_back(self) -> None:
        if self._taken is None:
            try:
                self._taken = self._worker.take_state()
            except Stale:  # the session is over
                self.close()
                raise
        version, raw = self._taken
        try:
            self._set_state(self._read_state(raw), version)
        except Exception as e:
            self.close()
            raise RuntimeError(f"rank {self.rank} cannot go on with the state of another rank, of "
                               f"version {version}: {e}") from e
        self._taken, self._came_back = None, True

    def save(self, path: Any) -> None:
        """Writes the state of this version to a file, which is there whole or not at all, also if
        another rank writes the same one. Between two steps, in any rank."""
        self._must_be_whole()
        path = os.fspath(path)
        part = f"{path}.{self.rank}-{secrets.token_hex(8)}.part"
        raw = self._packed_state()
        try:
            with open(part, "xb") as f:
                f.write(raw)
                f.flush()
                os.fsync(f.fileno())
            os.replace(part, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def load(self, path: Any) -> Optional[int]:
        """Sets the state of a file that save() has written, and returns the version it was of.
        Before the first step() of a job, in all ranks, with the same file: the versions of the job
        begin anew. A rank that has come back into a running job has a newer state, which it
        keeps: then load() does nothing, and returns None.
        Raises ValueError, in words, where the file is no state, has been cut short or is of another
        model; nothing has been set then."""
        self._must_be_whole()
        if self._stepped:
            raise RuntimeError("load() comes before the first step()")
        if self._came_back:
            return None
        with open(path, "rb") as f:
            raw = f.read()
        try:
            read = self._read_state(raw)
        except ValueError as e:
            raise ValueError(f"{os.fspath(path)} cannot be loaded: {e}") from e
        self._set_state(read, self.version)
        return int(read["version"])

    # ---- the job ----

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The batches of the loader, over and over until the job has ended. A sampler with
        set_epoch() hears of each epoch."""
        sampler = getattr(loader, "sampler", None)
        if isinstance(getattr(loader, "batch_sampler", None), Sampler) and (
                loader.batch_sampler is not self._sampler):  # type: ignore[attr-defined]
            raise ValueError("the loader's sampler must be the one of Sync(..., sampler=sampler), "
                             "so that all ranks are known to have the same")
        epoch = 0
        while not self.finished:
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)
            some = False
            for batch in loader:
                some = True
                yield batch
                if self.finished:
                    return
            if not some:
                raise ValueError("the loader has no batch")
            epoch += 1

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
        """Ends the job for all ranks; the step() that follows brings the last version."""
        self._worker.finish(why)

    def close(self) -> None:
        """Leaves the job, and takes the hooks off the model, which then is as it was before."""
        self._closed = True
        self._scale = 1.0
        for hook in self._hooks:
            if hasattr(hook, "remove"):
                hook.remove()
        self._hooks, self._params = [], []
        self._worker.close()

    def __enter__(self) -> "Sync":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
