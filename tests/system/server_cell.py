# SPDX-License-Identifier: MIT
"""A cell of the kill matrix of servers: a job of two servers, one of which is ended at a moment,
and other servers are started in their place at once."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import generations
import withdrawn
from base import CALM
from generations import AGAIN, WORKERS
from violence import Failed, wait_until

AT = 8  # the version that the moment is about
SAVED = 3  # the version that a job begins with where servers own: it has a checkpoint
COMMITS = 20
OFTEN = 3  # versions from checkpoint to checkpoint
LONG_S = 60  # only bounds a cell that hangs
SLOTS = ["--slots", "2"]  # so that a worker's lanes are not alike, by which trip.c knows them
PLAIN = ["elems=10000", "pace_us=700"]
SLOW = ["elems=10000", "pace_us=20000"]
STATE = ["elems=300000", "pace_us=20000", "comes_back=1"]  # of several pieces
LONG_COMMITS = 150  # of jobs that must not be over before the moment is there
OWNERS = ("workers", "servers")
MOMENTS = {
    "join": "a worker is welcomed and not linked, before the job starts",
    "idle": "workers compute, the server sleeps",
    "write": "a worker has written its part to one server or both, the header is not there",
    "full": "the header is written, the server has not looked",
    "counted": "counted, and the step still waits for another rank",
    "answer": "the version is made, and a worker has no answer of this server",
    "rejoin": "a new process is welcomed and not linked, while the job runs",
    "state": "a piece of a state has gone from a worker to another, the rest has not",
    "save": "a checkpoint is being written",
    "start": "servers start in the place of others: a worker is told that it begins, others not",
}
VICTIMS = ("leader", "follower")
VIOLENCE = {"kill": signal.SIGKILL, "term": signal.SIGTERM}
TRANSPORTS = ("shm", "tcp")
HEADS = ["next commit", "withdrawn", "cancelled", "sums wrong", "stuck"]


def has_cell(owner, moment, victim, violence):
    """Does it make sense? The page says why not (kill_servers.py)."""
    if owner == "workers":
        return moment != "save"
    return moment not in ("rejoin", "state") and (victim, violence) != ("follower", "term")


def stages(owner, transport, moment, victim):
    """What stands still at the moment: the stages of each, by its name."""
    later = f"after put header - v{AT}"
    answer = f"put answer 2 {AT - (SAVED if owner == 'servers' else 0)}"  # of version AT - 1
    if moment in ("join", "rejoin"):
        return {"rank2": ["before dial - - 1"]}
    if moment == "idle":
        return {victim: [f"after {answer}", "before wait - - 1"]}
    if moment == "write":
        return {"rank2": [later, f"after put data - {1 + (victim == 'follower')}"]}
    if moment == "full":  # of which the second goes to the follower
        headers = [f"after put header - v{AT - 1}"] * (1 + (victim == "follower"))
        looks = [f"after {answer}", "before poll - - 1"]
        if transport == "tcp":  # what it has put leaves it, in part, only when it looks
            looks = [f"before arrive header 2 {answer.split()[-1]}"]
        return {victim: looks, "rank2": headers}
    if moment == "counted":
        return {"rank2": [f"before put header - v{AT}"]}
    if moment == "answer":
        return {victim: [f"before {answer}"]}
    if moment == "state":
        return {"rank0": ["before say give - 2"], "rank1": ["before say give - 2"]}
    if moment == "start":
        return {"leader": ["before say begins - 2"]}
    return {}


class Wanted:
    """What jobs have that nobody disturbs, and a checkpoint to begin with: once for all cells."""

    def __init__(self, tools, folder):
        self.digest = generations.undisturbed(tools.of("workers"), COMMITS, *PLAIN)
        self.digests = withdrawn.undisturbed(tools.of("servers"), LONG_COMMITS, *PLAIN)
        self.state = os.path.join(folder, "state")
        with withdrawn.Line(tools.of("servers"), SAVED, state=self.state, servers=2) as job:
            job.join_all(*PLAIN)
            job.ended()
            job.is_over()


class Cell:
    """One job, one of whose servers is ended once, or at a start twice."""

    def __init__(self, key, tools, wanted):
        self.owner, self.transport, self.moment, self.victim, self.violence = self.key = key
        self.tools, self.wanted = tools.of(self.owner), wanted
        self.takes = self.moment in ("rejoin", "state")  # a new process takes a state
        slow = self.takes or self.moment == "save"
        self.words = STATE if self.takes else SLOW if slow else PLAIN
        self.commits = LONG_COMMITS if slow else COMMITS
        self.measured, self.problem = {}, None

    @property
    def name(self):
        return ", ".join(self.key)

    # ---- the scene ----

    def plan(self, folder):
        """Return: those that are to stand still, and the environment of each place."""
        env = {}
        for place in ("leader", "follower", "worker"):
            trip = os.path.join(folder, place)
            os.makedirs(os.path.join(trip, "disk"))
            env[place] = {"MUSTER_TRIP": trip}
        for name, lines in stages(self.owner, self.transport, self.moment, self.victim).items():
            place, plan = ("worker", name) if name.startswith("rank") else (name, "server")
            with open(os.path.join(folder, place, plan), "w") as f:
                f.write("".join(line + "\n" for line in lines))
        if self.moment == "save":
            env[self.victim]["MUSTER_HELD"] = os.path.join(folder, self.victim, "disk")
        self.folder, self.env = folder, env

    def held(self, name):
        place, plan = ("worker", name) if name.startswith("rank") else (name, "server")
        return os.path.exists(os.path.join(self.folder, place, plan + ".held"))

    def go(self):
        """All that stand still go on, now and later."""
        for name in ("leader", "follower", *(f"rank{rank}" for rank in range(WORKERS))):
            place, plan = ("worker", name) if name.startswith("rank") else (name, "server")
            with open(os.path.join(self.folder, place, plan + ".go"), "w"):
                pass
        for place in VICTIMS:
            with open(os.path.join(self.folder, place, "disk", "all"), "w"):
                pass

    def job(self):
        env = {} if self.moment == "start" else self.env
        how = {"servers": 2, "transport": self.transport, "env": env.get("leader"),
               "of_follower": env.get("follower")}
        if self.owner == "servers":
            state = os.path.join(self.folder, "state")
            shutil.copytree(self.wanted.state, state)
            return withdrawn.Line(self.tools, self.commits, "--checkpoint-every", str(OFTEN),
                                  *SLOTS, *CALM,
                                  state=state, **how)
        return generations.Line(self.tools, "--commits", str(self.commits), "--policy", "bsp",
                                "--history", str(self.commits), *SLOTS, *CALM, **how)

    # ---- the moment ----

    def until(self, condition, what):
        def look():
            for rank, worker in enumerate(self.line.worker):
                if worker.process.poll() not in (None, 0, -signal.SIGKILL):
                    raise Failed(f"worker {rank} has ended before: {self.line.said()}")
            return condition()
        try:
            wait_until(look, LONG_S, what)
        except Failed as e:
            raise Failed(f"{e}\n{self.line.said()}") from None

    def all_held(self):
        names = list(stages(self.owner, self.transport, self.moment, self.victim))
        some = any if self.moment == "state" else all  # one of two is asked
        self.until(lambda: some(self.held(name) for name in names), f"one of {names} trips")

    def joined(self, count):
        self.until(lambda: self.line.server.said().count(" joined from ") >= count,
                   f"{count} workers have joined")

    def counted(self):
        """All but rank 2 wait for the version that it is to be made of."""
        def is_so():
            asked = subprocess.run([self.tools.muster, "status", "--json", "-", self.line.listen],
                                   capture_output=True, text=True, check=False)
            return re.search(rf'"commits": {AT}\b', asked.stdout) and re.findall(
                r'"awaited": (\w+)', asked.stdout) == ["false", "false", "true"]
        self.until(is_so, "two are counted")

    def saves(self):
        asks = os.path.join(self.folder, self.victim, "disk", "1.asks")
        self.until(lambda: os.path.exists(asks) and self.line.newest() > SAVED + OFTEN,
                   "a checkpoint is being written")

    def take(self):
        """The process of a rank is lost, and another comes in its place."""
        line = self.line
        if self.moment == "state":
            line.of_worker = self.env["worker"]
        line.join_all(*self.words)
        line.reaches(1, 2)
        line.worker[2].kill()
        self.until(lambda: re.search(r"rank 2 (is gone|lost)", line.server.said()),
                   "its rank can be had again")
        line.of_worker = self.env["worker"]
        line.join(2, *self.words)

    def reach(self):
        """When it returns, the moment is there."""
        line = self.line
        if self.moment == "start":
            line.join_all(*self.words)
            line.reaches(1)
            line.env, line.of_follower = self.env["leader"], self.env["follower"]
            line.kill_leader_of_two()
        elif self.takes:
            self.take()
        else:
            line.of_worker = self.env["worker"]
            line.join_all(*self.words)
        if self.moment == "save":
            self.saves()
            return
        self.all_held()
        if self.moment in ("join", "rejoin"):
            self.joined(WORKERS + self.takes)
        if self.moment == "counted":
            self.counted()

    # ---- what is done, and what comes of it ----

    def end_one(self):
        """Ends the victim, and starts both again, each as soon as its process is over."""
        line, signo = self.line, VIOLENCE[self.violence]
        line.env, line.of_follower, line.of_worker = {}, {}, {}
        leader, follower = line.server, line.follower[0]
        victim = leader if self.victim == "leader" else follower
        victim.process.send_signal(signo)
        self.go()
        for server in ((leader, follower) if victim is leader else (follower, leader)):
            status, log = server.end(LONG_S)
            may = {-signo, 128 + signo, AGAIN} if server is victim else {AGAIN}
            if status not in may:
                raise Failed(f"a server ends with {status}, not {may}: {log[-600:]}")
            if server is leader:
                line.lead()
            else:
                line.follower = [line.joined()]

    def begun(self):
        """The version that the newest generation has begun with; None: none has."""
        said = self.line.server.said()
        found = re.findall(r"goes on from version (\d+), .*: generation \d+ of", said)
        if found:
            return int(found[-1])
        return 0 if re.search(r"begins: run \w{16}", said) else None

    def goes_on(self):
        """A version is made that is none of before."""
        began = self.begun()
        if began is None:
            return False
        newest = self.line.newest()
        if self.owner == "servers":
            newest = max((int(words[1]) for rank in range(WORKERS)
                          for words in self.line.lines(rank, "version")
                          if int(words[3]) > self.before), default=0)
        return newest > began

    def most(self, word):
        """The largest number that a rank was told of it."""
        return max((int(words[1]) for rank in range(WORKERS)
                    for words in self.line.lines(rank, word)), default=0)

    def prove(self):
        line = self.line
        if self.takes:
            generations.same_everywhere(line, self.commits, WORKERS)
            line.ended()
            line.is_over()
        elif self.owner == "workers":
            generations.exact(line, COMMITS, self.wanted.digest)
        else:
            withdrawn.exact(line, self.commits, self.wanted.digests, SAVED)

    def play(self):
        self.reach()
        self.before = max((int(words[3]) for rank in range(WORKERS) for words in
                           self.line.lines(rank, "version")), default=0) \
            if self.owner == "servers" else 0
        since = time.monotonic()
        self.end_one()
        self.until(self.goes_on, "the next commit")
        self.measured["commit"] = time.monotonic() - since
        self.measured["stuck"] = sum(w.end(LONG_S)[0] is None for w in self.line.worker)
        self.measured["withdrawn"] = self.most("withdrawn")
        self.measured["cancelled"] = max(len(self.line.lines(rank, "cancelled"))
                                         for rank in range(WORKERS))
        self.measured["wrong"] = sum(len(self.line.lines(rank, "wrong")) for rank in range(WORKERS))
        self.prove()

    def run(self):
        try:
            with tempfile.TemporaryDirectory(prefix="kill-") as folder, \
                    open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
                self.plan(folder)
                with self.job() as self.line:
                    self.play()
        except (Failed, SystemExit, OSError, subprocess.SubprocessError) as e:
            self.problem = f"{type(e).__name__}: {e}"
        return self

    def figures(self):
        m = self.measured
        commit = "-" if m.get("commit") is None else f"{1000 * m['commit']:.0f}"
        return [commit, *(str(m.get(name, "-")) for name in
                          ("withdrawn", "cancelled", "wrong", "stuck"))]
