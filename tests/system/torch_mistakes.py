#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a program may do to a model that has a Sync, and what it is told if it may not.

usage: torch_mistakes.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_mistakes.py --list
"""
import copy
import pickle

from base import HANG_S, check, main, must
from torch_case import Ranks, joined, prepare, refused, together


def trained_later(a):
    """A parameter that is unfrozen, or that the optimiser is given, when there is a Sync would be
    another one in each rank: step() refuses it, and when it is frozen again, or gone, goes on. One
    that is frozen meanwhile is the same in all ranks."""
    prepare(a)

    def train(rank, ranks):
        import muster.torch
        import torch
        model = torch.nn.ModuleDict({n: torch.nn.Linear(3, 1) for n in ("head", "body")})
        model["body"].weight.requires_grad_(False)
        opt = torch.optim.SGD(model["head"].parameters(), 0.25, momentum=0.5)
        added = []  # to the optimiser, with the next version

        def apply():
            while added:
                opt.add_param_group({"params": [added.pop()]})
            opt.step()

        sync = muster.torch.Sync(model, opt, apply)

        def backward():
            opt.zero_grad()
            sum(part(torch.full((1, 3), rank + 1.0)) for part in model.values()).sum().backward()

        backward()
        model["body"].weight.requires_grad_(True)
        refused(ValueError, sync.step, "parameter body.weight", "frozen when this Sync was made",
                "before Sync is made")
        model["body"].weight.requires_grad_(False)
        must(sync.step().version == 1, "it does not go on")
        model["late"] = torch.nn.Linear(3, 1)
        opt.add_param_group({"params": [model["late"].bias]})
        backward()
        refused(ValueError, sync.step, "parameter late.bias", "not there when this Sync was made",
                "before Sync is made")
        del opt.param_groups[-1], model["late"]
        added.append(model["body"].bias)  # it has been in the model from the start
        model["head"].weight.requires_grad_(False)
        for version in (2, 3, 4):
            must(sync.step().version == version, "it does not go on")
            if version == 3:
                model["head"].weight.requires_grad_(True)
            backward()
        return [p.tolist() for p in model.parameters()]

    with Ranks(a, 2, train) as ranks:
        said = ranks.ends()
        check("both have the same parameters", said[0] == said[1])


def copied(a):
    """A model with a Sync can be copied and written like any other. The copy does what the model
    does, has nothing to do with the job, and is read where there is no muster."""
    prepare(a)

    def train(rank, ranks):
        import muster.torch
        import torch
        model, x = torch.nn.Linear(3, 1), torch.ones(1, 3)
        opt = torch.optim.SGD(model.parameters(), 0.25)
        with muster.torch.Sync(model, opt) as sync:
            written = pickle.dumps(model)
            must(b"muster" not in written, "muster is needed to read it")
            copies = pickle.loads(written), copy.deepcopy(model)
            must(all(torch.equal(one(x), model(x)) for one in copies), "a copy is another model")
            model(x).sum().backward()
            this = sync._round
            this.running = True  # as within backward(), where a forward() of the model begins anew
            for one in copies:
                one(x).sum().backward()
            must(sync._round is this, "the job has heard of a copy")
            this.running = False
            must(sync.step().version == 1 and not torch.equal(copies[0](x), model(x)),
                 "the model has not moved alone")
        return True

    with Ranks(a, 1, train) as ranks:
        check("copies are models of their own", ranks.ends() == [True])


def times_out(muster, make):
    """What it says when the other rank does not come. On a host that stands still it may not even
    have reached the server in a short time."""
    said = []
    for seconds in (0.25, 4, 20):
        try:
            joined(muster, lambda s=seconds: make(s))
        except muster.Timeout as e:
            said.append(str(e))
            if "have started" in said[-1]:
                break
    return said[-1]


def waits_for_a_rank(a):
    """Where a rank does not come in time, Sync and Served say what a program can do, and when that
    is done the job begins."""
    prepare(a)

    def sync_of(model, **options):
        import muster.torch
        import torch
        return muster.torch.Sync(model, torch.optim.SGD(model.parameters(), 0.25), **options)

    def served_of(model, **options):
        import muster.torch
        return muster.torch.Served(model, **options)

    def work(rank, ranks, make, name):
        import muster
        import torch
        model = torch.nn.Linear(3, 1)
        if rank == 0:
            said = times_out(muster, lambda seconds: make(model, join_timeout=seconds))
            must(all(words in said for words in ("rank 0: not all 2", "has left the job",
                                                 f"make another {name}", "join_timeout")), said)
            must(not model._forward_pre_hooks, "hooks are left")
            ranks.tell("over")
        ranks.hear("over")
        with joined(muster, lambda: make(model, join_timeout=HANG_S)) as job:
            model(torch.ones(1, 3)).sum().backward()
            return job.step().version

    for make, name, *options in ((sync_of, "Sync"), (served_of, "Served", "--owner", "servers",
                                                     "--optimizer", "sgd:lr=0.1")):
        with Ranks(a, 2, lambda rank, ranks, m=make, n=name: work(rank, ranks, m, n),
                   *options) as ranks:
            check(f"{name} goes on with another one", ranks.ends() == [1, 1])


def whatever_is_around(a):
    """The default type of tensors, and a block without gradients around the constructor, are the
    program's: Sync and Served start and train in them."""
    prepare(a)

    def train(ranks, make, around):
        import torch
        torch.set_default_dtype(torch.float64)
        model = torch.nn.Linear(3, 1).float()
        model.register_buffer("nothing", torch.empty(0, dtype=torch.float32))
        model.register_buffer("steps", torch.tensor(7, dtype=torch.int16))
        with getattr(torch, around)():
            job = make(model)
        before = model.weight.detach().clone()
        for version in (1, 2):
            model.zero_grad()
            model(torch.ones(1, 3, dtype=torch.float32)).sum().backward()
            must(job.step().version == version, "no version")
        job.close()
        must(model.steps == 7 and model.weight.dtype == torch.float32, model.state_dict())
        return (before - model.weight.detach()).tolist()

    def sync_of(model):
        import muster.torch
        import torch
        return muster.torch.Sync(model, torch.optim.SGD(model.parameters(), 0.25))

    def served_of(model, **options):
        import muster.torch
        return muster.torch.Served(model, **options)

    servers = ("--owner", "servers", "--optimizer", "sgd:lr=0.25,momentum=0")
    for what, make, *options in (("Sync", sync_of), ("Served", served_of, *servers),
                                 ("Served(copy=False)", lambda m: served_of(m, copy=False),
                                  *servers)):
        for around in ("enable_grad", "no_grad", "inference_mode"):
            with Ranks(a, 1, lambda _, ranks, m=make, w=around: train(ranks, m, w),
                       *options) as ranks:
                moved = ranks.ends()[0]
                check(f"{what} within {around}: {moved}",
                      all(abs(d - 0.5) < 1e-6 for d in moved[0]))


CASES, BY_HAND = together(
    mistakes=(trained_later, copied, waits_for_a_rank, whatever_is_around))
main(CASES, "musterd", "library", unlisted=BY_HAND)
