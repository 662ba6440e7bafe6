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
from server import SECONDS
from torch_case import Ranks, prepare, refused, together


class Script:
    """One weight, whose gradient is what the script gives, and which moves by it."""

    def __init__(self, torch, apply=None, momentum=0.0, **options):
        import muster.torch
        self.torch = torch
        self.model = torch.nn.Linear(2, 1, bias=False)
        torch.nn.init.zeros_(self.model.weight)
        self.opt = torch.optim.SGD(self.model.parameters(), 1.0, momentum)
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
    torch.optim.lr_scheduler.ExponentialLR(opts[0], 0.5)  # it wraps opt.step
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


# ---- what is given to Sync and to step() ----

def wrong_arguments(a):
    """What has another type than is wanted, or is not what it is taken for, is refused by name, and
    the loop may go on."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        nn, optim = torch.nn, torch.optim
        model = nn.Linear(2, 1)
        opt = optim.SGD(model.parameters(), 0.1)
        for given, *words in (
                ((opt, model), "model is a SGD", "torch.nn.Module"),
                ((lambda x: x, opt), "model is a function"),
                ((model, None), "opt is a NoneType"),
                ((model, optim.SGD), "opt is the class SGD"),
                ((model, [opt]), "opt is a list", "state=(get, set)"),
                ((model, opt, optim.lr_scheduler.StepLR(opt, 5)), "step is a StepLR",
                 "scheduler=schedule"),
                ((torch.jit.script(nn.Sequential(model)), opt), "torch.jit.script()", "no hooks")):
            refused(TypeError, lambda g=given: muster.torch.Sync(*g), *words)
        lbfgs = optim.LBFGS(model.parameters())
        refused(ValueError, lambda: muster.torch.Sync(model, lbfgs), "LBFGS takes a closure")
        optim.lr_scheduler.ExponentialLR(opt, 0.5)  # it wraps opt.step
        sync = muster.torch.Sync(model, opt, lambda: saves[-1]())
        saves = [opt.step]

        def loss():
            model.zero_grad()
            return model(torch.ones(1, 2)).sum()

        one = loss()
        one.backward()
        for given, *words in ((loss, "was given a function"), (one, "was given a loss"),
                              (None, "samples is None"), ("8", "samples is '8'")):
            refused(TypeError, lambda g=given: sync.step(g), *words)
        must(sync.step(torch.tensor(8)).version == 1, "a number of PyTorch is refused")
        refused(TypeError, lambda: next(sync.batches([1], until=40.0)), "until is 40.0, a float")
        refused(ValueError, lambda: next(sync.batches([1], until=0)), "until is 0")
        model.zero_grad()
        for p in model.parameters():
            p.grad, = torch.autograd.grad(loss(), [p])
        refused(RuntimeError, sync.step, "a copy", "torch.autograd.grad()", "`with sync.no_sync()`")
        with sync.no_sync():
            pass
        must(sync.step().version == 2, "they are not handed in")
        saves.append(lambda: sync.save(ranks.path("state")))
        loss().backward()
        refused(RuntimeError, sync.step, "in the function that applies a version", "in the loop")
        return True

    with Ranks(a, 1, work) as ranks:
        check("all of it is refused in words", ranks.ends() == [True])


def scripted_in_part(a):
    """Parts of a model may be those of torch.jit, and an optimiser need not be of PyTorch."""
    prepare(a)

    class Plain:
        def __init__(self, model):
            self.param_groups = [{"params": list(model.parameters()), "lr": 0.5}]

        def step(self):
            for p in self.param_groups[0]["params"]:
                p.data.sub_(p.grad, alpha=self.param_groups[0]["lr"])

        def state_dict(self):
            return {"state": {}, "param_groups": [{"params": [0], "lr": 0.5}]}

        def load_state_dict(self, state):
            pass

    def work(rank, ranks):
        import muster.torch
        import torch
        model = torch.nn.Sequential(torch.jit.script(torch.nn.BatchNorm1d(2)),
                                    torch.nn.Linear(2, 1))
        sync = muster.torch.Sync(model, Plain(model))
        before = model[1].bias.item()
        for _ in range(10):
            model.zero_grad()
            model(torch.ones(2, 2)).mean().backward()
            sync.step()
        return model[1].bias.item() - before

    with Ranks(a, 1, work) as ranks:
        moved, = ranks.ends()
        check(f"it moves by {moved}", abs(moved + 5) < 1e-3)


# ---- what a loop does to model and optimiser ----

def moments_in_the_loop(a):
    """A state of the optimiser that is loaded or cleared between versions is refused; to look at
    moments is not, nor is what the function that applies versions does."""
    prepare(a)
    import torch

    def work(rank, ranks):
        clears = []

        def apply():
            opt.step()
            if clears:
                clears.pop()
                opt.state.clear()

        script = Script(torch, apply, momentum=0.5)
        model, opt = script.model, script.opt
        opt.load_state_dict(opt.state_dict())  # before the first step all ranks do so
        script.step(1)
        kept = opt.state_dict()
        opt.load_state_dict(kept)
        refused(ValueError, lambda: script.step(1), "state of the optimiser, its moments",
                "when version 1 had been applied", "opt.load_state_dict()")
        script.sync._watch.look()  # as after a version
        clears.append(1)
        must(script.step(1).version == 2, "it does not go on")
        must(not opt.state[model.weight], "a look at moments that are not there")
        must(script.step(1).version == 3, "it is refused in apply(), or a look is")
        opt.state.clear()
        refused(ValueError, lambda: script.step(1), "when version 3 had been applied")
        return True

    with Ranks(a, 1, work) as ranks:
        check("it is refused", ranks.ends() == [True])


def parts_replaced(a):
    """A module or a parameter that takes the place of another one is no part of the job: step()
    says so. One that gets another name, or other memory, stays what it is."""
    prepare(a)

    def work(make):
        def replaces(rank, ranks):
            import torch
            import torch.nn.utils.prune
            model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
            job = make(torch, model)

            def step():
                model.zero_grad()
                model(torch.ones(1, 2)).sum().backward()
                return job.step().version

            must(step() == 1, "no version")
            kept = model[1]
            model[1] = torch.nn.Linear(2, 1)
            refused(ValueError, step, "rank 0: parameter 1.weight and 1 more", "not in it any more")
            model[1] = kept
            must(step() == 2, "it does not go on")
            bias, kept.bias = kept.bias, torch.nn.Parameter(torch.zeros(1))
            refused(ValueError, step, "parameter 1.bias,", "before that")
            kept.bias = bias
            torch.nn.utils.prune.identity(model[0], "weight")
            model[0].bias.data = model[0].bias.data.clone()
            must(step() == 3 and step() == 4, "it does not go on")
            return True
        return replaces

    def sync(torch, model):
        import muster.torch
        return muster.torch.Sync(model, torch.optim.SGD(model.parameters(), 0.1))

    def served(torch, model):
        import muster.torch
        return muster.torch.Served(model)

    for make, options in ((sync, ()), (served, ("--owner", "servers", "--optimizer", "sgd:lr=1"))):
        with Ranks(a, 1, work(make), *options) as ranks:
            check(f"{make.__name__} says so", ranks.ends() == [True])


def without_a_step(a):
    """A function that applies versions and does not call opt.step() is told of, once; one whose
    gradients are zero is not."""
    prepare(a)
    import torch

    def work(apply, factor):
        def trains(rank, ranks):
            script = Script(torch, apply and (lambda: apply(script)))
            return says(lambda: [script.step(factor) for _ in range(20)])
        return trains

    def by_hand(script):
        script.model.weight.data -= script.model.weight.grad

    for apply, factor, warned in ((None, 0, 0), (by_hand, 1, 0), (lambda script: None, 1, 1)):
        with Ranks(a, 1, work(apply, factor)) as ranks:
            said = ranks.ends()[0]
        check(f"{said}", len(said) == warned and all("has to call opt.step()" in s for s in said))


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


class Bar:
    """Such as tqdm."""

    def __init__(self, iterable):
        self.iterable = iterable

    def __iter__(self):
        return iter(self.iterable)


def passes(a):
    """A loop that leaves batches() and calls it again goes on with the epochs of its sampler; what
    is in a progress bar is seen."""
    prepare(a)
    import torch

    class Noted(torch.utils.data.DistributedSampler):
        def set_epoch(self, epoch):
            super().set_epoch(epoch)
            heard.append(epoch)

    heard = []

    def work(rank, ranks):
        script = Script(torch)
        data = [1.0] * 4
        loader = torch.utils.data.DataLoader(data, sampler=Noted(data, 2, 0))
        said = says(lambda: [list(zip(range(count), script.sync.batches(one)))
                             for count, one in ((1, loader), (5, loader), (3, Bar(loader)))])
        must(sum("gives each of 2 ranks a part" in line for line in said) == 3, said)
        return heard

    with Ranks(a, 1, work) as ranks:
        check("each pass is another epoch", ranks.ends() == [[0, 1, 2, 3, 4, 5]])

    def other(rank, ranks):
        import muster.torch
        script = Script(torch, sampler=muster.torch.Sampler(4, 1))
        loader = torch.utils.data.DataLoader([1.0] * 4,
                                             batch_sampler=muster.torch.Sampler(4, 1, seed=2))
        refused(ValueError, lambda: script.sync.batches(Bar(loader)), "must be the one of Sync")
        return True

    with Ranks(a, 1, other) as ranks:
        check("another sampler is refused", ranks.ends() == [True])


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


def two_momenta(a):
    """A momentum comes on top of that of old gradients. kasync:2 of 2 counts none."""
    prepare(a)

    def work(rank, ranks, momentum):
        import muster.torch
        import torch
        model = torch.nn.Linear(4, 1)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            sync = muster.torch.Sync(
                model, torch.optim.SGD(model.parameters(), 0.1, momentum=momentum))
        sync.close()
        return [str(w.message) for w in said if "a momentum of 0.9" in str(w.message)]

    for policy, momentum, wanted in (("kasync:1", 0.9, 1), ("kasync:1", 0.0, 0),
                                     ("kasync:2", 0.9, 0)):
        with Ranks(a, 2, lambda rank, ranks, m=momentum: work(rank, ranks, m), "--policy",
                   policy) as ranks:
            ends = ranks.ends()
        check(f"{policy}, momentum {momentum}: {wanted} warning in each rank",
              all(len(said) == wanted for said in ends))


def saves_after_finish(a):
    """A loop that calls finish() and leaves has not the last version yet; save() says so until it
    has."""
    prepare(a)
    import torch

    def work(rank, ranks):
        script = Script(torch)
        path, told = ranks.path("state"), "after finish(), and this may not be the last"
        script.step(1)
        must(says(lambda: script.sync.save(path)) == [], "it warns in the middle")
        script.sync.finish("enough")
        said = says(lambda: script.sync.save(path))
        must(len(said) == 1 and told in said[0] and "rank 0 saves version 1" in said[0], said)
        while not script.sync.finished:
            script.step(1)
        must(says(lambda: script.sync.save(path)) == [], "it warns of the last version")
        return True

    with Ranks(a, 1, work) as ranks:
        check("it says so", ranks.ends() == [True])


def goes_on_after_the_end(a):
    """A loop that goes on is told, by step() once, and by batches() before it could go on for
    ever."""
    prepare(a)
    import torch

    def work(make):
        def loops(rank, ranks):
            model = torch.nn.Linear(2, 1)
            job = make(model)
            loader = [torch.ones(1, 2)]
            for x in job.batches(loader, until=3):
                model.zero_grad()
                model(x).sum().backward()
                job.step()
            must(says(job.step) == [], "one step more is told of")
            said = says(lambda: [job.step() for _ in range(10)])
            must(len(said) == 1 and "ended with version 3, so step() does nothing" in said[0], said)

            def for_ever():
                while True:
                    for _ in job.batches(loader):
                        must(False, "there is a batch")

            must(len(says(lambda: [list(job.batches(loader)) for _ in range(1000)])) > 0, "no word")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                refused(RuntimeError, for_ever, "ended with version 3", "never ends")
            return True
        return loops

    def sync(model):
        import muster.torch
        return muster.torch.Sync(model, torch.optim.SGD(model.parameters(), 0.1))

    def served(model):
        import muster.torch
        return muster.torch.Served(model)

    for make, options in ((sync, ()), (served, ("--owner", "servers", "--optimizer", "sgd:lr=1"))):
        with Ranks(a, 1, work(make), *options) as ranks:
            check(f"{make.__name__} says so", ranks.ends() == [True])


# ---- what the function uses ----

def the_function_uses_what_no_state_has(a):
    """A rank that takes a state would keep its own: said once, by name. What Sync has been given,
    what is a part of the model, and what a state of the program's own may have, is not."""
    prepare(a)
    import torch
    ema, shadow = torch.nn.Linear(2, 1), {"weight": torch.zeros(1)}

    def averages():
        shadow["weight"] += 1

    def with_module(opt, schedule, model):
        return lambda: (opt.step(), ema.weight.data.add_(1)), {}

    def with_dict(opt, schedule, model):
        return lambda: (opt.step(), averages()), {}

    def with_schedule(opt, schedule, model):
        return lambda: (opt.step(), schedule.step()), {}

    def with_all_given(opt, schedule, model):
        drop = torch.nn.Dropout(0.1)
        return lambda: (opt.step(), schedule.step(), drop(model.weight)), {"scheduler": schedule}

    def with_state(opt, schedule, model):
        return lambda: (opt.step(), ema.weight.data.add_(1)), {
            "state": (lambda: {"ema": ema.state_dict()}, lambda tree: None)}

    class Slotted:
        __slots__ = ("opt",)

        def apply(self):
            self.opt.step()

    def with_slots(opt, schedule, model):
        own = Slotted()
        own.opt = opt
        return own.apply, {}

    def as_an_error(rank, _):
        """Where the program wants warnings to be errors, the loop can go on after this one."""
        script = Script(torch, lambda: (script.opt.step(), averages()))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            refused(RuntimeWarning, lambda: script.step(1.0), "uses shadow, with")
            script.sync.step()
            script.step(1.0)
        must(script.sync.version == 2, script.sync.version)
        script.sync.close()

    with Ranks(a, 1, as_an_error, "--policy", "bsp") as ranks:
        ranks.end(0)
    for make, words in ((with_module, "uses ema, with tensors"), (with_dict, "uses shadow, with"),
                        (with_schedule, "moves schedule, a StepLR"), (with_all_given, None),
                        (with_state, None), (with_slots, None)):
        def work(rank, _):
            import muster.torch
            model = torch.nn.Linear(2, 1, bias=False)
            opt = torch.optim.SGD(model.parameters(), 1.0)
            apply, given = make(opt, torch.optim.lr_scheduler.StepLR(opt, 100), model)
            sync = muster.torch.Sync(model, opt, apply, **given)

            def steps():
                for _ in range(2):
                    opt.zero_grad()
                    model(torch.ones(1, 2)).sum().backward()
                    sync.step()

            said = says(steps)
            sync.close()
            return said

        with Ranks(a, 1, work, "--policy", "bsp") as ranks:
            said = ranks.end(0)
        check(f"{make.__name__}: {said}", len(said) == (words is not None)
              and (words or "") in "".join(said))


def leaves_at_versions_of_their_own(a):
    """As loops over epochs do that were kept. With the same version the job has ended well."""
    prepare(a)
    for steps, status in ((5, 5), 0), ((5, 9), 3):
        def work(rank, _):
            import torch
            script = Script(torch)
            for _ in range(steps[rank]):
                script.step(1.0 + rank)
            script.sync.close()

        with Ranks(a, 2, work, "--policy", "bsp") as ranks:
            ranks.ends()
            check(f"{steps}: the status is {status}", ranks.server.end(SECONDS)[0] == status)
            must(status == 0 or "the ranks have not ended with the same state: rank 0 left at "
                 "version 5; the job ended at version 9" in ranks.server.said(),
                 ranks.server.said())


CASES, BY_HAND = together(
    beside=(other_optimizers, moments_in_the_loop, parts_replaced, without_a_step),
    given=(wrong_arguments, scripted_in_part, two_momenta),
    data=(same_batches, passes, samples_by_name),
    function=(the_function_uses_what_no_state_has,),
    ends=(left_alone, saves_after_finish, goes_on_after_the_end, leaves_at_versions_of_their_own))
main(CASES, "musterd", "library", unlisted=BY_HAND)
