# SPDX-License-Identifier: MIT
"""What a policy promises of the versions it makes, as docs/policies.md has it: a row a policy.

The proof of a job (history.py) reads all of it here. How a job with a policy is started, each test
says itself: exact.py has one or more for every policy.
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


POLICIES = {
    "bsp": Policy(window=0, one_each=True, own_version=True),
    "backup": Policy(window=0, one_each=True, own_version=True),
    "ksync": Policy(window=0, one_each=True, own_version=True),
    "kbatchsync": Policy(window=0),
    "kasync": Policy(one_each=True, own_version=True),
    "kbatchasync": Policy(),
    "softsync": Policy(),
    "async": Policy(own_version=True, alone=True),
    "bounded": Policy(own_version=True, alone=True),
    "ssp": Policy(own_version=True, alone=True),
    "nonblocking": Policy(window=0, one_each=True, own_version=True),
    "anytime": Policy(window=0, one_each=True, own_version=True),
    "deadline": Policy(window=0, one_each=True, own_version=True),
}


def policy_of(text):
    """@text: of --policy, such as backup:4."""
    return POLICIES[text.split(":")[0]]
