# SPDX-License-Identifier: MIT
"""A cell of the kill matrix: one job, one of whose processes is hurt at a moment."""
import os
import random
import re
import signal
import subprocess
import time

import history
from base import LEASE_S
from violence import Failed, hang_up, holdings, limit_files, linked, wait_until

WORKERS, SPARE = 5, 4
MOMENTS = {
    "idle": "a worker computes, the server sleeps",
    "write": "ranges are written, the header is not",
    "full": "the header is written, the server has not looked",
    "counted": "counted, and the step still waits for others",
    "answer": "others have their answer, the record is written, the answer is not",
    "join": "welcomed and not linked, before the job starts",
    "rejoin": "welcomed and not linked, while the job runs",
    "end": "some have been told that the job is finished",
}
VIOLENCE = {
    "kill": "kill -9",
    "stop": "SIGSTOP for 1.5 leases",
    "term": "SIGTERM",
    "cut": "control connection reset",
    "stall": "control connection silent",
    "full": "full tmpfs",
    "dark": "host cut off the network",
}
VICTIMS = ("worker", "server", "run")
LASTING = ("stop", "stall")  # which a lease ends; for these alone is it a short one
CALM_LEASE_S = 30  # of all others: nobody waits for it, and nobody misses it on a busy host
HEADS = ["next commit", "lost after", "all ended", "versions lost", "sums wrong", "stuck"]
BY_SIGNAL = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}
FILES_MAX = 4096
HANG_S = 120  # only bounds a test that hangs
SERVER_LEASE_S = 60  # no cell is about it
DEAD_S = 2  # after which a link to a host that is cut off has ended


def no_cell(victim, violence, moment, apart=False):
    """Why a cell makes no sense; None: it does. @apart: each process has a host of its own."""
    if apart and victim == "run":
        return "a run has one host"
    if apart and violence == "full":
        return "no memory is shared"
    if violence == "dark" and not apart:
        return "there is one host"
    if violence == "dark" and moment in ("join", "rejoin"):
        return "without a link it is a silent control connection"
    if victim == "run" and moment == "rejoin":
        return "a run starts each rank once"
    if victim == "run" and violence == "stall":
        return "its connection is within the host: a silent one is a stopped server"
    return None


class Expected:
    """What must come of a cell. Statuses are sets; None: whatever."""

    def __init__(self, victim, violence, moment, lease_s, a):
        self.server, self.others, self.victim, self.goes_on = {0}, {0}, {0}, True
        self.lost = None  # what the server says of the worker
        # Nobody waits for a lease that nobody needs; under a policy that needs all, just one.
        self.commit_s, self.end_s = 0.9 * lease_s, HANG_S / 2
        if victim == "worker" and violence in LASTING and a.policy == "bsp":
            self.commit_s += lease_s
        getattr(self, "of_" + victim)(violence, moment, lease_s)
        if moment == "end":
            self.goes_on = False
        if victim != "run" and moment == "join" and self.server != {0}:
            self.end_s += a.join_s

    def of_worker(self, violence, moment, lease_s):
        told = {0, 1} if moment == "end" else {1}
        self.victim = {"kill": {-9}, "term": {-15}, "full": {0}}.get(violence, told)
        joins = moment in ("join", "rejoin")
        if violence == "full" and joins:
            self.victim = {1}
        if violence != "full" and moment not in ("end", "join"):
            self.lost = lease_s if violence in LASTING else DEAD_S if violence == "dark" else 0.0
        if moment == "join":  # it is the one that everybody waits for
            self.server, self.others, self.goes_on = {1}, {1}, False

    def of_server(self, violence, moment, lease_s):
        ended = {0, 1} if moment == "end" else {1}
        if violence == "stop":
            self.commit_s += 1.5 * lease_s
        elif violence != "full":
            self.server = {"kill": {-9}, "term": {143}}.get(violence, ended)
            self.others = ended
            self.goes_on = False
        self.victim = self.server

    def of_run(self, violence, moment, _):
        self.server = {None}
        self.goes_on = violence in ("stop", "full")
        self.victim = {"kill": {-9}, "term": {143}, "cut": {1}, "full": {3}}.get(violence, {0})
        if violence == "cut" and moment == "end":
            self.victim = {0, 1}
        self.others = {None}


class Cell:
    """One job, hurt once."""

    def __init__(self, victim, violence, moment, a):
        self.victim, self.violence, self.moment, self.a = victim, violence, moment, a
        chance = random.Random(f"{a.timings} {victim} {violence} {moment}")
        drawn = a.timings is not None
        self.at = chance.randint(3, 40) if drawn else 15  # headers of the worker before it
        self.pieces = chance.randint(1, 6) if drawn else 3
        self.sleep_us = chance.choice([0, 500, 2000, 5000]) if drawn else 2000
        self.rank = chance.randrange(WORKERS - 1) if drawn else 2
        if moment == "rejoin":
            self.rank = SPARE
        lasts = violence in LASTING
        self.lease_s = a.lease_s if lasts else CALM_LEASE_S
        # With a lease so short the others may miss one, too: what they do then proves nothing.
        self.is_short = lasts and self.lease_s < LEASE_S
        if lasts or moment == "rejoin":
            self.sleep_us = max(self.sleep_us, 4000)
        if violence == "dark":
            self.sleep_us = max(self.sleep_us, 10000)
        if lasts:  # as many versions during a longer lease
            self.sleep_us = max(self.sleep_us, int(5000 * self.lease_s))
        # What a worker held is given back while the job still goes on.
        lasts_us = 1.6e6 * self.lease_s if lasts else 1e6 if victim == "worker" else 3e5
        if violence == "dark":
            lasts_us = 4e6
        if victim != "worker" and violence in ("kill", "term", "cut", "dark"):
            lasts_us = 1e7  # the job ends by it: it must not be over before, on a busy host
        self.commits = self.at + int(lasts_us / max(self.sleep_us, 500))
        if moment == "end":
            self.commits = self.at
        self.expected = Expected(victim, violence, moment, self.lease_s, a)
        self.measured, self.problems, self.hard = {}, [], False

    # ---- the scene ----

    def plan(self, s):
        worker, at = f"rank{self.rank}", self.at
        holds = {"idle": [worker], "write": [worker], "full": ["server", worker],
                 "answer": ["server"], "join": [worker], "end": ["server"],
                 "rejoin": [worker, *(f"rank{r}" for r in self.absent())],
                 "counted": [worker, *(f"rank{r}" for r in self.absent())]}[self.moment]
        if self.moment == "idle":
            s.plan(worker, f"after put header - {at}", "before put data - 1")
        elif self.moment == "write":
            s.plan(worker, f"after put header - {at}", f"after put data - {self.pieces}")
        elif self.moment == "full":
            s.plan("server", *s.not_looking(self.rank, at))
            s.plan(worker, f"after put header - {at}")
        elif self.moment in ("counted", "rejoin"):
            for rank in self.absent():
                s.plan(f"rank{rank}", f"before put header - v{at}")
            s.plan(worker, f"after put header - v{at}")
        elif self.moment == "answer":
            s.plan("server", f"before put answer {self.rank} {at}")
        elif self.moment == "join":
            s.plan(worker, "before dial - - 1")
        elif self.moment == "end":
            s.plan("server", f"before put session {self.rank} 1")
        if self.moment == "idle" and self.victim == "server":
            s.plan("server", f"after put answer {self.rank} {at}", "before wait - - 1")
            os.remove(os.path.join(s.trip, worker))
            holds = ["server"]
        return holds

    def absent(self):
        """Two without whom a step cannot be committed."""
        return [r for r in range(WORKERS - 1, -1, -1) if r != self.rank][:2]

    def options(self):
        lease_ms, join_s = int(self.lease_s * 1000), self.a.join_s
        if self.moment != "join":
            join_s = HANG_S  # how fast workers come is not what the cell is about
        return ["--policy", self.a.policy, "--commits", str(self.commits), "--lease",
                f"{lease_ms}ms", "--server-lease", f"{SERVER_LEASE_S}s", "--join-timeout",
                f"{int(join_s * 1000)}ms"]

    def words(self):
        return [f"sleep_us={self.sleep_us}", "ranges=7"]

    def start(self, s):
        if self.victim == "run":
            s.start_run(WORKERS, self.options(), self.words())
            return
        s.start_server("-n", str(WORKERS), *self.options())
        relayed = self.violence in ("cut", "stall")
        self.rest = s.relay() if relayed and self.victim == "server" else None
        self.own = s.relay() if relayed else None
        for rank in range(WORKERS):
            mine = rank == self.rank and self.moment != "rejoin"
            s.start_worker(rank, *self.words(), relay=self.own if mine else self.rest)

    def reach(self, s, holds):
        """Return: when it returns, all stand at the moment."""
        s.held(*holds)
        log = "run" if self.victim == "run" else "server"
        wait_until(lambda: s.said(log).count(" joined from ") >= WORKERS, HANG_S / 2,
                   "all have joined")
        if self.moment == "join" and self.victim != "run":
            # The server says so before its welcome has come; only with it the worker has memory.
            others = [s.process[f"rank{r}"].pid for r in range(WORKERS) if r != self.rank]
            wait_until(lambda: all(map(linked, others)), HANG_S / 2, "all have their welcome")
        if self.moment == "counted":
            s.go(f"rank{self.rank}")
            wait_until(lambda: self.is_counted(s.status()), HANG_S / 2,
                       f"it is counted; {s.status()}")
        if self.moment == "rejoin":
            s.process[f"rank{SPARE}"].kill()
            s.process[f"rank{SPARE}"].wait(HANG_S)
            wait_until(lambda: f"rank {SPARE} is gone" in s.said("server"), HANG_S / 2,
                       "its rank can be had again")
            again = os.path.join(s.trip, "again")
            os.mkdir(again)
            s.plan(f"rank{SPARE}", "before dial - - 1", folder=again)
            s.start_worker(SPARE, *self.words(), name="again", relay=self.own, MUSTER_TRIP=again)
            s.held(f"again/rank{SPARE}")

    def is_counted(self, status):
        """And so are the others that are there: nothing will move."""
        if status is None or status["commits"] != self.at:
            return False
        rows = {row["rank"]: row for row in status["ranks"]}
        present = [r for r in range(WORKERS) if r not in self.absent()]
        return not any(rows[r]["awaited"] for r in present)

    # ---- the violence ----

    def victim_name(self):
        if self.victim != "worker":
            return self.victim
        return "again" if self.moment == "rejoin" else f"rank{self.rank}"

    def hurt(self, s):
        pid = s.pid_of(self.victim_name())
        if self.violence in BY_SIGNAL:
            os.kill(pid, BY_SIGNAL[self.violence])
        elif self.violence == "dark":
            s.darken(self.victim_name())
        elif self.violence == "full":
            s.fill_small()
            if self.victim == "worker" and self.moment in ("join", "rejoin"):
                limit_files(pid, FILES_MAX)  # and so is the memory for its link
        elif self.victim == "run":
            hang_up(pid, s.port)
        else:
            for relay in {self.own, self.rest} - {None}:
                relay.tell(self.violence)
        return pid

    # ---- what comes of it ----

    def watch(self, s, pid, since):
        """Until all have ended, or time is up."""
        end = since + self.expected.end_s + (2.5 * self.lease_s)
        wake = since + 1.5 * self.lease_s if self.violence == "stop" else None
        while s.alive() and time.monotonic() < end:
            now = time.monotonic()
            if wake and now >= wake:
                os.kill(pid, signal.SIGCONT)
                wake = None
            if self.victim == "worker":
                self.see_loss(s, now - since)
            time.sleep(2 * 0.002)
        self.measured["end"] = time.monotonic() - since
        if self.victim == "worker" and "lost" not in self.measured:
            self.see_loss(s, self.measured["end"])  # all went on while this one stood still

    def see_loss(self, s, after_s):
        """When the server says that the worker is lost, and what it has given back since."""
        if "lost" not in self.measured:
            said = s.said("server").rpartition("starts:")[2]
            lines = re.findall(rf"rank {self.rank} (?:is gone|was silent|lost).*", said)
            if len(lines) > (self.moment == "rejoin"):
                self.measured["lost"] = after_s
            return
        held = holdings(s.process["server"].pid)
        if held is not None and held != (0, 0):
            best = self.measured.get("holds", held)
            self.measured["holds"] = min(best, held)

    def check(self, what, ok, about_time=False):
        if not ok:
            self.problems.append(what)
            self.hard |= not about_time

    def starved(self, s):
        """Ranks that missed their lease because this host is busy, not because they were hurt."""
        if self.victim == "server" and self.violence in ("stop", "stall"):
            return []
        said = s.said("run" if self.victim == "run" else "server")
        silent = set(map(int, re.findall(r"rank (\d+) was silent", said)))
        return sorted(silent - ({self.rank} if self.victim == "worker" else set()))

    def check_statuses(self, s, starved):
        want = self.expected
        for name, process in s.process.items():
            got = process.poll()
            if name == self.victim_name():
                may = want.victim
            elif name == "server":
                may = want.server
            elif self.moment == "rejoin" and name == f"rank{SPARE}":
                may = {-9}
            else:
                may = want.others
            self.check(f"{name} ended with {got}, not {may}", got in may, starved or self.is_short)
            if got == 1 and name.startswith(("rank", "again")) and self.violence != "full":
                self.check(f"{name} ended without a sentence", "test_worker: " in s.said(name))

    def check_history(self, s, before, since_ns, starved):
        others = [r for r in range(WORKERS)
                  if self.victim != "worker" or r != self.rank]
        if self.expected.goes_on:
            from_ns = since_ns
            if (self.victim, self.violence) == ("server", "stop"):
                from_ns += int(1.5e9 * self.lease_s)  # before, only what it had given is seen
            got = s.next_commit_s(others, before, from_ns)
            got = self.measured["commit"] = got and got + (from_ns - since_ns) / 1e9
            self.check(f"the next commit took {got} s", got and got <= self.expected.commit_s, True)
        if not s.logs(range(WORKERS)):
            return  # nobody had come so far
        hurt = starved or self.violence != "full" or self.moment in ("join", "rejoin")
        try:
            rules = history.Rules("sgd:0.1,0.9")
            proof = history.prove(s.log, rules, hurt or self.moment == "rejoin")
        except history.Broken as e:
            self.check(str(e), False)
            self.measured["wrong"] = 1
            return
        self.measured["lost_versions"] = proof.lost
        self.check(f"{proof.lost} versions cannot be computed again", proof.lost == 0)
        finishes = self.expected.goes_on or self.moment == "end" and self.victim == "worker"
        if finishes:
            self.check(f"the job ends at version {proof.newest}, not {self.commits}",
                       proof.newest == self.commits, starved or self.is_short)

    def check_holdings(self, s, before):
        """What the server had for the worker it has given back."""
        if self.victim != "worker" or self.expected.lost is None:
            return
        took = self.measured.get("lost")
        late = self.expected.lost + 0.5 * self.lease_s
        self.check(f"the worker's loss took {took} s", took is not None and took <= late, True)
        held = self.measured.get("holds")
        if held is None or before is None:
            return  # the job was over before one could look
        joins = self.moment == "rejoin"
        own = (1, 0) if joins else s.worker_holdings
        most = tuple(b - n for b, n in zip(before, own))
        self.check(f"the server holds {held} descriptors and maps, not {most}",
                   held[0] <= most[0] and held[1] <= most[1])

    def play(self, s):
        holds = self.plan(s)
        if self.violence == "full":
            s.mount_small()
        self.start(s)
        self.reach(s, holds)
        others = [r for r in range(WORKERS) if r != self.rank]
        before = s.newest(others)
        held = holdings(s.pid_of("server"))
        since = time.monotonic()
        pid = self.hurt(s)
        s.go_all()
        self.watch(s, pid, since)
        stuck = s.alive()
        self.measured["stuck"] = len(stuck)
        self.check(f"{len(stuck)} processes have not ended", not stuck, self.is_short)
        starved = self.starved(s)
        self.check(f"ranks {starved} were silent for a lease, unhurt", not starved, True)
        self.check_statuses(s, bool(starved))
        self.check_history(s, before, int(since * 1e9), bool(starved))
        self.check_holdings(s, held)
        self.check(f"sockets are left: {s.sockets()}", not s.sockets())
        self.check(f"files are left: {s.litter()}", not s.litter())

    def run(self):
        s = self.a.scene(self.a)
        began = time.monotonic()
        try:
            self.play(s)
            if self.problems:
                self.problems.append(s.all_said())
        except (Failed, subprocess.SubprocessError, OSError) as e:
            self.problems.append(f"{type(e).__name__}: {e}\n{s.all_said()}")
        finally:
            s.close()
        self.measured["all"] = time.monotonic() - began
        return self

    # ---- telling ----

    @property
    def name(self):
        return f"{self.moment}, {self.victim}, {self.violence}"

    def figures(self):
        m = self.measured

        def seconds(name):
            return "-" if m.get(name) is None else f"{1000 * m[name]:.0f}"

        return [seconds("commit"), seconds("lost"), seconds("end"),
                str(m.get("lost_versions", 0)), str(m.get("wrong", 0)), str(m.get("stuck", 0))]
