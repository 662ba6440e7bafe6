#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ranks of muster.torch that come back with the state of another, files of states, and Ctrl-C at
any moment. At each version, all ranks that have it have the same bits.

usage: torch_back.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_back.py --list
"""
import contextlib
import errno
import glob
import os
import pickle
import random
import signal
import warnings
import zlib
from collections import Counter, OrderedDict, defaultdict, namedtuple

from base import HANG_S, check, main, must, until
from torch_case import Ranks, prepare, refused, together
from torch_training import (BATCH, FAR, Training, is_alike, lines, network, newest, reaches)


def anew_in_one_process(a):
    """Ranks leave the job, train on alone, and come back with another Sync of the same model. Of
    the Sync before nothing is left in model, optimiser and sampler."""
    prepare(a)

    def work(rank, ranks):
        import torch
        training = Training(rank, ranks, ddp=rank == 2, lr_scale=True)
        if rank > 0:
            for _ in range(3):
                training.step()
            next(iter(training.sampler))
            training.sync.close()
            for _ in range(2):
                training.model(torch.ones(BATCH, 6)).sum().backward()
            training.opt.step()
            training.joins()
        return training.run()

    with Ranks(a, 3, work, "--policy", "backup:2", *FAR) as ranks:
        for rank in (1, 2):
            must(until(lambda r=rank: len(glob.glob(ranks.path(f"log.{r}.*"))) == 2, HANG_S),
                 f"rank {rank} does not come back")
            reaches(ranks, rank, newest(ranks, 0) + 3)
        is_alike(ranks)


def ctrl_c_at_the_next(owner, name, after=False):
    """Ctrl-C comes the next time that this is called, before it or when it has been done."""
    real = getattr(owner, name)

    def called(*arguments, **named):
        setattr(owner, name, real)
        if after:
            real(*arguments, **named)
        raise KeyboardInterrupt

    setattr(owner, name, called)


def frozen_for_longer_than_the_history(a):
    """And is interrupted, when it comes back, before it has set the state that it has taken."""
    prepare(a)

    def work(rank, ranks):
        training = Training(rank, ranks)
        if rank == 2:
            ctrl_c_at_the_next(training.sync, "_read_state")
        return training.run()

    with Ranks(a, 3, work, "--policy", "backup:2", *FAR) as ranks:
        reaches(ranks, 2, 2)
        os.kill(ranks.pids[2], signal.SIGSTOP)
        reaches(ranks, 0, newest(ranks, 0) + 10)
        os.kill(ranks.pids[2], signal.SIGCONT)
        reaches(ranks, 2, newest(ranks, 0) + 2)
        told = [int(version) for version, _ in lines(ranks, 2)]
        check("it has come back", any(b > a + 1 for a, b in zip(told, told[1:])))
        is_alike(ranks)


def behind_when_the_job_ends(a):
    """A rank that is further back than the history hears of the end without an error, also where it
    waits for a state that nobody gives. It stays at its version, says so, and can save it; the
    others have the last one."""
    prepare(a)

    def work(rank, ranks, asks_before):
        training = Training(rank, ranks)
        sync, take = training.sync, training.sync.worker.take_state
        if rank != 2:
            if asks_before:
                sync._offer_state = lambda: None
            done = training.run()
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)  # it has the last version
                sync.save(ranks.path(f"state.{rank}"))
            return done, sync.complete, sync.version

        def takes():
            ranks.tell("takes")
            return take()

        while sync.version < 2:
            training.step()
        sync.worker.take_state = takes
        ranks.tell("waits")
        ranks.hear("goes on")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            training.step()
            must(sync.finished and training.run() is None, "it has not ended")
            sync.save(ranks.path("state"))
        return [str(w.message) for w in said], sync.complete, sync.version

    for asks_before in (False, True):
        with Ranks(a, 3, lambda rank, ranks, before=asks_before: work(rank, ranks, before),
                   "--policy", "backup:2", *FAR) as ranks:
            ranks.hear("waits")
            reaches(ranks, 0, newest(ranks, 2) + 10)
            if asks_before:
                ranks.tell("goes on")
                ranks.hear("takes")
            ranks.tell("enough")
            ends = [ranks.end(rank) for rank in (0, 1)]
            ranks.tell("goes on")
            said, complete, version = ranks.end(2)
            must(os.path.exists(ranks.path("takes")) == asks_before, "it has asked for a state")
            saves = [one for one in said if f"saves version {version}, and this is not" in one]
            check(f"it saves that one: {saves}", len(saves) == 1 and f"which is {ends[0][2]}: a "
                  "rank whose complete is True" in saves[0])
            said = [one for one in said if "complete is False" in one]
            last = ends[0][2]
            check(f"it has version {version} of {last}: {said}", not complete and version < last
                  and len(said) == 1 and f"has ended with version {last}, and its server no longer "
                  f"had the versions after {version}" in said[0])
            check("the others have it", [end[1:] for end in ends] == [(True, last)] * 2)
            must(os.path.getsize(ranks.path("state")) > 0, "there is no state")


def outrun_again_and_again(a):
    """A rank whose state is too old each time that it has taken one says so, more and more rarely,
    and goes on."""
    prepare(a)

    def work(rank, ranks):
        training = Training(rank, ranks)
        training.step()
        sync, raw = training.sync, bytes(training.sync._packed_state())
        sync.worker.take_state = lambda: (sync.version, raw)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for states in (3, 1, 5):
                for _ in range(states):
                    sync._come_back()
                training.step()
        del sync.worker.take_state
        training.step()
        return [str(w.message) for w in said if "times in a row" in str(w.message)]

    with Ranks(a, 1, work) as ranks:
        [said] = ranks.ends()
    check(f"{said}", len(said) == 3 and all(
        f"the states of other ranks {times} times in a row" in one
        for times, one in zip((2, 2, 4), said)))


def states_that_are_refused(a):
    """In words; the job goes on, and a rank with the right state comes back after that."""
    prepare(a)
    import muster.torch
    from muster import _state

    def fails(tree):
        raise KeyError("layer7")

    def newcomer(kind, *words, **options):
        def work(rank, ranks):
            refused(kind, lambda: Training(rank, ranks, **options), *words)
        return work

    def donor(rank, ranks):
        """Cannot give one twice; that is no error of its own."""
        training, failures = Training(rank, ranks), [OSError("no room"), object()]
        if rank == 0:
            get = training.sync._get

            def gets():
                made = failures.pop() if failures else get()
                if isinstance(made, Exception):
                    raise made
                return made

            training.sync._get = gets
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            training.run()
        said = [str(w.message) for w in told if "cannot give its state" in str(w.message)]
        return said

    with Ranks(a, 2, donor, *FAR) as ranks:
        reaches(ranks, 1, 1)
        ranks.killed(1, signal.SIGKILL)
        reaches(ranks, 0, newest(ranks, 0) + 4)
        # Each of them asks rank 0, the only one that is left: it has no state for the first two.
        for work in (newcomer(muster.Stale, "no other worker"),
                     newcomer(muster.Stale, "no other worker"),
                     newcomer(RuntimeError, "optimiser", "AdamW", "SGD", optimizer="SGD"),
                     newcomer(RuntimeError, "KeyError: 'layer7'", state=(lambda: {}, fails))):
            ranks.again(1, work)
            ranks.end(1)
            reaches(ranks, 0, newest(ranks, 0) + 4)
        ranks.again(1, lambda rank, ranks: Training(rank, ranks).run())
        reaches(ranks, 1, newest(ranks, 0) + 5)
        ranks.tell("enough")
        said = ranks.ends()[0]
        check(f"the donor is told: {said}", len(said) == 2 and "no room" in said[1]
              and "the object at state['state']" in said[0])

    with Ranks(a, 2, lambda rank, ranks: Training(rank, ranks).run(), "--state-max", "1000",
               *FAR) as ranks:
        reaches(ranks, 1, 1)
        ranks.killed(1, signal.SIGKILL)
        reaches(ranks, 0, newest(ranks, 0) + 4)
        ranks.again(1, newcomer(muster.Stale, "no other worker", "--state-max"))
        ranks.end(1)
        reaches(ranks, 0, newest(ranks, 0) + 4)
        ranks.tell("enough")
        ranks.end(0)

    whole = _state.encode({"a": [1, (2.5, None)]})
    forged = bytearray(whole)
    forged[-2] ^= 1
    for bytes_, words in ((pickle.dumps(1), "no state"), (whole[:-1], "cut short"),
                          (forged, "checksum")):
        refused(ValueError, lambda: _state.decode(bytes_), words)


def trees(a):
    """What goes in comes out; what is read is never run, and no bytes do worse than ValueError."""
    prepare(a)
    import json
    import torch
    from muster import _state as s
    tree = {"t": torch.randn(3, 4).t(), 3: [torch.tensor(7), torch.empty(0, 2)], None: (1, -0.0),
            "h": torch.randn(2).bfloat16(), "c": torch.randn(2, dtype=torch.cfloat), "b": b"\0x",
            "m": torch.tensor([True, False])}
    back = s.decode(s.encode(tree))
    check("a tree comes back", list(back) == list(tree) and back[None] == (1, -0.0)
          and back["b"] == b"\0x" and all(torch.equal(back[k], tree[k]) for k in "thcm")
          and torch.equal(back[3][0], tree[3][0]) and back[3][1].shape == (0, 2))

    def forge(row):
        tree = row if isinstance(row, bytes) else json.dumps(row).encode()
        return s._HEAD.pack(s._MAGIC, zlib.crc32(tree + b"12345678"), len(tree), 8) + tree + (
            b"12345678")

    must(s.decode(forge(["tensor", "int8", [8], 0, 8])).tolist() == list(b"12345678"), "a forgery")
    for row in (["tensor", "float32", [2 ** 40], 0, 0], ["tensor", "float32", [-1, -2], 0, 8],
                ["tensor", "float32", [2], 4, 8], ["tensor", "Storage", [2], 0, 8], ["eval", "1"],
                ["list", ["bytes", 0, 8], ["bytes", 0, 8]], ["bytes", 0, 4],
                [], ["list", []], ["bytes", -4, 2], ["bytes", "0", 2], ["dict", [1]],
                ["dict", [["list"], 1]], b"[" * 100000, b"\xff", b"", ["tensor"]):
        refused(ValueError, lambda: s.decode(forge(row)), "cannot be read")
    refused(TypeError, lambda: s.encode({"a": [{1}]}), "set at state['a'][0]")
    for exact in (Counter({3: 2, 5: 1}), OrderedDict([("b", 1), ("a", Counter())]), {}, [], ()):
        same = s.decode(s.encode(exact))
        must(same == exact and type(same) is type(exact), (exact, same))
    refused(TypeError, lambda: s.encode([defaultdict(int)]), "defaultdict at state[0]")
    refused(TypeError, lambda: s.encode([namedtuple("Pair", "a b")(1, 2)]), "Pair at state[0]")
    import muster.torch
    model = network(torch)
    opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    cycle = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=9)
    s.look_at(s.Whole(model, opt, cycle).get())
    cycle.odd = {1}
    refused(TypeError, lambda: muster.torch.Sync(model, opt, scheduler=cycle), "set at state")


def whole_models(a):
    """A state has all of a model: buffers that are not persistent, that have grown or were not
    there at first, and the milestones of a MultiStepLR, which count."""
    prepare(a)
    import torch
    from muster import _state as s

    class Model(torch.nn.Module):
        def __init__(self, seed):
            torch.manual_seed(seed)
            super().__init__()
            self.part = network(torch)
            self.register_buffer("history", torch.randn(seed))
            self.register_buffer("apart", torch.randn(seed, 2), persistent=False)
            self.part[0].register_buffer("cache", None)

    def made(seed):
        model = Model(seed)
        opt = torch.optim.SGD(model.parameters(), 0.5, momentum=0.9)
        milestones = torch.optim.lr_scheduler.MultiStepLR(opt, [2, 2, 3], gamma=0.5)
        return model, opt, milestones, s.Whole(model, opt, milestones)

    model, opt, milestones, whole = made(5)
    model.part[0].cache = torch.ones(2, 2)
    other, _, taken, into = made(3)
    state = s.decode(s.encode(whole.get()))
    into.check(state)
    into.set(state)
    check("all parameters and buffers are the same", all(
        torch.equal(p, q) for p, q in zip((*model.parameters(), *model.buffers()),
                                          (*other.parameters(), *other.buffers())))
          and len(list(other.buffers())) == len(list(model.buffers())))
    model.history.zero_()
    check("and are its own", other.history.abs().sum() > 0)
    rates = []
    for optimizer, schedule in ((opt, milestones), (into.opt, taken)):
        for _ in range(3):
            optimizer.step()
            schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    check(f"and so are the rates, also where two milestones are one: {rates}",
          rates == [0.0625, 0.0625])
    flat = made(3)
    flat[0].history = torch.zeros(3, 2)
    refused(ValueError, lambda: flat[3].check(state), "another model", "buffer history")
    state["model"]["history"] = "text"
    refused(ValueError, lambda: into.check(state), "buffer history is no tensor")
    state = whole.get()
    state["buffers"]["other"] = torch.zeros(1)
    refused(ValueError, lambda: into.check(state), "another model", "other")


def files(a):
    """Two ranks save one file again and again; it is whole whenever it is looked at."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        training = Training(rank, ranks)
        path = ranks.path("model.state")
        for _ in range(10):
            training.step()
            training.sync.save(path)
            from muster import _state
            with open(path, "rb") as f:
                read = _state.decode(f.read())
            must(abs(read["version"] - training.sync.version) <= 1, "it is of another version")
        training.sync.save(ranks.path(f"last.{rank}"))
        refused(RuntimeError, lambda: training.sync.load(path), "before the first step")
        training.sync.close()
        must(training.sync.version == 10, training.sync.version)
        bits = [p.detach().clone() for p in training.model.parameters()]
        state = training.opt.state_dict()["state"][0]["exp_avg"].clone()
        return bits, state, training.schedule.last_epoch, training.sampler.state_dict()

    def load(rank, ranks):
        import torch
        training = Training(rank, ranks)
        before = [p.detach().clone() for p in training.model.parameters()]
        for name, words in (("cut", "cut short"), ("pickle", "no state"),
                            ("wide", "another model")):
            refused(ValueError, lambda: training.sync.load(ranks.path(name)), name, words)
        must(all(torch.equal(p, q) for p, q in zip(training.model.parameters(), before)),
             "a file that was refused has changed the model")
        version = training.sync.load(ranks.path("last"))
        bits = [p.detach().clone() for p in training.model.parameters()]
        state = training.opt.state_dict()["state"][0]["exp_avg"].clone()
        must(version == 10 and training.sync.version == 0, version)
        done = training.schedule.last_epoch, training.sampler.state_dict()
        training.step()
        return (bits, state, *done)

    import torch
    from muster import _state
    with Ranks(a, 2, work) as ranks:
        said = ranks.ends()
        left = [name for name in os.listdir(ranks.folder) if name.endswith(".part")]
        check("no part of a file is left", left == [])
        with open(ranks.path("last.0"), "rb") as f:
            last = f.read()
    wide = _state.decode(last)
    wide["state"]["model"]["0.weight"] = torch.zeros(17, 6)
    with Ranks(a, 2, None) as ranks:
        for name, data in (("last", last), ("cut", last[:-9]), ("pickle", pickle.dumps([1])),
                           ("wide", bytes(_state.encode(wide)))):
            with open(ranks.path(name), "wb") as f:
                f.write(data)
        for rank in range(2):
            ranks.again(rank, load)
        back = ranks.ends()
    for rank in range(2):
        check("all is as it was saved", back[rank][2:] == said[0][2:]
              and torch.equal(back[rank][1], said[0][1])
              and all(torch.equal(p, q) for p, q in zip(back[rank][0], said[0][0])))


class Counting:
    """A rank whose gradients are known, so that a version tells of what is in it."""

    def __init__(self, rank):
        import muster.torch
        import torch

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.long = torch.nn.Parameter(torch.zeros(70000))  # handed over in backward()
                self.short = torch.nn.Parameter(torch.zeros(3))
                self.idle = torch.nn.Parameter(torch.zeros(2))

            def forward(self, factor):
                return factor * (self.long.sum() + 2 * self.short.sum())

        self.torch, self.rank, self.model, self.hits = torch, rank, Model(), 0
        self.stepping = False
        self.in_apply = lambda: None
        self.opt = torch.optim.SGD(self.model.parameters(), 0.25)
        self.sync = muster.torch.Sync(self.model, self.opt, self.apply)

    def apply(self):
        self.in_apply()
        self.opt.step()

    def factor(self, rank):
        return 1 + (self.sync.version * 3 + rank * 5) % 16

    def backward(self, factor):
        self.opt.zero_grad()
        self.model(factor).backward()

    def step(self):
        """Whatever Ctrl-C comes between, step() called again brings the same step to its end."""
        before, mean = self.sync.version, (self.factor(0) + self.factor(1)) / 2
        pushes = self.sync.worker.ticket
        while True:
            try:
                self.stepping = True
                self.sync.step()
                self.stepping = False
                break
            except KeyboardInterrupt:
                self.hits += 1
            except RuntimeError as e:  # the call that Ctrl-C has ended was over
                self.stepping = False
                must("without a backward()" in str(e) and self.sync.version > before, e)
                break
        must(self.sync.version == before + 1, "it made", self.sync.version - before, "versions")
        must(self.sync.worker.ticket == pushes + 1, "it pushed", self.sync.worker.ticket - pushes)
        for name, times in (("long", 1), ("short", 2), ("idle", 0)):
            grad = getattr(self.model, name).grad
            must(bool((grad == times * mean).all()), name, grad[:3], "is not", times * mean)


INTERRUPTED = 150


def interrupted(rank, ranks):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    me = Counting(rank)
    signal.signal(signal.SIGALRM,
                  lambda *_: signal.raise_signal(signal.SIGINT) if me.stepping else None)
    worker, sync = me.sync.worker, me.sync
    draw = random.Random(5)
    places = ((worker, "push_ranges", False), (worker, "push_ranges", True),
              (worker, "push", False), (worker, "push", True), (worker, "_told", False),
              (sync, "_set_gradients", False), (sync, "_offer_state", True))
    for owner, name, after in places:  # while gradients go out, and while a version comes in
        me.backward(me.factor(rank))
        if rank == 0 and name != "_set_gradients":
            ctrl_c_at_the_next(owner, name, after)
        me.step()
    me.in_apply = lambda: rank == 0 and signal.raise_signal(signal.SIGINT)
    me.backward(me.factor(rank))
    me.step()
    me.in_apply = lambda: None
    for name in ("push_ranges", "_give", "_flush"):  # in a backward(), which is made again
        for after in (False, True):
            if rank == 0:
                owner = worker if name == "push_ranges" else sync
                ctrl_c_at_the_next(owner, name, after)
                refused(KeyboardInterrupt, lambda: me.backward(1000))
                if after:
                    refused(RuntimeError, sync.step, "the last backward() was interrupted")
            me.backward(me.factor(rank))
            me.step()
    known = me.hits
    for _ in range(INTERRUPTED):
        me.backward(me.factor(rank))
        if rank == 0:
            signal.setitimer(signal.ITIMER_REAL, 1e-6 + 0.004 * draw.random() ** 3)
        me.step()
    ended = sync.version, known, me.hits - known
    sync.close()
    return ended


def ctrl_c_at_any_moment(a):
    """Each step is done once, and whole, with the gradients that were computed for it."""
    prepare(a)
    with Ranks(a, 2, interrupted) as ranks:
        (versions, known, hits), (others, _, none) = ranks.ends()
    check(f"{versions} versions, with Ctrl-C at {known} places and {hits} moments",
          versions == others == 14 + INTERRUPTED and known >= 7 and none == 0)


class Stop:
    """Between two layers, of which one is the first in backward()."""

    def __init__(self, torch):
        self.error = error = []

        class Stopped(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                if error:
                    raise error.pop()
                return g

        self.apply = Stopped.apply


def interrupted_by_parts(a):
    """A model that is called by its parts, of which one was reached before Ctrl-C came, or an
    error: zero_grad(), and backward() again is enough, also where something keeps the traceback,
    within another backward(), as checkpoints do, and after no_sync()."""
    prepare(a)
    import torch
    from torch.utils.checkpoint import checkpoint

    def work(rank, ranks):
        import muster.torch
        nn, stop, kept = torch.nn, Stop(torch), []
        parts = nn.ModuleList([nn.Linear(4, 300), nn.Linear(300, 300),
                               nn.Linear(300, 300),  # is handed over before Stop
                               nn.Linear(300, 1)])
        opt = torch.optim.SGD(parts.parameters(), 0.0)
        sync = muster.torch.Sync(parts, opt)

        def backward(factor=1.0, zeroes=True):
            if zeroes:
                opt.zero_grad()
            x = checkpoint(parts[0], torch.ones(1, 4).requires_grad_(), use_reentrant=True)
            (factor * parts[3](parts[2](stop.apply(parts[1](x))))).sum().backward()

        def again():
            backward()
            sync.step()
            must(parts[3].bias.grad.item() == 1, "the mean is", parts[3].bias.grad)

        def interrupted(error, no_sync):
            try:
                with sync.no_sync() if no_sync else contextlib.nullcontext():
                    stop.error.append(error)
                    backward(1000)
            except type(error) as e:
                kept.append(e)

        again()
        for error in (KeyboardInterrupt(), LookupError("in backward")):
            for no_sync in (False, True):
                interrupted(error, no_sync)
                again()
                interrupted(error, no_sync)
                refused(RuntimeError, sync.step, "the last backward() was interrupted")
                again()
        must(len(kept) == 8, kept)
        backward(1000)
        again()
        backward()
        refused(RuntimeError, lambda: backward(zeroes=False), "twice", "no_sync")
        sync.step()
        return sync.version

    with Ranks(a, 1, work) as ranks:
        check("each gradient is that of the last backward()", ranks.ends() == [11])


def who_cannot_be_there(a):
    """Is not in the job: nobody waits for a rank whose Sync has raised an error."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        model = network(torch)
        opt = torch.optim.SGD(model.parameters(), 0.1)
        sampler = muster.torch.Sampler(50, 4 + (rank == 2), seed=1)
        if rank == 2:
            must(until(lambda: "rank 0 joined" in ranks.server.said(), HANG_S), "no rank 0")
            refused(muster.InvalidArgument, lambda: muster.torch.Sync(model, opt, sampler=sampler),
                    "Sampler(50, 5, seed=1, on_late='drop')")
            sampler = muster.torch.Sampler(50, 4, seed=1)
        if rank == 1:
            model.register_forward_pre_hook = fails_to_listen
            refused(LookupError, lambda: muster.torch.Sync(model, opt, sampler=sampler), "no hook")
            ranks.hear("done")
            return None
        sync = muster.torch.Sync(model, opt, sampler=sampler)
        other = torch.utils.data.DataLoader(range(50), batch_sampler=muster.torch.Sampler(50, 4))
        refused(ValueError, lambda: next(sync.batches(other)), "Sync(..., sampler=sampler)")
        opt.step = broken_after(opt.step, 3 if rank == 2 else 100)
        try:
            for _ in range(6):
                opt.zero_grad()
                model(torch.ones(4, 6)).sum().backward()
                sync.step()
        except ZeroDivisionError:
            refused(RuntimeError, sync.step, "version 3 was applied in part")
            refused(RuntimeError, lambda: sync.save(ranks.path("x")), "in part")
            ranks.hear("done")
        ranks.tell("done")
        return sync.version

    def fails_to_listen(_):
        raise LookupError("no hook")

    def broken_after(step, count):
        calls = []

        def stepped():
            calls.append(step())
            return 1 / (len(calls) != count)

        return stepped

    with Ranks(a, 3, work, "--min-workers", "1") as ranks:
        check("the others go on", ranks.ends() == [6, None, 2])


CASES, BY_HAND = together(
    coming_back=(frozen_for_longer_than_the_history, behind_when_the_job_ends,
                 outrun_again_and_again, anew_in_one_process, states_that_are_refused),
    whole_or_not_at_all=(trees, whole_models, files, ctrl_c_at_any_moment, interrupted_by_parts,
                         who_cannot_be_there))
main(CASES, "musterd", "library", unlisted=BY_HAND)
