#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What scripts do around muster.torch.Sync by habit: each habit has the effect that it would have
without muster, the same in all ranks, or is told in words.

usage: torch_habits.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_habits.py --list
"""
import gc
import warnings

from base import check, main, must
from torch_case import Ranks, prepare, refused, together


class Script:
    """One weight, whose gradient is what the script gives, and which moves by it."""

    def __init__(self, torch, apply=None, **options):
        import muster.torch
        self.torch = torch
        self.model = torch.nn.Linear(2, 1, bias=False)
        torch.nn.init.zeros_(self.model.weight)
        self.opt = torch.optim.SGD(self.model.parameters(), 1.0)
        self.sync = muster.torch.Sync(self.model, self.opt, apply, **options)

    def another(self, kind="Adam", **options):
        return getattr(self.torch.optim, kind)(self.model.parameters(), lr=0.5, **options)

    def backward(self, gradient):
        self.model.zero_grad(set_to_none=True)
        self.model(self.torch.full((1, 2), float(gradient))).sum().backward()

    def step(self, gradient):
        self.backward(gradient)
        return self.sync.step()

    def weight(self):
        return self.model.weight[0, 0].item()


def says(function):
    """The warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        function()
    return [str(w.message) for w in said]


# ---- optimisers beside that of Sync ----

def made_later(rank, ranks):
    """opt = Adam(...) once more: neither its zero_grad() nor its step() is taken for that of the
    one that Sync has."""
    import torch
    script = Script(torch)
    for number, kind in enumerate(("Adam", "SGD", "AdamW"), 1):
        opt = script.another(kind)
        refused(RuntimeError, opt.zero_grad, f"zero_grad() of an optimiser, {kind}, that was made "
                "after this Sync", "Sync was given, SGD", "Make the optimiser before Sync")
        torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)  # it wraps opt.step
        script.backward(1)
        refused(RuntimeError, opt.step, f"another optimiser, {kind}", "beside sync.step()")
        must(script.step(1).version == number and script.weight() == -number, script.weight())
    stranger = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    stranger.zero_grad()  # of something else
    stranger.step()
    script.sync.finish("enough")
    while not script.sync.finished:
        script.step(0)
    opt.zero_grad()  # the parameters are the program's again
    opt.step()
    before = torch.optim.Optimizer.__init__
    script.sync.close()
    must(torch.optim.Optimizer.__init__ is not before and not hasattr(
        torch.optim.Optimizer.__init__, "muster"), "PyTorch is not as it was before")
    must("zero_grad" not in vars(opt), "the optimiser is not as it was before")
    return True


def made_before(rank, ranks):
    """One that was there before Sync, and takes its steps beside it."""
    import muster.torch
    import torch
    model = torch.nn.Linear(2, 1, bias=False)
    opts = [torch.optim.SGD(model.parameters(), rate) for rate in (1.0, 0.5)]
    sync = muster.torch.Sync(model, opts[0])
    opts[1].zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    refused(RuntimeError, opts[1].step, "another optimiser, SGD", "beside sync.step()")
    must(sync.step().version == 1, "it does not go on")
    del sync
    gc.collect()
    opts[1].step()
    must("step" not in vars(opts[1]), "the optimiser is not as it was before")
    return True


def part_of_versions(momentum, own, warnings_wanted):
    """One that makes its steps in the function that applies versions may do so; where its moments
    would not be in a state, that is said once."""
    def work(rank, ranks):
        import torch
        opts = []

        def apply():
            if not opts:
                opts.append(script.another("SGD", momentum=momentum))
            opts[0].step()
            opts[0].zero_grad()

        script = Script(torch, apply, state=own)
        said = says(lambda: [script.step(1) for _ in range(3)])
        opts[0].zero_grad()
        script.backward(1)
        refused(RuntimeError, opts[0].step, "another optimiser")
        must(len(said) == warnings_wanted and all("state=(get, set)" in line for line in said),
             said)
        must(script.weight() <= -1.5, "it has made no steps")
        return True
    return work


def other_optimizers(a):
    prepare(a)
    own = (lambda: {}, lambda state: None)
    for what, work in (("made after Sync", made_later), ("made before it", made_before),
                       ("in versions", part_of_versions(0, None, 0)),
                       ("in versions, with moments", part_of_versions(0.5, None, 1)),
                       ("in versions, in a state", part_of_versions(0.5, own, 0))):
        with Ranks(a, 1, work) as ranks:
            check(f"another optimiser, {what}", ranks.ends() == [True])


# ---- data ----

def network(torch):
    """Its gradients depend on the batch; one of its parameters is of no use."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    model.register_parameter("idle", torch.nn.Parameter(torch.zeros(2)))
    return model


def trains(order, factor=1.0, **options):
    """order(torch, data, sync): what the loader draws by. factor: of the loss."""
    def work(rank, ranks):
        import muster.torch
        import torch
        model = network(torch)
        draw = torch.Generator().manual_seed(7)
        data = torch.utils.data.TensorDataset(torch.randn(96, 6, generator=draw),
                                              torch.randint(3, (96,), generator=draw))
        sync = muster.torch.Sync(model, torch.optim.SGD(model.parameters(), 0.1), **options)
        torch.manual_seed(0)  # in all ranks
        loader = torch.utils.data.DataLoader(data, batch_size=8, **order(torch, data, sync))

        def loop():
            for x, y in sync.batches(loader, until=24):
                model.zero_grad()
                (factor * torch.nn.functional.cross_entropy(model(x), y)).backward()
                sync.step(samples=len(x))

        return says(loop)
    return work


def shuffled(torch, data, sync):
    return {"shuffle": True}


def in_order(torch, data, sync):
    return {}


def same_seed(torch, data, sync):
    return {"sampler": torch.utils.data.RandomSampler(
        data, generator=torch.Generator().manual_seed(5))}


def own_seed(torch, data, sync):
    return {"sampler": torch.utils.data.RandomSampler(
        data, generator=torch.Generator().manual_seed(sync.rank))}


def seeded_by_rank(torch, data, sync):
    torch.manual_seed(sync.rank)
    return {"shuffle": True}


def same_batches(a):
    """Ranks whose loaders have the same order are told so, once, with a remedy; others are not."""
    prepare(a)
    for order, count, alike, options in (
            (shuffled, 3, 1, {}), (shuffled, 2, 1, {"wire": "bf16"}), (in_order, 3, 1, {}),
            (same_seed, 2, 1, {}), (own_seed, 3, 0, {}), (own_seed, 2, 0, {"wire": "bf16"}),
            (seeded_by_rank, 2, 0, {}), (shuffled, 1, 0, {}), (own_seed, 2, 0, {"factor": 0.0})):
        with Ranks(a, count, trains(order, **options), "--policy", "bsp") as ranks:
            said = ranks.ends()
        told = [[line for line in lines if "the same batches" in line] for lines in said]
        check(f"{order.__name__}, {count} ranks, {options}: {told[0]}", all(
            len(lines) == alike for lines in told))
        every = ", ".join(map(str, range(count - 1))) + f" and {count - 1}"
        must(all(f"versions 1, 2, 3 and 4 the gradients of ranks {every} were" in line
                 for lines in told for line in lines), told)


def samples_by_name(a):
    """A batch that is given up is told of by its first samples, and by how many there are."""
    prepare(a)
    import muster.torch
    for size, more in ((8, ""), (9, " and 1 more"), (4096, " and 4088 more")):
        sampler = muster.torch.Sampler(5000, size, seed=1)
        sampler.join(0, 1)
        batch = next(iter(sampler))
        said = says(sampler.abandoned)
        must(len(said) == 1 and len(said[0]) < 250
             and said[0].startswith(f"rank 0: samples {batch[:8]}{more} of epoch 0 were given up"),
             said)
        check(f"a batch of {size}: {said[0]}", sampler.given_up == size)


# ---- ends ----

def left_alone(a):
    """A rank that lacks versions, and has nobody left to take a state of: it is told so, and not
    that others were asked."""
    prepare(a)

    def work(rank, ranks):
        import muster
        import torch
        script = Script(torch)
        if rank == 0:
            for _ in range(100):
                script.step(1)
            ranks.tell("far")
            ranks.hear("asks")
            return script.sync.close()
        ranks.hear("far")
        script.backward(1)
        ranks.tell("asks")
        refused(muster.Stale, script.sync.step, "rank 1 is behind the history of 2 versions",
                "no other worker is in the job any more", "all others have left")
        try:
            script.sync.step()
        except muster.SessionLost as e:  # nor to make another Sync, which would have no state
            return str(e).endswith("The last version is in what they have saved")
        return False

    with Ranks(a, 2, work, "--policy", "backup:1", "--history", "2", "--catch-up", "4") as ranks:
        check("it is told so", ranks.ends() == [None, True])


CASES, BY_HAND = together(
    beside=(other_optimizers,), data=(same_batches, samples_by_name), ends=(left_alone,))
main(CASES, "musterd", "library", unlisted=BY_HAND)
