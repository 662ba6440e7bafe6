#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How a Sync and a Served end: with their job, dropped by the program, closed, or with a session
that is lost.

usage: torch_ends.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_ends.py --list
"""
import errno
import gc
import os
import subprocess
import sys
import warnings
import weakref

from base import HANG_S, check, main, must, until
from torch_case import PACKAGE, Ranks, joined, prepare, refused, together
from torch_training import FAR

SERVERS = ("--owner", "servers", "--optimizer", "sgd:lr=0.1,momentum=0")


def stays(make):
    """A rank of that kind that makes steps until the other one is done."""
    def work(rank, ranks):
        import torch
        model = torch.nn.Linear(4, 1)
        with make(model) as job:
            while not os.path.exists(ranks.path("done")):
                model.zero_grad()
                model(torch.ones(1, 4)).sum().backward()
                job.step()
    return work


def sync_of(model, **options):
    import muster.torch
    import torch
    return muster.torch.Sync(model, torch.optim.SGD(model.parameters(), 0.1), **options)


def sync_apart(model, **options):
    """Beside one that scales its rate, and so has other parameters."""
    return sync_of(model, on_difference="warn", **options)


def served_of(model, **options):
    import muster.torch
    return muster.torch.Served(model, **options)


def in_ddp(model):
    import muster.torch
    import torch
    return torch.nn.parallel.DistributedDataParallel(model, process_group=muster.torch.alone())


def hooks_of(model):
    """How many there are on a model and its parameters."""
    some = len(model._forward_pre_hooks)
    for p in model.parameters():
        some += len(getattr(p, "_post_accumulate_grad_hooks", None) or ())
    return some


def is_dropped(muster, model, make, use):
    """Joins, makes a step, and drops what it has joined with: nobody waits for it then."""
    import torch
    before = hooks_of(model)
    job = joined(muster, lambda: make(model))
    use(job)
    model.zero_grad()
    (model(torch.ones(1, 4)) * float("nan")).sum().backward()
    refused(muster.NotFinite, job.step, "NaN")
    model.zero_grad()
    model(torch.ones(1, 4)).sum().backward()
    job.step()
    alive, worker = weakref.ref(job), job.worker
    del job
    must(alive() is None, "something holds it")
    must("closed" in repr(worker), "its worker is", worker)
    must(hooks_of(model) == before, f"{hooks_of(model)} hooks are left")
    model.zero_grad()
    model(torch.ones(1, 4)).sum().backward()  # whatever is left of it would be called
    with torch.no_grad():
        for p in model.parameters():
            p.add_(p.grad)  # memory of the model's own


def dropped(a):
    """Is gone at once, without the collector: its worker has left the job, and model and optimiser
    are as before. The same model joins again each time, while another rank goes on."""
    prepare(a)

    def nothing(job):
        pass

    def syncs(rank, ranks):
        import muster
        import torch
        gc.disable()
        model = torch.nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), 0.1)
        plain = opt.step
        ways = ((model, {}), (model, {"lr_scale": True}), (in_ddp(model), {"lr_scale": True}))
        for module, options in ways:
            is_dropped(muster, module, lambda m, o=options: muster.torch.Sync(
                m, opt, on_difference="warn", **o), nothing)
            must(opt.step == plain and "step" not in vars(opt), f"{options}: opt.step is", opt.step)

        def scheduled(_):
            torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)  # it wraps opt.step once more

        is_dropped(muster, model, lambda m: muster.torch.Sync(
            m, opt, on_difference="warn", lr_scale=True), scheduled)
        opt.step()
        ranks.tell("done")

    with Ranks(a, 2, lambda rank, ranks: (stays(sync_apart) if rank else syncs)(rank, ranks),
               *FAR) as ranks:
        ranks.ends()

    def served(rank, ranks):
        import muster
        import torch
        gc.disable()
        model = torch.nn.Linear(4, 1)
        for module, copy in ((model, True), (model, False), (in_ddp(model), True)):
            is_dropped(muster, module, lambda m, c=copy: served_of(m, copy=c), nothing)
        ranks.tell("done")

    with Ranks(a, 2, lambda rank, ranks: (stays(served_of) if rank else served)(rank, ranks),
               *SERVERS, "--min-workers", "1") as ranks:
        ranks.ends()
    check("seven were dropped, and another rank has gone on", True)


def lost_while_a_view_is_kept(a):
    """Served(copy=False): the error that has ended the session is the one that arrives, and not
    that something reads the parameters. When that is dropped, the worker leaves, too."""
    prepare(a)

    def work(kind, code, *remedy):
        def loses(rank, ranks):
            import muster
            import torch
            error = getattr(muster, kind)
            model = torch.nn.Linear(4, 1)
            served = served_of(model, copy=False)

            def lost(_):
                raise error(code, "rank 0: the server went away")

            kept, before = model.weight.detach(), model.weight.detach().clone()
            served.worker.push_ranges = lost
            model(torch.ones(1, 4)).sum().backward()
            refused(error, served.step, "the server went away")
            must(torch.equal(kept, before), "what was kept has changed")
            refused(muster.SessionLost, served.step, "rank 0: this Served has left the job",
                    "the server went away", *remedy)
            with torch.no_grad():
                model.weight.add_(1)  # memory of the model's own
            refused(BufferError, served.close, "copy what is to be kept")
            must("closed" not in repr(served.worker), "memory that is read was given back")
            del kept
            served.close()
            must("closed" in repr(served.worker), "close() has not closed", served.worker)
        return loses

    for how in (("SessionLost", errno.ENOTCONN, "another Served"),
                ("JobFailed", errno.EHOSTDOWN)):
        with Ranks(a, 1, work(*how), *SERVERS) as ranks:
            ranks.ends()

    def in_a_with(rank, ranks):
        import muster
        import torch
        model, kept = torch.nn.Linear(4, 1), []

        def lost(_):
            raise muster.SessionLost(errno.ENOTCONN, "rank 0: the server went away")

        def within():
            with served_of(model, copy=False) as served:
                kept.append(model.weight.detach())
                served.worker.push_ranges = lost
                model(torch.ones(1, 4)).sum().backward()
                served.step()

        refused(muster.SessionLost, within, "the server went away")

    with Ranks(a, 1, in_a_with, *SERVERS) as ranks:
        ranks.ends()


def used_after_close(a):
    """step() says that this rank has left, why, and what goes on with the model."""
    prepare(a)

    def work(make, *words):
        def used(rank, ranks):
            import muster
            import torch
            model = torch.nn.Linear(4, 1)
            with make(model) as job:
                model(torch.ones(1, 4)).sum().backward()
                job.step()
            for _ in range(2):
                refused(muster.SessionLost, job.step, "rank 0", "has left the job", "version 1",
                        "close() was called", *words)
                model(torch.ones(1, 4)).sum().backward()
            job.close()
            refused(muster.SessionLost, job.worker.pull, "has been closed", "make another one")
        return used

    with Ranks(a, 1, work(sync_of, "another Sync", "optimiser", "state of another rank")) as ranks:
        ranks.ends()
    with Ranks(a, 1, work(served_of, "another Served", "newest"), *SERVERS) as ranks:
        ranks.ends()


def refused_for_other_reasons(a):
    """What has to be the same in all ranks is told where a model or a sampler differs, and not
    where the server's address or the rank is wrong."""
    prepare(a)

    def work(rank, ranks):
        import muster
        import muster.torch
        import torch
        model, hint = torch.nn.Linear(4, 1), "these are the parameters"

        def told(make):
            try:
                make()
            except muster.InvalidArgument as e:
                print(e)
                return str(e)
            must(False, "it was not refused")

        for make in (sync_of, served_of):
            for options, words in (({"server": "17077"}, "is not HOST:PORT"),
                                   ({"rank": -7}, "options.rank is -7"),
                                   ({"rank": 12, "server": ranks.server.address}, "rank 12")):
                said = told(lambda m=make, o=options: m(model, **o))
                must(words in said and hint not in said, "it says:", said)
        must(until(lambda: "rank 1 joined" in ranks.server.said(), HANG_S), "no rank 1")
        for other in (torch.nn.Linear(5, 1), torch.nn.Bilinear(2, 1, 1)):
            said = told(lambda o=other: sync_of(o))
            must(hint in said and "sampler" in said, "it says:", said)
        with sync_of(model):
            ranks.tell("done")

    with Ranks(a, 2, lambda rank, ranks: (stays(sync_of) if rank else work)(rank, ranks),
               *FAR) as ranks:
        ranks.ends()


LONG = "layers_" * 35  # a name with 245 bytes; it may have 255


def with_form(torch, kernel=(1, 3), bias=None, mask=None, name=LONG, shape=(2,)):
    """A model with a frozen parameter and a buffer."""
    nn = torch.nn
    model = nn.Module()
    model.conv = nn.Conv2d(1, 2, kernel)
    model.conv.bias = nn.Parameter(torch.zeros(2) if bias is None else bias, requires_grad=False)
    model.register_parameter(name, nn.Parameter(torch.ones(shape)))
    model.register_buffer("mask", torch.zeros(2, 4) if mask is None else mask)
    return model


def other_shapes(a):
    """Ranks whose tensors have as many elements, but another shape or type, are refused: which
    tensor, by name, and both shapes. Names of parameters stay what they are."""
    prepare(a)
    import torch
    others = (({"kernel": (3, 1)}, "shape 2x1x3x1: conv.weight", "shape 2x1x1x3: conv.weight"),
              ({"mask": torch.zeros(4, 2)}, "float32 4x2: mask", "float32 2x4: mask"),
              ({"mask": torch.zeros(2, 4, dtype=torch.int32)},
               "int32 2x4: mask", "float32 2x4: mask"),
              ({"bias": torch.zeros(1, dtype=torch.int64)},
               "int64 1: conv.bias", "float32 2: conv.bias"),
              ({"shape": (2, 1)}, "shape 2x1: ", "shape 2: layers_layers_"))

    def joins(make):
        def work(rank, ranks):
            import muster
            if rank == 1:
                must(until(lambda: "rank 0 joined" in ranks.server.said(), HANG_S), "no rank 0")
                for other, *words in others:
                    refused(muster.InvalidArgument, lambda o=other: make(with_form(torch, **o)),
                            *words, "at rank 1", "at rank 0", "shapes and types")
            with make(with_form(torch)) as job:
                return [name for name, *_ in job._layout.table()][:4]
        return work

    for make, options in ((sync_of, ()), (served_of, SERVERS)):
        with Ranks(a, 2, joins(make), *options) as ranks:
            names = ranks.ends()
        check(f"{make.__name__}: five were refused, and the sixth joins", names[0] == names[1])
        must(names[0] == [LONG, "conv.weight", "conv.bias", "mask"], names[0])


LEFT_OPEN = """
import torch, muster.torch
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
sync = muster.torch.Sync(model, torch.optim.SGD(model.parameters(), 0.1))
model(torch.ones(1, 4)).sum().backward()
print(sync.step().version)
"""


def left_open(a):
    """A Sync of a program's own module that is not closed says nothing when the program ends."""
    prepare(a)
    with Ranks(a, 1, None) as ranks:
        done = subprocess.run([sys.executable, "-c", LEFT_OPEN], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=3 * HANG_S,
                              env=dict(os.environ, MUSTER_SERVER=ranks.server.address,
                                       MUSTER_RANK="0", PYTHONPATH=PACKAGE))
    check(f"it ends quietly: {done}",
          (done.returncode, done.stdout) == (0, "1\n") and "muster" not in done.stderr
          and "Exception" not in done.stderr)


def trains_until(make, until, loader=None):
    """The version at the end, whether it is the last, and the warnings. With an optimiser of its
    own the rank has a schedule that raises an error when it is asked for one step more."""
    import torch
    model = torch.nn.Linear(2, 1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        job = make(model, until)
        for x in job.batches(loader or [torch.ones(3, 2)] * 2, until=until):
            model.zero_grad()
            model(x).sum().backward()
            job.step()
    return job.version, job.complete, [str(w.message) for w in said]


def with_schedule(steps):
    """A Sync that can apply so many versions."""
    def make(model, until):
        import muster.torch
        import torch
        opt = torch.optim.SGD(model.parameters(), 0.1)
        schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 0.2, total_steps=steps)

        def apply():
            opt.step()
            schedule.step()

        return muster.torch.Sync(model, opt, apply, scheduler=schedule)
    return make


def until_a_version(a):
    """batches(until=N) ends the job with version N, which is the last that any rank applies, also
    where ranks do not wait for each other. The least counts, and who has given more is told."""
    prepare(a)

    def served(model, until):
        return served_of(model)

    for make, untils, options in ((with_schedule(5), (5, 5), ()), (with_schedule(1), (1, 1), ()),
                                  (with_schedule(5), (5, 5), ("--policy", "backup:1")),
                                  (with_schedule(4), (9, 4), ()),
                                  (with_schedule(3), (9, 9), ("--commits", "3")),
                                  (served, (5, 5), SERVERS)):
        least = min(*untils, *(int(o) for o in options if o.isdigit()))
        with Ranks(a, 2, lambda rank, ranks, m=make, u=untils: trains_until(m, u[rank]),
                   *options) as ranks:
            ends = ranks.ends()
            said = ranks.server.said()
        check(f"until {untils} {options}: {ends}",
              [end[:2] for end in ends] == [(least, True)] * 2)
        warned = [f"until=9, and the job ends with version {least}" in " ".join(end[2])
                  for end in ends]
        if "--commits" in options:
            must(warned == [True, True] and "(--commits): the least counts" in said, warned, said)
        elif untils == (9, 4):
            must(not warned[1] and ": the least counts" in said, warned, said)
        else:
            must("the least counts" not in said and f"version {least} is made" in said, said)


def until_is_an_operators(a):
    """A rank that may not end the job is told so when it begins, and not when it has trained."""
    prepare(a)

    def work(rank, ranks):
        import muster
        refused(muster.Error, lambda: trains_until(with_schedule(9), 5), "--finish operator",
                "give musterd --commits 5 instead")

    with Ranks(a, 1, work, "--finish", "operator") as ranks:
        ranks.ends()


def loaders_of_one_use(a):
    """A generator is used up after an epoch: that is said when the loop begins, and again when it
    is used up. One that never ends is as good as a list."""
    prepare(a)

    def work(rank, ranks):
        import itertools
        import torch
        one = torch.ones(3, 2)
        version, _, said = trains_until(with_schedule(4), 4, itertools.cycle([one]))
        must(version == 4 and not said, version, said)
        ranks.tell("first")
        return True

    def used_up(rank, ranks):
        import torch
        told = []

        def trains():
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                try:
                    trains_until(with_schedule(9), 9, (torch.ones(3, 2) for _ in range(3)))
                finally:
                    told.extend(str(w.message) for w in said)

        refused(TypeError, trains, "at version 3 of the job the generator", "after 3 batches",
                "the DataLoader or a list")
        return told

    class Once(list):
        def __iter__(self):
            while self:
                yield self.pop()

    def has_no_more(rank, ranks):
        import torch
        refused(ValueError, lambda: trains_until(
            with_schedule(9), 9, Once([torch.ones(3, 2)] * 3)),
            "the loader has no batch any more", "gone over it 1 times", "Once")

    def in_parts(rank, ranks):
        import torch
        data = torch.utils.data.TensorDataset(torch.ones(12, 2))
        parts = torch.utils.data.DistributedSampler(data, num_replicas=4, rank=0)
        loader = torch.utils.data.DataLoader(data, batch_size=3, sampler=parts,
                                             collate_fn=lambda rows: torch.stack(
                                                 [row[0] for row in rows]))
        version, _, said = trains_until(with_schedule(2), 2, loader)
        must(version == 2 and len(said) == 1 and "DistributedSampler gives each of 4 ranks a part"
             in said[0], said)

    for one in (work, used_up, has_no_more, in_parts):
        with Ranks(a, 1, one) as ranks:
            print(ranks.ends())


def share_that_hardly_counts(a):
    """A rank that is late all the time is warned once that its samples are in no version."""
    prepare(a)

    def work(rank, ranks):
        import torch
        model = torch.nn.Linear(2, 1)
        job = sync_of(model)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for x in job.batches([torch.ones(3, 2)] * 2):
                model.zero_grad()
                model(x).sum().backward()
                if rank == 2 and job.version < 60:
                    ranks.hear(f"made.{job.version // 10 * 10 + 10}")
                job.step(samples=3)
                for version in range(0, job.version + 1, 10):
                    ranks.tell(("made", "any", "seen")[rank] + f".{version}")
                if rank == 0 and job.version >= 20:  # else rank 2 would take a state
                    ranks.hear(f"seen.{job.version // 10 * 10 - 20}")
                if rank == 2 and job.version >= 60:
                    job.finish("enough")
        return [str(w.message) for w in said if "hardly learnt" in str(w.message)]

    with Ranks(a, 3, work, "--policy", "backup:2") as ranks:
        said = ranks.ends()
    check(f"{said}", not said[0] and not said[1] and len(said[2]) == 1
          and said[2][0].startswith("rank 2: of the samples in the last "))


CASES, BY_HAND = together(
    all_ends=(until_a_version, until_is_an_operators, loaders_of_one_use,
              share_that_hardly_counts, dropped, lost_while_a_view_is_kept, used_after_close,
              refused_for_other_reasons, other_shapes, left_open))
main(CASES, "musterd", "library", unlisted=BY_HAND)
