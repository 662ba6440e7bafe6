#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster.torch with a model on a GPU: in which order copies are made, waited for and handed over.

usage: torch_device.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_device.py --list

Where there is no GPU a driver stands in place of it, which copies nothing before something waits
for the copy: whoever reads too early reads other bytes. The case on a real GPU is skipped then.
"""
import contextlib
import os
import sys
import warnings
import zlib

from base import check, main, must
from torch_case import Ranks, prepare, refused

STEPS = 8
SERVERS = ("--owner", "servers", "--optimizer", "sgd:lr=0.1,momentum=0.9")


# ---- a driver in place of a GPU ----


class Stream:
    """Copies that have not been made, in order."""

    def __init__(self, gpu):
        self.gpu, self.copies, self.made = gpu, [], 0
        self.work = self.behind = 0  # what computes on this one; what of it this one comes after

    def wait_stream(self, other):
        """What this one does from now on cannot change what the other is still to read."""
        self.behind = other.work
        for copy in other.copies:
            copy.source = copy.source.clone()

    def reach(self, count):
        while self.made < count:
            self.copies.pop(0).make()
            self.made += 1

    def synchronize(self):
        self.reach(self.made + len(self.copies))


class Copy:
    """From a gradient. One that does not come after what makes the gradient, or whose memory
    PyTorch may have given to another tensor, reads something else."""

    def __init__(self, gpu, source, into):
        self.gpu, self.source, self.into = gpu, source, into
        self.early, self.kept = gpu.side.behind < gpu.main.work, False

    def make(self):
        self.into.copy_(self.source)
        if self.early or not self.kept:
            self.into.fill_(1e3)


class Event:
    def __init__(self, gpu, stream):
        self.gpu, self.stream = gpu, stream
        self.after = stream.made + len(stream.copies)

    def query(self):
        """It is reached just when the question has been answered, but none is next to another."""
        reached = self.stream.made >= self.after
        if not self.gpu.rests:
            self.stream.reach(self.after)
        self.gpu.rests = reached
        self.gpu.count["reached" if reached else "asked too early"] += 1
        return reached

    def synchronize(self):
        self.stream.reach(self.after)
        if self.stream is self.gpu.main:
            self.gpu.reading = False


class Gpu:
    """A driver of Streams, for tensors of the CPU. It looks at each call of the worker, too."""

    def __init__(self, pinnable=True):
        import muster
        self.pinnable, self.pinned = pinnable, {}
        self.reading = self.rests = False
        self.count = dict.fromkeys(("reached", "asked too early", "handed over", "pinned"), 0)
        self.main, self.side = Stream(self), Stream(self)
        self.now = self.main
        for call in ("push", "pull", "wait", "take_state", "close"):
            self.before(muster.Worker, call, self.nothing_reads)
        for call in ("push", "abandon", "close"):
            self.before(muster.Worker, call, self.nothing_is_copied)
        self.before(muster.Worker, "push_ranges", self.is_copied)
        self.before(muster.Worker, "close", self.nothing_is_pinned)

    @staticmethod
    def before(owner, call, look):
        real = getattr(owner, call)

        def called(worker, *arguments, **named):
            arguments = [list(a) if hasattr(a, "__next__") else a for a in arguments]
            look(*arguments)
            return real(worker, *arguments, **named)

        setattr(owner, call, called)

    def nothing_reads(self, *_):
        must(not self.reading, "the memory of a result is given back, and the GPU may read it")

    def nothing_is_copied(self, *_):
        must(not self.side.copies, "a slot is given away, and the GPU may write to it")

    def nothing_is_pinned(self):
        must(not self.pinned, "memory is unmapped that is pinned")

    def is_copied(self, pieces):
        for first, count, at in pieces:
            self.count["handed over"] += 1
            for copy in self.side.copies:
                begin, size = copy.into.data_ptr(), copy.into.element_size()
                must(at + size * count <= begin or begin + size * copy.into.numel() <= at,
                     f"{count} elements from {first} on are handed over before they are copied")

    # what Streams calls

    def current(self):
        return self.now

    @contextlib.contextmanager
    def on(self, stream):
        self.now, before = stream, self.now
        yield
        self.now = before

    def event(self, stream):
        return Event(self, stream)

    def copy(self, source, into):
        if self.now is self.side:
            begin = into.data_ptr()
            must(not self.pinnable or any(a <= begin < a + size and writable
                                          for a, (size, writable) in self.pinned.items()),
                 "a gradient is copied to memory that is not pinned")
            self.side.copies.append(Copy(self, source, into))
        else:
            into.copy_(source)
            self.reading = True

    def keep(self, tensor, stream):
        must(stream is self.side, "the gradient is kept for another stream")
        for copy in stream.copies:
            copy.kept |= copy.source.data_ptr() == tensor.data_ptr()

    def pin(self, address, size, writable):
        if not self.pinnable:
            raise RuntimeError("there is too little memory")
        must(address not in self.pinned, "memory is pinned twice")
        self.pinned[address] = (size, writable)
        self.count["pinned"] += 1

    def unpin(self, address):
        self.nothing_reads()
        del self.pinned[address]


def in_place_of_cpu(**options):
    from muster import _device
    gpu = Gpu(**options)
    _device.KINDS["cpu"] = lambda _: _device.Streams(gpu)
    return gpu


# ---- ranks ----


def network(torch, gpu=None, device="cpu"):
    """Two layers whose gradients are handed over alone; layers of which each step uses one; a
    frozen parameter and a buffer."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.deep = torch.nn.Linear(20, 300), torch.nn.Linear(300, 300)
            self.ends = torch.nn.ModuleList(torch.nn.Linear(300, 5) for _ in range(2))
            self.norm = torch.nn.BatchNorm1d(300)
            self.wide.bias.requires_grad_(False)

        def forward(self, x, end):
            return self.ends[end](torch.relu(self.deep(self.norm(self.wide(x)))))

    torch.manual_seed(3)
    model = Net().to(device)
    if gpu is not None:
        for p in model.parameters():
            if p.requires_grad:
                p.register_hook(lambda _: setattr(gpu.main, "work", gpu.main.work + 1))
    return model


def digest(tensors):
    so_far = 0
    for t in tensors:
        so_far = zlib.crc32(t.detach().cpu().numpy().tobytes(), so_far)
    return so_far


def backward(job, model, bare, rank, step, torch):
    """Two micro-batches. What becomes of the gradients afterwards is not seen by the others."""
    device = bare.wide.weight.device
    for micro in range(2):
        make = torch.Generator().manual_seed(1000 * step + 10 * micro + rank)
        x = torch.randn(16, 20, generator=make).to(device)
        y = (x[:, :5] * 3).argmax(1)
        with job.no_sync() if micro == 0 else contextlib.nullcontext():
            out = model(x, step % 2)
            (torch.nn.functional.cross_entropy(out, y) / 2).backward()
    for p in bare.parameters():
        if p.grad is not None:
            p.grad.data.mul_(-3)
    job._must_be_as_handed_over = lambda _: None  # which would refuse that in step()


def trains(rank, ranks, gpu, device="cpu", ddp=False, late=False, wire="f32"):
    """A Sync: checksums of the parameters, for each version."""
    import muster
    import muster.torch
    import torch
    bare = network(torch, gpu, device)
    model = bare
    if ddp:
        model = torch.nn.parallel.DistributedDataParallel(
            bare, process_group=muster.torch.alone(), find_unused_parameters=True,
            bucket_cap_mb=0.01)
    opt = torch.optim.AdamW(model.parameters(), 0.01)
    digests = []

    def apply():
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        digests.append(digest(bare.parameters()))

    with muster.torch.Sync(model, opt, apply, wire=wire) as sync:
        for step in range(STEPS):
            if step == 3:  # what this step has copied is given up
                opt.zero_grad()
                model(torch.full((16, 20), float("nan"), device=device), 0).sum().backward()
                refused(muster.NotFinite, sync.step, "NaN", "tensor")
            if step == 5 and not ddp:  # and what an interrupted backward() has copied
                stop = bare.norm.weight.register_hook(lambda _: 1 / 0)
                with contextlib.suppress(ZeroDivisionError):
                    model(torch.ones(16, 20, device=device), 1).sum().backward()
                stop.remove()
            opt.zero_grad()
            if late and rank == 1 and sync.version == STEPS:
                break
            backward(sync, model, bare, rank, step, torch)
            if late and rank == 1:
                ranks.hear(f"version.{sync.version + 1}")
            sync.step(samples=32)
            if late and rank == 0:
                ranks.tell(f"version.{sync.version}")
    return digests


def serves(rank, _, gpu, device="cpu"):
    import muster.torch
    import torch
    model = network(torch, gpu, device)
    digests = []
    with muster.torch.Served(model) as served:
        for step in range(STEPS):
            model.zero_grad()
            backward(served, model, model, rank, step, torch)
            served.step(samples=32)
            digests.append(digest(model.parameters()))
    return digests


def runs(a, work, gpu, *options):
    """What both ranks have at each version, and what the driver has counted in the first. gpu: in
    place of the CPU, by these options of Gpu; None: on the CPU itself."""
    def rank_of(rank, ranks):
        used = None if gpu is None else in_place_of_cpu(**gpu)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            digests = work(rank, ranks, used)
        return digests, used and used.count, [str(w.message) for w in caught]

    with Ranks(a, 2, rank_of, *options) as ranks:
        said = ranks.ends()
    return [s[0] for s in said], said[0][1], said[0][2]


def order(a):
    """The same bits as on the CPU at each version, which each way of copying too late, or handing
    over and giving back too early, would change or be told of."""
    prepare(a)

    def late(*arguments):
        return trains(*arguments, late=True)

    def in_ddp(rank, *arguments):
        return trains(rank, *arguments, ddp=rank == 1)

    for what, work, options in (
            ("bsp, one rank in DistributedDataParallel", in_ddp, ("--policy", "bsp")),
            ("backup:1, a rank that is always late", late, ("--policy", "backup:1")),
            ("Served", serves, (*SERVERS, "--policy", "bsp"))):
        plain, _, _ = runs(a, work, None, *options)
        digests, count, _ = runs(a, work, {}, *options)
        must(count["pinned"] >= 3 and count["handed over"] > 6 * STEPS, what, count)
        must(count["reached"] > 0 and count["asked too early"] > 0, what, count)
        must(plain[0] == plain[1] and len(set(plain[0])) == len(plain[0]) >= STEPS, what, plain)
        check(f"{what}: {count}", digests == plain)

    def halves(*arguments):
        return trains(*arguments, wire="bf16")

    plain, _, _ = runs(a, halves, None)
    digests, _, warned = runs(a, halves, {"pinnable": False})
    check(f"bf16 on the wire, and memory that cannot be pinned: {warned}", digests == plain
          and any("cannot be pinned" in w and "too little memory" in w for w in warned))


def refusals(a):
    """What a GPU makes impossible, in words."""
    prepare(a)
    import muster.torch
    import torch

    def served_of(model, **options):
        return lambda: muster.torch.Served(model, **options)

    apart = torch.nn.Linear(2, 2)
    apart.register_buffer("mask", torch.zeros(2, device="meta"))
    in_place_of_cpu()
    refused(TypeError, served_of(apart), "mask is on meta")
    refused(ValueError, served_of(torch.nn.Linear(2, 2), copy=False), "copy=False", "cpu")
    from muster import _device
    _device.KINDS["meta"] = _device.KINDS["cpu"]
    refused(TypeError, served_of(apart), "mask is on meta, and weight on cpu", "one device")
    quantised = torch.nn.Linear(2, 2)
    quantised.register_buffer("small", torch.quantize_per_tensor(
        torch.ones(2), 0.1, 0, torch.qint8))
    refused(TypeError, served_of(quantised), "small is torch.qint8")
    scattered = torch.nn.Linear(2, 2)
    scattered.register_buffer("few", torch.ones(2).to_sparse())
    refused(TypeError, served_of(scattered), "few is torch.float32, torch.sparse_coo")


def real(a):
    """Both ranks on a real GPU: each version is the mean of what they had, and both have the same;
    a state that was saved is loaded."""
    prepare(a)
    asked = os.fork()  # CUDA does not work in a child of a process that has asked for it
    if asked == 0:
        import torch
        os._exit(0 if torch.cuda.is_available() else 1)
    if os.waitpid(asked, 0)[1] != 0:
        print("skipped: there is no GPU of CUDA here, or PyTorch is built without CUDA")
        sys.exit(77)
    on_real_gpu(a, "cuda:0")


def on_real_gpu(a, device):
    def means(rank, ranks):
        import muster.torch
        import torch
        model = network(torch, None, device)
        opt = torch.optim.SGD(model.parameters(), 0.1)
        params = [p for p in model.parameters() if p.requires_grad]
        said = []
        with muster.torch.Sync(model, opt) as sync:
            for step in range(STEPS):
                opt.zero_grad()
                backward(sync, model, model, rank, step, torch)
                own = [torch.zeros(p.shape) if p.grad is None else p.grad.cpu() / -3
                       for p in params]
                sync.step()
                said.append((digest(model.parameters()), own,
                             [p.grad.cpu().clone() for p in params]))
            if rank == 0:
                sync.save(ranks.path("state"))
        return said

    def loads(rank, ranks):
        import muster.torch
        import torch
        model = network(torch, None, device)
        opt = torch.optim.SGD(model.parameters(), 0.1)
        with muster.torch.Sync(model, opt) as sync:
            sync.load(states[0])
        return digest(model.parameters())

    with Ranks(a, 2, means, "--policy", "bsp") as ranks:
        said = ranks.ends()
        states = [ranks.path("state")]
        with Ranks(a, 2, loads, "--policy", "bsp") as others:
            loaded = others.ends()
    worst = 0.0
    for (mine, own, mean), (theirs, other, _) in zip(*said):
        must(mine == theirs, "the ranks differ")
        worst = max(worst, *((x + y - 2 * m).abs().max().item()
                             for x, y, m in zip(own, other, mean)))
    check(f"versions differ from the means by {worst:.2g} at most", worst < 1e-5)
    check("what was saved is loaded", loaded == [said[0][-1][0]] * 2)
    for what, work, options in (("Sync", trains, ()), ("Served", serves, SERVERS)):
        digests, _, warned = runs(a, lambda *b, w=work: w(*b, device=device), None, *options)
        check(f"{what}: the same bits in both ranks: {warned}", digests[0] == digests[1])


CASES = {f.__name__: f for f in (order, refusals, real)}
main(CASES, "musterd", "library")
