#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster.torch under policies that take less than a batch: what is handed in between two
micro-batches, handed over with each of them, or given up.

usage: torch_micro.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_micro.py --list
"""
import contextlib

from base import HANG_S, check, main, must, until
from torch_case import Ranks, prepare, together


def taking(ranks, torch, ddp):
    """A Sync with one weight for each of two inputs, 0 at first, which moves by the mean gradient;
    the model to call; the weights."""
    import muster.torch
    model = bare = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.zeros_(bare.weight)
    if ddp:
        model = torch.nn.parallel.DistributedDataParallel(
            bare, process_group=muster.torch.alone())
    sync = muster.torch.Sync(model, torch.optim.SGD(bare.parameters(), 1.0))
    with torch.no_grad():
        model(torch.zeros(1, 2))  # waits for all; afterwards none waits for the other
    return sync, model, bare.weight


def full_batches(rank, ranks, torch, ddp):
    """Rank 0, whose gradient is 1; it comes when the other rank is between two micro-batches."""
    sync, model, weight = taking(ranks, torch, ddp)
    said = []
    for now in ("one", "none"):
        ranks.hear(now)
        weight.grad = None
        model(torch.ones(4, 2)).mean().backward()
        said.append((sync.step(samples=4), weight.tolist()))
    sync.close()
    return said


def asked(rank, ranks, torch, ddp):
    """Rank 1, of whose two micro-batches of two samples each one is ready when it is asked, and in
    the next step none."""
    sync, model, weight = taking(ranks, torch, ddp)
    said = []
    for now in ("one", "none"):
        weight.grad = None
        if now == "one":
            with sync.no_sync():
                (model(torch.full((2, 2), 7.0)).mean() / 2).backward()
        must(sync.check(), "it is asked before anybody has a full batch")
        ranks.tell(now)
        must(until(lambda: not sync.check(), HANG_S), "it is not asked")
        if now == "one":
            weight.grad *= 2  # the mean of the one, which was divided by both
        said.append((sync.step(samples=2), weight.tolist()))
    sync.close()
    return said


def hand_in(a):
    """nonblocking: check() asks between micro-batches, and step() hands in those that are ready,
    with the samples in them; where none is, it passes."""
    prepare(a)
    import torch
    for ddp in (False, True):
        with Ranks(a, 2, lambda rank, ranks, d=ddp: (asked if rank else full_batches)(
                rank, ranks, torch, d), "--policy", "nonblocking") as ranks:
            full, some = ranks.ends()
        check(f"of full batches: {full[0][0]}, {full[1][0]}; of what was ready: {some[0][0]}, "
              f"{some[1][0]}", [s.verdict.name for said in (full, some) for s, _ in said]
              == ["COUNTED", "COUNTED", "COUNTED", "NONE"])
        check("both are in the first version with their samples, one in the second",
              [s.set for s, _ in some] == [((0, 1, 4), (1, 1, 2)), ((0, 1, 4),)])
        # (4 samples x 1 + 2 samples x 7) / 6; 4 x 1 / 4
        check("which are the means over these", full[0][1] == some[0][1] == [[-3.0, -3.0]]
              and full[1][1] == some[1][1] == [[-4.0, -4.0]])


def parts(rank, ranks):
    """Rank 0 hands a batch of two micro-batches over, while rank 1 computes on its first."""
    import torch
    sync, model, weight = taking(ranks, torch, False)
    said = []
    if rank == 1:
        ranks.hear("made")
    for value, part in ((1.0, True), (3.0, False)) if rank == 0 else ((7.0, True),):
        weight.grad = None
        model(torch.full((2, 2), value)).mean().backward()
        said.append((sync.step(samples=2, part=part), weight.tolist()))
    if rank == 0:
        ranks.tell("made")
        ranks.hear("late")
        weight.grad = None
        model(torch.full((4, 2), 1.0)).mean().backward()
        said.append((sync.step(samples=4), weight.tolist()))
    else:
        ranks.tell("late")
    sync.close()
    return said


def micro(a):
    """nonblocking:MS,AGE: step(part=True) hands a micro-batch over, and waits for nobody; what was
    computed on an older version counts in the next."""
    prepare(a)
    with Ranks(a, 2, parts, "--policy", "nonblocking:0,4") as ranks:
        first, second = ranks.ends()
    check(f"{[s for s, _ in first]}", [(s.verdict.name, s.version) for s, _ in first]
          == [("COUNTED", 0), ("COUNTED", 1), ("COUNTED", 2)])
    check(f"{second}", [(s.verdict.name, s.version) for s, _ in second] == [("COUNTED", 1)])
    check("the first version is of one rank's two parts, the second of both ranks",
          [s.set for s, _ in first[1:]] == [((0, 2, 4),), ((0, 1, 4), (1, 1, 2))])
    # (2 x 1 + 2 x 3) / 4; (4 x 1 + 2 x 7) / 6
    check("each is the mean over these samples",
          [w for _, w in first] == [[[0.0, 0.0]], [[-2.0, -2.0]], [[-5.0, -5.0]]])


def given_up(rank, ranks):
    """Each of its gradients but the last is too late: within no_sync(), or handed over in part."""
    import torch
    sync, model, weight = taking(ranks, torch, False)
    said = []
    for now in ("local", "handed over", "in time"):
        weight.grad = None
        with sync.no_sync() if now == "local" else contextlib.nullcontext():
            model(torch.full((2, 2), 7.0)).mean().backward()
        must(sync.check(), "it is to give up before there is a version")
        ranks.tell(now)
        if now != "in time":
            must(until(lambda: not sync.check(), HANG_S), "it is not told to give up")
        said.append((sync.step(samples=2), weight.tolist()))
    ranks.tell("done")
    sync.close()
    return said


def give_up(a):
    """ksync: when check() says that the batch cannot count any more, step() is CANCELLED, and
    brings the version that has come; the step after that counts."""
    prepare(a)
    import torch

    def first(rank, ranks):
        sync, model, weight = taking(ranks, torch, False)
        for now in ("local", "handed over"):
            ranks.hear(now)
            weight.grad = None
            model(torch.ones(4, 2)).mean().backward()
            sync.step(samples=4)
        ranks.hear("done")
        sync.close()

    with Ranks(a, 2, lambda rank, ranks: (given_up if rank else first)(rank, ranks),
               "--policy", "ksync:1") as ranks:
        said = ranks.ends()[1]
    check(f"{[s for s, _ in said]}", [(s.verdict.name, s.version, s.missed) for s, _ in said]
          == [("CANCELLED", 1, 0), ("CANCELLED", 2, 0), ("COUNTED", 3, 0)])
    check("nothing of what was given up is in a version",
          [w for _, w in said] == [[[-1.0, -1.0]], [[-2.0, -2.0]], [[-9.0, -9.0]]])


CASES, BY_HAND = together(parts_of_batches=(hand_in, micro, give_up))
main(CASES, "musterd", "library", unlisted=BY_HAND)
