#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ranks of muster.torch that have come to differ while they train, as scripts make them: each habit
ends in equal ranks, or in words that name version, ranks and what differs, with a slow rank and
without.

usage: torch_diverge.py CASE --musterd MUSTERD --library LIBMUSTER
       torch_diverge.py --list
"""
import os
import re
import subprocess
import sys
import time
import warnings
import zlib

from base import HERE, check, main, must
from server import SECONDS
from torch_case import PACKAGE, Ranks, joined, prepare, together

BATCH = 4
FROM = 10     # a rank begins to differ after this version,
WITHIN = 100  # and that is found within so many
HOPELESS = 20000
SLOW_S = 0.002
# One that lets a step end without the slow rank, one that waits for all, and the others that
# muster.torch.Sync takes.
SLOW, EVEN = "backup:2", "bsp"
OTHERS = ("ksync:2", "kasync:2", "deadline:2,2", "nonblocking", "anytime:5", "adasync:ksync")


class Script:
    """A training script of a rank. A habit is what it does besides, in one of its functions."""

    def __init__(self, rank, slow=False, **options):
        import muster.torch
        import torch
        torch.manual_seed(1)
        self.rank, self.slow, self.did = rank, slow, False
        self.model = torch.nn.Sequential(torch.nn.Linear(6, 40), torch.nn.ReLU(),
                                         torch.nn.Linear(40, 40), torch.nn.Linear(40, 2))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, 30)
        self.sync = muster.torch.Sync(self.model, self.opt, self.apply, scheduler=self.sched,
                                      **options)
        torch.manual_seed(100 + rank)

    def apply(self):
        self.opt.step()
        self.sched.step()

    def after_step(self):
        pass

    def step(self):
        import torch
        if self.slow and self.rank == 2:
            time.sleep(SLOW_S)
        self.opt.zero_grad()
        self.model(torch.randn(BATCH, 6)).square().sum().backward()
        self.sync.step(samples=BATCH)
        self.after_step()

    def differs(self):
        """Does this rank do what the others do not?"""
        return self.rank == 1 and self.sync.version >= FROM

    def differs_once(self):
        self.did, before = self.did or self.differs(), self.did
        return self.did and not before

    def trains(self, ranks):
        """Until a rank has said that it has heard of a difference, or until the end of the job.
        Return: what was raised, or None; and a digest."""
        import muster
        raised = None
        try:
            while not self.sync.finished:
                self.step()
                if self.rank == 0 and self.is_over(ranks):
                    self.sync.finish()
        except muster.torch.Diverged as e:
            raised = str(e)
            ranks.tell("told")
        self.sync.close()
        return raised, self.digest()

    def is_over(self, ranks):
        """Has the rank heard of it that differs? Of two that differ both have to hear. A server
        hears of it some versions later on a busy host; but not so many."""
        return self.sync.version > HOPELESS or (
            self.sync.workers > 2 and os.path.exists(ranks.path("told")))

    def digest(self):
        from muster import _state
        return zlib.crc32(_state.encode(list(self.model.parameters())))


# ---- habits ----

class Nothing(Script):
    """All is well."""


class Clamps(Script):
    """One rank clamps its weights in the loop; so do others, for the loop of the slow one has
    fewer steps."""

    def after_step(self):
        import torch
        if self.differs():
            with torch.no_grad():
                self.model[2].weight.clamp_(-0.05, 0.05)


class ClampsABias(Script):
    """A small tensor of many: one that is in one block alone."""

    def after_step(self):
        import torch
        if self.differs():
            with torch.no_grad():
                self.model[3].bias.fill_(7)


class ClampsAnElement(Script):
    """A tensor is in three blocks, and this element of it is in the second of them."""

    def after_step(self):
        import torch
        if self.differs():
            with torch.no_grad():
                self.model[2].weight[25, 0] = 7


class IsLate(Script):
    """One rank applies this version when the others have told what they have after it."""
    last = 32

    def apply(self):
        super().apply()
        if self.rank == 1 and self.sync.version == self.last - 1:
            time.sleep(0.2)


class Restores(Script):
    """The best weights are loaded again in the rank that validates."""

    def after_step(self):
        if self.differs_once():
            self.model.load_state_dict({k: v * 1.5 for k, v in self.model.state_dict().items()})


class Forgets(Script):
    """The moments of one rank are made zero where they are."""

    def after_step(self):
        if self.differs_once():
            for moments in self.opt.state.values():
                moments["exp_avg"].zero_()


class Slows(Script):
    """The rate is halved in one rank, where versions are applied: nothing in the loop has changed
    it."""

    def apply(self):
        super().apply()
        if self.differs_once():
            for g in self.opt.param_groups:
                g["lr"] *= 0.5


class Skips(Script):
    """The schedule of one rank has another place."""

    def apply(self):
        super().apply()
        if self.differs_once():
            self.sched.step()


def run(a, habit, policy, *more, count=3):
    """What all ranks have said, and the log."""
    def work(rank, ranks):
        return habit(rank, policy == SLOW).trains(ranks)

    # A late rank that takes a state says nothing of what it has passed, and decides nothing.
    with Ranks(a, count, work, "--policy", policy, "--history", "400", *more) as ranks:
        return ranks.ends(), ranks.server.said()


def is_found(a, habit, policy, what):
    """Rank 1, and no other rank, hears of it, in words that name the version, which is one of the
    next 100, and the part."""
    said, log = run(a, habit, policy)
    name = f"{habit.__name__} under {policy}"
    words = said[1][0] or ""
    must(what in words and "than rank 0" in words, f"{name}: {said}")
    version = int(re.search("after version ([0-9]+)", words)[1])
    check(f"{name}: found after {version}", FROM < version <= FROM + WITHIN)
    must(f"rank 1 differs from rank 0 after version {version}: " in log, f"{name}: {log}")
    must(said[0][0] is None and said[2][0] is None, f"{name}: another rank was told: {said}")
    check(f"{name}: the others are equal", said[0] == said[2])


# ---- cases ----

def equal_ranks_hear_nothing(a):
    prepare(a)
    for policy in (EVEN, SLOW):
        said, log = run(a, Nothing, policy, "--commits", str(FROM + WITHIN))
        check(f"{policy}: all ranks are equal", len(set(said)) == 1 and said[0][0] is None)
        check(f"{policy}: nothing is said", "differs" not in log)


def equal_ranks_hear_nothing_after_the_last_version(a):
    """After which ranks compare a part because of its number, and all because it is the last."""
    prepare(a)
    said, log = run(a, IsLate, EVEN, "--commits", str(IsLate.last))
    check("all ranks are equal", len(set(said)) == 1 and said[0][0] is None)
    must("differs" not in log, log)


def weights_changed_in_the_loop_are_found(a):
    prepare(a)
    for policy in (EVEN, SLOW):
        is_found(a, Clamps, policy, "2.weight")
        is_found(a, ClampsABias, policy, "3.bias")


def states_changed_in_one_rank_are_found(a):
    prepare(a)
    for habit in (Restores, Forgets):
        is_found(a, habit, SLOW, "tensor")


def rates_and_schedules_are_found_at_the_first_look(a):
    prepare(a)
    for habit, what in ((Slows, "lr of group 0: 0.005, and 0.01 at rank 0"),
                        (Skips, "scheduler: at step 17, and at step 16 at rank 0")):
        for policy in (EVEN, SLOW):
            is_found(a, habit, policy, f"after version 16 than rank 0: {what}")


def it_is_found_under_every_policy(a):
    """Every one that Sync takes."""
    prepare(a)
    for policy in OTHERS:
        is_found(a, ClampsABias, policy, "3.bias")


def of_two_both_raise(a):
    prepare(a)
    said, _ = run(a, Slows, EVEN, count=2)
    check("both raise", said[0][0] and said[1][0])


def one_that_warns_goes_on(a):
    """It is counted, and the job ends well."""
    prepare(a)

    def work(rank, _):
        script = ClampsABias(rank, on_difference="warn")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            while not script.sync.finished:
                script.step()
        script.sync.close()
        return [str(w.message) for w in told]

    with Ranks(a, 3, work, "--policy", EVEN, "--commits", "200") as ranks:
        said = ranks.ends()
        must(len(said[1]) == 1 and "It goes on as it is" in said[1][0], said)
        check("nobody else is warned", not said[0] and not said[2])
        check("the server ends well", ranks.server.end(SECONDS)[0] == 0)


def one_that_takes_is_equal_again(a):
    """With Adam, whose moments are part of the state."""
    prepare(a)
    for habit, policy in ((Restores, EVEN), (Forgets, SLOW), (Slows, EVEN)):
        def work(rank, _):
            script = habit(rank, policy == SLOW, on_difference="take")
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                while not script.sync.finished:
                    script.step()
            script.sync.close()
            return [str(w.message) for w in told], script.sync.complete and script.digest()

        with Ranks(a, 3, work, "--policy", policy, "--commits", "240") as ranks:
            said = ranks.ends()
            must(any("It takes the state of another rank" in w for w in said[1][0]), said)
            must(not said[0][0], f"rank 0 was warned: {said[0]}")
            digests = {digest for _, digest in said if digest is not False}
            check(f"{habit.__name__}: all end with the same", len(digests) == 1)
            must("it takes the state of another rank" in ranks.server.said(), ranks.server.said())


def a_difference_at_the_end_is_in_the_exit_status(a):
    """Where the job is too short for all blocks, and where it ends with a version after which ranks
    compare anyway."""
    prepare(a)

    for habit, last in ((ClampsABias, 14), (ClampsABias, 48), (ClampsAnElement, 14)):
        def work(rank, _):
            script = habit(rank, on_difference="take")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                while not script.sync.finished:
                    script.step()
            script.sync.close()

        with Ranks(a, 3, work, "--policy", EVEN, "--commits", str(last)) as ranks:
            ranks.ends()
            check(f"{last}: musterd says that something is missing",
                  ranks.server.end(SECONDS)[0] == 3)
            must(f"the ranks have not ended with the same state: after version {last} rank 1 "
                 "differs from rank 0" in ranks.server.said(), ranks.server.said())


def a_late_rank_decides_who_is_right(a):
    """The two others differ, and are further by more than two looks."""
    prepare(a)

    def work(rank, ranks):
        class Waits(Slows):
            """Rank 2 until the others have version 40, and rank 0 then until rank 1 has heard."""
            waited = False

            def step(self):
                here = {0: 40, 2: 8}.get(rank)
                if here is not None and self.sync.version >= here and not self.waited:
                    self.waited = True
                    if rank == 0:
                        ranks.tell("ahead")
                    ranks.hear("told" if rank == 0 else "ahead")
                super().step()

        return Waits(rank).trains(ranks)

    with Ranks(a, 3, work, "--policy", SLOW) as ranks:
        said = ranks.ends()
    must("lr of group 0: 0.005, and 0.01 at rank 0" in (said[1][0] or ""), said)
    check("rank 0 is right", said[0][0] is None and said[0] == said[2])


class OwnRate(Script):
    """Each rank has a rate of its own, and so other parameters than the others."""

    def __init__(self, rank, **options):
        super().__init__(rank, differ=("lr",), **options)
        self.opt.param_groups[0]["lr"] = 0.01 * (rank + 1)


def a_rank_that_differs_by_intention_is_not_compared(a):
    """But where on_difference is given."""
    prepare(a)
    for options, last in (({}, 33), ({}, 32), ({"on_difference": "raise"}, HOPELESS)):
        def work(rank, ranks):
            return OwnRate(rank, **options).trains(ranks)

        with Ranks(a, 2, work, "--policy", EVEN, "--commits", str(last)) as ranks:
            said = ranks.ends()
            if options:
                check("both raise", said[0][0] and said[1][0])
                continue
            must(said[0][0] is said[1][0] is None and said[0][1] != said[1][1], said)
            check("the server ends well", ranks.server.end(SECONDS)[0] == 0)


class Strange(Script):
    """Rates are numbers of NumPy, and groups have what cannot be in a state."""

    def apply(self):
        import numpy
        super().apply()
        self.opt.param_groups[0].update(lr=numpy.float32(0.01), rule=check, rows=[numpy.ones(2)])
        if self.differs():
            self.opt.param_groups[0]["rows"] = [numpy.zeros(2)]


def what_a_program_puts_into_groups_is_compared_as_far_as_it_can_be(a):
    prepare(a)
    is_found(a, Strange, EVEN, "after version 16 than rank 0: group 0: not those of rank 0")


ALONE = """
import sys, torch, warnings
sys.path[:0] = [{here!r}, {package!r}]
import torch_diverge
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    torch_diverge.clips({rank}, **{options!r})
print([str(w.message) for w in told])
"""


def clips(rank, **options):
    """Clipping gives other last bits where other instructions are used."""
    import torch
    script = Script(rank, **options)
    plain = script.opt.step
    script.apply = lambda: (torch.nn.utils.clip_grad_norm_(script.model.parameters(), 1e-3),
                            plain())
    while not script.sync.finished:
        script.step()
    script.sync.close()


def other_kernels_are_named_and_warned_of(a):
    """One rank has another CPU capability, one another number of threads. What makes them equal is
    said when they begin, and then the job goes on."""
    prepare(a)

    def work(rank, ranks):
        env = {1: {"ATEN_CPU_CAPABILITY": "default"}, 2: {"OMP_NUM_THREADS": "2"}}.get(rank, {})
        code = ALONE.format(here=HERE, package=PACKAGE, rank=rank, options={})
        return subprocess.run([sys.executable, "-c", code], env={**os.environ, **env}, check=True,
                              capture_output=True, text=True).stdout

    with Ranks(a, 3, work, "--policy", EVEN, "--commits", "100") as ranks:
        said = ranks.ends()
        log = ranks.server.said()
        check("the server ends well", ranks.server.end(SECONDS)[0] == 0)
    for rank, words in ((1, "ATEN_CPU_CAPABILITY: "), (2, "OMP_NUM_THREADS: 2, and 1 at rank 0")):
        check(f"rank {rank} is warned: {words}", words in said[rank])
        must(words in log, log)
    check("rank 0 is warned, too", "ranks compute with other kernels" in said[0])


def other_kernels_are_refused_where_that_is_wanted(a):
    prepare(a)

    def work(rank, _):
        import muster.torch
        import torch
        torch.set_num_threads(1 + rank)
        script = Script(rank, on_difference="raise")
        try:
            script.step()
        except muster.torch.Diverged as e:
            return str(e)
        return None

    with Ranks(a, 2, work, "--policy", EVEN) as ranks:
        check("both refuse", all("OMP_NUM_THREADS" in (words or "") for words in ranks.ends()))


def one_that_comes_back_with_other_kernels_is_told(a):
    prepare(a)
    import torch

    def go_on(script, ranks, count):
        """Until all ranks have heard as much as they are to hear."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            while not all(os.path.exists(ranks.path(f"told.{r}")) for r in range(2)):
                script.step()
                if len(told) == count:
                    ranks.tell(f"told.{script.rank}")
        script.sync.close()
        return [str(w.message) for w in told]

    def stays(rank, ranks):
        return go_on(Script(rank), ranks, 1)

    def leaves(rank, ranks):
        script = Script(rank)
        script.step()
        script.sync.close()
        ranks.tell("left")

    def comes_back(rank, ranks):
        torch.set_num_threads(2)
        return go_on(joined(muster, lambda: Slows(rank)), ranks, 2)

    import muster
    with Ranks(a, 2, None, "--policy", "backup:1") as ranks:
        ranks.pids = [ranks.fork(0, stays), ranks.fork(1, leaves)]
        ranks.hear("left")
        ranks.end(1)
        ranks.again(1, comes_back)
        stayed, came = ranks.ends()
        check("it is warned", "OMP_NUM_THREADS: 2, and 1 at rank 0" in came[0])
        check("so is the log", "rank 1 computes with other kernels than rank 0"
              in ranks.server.said())
        check("a difference is a warning at both", "It goes on as it is" in stayed[0]
              and "It goes on as it is" in came[1])


CASES, BY_HAND = together(
    looks=(equal_ranks_hear_nothing, equal_ranks_hear_nothing_after_the_last_version,
           weights_changed_in_the_loop_are_found, states_changed_in_one_rank_are_found,
           rates_and_schedules_are_found_at_the_first_look),
    policies=(it_is_found_under_every_policy,),
    modes=(of_two_both_raise, one_that_warns_goes_on, one_that_takes_is_equal_again,
           a_difference_at_the_end_is_in_the_exit_status, a_late_rank_decides_who_is_right,
           a_rank_that_differs_by_intention_is_not_compared,
           what_a_program_puts_into_groups_is_compared_as_far_as_it_can_be),
    kernels=(other_kernels_are_named_and_warned_of,
             other_kernels_are_refused_where_that_is_wanted,
             one_that_comes_back_with_other_kernels_is_told))
if __name__ == "__main__":
    main(CASES, "musterd", "library", unlisted=BY_HAND)
