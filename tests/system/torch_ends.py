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
            is_dropped(muster, module, lambda m, o=options: muster.torch.Sync(m, opt, **o), nothing)
            must(opt.step == plain and "step" not in vars(opt), f"{options}: opt.step is", opt.step)

        def scheduled(_):
            torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)  # it wraps opt.step once more

        is_dropped(muster, model, lambda m: muster.torch.Sync(m, opt, lr_scale=True), scheduled)
        opt.step()
        ranks.tell("done")

    with Ranks(a, 2, lambda rank, ranks: (stays(sync_of) if rank else syncs)(rank, ranks),
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
            for options, words in (({"server": "nowhere"}, "is not HOST:PORT"),
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


def until_a_version(a):
    """batches(until=5) ends the job for both ranks, also where the server does not hear of it at
    first."""
    prepare(a)

    def work(make):
        import muster
        import torch
        model = torch.nn.Linear(2, 1)
        job = make(model)
        finish, asked = job.worker.finish, []

        def busy_at_first(why):
            asked.append(job.version)
            if len(asked) == 1:
                raise muster.Busy(errno.EAGAIN, "the control connection is busy")
            finish(why)

        job.worker.finish = busy_at_first
        for x in job.batches([torch.ones(3, 2)] * 2, until=5):
            model.zero_grad()
            model(x).sum().backward()
            job.step()
        return job.version, asked

    for make, options in ((sync_of, ()), (served_of, SERVERS)):
        with Ranks(a, 2, lambda rank, ranks, m=make: work(m), *options) as ranks:
            (last, asked), (other, too) = ranks.ends()
            check(f"{make.__name__}: both end with version {last}; they asked at {asked} and {too}",
                  last == other and last in (6, 7) and [5, 6] in (asked, too)
                  and all(versions in ([5], [5, 6]) for versions in (asked, too)))
            must("version 5 has come" in ranks.server.said(), ranks.server.said())


CASES, BY_HAND = together(
    all_ends=(until_a_version, dropped, lost_while_a_view_is_kept, used_after_close,
              refused_for_other_reasons, other_shapes, left_open))
main(CASES, "musterd", "library", unlisted=BY_HAND)
