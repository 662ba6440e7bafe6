#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Jobs of several servers: some of them killed, stopped, late, missing or too many.

usage: servers.py CASE --musterd MUSTERD --worker WORKER --cut-musterd CUT_MUSTERD --muster MUSTER
       servers.py --list
"""
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time
from datetime import datetime

import base
from base import Child, cases, check, main, until
from server import SECONDS, hello

ELEMS = 20001
# What ends such a job ends it at once, and not because a lease is over.
LONG = ["-n", "3", "--commits", "100000", "--lease", "60s"]
SOON = 30  # s, less than that lease
# A test of what a lease is for takes one that a busy host's standstill of some seconds, and the
# second between two heartbeats, do not use up.
LEASE = 7  # s
# A worker whose link to a server breaks waits two seconds for the leader's words, then has its
# own.
OWN_WORDS = (r"the link to server \d|the leader, server 0 at \S+, is silent|"
             r"the job has failed: too few live workers, or a server of it is gone")


def wrote(log):
    """How long a worker's history is."""
    return os.path.getsize(log) if os.path.exists(log) else 0


def newest(log):
    """The newest version that the worker of this history has been given."""
    if not os.path.exists(log):
        return 0
    with open(log) as f:
        return max((int(line.split()[4]) for line in f
                    if line.startswith("outcome ") and line.endswith("\n")), default=0)


class Job(base.Job):
    """A leader, its followers and its workers."""

    elems = ELEMS

    def __init__(self, a, servers, *options, workers=3, words=("sleep_us=300",), followers=None,
                 **env):
        """@env: of the leader alone."""
        super().__init__(a, "--servers", str(servers), *options, **env)
        self.leader, self.follower, self.hurt_at = self.server, [], None
        for _ in range(servers - 1 if followers is None else followers):
            self.join()
        self.work_all(workers, *words)

    def children(self):
        return [*self.follower, *self.worker]

    def join(self, *options, program=None, **env):
        command = [program or self.a.musterd, "--join", self.address, *options]
        self.follower.append(Child(command, **env))
        return self.follower[-1]

    def runs(self):
        """Waits until versions have been seen."""
        self.begin(5000, ranks=[0])

    def goes_on(self):
        """Waits until more versions have been seen."""
        self.begin(os.path.getsize(f"{self.log}.0.1") + 5000, ranks=[0])

    def sees(self, version):
        """Waits until rank 0 has seen that version."""
        check(f"version {version} is seen",
              until(lambda: newest(f"{self.log}.0.1") >= version, SECONDS))

    def has_place(self, server):
        """Waits until that one has its place."""
        check(f"server {server} joins",
              until(lambda: f"server {server} of " in self.leader.said(), SECONDS))

    def gathers(self, followers, workers, sleep_us=300):
        """Starts so many. The leader stands still until all have spoken to it: the time that they
        take to come is none of its join timeout. Return: when that began."""
        self.leader.process.send_signal(signal.SIGSTOP)
        for _ in range(followers):
            self.join()
        self.work_all(workers, f"sleep_us={sleep_us}")
        check("all are there", until(lambda: self.leader.unread() >= followers + workers, SECONDS))
        self.leader.process.send_signal(signal.SIGCONT)
        return time.monotonic()

    def until_told(self):
        """Words for workers of a job that goes on until end_job()."""
        return [f"0:until={self.path('enough')}", "0:finish=1"]

    def end_job(self):
        with open(self.path("enough"), "w"):
            pass

    def hurt(self, child, signo):
        self.hurt_at = time.time()
        child.signal(signo)

    def is_told_late(self):
        """Did the leader say only later than workers wait for that why the job has failed?"""
        said = re.search(r"^(\S+)Z .*has failed: ", self.leader.said(), re.M)[1]
        return datetime.fromisoformat(said + "+00:00").timestamp() - self.hurt_at > 0.2


def all_fail(job, name, left_over=()):
    """The job ends with an error that names the server, for everybody, soon."""
    status, log = job.leader.end(SOON)
    check(f"the leader fails, and names {name}", status == 1 and name in log)
    for worker in job.worker:
        status, said = worker.end(SOON)
        named = name in said or job.is_told_late() and re.search(OWN_WORDS, said)
        check(f"a worker is told: {said.strip()[-120:]}", status == 1 and named)
    for follower in job.follower:
        if follower not in left_over:
            check("another follower goes too", follower.end(SOON)[0] == 1)
    job.proven("--kills")


def follower_killed(a):
    with Job(a, 3, *LONG) as job:
        job.runs()
        job.hurt(job.follower[0], signal.SIGKILL)
        all_fail(job, "of 3 (127.0.0.1", job.follower[:1])


def follower_killed_when_gathering_is_long_over(a):
    """A worker that was there in time is not missing later."""
    with Job(a, 2, *LONG, "--join-timeout", "15s", workers=0, followers=0) as job:
        since = job.gathers(followers=1, workers=3, sleep_us=10000)
        job.runs()
        time.sleep(max(0, since + 15.2 - time.monotonic()))
        job.hurt(job.follower[0], signal.SIGKILL)
        all_fail(job, "of 2 (127.0.0.1", job.follower[:1])
        check("and not for the time it took to come", "join-timeout" not in job.leader.said())


def follower_ended(a):
    with Job(a, 2, *LONG) as job:
        job.runs()
        job.hurt(job.follower[0], signal.SIGTERM)
        check("it goes by the signal", job.follower[0].end(SOON)[0] == 128 + 15)
        all_fail(job, "gives up: the server was ended by signal 15", job.follower)


def follower_gives_up_before_its_appointment(a):
    with Job(a, 2, "-n", "1", "--commits", "20", workers=0, followers=0) as job:
        job.join("--join-timeout", "6s")
        job.has_place(1)
        job.leader.process.send_signal(signal.SIGSTOP)
        check("the follower goes", job.follower[0].end(SECONDS)[0] == 1)
        job.leader.process.send_signal(signal.SIGCONT)
        job.join()
        job.work(0)
        check("another takes its place", job.worker[0].end(SECONDS)[0] == 0)
        log = job.leader.end(SECONDS)[1]
        check("the leader says why, and accuses nobody", "broke the protocol" not in log and
              "gives up: the leader was silent for 6 s (--join-timeout)" in log)


def follower_and_worker_killed_at_once(a):
    """As when their host is gone: what is told is the server, without which there is no job."""
    for _ in range(4):
        with Job(a, 3, *LONG) as job:
            job.runs()
            for child in (job.follower[0], job.worker[2]):
                child.signal(signal.SIGKILL)
            status, log = job.leader.end(SOON)
            why = re.search(r"has failed: (.*)", log)[1]
            check(f"the leader names it: {why}",
                  status == 1 and re.search(r"\(server \d of 3", why))
            check("all end", all(c.end(SOON)[0] is not None for c in (*job.follower, *job.worker)))


def leader_killed(a):
    with Job(a, 3, *LONG) as job:
        job.runs()
        job.leader.process.kill()
        for follower in job.follower:
            status, log = follower.end(SOON)
            check(f"a follower goes: {log.splitlines()[-1]}",
                  status == 1 and "leader is gone" in log)
        check("no worker stays", all(w.end(SOON)[0] == 1 for w in job.worker))
        job.proven("--kills")


def call(job, rank):
    """A worker that dies as soon as it has come."""
    with job.leader.connect() as s:
        s.sendall(hello(rank=rank, elems=ELEMS))
        time.sleep(0.002)


def short_lives(a):
    """Each of them is a word to the follower, which is away: the line is full, then goes on."""
    with Job(a, 2, "-n", "3", "--policy", "async", workers=0) as job:
        job.work_all(3, "sleep_us=1000", "2:die=5", *job.until_told())
        job.worker[2].process.wait(SECONDS)
        time.sleep(0.2)
        job.follower[0].signal(signal.SIGSTOP)
        for _ in range(120):
            call(job, 2)
        job.follower[0].signal(signal.SIGCONT)
        job.goes_on()
        job.end_job()
        ends = [child.end(SECONDS)[0] for child in (*job.worker[:2], *job.follower)]
        check(f"the others go on: {ends}", not any(ends) and job.leader.end(SECONDS)[0] == 0)
        job.proven("--kills", rules="sgd:0.1,0")


def short_lives_and_a_frozen_follower(a):
    """The line is full for good, and so is what waits for it: the lease ends that, in words."""
    with Job(a, 2, *LONG[:-1], f"{LEASE}s", "--server-lease", f"{LEASE}s", "--policy", "async",
             words=("sleep_us=1000", "2:die=5")) as job:
        job.worker[2].process.wait(SECONDS)
        time.sleep(0.2)
        job.follower[0].signal(signal.SIGSTOP)
        since = time.monotonic()
        with contextlib.suppress(OSError):  # all of the leader's connections are taken, or it ends
            while time.monotonic() < since + LEASE - 1:
                call(job, 2)
        job.worker[1].signal(signal.SIGKILL)
        status, log = job.leader.end(10 * LEASE)  # no later than that says
        check(f"the leader fails: {log.splitlines()[-1]}",
              status == 1 and f"was silent for {LEASE} s (--server-lease)" in log)
        job.worker[0].end(SECONDS)


def links_cut(a, where):
    """Links between servers break again and again, at the end of the leader or of a follower."""
    cut = {"MUSTER_CUT": "31"}  # every 31st put
    a.musterd = a.cut_musterd
    with Job(a, 3, "-n", "4", "--commits", "300", "--policy", "backup:3", workers=0, followers=0,
             **(cut if where == "leader" else {})) as job:
        job.join(**(cut if where == "follower" else {}))
        job.join()
        for rank in range(4):
            job.work(rank, "ranges=3" if rank == 1 else "ranges=0")
        ends = [child.end(SECONDS) for child in (*job.worker, *job.follower)]
        status, log = job.leader.end(SECONDS)
        logs = "".join(said for _, said in ends) + log
        cuts = int(re.search(r"cuts: (\d+)", logs)[1])
        links = logs.count("linked with the leader again")
        check(f"all end well, after {cuts} cuts: {[code for code, _ in ends]}",
              not any(code for code, _ in ends) and status == 0)
        check("links were cut", cuts >= 5)
        check(f"each is made anew once, if at all: {links}", links <= cuts)
        job.proven()


def links_cut_by_the_leader(a):
    links_cut(a, "leader")


def links_cut_by_a_follower(a):
    links_cut(a, "follower")


def workers_at_any_moment(a):
    """One of five workers is killed, or stopped until it is evicted; perhaps between its headers
    to one server and to the next. The job goes on until that has been seen."""
    for seed in range(10) if a.moments == "all" else range(3, 5):
        chance = random.Random(seed)
        signo = signal.SIGSTOP if seed % 5 == 4 else signal.SIGKILL
        stops = signo == signal.SIGSTOP
        wait_s, victim = chance.random() * 0.2, chance.randrange(5)
        lease = ("--lease", f"{LEASE}s") if stops else base.CALM
        with Job(a, 3, "-n", "5", "--policy", "backup:4", *lease, workers=0) as job:
            teller = (victim + 1) % 5
            # A job that waits for a lease makes no more versions meanwhile than can soon be proven.
            job.work_all(5, f"sleep_us={4000 if stops else 500}", *job.ended_by(teller))
            job.begin(5000, ranks=[teller])
            time.sleep(wait_s)
            job.worker[victim].signal(signo)
            job.lost(victim)
            job.begin(wrote(f"{job.log}.{teller}.1") + 5000, ranks=[teller])
            job.worker[victim].signal(signal.SIGCONT)
            job.worker[victim].end(SECONDS)
            job.end_job()
            status, log = job.leader.end(SECONDS)
            codes = [w.end(SECONDS)[0] for w in job.worker]
            ends = [m.end(SECONDS)[0] for m in job.follower]
            if status != 0:
                print(log)
            wanted = [0] * 5
            wanted[victim] = 1 if stops else -9
            check(f"seed {seed}: {codes}, followers {ends}",
                  status == 0 and not any(ends) and codes == wanted)
            job.proven("--kills")


def rejoin(a):
    with Job(a, 2, "-n", "3", "--policy", "bsp", workers=0) as job:
        job.work_all(3, "sleep_us=1000", "2:die=5", *job.until_told())
        job.worker[2].process.wait(SECONDS)
        job.work(2, "sleep_us=1000", "again=1")
        check("a rank comes back", until(lambda: wrote(f"{job.log}.2.2") >= 5000, SECONDS))
        job.end_job()
        codes = [w.end(SECONDS)[0] for w in job.worker]
        check(f"it has come back to both servers: {codes}", codes == [0, 0, -9, 0])
        check("both finish", [s.end(SECONDS)[0] for s in (job.leader, *job.follower)] == [0, 0])
        job.proven("--kills")


def late_followers(a):
    """The workers' hellos wait for them."""
    with Job(a, 3, "-n", "3", "--commits", "30", followers=0) as job:
        time.sleep(0.7)
        job.join()
        time.sleep(0.3)
        job.join()
        check("all is well", not any(c.end(SECONDS)[0] for c in (*job.worker, *job.follower)))
        check("and the leader finishes", job.leader.end(SECONDS)[0] == 0)
        job.proven()


def a_hello_that_waits_and_dies(a):
    """Its rank is not kept for it, but for the next who says it."""
    with Job(a, 2, "-n", "3", "--commits", "30", followers=0) as job:
        time.sleep(0.4)
        job.worker[0].signal(signal.SIGKILL)
        job.worker[0].end(SECONDS)
        job.work(0, "sleep_us=300", "again=1")
        time.sleep(0.4)
        job.join()
        codes = [child.end(SECONDS)[0] for child in (*job.worker, *job.follower)]
        check(f"the job has all its ranks: {codes}", codes == [-9, 0, 0, 0, 0])
        check("and the leader finishes", job.leader.end(SECONDS)[0] == 0)


def missing_follower(a):
    with Job(a, 3, "-n", "3", "--join-timeout", "7s", workers=0, followers=0) as job:
        job.gathers(followers=1, workers=3)
        status, log = job.leader.end(SECONDS)
        check(f"the leader says how many came: {log[-300:]}",
              status == 1 and "only 2 of 3 servers" in log)
        for worker in job.worker:
            status, said = worker.end(SECONDS)
            check(f"a worker is told: {said.strip()[-90:]}", status != 0 and "only 2 of 3" in said)
        check("the one that came goes", job.follower[0].end(SECONDS)[0] == 1)


def refused_followers(a):
    with Job(a, 2, "-n", "1", workers=0) as job:
        job.has_place(1)
        table = [("default", "has its 2 servers already; to have more, start its leader with a "
                  "larger --servers", []),
                 ("x", "there is no job \"x\" here, but \"default\": give both servers the same "
                  "--job", ["--job", "x"]),
                 ("default", "give both the same --transport", ["--transport", "verbs"])]
        for name, what, options in table:
            status, log = job.join(*options).end(SECONDS)
            if "this build has no transport" in log:
                continue
            line = log.splitlines()[-1]
            begin = f"this server takes no part in job \"{name}\": the leader at {job.address} "
            check(f"refused: {line}", status == 1 and f"{begin}sends it away: " in line and
                  what in line and "ended" not in log and "has failed" not in log)
        job.work(0, "rounds=3")
        check("the worker ends well", job.worker[0].end(SECONDS)[0] == 0)
        check("so do both servers", [s.end(SECONDS)[0] for s in (job.leader, job.follower[0])]
              == [0, 0])
        lonely = Child([a.musterd, "--join", "127.0.0.1:9", "--join-timeout", "500ms"])
        status, log = lonely.end(SECONDS)
        check("no leader there", status == 1 and "no leader answered" in log)


def too_short_a_vector(a):
    with Job(a, 8, "-n", "3") as job:
        for worker in job.worker:
            status, said = worker.end(SECONDS)
            check(f"told: {said.strip()[-140:]}", status != 0 and "cannot be shared by 8" in said)


def spread(a):
    """Parts by weight, more than one thread each, and several transports of one vector."""
    with Job(a, 3, "-n", "3", "--commits", "40", "--partition", "1,2,1", followers=2,
             words=("ranges=5",)) as job:
        check("all is well", not any(c.end(SECONDS)[0] for c in (*job.worker, *job.follower)))
        status, log = job.leader.end(SECONDS)
        check("the parts are as told",
              status == 0 and "serves elements 4096 to 12287" in log
              and "serves elements 12288 to 20000" in log)
        job.proven()


def memory_of(log):
    """What a server says it takes, in all, and what of it is for sums and versions, in KiB."""
    unit = {"KiB": 1, "MiB": 1024}
    words = re.search(r"memory: ([\d.]+) (\w+) for \d+ workers, ([\d.]+) (\w+) for sums", log)
    workers, own = (float(words[i]) * unit[words[i + 1]] for i in (1, 3))
    return workers + own, own


class ShortJob(Job):
    """Its servers take less than a MiB for sums, which they tell to a tenth of a KiB."""
    elems = 18001


def follower_with_less_memory(a):
    """Early sums of groups need memory that a follower may not have, though its leader has: it goes
    without them, to the same bits. Where that is not enough it says so, and why."""
    groups = ["-n", "9", "--group", "4", "--policy", "bsp", "--commits", "12"]
    want = {"workers": 9, "followers": 0}
    with ShortJob(a, 2, *groups, **want) as job:
        job.join()
        check("with all it wants", not any(w.end(SECONDS)[0] for w in job.worker))
        whole, own = memory_of(job.follower[0].end(SECONDS)[1])
    less = int(whole) - 30  # KiB: two early sums of 9809 elements are 76.6
    with ShortJob(a, 2, *groups, **want) as job:
        job.join("--memory", f"{less}K")
        check("with less", not any(w.end(SECONDS)[0] for w in job.worker))
        took = memory_of(job.follower[0].end(SECONDS)[1])[1]
        check(f"it took {took} KiB for sums, not {own}", abs(own - took - 76.6) < 1)
        job.proven("--group", "4", "--count", "9")
    with ShortJob(a, 2, *groups, **want) as job:
        check("all nine are connected", until(lambda: job.leader.connected() >= 9, SECONDS))
        job.join("--memory", "1M")
        status, said = job.follower[0].end(SECONDS)
        check(f"it refuses: {said.strip()[-170:]}",
              status == 1 and "in all more than --memory 1.0 MiB" in said)
        status, log = job.leader.end(SECONDS)
        check("the leader says why", status == 1 and "gives up: no memory for job" in log)
        ends = [worker.end(SECONDS) for worker in job.worker]
        told = [(status, said) for status, said in ends if "gives up: no memory for job" in said]
        # A worker whose hello the leader has not read yet hears only that the leader has ended.
        late = [(status, said) for status, said in ends if "it has just ended" in said]
        check(f"workers are told: {ends}", len(told) > 0 and len(told) + len(late) == len(ends) and
              all(status == 1 for status, _ in ends))


def follower_cannot_speak(a):
    """Its disk is full, its outputs are closed: it serves all the same, and ends as ever."""
    for how in ("exec <&- >&- 2>&-", "exec >&- 2>&-", "exec >/dev/full 2>/dev/full"):
        for commits, statuses in (("40", [0, 0]), ("100000", [1, 1])):
            with Job(a, 2, "-n", "2", "--commits", commits, workers=2, followers=0) as job:
                command = [a.musterd, "--join", job.address]
                job.follower.append(Child(["sh", "-c", f'{how}; exec "$@"', "sh", *command]))
                if commits != "40":
                    job.runs()
                    job.worker[0].signal(signal.SIGKILL)
                    job.worker[1].signal(signal.SIGKILL)
                ends = [job.leader.end(SECONDS)[0], job.follower[0].end(SECONDS)[0]]
                check(f"{how}: {ends}", ends == statuses)


def status(a):
    """The leader shows the servers: who is there, and who has which part."""
    asks = [a.muster, "status", "--timeout", f"{SECONDS}s"]

    def servers():
        command = [*asks, "--json", "-", job.address]
        shown = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return [(s["state"], s["first"], s["count"]) for s in shown["servers"]]

    def shows(wanted):
        check(f"{wanted}, not {servers()}", until(lambda: servers() == wanted, SECONDS))

    with Job(a, 3, *LONG, workers=0, followers=0) as job:
        check("nobody is there", servers() == [("joined", 0, 0)] + [("awaited", 0, 0)] * 2)
        job.join()
        shows([("joined", 0, 0)] * 2 + [("awaited", 0, 0)])
        for rank in range(3):
            job.work(rank, "sleep_us=1000")
        shows([("ready", 0, 4096), ("ready", 4096, 8192), ("awaited", 12288, 7713)])
        job.join()
        shows([("ready", 0, 4096), ("ready", 4096, 8192), ("ready", 12288, 7713)])
        text = subprocess.run([*asks, job.address], check=True, text=True,
                              capture_output=True).stdout
        check("and as a table", re.search(r"\n +2  ready +12288 to 20000  shm +/\S+\.sock", text))


CASES = cases(follower_killed, follower_killed_when_gathering_is_long_over, follower_ended,
              follower_gives_up_before_its_appointment, follower_and_worker_killed_at_once,
              leader_killed, short_lives, short_lives_and_a_frozen_follower,
              links_cut_by_the_leader, links_cut_by_a_follower, workers_at_any_moment, rejoin,
              late_followers, a_hello_that_waits_and_dies, missing_follower, refused_followers,
              too_short_a_vector, spread, follower_with_less_memory, follower_cannot_speak, status)
if __name__ == "__main__":
    # Join timeouts of 15 s and less, and leases of seven seconds.
    main(CASES, "musterd", "worker", "cut-musterd", "muster", moments="all",
         clock=("follower_killed_when_gathering_is_long_over",
                "follower_gives_up_before_its_appointment", "short_lives_and_a_frozen_follower",
                "workers_at_any_moment"))
