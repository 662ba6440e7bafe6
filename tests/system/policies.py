# SPDX-License-Identifier: MIT
"""What a policy promises of the versions it makes, as docs/policies.md has it: a row a policy.

The proof of a job (history.py) reads all of it here. How a job with a policy is started, each test
says itself: exact.py has one or more for every policy whose workers contribute a gradient for each
batch, and modes.py for every other one.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Policy:
    """What holds of every contribution and version of a job."""

    # As many versions behind as a counted contribution may be; None: any, or what its number says.
    window: int | None = None
    # A version has at most one contribution of a rank.
    one_each: bool = False
    # Where servers own, a counted worker goes on with the version it is in, or a newer one.
    own_version: bool = False
    # A version is made of one contribution: weights cancel.
    alone: bool = False
    # Which of its numbers is the quorum: 0, 1; None: it has none.
    quorum: int | None = None
    # Every micro-batch is a contribution: a rate that follows their number counts ranks.
    by_micro: bool = False
    # Contributions are averaged, also if they are differences of parameters.
    divides: bool = False

    def quorum_of(self, text):
        """Its quorum, as the user has typed the policy; None: it has none."""
        numbers = text.partition(":")[2].split(",")
        if self.quorum is None or len(numbers) <= self.quorum:
            return None
        return int(numbers[self.quorum])


POLICIES = {
    "bsp": Policy(window=0, one_each=True, own_version=True),
    "backup": Policy(window=0, one_each=True, own_version=True, quorum=0),
    "ksync": Policy(window=0, one_each=True, own_version=True, quorum=0),
    "kbatchsync": Policy(window=0, quorum=0),
    "kasync": Policy(one_each=True, own_version=True, quorum=0),
    "kbatchasync": Policy(quorum=0),
    "softsync": Policy(quorum=0),
    "async": Policy(own_version=True, alone=True),
    "bounded": Policy(own_version=True, alone=True),
    "ssp": Policy(own_version=True, alone=True),
    "nonblocking": Policy(window=0, one_each=True, own_version=True),
    "anytime": Policy(window=0, one_each=True, own_version=True),
    "deadline": Policy(window=0, one_each=True, own_version=True, quorum=1),
    "local": Policy(window=0, one_each=True, own_version=True, quorum=1, divides=True),
    "easgd": Policy(own_version=True, alone=True),
    "easgdsync": Policy(window=0, one_each=True, own_version=True),
    "downpour": Policy(own_version=True, alone=True),
}


def policy_of(text):
    """@text: of --policy, such as backup:4."""
    name, _, numbers = text.partition(":")
    age = int((numbers.split(",") + ["0"])[1]) if name == "nonblocking" else 0
    return Policy(window=age, by_micro=True) if age else POLICIES[name]
