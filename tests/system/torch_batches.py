#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Batches of muster.torch that are given up, refused or made of several, and what a script does
beside sync.step(): each either has the effect that it would have without muster, or is told.

usage: torch_batches.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_batches.py --list
"""
import contextlib
import os
import signal
import warnings

from base import check, main, must
from torch_case import Ranks, prepare, refused, together
from torch_training import Training

SERVERS = ("--owner", "servers", "--optimizer", "sgd:lr=1,momentum=0")


class Counting:
    """A model whose gradient is what it is given, and which moves by it at a rate of 1."""

    def __init__(self, torch, kind, **options):
        import muster.torch
        self.torch = torch
        self.bare = self.model = torch.nn.Linear(2, 1, bias=False)
        torch.nn.init.zeros_(self.bare.weight)
        if kind in ("ddp", "views"):
            self.model = torch.nn.parallel.DistributedDataParallel(
                self.bare, process_group=muster.torch.alone(),
                gradient_as_bucket_view=kind == "views")
        self.opt = torch.optim.SGD(self.bare.parameters(), 1.0)
        if kind == "served":
            self.sync = muster.torch.Served(self.model, **options)
        else:
            self.sync = muster.torch.Sync(self.model, self.opt, **options)
        self.moved = 0.0

    def loss(self, gradient):
        return self.model(self.torch.full((1, 2), float(gradient))).sum()

    def backward(self, gradient):
        self.loss(gradient).backward()

    def zero(self):
        self.model.zero_grad(set_to_none=False)

    def none(self):
        self.model.zero_grad(set_to_none=True)

    def moves(self, gradient, what):
        """A step, after which the parameters have moved by that gradient, and by no other."""
        done = self.sync.step()
        self.moved -= gradient
        must(self.bare.weight.tolist() == [[self.moved] * 2] and done.verdict.name == "COUNTED",
             f"{what}: {self.bare.weight.tolist()} is not {self.moved}, {done}")


# Each is a batch whose gradient of 7 is given up; the next one begins with what comes after it.

def zeroed(job):
    job.backward(7)
    job.zero()


def set_to_none(job):
    job.backward(7)
    job.none()


def zeroed_after_the_next_forward(job):
    job.backward(7)
    loss = job.loss(0)
    job.zero()
    loss.backward()
    job.zero()


def set_to_none_after_the_next_forward(job):
    job.backward(7)
    loss = job.loss(0)
    job.none()
    loss.backward()
    job.none()


def abandoned(job):
    job.backward(7)
    job.sync.abandon()


def abandoned_of_several(job):
    with job.sync.no_sync():
        job.backward(7)
    job.backward(7)
    job.sync.abandon()


def abandoned_before_it_is_handed_over(job):
    with job.sync.no_sync():
        job.backward(7)
    job.sync.abandon()


def zeroed_before_it_is_handed_over(job):
    with job.sync.no_sync():
        job.backward(7)
    job.zero()


def abandoned_below(job):
    job.backward(7)
    job.sync.worker.abandon()
    job.zero()


def abandoned_below_and_refused(job):
    job.backward(7)
    job.sync.worker.abandon()
    refused(RuntimeError, job.sync.step, "without a backward()", "given up")
    job.zero()


def not_finite(job):
    import muster
    job.backward("nan")
    refused(muster.NotFinite, job.sync.step, "NaN")
    job.zero()


def not_finite_and_zeroed(job):
    job.backward("inf")
    job.zero()


def wrong_number_of_samples(job):
    job.backward(7)
    refused(ValueError, lambda: job.sync.step(samples=0), "samples is 0")
    job.zero()


def changed(job):
    """By clipping, say."""
    job.backward(7)
    job.torch.nn.utils.clip_grad_norm_(job.model.parameters(), 1.0)
    refused(RuntimeError, job.sync.step, "gradient of weight was changed after backward()",
            job.sync._place.split(".")[0], "is given up")
    job.zero()


def changed_by_data(job):
    """As clip_grad_value_() does in PyTorch 1.13."""
    job.backward(7)
    job.bare.weight.grad.data.clamp_(-1, 1)
    job.sync._looks = 0  # as in the first steps
    refused(RuntimeError, job.sync.step, "gradient of weight was changed after backward()")
    job.zero()


def replaced(job):
    job.backward(7)
    job.bare.weight.grad = job.bare.weight.grad / 4
    refused(RuntimeError, job.sync.step, "changed after backward()")
    job.zero()


def zeroed_before_the_step(job):
    job.backward(7)
    job.none()
    refused(RuntimeError, job.sync.step, "gradient of weight is gone", "sync.abandon()")


def not_the_last_backward(job):
    """The parameters have two gradients of one step."""
    job.backward(7)
    if not job.sync._in_views:  # where PyTorch counts all gradients as one
        refused(RuntimeError, lambda: job.backward(7), "run twice", "no_sync()")
    job.zero()


HABITS = (zeroed, set_to_none, zeroed_after_the_next_forward, set_to_none_after_the_next_forward,
          abandoned, abandoned_of_several, abandoned_before_it_is_handed_over,
          zeroed_before_it_is_handed_over, abandoned_below, abandoned_below_and_refused, not_finite,
          not_finite_and_zeroed, wrong_number_of_samples, changed, changed_by_data, replaced,
          zeroed_before_the_step, not_the_last_backward)
# A DistributedDataParallel does not go on where an error has ended a backward(), or none came.
NOT_IN_DDP = {"ddp": (not_the_last_backward,), "views": ()}


def given_up(a):
    """After each way in which a loop gives a batch up, or is refused one, the next step is that of
    the batch after it, and nothing of the other is in a version."""
    prepare(a)
    import torch

    def work(kind):
        def tries(rank, ranks):
            job = Counting(torch, kind)
            for habit in (h for h in HABITS if h not in NOT_IN_DDP.get(kind, ())):
                for again in (1, 2):
                    for _ in range(again):
                        habit(job)
                    job.backward(again)
                    job.loss(0)  # as of an evaluation
                    job.moves(again, f"{kind}: {habit.__name__}")
                    job.none() if again == 2 else job.zero()
            if kind == "ddp":
                not_the_last_backward(job)
            return job.sync.version
        return tries

    for kind in ("bare", "ddp", "views", "served"):
        options = SERVERS if kind == "served" else ()
        with Ranks(a, 1, work(kind), *options) as ranks:
            versions = ranks.ends()[0]
        check(f"{kind}: {versions} versions", versions == 2 * (
            len(HABITS) - len(NOT_IN_DDP.get(kind, ()))))


def legal(a):
    """What a script may do to gradients is done: in no_sync(), where a parameter was not reached,
    and in the function that applies a version, where clipping and dividing have their effect."""
    prepare(a)
    import torch

    def work(kind):
        def tries(rank, ranks):
            scale = []

            def apply():
                job.bare.weight.grad /= 4
                scale.append(torch.nn.utils.clip_grad_norm_(job.model.parameters(), 1e9))
                job.opt.step()

            job = Counting(torch, kind, step=apply)
            for _ in range(3):
                job.opt.zero_grad()
                with job.sync.no_sync():
                    job.backward(2)
                    job.backward(6)
                job.bare.weight.grad *= 2  # of one that was asked to hand in, say
                job.moves(4, "in no_sync() alone")
                job.opt.zero_grad()
                with job.sync.no_sync():
                    job.backward(2)
                job.bare.weight.grad *= 3
                job.backward(6)
                torch.nn.utils.clip_grad_norm_(job.model.parameters(), float("inf"))  # its norm
                job.moves(3, "in both")
            return len(scale)
        return tries

    for kind in ("bare", "ddp", "views"):
        with Ranks(a, 1, work(kind)) as ranks:
            check(f"{kind}: all versions", ranks.ends() == [6])


def halves(a):
    """A batch that has used one half of the model is given up; the next one uses the other half."""
    prepare(a)
    import torch

    def work(rank, ranks):
        import muster.torch
        model = torch.nn.ModuleList(torch.nn.Linear(1, 1, bias=False) for _ in range(2))
        before = [half.weight.item() for half in model]
        whole = torch.nn.Module()
        whole.model, whole.forward = model, lambda which: model[which](torch.ones(1, 1)).sum()
        sync = muster.torch.Sync(whole, torch.optim.SGD(model.parameters(), 1.0))
        whole(0).backward()
        model.zero_grad(set_to_none=True)
        whole(1).backward()
        sync.step()
        return [round(b - half.weight.item()) for b, half in zip(before, model)]

    with Ranks(a, 1, work) as ranks:
        check("only that one moves", ranks.ends() == [[0, 1]])


def begin(job, muster):
    """The first forward() waits for all ranks, and may time out likewise."""
    while True:
        try:
            with job.torch.no_grad():
                job.loss(0)
            return
        except muster.Timeout:
            pass


def after_a_timeout(a):
    """A loop that goes on with the next batch when step() has raised Timeout: the first one counts,
    and what is computed meanwhile is not handed in."""
    prepare(a)
    import torch

    def work(rank, ranks):
        import muster
        job = Counting(torch, "bare", **({} if rank else {"wait_timeout": 0.05}))
        begin(job, muster)
        if rank == 1:
            ranks.hear("twice")
            job.backward(1)
            job.moves(2, "the mean of 3 and 1")
            job.zero()
            job.backward(1)
            job.moves(3, "the mean of 5 and 1")
            return None
        job.backward(3)
        late = 0
        while True:
            try:
                done = job.sync.step()
                break
            except muster.Timeout:
                late += 1
            job.opt.zero_grad()
            job.backward(100 + late)
            job.sync.abandon()  # there is nothing to give up
            if late == 2:
                ranks.tell("twice")
        must(done.verdict.name == "COUNTED" and job.bare.weight.tolist() == [[-2.0, -2.0]], done)
        job.opt.zero_grad()
        job.backward(5)
        with contextlib.ExitStack() as stack:
            stack.callback(ranks.tell, "done")
            while True:
                try:
                    job.sync.step()
                    break
                except muster.Timeout:
                    pass
        must(job.bare.weight.tolist() == [[-5.0, -5.0]], job.bare.weight)
        return late

    with Ranks(a, 2, work) as ranks:
        check("it has timed out", ranks.ends()[0] >= 2)


def counts_what_was_refused(a):
    """A rank that ends after that is told how many."""
    prepare(a)
    import torch

    def work(rank, ranks):
        import muster
        job = Counting(torch, "bare")

        job.backward("nan")
        refused(muster.NotFinite, job.sync.step, "NaN")
        job.zero()
        job.backward(1)
        job.moves(1, "one that counts")
        for _ in range(5):
            job.zero()
            job.backward("nan")
            refused(muster.NotFinite, job.sync.step, "NaN")
        job.zero()
        job.backward(1)
        job.sync.abandon()
        job.backward(1)
        os.kill(ranks.server.process.pid, signal.SIGKILL)
        for _ in range(2):
            refused(muster.SessionLost, job.sync.step, "since the last that counted, 5 gradients "
                    "were not finite", "since the last that counted, 1 batch was given up")
        refused(muster.SessionLost, job.sync.abandon, "has left the job")

    with Ranks(a, 1, work) as ranks:
        ranks.ends()


# ---- with a Sampler ----

SAMPLES, BATCH, BAD = 40, 4, 17


def refuses(sync, opt, loss, samples):
    """A loop that hears of it from step()."""
    import muster
    opt.zero_grad()
    loss.backward()
    try:
        return sync.step(samples=samples)
    except muster.NotFinite:
        return None


def looks(sync, opt, loss, samples):
    """A loop that looks itself, and passes over a batch."""
    if not loss.isfinite():
        return None
    opt.zero_grad()
    loss.backward()
    return sync.step(samples=samples)


def looks_late(sync, opt, loss, samples):
    """The same after backward()."""
    opt.zero_grad()
    loss.backward()
    return sync.step(samples=samples) if loss.isfinite() else None


def abandons(sync, opt, loss, samples):
    """The same in words, without zero_grad()."""
    loss.backward()
    if not loss.isfinite():
        return sync.abandon()
    done = sync.step(samples=samples)
    opt.zero_grad()
    return done


WAYS = (refuses, looks, looks_late, abandons)


def bad_sample(a):
    """One sample is NaN. Whichever way the loop goes on, all ranks make their versions, and the
    warnings name that sample, as often as it was tried; who is in a version has no part in it."""
    prepare(a)
    import torch

    def work(way):
        def trains(rank, ranks):
            import muster.torch
            x = torch.eye(SAMPLES)
            x[BAD, BAD] = float("nan")
            sampler = muster.torch.Sampler(SAMPLES, BATCH, seed=1, on_late="again")
            loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x),
                                                 batch_sampler=sampler)
            model = torch.nn.Linear(SAMPLES, 1, bias=False)
            opt = torch.optim.SGD(model.parameters(), 1.0)
            sync = muster.torch.Sync(model, opt, sampler=sampler)
            tried = 0
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                for batch, in sync.batches(loader):
                    tried += bool(batch.isnan().any())
                    way(sync, opt, model(batch).mean(), len(batch))
                    if sync.version >= 20 and not sync.finished:
                        sync.finish("enough")
            return (model.weight.tolist(), sampler.state_dict(), tried, sampler.given_up,
                    [str(w.message) for w in said])
        return trains

    for way in WAYS:
        with Ranks(a, 2, work(way)) as ranks:
            said = ranks.ends()
        must(said[0][:2] == said[1][:2], f"{way.__name__}: the ranks differ")
        told = [line for *_, lines in said for line in lines]
        check(f"{way.__name__}: {told}", told and all(
            f" {BAD}" in line or f"[{BAD}" in line for line in told))
        tries = 2 if way is refuses else 1
        check(f"each was tried {tries} times", all(
            tried == tries * len(lines) and given == BATCH * len(lines)
            for _, _, tried, given, lines in said))


def account(rank, ranks, torch, parts):
    """Each sample moves a weight of its own by 1, in a version where it is. parts: how many batches
    this rank has in one step."""
    import muster.torch
    sampler = muster.torch.Sampler(SAMPLES, BATCH, seed=1, on_late="again")
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.eye(SAMPLES)),
                                         batch_sampler=sampler)
    model = torch.nn.Linear(SAMPLES, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    opt = torch.optim.SGD(model.parameters(), 1.0)
    weight = [0.0]

    def apply():
        model.weight.grad *= weight[0]
        opt.step()

    sync = muster.torch.Sync(model, opt, apply, sampler=sampler)
    settle = sync._settle

    def settled(this, out):
        weight[0] = out.weight
        settle(this, out)

    sync._settle = settled
    done, wrong = 0, 0
    opt.zero_grad()
    for x, in sync.batches(loader):
        done += 1
        with sync.no_sync() if done < parts else contextlib.nullcontext():
            (-model(x).mean() / parts).backward()
        if done < parts:
            continue
        if parts > 1 and not wrong:
            wrong = 1
            refused(ValueError, lambda n=len(x): sync.step(samples=n), f"samples is {BATCH}",
                    f"{parts} of {BATCH} samples", f"samples={parts * BATCH}")
        sync.step(samples=done * len(x))
        opt.zero_grad()
        done = 0
        if sync.version >= 12 and not sync.finished:
            sync.finish("enough")
    return model.weight.flatten().tolist(), sampler.state_dict()


def several_batches(a):
    """Ranks that add up another number of batches of a Sampler for each step: every sample of each
    epoch has counted once, or is still to come."""
    prepare(a)
    import torch
    with Ranks(a, 3, lambda rank, ranks: account(rank, ranks, torch, 1 + rank)) as ranks:
        said = ranks.ends()
    must(all(s == said[0] for s in said), "the ranks differ")
    weights, state = said[0]
    check(f"the sums agree: {state['counted']}", all(abs(w - round(w)) < 1e-3 for w in weights)
          and round(sum(weights)) == sum(state["counted"].values())
          and len(set(state["counted"].values())) == 3)
    left = [index for _, index in state["queue"]]
    check(f"each sample of {state['epoch']} epochs was counted, or is still to come, once",
          {round(w) + left.count(i) for i, w in enumerate(weights)} == {state["epoch"]})

    def fixed(rank, ranks):
        import muster.torch
        sampler = muster.torch.Sampler(SAMPLES, BATCH, accumulate=2)
        job = Counting(torch, "bare", sampler=sampler)
        draw = iter(sampler)
        refused(RuntimeError, lambda: next(draw) and next(draw), "num_workers=0", "sync.abandon()")
        job.backward(7)
        refused(ValueError, job.sync.step, "accumulate=2", "this one has 1")
        job.sync.abandon()
        for samples in (1000, 3):  # words, say
            job.zero()
            for number in range(2):
                next(iter(sampler))
                with job.sync.no_sync() if number == 0 else contextlib.nullcontext():
                    job.backward(1)
            job.sync.step(samples=samples)
        return sampler.counted[0]

    with Ranks(a, 1, fixed) as ranks:
        check("a fixed number of batches counts whatever the weight is",
              ranks.ends() == [4 * BATCH])


# ---- what is done beside sync.step() ----

def step_of_the_optimizer(a):
    """opt.step() beside sync.step() is refused, and changes nothing; after the end of the job it is
    the user's again."""
    prepare(a)
    import torch

    def work(rank, ranks):
        job = Counting(torch, "bare")
        refused(RuntimeError, job.opt.step, "opt.step() was called beside sync.step()",
                "Leave opt.step() out", "Sync(model, opt, step=function)")
        torch.optim.lr_scheduler.ExponentialLR(job.opt, 0.5)  # it wraps opt.step
        for _ in range(2):
            job.zero()
            job.backward(1)
            refused(RuntimeError, job.opt.step, "beside sync.step()")
            job.moves(1, "a step")
            refused(RuntimeError, job.opt.step, "beside sync.step()")
        job.sync.finish("enough")
        job.zero()
        job.backward(0)
        while not job.sync.finished:
            job.sync.step()
        before = job.bare.weight.tolist()
        job.opt.step()
        must(job.bare.weight.tolist() == before, "a gradient of 0 moves it")
        job.sync.close()
        job.zero()
        job.backward(1)
        job.opt.step()
        must(job.bare.weight.tolist() != before, "the optimiser is not the user's")

    with Ranks(a, 1, work) as ranks:
        ranks.ends()


def groups_of_the_optimizer(a):
    """What is changed in parameter groups between two steps is refused, and who may have done it is
    named; in apply(), by load() and by a state that is taken it is not, nor what may differ."""
    prepare(a)
    import torch

    def beside(rank, ranks):
        job = Counting(torch, "bare")
        schedule = torch.optim.lr_scheduler.ExponentialLR(job.opt, 0.5)
        group = job.opt.param_groups[0]

        def step():
            job.opt.zero_grad()
            job.backward(0)
            return job.sync.step()

        group["lr"] = 0.25  # before the first step all ranks do so
        step()
        schedule.step()
        refused(ValueError, step, "lr of parameter group 0 was 0.25 when version 1 had been",
                "ExponentialLR of this optimiser", "Sync(model, opt, step=function",
                'differ=("lr",)')
        refused(ValueError, job.sync.step, "lr of parameter group 0")
        rate, group["lr"] = group["lr"], 0.25
        must(step().version == 2, "it does not go on")
        group["weight_decay"] = 0.1
        refused(ValueError, step, "weight_decay", "was 0 ", "is 0.1 now", "version 2")
        group["weight_decay"] = 0
        job.opt.param_groups.append({**group, "params": []})
        refused(ValueError, step, "number of parameter groups was 1", "is 2 now")
        job.opt.param_groups.pop()
        group["new"] = 1
        must(step().version == 3 and rate != 0.25, "it does not go on")
        job.sync.close()
        refused(ValueError, lambda: Counting(torch, "bare", differ=("learning_rate",)),
                "differ has 'learning_rate'", "lr, ")

    with Ranks(a, 1, beside) as ranks:
        ranks.ends()

    def scheduled(rank, ranks):
        training = Training(rank, ranks)
        training.schedule.step()  # before the first step all ranks do so
        training.step()
        last = training.schedule.last_epoch
        training.schedule.last_epoch += 1  # one that changes the rate now and then alone
        refused(ValueError, training.step, f"last_epoch of ExponentialLR, which is the scheduler, "
                f"was {last}", f"is {last + 1} now", "after opt.step()")

    with Ranks(a, 1, scheduled) as ranks:
        ranks.ends()

    def own(rank, ranks):
        job = Counting(torch, "bare", differ="lr")
        group = job.opt.param_groups[0]
        for version in range(1, 4):
            group["lr"] = 1.0 / version
            job.opt.zero_grad()
            job.backward(0)
            must(job.sync.step().version == version, "a rate of its own is refused")
        group["weight_decay"] = 0.5
        refused(ValueError, job.sync.step, "weight_decay")
        group["weight_decay"] = 0
        path = ranks.path("state")
        job.sync.save(path)
        state = job.sync._read_state(open(path, "rb").read())
        group["lr"] = 0.125
        job.sync._set_state(state, 3)  # as of another rank
        must(job.opt.param_groups[0]["lr"] == 0.125, "its rate is that of another rank")

    with Ranks(a, 1, own) as ranks:
        ranks.ends()

    def within(rank, ranks):
        training = Training(rank, ranks, lr_scale=True)
        for _ in range(3):
            training.step()
        path = ranks.path("state")
        training.sync.save(path)
        rate = training.opt.param_groups[0]["lr"]
        training.step()
        training.sync._set_state(training.sync._read_state(open(path, "rb").read()), 4)
        must(training.opt.param_groups[0]["lr"] == rate, "it has not taken the state")
        training.step()
        return training.sync.version

    with Ranks(a, 1, within, "--lr-schedule", "steps:0.5,5") as ranks:
        check("a schedule in apply(), a rate of the server and a state are no changes",
              ranks.ends() == [5])


CASES, BY_HAND = together(
    batches=(given_up, legal, halves, after_a_timeout, counts_what_was_refused),
    samplers=(bad_sample, several_batches),
    beside=(step_of_the_optimizer, groups_of_the_optimizer))
main(CASES, "musterd", "library", unlisted=BY_HAND)
