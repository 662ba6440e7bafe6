#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs a command, and freezes processes and single threads below it at random, as a busy host does.

Usage: freeze.py [--seed N] [--longest S] [--pause S] [--at-once N] [--log FILE] [--signals]
                 -- COMMAND [ARG ...]

A test that passes below it with many seeds does not depend on a process being scheduled in time.
The exit status is the command's, or 128 + N after a signal N, which the command is sent too.

A process or thread is frozen by the freezer of cgroup v2, which nobody who is frozen can notice but
by a clock. The command runs in a cgroup of its own below that of this process. A process that is to
stand still is moved to a frozen cgroup below that one, and back. Where there is no such freezer, or
with --signals, processes are stopped by SIGSTOP. A process that was stopped already is left alone.
A test that stops processes itself is not to be believed then.

A frozen process goes on when this process ends, unless that is killed by SIGKILL. The freezer ends
some system calls with EINTR, such as epoll_wait(). Seeds give the same choices, not the same run:
who is there to be chosen depends on the command.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import time

ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Ended(Exception):
    """A signal has asked this process to end."""


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def read(path):
    with open(path) as f:
        return f.read()


def own_cgroup():
    """The folder of this process in cgroup v2. FileNotFoundError: there is none."""
    with open("/proc/self/mountinfo") as f:
        mounts = [line.split() for line in f]
    mount = next((m[4] for m in mounts if m[m.index("-") + 1] == "cgroup2"), None)
    with open("/proc/self/cgroup") as f:
        path = next((line[3:].rstrip() for line in f if line.startswith("0::")), None)
    if mount is None or path is None:
        raise FileNotFoundError("no cgroup v2")
    return mount + path.rstrip("/")


def threads_of(pid):
    return sorted(int(tid) for tid in os.listdir(f"/proc/{pid}/task"))


def is_zombie(pid):
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] == "Z"


class Cgroups:
    """Freezes by cgroup v2: processes and threads."""

    def __init__(self):
        self.above = own_cgroup()
        self.all = f"{self.above}/freeze.{os.getpid()}"
        self.ice = f"{self.all}/ice"
        os.mkdir(self.all)
        try:
            os.mkdir(self.ice)
            write(f"{self.ice}/cgroup.type", "threaded")
            write(f"{self.ice}/cgroup.freeze", "1")
        except OSError:
            self.close()
            raise

    def enter(self):
        """Called by the command, before it is executed."""
        write(f"{self.all}/cgroup.procs", "0")

    def processes(self):
        return [int(pid) for pid in read(f"{self.all}/cgroup.procs").split()]

    def choose(self, chance):
        """Return: (process, thread or None), or None."""
        processes = [pid for pid in sorted(self.processes()) if not is_zombie(pid)]
        if not processes:
            return None
        pid = chance.choice(processes)
        threads = threads_of(pid)
        alone = len(threads) > 1 and chance.random() < 0.6
        return pid, chance.choice(threads) if alone else None

    def move(self, folder, victim):
        pid, tid = victim
        kind, number = ("procs", pid) if tid is None else ("threads", tid)
        write(f"{folder}/cgroup.{kind}", str(number))

    def freeze(self, victim):
        self.move(self.ice, victim)

    def thaw(self, victim):
        self.move(self.all, victim)

    def close(self):
        """Processes that are left live on in the cgroup above."""
        if os.path.exists(self.ice):
            write(f"{self.ice}/cgroup.freeze", "0")
        for pid in self.processes():
            try:
                write(f"{self.above}/cgroup.procs", str(pid))
            except ProcessLookupError:
                pass
        for folder in (self.ice, self.all):
            self.remove(folder)

    @staticmethod
    def remove(folder):
        for _ in range(100):  # a process that has just ended is in its cgroup for a moment
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.05)
        print(f"freeze: {folder} cannot be removed", file=sys.stderr)


class Signals:
    """Freezes by SIGSTOP: processes only, all that this process has started directly or not."""

    def __init__(self):
        self.stopped = set()

    def enter(self):
        pass

    @staticmethod
    def below(top):
        """Return: {process: its state} of all below @top."""
        of = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                state, parent = read(f"/proc/{name}/stat").rpartition(")")[2].split()[:2]
            except OSError:
                continue
            of.setdefault(int(parent), {})[int(name)] = state
        found, ask = {}, [top]
        while ask:
            children = of.get(ask.pop(), {})
            found.update(children)
            ask += children
        return found

    def choose(self, chance):
        processes = [pid for pid, state in sorted(self.below(os.getpid()).items())
                     if state not in "ZTt"]
        return (chance.choice(processes), None) if processes else None

    # This process may be told to end at any instant: close() is to know of all who are stopped.

    def freeze(self, victim):
        self.stopped.add(victim[0])
        os.kill(victim[0], signal.SIGSTOP)

    def thaw(self, victim):
        try:
            os.kill(victim[0], signal.SIGCONT)
        except ProcessLookupError:
            pass
        self.stopped.discard(victim[0])

    def close(self):
        for pid in self.stopped:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass


class Frozen:
    """The processes that are frozen, and until when."""

    def __init__(self, freezer, a):
        self.freezer, self.a = freezer, a
        self.chance = random.Random(a.seed)
        self.until = {}
        self.counts = {"processes": 0, "threads": 0}
        self.log = open(a.log, "a", buffering=1) if a.log else None

    def duration(self):
        """Many are short, and some as long as a busy host makes them."""
        return self.a.longest * self.chance.random() ** 2

    def next(self, now):
        """One more is frozen, unless there are enough."""
        if len(self.until) >= self.a.at_once:
            return
        seconds = self.duration()
        try:
            victim = self.freezer.choose(self.chance)
            if victim is None or victim in self.until:
                return
            pid, tid = victim
            name = read(f"/proc/{pid}/comm" if tid is None
                        else f"/proc/{pid}/task/{tid}/comm").rstrip()
            self.until[victim] = now + seconds
            self.freezer.freeze(victim)
        except OSError:  # it has ended
            return
        self.counts["processes" if tid is None else "threads"] += 1
        if self.log:
            what = "process" if tid is None else f"thread {tid} of"
            print(f"{time.strftime('%T')} {what} {pid} {name}: {seconds:.3f} s", file=self.log)

    def thaw(self, now):
        for victim in [v for v, until in self.until.items() if until <= now]:
            del self.until[victim]
            try:
                self.freezer.thaw(victim)
            except OSError:  # it has ended
                pass


def watch(command, frozen, a):
    """Freezes until the command has ended."""
    soon = time.monotonic()
    while command.poll() is None:
        now = time.monotonic()
        frozen.thaw(now)
        if now >= soon:
            frozen.next(now)
            soon = now + a.pause * frozen.chance.random()
        time.sleep(0.01)


def end(number, _):
    for other in ENDS:
        signal.signal(other, signal.SIG_IGN)
    raise Ended(number)


def freezer_of(a):
    if not a.signals:
        try:
            return Cgroups()
        except OSError as e:
            print(f"freeze: no freezer ({e}); processes are stopped instead", file=sys.stderr)
    return Signals()


def run(a):
    freezer = freezer_of(a)
    command, status = None, None
    try:
        for number in ENDS:
            signal.signal(number, end)
        frozen = Frozen(freezer, a)
        command = subprocess.Popen(a.command, preexec_fn=freezer.enter)
        watch(command, frozen, a)
        print(f"freeze: seed {a.seed}: {frozen.counts['processes']} processes and "
              f"{frozen.counts['threads']} threads stood still for a while", file=sys.stderr)
    except Ended as e:
        status = 128 + e.args[0]
    finally:
        for number in ENDS:
            signal.signal(number, signal.SIG_IGN)
        freezer.close()
    if status is not None and command is not None:
        command.send_signal(status - 128)
        command.wait()
    if status is None:
        status = command.returncode if command.returncode >= 0 else 128 - command.returncode
    return status


def main():
    usage = argparse.ArgumentParser(usage=__doc__.split("Usage: ")[1].split("\n\n")[0])
    usage.add_argument("--seed", type=int, default=1)
    usage.add_argument("--longest", type=float, default=2.5, help="the longest time, in seconds")
    usage.add_argument("--pause", type=float, default=0.4, help="the longest from one to the next")
    usage.add_argument("--at-once", type=int, default=3, help="so many stand still at once")
    usage.add_argument("--log", help="a line for each: when, who, how long")
    usage.add_argument("--signals", action="store_true", help="SIGSTOP, though there is a freezer")
    usage.add_argument("command", nargs="+")
    sys.exit(run(usage.parse_args()))


if __name__ == "__main__":
    main()
