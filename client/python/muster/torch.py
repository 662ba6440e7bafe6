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
import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .worker import Hint, Outcome, Share, Verdict, Worker

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


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1)


def _pack(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor as numbers from 0 to 255 in f32: exact for any type and values."""
    flat = _flat(tensor).contiguous()
    raw = (flat.view(torch.int16) if flat.dtype == torch.bfloat16 else flat).numpy().tobytes()
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).float() if raw else torch.zeros(0)


def _unpack(numbers: torch.Tensor, into: torch.Tensor) -> None:
    if into.numel() == 0:
        return
    raw = bytearray(numbers.to(torch.uint8).numpy().tobytes())
    with torch.no_grad():
        into.copy_(torch.frombuffer(raw, dtype=into.dtype).view(into.shape))


def _packed(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


class Sync:
    """Keeps the parameters of all ranks of a job the same, from a common start on.

    model: a Module, or a DistributedDataParallel one over a process group of one (alone()). Its
    trainable parameters are f32 on the CPU; buffers and frozen parameters may have any type.
    opt: the optimiser. step: what applies one version, with every gradient set to the version's
    mean; opt.step by default. It clips, schedules and calls opt.step() itself, and is called for
    every version in order, in a late rank several times in one sync.step(). What it does must
    depend on the gradients and on earlier calls alone, for then all ranks stay the same.
    wire: "f32", "bf16" or "f16", how gradients travel. lr_scale: multiply the learning rate of each
    opt.step() by the version's orders.lr_scale (musterd --lr-scale); else it is the user's.
    server, job, rank, join_timeout, wait_timeout: of Worker.

    All ranks begin with the lowest rank's parameters and buffers, frozen ones included: the
    constructor waits until all ranks are there. Buffers go their own way afterwards, as those of
    BatchNorm do. A parameter that this rank did not use counts as a gradient of zeros.
    Raises TypeError or ValueError in words where a model will not do, and the errors of Worker. One
    thread uses a Sync, which must be the one that calls backward()."""

    def __init__(self, model: torch.nn.Module, opt: torch.optim.Optimizer,
                 step: Optional[Callable[[], Any]] = None, *, wire: str = "f32",
                 lr_scale: bool = False, server: Optional[str] = None, job: Optional[str] = None,
                 rank: int = -1, join_timeout: float = 60.0,
                 wait_timeout: Optional[float] = None):
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
        self._lay_out()
        self.finished = False
        self._keep_local = False
        self._sampler: Optional[Sampler] = None
        self._begin_round()
        self._worker = Worker(self._elems, type=wire, owner="workers", tensors=self._table(),
                              server=server, job=job, rank=rank, join_timeout=join_timeout,
                              wait_timeout=wait_timeout)
        try:
            self._start()
        except BaseException:
            self._worker.close()
            raise
        self._hooks: List[Any] = []
        self._listen()

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
        self._elems = at + sum(_packed(t) for _, t in self._rest)
        longest = max([n for _, n in self._place.values()] + [self._elems - at])
        self._zeros = torch.zeros(longest, dtype=self._wire)

    def _table(self) -> List[Tuple[str, int]]:
        rows = [(name, p.numel()) for name, p in self._params]
        return [r for r in rows + [(name, _packed(t)) for name, t in self._rest] if r[1] > 0]

    def _start(self) -> None:
        own = torch.cat([_flat(p) for _, p in self._params] + [_pack(t) for _, t in self._rest])
        out = self._worker.start(own.numpy())
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
            _unpack(first[at:at + _packed(t)], t.data)
            at += _packed(t)

    def _scale_rate(self) -> None:
        plain = self._opt.step

        def scaled(*args: Any, **kwargs: Any) -> Any:
            rates = [g["lr"] for g in self._opt.param_groups]
            for g in self._opt.param_groups:
                g["lr"] = g["lr"] * self._scale
            try:
                return plain(*args, **kwargs)
            finally:
                for g, rate in zip(self._opt.param_groups, rates):
                    g["lr"] = rate

        scaled.__dict__.update(getattr(plain, "__dict__", {}))  # what schedulers leave there
        self._opt.step = scaled  # type: ignore[method-assign]

    # ---- gradients go out ----

    def _listen(self) -> None:
        if self._ddp:
            # A function without annotations: torch 1.13 compares them as they are written.
            self._model.register_comm_hook(None, lambda _, bucket: self._bucket_ready(bucket))
            return
        for name, p in self._params:
            if hasattr(p, "register_post_accumulate_grad_hook"):
                hook = p.register_post_accumulate_grad_hook(lambda q, n=name: self._ready(n, q))
                self._hooks.append(hook)
            else:  # the node that adds to p.grad; torch before 2.1 has no other way
                node = p.expand_as(p).grad_fn.next_functions[0][0]
                node.register_hook(lambda *_, n=name, q=p: self._ready(n, q))
                self._hooks.append(node)

    def _bucket_ready(self, bucket: Any) -> Any:
        names = {id(p): n for n, p in self._params}
        for p, grad in zip(bucket.parameters(), bucket.gradients()):
            self._give(names[id(p)], p, grad)
        self._flush()  # DistributedDataParallel may use the bucket for something else
        self._fired = True
        done: Any = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    def _ready(self, name: str, p: torch.nn.Parameter) -> None:
        if self._keep_local or self.finished:
            return
        self._give(name, p, p.grad)
        self._fired = True

    def _give(self, name: str, p: torch.nn.Parameter, grad: Optional[torch.Tensor]) -> None:
        if self._failed is not None or self.finished:
            return
        if id(p) in self._given:
            raise RuntimeError(f"parameter {name}: backward() has run twice since the last step(): "
                               "put all but the last into `with sync.no_sync()`")
        if grad is None:
            data = self._zeros[:p.numel()]
        elif grad.is_sparse:
            raise TypeError(f"the gradient of {name} is sparse: muster sums dense vectors; "
                            "Embedding(sparse=False)")
        else:
            data = _flat(grad).to(self._wire).contiguous()
        self._given.add(id(p))
        self._pieces.append((*self._place[id(p)], data))
        self._bytes += data.numel() * data.element_size()
        if self._bytes >= _FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Raises nothing inside backward(): what fails, step() says."""
        pieces, self._pieces, self._bytes = self._pieces, [], 0
        if not pieces or self._failed is not None:
            return
        try:
            self._worker.push_ranges((at, n, data.data_ptr()) for at, n, data in pieces if n > 0)
        except OSError as e:
            self._failed = e

    def _begin_round(self) -> None:
        self._given: set = set()
        self._pieces: List[Tuple[int, int, torch.Tensor]] = []
        self._bytes, self._fired, self._gave_up, self._asked = 0, False, False, False
        self._failed: Optional[Exception] = None
        self._pushed = False

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """For all micro-batches of a step but the last: gradients stay here and add up."""
        inner = self._model.no_sync() if self._ddp else contextlib.nullcontext()
        before, self._keep_local = self._keep_local, True
        try:
            with inner:
                yield
        finally:
            self._keep_local = before
            self._fired = True

    def check(self) -> bool:
        """Between micro-batches: is it worth while to go on with this batch? False: the servers
        want what is finished now, or it cannot count any more: call step(), which does what is
        right in either case."""
        hint = self._worker.check()
        self._gave_up = hint == Hint.GIVE_UP
        self._asked = hint == Hint.HAND_IN
        return hint == Hint.GO_ON

    # ---- versions come in ----

    def _hand_in(self, samples: float) -> None:
        if not self._fired and not self._gave_up and not self._asked:
            raise RuntimeError("step() without a backward() since the last step()")
        if self._gave_up or not self._fired:
            self._pieces = []
            self._worker.abandon()
            return
        for name, p in self._params:
            if id(p) not in self._given:
                self._give(name, p, p.grad)
        if self._elems > self._trained:
            self._pieces.append((self._trained, self._elems - self._trained, self._zeros))
        self._flush()
        if self._failed is not None:
            failed = self._failed
            self._begin_round()
            raise failed
        self._worker.push(samples)

    def _set_gradients(self, out: Outcome) -> None:
        assert out.result is not None
        mean = _tensor_of(out.result)
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
        the step may be repeated with another batch; Timeout and Ctrl-C, after which step() called
        again goes on waiting; errors that end the job."""
        if self.finished:
            return Step(Verdict.NONE, self.version, 0, ())
        if not self._pushed:
            self._hand_in(samples)
            self._pushed, self._verdict, self._applied = True, Verdict.NONE, 0
        while True:
            out = self._worker.wait()
            if out.verdict != Verdict.NONE:
                self._verdict = out.verdict
            if out.fresh and out.result is not None:
                self._take(out)
            if out.finished or not out.more:
                break
        self.finished = out.finished
        done = Step(self._verdict, out.version, max(0, self._applied - 1), out.set)
        if self._sampler is not None:
            self._sampler.settled()
        self._begin_round()
        return done

    def _take(self, out: Outcome) -> None:
        self._set_gradients(out)
        self._scale = out.lr_scale
        self.version = out.version
        self._applied += 1
        if self._sampler is not None:
            self._sampler.version(out.set)
        self._apply()

    # ---- the job ----

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The batches of the loader, over and over until the job has ended. A sampler with
        set_epoch() hears of each epoch."""
        sampler = getattr(loader, "sampler", None)
        batch_sampler = getattr(loader, "batch_sampler", None)
        if isinstance(batch_sampler, Sampler):
            self.attach(batch_sampler)
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

    def attach(self, sampler: "Sampler") -> None:
        """The sampler hears of every version from now on; batches() does this itself."""
        sampler.join(self.rank, self.workers)
        self._sampler = sampler

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
        """Leaves the job, and takes the hooks off the model."""
        for hook in self._hooks:
            if hasattr(hook, "remove"):
                hook.remove()
        self._hooks = []
        self._params = []
        self._worker.close()

    def __enter__(self) -> "Sync":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _tensor_of(view: Any) -> torch.Tensor:
    """Over the library's memory, to be read at once and dropped."""
    import ctypes
    import numpy
    array = view.numpy()
    shared = (ctypes.c_float * len(array)).from_address(array.ctypes.data)
    return torch.from_numpy(numpy.frombuffer(shared, numpy.float32))


class Sampler(torch.utils.data.Sampler):
    """Batches of indices, drawn by every rank from the whole set, of which the verdict is known.

        loader = DataLoader(data, batch_sampler=muster.torch.Sampler(len(data), 32, seed=1))
        for x, y in sync.batches(loader): ...

    The indices are a queue that is the same in all ranks: a permutation for each epoch, one behind
    the other. Rank r takes the r-th batch of the queue. With each version all ranks hear who is in
    it; the batches of those ranks are done, and what the others computed on is
    on_late="again": left at the head of the queue, where another rank has it next (the ranks take
    turns), so that every sample is counted once in each epoch, whoever is slow;
    on_late="drop": done as well.
    That holds where a version has gradients that were computed on the version before: bsp, backup,
    ksync, deadline. DataLoader(num_workers=0) only: a batch depends on the version before it.
    state_dict() and load_state_dict() keep its place in a checkpoint."""

    def __init__(self, length: int, batch_size: int, *, seed: int = 0, on_late: str = "drop"):
        if on_late not in ("drop", "again"):
            raise ValueError(f'on_late is {on_late!r}; it is "drop" or "again"')
        if length < 1 or batch_size < 1:
            raise ValueError("a sampler needs at least one sample, and one in a batch")
        self.length, self.batch_size, self.seed, self.on_late = length, batch_size, seed, on_late
        self.rank, self.workers = 0, 1
        self._joined = False
        self._epoch, self._turn = 0, 0
        self._queue: List[Tuple[int, int]] = []  # (epoch, index)
        self._waiting = False
        self.counted: Dict[int, int] = {}  # by rank: samples that are in versions

    def join(self, rank: int, workers: int) -> None:
        self.rank, self.workers, self._joined = rank, workers, True

    def _fill(self) -> None:
        while len(self._queue) < self.workers * self.batch_size:
            order = torch.Generator()
            order.manual_seed(self.seed + self._epoch)
            drawn = torch.randperm(self.length, generator=order).tolist()
            self._queue += [(self._epoch, i) for i in drawn]
            self._epoch += 1

    def _part(self, rank: int) -> slice:
        at = (rank + self._turn) % self.workers * self.batch_size
        return slice(at, at + self.batch_size)

    def batch(self) -> List[Tuple[int, int]]:
        """(epoch, index) of the samples that this rank computes on now."""
        self._fill()
        return self._queue[self._part(self.rank)]

    def version(self, shares: Iterable[Share]) -> None:
        """A version has come. Sync calls it for each, in order."""
        self._fill()
        inside = {share.rank for share in shares}
        left: List[Tuple[int, int]] = []
        for position in range(self.workers):
            rank = (position - self._turn) % self.workers
            part = self._queue[self._part(rank)]
            if rank in inside:
                self.counted[rank] = self.counted.get(rank, 0) + len(part)
            elif self.on_late == "again":
                left += part
        self._queue = left + self._queue[self.workers * self.batch_size:]
        self._turn += 1

    def settled(self) -> None:
        """The step is over. Sync calls it; without a version since, the same batch is next."""
        self._waiting = False

    def __iter__(self) -> Iterator[List[int]]:
        for _ in range(len(self)):
            if self._waiting:
                raise RuntimeError("muster.torch.Sampler was asked for a batch before the step of "
                                   "the last one was over: DataLoader(num_workers=0), and one "
                                   "sync.step() for each batch")
            self._waiting = self._joined
            yield [index for _, index in self.batch()]

    def __len__(self) -> int:
        return max(1, self.length // (self.batch_size * self.workers))

    def state_dict(self) -> Dict[str, Any]:
        return {"epoch": self._epoch, "turn": self._turn, "queue": list(self._queue),
                "counted": dict(self.counted), "length": self.length, "seed": self.seed}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        if (state["length"], state["seed"]) != (self.length, self.seed):
            raise ValueError(f"this state is of {state['length']} samples and seed "
                             f"{state['seed']}; the sampler has {self.length} and {self.seed}")
        self._epoch, self._turn = state["epoch"], state["turn"]
        self._queue, self.counted = list(state["queue"]), dict(state["counted"])
