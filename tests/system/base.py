# SPDX-License-Identifier: MIT
"""What the scripts of this directory have in common: how they begin and end, how they say what they
have checked, and a job of real processes, all of which are gone when it is left.

A script whose cases are functions ends with main(CASES, "musterd", "worker"). A script of unittest
ends with run_tests("musterd", "worker"), and finds these programs in TOOLS.
"""
import argparse
import glob
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
from datetime import datetime

from server import Server, read_log

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = os.path.splitext(os.path.basename(sys.argv[0]))[0]
TOOLS = argparse.Namespace()
# On a busy host a process may stand still for seconds. Where a job is not about leases, nobody is
# taken for dead because of that.
CALM = ("--lease", "30s")
CALM_STOP = ("--stop-timeout", "60s")  # the same of servers that are stopped
# Where it is, and a lease is waited for, that is longer than a process stands still by chance.
LEASE_S = 8
HANG_S = 60  # only bounds a test that hangs


# ---- how scripts begin and end ----

def cases(*functions):
    """By name."""
    return {f.__name__: f for f in functions}


def main(by_name, *tools, leave_out=(), paths=(), unlisted=(), clock=(), quick=(),
         **defaults):
    """Plays the cases of the command line with its options as the argument, or lists all of them.

    @tools: options that name programs. @leave_out: cases that --list --threads does not name, for
    they differ from others only in what one thread decides. @paths: those that --list --paths
    names, for together they come by the code that all come by. @unlisted: those that --list never
    names. @clock: those that can fail because a process stands still for some seconds (Clocks in
    tests/README.md). @quick: those for a quick run. @defaults: further options."""
    strange = {*leave_out, *paths, *unlisted, *clock, *quick} - set(by_name)
    must(not strange, "no such cases:", *strange)
    p = argparse.ArgumentParser()
    p.add_argument("case", nargs="*", metavar="CASE")
    p.add_argument("--list", action="store_true")
    p.add_argument("--threads", action="store_true",
                   help="of the list, not what one thread decides")
    p.add_argument("--labels", action="store_true",
                   help="of the list, with the label clock or quick where a case has it")
    p.add_argument("--paths", action="store_true",
                   help="of the list, only what comes by other code")
    for tool in tools:
        p.add_argument("--" + tool)
    for name, value in defaults.items():
        p.add_argument("--" + name, default=value)
    a = p.parse_args()
    if a.list:
        labels = dict.fromkeys(quick, ":quick") | dict.fromkeys(clock, ":clock")
        print("\n".join(c + labels.get(c, "") * a.labels for c in by_name
                        if c not in unlisted and not (a.threads and c in leave_out)
                        and not (a.paths and c not in paths)))
    elif set(a.case) - set(by_name) or not a.case and len(by_name) > 1:
        p.error("which case? --list names them")
    elif len(a.case) > 1:
        play_each(by_name, a)
    else:
        by_name[a.case[0] if a.case else next(iter(by_name))](a)


def play_each(by_name, a):
    """Several cases, each in a child of this process: none finds what another has left, and what is
    slow to import is imported once. All are played, whichever fails. What is said at last is what
    the first that failed said at last."""
    proof()
    failed = {}
    for name in a.case:
        began = time.monotonic()
        said = play_in_child(by_name[name], a)
        print(f"{'ok' if said is None else 'FAILED'} {name} {time.monotonic() - began:.2f} s",
              flush=True)
        if said is not None:
            failed[name] = said
    if failed:
        print(f"{len(failed)} of {len(a.case)} cases failed: {', '.join(failed)}", flush=True)
        sys.exit(next(iter(failed.values())))


def play_in_child(case, a):
    """Return: None, or what it said at last where it failed."""
    with tempfile.TemporaryFile("w+") as log:
        child = os.fork()
        if child == 0:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            finish(lambda: case(a))
        _, status = os.waitpid(child, 0)
        said = read_log(log)
    print(said, end="", flush=True)
    if status == 0:
        return None
    return (said.strip().splitlines() or [f"wait status {status}"])[-1]


def finish(body):
    """Ends this process, a child, as a script of its own would end."""
    status = 1
    try:
        body()
        status = 0
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else int(e.code is not None)
        if isinstance(e.code, str):
            print(e.code, file=sys.stderr)
    except BaseException:  # pylint: disable=broad-exception-caught
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def run_tests(*tools):
    """Runs the unittest cases of the script; what it does not know of the command line is
    unittest's."""
    p = argparse.ArgumentParser()
    for tool in tools:
        p.add_argument("--" + tool, required=True, type=os.path.abspath)
    _, rest = p.parse_known_args(namespace=TOOLS)
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])


def must(ok, *what):
    """Ends the test by saying what is not so."""
    if not ok:
        sys.exit(f"{NAME}: " + " ".join(map(str, what)))


def check(what, ok):
    """The same, or says what is so."""
    must(ok, what)
    print(what)


def until(condition, seconds=40.0):
    """Waits until the condition holds; False if it never does. Less than the minute for which
    processes sleep that must not be left over."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


# ---- what is left ----

def tagged(mark):
    """Processes whose environment carries the mark; those waiting to be reaped have none."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def listing():
    """What of muster lies where something could be left, but for machines and folders of other
    tests, which come and go, the directories of sockets, which the first server of a user
    makes, and the keys of another test's run: one that makes some has a TMPDIR of its own."""
    return {os.path.join(folder, name) for folder in ("/dev/shm", "/tmp")
            for name in os.listdir(folder)
            if "muster" in name
            and not name.startswith(("muster-vm-", "muster-test-", "muster-keys-"))
            and not re.fullmatch(r"muster-\d+", name)}


# ---- a job ----

def proof():
    """What proves a history. It is imported where it is wanted, because NumPy takes longer to
    import than most scripts take to run."""
    return importlib.import_module("check_history")


def prove(log, *options):
    """The history that workers have written to @log is what their sets make, to the bit."""
    proof().main([log, *options])


def status_of(told):
    """What muster run exits with after a job that is finished and ends as its summary has told. A
    worker that is killed is forgiven where musterd saw that before the job ended. Where the others
    were through sooner than that, muster run cannot know that it did not die of its last step."""
    return int(any(rank["exit"] > 0 or
                   rank["exit"] < 0 and rank["state"] != "lost" and not rank["halted"]
                   for rank in told["ranks"]))


def own_words(log, said):
    """Ranks whose session was over before their server had said why the job failed. They wait two
    seconds for that once a link has told them that it did, and then have words of their own; on a
    busy host the thread that knows why may stand still for longer."""
    lines = re.findall(r"^(\S+)Z \w+ musterd: job .* has failed: ", said, re.M)
    said_ms = [datetime.fromisoformat(at + "+00:00").timestamp() * 1000 for at in lines]
    ranks = set()
    for path in glob.glob(f"{log}.*.*"):
        with open(path) as f:
            errors = [line.split() for line in f if line.startswith("error ")]
        if errors and said_ms and int(errors[0][3]) < round(max(said_ms)):
            ranks.add(int(path.split(".")[-2]))
    return ranks


def worker_environment(address, rank):
    return {"MUSTER_SERVER": address, "MUSTER_RANK": str(rank)}


class Child:
    """A process, and what it said."""

    def __init__(self, command, preexec_fn=None, **env):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, env=dict(os.environ, **env),
                                        preexec_fn=preexec_fn)

    def signal(self, signo):
        self.process.send_signal(signo)

    def said(self):
        return read_log(self.log)

    def end(self, seconds):
        """(exit status, what it said); None where it is not over by then, and had to be killed."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
            self.kill()
        return status, self.said()

    def kill(self):
        self.process.kill()
        self.process.wait()


class Job:
    """A server and its workers, with a folder; when the job is left, no process is."""

    elems = 100

    def __init__(self, a, *options, **env):
        """@env: of the server alone; what else Server() takes may stand there, too."""
        self.a, self.folder = a, tempfile.TemporaryDirectory()
        self.log = self.path("log")
        self.worker = []
        self.server = Server(a.musterd, *options, **env)
        self.address = self.server.address

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.children():
            child.kill()
        self.server.kill()

    def children(self):
        """All processes but the server."""
        return self.worker

    def path(self, *names):
        return os.path.join(self.folder.name, *names)

    def work(self, rank, *options, program=None, **env):
        """Starts a worker."""
        self.worker.append(Child([program or self.a.worker, self.log, str(self.elems), *options],
                                 **worker_environment(self.address, rank), **env))
        return self.worker[-1]

    def work_all(self, count, *options):
        for rank in range(count):
            self.work(rank, *options)

    def ended_by(self, teller):
        """Options of workers, of which that rank ends the job when the test calls end_job(). So
        the job neither ends before the test has done with it nor goes on for nothing."""
        return [f"{teller}:until={self.path('enough')}", f"{teller}:finish=1"]

    def end_job(self):
        with open(self.path("enough"), "w"):
            pass

    def came_again(self, rank):
        """Waits until a session of this rank after its first has written its history."""

        def is_there():
            logs = glob.glob(f"{self.log}.{rank}.*")
            return any(log != f"{self.log}.{rank}.1" and os.path.getsize(log) >= 200
                       for log in logs)

        check(f"rank {rank} has come again", until(is_there, HANG_S))

    def lost(self, rank):
        """Waits until the server has said that it lost this rank: another may have it now."""
        check(f"rank {rank} is lost", until(lambda: re.search(
            rf"rank {rank} (?:is gone|was silent|broke)", self.server.said()), HANG_S))

    def begin(self, size=200, ranks=None):
        """Waits until each of the first sessions of these ranks, or of all, has written so much of
        its history."""
        logs = [f"{self.log}.{r}.1" for r in (range(len(self.worker)) if ranks is None else ranks)]
        if not until(lambda: all(os.path.exists(log) and os.path.getsize(log) >= size
                                 for log in logs), 60):
            sys.exit(f"{NAME}: the job does not begin: {self.server.said()}")

    def ends(self, seconds):
        """[(exit status, what it said)] of all workers; who is not over by then fails the test."""
        ends = [worker.end(seconds) for worker in self.worker]
        if None in (status for status, _ in ends):
            sys.exit(f"{NAME}: a worker hangs")
        return ends

    def codes(self, seconds):
        return [status for status, _ in self.ends(seconds)]

    def stopped(self, seconds):
        """The server stands still for so long."""
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.server.process.send_signal(signal.SIGCONT)

    def proven(self, *options, rules="sgd:0.1,0.9"):
        prove(self.log, "--optimizer", rules, *options)
