#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The losses of muster.torch under bsp, with DistributedDataParallel around the model or without,
are those of DistributedDataParallel over Gloo.

usage: torch_gloo.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_gloo.py --list
"""
import os
import sys
import zlib

from base import check, main
from torch_case import PACKAGE, Ranks, prepare, refused, together

RANKS = 2


class Small:
    """A model with buffers of its own, a frozen parameter, and more than one bucket of DDP's."""

    @staticmethod
    def model(torch):
        nn = torch.nn
        model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64),
                              nn.ReLU(), nn.Linear(64, 5))
        model[3].bias.requires_grad_(False)
        return model

    @staticmethod
    def batch(rank, step, torch):
        make = torch.Generator().manual_seed(1000 * step + rank)
        x = torch.randn(16, 20, generator=make)
        return x, (x[:, :5] * 3).argmax(1)

    @staticmethod
    def loss(model, x, y, torch):
        return torch.nn.functional.cross_entropy(model(x), y)

    @staticmethod
    def opt(model, torch):
        return torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    clip, steps = None, 60
    learns = True  # in so many steps


class Digits(Small):
    """The example digits_cnn.py. It would learn in 300 steps."""

    steps, learns = 40, False

    def __init__(self):
        import digits_cnn
        import torch
        self.example, data = digits_cnn, digits_cnn.Digits(2048, seed=1)
        images, digits = zip(*(data[i] for i in range(len(data))))
        self.data = torch.stack(images), torch.tensor(digits)

    def model(self, torch):
        return self.example.network()

    def batch(self, rank, step, torch):
        first = (step * RANKS + rank) * 16 % len(self.data[0])
        return tuple(of[first:first + 16] for of in self.data)

    @staticmethod
    def opt(model, torch):
        return torch.optim.Adam(model.parameters(), 0.003)


class Characters(Small):
    """The example characters.py: with clipping and a schedule."""

    clip, steps = 1.0, 300

    def __init__(self):
        import characters
        import torch
        characters.CONTEXT = 12  # shorter, for the sake of the tests' time
        self.example, text = characters, characters.own_text()
        self.alphabet = sorted(set(text))
        self.coded = torch.tensor([self.alphabet.index(c) for c in text])

    def model(self, torch):
        return self.example.Transformer(len(self.alphabet))

    def batch(self, rank, step, torch):
        draw = torch.Generator().manual_seed(1000 * step + rank)
        return self.example.batch_of(self.coded, 2, draw)

    def loss(self, model, x, y, torch):
        return self.example.loss_of(model, x, y)

    @staticmethod
    def opt(model, torch):
        return torch.optim.AdamW(model.parameters(), 0.002)


def applying(lesson, model, opt, torch):
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, lesson.steps)

    def apply():
        if lesson.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), lesson.clip)
        opt.step()
        schedule.step()

    return apply


def losses_of(lesson, rank, model, opt, step, torch):
    """The same loop for both."""
    losses = []
    for number in range(lesson.steps):
        x, y = lesson.batch(rank, number, torch)
        opt.zero_grad()
        loss = lesson.loss(model, x, y, torch)
        loss.backward()
        step()
        losses.append(loss.item())
    return losses


def joins_gloo(rank, ranks, dist):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{ranks.path('store')}", rank=rank,
                            world_size=RANKS)


def with_gloo(lesson):
    def work(rank, ranks):
        import torch
        import torch.distributed as dist
        joins_gloo(rank, ranks, dist)
        torch.manual_seed(1)
        model = torch.nn.parallel.DistributedDataParallel(lesson.model(torch),
                                                          broadcast_buffers=False)
        opt = lesson.opt(model, torch)
        return losses_of(lesson, rank, model, opt, applying(lesson, model, opt, torch), torch)

    return work


def digest(bare):
    so_far = 0
    for p in bare.parameters():
        so_far = zlib.crc32(p.detach().numpy().tobytes(), so_far)
    return so_far


def with_muster(lesson, ddp):
    def work(rank, ranks):
        import muster.torch
        import torch
        # Another seed in each rank: all begin with the lowest one's parameters, buffers too.
        torch.manual_seed(1 + rank)
        model = bare = lesson.model(torch)
        buffers = [b for name, b in bare.named_buffers() if name.endswith("running_mean")]
        for b in buffers:
            b += rank
        if ddp:
            model = torch.nn.parallel.DistributedDataParallel(
                bare, process_group=muster.torch.alone(), bucket_cap_mb=0.01)
        opt = lesson.opt(model, torch)
        apply = applying(lesson, model, opt, torch)
        with muster.torch.Sync(model, opt, apply) as sync:
            begun = digest(bare), [b.tolist() for b in buffers]
            losses = losses_of(lesson, rank, model, opt, sync.step, torch)
        return losses, begun, digest(bare)

    return work


def as_gloo(a, lesson):
    with Ranks(a, RANKS, with_gloo(lesson)) as ranks:
        gloo = ranks.ends()
    if lesson.learns:
        check(f"it learns: losses of {gloo[0][0]:.3f} and {gloo[0][-1]:.3f}",
              sum(gloo[0][-20:]) < 0.8 * sum(gloo[0][:20]))
    for ddp in (False, True):
        with Ranks(a, RANKS, with_muster(lesson, ddp)) as ranks:
            said = ranks.ends()
        begun, ended = [s[1] for s in said], [s[2] for s in said]
        check("all ranks begin the same", begun[0] == begun[1] and not any(map(any, begun[0][1])))
        check("and end the same", ended[0] == ended[1])
        for rank in range(RANKS):
            worst = max(abs(x - y) for x, y in zip(said[rank][0], gloo[rank]))
            check(f"DDP {ddp}, rank {rank}: {lesson.steps} losses differ by {worst:.2g} at most",
                  worst < 1e-4 and len(said[rank][0]) == len(gloo[rank]) == lesson.steps)


def prepared(a):
    prepare(a)
    sys.path.insert(0, os.path.join(PACKAGE, "examples"))


def world_of_two(a):
    """In a process group of two, DistributedDataParallel over both is refused, with the way out in
    words; over alone() it is a model of this rank, and the group is there as before."""
    prepared(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        import torch.distributed as dist
        joins_gloo(rank, ranks, dist)
        bare = torch.nn.Linear(2, 1, bias=False)
        opt = torch.optim.SGD(bare.parameters(), 1.0)
        both = torch.nn.parallel.DistributedDataParallel(bare)
        refused(ValueError, lambda: muster.torch.Sync(both, opt), "over 2 ranks", "Sync",
                "process_group=muster.torch.alone()")
        model = torch.nn.parallel.DistributedDataParallel(
            bare, process_group=muster.torch.alone())
        torch.nn.init.zeros_(bare.weight)
        with muster.torch.Sync(model, opt) as sync:
            model(torch.full((1, 2), 1.0 + 2 * rank)).sum().backward()
            mine = bare.weight.grad.tolist()
            sync.step()
        total = torch.tensor(rank + 1)
        dist.all_reduce(total)
        return mine, bare.weight.tolist(), total.item()

    with Ranks(a, RANKS, work) as ranks:
        said = ranks.ends()
    check(f"gradients are each rank's own: {said[0][0]}, {said[1][0]}",
          [s[0] for s in said] == [[[1.0, 1.0]], [[3.0, 3.0]]])
    check("versions are the mean", [s[1] for s in said] == [[[-2.0, -2.0]]] * 2)
    check("the group of two still sums", [s[2] for s in said] == [3, 3])


def small(a):
    prepared(a)
    as_gloo(a, Small())


def digits(a):
    prepared(a)
    as_gloo(a, Digits())


def characters(a):
    prepared(a)
    as_gloo(a, Characters())


CASES, BY_HAND = together(losses=(small, world_of_two, digits, characters))
main(CASES, "musterd", "library", unlisted=BY_HAND)
