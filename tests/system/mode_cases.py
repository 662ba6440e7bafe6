# SPDX-License-Identifier: MIT
"""The jobs of modes.py: what is run, and what is expected of it."""
import dataclasses

MICROS = 4  # micro-batches of a batch
ELEMS = 333
SLOW = ["sleep_us=500", "3:sleep_us=3000"]  # rank 3 crawls
DIES = ["2:die=30"]
DELTAS = ("local", "easgd", "easgdsync")


@dataclasses.dataclass(frozen=True)
class Case:
    policy: str
    commits: int = 60
    workers: int = 4
    words: tuple = tuple(SLOW)
    never: tuple = ()  # verdicts that nobody may have
    partial: bool = False  # some contribution ends in the middle of a batch
    servers_do: str = ""  # the optimiser; "": the policy's usual one
    fewer: bool = False  # some version has fewer contributions than its quorum

    @property
    def kills(self):
        return any("die=" in word for word in self.words)

    @property
    def optimizer(self):
        if self.servers_do:
            return self.servers_do
        return "add" if self.policy.split(":")[0] in DELTAS else "sgd:lr=0.1,momentum=0.9"

    def options(self):
        """Options of muster run."""
        return ["-n", str(self.workers), "--policy", self.policy, "--optimizer", self.optimizer,
                "--commits", str(self.commits)]

    def arguments(self, servers=1):
        """Words of programs/micro.c; each server has a part of the vector."""
        elems = ELEMS + (4096 * servers if servers > 1 else 0)
        return [str(elems), str(MICROS), *self.words]


CASES = {
    # Nobody is late, and so all micro-batches count that are handed in.
    "nonblocking": Case("nonblocking", 100, never=("late", "stale", "refused"), partial=True),
    "nonblocking_grace": Case("nonblocking:2", 100, never=("stale", "refused"), partial=True),
    "nonblocking_kill": Case("nonblocking", 100, words=(*SLOW, *DIES), partial=True),
    # Rank 3's micro-batches take as long as several versions; none is lost, or counted twice.
    "nonblocking_age": Case("nonblocking:0,3", 100, words=("sleep_us=500", "3:sleep_us=12000"),
                            never=("late", "stale", "refused"), partial=True),
    "nonblocking_age_kill": Case("nonblocking:5,2", 100, words=("sleep_us=500", "3:sleep_us=20000",
                                                                *DIES), partial=True),
    "anytime": Case("anytime:10", 40, never=("late", "stale", "refused"), partial=True),
    "anytime_kill": Case("anytime:10", 40, words=(*SLOW, *DIES)),
    # A batch of rank 3 takes at least 200 ms, so a step cannot have it by its deadline.
    "deadline": Case("deadline:60,4", 30, words=("sleep_us=500", "3:sleep_us=50000"), fewer=True),
    "deadline_quorum": Case("deadline:60000,3", 60),
    "deadline_kill": Case("deadline:60,4", 30, words=(*SLOW, *DIES)),
    "local": Case("local:3", 40, never=("late", "stale", "refused")),
    "local_one": Case("local:1", 40, never=("late", "stale", "refused")),
    "local_quorum": Case("local:3,3", 60),
    "local_kill": Case("local:3,-1", 40, words=(*SLOW, *DIES)),
    "local_outer": Case("local:3", 40, never=("late", "stale", "refused"),
                        servers_do="outer:lr=0.7"),
    "local_outer_quorum": Case("local:3,3", 60,
                               servers_do="outer:lr=0.3,momentum=0.5,nesterov=0"),
    "easgd": Case("easgd:3,0.25", 100, never=("late", "stale", "refused")),
    "easgd_kill": Case("easgd:3,0.25", 100, words=(*SLOW, *DIES)),
    "easgdsync": Case("easgdsync:3,0.225", 40, never=("late", "stale", "refused")),
    "downpour": Case("downpour:2,3", 100, never=("late", "stale", "refused")),
    "downpour_fetches_more": Case("downpour:5,1", 60, never=("late", "stale", "refused")),
    "downpour_kill": Case("downpour:2,3", 100, words=(*SLOW, *DIES)),
}
