#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster.torch in whole jobs of several ranks.

usage: torch_sync.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_sync.py --list
"""
import contextlib
import os
import signal
import zlib

from base import HANG_S, HERE, check, main, must, until
from torch_case import Ranks, prepare, refused, together

SAMPLES, BATCH = 50, 4  # of cases with a muster.torch.Sampler


def batch_of(rank, step, torch):
    make = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(16, 20, generator=make)
    return x, (x[:, :5] * 3).argmax(1)


def digest(model):
    so_far = 0
    for p in model.parameters():
        so_far = zlib.crc32(p.detach().numpy().tobytes(), so_far)
    return so_far


def forks(torch):
    """A model of which each step uses one half."""
    class Forks(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = torch.nn.Linear(20, 300), torch.nn.Linear(20, 300)
            self.out = torch.nn.Linear(300, 5)

        def forward(self, x, turn):
            return self.out(torch.relu((self.right if turn % 2 else self.left)(x)))

    return Forks()


def paths(torch):
    """A model of six parts, each of which is used in each step, in another order in each turn. It
    is larger than the first bucket of DistributedDataParallel, which holds 1 MiB."""
    class Paths(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.out = torch.nn.Linear(20, 256), torch.nn.Linear(256, 5)
            self.paths = torch.nn.ModuleList(torch.nn.Linear(256, 256) for _ in range(6))

        def forward(self, x, turn):
            x = torch.relu(self.first(x))
            return self.out(sum(torch.tanh(self.paths[(i + turn) % 6](x)) for i in range(6)))

    return Paths()


def train_straggling(rank, ranks, make, wrapped, states):
    """Rank 3 comes to each of its steps only when others have made five versions more. states: it
    leaves the job when it has taken the state of another so many times."""
    import muster.torch
    import torch
    torch.manual_seed(3)
    net = make(torch)
    model = wrapped(net, rank)
    opt = torch.optim.AdamW(model.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.995)
    digests, buckets, taken = {}, [[]], []

    def apply():
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        schedule.step()

    class Sync(muster.torch.Sync):
        def _settle(self, this, out):
            super()._settle(this, out)
            if self.version not in digests:
                digests[self.version] = digest(net)

        def _set_state(self, read, version):
            super()._set_state(read, version)
            taken.append(version)

        def _bucket_ready(self, bucket):
            super()._bucket_ready(bucket)
            buckets[-1].append({names[id(p)] for p in bucket.parameters()})

    names = {id(p): name for name, p in net.named_parameters()}
    sync = Sync(model, opt, apply, scheduler=schedule)
    verdicts, most, step = [], 0, 0
    while not sync.finished:
        opt.zero_grad()
        for micro in range(2):
            x, y = batch_of(rank, 2 * step + micro, torch)
            with sync.no_sync() if micro == 0 else contextlib.nullcontext():
                out = model(x, step + rank)
                (torch.nn.functional.cross_entropy(out, y) / 2).backward()
        buckets.append([])
        before = sync.version
        if rank == 3:
            ranks.hear(f"version.{before + 5 if states else min(before + 5, 40)}")
        done = sync.step(samples=32)
        verdicts.append(done.verdict.name)
        most = max(most, done.version - before - 1)
        if rank == 3 and (len(taken) >= states if states else done.verdict.name == "LATE"):
            ranks.tell("late")
            if states:
                break
        if rank == 0:
            for version in range(before + 1, done.version + 1):
                ranks.tell(f"version.{version}")
            if done.version >= 40 and not states:
                ranks.hear("late")  # so that it is not further behind than the history
            if done.version >= 40 and os.path.exists(ranks.path("late")) and not sync.finished:
                sync.finish("enough")  # before the slow rank hears of it
        step += 1
    sync.close()
    return digests, verdicts, most, taken, [sorted(map(sorted, b)) for b in buckets if b]


def bare(net, rank):
    return net


def in_ddp(net, rank, **options):
    import muster.torch
    import torch
    return torch.nn.parallel.DistributedDataParallel(net, process_group=muster.torch.alone(),
                                                     **options)


def straggler(a, make, wrapped, *options, states=0):
    """Returns what the ranks have returned."""
    prepare(a)
    with Ranks(a, 4, lambda rank, ranks: train_straggling(rank, ranks, make, wrapped, states),
               "--policy", "backup:3", "--late-start", "now", *options) as ranks:
        said = ranks.ends()
    last = max(max(s[0]) for s in said)
    check(f"the fast ranks have had all of {last} versions", last >= 40 and all(
        len(set(range(1, last + 1)) - set(s[0])) == 0 for s in said[:3]))
    check("parameters are the same to the bit at every version", all(
        s[0][version] == said[0][0][version] for s in said for version in s[0])
        and len(set(said[0][0].values())) >= last)
    check(f"the slow rank missed up to {said[3][2]} versions at a time", said[3][2] >= 3)
    return said


def applies_all(said):
    must(set(said[3][0]) >= set(said[0][0]), "the slow rank has not applied all", said[3][0])
    check("and was late", "LATE" in said[3][1])


def backup_of_four(a):
    """A rank that is late applies what it missed, in order, with clipping and schedule."""
    applies_all(straggler(a, forks, bare))


def backup_of_four_in_ddp(a):
    applies_all(straggler(a, forks, lambda net, rank: in_ddp(
        net, rank, find_unused_parameters=True, bucket_cap_mb=0.01)))


def history_of_two(a):
    """What the slow rank lacks is gone each time: it takes the state of another."""
    said = straggler(a, forks, bare, "--history", "2", "--catch-up", "4096",
                     "--min-workers", "3", states=4)
    taken = said[3][3]
    check(f"the slow rank took the states of versions {taken}, and no other rank took one",
          len(taken) >= 4 and not any(s[3] for s in said[:3]))
    check("so it has had none of the versions just before these", not any(
        version - 1 in said[3][0] for version in taken))


def buckets_of_each_rank(a):
    """DistributedDataParallel makes one bucket at first, and several after the first step, by size
    and order of use. They are others on each rank."""
    said = straggler(a, paths, lambda net, rank: in_ddp(
        net, rank, bucket_cap_mb=(0.01, 0.3, 0.6, 1.2)[rank]))
    applies_all(said)
    later = [buckets[1] for *_, buckets in said]
    for rank, (*_, buckets) in enumerate(said):
        check(f"rank {rank} has {len(buckets[0])} buckets, then {len(buckets[1])} others",
              len(buckets[1]) >= 2 and buckets[0] != buckets[1])
        must(all(sorted(sum(b, [])) == sorted(sum(buckets[0], [])) for b in buckets),
             "a parameter was in no bucket, or in two")
    check("no two ranks have the same", all(p != q for i, p in enumerate(later) for q in later[:i]))


def what_docs_say(start):
    """The rest of the sentence in docs/pytorch.md that begins so, up to its quotation mark."""
    with open(os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", "pytorch.md")) as f:
        text = " ".join(f.read().split())
    must(start in text, "the guide does not say:", start)
    return text.split(start)[1].split('"')[0]


def misuse(rank, ranks):
    import muster
    import muster.torch
    import torch
    nn, Sync = torch.nn, muster.torch.Sync

    def sync_of(model, **more):
        return lambda: Sync(model, torch.optim.SGD(model.parameters(), 0.1), **more)

    refused(TypeError, sync_of(nn.Linear(2, 2).double()), "weight", "float64")
    refused(TypeError, sync_of(nn.Linear(2, 2, dtype=torch.cfloat)), "weight", "complex")
    refused(TypeError, sync_of(nn.Linear(2, 2, device="meta")),
            "weight is on meta: " + what_docs_say("weight is on mps:0: "))
    buffered = nn.Linear(2, 2)
    buffered.register_buffer("mask", torch.zeros(2, device="meta"))
    refused(TypeError, sync_of(buffered), "mask is on meta", "CPU")
    refused(ValueError, sync_of(nn.Linear(2, 2), wire="int8"), "int8", "bf16")
    refused(TypeError, sync_of(nn.Linear(2, 2), sampler=torch.utils.data.SequentialSampler("ab")),
            "SequentialSampler", "muster.torch.Sampler")
    refused(ValueError, lambda: Sync(nn.Linear(2, 2), torch.optim.SGD(
        nn.Linear(2, 2).parameters(), 0.1)), "optimiser", "model.parameters()")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.out = nn.Embedding(10, 4, sparse=True), nn.Linear(4, 1)

        def forward(self, at):
            return self.out(self.words(at)).sum()

    model = Net()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    sync = Sync(model, opt, wire="bf16")
    refused(RuntimeError, sync.step, "without a backward()")
    refused(TypeError, lambda: model(torch.tensor([1])).backward(), "words.weight", "sparse")
    sync.close()
    return None


def bad_input(a):
    prepare(a)
    with Ranks(a, 1, misuse) as ranks:
        ranks.ends()

    def rounds(rank, ranks, wire):
        import muster.torch
        import torch
        model = torch.nn.Linear(3, 2)
        opt = torch.optim.SGD(model.parameters(), 0.5)
        sync = muster.torch.Sync(model, opt, wire=wire, lr_scale=True)
        # A model that was moved to a GPU meanwhile has its gradients there.
        elsewhere = torch.zeros(2, 3, device="meta")
        refused(TypeError, lambda: sync._give("weight", model.weight, elsewhere),
                "the gradient of weight is on meta", "CPU")
        layout, sync._layout.params = sync._layout.params, [("weight", elsewhere)]
        refused(TypeError, sync.step, "weight is on meta", "CPU")
        sync._layout.params = layout
        x = torch.ones(4, 3)
        model(x).sum().backward()
        refused(RuntimeError, lambda: model(x).sum().backward(), "twice", "no_sync")
        sync.step()
        refused(RuntimeError, sync.step, "without a backward()")
        opt.zero_grad()
        (model(x) * float("nan")).sum().backward()
        refused(ArithmeticError, sync.step, "tensor", "NaN")
        opt.zero_grad()
        try:
            with sync.no_sync():
                model(x).sum().backward()
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            refused(RuntimeError, sync.step, "interrupted")
        opt.zero_grad()
        before = model.weight.detach().clone()
        model(x).mul(0.25).sum().backward()
        done = sync.step()
        moved = (before - model.weight.detach()).flatten().tolist()
        must(all(abs(m - 0.5) < 1e-6 for m in moved), f"{moved} is not 0.5 in one step")
        opt.zero_grad()
        model(torch.full((1, 3), 1 + 2 ** -9 + 2 ** -13)).sum().backward()
        done = sync.step()
        return done.version, done.verdict.name, model.weight.grad[0, 0].item()

    # The types round to 7, 10 and 23 digits after the point.
    for wire, mean in (("bf16", 1), ("f16", 1 + 2 ** -9), ("f32", 1 + 2 ** -9 + 2 ** -13)):
        with Ranks(a, 1, lambda rank, ranks, w=wire: rounds(rank, ranks, w)) as ranks:
            check(f"steps after those are like any other, in {wire}",
                  ranks.end(0) == (3, "COUNTED", mean))

    def another(rank, ranks):
        import muster
        import muster.torch
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(3, 2))
        opt = torch.optim.SGD(model.parameters(), 0.5)
        if rank == 1:
            must(until(lambda: "rank 0 joined" in ranks.server.said(), HANG_S), "no rank 0")
            other = torch.nn.Sequential(torch.nn.Module())
            other[0].weight = torch.nn.Parameter(torch.zeros(2, 3))
            other[0].slope = torch.nn.Parameter(torch.zeros(2))
            refused(muster.Error, lambda: muster.torch.Sync(other, opt_of(other)),
                    "0.slope", "at rank 1", "0.bias", "at rank 0")
        return muster.torch.Sync(model, opt).version

    def opt_of(model):
        import torch
        return torch.optim.SGD(model.parameters(), 0.5)

    with Ranks(a, 2, another) as ranks:
        check("another model is refused", ranks.ends() == [0, 0])


def ctrl_c(a):
    """One rank is interrupted in step(), another in backward(); the other two go on."""
    prepare(a)

    def train(rank, ranks):
        import muster.torch
        import torch

        class Stop(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, g):
                if rank == 0 and sync.version == 3:
                    os.kill(os.getpid(), signal.SIGINT)
                return g

        signal.signal(signal.SIGINT, signal.default_int_handler)
        model = torch.nn.Linear(4, 4)
        opt = torch.optim.SGD(model.parameters(), 0.1)
        sync = muster.torch.Sync(model, opt)
        try:
            while not sync.finished:
                opt.zero_grad()
                Stop.apply(model(torch.ones(1, 4))).sum().backward()
                if rank == 1 and sync.version == 6:
                    signal.signal(signal.SIGALRM, signal.default_int_handler)
                    signal.setitimer(signal.ITIMER_REAL, 0.05)
                if rank == 2 and sync.version == 6:
                    ranks.hear("interrupted")
                sync.step()
                if sync.version == 20:
                    sync.finish("enough")
        except KeyboardInterrupt:
            ranks.tell("interrupted" if rank == 1 else "stopped")
            sync.close()
            return "interrupted", sync.version
        return "finished", sync.version

    with Ranks(a, 4, train, "--min-workers", "1") as ranks:
        said = ranks.ends()
    check(f"{said}", [s[0] for s in said] == ["interrupted"] * 2 + ["finished"] * 2
          and said[0][1] == 3 and said[1][1] == 6 and said[2][1] >= 20)


def account(rank, ranks, on_late, last):
    """The parameter counts the samples that versions have: one for each."""
    import muster.torch
    import torch
    data = torch.utils.data.TensorDataset(torch.eye(SAMPLES))
    sampler = muster.torch.Sampler(SAMPLES, BATCH, seed=2, on_late=on_late)
    loader = torch.utils.data.DataLoader(data, batch_sampler=sampler)
    model = torch.nn.Linear(SAMPLES, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    opt = torch.optim.SGD(model.parameters(), 1.0)
    weight, late = [0.0], []

    def apply():
        model.weight.grad *= weight[0]
        opt.step()

    sync = muster.torch.Sync(model, opt, apply, sampler=sampler, lr_scale=True)
    settle = sync._settle

    def settled(step, out):
        # lr_scale: a version of two gradients, where there are three ranks, has 2/3 of the rate.
        weight[0] = out.weight * 3 / len(out.set) if out.set else 0.0
        settle(step, out)

    sync._settle = settled
    for x, in sync.batches(loader):
        opt.zero_grad()
        (-model(x).mean()).backward()
        if rank == 2:
            ranks.hear(f"version.{min(sync.version + 3, last)}")
        if sync.step(samples=len(x)).verdict.name == "LATE":
            late.append(x.argmax(1).tolist())
            ranks.tell("late")
        if rank == 0:
            for version in range(sync.version + 1):
                ranks.tell(f"version.{version}")
            if sync.version >= last and not sync.finished:
                ranks.hear("late")
                sync.finish("enough")
    must(opt.param_groups[0]["lr"] == 1.0, "the rate is no more the user's")
    return model.weight.detach().flatten().tolist(), late, sampler.state_dict()


def accounts(a, on_late, last):
    """What all ranks agree on: how often each sample is in versions, or is still to come; the
    epochs; and what the slow rank was late with."""
    with Ranks(a, 3, lambda rank, ranks: account(rank, ranks, on_late, last),
               "--policy", "backup:2", "--late-start", "now") as ranks:
        said = ranks.ends()
    weights, _, state = said[0]
    must(all((s[0], s[2]) == (weights, state) for s in said), "the accounts of ranks differ")
    check("the sums agree", all(abs(w - round(w)) < 1e-3 for w in weights)
          and round(sum(weights)) == sum(state["counted"].values()))
    check(f"though a rank was late {len(said[2][1])} times", said[2][1])
    left = [index for _, index in state["queue"]]
    return [round(w) + left.count(i) for i, w in enumerate(weights)], state["epoch"], said[2][1]


def samples(a):
    """on_late="again": every sample is counted once in each epoch, whoever is slow. "drop": those
    that a late rank computed on are not."""
    prepare(a)
    total, epochs, _ = accounts(a, "again", 40)
    check(f"each sample of {epochs} epochs was counted, or is still to come, once",
          set(total) == {epochs})
    total, epochs, late = accounts(a, "drop", 12)
    check(f"of {epochs} epochs none was counted more often, and of each late batch, {late}, none "
          "as often", max(total) <= epochs and all(total[i] < epochs for b in late for i in b))


class Odd:
    """Two models of which all ranks have the same, but not in the same order in memory."""

    def __init__(self, rank, torch):
        nn = torch.nn
        torch.manual_seed(rank)  # all begin with those of rank 0
        self.lines, self.image = nn.Linear(3, 2), nn.Conv2d(2, 3, 2)
        self.lines.spare = nn.Parameter(torch.rand(2, 3))
        if rank == 0:
            self.lines.weight = nn.Parameter(torch.rand(3, 2).t())
            self.image = self.image.to(memory_format=torch.channels_last)

    def backward(self, rank, step, torch, image):
        """image: in place of self.image, a DistributedDataParallel around it, say."""
        draw = torch.Generator().manual_seed(10 * step + rank)
        lines = self.lines(torch.rand(4, 3, generator=draw))
        images = image(torch.rand(1, 2, 4, 4, generator=draw))
        images.square().mean().backward()  # of two jobs in turn
        lines.square().mean().backward()
        # backward() does not reach this one: what is there when step() is called counts.
        self.lines.spare.grad = torch.rand(3, 2, generator=draw).t()

    def parameters(self):
        return [*self.lines.parameters(), *self.image.parameters()]


def two_in_one(rank, ranks, steps):
    import muster.torch
    import torch
    odd = Odd(rank, torch)
    image = odd.image
    if rank == 0:
        image = torch.nn.parallel.DistributedDataParallel(
            image, process_group=muster.torch.alone())
    groups = [{"params": [odd.lines.weight, odd.lines.spare]},
              {"params": [odd.lines.bias], "lr": 0.25}]
    opts = torch.optim.SGD(groups, 1.0), torch.optim.SGD(image.parameters(), 0.5)
    first = muster.torch.Sync(odd.lines, opts[0], lr_scale=True)
    second = muster.torch.Sync(image, opts[1], server=ranks.other)
    begun = [p.detach().clone() for p in odd.parameters()]
    for step in range(steps):
        for opt in opts:
            opt.zero_grad()
        odd.backward(rank, step, torch, image)
        done = second.step(), first.step()
        must([d[:3] for d in done] == [(1, step + 1, 0)] * 2, done)
    first.close()
    odd.image.zero_grad()
    image(torch.ones(1, 2, 4, 4)).sum().mul(0).backward()
    must(second.step().version == steps + 1, "the second job does not go on without the first")
    second.close()
    must([g["lr"] for g in opts[0].param_groups] == [1.0, 0.25], "rates are no more the user's")
    return begun, max((p - q).abs().max().item() for p, q in zip(
        odd.parameters(), plainly(begun, steps, torch)))


def plainly(begun, steps, torch):
    """The parameters that plain SGD makes of both ranks' gradients, none of which is odd."""
    plain, scale = Odd(1, torch), 1.0
    params = plain.parameters()
    with torch.no_grad():
        for p, first in zip(params, begun):
            p.copy_(first)
    for step in range(steps):
        grads = []
        for rank in range(2):
            for p in params:
                p.grad = None
            plain.backward(rank, step, torch, plain.image)
            grads.append([p.grad for p in params])
        if 2 * (step + 1) >= 5:  # samples in versions up to this one
            scale = 0.5
        rates = {id(p): 0.5 for p in plain.image.parameters()}
        rates[id(plain.lines.bias)] = 0.25 * scale
        with torch.no_grad():
            for p, x, y in zip(params, *grads):
                p -= rates.get(id(p), scale) * (x + y) / 2
    return params


def two_jobs(a):
    """Two Syncs in one process, of two jobs, are what plain SGD makes of the mean gradients: with
    groups of two rates, which lr_scale multiplies; whatever the order of elements in memory is, of
    parameters and gradients, with DistributedDataParallel and without."""
    prepare(a)
    with Ranks(a, 2, None, "--lr-schedule", "steps:0.5,5") as one, Ranks(a, 2, None) as two:
        one.other = two.server.address
        for rank in range(2):
            one.again(rank, lambda rank, ranks: two_in_one(rank, ranks, 4))
        (begun, worst), (other, worse) = one.ends()
    check("both begin as rank 0", all((x == y).all() for x, y in zip(begun, other)))
    check(f"four versions of both jobs are right but for {worst}, {worse}",
          max(worst, worse) < 1e-5)


AHEAD, AT_ONCE, TOO_MANY = 4, 8, 100  # versions


def no_faster_than_the_others(a):
    """Rank 1 has applied a version when rank 0 has two more: it never has them all. Its step()
    returns all the same, and when it is faster again it has the bits of rank 0."""
    prepare(a)

    def work(rank, ranks):
        import muster.torch
        import torch
        muster._rank._AT_ONCE = AT_ONCE
        model = torch.nn.Linear(3, 1)
        opt = torch.optim.Adam(model.parameters(), 0.1)
        slow, last = rank == 1, [0]

        def apply():
            opt.step()
            last[0] += 1
            ranks.tell(f"{rank}.{last[0]}")
            if slow:
                ranks.hear(f"0.{last[0] + 2}")

        sync = muster.torch.Sync(model, opt, apply)
        while not sync.finished:
            if rank == 0 and sync.version > AHEAD:
                ranks.hear(f"1.{sync.version - AHEAD}")
                must(sync.version < TOO_MANY, f"no step() of rank 1 returns at {AT_ONCE} versions")
            opt.zero_grad()
            model(torch.ones(2, 3) * (rank + 1)).sum().backward()
            if slow:
                ranks.hear("0.2")
            done = sync.step()
            must(done.version == last[0] == sync.version, done)
            if slow and done.missed >= AT_ONCE - 1:  # else it has not heard of the next one yet
                slow = False
                ranks.tell("faster")
            if rank == 0 and os.path.exists(ranks.path("faster")) and not sync.finished:
                sync.finish("enough")
        return sync.version, [p.tolist() for p in model.parameters()]

    with Ranks(a, 2, work, "--policy", "backup:1") as ranks:
        said = ranks.ends()
        check(f"both end with version {said[0][0]} and its bits", said[0] == said[1])


CASES, BY_HAND = together(
    training=(backup_of_four, backup_of_four_in_ddp, no_faster_than_the_others),
    straggling=(history_of_two, buckets_of_each_rank),
    mistakes_and_data=(bad_input, ctrl_c, two_jobs, samples))
main(CASES, "musterd", "library", unlisted=BY_HAND)
