# SPDX-License-Identifier: MIT
"""Places in the life of a rank of PyTorch at which it is killed: calls and returns of the functions
of muster, of torch.optim, and of the rank's own program. Nobody lists them by hand. One session
writes down those that it comes to, and a test takes some of them, evenly."""
import json
import os
import signal
import sys
from typing import NamedTuple

from torch_case import PACKAGE
from torch_training import Training

LIVES = 3     # so many steps a session makes before it is killed in one
TRACED = 3    # steps of which each place is written down
GIVES_UP = 90  # steps. A few places are not in every session, such as those of a wait
MOST = 6      # a place is at most the sixth call, or return, of a function


class Place(NamedTuple):
    """The n-th time that a session comes to it. late: counted from when it has made LIVES steps."""
    name: str
    n: int
    late: bool

    def mark(self):
        """For ranks.tell()."""
        return f"at.{self.name}.{self.n}.{self.late}".replace(" ", "-")


def watch(came):
    """came(name) is called at each call and return in this thread, until sys.setprofile(None). It
    is the thread that calls backward(), and for a model on the CPU the one of its hooks, too."""
    import torch
    folders = (os.path.join(PACKAGE, "muster", ""), os.path.dirname(torch.optim.__file__),
               sys.modules[Training.__module__].__file__)
    names = {}

    def heard(frame, event, _):
        code = frame.f_code
        if code not in names:
            within = code.co_qualname  # with the class; Python has it from 3.11 on
            ours = code.co_filename.startswith(folders) and "<" not in within
            names[code] = ours and f"{os.path.basename(code.co_filename)} {within}"
        if names[code] and event in ("call", "return"):
            came(f"{names[code]} {event}")

    sys.setprofile(heard)


def spread(trace, count, late):
    """So many places of the trace, evenly by name, in the order in which it comes to them first."""
    names = list(dict.fromkeys(trace))
    if len(names) < count:
        sys.exit(f"{count} places are wanted, and these are all: {names}")
    taken = [names[i * len(names) // count] for i in range(count)]
    return [Place(name, 1 + i % min(MOST, trace.count(name)), late)
            for i, name in enumerate(taken)]


class Life(Training):
    """A session that is killed at a place, or, without one, when it has made a few steps. It saves
    after each."""

    def __init__(self, rank, ranks, place=None):
        self.place, self.steps = place, 0
        super().__init__(rank, ranks)

    def joins(self):
        if self.place and not self.place.late:
            self.is_killed_there()
        super().joins()

    def dies(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def is_killed_there(self):
        left = [self.place.n]

        def came(name):
            left[0] -= name == self.place.name
            if left[0] == 0:
                self.ranks.tell(self.place.mark())
                self.dies()

        watch(came)

    def step(self):
        if self.steps == LIVES:
            if self.place is None:
                self.dies()
            if self.place.late:
                self.is_killed_there()
        if self.steps == GIVES_UP:
            self.dies()
        super().step()
        self.sync.save(self.ranks.path(f"saved.{self.rank}"))
        self.steps += 1


class Traced(Life):
    """Writes the places that it comes to: until its first step is over, and in later ones."""

    def joins(self):
        self.trace = []
        watch(self.trace.append)
        super().joins()

    def step(self):
        if self.steps == LIVES:
            self.trace.clear()
        if self.steps == LIVES + TRACED:
            with open(self.ranks.path("traces"), "w") as f:
                json.dump([self.begun, self.trace], f)
            self.dies()
        self.place = Place("", 0, False)  # it is killed at none
        super().step()
        if self.steps == 1:
            self.begun = self.trace[:]


GIVING = ("_sync.py Sync._packed_state call", "_sync.py Sync._packed_state return",
          "worker.py Worker.give_state call", "worker.py Worker.give_state return")


class Donor(Training):
    """Goes on until the job ends, but for the one that comes first to each place of giving a state,
    from when that is wanted."""

    def joins(self):
        super().joins()
        offer, ranks = self.sync._offer_state, self.ranks

        def offers():
            wanted = [i for i in range(len(GIVING)) if os.path.exists(ranks.path(f"give.{i}"))
                      and not os.path.exists(ranks.path(f"donor.{i}"))]
            if wanted:
                watch(lambda name: name == GIVING[wanted[0]] and self.first(wanted[0]))
            offer()
            sys.setprofile(None)

        self.sync._offer_state = offers

    def first(self, i):
        try:
            os.close(os.open(self.ranks.path(f"donor.{i}"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)
