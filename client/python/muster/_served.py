# SPDX-License-Identifier: MIT
"""A rank of a job whose servers own the parameters."""
from __future__ import annotations

import contextlib
import os
from typing import Iterator, Optional

import torch

from . import _signals, _tensors
from ._layout import Scale
from ._rank import Rank, Round, Step
from ._records import Outcome, Verdict
from ._sampler import Sampler


class Served(Rank):
    """Has the parameters of a model kept by the servers of a job, which run the optimiser.

        served = muster.torch.Served(model)
        for x, y in served.batches(loader):
            model.zero_grad()
            loss(model(x), y).backward()
            served.step(samples=len(x))

    The servers are started with musterd --owner servers, their default, and --optimizer. There is
    no optimiser here, and no memory for its state; scale and clip stand in place of parameter
    groups and of clipping.
    model: as for Sync. copy: parameters are copied from each version; copy=False: they are views
    of the memory that the servers wrote it to, as said below.
    scale(name, parameter): (lr_scale, decay_scale) of a parameter, which the server's rate and its
    weight decay are multiplied by; (1, 0) is one without decay. 0 as lr_scale freezes it.
    clip: the largest norm of this rank's gradient; a longer one counts as if it were shortened.
    wire: "f32", "bf16" or "f16", how gradients travel; parameters travel in f32.
    server, job, rank, join_timeout, wait_timeout: of Worker.

    The parameters of a new job are the lowest rank's, and so are buffers and frozen parameters: the
    constructor waits until all ranks are there, and in a running job for the next version. A rank
    that joins later, or goes on from a checkpoint, takes the newest parameters, and the buffers of
    the start. Buffers go their own way afterwards, as those of BatchNorm do. A parameter that this
    rank did not use counts as a gradient of zeros. Raises TypeError or ValueError in words where a
    model or the policy will not do (local, easgd and downpour are for workers with parameters of
    their own), and the errors of Worker. One thread uses a Served, which must be the one that calls
    backward().

    copy=False saves a copy of the model in each step, and memory for one, and is for models on the
    CPU. The parameters are the job's then, and not this rank's:
    - They may be read alone. The memory cannot be written to, so writing to a parameter ends the
      process (SIGSEGV): no optimiser, no init, no load_state_dict().
    - In step() that memory becomes the servers' again. Until step() has returned, and after it has
      raised Timeout, Ctrl-C or an error that ends the session, every parameter is NaN.
    - Nothing else may read that memory when step() is called: neither p.detach() or p.data, which
      are no copies, nor a graph that no backward() has freed. Else step() raises BufferError, hands
      nothing in, and can be called again once those are dropped.
    - close() copies the parameters into memory of the model's own. A model whose parameters are all
      NaN offers no start, so after SessionLost another Served of it takes those of the job."""

    _owner = "servers"
    _remedy = "another Served of the same model, which takes the newest parameters"
    _place = ("Clipping is Served(model, clip=...); what else is to be done to a gradient is done "
              "to the loss.")

    def __init__(self, model: torch.nn.Module, *, copy: bool = True, scale: Optional[Scale] = None,
                 clip: float = 0.0, wire: str = "f32", server: Optional[str] = None,
                 job: Optional[str] = None, rank: int = -1, join_timeout: float = 60.0,
                 wait_timeout: Optional[float] = None):
        super().__init__(model, wire, [])
        if not copy and not self._device.lends:
            raise ValueError(f"Served(copy=False) makes parameters of memory of the CPU, and the "
                             f"model is on {self._layout.device}: leave copy=False out")
        self._copy = copy
        self._shown: Optional[Outcome] = None  # whose result the parameters are views of
        table = self._layout.table(scale or (lambda name, p: (1.0, 1.0)))
        self._worker = self._open(tensors=table, clip=clip, server=server, job=job, rank=rank,
                                  join_timeout=join_timeout, wait_timeout=wait_timeout)
        self._begin()

    def _compared(self) -> str:
        return ("of muster.torch.Served these are the parameters, their scales, and the buffers, "
                "with their shapes and types")

    def _check_sampler(self, sampler: Sampler) -> None:
        raise ValueError("muster.torch.Sampler has to hear who is in each version, and a rank of a "
                         "job whose servers own passes versions over: use a sampler of PyTorch, "
                         "with another seed in each rank, or Sync(..., sampler=sampler)")

    def _start(self) -> None:
        own = self._layout.start()
        blank = bool(own[:self._layout.trained].isnan().all())
        out = self._worker.start(None if blank else own.numpy())
        self._check_policy(out)
        self._layout.set_rest(_tensors.over(out.result))
        self._take(out)

    def _check_policy(self, out: Outcome) -> None:
        if out.local_steps or out.alpha or out.push_every:
            raise ValueError(f"rank {self.rank}: the policy of job {self._worker.job.name!r} "
                             "(local, easgd or downpour) has workers make steps of their own, "
                             "which muster.torch.Served does not: musterd --policy bsp, backup:N, "
                             "async, or another of gradients")

    def step(self, samples: float = 1.0, part: bool = False) -> Step:
        """Hands this rank's gradient in, and waits until the policy lets it go on, with the newest
        version: the parameters are of it then. samples: how many are in the mean gradient; a
        version is the mean over its samples (musterd --weigh). Under policies that count old
        gradients (async and others) a gradient is of the version that the parameters were of when
        it was computed. A late rank goes on with the newest version: all that it has missed is in
        it. Under kbatchsync and the like the version may be the same as before, and under
        nonblocking:MS,AGE, where part says that this is a micro-batch, whose batch goes on.
        Raises RuntimeError where there was no backward(); NotFinite, which names the tensor, and
        the step may be repeated with another batch; Timeout and Ctrl-C, after which step() called
        again goes on with the same step; errors that end the job, or this session: then it has left
        the job, and another Served takes the newest parameters. Ctrl-C never leaves parameters of
        two versions, unless it comes twice.
        Gradients have been handed over when backward() is over; one that was changed since is
        refused (RuntimeError), for that would have no effect: see clip. They stay as they are, so
        zero them before the next backward(). After an error that does not end the session the loop
        may go on with the next batch: what was not handed in is given up then, as by abandon()."""
        if self.finished:
            self._after.step(self.rank, self.version)
            return Step(Verdict.NONE, self.version, 0, ())
        return self._step(samples, part)

    def _push(self, samples: float, part: bool) -> None:
        with self._hidden():
            super()._push(samples, part)

    def _next(self) -> Outcome:
        with self._hidden():
            return self._worker.wait()

    def _settle(self, this: Round, out: Outcome) -> None:
        try:
            self._check_policy(out)
        except ValueError as e:
            self._why_closed = str(e)
            self._leave()
            raise
        if out.result is not None and (
                out.fresh or out.version != self.version or not self._copy):
            with _signals.not_in_the_middle():
                # where a server was lost, versions have gone down first, to that of a checkpoint
                this.versions += max(0, out.version - (self.version - out.withdrawn))
                self._take(out)

    # ---- parameters ----

    def _take(self, out: Outcome) -> None:
        assert out.result is not None
        if self._copy:
            self._device.bring(self._layout.parameters(_tensors.over(out.result)))
        else:
            self._show(out)
        self.version = out.version

    def _show(self, out: Outcome) -> None:
        self._shown = out
        with torch.inference_mode(False):  # parameters made within it could not be trained
            vector = _tensors.lent(out.result)
            for _, p in self._layout.params:
                p.data = self._layout.part(vector, p)

    @contextlib.contextmanager
    def _hidden(self) -> Iterator[None]:
        """Makes a call in which the memory of the result becomes the servers': no parameter is a
        view of it then."""
        out = self._shown
        if out is not None:
            nothing = torch.full((), float("nan"), dtype=torch.float32, device="cpu")
            for _, p in self._layout.params:
                p.data = nothing.expand(p.shape)
        try:
            yield
        except BufferError as e:
            if out is not None:
                self._show(out)
            raise BufferError("Served(copy=False): something still reads the parameters of version "
                              f"{self.version}, such as p.detach(), or a graph that no backward() "
                              "has freed: copy what is to be kept, and drop the rest") from e
        self._shown = None

    def close(self) -> None:
        """Leaves the job, and takes the hooks off the model, which then is as it was before; with
        copy=False, its parameters get memory of their own. Raises BufferError where something else
        reads the memory that they were views of: drop it, and call close() again."""
        if not self._copy and os.getpid() == self._worker.pid:  # a child may not have that memory
            for _, p in self._layout.params:
                p.data = p.data.clone(memory_format=torch.contiguous_format)
        super().close()
