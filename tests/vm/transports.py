# SPDX-License-Identifier: MIT
"""Programs that try the transport over verbs by themselves, each in a machine with soft-RoCE."""
import shared
from checks import Failed
from lab import CHECKOUT

TIMEOUT_S = 600
# An emulated device is slow, so cases of the suite that repeat for long do so an eighth as often.
SELDOM = "8"


def in_machine(*command):
    """Runs a program to its end and prints what it says; its last line tells why it failed."""
    with shared.lab() as machines:
        got = machines[0].run(command, TIMEOUT_S, check=False)
        print(got.output, end="", flush=True)
        if got.status != 0:
            last = (got.output.strip().splitlines() or ["it said nothing"])[-1]
            raise Failed(f"NOT SO: it ends with 0, not with {got.status}: {last}")


def threads(tools):
    """The suite of all transports, its peers in threads."""
    in_machine(tools.transport, "verbs", "threads", SELDOM)


def processes(tools):
    """The suite of all transports, its peers in processes."""
    in_machine(tools.transport, "verbs", "processes", SELDOM)


def threads_long(tools):
    """The suite in full."""
    in_machine(tools.transport, "verbs", "threads")


def processes_long(tools):
    """The suite in full."""
    in_machine(tools.transport, "verbs", "processes")


def copies(tools):
    """How often the client copies what it sends and receives."""
    in_machine(tools.copies, "verbs")


def hostile(tools):
    """What a hostile peer does over a link is refused."""
    in_machine(tools.hostile, "links")


def listener(tools):
    """What a hostile caller does before there is a link is refused."""
    in_machine(tools.hostile, "listener")


def removal(tools):
    """A device may go while links are up."""
    in_machine(tools.hostile, "removal")


def faults(tools):
    """Each call that opening, dialling and answering make is made to fail."""
    in_machine(tools.faults)


def register(tools):
    """Memory that a device does not get is refused, with the cause."""
    in_machine(tools.faults, "register")


def rails(tools):
    """Jobs over several paths."""
    in_machine(CHECKOUT / "tests" / "vm" / "rails.sh", tools.muster, tools.bench_step)
