#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster.torch.Served in whole jobs of several ranks, whose servers have the optimiser.

usage: torch_served.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_served.py --list
"""
import errno
import os
import signal
import sys
import zlib

from base import check, main, must
from torch_case import PACKAGE, Ranks, joined, prepare, refused, together

SERVERS = ("--owner", "servers", "--optimizer", "sgd:lr=0.1,momentum=0.9")
STEPS = 25


def digits_of(seed, torch):
    """The network of the example, with a frozen parameter and a buffer that is not a number."""
    sys.path.insert(0, os.path.join(os.path.dirname(PACKAGE), "python", "examples"))
    import digits_cnn
    torch.manual_seed(seed)
    model = digits_cnn.network()
    model[0].bias.requires_grad_(False)
    model.register_buffer("mask", torch.tensor([float("-inf"), seed]))
    return model, digits_cnn.Digits(64 * STEPS, seed=1)


def batch_of(data, rank, step, torch):
    images, digits = zip(*(data[(4 * step + rank) * 16 + i] for i in range(16)))
    return torch.stack(images), torch.tensor(digits)


def backward(model, batch, torch):
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()


def digest(model):
    so_far = 0
    for p in model.parameters():
        so_far = zlib.crc32(p.detach().numpy().tobytes(), so_far)
    return so_far


def halves_for_biases(name, _):
    """(lr_scale, decay_scale)"""
    return (0.5 if name.endswith("bias") else 1.0, 1.0)


def plainly(model, data, torch):
    """The parameters after each step of torch's own SGD with the mean of all ranks' gradients."""
    weights = [p for n, p in model.named_parameters() if p.requires_grad and "bias" not in n]
    biases = [p for n, p in model.named_parameters() if p.requires_grad and "bias" in n]
    opt = torch.optim.SGD([{"params": weights}, {"params": biases, "lr": 0.05}], 0.1, momentum=0.9)
    for step in range(STEPS):
        opt.zero_grad()
        for rank in range(4):
            x, y = batch_of(data, rank, step, torch)
            (torch.nn.functional.cross_entropy(model(x), y) / 4).backward()
        opt.step()
        yield [p.detach().clone() for p in model.parameters()]


def like_plain_sgd(a):
    """Four ranks, some with copies and some with views, one of them in DistributedDataParallel:
    the same bits at every version, those of plain SGD but for the order of the sums."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        model, data = digits_of(rank, torch)
        wrapped = model
        if rank == 1:
            wrapped = torch.nn.parallel.DistributedDataParallel(
                model, process_group=muster.torch.alone())
        digests, all_versions = [], []
        with muster.torch.Served(wrapped, copy=rank < 2, scale=halves_for_biases) as served:
            digests.append((digest(model), *model.mask.tolist()))
            for step in range(STEPS):
                backward(wrapped, batch_of(data, rank, step, torch), torch)
                done = served.step(samples=16)
                must(done[:3] == (1, step + 1, 0) and len(done.set) == 4, done)
                digests.append(digest(model))
                if rank == 3:
                    all_versions.append([p.detach().clone() for p in model.parameters()])
        must(digest(model) == digests[-1], "close() has changed the parameters")
        with torch.no_grad():
            model[0].weight.add_(1)  # its own memory again
        worst = 0.0
        if rank == 3:
            for mine, plain in zip(all_versions, plainly(digits_of(0, torch)[0], data, torch)):
                worst = max(worst, *((m - p).abs().max().item() for m, p in zip(mine, plain)))
        return digests, worst

    with Ranks(a, 4, work, *SERVERS) as ranks:
        said = ranks.ends()
    digests = said[0][0]
    check("all begin as the lowest rank", digests[0][1:] == (float("-inf"), 0.0))
    check(f"{STEPS} versions, the same bits in all ranks", all(d == digests for d, _ in said)
          and len(set(digests)) == STEPS + 1)
    check(f"which differ by {said[3][1]:.2g} at most from plain SGD", 0 <= said[3][1] < 1e-5)


def slow_rank(a):
    """Rank 3 comes to each of its steps when others have made five versions more: it takes the
    newest, and has had the same bits as they in each that it has."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        torch.manual_seed(rank)
        model = torch.nn.Linear(8, 4)
        served = muster.torch.Served(model, copy=rank != 3)
        digests, verdicts, missed = {0: digest(model)}, [], []
        draw = torch.Generator().manual_seed(rank)
        for x in served.batches(torch.utils.data.DataLoader(
                torch.randn(80, 8, generator=draw), batch_size=5)):
            for micro in range(2):
                with served.no_sync() if micro == 0 else torch.enable_grad():
                    model(x).square().mean().backward()
            if rank == 3:
                ranks.hear(f"version.{min(served.version + 5, 40)}")
            done = served.step(samples=5)
            model.zero_grad()
            digests[done.version] = digest(model)
            if rank == 3 or done.version <= 40 and not served.finished:  # else rank 3 may be in
                verdicts.append(done.verdict.name)                       # time, or the job over
            missed.append(done.missed)
            if rank == 0:
                if done.version >= 40:  # before rank 3 hears of it
                    served.finish("enough")
                for version in range(done.version - done.missed, done.version + 1):
                    ranks.tell(f"version.{version}")
        must(served.step() == (0, served.version, 0, ()), "a step after the end")
        served.close()
        return digests, verdicts, missed

    with Ranks(a, 4, work, *SERVERS, "--policy", "backup:3") as ranks:
        said = ranks.ends()
    bits = {}
    for digests, _, _ in said:
        for version, one in digests.items():
            must(bits.setdefault(version, one) == one, "version", version, "differs")
    must(len(set(bits.values())) == len(bits) >= 40, f"{len(bits)} versions")
    check(f"it took {len(said[3][0])} versions of {len(bits)}: {said[3][2]} missed",
          max(said[3][2]) >= 4)
    check(f"{said[3][1]}", "LATE" in said[3][1])
    counts = {v for _, verdicts, _ in said[:3] for v in verdicts}
    check(f"all gradients of the others have counted: {counts}", counts == {"COUNTED"})


def asynchronously(a):
    """async: each gradient is a version, and counts whatever it was computed on."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        model = torch.nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            model.weight.fill_(1.0)
        served = muster.torch.Served(model, copy=rank == 0)
        for _ in range(10):
            model.zero_grad()
            model(torch.ones(1, 1)).sum().backward()  # a gradient of 1, whatever the weight is
            done = served.step()
            must(done.verdict.name == "COUNTED", done)
            must(abs(model.weight.item() - (1 - 0.25 * done.version)) < 1e-6, model.weight, done)
        served.close()
        return done.version

    with Ranks(a, 2, work, "--owner", "servers", "--optimizer", "sgd:lr=0.25,momentum=0",
               "--policy", "async", "--lr-scale", "none") as ranks:
        check("20 gradients are 20 versions", max(ranks.ends()) == 20)


def mistakes(a):
    """In words; a step after them is like any other."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        nn, Served = torch.nn, muster.torch.Served
        model = nn.Linear(3, 2)
        refused(muster.InvalidArgument, lambda: muster.torch.Sync(
            model, torch.optim.SGD(model.parameters(), 0.1)),
            "--owner workers", "muster.torch.Served")
        refused(TypeError, lambda: Served(nn.Linear(2, 2).double()), "weight", "float64")
        refused(TypeError, lambda: Served(nn.Linear(2, 2, device="meta")), "weight", "meta")
        refused(ValueError, lambda: Served(nn.Linear(2, 2), wire="int8"), "int8", "bf16")
        refused(muster.InvalidArgument, lambda: Served(model, scale=lambda *_: (-1, 1)), "weight")
        with torch.no_grad():
            model.weight.fill_(float("nan"))
        refused(muster.NotFinite, lambda: Served(model), "weight")
        model.reset_parameters()

        served = Served(model, copy=False)
        sampler = muster.torch.Sampler(8, 2)
        refused(ValueError, lambda: next(served.batches(torch.utils.data.DataLoader(
            range(8), batch_sampler=sampler))), "sampler of PyTorch")
        refused(RuntimeError, served.step, "without a backward()")
        x = torch.ones(4, 3)
        model(x).sum().backward()
        refused(RuntimeError, lambda: model(x).sum().backward(), "twice", "no_sync()")
        served.step()
        model.zero_grad()
        (model(x) * float("inf")).sum().backward()
        refused(muster.NotFinite, served.step, "infinite")
        model.zero_grad()
        model(x).sum().backward()
        kept = model.weight.detach()
        before = kept.clone()
        for _ in range(2):
            refused(BufferError, served.step, "version 1", "p.detach()")
            must(torch.equal(model.weight, before), "the parameters are no more what they were")
        del kept
        waits, seen = served.worker.wait, []

        def wait():
            seen.append([p.detach().isnan().all().item() for p in model.parameters()])
            if len(seen) == 1:
                raise KeyboardInterrupt
            return waits()

        served.worker.wait = wait
        refused(KeyboardInterrupt, served.step)
        done = served.step()
        must(len(seen) > 1 and all(map(all, seen)), "while a step waits, parameters are", seen)
        del served.worker.wait
        must(done.version == 2 and done.verdict.name == "COUNTED", done)
        # Momentum: 0.1 x 4 of the first step, and 0.1 x (4 + 0.9 x 4) of the second.
        moved = (before - model.weight.detach()).flatten().tolist()
        must(all(abs(m - 0.76) < 1e-5 for m in moved), f"{moved} is not 0.76")
        with torch.no_grad():
            ranks.tell("about to write")
            model.weight.add_(1)
        return None

    with Ranks(a, 1, work, *SERVERS) as ranks:
        status = ranks.waited(0)
        check(f"writing to a view ends the process: {status}", os.WIFSIGNALED(status)
              and os.WTERMSIG(status) == signal.SIGSEGV
              and os.path.exists(ranks.path("about to write")))

    def in_a_job_of_workers(rank, ranks):
        import muster.torch
        import torch
        refused(muster.InvalidArgument, lambda: muster.torch.Served(torch.nn.Linear(3, 2)),
                "--owner servers", "muster.torch.Sync")

    with Ranks(a, 1, in_a_job_of_workers) as ranks:
        ranks.ends()

    def with_local_steps(rank, ranks):
        import muster.torch
        import torch
        refused(ValueError, lambda: muster.torch.Served(torch.nn.Linear(3, 2)),
                "local, easgd", "--policy")

    with Ranks(a, 1, with_local_steps, "--owner", "servers", "--policy", "local:4") as ranks:
        ranks.ends()


def two_and_anew(a):
    """Two in one process, of two jobs; one loses its job, in which another rank stays, and comes
    back with what that has become."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        models = [torch.nn.Linear(2, 1), torch.nn.Linear(5, 3)]
        for model in models:
            torch.nn.init.zeros_(model.weight)
        where = ranks.server.address, ranks.other
        both = [muster.torch.Served(model, copy=False, server=address)
                for model, address in zip(models, where)]

        def step(model, served):
            model.zero_grad()
            model(torch.ones(1, model.in_features)).sum().backward()
            served.step()

        for _ in range(3):
            step(models[0], both[0])
            step(models[1], both[1])
        must(both[0].version >= both[1].version == 3, "versions")
        weight = models[0].weight.detach().clone()
        models[0](torch.ones(1, 2)).sum().backward()
        refused(ValueError, lambda: both[0].step(samples=0), "samples is 0")
        must(torch.equal(models[0].weight, weight), "a step that is refused has spoilt the model")
        both[0].step()
        models[0].zero_grad()
        waits = both[0].worker.wait

        def lost():
            waits()
            raise muster.SessionLost(errno.ENOTCONN, "as if it were lost")

        both[0].worker.wait = lost
        models[0](torch.ones(1, 2)).sum().backward()
        refused(muster.SessionLost, both[0].step, "as if")
        must(models[0].weight.isnan().all().item(), "not NaN")
        again = joined(muster, lambda: muster.torch.Served(models[0], copy=False))
        must(again.version >= 4 and (models[0].weight < weight).all().item(), models[0].weight)
        weight = models[0].weight.clone()
        step(models[0], again)
        must((models[0].weight < weight).all().item(), "a step after that has no effect")
        weight = models[0].weight.clone()
        again.close()
        must(torch.equal(models[0].weight, weight), "close() has lost the parameters")
        both[1].close()
        ranks.tell("done")

    def stays(rank, ranks):
        import muster.torch
        import torch
        model = torch.nn.Linear(2, 1)
        with muster.torch.Served(model) as served:
            while not os.path.exists(ranks.path("done")):
                model.zero_grad()
                model(torch.zeros(1, 2)).sum().backward()
                served.step()

    with Ranks(a, 2, None, *SERVERS, "--policy", "async", "--min-workers", "1") as one:
        with Ranks(a, 1, None, "--owner", "servers") as two:
            one.other = two.server.address
            one.again(0, work)
            one.again(1, stays)
            one.ends()


CASES, BY_HAND = together(
    jobs=(like_plain_sgd, slow_rank, asynchronously, mistakes, two_and_anew))
main(CASES, "musterd", "library", unlisted=BY_HAND)
