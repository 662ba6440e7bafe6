# SPDX-License-Identifier: MIT
"""Jobs of ranks in PyTorch, forked from one process that has imported it."""
import errno
import os
import pickle
import shutil
import signal
import sys
import tempfile

from base import CALM, HANG_S, HERE, NAME, must, until
from server import Server

os.environ["OMP_NUM_THREADS"] = "1"
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "client", "python")


def prepare(a):
    """Imports torch, or skips. Ranks inherit what is imported here, so that none of them does it
    again; and no thread is started."""
    os.environ["MUSTER_LIBRARY"] = a.library
    sys.path.insert(0, PACKAGE)
    try:
        import torch
    except ImportError:
        print("skipped: there is no PyTorch here; Debian has it in python3-torch")
        sys.exit(77)
    torch.set_num_threads(1)
    import muster.torch  # noqa: F401
    torch.optim.SGD([torch.zeros(1)], 0.1)  # PyTorch 2 imports a third of itself here


def together(**groups):
    """For main(): a test for each group of cases, as importing torch takes longer than most of
    them; and each case by its name, for people."""
    by_name = {f.__name__: f for functions in groups.values() for f in functions}

    def group(functions):
        def run(a):
            for f in functions:
                print(f"== {f.__name__}", flush=True)
                f(a)
        return run

    return {**{name: group(functions) for name, functions in groups.items()}, **by_name}, (
        *by_name,)


def refused(kind, function, *words):
    try:
        function()
    except kind as e:
        must(all(w in str(e) for w in words), f"{words} are not in: {e}")
        print(e)
        return
    must(False, f"{words}: nothing was raised")


def joined(muster, join):
    """The server may not have noticed yet that the session before is over."""
    held = []

    def tried():
        try:
            held.append(join())
        except muster.Error as e:
            if e.errno not in (errno.EEXIST, errno.EBUSY):
                raise
        return held

    must(until(tried, HANG_S), "it cannot join again")
    return held[0]


class Ranks:
    """A server, and a process for each rank, that runs work(rank, ranks); None: there are none
    yet."""

    def __init__(self, a, count, work, *options, listen="127.0.0.1:0"):
        if "--history" not in options:
            options = ("--history", "64", *options)
        if "--owner" not in options:
            options = ("--owner", "workers", *options)
        self.words = (*CALM, "--patience", "60s", "--workers", str(count), "--join-timeout", "300s",
                      *options)
        self.server = Server(a.musterd, *self.words, listen=listen)
        self.folder, self.parent = tempfile.mkdtemp(prefix="muster-test-"), os.getpid()
        self.pids = [work and self.fork(rank, work) for rank in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if os.getpid() != self.parent:
            return  # a rank that has raised an error
        for pid in self.pids:
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        self.server.kill()
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def fork(self, rank, work):
        """An error in a rank goes its whole way up: the rank ends as any Python program would."""
        sys.stdout.flush()
        pid = os.fork()
        if pid != 0:
            return pid
        os.environ["MUSTER_SERVER"], os.environ["MUSTER_RANK"] = self.server.address, str(rank)
        said = work(rank, self)
        with open(self.path(f"part.{rank}"), "wb") as f:
            pickle.dump(said, f)
        os.rename(self.path(f"part.{rank}"), self.path(f"said.{rank}"))
        sys.stdout.flush()
        os._exit(0)

    def tell(self, name):
        with open(self.path(name), "w"):
            pass

    def hear(self, name):
        """Waits until another rank has told it."""
        if not until(lambda: os.path.exists(self.path(name)), HANG_S):
            sys.exit(f"{NAME}: nobody has told {name}")

    def killed(self, rank, signo=0):
        """Waits until that rank is killed by SIGKILL, or kills it."""
        os.kill(self.pids[rank], signo)
        must(self.waited(rank) == signal.SIGKILL, f"rank {rank} was not killed")

    def ended_first(self):
        """Waits until a rank is over, and says which one. It is still to be waited for."""
        over = []

        def tried():
            over.extend(rank for rank, pid in enumerate(self.pids) if pid is not None and os.waitid(
                os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT))
            return over

        must(until(tried, HANG_S), "no rank is over")
        return over[0]

    def again(self, rank, work):
        """That rank has ended, and is started again."""
        self.pids[rank] = self.fork(rank, work)

    def waited(self, rank):
        pid, self.pids[rank] = self.pids[rank], None
        done = []
        if not until(lambda: done.append(os.waitpid(pid, os.WNOHANG)) or done[-1][0], 3 * HANG_S):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            sys.exit(f"{NAME}: rank {rank} hangs: {self.server.said()}")
        return done[-1][1]

    def end(self, rank):
        """What that rank has returned; it must have ended well."""
        status = self.waited(rank)
        if status != 0:
            sys.exit(f"{NAME}: rank {rank} ended with {status}: {self.server.said()}")
        with open(self.path(f"said.{rank}"), "rb") as f:
            return pickle.load(f)

    def ends(self):
        return [self.end(rank) for rank in range(len(self.pids))]
