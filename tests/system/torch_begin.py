#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ranks of muster.torch that begin with other states than each other, as scripts leave them: all
begin with one of these states, and what differed is said. Afterwards their bits are the same.

usage: torch_begin.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_begin.py --list
"""
import os
import signal
import tracemalloc
import zlib

from base import check, main, must, until
from server import Server
from torch_case import Ranks, prepare, refused, together

STEPS = 6
BATCH = 4


class Script:
    """A training script. What a rank does on its own, the cases give."""

    def __init__(self, rank, seed=1, lr=0.1, kind="Adam", own=None, model=None, wide=5):
        import torch
        self.rank = rank
        torch.manual_seed(seed)
        self.model = model or torch.nn.Sequential(torch.nn.Linear(6, wide),
                                                  torch.nn.BatchNorm1d(wide),
                                                  torch.nn.Linear(wide, 2))
        self.opt = getattr(torch.optim, kind)(self.model.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, 3)
        self.own = own

    def train_alone(self, steps):
        import torch
        for _ in range(steps):
            self.opt.zero_grad()
            self.model(torch.randn(BATCH, 6)).sum().backward()
            self.opt.step()
            self.sched.step()
        return self

    def apply(self):
        self.opt.step()
        self.sched.step()

    def joins(self, **options):
        import muster.torch
        if self.own is not None:
            options["state"] = self.own
        else:
            options["scheduler"] = self.sched
        self.sync = muster.torch.Sync(self.model, self.opt, self.apply, **options)
        return self

    def steps(self, count=STEPS):
        import torch
        torch.manual_seed(100 + self.rank)
        for _ in range(count):
            self.opt.zero_grad()
            self.model(torch.randn(BATCH, 6)).sum().backward()
            self.sync.step(samples=BATCH)
        return self

    def trains(self):
        """Return: a digest of what all ranks have to have the same."""
        self.steps()
        self.sync.close()
        return self.digest()

    def digest(self):
        from muster import _state
        moments = self.opt.state_dict()
        return zlib.crc32(_state.encode([list(self.model.parameters()), moments]))


def jobs(a, work, *words, count=3, other=()):
    """All ranks end with the same bits, and the server has said the words; of a job in which
    nothing differed, it has said nothing."""
    prepare(a)
    with Ranks(a, count, work, "--policy", "bsp", *other) as ranks:
        said = ranks.ends()
        log = ranks.server.said()
    for word in words:
        check(f"the log says {word!r}", word in log)
    check("all ranks have the same bits", len(set(said)) == 1)
    if not words:
        must("begins with another state" not in log, f"something differed: {log}")
    return said


def all_have_the_same(a):
    """Then nothing travels, and nothing is said."""
    jobs(a, lambda rank, _: Script(rank).train_alone(2).joins().trains())


def another_seed(a):
    """The parameters are those of the lowest rank before anything is compared."""
    jobs(a, lambda rank, _: Script(rank, seed=rank).joins().trains())


def another_rate(a):
    jobs(a, lambda rank, _: Script(rank, lr=0.1 * (rank + 1)).joins().trains(),
         "rank 1 begins with another state than rank 0: lr of group 0: 0.2, and 0.1 at rank 0",
         "rank 2 begins with another state than rank 0: lr of group 0: 0.30000000000000004")


def moments_in_one_rank(a):
    """As after a torch.load() of the optimiser in rank 0 alone."""
    def work(rank, _):
        script = Script(rank)
        if rank == 0:
            script.train_alone(3)
        return script.joins().trains()

    jobs(a, work, "moments of the optimiser: not those of rank 0", "scheduler: at step 0, and at "
         "step 3 at rank 0")


def a_large_state(a):
    """It has some MiB, as many parts as there may be, and values that are as long."""
    import torch

    def work(rank, _):
        script = Script(rank, wide=60000)
        for at in range(8):
            script.opt.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1),
                                                                      requires_grad=False)],
                                        "lr": 0.1 * (rank + 1), "note": "n" * 100 + str(at)})
        return script.joins().trains()

    jobs(a, work, "rank 2 begins with another state than rank 0: lr of group 1", count=3)


def a_rate_of_its_own(a):
    """differ=("lr",): it is kept, with what the scheduler begins with, and nothing else differs."""
    def work(rank, _):
        script = Script(rank, lr=0.1 * (rank + 1)).joins(differ=("lr",))
        script.steps()
        must(script.sched.base_lrs == [0.1 * (rank + 1)], script.sched.base_lrs)
        must(script.opt.param_groups[0]["lr"] == script.sched.get_last_lr()[0] < 0.1 * (rank + 1),
             script.opt.param_groups[0])
        script.sync.close()
        return 0

    jobs(a, work)


def load_in_one_rank(a):
    """The others take its state, with its moments, its rate and its schedule."""
    prepare(a)

    def saves(_, ranks):
        script = Script(0).joins().steps(5)
        script.sync.save(ranks.path("saved"))
        script.sync.close()
        with open(ranks.path("saved"), "rb") as f:
            return f.read()

    with Ranks(a, 1, saves, "--policy", "bsp") as ranks:
        saved = ranks.end(0)

    def loads(rank, ranks):
        script = Script(rank).joins()
        if rank == 1:
            with open(ranks.path("mine"), "wb") as f:
                f.write(saved)
            must(script.sync.load(ranks.path("mine")) == 5, "it is of another version")
        return script.trains()

    jobs(a, loads, "rank 0 begins with another state than rank 1: parameters: not those of rank 1",
         "rank 2 begins with another state than rank 1: ", "scheduler: at step 0, and at step 5")


def a_state_of_its_own(a):
    """A program that says itself what its state is."""
    def work(rank, _):
        script, extra = Script(rank), [rank]
        script.own = (lambda: {"extra": list(extra), "model": script.model.state_dict(),
                               "opt": script.opt.state_dict()},
                      lambda tree: (extra.__setitem__(slice(None), tree["extra"]),
                                    script.model.load_state_dict(tree["model"]),
                                    script.opt.load_state_dict(tree["opt"])))
        return script.joins().trains() + 31 * extra[0]

    jobs(a, work, "rank 2 begins with another state than rank 0: state: not those of rank 0")


def a_server_is_lost(a):
    """Ranks make another Sync, of another server, with versions that differ: all go on from the
    newest state, moments included."""
    prepare(a)
    import muster

    def first(rank, ranks):
        script = Script(rank).joins()
        try:
            while True:
                script.steps(1)
                if rank == 1 and script.sync.version == 3:
                    ranks.tell("far")
        except muster.SessionLost:
            pass
        if rank == 1:  # further than the others, who may have one version more when the server ends
            script.train_alone(2)
            from muster import _claim
            _claim.is_of(script.model, _claim.version_of(script.model) + 2)
        ranks.tell(f"lost.{rank}")
        ranks.hear("address")
        with open(ranks.path("address")) as f:
            os.environ["MUSTER_SERVER"] = f.read()
        return script.joins().trains()

    with Ranks(a, 3, first, "--policy", "bsp") as ranks:
        ranks.hear("far")
        ranks.server.kill()
        for rank in range(3):
            ranks.hear(f"lost.{rank}")
        ranks.server = Server(a.musterd, "--workers", "3", "--owner", "workers", "--policy", "bsp",
                              "--join-timeout", "300s")
        with open(ranks.path("address.part"), "w") as f:
            f.write(ranks.server.address)
        os.rename(ranks.path("address.part"), ranks.path("address"))
        said = ranks.ends()
        check("all have the same bits", len(set(said)) == 1)
        check("they are those of the rank that was furthest",
              "rank 0 begins with another state than rank 1" in ranks.server.said())


def the_job_ends_before_a_rank_begins(a):
    """It ends in order, with words, and knows that it has no version of the job."""
    prepare(a)
    import warnings

    def work(rank, ranks):
        script = Script(rank, lr=0.1 * (rank + 1)).joins()
        if rank < 2:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                while not script.sync.finished:
                    script.steps(1)
            return script.sync.complete
        ranks.hear("over")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            script.steps(1)
        must("the job has ended before" in str(told[0].message), [str(w.message) for w in told])
        return script.sync.finished, script.sync.complete

    with Ranks(a, 3, work, "--policy", "backup:2", "--commits", "3", "--patience", "4s",
               "--min-workers", "1") as ranks:
        said = [ranks.end(rank) for rank in (0, 1)]
        ranks.tell("over")
        check("two ranks make all versions", said == [True, True])
        check("the third one knows that it has none", ranks.end(2) == (True, False))


def another_optimiser(a):
    """Its state cannot travel: the rank that has another class is refused in words."""
    prepare(a)

    def work(rank, _):
        script = Script(rank, kind="SGD" if rank == 1 else "Adam").joins()
        if rank == 1:
            refused(RuntimeError, script.steps, "rank 1 cannot begin with the state of rank 0",
                    "optimizer is Adam in it, and SGD here")
            return None
        return script.trains()

    with Ranks(a, 3, work, "--policy", "backup:2") as ranks:
        said = ranks.ends()
        check("the others have the same bits", said[0] == said[2])


def a_rank_leaves_before_it_has_begun(a):
    """Nobody waits for it; neither for the one that is to give its state."""
    prepare(a)

    def work(rank, ranks):
        script = Script(rank, lr=0.1 * (rank + 1)).joins()
        if rank == 0:
            ranks.tell("joined")
            ranks.hear("never")
        return script.trains()

    with Ranks(a, 3, work, "--policy", "backup:2") as ranks:
        ranks.hear("joined")
        ranks.killed(0, signal.SIGKILL)
        said = [ranks.end(rank) for rank in (1, 2)]
        check("the others begin with the state of the lowest that is left", said[0] == said[1])
        must(until(lambda: "rank 2 begins with another state than rank 1" in ranks.server.said()),
             "it is not said")


def what_is_compared_is_not_copied(a):
    """The digests of a large model need no memory beside it. Each byte of it counts."""
    prepare(a)
    import torch
    from muster import _claim, _state

    script = Script(0, wide=60000)
    for p in script.model.parameters():  # without backward(), after which PyTorch 2 cannot fork
        p.grad = torch.ones_like(p)
    script.opt.step()
    whole = _state.Whole(script.model, script.opt, script.sched)
    size = len(_state.encode(whole.get()))
    tracemalloc.start()
    before = _claim.of_whole(whole, ())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    check(f"{peak} bytes of memory for a state of {size}", peak < size // 16)
    for name, tensor in (("parameters", script.model[0].weight),
                         ("moments of the optimiser", script.opt.state[script.model[0].weight][
                             "exp_avg_sq"])):
        with torch.no_grad():
            tensor[-1, -1] += 1
        after = _claim.of_whole(whole, ())
        differ = [one.name for one, other in zip(after, before) if one != other]
        check(f"one number is changed: {differ}", differ == [name])
        before = after


CASES, BY_HAND = together(
    states=(what_is_compared_is_not_copied, all_have_the_same, another_seed, another_rate,
            moments_in_one_rank, load_in_one_rank,
            a_state_of_its_own, a_large_state, a_rate_of_its_own),
    ends=(a_server_is_lost, the_job_ends_before_a_rank_begins, another_optimiser,
          a_rank_leaves_before_it_has_begun))
main(CASES, "musterd", "library", unlisted=BY_HAND)
