#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""docs/pytorch.md is taken at its word: every block of Python in it is run as it stands, in a job
of two ranks with what it takes for given, and has the effect that the text promises. A block that
this script does not know is a failure.

usage: torch_guide.py --musterd MUSTERD --library LIBMUSTER
"""
import contextlib
import importlib.util
import os
import re
import warnings

from base import HERE, check, main, must
from torch_case import Ranks, prepare

GUIDE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", "pytorch.md")
SERVERS = ("--owner", "servers", "--optimizer", "adamw:lr=0.001")


def blocks():
    """(line number, text) of each."""
    with open(GUIDE, encoding="utf-8") as f:
        text = f.read()
    return [(text[:m.start(1)].count("\n") + 1, m[1])
            for m in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S)]


class Loader:
    """Batches, over and over; the job ends when `ends` says so, after each of them."""

    def __init__(self, given, ends=lambda: False):
        self.given, self.ends, self.count = given, ends, 0

    def __iter__(self):
        torch = self.given["torch"]
        for _ in range(10):
            self.count += 1
            job = self.given.get("sync") or self.given.get("served")
            if self.ends() and not job.finished:
                job.finish("enough")
            draw = torch.Generator().manual_seed(self.count * 2 + job.rank)
            x = torch.randn(4, 6, generator=draw)
            yield x, x[:, :3].argmax(1)


def given():
    """What the blocks take for given."""
    import muster
    import muster.torch
    import torch
    torch.manual_seed(1)
    names = {"muster": muster, "torch": torch, "contextlib": contextlib,
             "loss_of": torch.nn.functional.cross_entropy,
             "DataLoader": torch.utils.data.DataLoader}
    names["model"] = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(),
                                         torch.nn.Linear(8, 3))
    names["opt"] = torch.optim.SGD(names["model"].parameters(), 0.1, momentum=0.9)
    names["loader"] = Loader(names)
    return names


def reaches(names, version):
    return lambda: (names.get("sync") or names["served"]).version >= version


def bits(*models):
    return [p.tolist() for model in models for p in model.parameters()]


# ---- how each block is run, by its first line; each returns what both ranks are to have alike ----

def whole(run, names, ranks):
    run()
    must(names.get("sync", names.get("served")).version >= 1000, "it ends before version 1000")
    return bits(names["model"])


def until_40(run, names, ranks):
    names["loader"].ends = reaches(names, 40)
    run()
    return bits(names["model"])


def goes_on(names, count):
    """The loop that the guide begins with."""
    for x, y in names["sync"].batches(Loader(names, reaches(names, count))):
        names["opt"].zero_grad()
        names["loss_of"](names["model"](x), y).backward()
        names["sync"].step(samples=len(x))


def scheduled(run, names, ranks):
    run()
    goes_on(names, 20)
    must(names["schedule"].last_epoch == names["sync"].version >= 20, "no schedule")
    return bits(names["model"])


def saved(run, names, ranks):
    os.chdir(ranks.folder)
    names["accuracy_of"] = lambda model: 1.0
    names["sync"] = names["muster"].torch.Sync(names["model"], names["opt"])
    names["loader"].ends = reaches(names, 100)
    run()
    must(os.path.exists("model.state"), "nothing was saved")
    return bits(names["model"])


def in_micro_batches(run, names, ranks):
    names.update(N=3, M=4, sync=names["muster"].torch.Sync(names["model"], names["opt"]))
    source = iter(Loader(names))
    for number in range(3):
        names["micro_batches"] = [next(source) for _ in range(3)]
        names["opt"].zero_grad()
        run()
        must(names["sync"].version == number + 1, "no version")
    return bits(names["model"])


def handing_over(run, names, ranks):
    names.update(N=3, M=4, sync=names["muster"].torch.Sync(names["model"], names["opt"]))
    source = iter(Loader(names))
    while not names["sync"].finished:
        if names["sync"].version >= 6:
            names["sync"].finish("enough")
        names["micro_batches"] = [next(source) for _ in range(3)]
        source = iter(Loader(names))
        run()
    return bits(names["model"])


def with_a_state(run, names, ranks):
    names["heads"] = names["torch"].optim.SGD(names["model"].parameters(), 0.1, momentum=0.5)
    names["apply"] = names["opt"].step
    run()
    goes_on(names, 5)
    state = names["sync"]._read_state(names["sync"]._packed_state())
    names["sync"]._set_state(state, names["sync"].version)
    return bits(names["model"])


def sampled(run, names, ranks):
    x = names["torch"].randn(300, 6, generator=names["torch"].Generator().manual_seed(1))
    ended = []

    class Data:
        def __len__(self):
            return len(x)

        def __getitem__(self, index):
            if names["sync"].version >= 12 and not ended:
                ended.append(names["sync"].finish("enough"))
            return x[index], x[index, :3].argmax()

    names["data"] = Data()
    run()
    return bits(names["model"]), names["sampler"].state_dict()


def compiled(run, names, ranks):
    """There is no JAX in Debian, as the guide says."""
    must(importlib.util.find_spec("jax") is None, "JAX is here: run this block")
    return None


def skipping(run, names, ranks):
    clean = names["loader"]

    class Spoilt:
        def __iter__(self):
            for number, (x, y) in enumerate(clean):
                if number % 4 == 1:
                    x = x * float("nan")
                if number % 4 == 2:
                    names["model"][0].weight.register_hook(once(float("nan")))
                yield x, y

    def once(factor):
        left = [factor]
        return lambda g: g * left.pop() if left else g

    names["sync"] = names["muster"].torch.Sync(names["model"], names["opt"])
    clean.ends = reaches(names, 10)
    names["loader"], told = Spoilt(), []
    names["print"] = told.append
    run()
    must(told and all("NaN" in str(e) for e in told), "nothing was refused")
    return bits(names["model"])


def accumulated(run, names, ranks):
    names["sync"] = names["muster"].torch.Sync(names["model"], names["opt"])
    names["loader"].ends = reaches(names, 10)
    run()
    must(names["loader"].count >= 40, "four batches do not make one step")
    return bits(names["model"])


def averaged(run, names, ranks):
    run()
    goes_on(names, 10)
    ema = names["ema"]
    must(int(ema.n_averaged) == names["sync"].version, "not of all versions")
    before = bits(ema)
    state = names["sync"]._read_state(names["sync"]._packed_state())
    with names["torch"].no_grad():
        for p in ema.parameters():
            p.zero_()
    names["sync"]._set_state(state, names["sync"].version)
    must(bits(ema) == before, "it is not in the state")
    return bits(names["model"], ema)


def stopped(run, names, ranks):
    os.chdir(ranks.folder)
    losses, saved = iter((3.0, 2.0, 2.5, 2.25, 4.0)), []

    def validation_loss(model):
        saved.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        return next(losses)

    names["validation_loss"] = validation_loss
    names["sync"] = names["muster"].torch.Sync(names["model"], names["opt"])
    run()
    must(names["sync"].finished and names["sync"].version >= 5 * 43, "it stops at another version")
    if names["sync"].rank == 0:
        must(all(tensor.equal(saved[1][name])
                 for name, tensor in names["model"].state_dict().items()),
             "it has not the weights of the second validation, which are the best")


def on_a_plateau(run, names, ranks):
    losses, rates = iter((3.0, 2.0, 2.5, 2.25, 4.0, 1.0)), []

    def validation_loss(model):
        must(names["sync"].rank == 0, "another rank validates")
        rates.append(names["opt"].param_groups[0]["lr"])
        return next(losses)

    names["validation_loss"], names["loader"].ends = validation_loss, reaches(names, 6 * 43 + 8)
    run()
    plateau = names["plateau"]
    must(plateau.best == 1.0 and plateau.last_epoch == 6 and names["sync"].rank == (not rates),
         "they have not heard of all validations")
    must(rates in ([], [0.1] * 5 + [0.1 * 0.1]), "the rate was changed at another time:", rates)
    return bits(names["model"]), names["opt"].param_groups[0]["lr"], plateau.state_dict()


def at_the_end(run, names, ranks):
    os.chdir(ranks.folder)
    names["sync"] = names["muster"].torch.Sync(names["model"], names["opt"])
    goes_on(names, 5)
    run()
    must(names["sync"].rank > 0 or os.path.exists("model.pt"), "nothing was saved")
    return bits(names["model"])


def adversarial(run, names, ranks):
    nn = names["torch"].nn
    names["critic"], names["maker"] = nn.Linear(6, 1), nn.Linear(8, 6)
    before, moved = {}, []

    def looks():
        now = {name: bits(names[name]) for name in ("critic", "maker")}
        if before:
            moved.append([name for name in now if now[name] != before[name]])
        before.update(now)
        return names["sync"].version >= 12

    names["loader"].ends = looks
    run()
    must(moved[:4] == [["critic"], ["maker"]] * 2, "they do not take turns:", moved)
    return bits(names["critic"], names["maker"])


BLOCKS = {
    "sync = muster.torch.Sync(model, opt)": (whole, ()),
    "schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 0.2, total_steps=171)": (scheduled, ()),
    "seen = sync.version": (saved, ()),
    "for done, (x, y) in enumerate(micro_batches, 1):        # N of them, of M samples each":
        (in_micro_batches, ()),
    "for done, (x, y) in enumerate(micro_batches, 1):        # --policy nonblocking:0,16":
        (handing_over, ("--policy", "nonblocking:0,16", "--history", "16")),
    "for x, y in sync.batches(loader):": (skipping, ()),
    "opt.zero_grad()": (accumulated, ()),
    "ema = torch.optim.swa_utils.AveragedModel(": (averaged, ()),
    'best, worse, seen = float("inf"), 0, 0': (stopped, ()),
    "model.told = torch.nn.Parameter(torch.zeros(2))": (on_a_plateau, ()),
    "if sync.rank == 0:": (at_the_end, ()),
    'both = torch.nn.ModuleDict({"critic": critic, "maker": maker})': (adversarial, ()),
    "def get():": (with_a_state, ()),
    'sampler = muster.torch.Sampler(len(data), 32, on_late="again")': (sampled, ()),
    "value_and_gradient = jax.jit(jax.value_and_grad(loss))   # loss(vector, x, y), of a flat "
    "vector": (compiled, ()),
    "served = muster.torch.Served(model)": (until_40, SERVERS),
}


def guide(a):
    """Each block is run as it stands, and the ranks have the same bits after it."""
    prepare(a)
    found = {text.splitlines()[0]: (line, text) for line, text in blocks()}
    must(len(found) == len(blocks()), "two blocks of the guide begin with the same line")
    for first in BLOCKS:
        must(first in found, "the guide has no block any more that begins with", repr(first))
    for first, (line, text) in found.items():
        must(first in BLOCKS, f"docs/pytorch.md:{line}: how is the block tested that begins with",
             repr(first))
        play, options = BLOCKS[first]

        def work(rank, ranks, p=play, code=compile(text, f"docs/pytorch.md:{line}", "exec")):
            names = given()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = p(lambda: exec(code, names), names, ranks)
            if "sync" in names:
                names["sync"].close()
            return said

        with Ranks(a, 2, work, *options) as ranks:
            said = ranks.ends()
        check(f"docs/pytorch.md:{line}: {first}", said[0] == said[1])


main({"guide": guide}, "musterd", "library")
