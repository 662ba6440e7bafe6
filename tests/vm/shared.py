# SPDX-License-Identifier: MIT
"""Machines that are booted once, and lent to one case after the other as long as they are whole.

    with shared.lab(nodes=2) as machines:

is as lab.Lab(nodes=2), but the machines may be those of the case before. What that one has left is
undone first, and what there is then is compared with what there was after the boot (clean.sh).
Where that is not the same, and after a case that failed, switched a machine off or had one stand
still, the machines are replaced, and a line says why.
"""
import contextlib
import difflib
import os
import re
import signal
import time

import lab as laboratory
from lab import LabError

CLEAN = laboratory.HERE / "clean.sh"
GONE_S = 20  # until what was killed has left the device, and the card has its carrier again
TROUBLE = re.compile(r"BUG:|WARNING: CPU|Call Trace")  # of a kernel that goes on all the same


class Spoilt(Exception):
    """Why no other case can have these machines."""


class Whole:
    """A lab that is open, and what was to be seen in its machines before any case had them."""

    def __init__(self, nodes):
        self.machines = laboratory.Lab(nodes=nodes)
        self.machines.__enter__()
        try:
            self.first = self.shown()
            self.files = [set(os.listdir(node.share)) for node in self.machines.nodes]
        except BaseException:
            self.machines.close()
            raise
        self.begin()

    def begin(self):
        """From here on what happens is the next case's affair."""
        for node in self.machines.nodes:
            node.processes.clear()
            node.still_s = 0.0

    def in_all(self, *words):
        """clean.sh in all machines at once; words of each. Return: what each has printed."""
        runs = [node.start([CLEAN, *mine]) for node, mine in zip(self.machines.nodes, words)]
        for run in runs:
            run.wait(60)
        return [run.output for run in runs]

    def shown(self):
        return self.in_all(*[["show"]] * self.machines.count)

    def clean(self):
        """Raises Spoilt where what a case has left cannot be undone."""
        self._expect_alive()
        self._fix()
        self._end_processes()
        self._undo()
        self._remove_files()
        self._expect_first()
        try:
            self.machines.reach_all(time.monotonic() + GONE_S)
        except LabError as e:
            raise Spoilt(str(e)) from None
        self._expect_alive()
        self.begin()

    def _expect_alive(self):
        for node in self.machines.nodes:
            if not node.qemu.is_alive():
                raise Spoilt(f"{node.name} is off")
            if TROUBLE.search(node.console()):
                raise Spoilt(f"its kernel complains\n{node.describe_console()}")
        if self.machines.still():
            raise Spoilt(self.machines.still())

    def _fix(self):
        for node in self.machines.nodes:
            node.resume()
            for net in laboratory.NETS if self.machines.switch else ():
                node.fix(net)

    def _end_processes(self):
        running = [process for node in self.machines.nodes
                   for process in list(node.processes.values()) if process.is_running()]
        for process in running:
            process.kill(signal.SIGKILL)
        for process in running:
            if not process.ended.wait(GONE_S):
                raise Spoilt(f"{process.node.name} still runs {process.command}")

    def _undo(self):
        self.in_all(*(["undo", mtu, *re.findall(r"^process (\d+)", shown, re.M)]
                      for mtu, shown in zip(self.machines.mtus, self.first)))

    def _remove_files(self):
        """What was written below /lab."""
        for node, before in zip(self.machines.nodes, self.files):
            for path in node.share.iterdir():
                if path.name not in before:
                    laboratory.remove(path)

    def _expect_first(self):
        """Waits until all is as after the boot: what a process had of the device goes after it."""
        end = time.monotonic() + GONE_S
        while (now := self.shown()) != self.first:
            if time.monotonic() > end:
                raise Spoilt("; ".join(filter(None, map(difference, self.machines.nodes,
                                                        self.first, now))))


def difference(node, first, now):
    """In words, or ""."""
    lines = difflib.unified_diff(first.splitlines(), now.splitlines(), n=0, lineterm="")
    changed = [line for line in lines if re.match(r"[-+](?![-+])", line)]
    return f"{node.name} is not as it was: " + " | ".join(changed) if changed else ""


class Kept:
    """What the next case may have."""
    whole = None
    booted = 0  # labs so far


def close():
    """Ends the machines that are kept, if any."""
    whole, Kept.whole = Kept.whole, None
    if whole is not None:
        whole.machines.close()


def cleaned(nodes):
    """Return: what is kept, if a case that wants so many nodes can have it; else None."""
    if Kept.whole is None or Kept.whole.machines.count != nodes:
        return None
    try:
        Kept.whole.clean()
    except (Spoilt, LabError) as e:
        print(f"lab: new machines, since {e}", flush=True)
        return None
    laboratory.Lab.latest.append(Kept.whole.machines)
    return Kept.whole


@contextlib.contextmanager
def lab(nodes=1):
    """As lab.Lab(nodes). Only one can be open at a time."""
    whole = cleaned(nodes)
    if whole is None:
        close()
        Kept.booted += 1
        whole = Whole(nodes)
    Kept.whole = None
    try:
        yield whole.machines
    except BaseException:
        whole.machines.close()
        raise
    Kept.whole = whole
