# SPDX-License-Identifier: MIT
"""A rank of a job whose workers own the parameters."""
from __future__ import annotations

import contextlib
import errno
import inspect
import os
import secrets
import time
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from . import _claim, _compare, _function, _signals, _state, _tensors
from ._alike import Alike
from ._rank import Rank, Round, Step
from ._records import Agreement, Difference, Outcome, Part, Verdict
from ._sampler import Sampler
from ._watch import Watch, names_of, warn_of_two_momenta
from .worker import Busy, Error, Stale


def _said(e: Exception) -> str:
    """What has gone wrong with a state. ValueError and TypeError of this package are sentences; the
    text of what a program raises may be a name alone, as that of KeyError is."""
    return str(e) if type(e) in (ValueError, TypeError) else f"{type(e).__name__}: {e}"


class Diverged(RuntimeError):
    """This rank has had another state than most others after the same version, or than the other
    one of two."""


_MODES = ("raise", "warn", "take")
_TRIES, _NAP_S = 500, 0.002


def _must_step_alone(opt: torch.optim.Optimizer) -> None:
    """ValueError, in words: one that makes gradients itself, several times, such as LBFGS."""
    try:
        inspect.signature(type(opt).step).bind(opt)
    except TypeError:
        raise ValueError(f"step() of {type(opt).__name__} takes a closure that makes gradients "
                         "anew, and here each version has one gradient, the mean of all ranks: "
                         "give Sync(model, opt, step=function), which calls it as it may be, or "
                         "take another optimiser") from None


class Sync(Rank):
    """Keeps the parameters of all ranks of a job the same, from a common start on.

    model: a Module, or a DistributedDataParallel one over a process group of one (alone()). Its
    trainable parameters are f32; buffers and frozen parameters may have any type that NumPy has,
    and bfloat16. All of it is on the CPU, or on one GPU of CUDA, which no test has tried.
    opt: the optimiser. step: what applies one version, with every gradient set to the version's
    mean; opt.step by default. It clips, schedules and calls opt.step() itself, and is called for
    every version in order, in a late rank several times in one sync.step(). What it does must
    depend on the gradients and on earlier calls alone, for then all ranks stay the same. opt.step()
    is called there alone; elsewhere it is refused, as are parameter groups that were changed
    elsewhere, and step() of other optimisers that have one of these parameters. One that is made
    later takes part in versions only where they are applied.
    scheduler: one whose place belongs to the state, such as step() moves. sampler: a Sampler, such
    as loader.batch_sampler.
    state: (get, set) in place of all that is named above but the sampler: get() returns what a rank
    needs to apply the next version, a tree of tensors, numbers, strings, bytes, lists, tuples and
    dicts, and set(tree) makes it so.
    wire: "f32", "bf16" or "f16", how gradients travel. lr_scale: multiply the learning rate of each
    opt.step() by the version's orders.lr_scale (musterd --lr-scale); else it is the user's.
    differ: what in parameter groups this rank has of its own, such as ("lr",): it may be changed at
    any time, and is kept where this rank takes the state of another. As its parameters are others
    then, this rank is not compared while it trains, unless on_difference is given.
    on_difference: what is done in a rank whose parameters, groups, rates or place of the scheduler
    differ from those of most other ranks after the same version. "raise": step() raises Diverged,
    and this rank has left the job; of two ranks that differ both do. "warn": it warns, once.
    "take": this rank takes the state of another. Without it: "raise", but "warn" where ranks
    compute with other kernels, so that last bits may differ; "raise" refuses to begin with such
    ranks.
    A rank in whose first versions all gradients are the same warns: ranks compute on the same
    batches then.
    server, job, rank, join_timeout, wait_timeout: of Worker.

    All ranks begin with the lowest rank's parameters and buffers, frozen ones included: the
    constructor waits until all ranks are there, for join_timeout seconds at most. Then it raises
    Timeout, and this rank has left the job: make another Sync. In the first forward() or step()
    ranks compare their whole states. Where they differ, all take that of one rank: of the newest
    version, and of several the lowest rank. Buffers go their own way afterwards,
    as those of BatchNorm do. A parameter that this rank did not use counts as a gradient of zeros.
    In a job that is running, the constructor takes the state of another rank instead: so a rank
    that was killed comes back when it is started again. So does one that has fallen behind the
    versions that the servers keep, in step(), as often as it has to; if the job has ended by then,
    it stays at its version, with a warning, and complete is False. Any rank gives its state in
    step(), where it calls get() and copies the bytes; if that fails, it warns, and another rank is
    asked.
    Raises TypeError or ValueError in words where a model will not do, and the errors of Worker. One
    thread uses a Sync, which must be the one that calls backward()."""

    _owner = "workers"
    _remedy = "another Sync of the same model and optimiser, which takes the state of another rank"
    _place = ("Clipping, unscaling and dividing belong into the function that Sync calls for each "
              "version, before opt.step(): Sync(model, opt, step=function). There all ranks do the "
              "same, to the mean. What is this rank's alone is done to its loss.")

    def __init__(self, model: torch.nn.Module, opt: torch.optim.Optimizer,
                 step: Optional[Callable[[], Any]] = None, *, scheduler: Optional[Any] = None,
                 sampler: Any = None,
                 state: Optional[Tuple[Callable[[], Any], Callable[[Any], Any]]] = None,
                 wire: str = "f32", lr_scale: bool = False, differ: Sequence[str] = (),
                 on_difference: Optional[str] = None, server: Optional[str] = None,
                 job: Optional[str] = None, rank: int = -1, join_timeout: float = 60.0,
                 wait_timeout: Optional[float] = None):
        if sampler is not None and not isinstance(sampler, Sampler):
            raise TypeError(f"sampler is a {type(sampler).__name__}; it has to be a "
                            "muster.torch.Sampler, for all ranks have to know what it gives each. "
                            "A sampler of PyTorch is given to the DataLoader alone")
        if on_difference is not None and on_difference not in _MODES:
            raise ValueError(f"on_difference is {on_difference!r}; it is one of "
                             f"{', '.join(_MODES)}")
        super().__init__(model, wire, [] if sampler is None else [repr(sampler)])
        if step is not None and not callable(step):
            raise TypeError(f"step is a {type(step).__name__}: it is the function that applies a "
                            "version, and calls opt.step(); a scheduler is given by its name, "
                            "Sync(model, opt, step=function, scheduler=schedule)")
        self._opt = opt
        self._check_optimizer()
        names_of(opt, differ)
        self._apply = step or (lambda: opt.step())
        if step is None:
            _must_step_alone(opt)
        self._sampler = sampler
        whole = _state.Whole(self._bare, opt, scheduler)
        self._get: Callable[[], Any] = state[0] if state else whole.get
        self._set: Callable[[Any], Any] = state[1] if state else whole.set
        self._check = whole.check if state is None else lambda _: None
        if state is None:
            _state.look_at(whole.get())  # else a mistake would show when the first rank comes back
        self._torn: Optional[int] = None  # the version that was not applied whole
        self._stepped = self._came_back = False
        self._taken: Optional[Tuple[int, bytes]] = None  # a state that is to be set
        self._agreed = False  # all ranks are known to begin with the same state
        self._before = _claim.version_of(self._bare)  # versions that this state has from other jobs
        self._parts: Callable[[], List[Part]] = (
            (lambda: _claim.of_tree(self._get())) if state
            else lambda: _claim.of_whole(whole, names_of(opt, differ)))
        self._rates = lambda: _claim.of_place(opt, whole, names_of(opt, differ))
        self._blocks = _compare.Blocks(self._layout)
        self._asked, self._mode = on_difference, on_difference or "raise"
        self._compares = not differ or on_difference is not None
        # Looks once at what the function uses, where the state is not the program's own.
        self._unseen: Optional[Callable[[], None]] = None if state or step is None else (
            lambda: _function.warn(step, self._bare, scheduler, self.rank))
        self._states = 0  # that were set, one after the other, since a version was applied
        self._worker = self._open(tensors=self._layout.table(), comes_back=True, server=server,
                                  job=job, rank=rank, join_timeout=join_timeout,
                                  wait_timeout=wait_timeout, start_version=self._before)
        warn_of_two_momenta(opt, self._worker.job.policy, self.rank, self.workers)
        self._scales = lr_scale
        self._alike = Alike(self._layout, self._wire)
        place = self._layout.place
        self._watch = Watch(opt, differ, scheduler, lambda p: id(p) in place, state is None)
        self._begin()

    def _compared(self) -> str:
        ours = "none" if self._sampler is None else repr(self._sampler)
        return ("of muster.torch.Sync these are the parameters and the buffers, with their shapes "
                "and types, and the sampler, here " + ours)

    def _check_optimizer(self) -> None:
        if isinstance(self._opt, type) or not hasattr(self._opt, "param_groups"):
            what = (f"the class {self._opt.__name__}" if isinstance(self._opt, type)
                    else f"a {type(self._opt).__name__}")
            raise TypeError(f"opt is {what}: an optimiser is wanted, such as torch.optim.SGD("
                            "model.parameters(), lr=0.1); several are for the function that "
                            "applies versions, Sync(model, opt, step=function, state=(get, set))")
        known = {id(p) for _, p in self._layout.params}
        for group in self._opt.param_groups:
            for p in group["params"]:
                if p.requires_grad and id(p) not in known:
                    raise ValueError("the optimiser has a parameter that the model does not have: "
                                     "make the optimiser from model.parameters()")

    def _must_train_the_same(self) -> None:
        """As when it was made; else the optimiser would move a parameter by what is a gradient of
        this rank alone. It is called in each step, and costs as little as a look at each."""
        super()._must_train_the_same()
        what = ""
        for name, p in self._layout.frozen:
            if p.requires_grad:
                what = f"{name} was frozen when this Sync was made, and requires a gradient now"
        known = self._layout.place
        for group in self._opt.param_groups:
            for p in group["params"]:
                if id(p) not in known and p.requires_grad and not what:
                    names = [n for n, q in self._bare.named_parameters() if q is p]
                    what = f"{names[0] if names else ''} of the optimiser was not there when this "\
                           "Sync was made"
        if what:
            raise ValueError(f"rank {self.rank}: parameter {what}, so each rank would have another "
                             "one: what is ever to be trained requires a gradient, and is in the "
                             "model, before Sync is made, and may be frozen afterwards")
        self._watch.must_be_as_seen(self.rank, self.version)

    def _start(self) -> None:
        if self._sampler is not None:
            self._sampler.join(self.rank, self.workers)
        try:
            out = self._worker.start(self._layout.start().numpy())
        except Stale:
            self._come_back()
            self._agreed = False  # of its kernels the others know nothing
            return
        self.version = out.version
        if out.result is not None:
            first = _tensors.over(out.result)
            self._device.bring(self._layout.parameters(first))
            self._layout.set_rest(first)

    def _agree(self) -> None:
        """Before the first forward() of a job, or the first step(): all ranks begin with the same
        state, whatever each has set since this Sync was made. Afterwards it does nothing."""
        if self._agreed or self.finished or self._closed:
            return
        parts = _claim.of_kernels(self._layout.device)
        if not self._came_back:  # else it has the state of another
            parts += self._parts()
            if self._sampler is not None:
                parts.append(_claim.of_sampler(self._sampler.state_dict()))
        try:
            out = self._worker.agree(parts, self._packed_state, self._before)
        except Error as e:
            if e.errno != errno.ESHUTDOWN:
                raise
            self._agreed = True
            if not self._came_back:
                self._ended_before(str(e))
            return
        self._before = out.version
        if out.state is not None:
            self._take_agreed(out)
        self._agreed = True
        _claim.is_of(self._bare, self._before + self.version)
        if out.kernels_differ:
            self._kernels_differ(out.why)

    def _kernels_differ(self, why: str) -> None:
        words = (f"rank {self.rank}: ranks compute with other kernels, so that their parameters "
                 f"may come to differ in the last bits: {why or 'the log of muster names them'}; "
                 "give all the same release of torch, and the same ATEN_CPU_CAPABILITY and "
                 "OMP_NUM_THREADS")
        if self._asked == "raise":
            self._why_closed = f'on_difference="raise", and {words}'
            self._leave()
            raise Diverged(self._why_closed)
        if self._asked is None:
            self._mode = "warn"
        warnings.warn(words, RuntimeWarning, stacklevel=5)

    def _ended_before(self, why: str) -> None:
        """The others have made all versions, from a state that this rank has not."""
        self.finished, self.complete = True, False
        warnings.warn(f"{why}; it keeps its own state, which is of no version of the job, and "
                      "complete is False here", RuntimeWarning, stacklevel=4)

    def _take_agreed(self, out: Agreement) -> None:
        try:
            self._set_state(self._read_state(out.state), self.version)
        except Exception as e:
            self._why_closed = (f"the state of rank {out.source}, which all begin with, could not "
                                f"be set: {_said(e)}")
            self._leave()
            raise RuntimeError(f"rank {self.rank} cannot begin with the state of rank "
                               f"{out.source} ({out.why}): {_said(e)}") from e

    def _begun(self) -> None:
        if self._worker.is_mine():  # a worker of a DataLoader may run the model, too
            self._agree()
        super()._begun()

    def _check_sampler(self, sampler: Sampler) -> None:
        if sampler is not self._sampler:
            raise ValueError("the loader's sampler must be the one of Sync(..., sampler=sampler), "
                             "so that all ranks are known to have the same")

    # ---- versions come in ----

    def _set_gradients(self, out: Outcome) -> None:
        assert out.result is not None
        self._device.bring(self._layout.gradients(_tensors.over(out.result)))

    def step(self, samples: float = 1.0, part: bool = False) -> Step:
        """In place of opt.step(): hands this rank's gradient in, waits until the policy lets it go
        on, and applies each version since, in order. samples: how many are in the mean gradient; a
        version is the mean over its samples (musterd --weigh). part: this is a micro-batch, whose
        batch goes on in the next step(): under nonblocking:MS,AGE no rank waits for another, and
        there may be no version yet.
        Afterwards parameters are of the version that is returned, and gradients hold its mean. That
        is the newest, but in a rank that applies versions no faster than others make them: there
        step() returns when it has applied eight times as many as there were when it began, 64 at
        least. The gradient that comes next is late then, and the step() after it goes on.
        Raises RuntimeError where there was no backward(); ValueError where a parameter would be
        trained that was frozen, or not in the model, when this Sync was made; NotFinite, which
        names the tensor, and the step may be repeated with another batch (a Sampler gives the same
        one again, as all ranks know whose it is); Timeout and Ctrl-C, after which step() called
        again goes on with the same step; errors that end the job; SessionLost after close(), which
        says why this rank has left. Ctrl-C never leaves a version
        that is applied in part: it is raised when step has been called, or, if it comes twice, this
        Sync is of no use any more, as when step or set has raised an error, or the session is lost:
        it leaves the job, and another one, made anew, takes the state of another rank.
        Gradients have been handed over when backward() is over; one that was changed since is
        refused (RuntimeError), for that would have no effect. That of a parameter which the last
        backward() did not reach, or a backward() in no_sync() alone, is read here.
        After an error that does not end the session the loop may go on with the next batch: what
        was not handed in is given up then, as by abandon()."""
        if self.finished:
            self._after.step(self.rank, self.version)
            return Step(Verdict.NONE, self.version, 0, ())
        self._must_be_whole()
        self._agree()
        self._stepped = True
        done = self._step(samples, part)
        self._watch.refuses = not self.finished
        self._alike.warn(self.rank)
        return done

    def _next(self) -> Outcome:
        while True:
            try:
                if self._taken is not None:  # Ctrl-C came before it was set
                    self._come_back()
                return self._worker.wait()
            except Stale:
                self._come_back()

    def _settle(self, this: Round, out: Outcome) -> None:
        """A second time it does nothing."""
        if out.fresh and out.result is not None and out.version != self.version:
            with self._becomes(out.version):
                self._alike.look(out, this.given, self.rank)
                self._set_gradients(out)
                if self._scales:
                    self._watch.scale = out.lr_scale
                if self._sampler is not None:
                    self._sampler.version(out.set, out.workers)
                with self._watch.applies():
                    self._apply()
                self._watch.look()
                this.versions += 1
                self._states = 0
                self._counted.add(out.set, self.rank)
            if _compare.is_due(self.version):
                with contextlib.suppress(Busy):  # there will be other versions
                    self._say_what_it_has(_compare.block_of(self.version))
            if self._unseen is not None:  # here a warning that is an error tears no version
                seen, self._unseen = self._unseen, None
                seen()
        if self._sampler is not None:
            self._sampler.deal(self.workers)
        self._offer_state()
        found = self._worker.difference()
        if found is not None:
            self._differs(found, out.finished)

    @contextlib.contextmanager
    def _becomes(self, version: int) -> Iterator[None]:
        """What is done here makes the parameters those of the version. If it fails, they are of
        none, and nobody is to wait for this rank."""
        with _signals.not_in_the_middle():
            self._torn = version
            try:
                yield
            except BaseException:
                self._leave()
                raise
            self.version, self._torn = version, None
            _claim.is_of(self._bare, self._before + version)

    # ---- what other ranks have ----

    def _say_what_it_has(self, *blocks: int, last: bool = False) -> None:
        """After this version. Raises Busy where the connection takes no message now."""
        if not self._compares:
            return
        takes = self._mode == "take"
        self._worker.compare(self._rates(), takes=takes, last=last)
        for number in blocks:
            mine = self._blocks.digests(number)
            self._worker.compare((), mine.values, first=mine.first, each=mine.each,
                                 section=mine.section, takes=takes, last=last)

    def _say_at_the_end(self) -> None:
        """There will be no other version, so a connection that is busy is tried for a while."""
        for _ in range(_TRIES):
            with contextlib.suppress(Busy):
                self._say_what_it_has(*range(_compare.BLOCKS), last=self._mode != "warn")
                return
            time.sleep(_NAP_S)

    def _differs(self, found: Difference, finished: bool) -> None:
        words = (f"rank {self.rank} has another state after version {found.version} than rank "
                 f"{found.source}: {found.why}. Whatever changes parameters, rates or groups "
                 "belongs into the function that Sync calls for each version, "
                 "Sync(model, opt, step=function), where all ranks do the same; weights are loaded "
                 "before the first forward() of a job, or after its end; what a step depends on, "
                 "such as a scheduler, is in the state, Sync(..., scheduler=schedule)")
        mode = "warn" if found.kernels_differ and self._asked is None else self._mode
        if mode == "raise":
            self._why_closed = words
            self._leave()
            raise Diverged(f"{words}. This rank has left the job; another Sync, made anew, takes "
                           'the state of another rank. on_difference="take" does that at once, '
                           'and "warn" goes on as it is')
        what = ("The job has ended" if finished else
                "It takes the state of another rank" if mode == "take" else
                "It goes on as it is, and this is not said again")
        warnings.warn(f"{words}. {what}", RuntimeWarning, stacklevel=6)

    def _ended(self, out: Outcome) -> None:
        super()._ended(out)
        if self.complete:
            with contextlib.suppress(Error):  # the server may be gone by now
                self._say_at_the_end()

    def _must_be_whole(self) -> None:
        if self._watch.applying:
            raise RuntimeError(f"rank {self.rank}: this was called in the function that applies a "
                               "version, in which the parameters are of none: call it in the loop, "
                               "after sync.step()")
        if self._torn is not None:
            raise RuntimeError(f"rank {self.rank}: version {self._torn} was applied in part, as an "
                               "error or Ctrl-C came meanwhile, so the parameters are of no "
                               "version: make another Sync, which takes the state of another rank")

    # ---- states ----

    def _packed_state(self) -> bytearray:
        sampler = None if self._sampler is None else self._sampler.state_dict()
        return _state.encode({"version": self.version, "before": self._before,
                              "state": self._get(), "sampler": sampler})

    def _read_state(self, raw: Any) -> Dict[str, Any]:
        read = _state.decode(raw)
        if not isinstance(read, dict) or set(read) != {"version", "before", "state", "sampler"}:
            raise ValueError("these bytes are a state, but not one that a Sync has made")
        if (read["sampler"] is None) != (self._sampler is None):
            raise ValueError("it is of a job with a sampler, and here is none" if read["sampler"]
                             else f"it is of a job without a sampler, and here is {self._sampler}")
        if self._sampler is not None:
            self._sampler.check_state(read["sampler"])
        self._check(read["state"])
        return read

    def _set_state(self, read: Dict[str, Any], version: int) -> None:
        self._before = int(read["before"])
        with self._becomes(version):
            if self._sampler is not None:
                self._sampler.load_state_dict(read["sampler"])
                self._sampler.deal(self.workers)
            own = self._watch.own()
            self._set(read["state"])
            self._watch.keep(own)
            if self._stepped:
                self._watch.look()

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
                          f"another is asked: {_said(e)}", RuntimeWarning, stacklevel=3)
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
            except Stale as e:  # the session is over
                self._why_closed = str(e)
                if "gave none" in self._why_closed:
                    self._why_closed += ("; a rank gives none where making its state fails, of "
                                         "which it warns, or where that is larger than musterd "
                                         "--state-max, which muster status shows")
                elif "no other worker is in the job" in self._why_closed:
                    self._goes_on = ""
                self._leave()
                raise Stale(e.errno, self._why_closed) from e
            except Error as e:
                if e.errno != errno.ESHUTDOWN:
                    raise
                return  # the job has ended, and wait() says with which version
        version, raw = self._taken
        try:
            self._set_state(self._read_state(raw), version)
        except Exception as e:
            self._why_closed = f"the state of another rank could not be set: {_said(e)}"
            self._leave()
            raise RuntimeError(f"rank {self.rank} cannot go on with the state of another rank, of "
                               f"version {version}: {_said(e)}") from e
        self._taken, self._came_back, self._agreed = None, True, True
        self._states += 1
        if self._states > 1 and self._states & (self._states - 1) == 0:  # 2, 4, 8
            warnings.warn(f"rank {self.rank} has taken the states of other ranks {self._states} "
                          f"times in a row, the last of version {version}: the job makes versions "
                          "faster than this rank takes a state (musterd --catch-up, --history)",
                          RuntimeWarning, stacklevel=3)

    def save(self, path: Any) -> None:
        """Writes the state of this version to a file, which is there whole or not at all, also if
        another rank writes the same one. Between two steps, in any rank. Warns where the job has
        ended, and this rank has not the last version (complete is False), and after finish() until
        step() has brought it."""
        self._must_be_whole()
        if self._finishing and not self.finished:
            warnings.warn(f"rank {self.rank} saves version {self.version} after finish(), and this "
                          "may not be the last of the job: the step() that follows brings that. "
                          "Stay in the loop, which ends by itself, and save then",
                          RuntimeWarning, stacklevel=2)
        if self.finished and not self.complete:
            last = f", which is {self._last}" if self._last else ""
            warnings.warn(f"rank {self.rank} saves version {self.version}, and this is not the "
                          f"last of the job{last}: a rank whose complete is True has that",
                          RuntimeWarning, stacklevel=2)
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
        Before the first forward() of a job, which compares what ranks have: one rank will do, as
        the others take its state, and where they load different files, all take the newest. The
        versions of the job begin anew. A rank that has come back into a running job has a newer
        state, which it keeps: then load() does nothing, and returns None.
        Raises ValueError, in words, where the file is no state, has been cut short or is of another
        model; nothing has been set then."""
        self._must_be_whole()
        if self._came_back:
            return None
        if self._stepped or self._agreed:
            raise RuntimeError("load() comes before the first step() of a job, and its first "
                               "forward()")
        with open(path, "rb") as f:
            raw = f.read()
        try:
            read = self._read_state(raw)
        except ValueError as e:
            raise ValueError(f"{os.fspath(path)} cannot be loaded: {e}") from e
        version = int(read["version"])
        read["before"] = int(read["before"]) + version - self.version
        self._set_state(read, self.version)
        return version

    def close(self) -> None:
        """Leaves the job, and takes the hooks off the model and the wrapper off opt.step, which
        then are as they were before. Dropping a Sync does the same."""
        if hasattr(self, "_watch"):
            self._watch.remove()
        super().close()
