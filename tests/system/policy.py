#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Changes of policy in jobs that run, and workers that rest: what is asked for holds from the
version on that was told, and the whole history is what the sets of all versions make, to the bit.

usage: policy.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER [--pairs next]
       policy.py --list [--paths]

--pairs next: of all pairs of policies, those that stand beside each other in the lists below.
Each change starts two programs, which takes long under a sanitizer.
"""
import itertools
import json
import os
import re
import subprocess
import tempfile

import base
from base import CALM, HANG_S, Child, cases, check, main, must, until

SGD = "sgd:0.1,0.9"
STEP_US = 3000  # of a worker, so that a job has some hundred versions a second


def ask(a, command, *words):
    """muster policy, rest or status, which wait for a server that is slow to answer."""
    return subprocess.run([a.muster, command, "--timeout", f"{HANG_S}s", *words], text=True,
                          capture_output=True, timeout=2 * HANG_S)


class Job(base.Job):
    """A leader with its followers, its workers, and muster policy, rest and status for it."""

    elems = 20001

    def __init__(self, a, *options, servers=1, workers=4, words=(), elems=elems):
        self.elems = elems
        super().__init__(a, "-n", str(workers), "--servers", str(servers), *CALM, *options)
        self.follower = [Child([a.musterd, "--join", self.address]) for _ in range(servers - 1)]
        self.first = dict(zip(options, options[1:])).get("--policy", "bsp")
        self.work_all(workers, f"sleep_us={STEP_US}", "rounds=1000000000", *words,
                      *self.ended_by(0))

    def children(self):
        return [*self.follower, *self.worker]

    def muster(self, command, *words):
        """(exit status, what it printed, its mistake)"""
        done = ask(self.a, command, *words)
        out = done.stdout.strip()
        if command in ("policy", "rest", "evict") and done.returncode == 0:
            said = f'{self.address}: job "default": '
            must(out.startswith(said), f"muster {command}: it is not said which job that was:", out)
            out = out.removeprefix(said)
        return done.returncode, out, done.stderr.strip()

    def refused(self, *words, says):
        status, out, err = self.muster(*words)
        check(f"muster {' '.join(words)} is refused: {err}",
              status == 1 and not out and all(w in err for w in says))

    def change(self, policy, *more):
        """Return: the version from which on it holds."""
        status, out, err = self.muster("policy", self.address, policy, *more)
        found = re.match(rf"from version (\d+) on: {re.escape(policy)} \(", out)
        must(status == 0 and found, f"muster policy {policy}: {out} {err}")
        return int(found[1])

    def status(self):
        status, out, err = self.muster("status", "--json", "-", self.address)
        must(status == 0, "muster status:", err)
        return json.loads(out)

    def reaches(self, version):
        must(until(lambda: self.status()["commits"] >= version, HANG_S),
             f"the job never reaches version {version}: {self.server.said()[-2000:]}")

    def course(self):
        """[(version, policy)], as the server has said."""
        said = re.findall(r": (\S+) is in force, from version (\d+) on", self.server.said())
        return [(1, self.first), *((int(version), policy) for policy, version in said)]

    def proven_course(self, *options, rules=SGD):
        words = [w for version, policy in self.course() for w in ("--policy",
                                                                  f"{version}:{policy}")]
        self.proven(*words, *options, rules=rules)

    def codes(self, seconds):
        """And waits for the server, which says the last that it has done before it ends."""
        codes = super().codes(seconds)
        self.server.end(seconds)
        return codes

    def finish(self):
        self.end_job()
        codes = self.codes(HANG_S)
        check(f"the workers end: {codes}", all(code == 0 for code in codes))


def there_and_back(a, servers):
    """bsp to async to bsp while a worker is killed and comes again: nothing is lost, not even the
    momentum, which the proof has to have at every version."""
    with Job(a, "--optimizer", "sgd:lr=0.1,momentum=0.9", servers=servers) as job:
        job.begin()
        asked = []
        for policy in ("async", "bsp", "async", "bsp"):
            version = job.change(policy)
            asked.append((version, policy))
            job.reaches(version + 5)
            if policy == "async":
                rank = len(asked)
                job.worker[rank].kill()
                job.lost(rank)
                job.work(rank, f"sleep_us={STEP_US}", "rounds=1000000000", "again=1")
                job.came_again(rank)
        figures = job.status()
        job.end_job()
        codes = job.codes(HANG_S)
        check(f"all but the killed end well: {codes}", codes.count(0) == 4)
        check(f"each change came when it was told: {job.course()}",
              job.course() == [(1, "bsp"), *asked])
        under = [(row["since"], row["policy"]) for row in figures["policies"]]
        check("and is in the status", under == job.course())
        said = job.server.said()
        dropped = [int(n) for n in re.findall(r"the change to bsp dropped (\d+) gradients", said)]
        counted = [row["dropped"] for row in figures["policies"] if row["dropped"]]
        check(f"what was on its way is counted: {dropped}", dropped == counted)
        warned = said.count("policy async: the momentum of 0.9 of the optimiser sgd stays")
        check("and each change to async warns of the momentum", warned == 2)
        job.proven_course("--kills")


def one_server(a):
    there_and_back(a, 1)


def two_servers(a):
    there_and_back(a, 2)


POLICIES = ["bsp", "backup:3", "ksync:3", "kasync:2", "nonblocking", "anytime:2", "deadline:2,4",
            "kbatchsync:3", "kbatchasync:3", "softsync:2", "async", "bounded:2", "ssp:2"]
WAITING = POLICIES[:7]  # where workers own, all wait for commits


def tour(policies):
    """Every policy after every other one."""
    for i, one in enumerate(policies):
        yield one
        for other in policies[i + 1:]:
            yield other
            yield one


def there_and_down(policies):
    """Every policy after the next one in the list, and after the one before it."""
    return [*policies, *policies[-2::-1]]


def pairs_of(job, policies, rules):
    short = job.a.pairs == "next"
    way = there_and_down(policies) if short else list(tour(policies))
    with job:
        job.begin()
        for policy in way[1:]:
            job.reaches(job.change(policy) + 2)
        job.finish()
        pairs = {(x[1], y[1]) for x, y in itertools.pairwise(job.course())}
        wanted = itertools.pairwise(way) if short else itertools.permutations(policies, 2)
        check(f"all of these pairs have been: {len(pairs)}", pairs == set(wanted))
        job.proven_course(rules=rules)


def pairs_servers_own(a):
    pairs_of(Job(a, "--slots", "2"), POLICIES, SGD)


def pairs_workers_own(a):
    """A worker that stands still for seconds can still catch up: so the history is long, and the
    vector
    short."""
    pairs_of(Job(a, "--owner", "workers", "--history", "4096", words=("owner=workers",),
                 elems=1000), WAITING, "none")


def figures(a):
    """What cannot be is refused with the figures, and what is there already is said."""
    with Job(a) as job:
        job.begin()
        job.refused("policy", job.address, "bps", says=["did you mean bsp?"])
        job.refused("policy", job.address, "backup", says=["backup needs a number"])
        job.refused("policy", job.address, "backup:5", says=["5 distinct", "4 workers"])
        job.refused("policy", job.address, "backup:1", says=["1 of 4", "--force"])
        job.refused("policy", job.address, "kbatchsync:9", says=["9", "the 8 contributions"])
        job.refused("policy", job.address, "local:4", says=["differences of parameters"])
        job.refused("policy", job.address, "anytime:300000",
                    says=["a deadline of 300000 ms", "patience of 300 s"])
        status, out, _ = job.muster("policy", job.address, "bsp")
        check(out, status == 0 and out == "bsp is in force already, since version 1")
        version = job.change("backup:1", "--force")
        job.reaches(version)
        status, out, _ = job.muster("policy", job.address, "backup:1", "--force")
        check(out, status == 0 and out.endswith(f"in force already, since version {version}"))
        job.finish()
        job.server.end(HANG_S)
        job.refused("policy", job.address, "bsp", says=["nobody listens"])


def before_the_start(a):
    with base.Job(a, "-n", "2", *CALM) as job:
        done = ask(a, "policy", job.address, "async")
        check(done.stderr.strip(), done.returncode == 1 and "has not started" in done.stderr and
              "--policy async" in done.stderr)
        done = ask(a, "rest", "0", job.address)
        check(done.stderr.strip(), done.returncode == 1 and "has not started" in done.stderr)


def second_before_the_first(a):
    """While a worker stands still no bsp step commits. So a second change takes the place of the
    first; and a third, which needs fewer, lets the open step commit at once."""
    with Job(a, "--patience", "1h", "--lease", "1h") as job:
        job.begin()
        job.worker[3].signal(base.signal.SIGSTOP)
        must(until(lambda: standing(job), HANG_S), "the job goes on without rank 3")
        version = job.change("nonblocking")
        status, out, err = job.muster("policy", job.address, "bsp")
        check(f"{out}{err}", status == 0 and out.startswith(f"from version {version} on: bsp (") and
              out.endswith("it takes the place of nonblocking, which was not in force yet"))
        figures = job.status()
        check("the status has the next", figures["policy"] == "bsp" and
              figures["next_policy"] == "bsp" and figures["next_policy_since"] == version)
        check("a change that needs fewer holds", job.change("backup:3") == version)
        job.reaches(version + 3)
        job.worker[3].signal(base.signal.SIGCONT)
        job.finish()
        check(f"one change only: {job.course()}", job.course() == [(1, "bsp"),
                                                                   (version, "backup:3")])
        job.proven_course()


def standing(job):
    """Are all but rank 3 waiting for the commit?"""
    rows = job.status()["ranks"]
    return all(not row["awaited"] for row in rows[:3]) and rows[3]["awaited"]


def fewer_than_the_quorum_has_slots_for(a):
    """Eight gradients fill both slots of four workers. With one killed and one that rests, a step
    takes what the others' slots hold."""
    with Job(a, "--slots", "2") as job:
        job.begin()
        job.reaches(job.change("kbatchsync:8") + 2)
        job.worker[3].kill()
        job.lost(3)
        job.reaches(job.status()["commits"] + 3)
        job.muster("rest", "2", job.address)
        job.reaches(job.status()["commits"] + 3)
        job.muster("rest", "--return", "2", job.address)
        job.end_job()
        check("the others end well", job.codes(HANG_S)[:3] == [0, 0, 0])
        job.proven_course("--kills")


def later_sessions_are_told(a):
    """The welcome of a worker that comes later names the policy in force."""
    with Job(a) as job:
        job.begin()
        job.reaches(job.change("backup:3"))
        job.worker[2].kill()
        job.lost(2)
        job.work(2, f"sleep_us={STEP_US}", "rounds=1000000000", "again=1")
        job.came_again(2)
        with open(f"{job.log}.2.2") as f:
            check("it is backup:3", f.readline().split()[9] == "backup:3")
        job.end_job()
        check("all but the killed end well", job.codes(HANG_S).count(0) == 4)
        job.proven_course("--kills")


def rest(a):
    """The job goes on without who rests, and with it again when it has returned."""
    with Job(a) as job:
        job.begin()
        for rank in (2, 0):
            status, out, _ = job.muster("rest", str(rank), job.address)
            check(out, status == 0 and f"rank {rank} rests" in out)
        _, out, _ = job.muster("rest", "2", job.address)
        check(out, out == "rank 2 rests already")
        before = job.status()
        check("the status shows who rests",
              [row["rests"] for row in before["ranks"]] == [True, False, True, False])
        job.reaches(before["commits"] + 20)
        after = job.status()
        check("who rests adds nothing", all(
            after["ranks"][rank]["counted"] <= before["ranks"][rank]["counted"] + 1
            for rank in (0, 2)))
        job.muster("rest", "3", job.address)
        job.refused("rest", "1", job.address, says=["rank 1 is the last", "another returns"])
        job.refused("rest", "4", job.address, says=["rank 4 is not one", "0 to 3"])
        for rank in (0, 2, 3):
            status, out, _ = job.muster("rest", "--return", str(rank), job.address)
            check(out, status == 0 and f"rank {rank} returns" in out)
        _, out, _ = job.muster("rest", "--return", "1", job.address)
        check(out, out == "rank 1 takes part already")
        counted = [row["counted"] for row in job.status()["ranks"]]
        must(until(lambda: all(row["counted"] > n + 5 for row, n in
                               zip(job.status()["ranks"], counted)), HANG_S),
             "who has returned does not take part")
        said = job.server.said()
        check("the log says both", "rank 2 rests" in said and "rank 2 has returned" in said)
        job.finish()
        job.proven_course()


def the_last_one_lost(a):
    """When the only worker that takes part is lost, those who rest return."""
    with Job(a) as job:
        job.begin()
        for rank in (0, 1, 2):
            job.muster("rest", str(rank), job.address)
        job.reaches(job.status()["commits"] + 3)
        job.worker[3].kill()
        job.lost(3)
        job.reaches(job.status()["commits"] + 10)
        check("nobody rests", not any(row["rests"] for row in job.status()["ranks"]))
        job.end_job()
        check("the others end well", job.codes(HANG_S)[:3] == [0, 0, 0])
        job.proven_course("--kills")


def adapts_to(job, now):
    """Waits until the policy is @now. Return: the status then."""
    must(until(lambda: job.status()["policy_now"] == now, HANG_S),
         f"the policy is never {now}: {job.server.said()[-2000:]}")
    return job.status()


def quorums(course, name):
    return [int(policy[len(name) + 1:]) for _, policy in course if policy.startswith(name + ":")]


def adasync(a, servers):
    """K grows as the loss falls, with each version that the history has, and follows the workers
    that live. A fixed policy takes the place of it, and the other way round."""
    with Job(a, "--policy", "adasync:ksync,1,20,paper", servers=servers, words=("loss=8",)) as job:
        job.first = "ksync:1"
        job.begin()
        figures = adapts_to(job, "ksync:4")
        grown = quorums(job.course(), "ksync")
        check(f"K has grown from 1 to 4: {grown}", grown == sorted(set(grown)) and grown[0] == 1)
        check(f"the status says why: {figures['policy_why']}",
              figures["policy"] == "adasync:ksync,1,20,paper" and
              re.fullmatch(r"loss \S+ -> \S+, 4 live workers", figures["policy_why"]))
        rows = [(row["since"], row["policy"]) for row in figures["policies"]]
        check(f"and since when: {rows}", until(lambda: rows == job.course(), HANG_S))
        job.worker[2].kill()
        job.lost(2)
        why = adapts_to(job, "ksync:3")["policy_why"]
        check(f"K falls with a worker: {why}", why.endswith(", 3 live workers"))
        job.work(2, f"sleep_us={STEP_US}", "rounds=1000000000", "loss=8", "again=1")
        job.came_again(2)
        adapts_to(job, "ksync:4")
        status, out, _ = job.muster("policy", job.address, "adasync:ksync,1,20,paper")
        check(out, status == 0 and out.endswith("is in force already, since version 1"))
        job.reaches(job.change("backup:3") + 2)
        figures = job.status()
        check("a fixed policy has no more to say", figures["policy"] == "backup:3" and
              figures["policy_now"] is None and figures["policy_why"] is None)
        version = job.change("adasync:kasync,2,1000000")
        figures = adapts_to(job, "kasync:2")
        check("an adaptive one begins again", figures["policy_why"] ==
              "the first loss is known after 1000000 gradients")
        check("when it was told to", until(lambda: job.course()[-1] == (version, "kasync:2"),
                                           HANG_S))
        job.refused("policy", job.address, "adasync:ksync,5", says=["K starts at 5", "is 4"])
        job.refused("policy", job.address, "adasync:bsp", says=["as in adasync:ksync,1,100"])
        job.refused("policy", job.address, "syncswitch:0.5", says=["--samples N"])
        job.end_job()
        check("all but the killed end well", job.codes(HANG_S).count(0) == 4)
        job.proven_course("--kills")


def adasync_one_server(a):
    adasync(a, 1)


def adasync_two_servers(a):
    adasync(a, 2)


def adasync_by_times(a):
    """The first steps wait for all, and tell that rank 3 takes 20 times as long as the others."""
    with Job(a, "--policy", "adasync:ksync", words=("3:sleep_us=100000",)) as job:
        job.first = "bsp"
        job.begin()
        adapts_to(job, "ksync:3")
        counted = job.status()["commits"]
        check("after some steps that wait for all", job.course()[-1][0] >= 4 and counted >= 4)
        job.finish()
        job.proven_course()


def adasync_without_losses(a):
    """K stays, and the log says why once."""
    with Job(a, "--policy", "adasync:kasync,2,20") as job:
        job.first = "kasync:2"
        job.begin()
        job.reaches(40)
        check("the status says why",
              job.status()["policy_why"] == "the last 20 gradients told no loss")
        job.finish()
        said = job.server.said().count("stays at kasync:2: the last 20 gradients told no loss")
        check(f"the log says it once: {said}", said == 1 and job.course() == [(1, "kasync:2")])
        job.proven_course()


def dbw(a):
    """A slow worker becomes a backup as soon as gain and time are known, and comes back when it
    is as fast as the others. Two servers have a part each of every norm."""
    with Job(a, "--policy", "dbw", "--optimizer", "sgd:lr=0.1,momentum=0", servers=2,
             words=("loss=8", "3:sleep_us=60000")) as job:
        job.first = "bsp"
        job.begin()
        # Not by the status: soon it may be another one again, as noise is measured, too.
        must(until(lambda: "backup:3" in (policy for _, policy in job.course()), HANG_S),
             f"the policy is never backup:3: {job.server.said()[-2000:]}")
        figures = job.status()
        check(f"not before a step has told times: {job.course()}", job.course()[1][0] > 1)
        check(f"the status says why: {figures['policy_why']}", figures["policy"] == "dbw" and
              re.match("by times|gradient |the loss has risen|no quorum is sure",
                       figures["policy_why"]))
        job.reaches(figures["commits"] + 20)
        job.refused("policy", job.address, "dbw:5", says=["there are 4 workers"])
        job.finish()
        job.proven_course(rules="sgd:lr=0.1,momentum=0")


def dbw_is_refused(a):
    """In a job that was started without it workers tell no norms."""
    with Job(a, "--optimizer", "sgd:lr=0.1,momentum=0") as job:
        job.begin()
        job.refused("policy", job.address, "dbw", says=["started with --policy dbw"])
        job.finish()


def syncswitch(a):
    """bsp for half of the samples, which is a known number of versions; then async, with the
    momentum that there is. The next version is the first of async."""
    with Job(a, "--policy", "syncswitch:0.5", "--samples", "1200", "--optimizer",
             "sgd:lr=0.1,momentum=0.9") as job:
        job.first = "bsp"
        job.begin()
        codes = job.codes(HANG_S)
        check(f"the workers end: {codes}", all(code == 0 for code in codes))
        check(f"async comes after 150 versions of four: {job.course()}",
              job.course() == [(1, "bsp"), (151, "async")])
        job.proven_course()


def straggler_greedy(a):
    """While a worker is slow the job is under async, whose versions the proof knows."""
    with Job(a, "--policy", "syncswitch:0.9,greedy", "--samples", "1e9",
             words=("3:sleep_us=40000",)) as job:
        job.first = "bsp"
        job.begin()
        must(until(lambda: (1, "bsp") != job.course()[-1], HANG_S), "nothing is done about it")
        check(f"async comes, and not before some gradients tell: {job.course()[:2]}",
              job.course()[1][1] == "async" and job.course()[1][0] > 3)
        job.reaches(job.status()["commits"] + 10)
        job.finish()
        check("the log says why", "straggler" in job.server.said())
        job.proven_course()


def straggler_elastic(a):
    """A slow worker rests, and returns when the policy is another one."""
    with Job(a, "--policy", "syncswitch:0.9,elastic", "--samples", "1e9",
             words=("3:sleep_us=40000",)) as job:
        job.first = "bsp"
        job.begin()
        must(until(lambda: job.status()["ranks"][3]["rests"], HANG_S), "rank 3 does not rest")
        check("the policy stays", job.course() == [(1, "bsp")])
        job.reaches(job.change("async") + 2)
        check("it returns", until(lambda: not job.status()["ranks"][3]["rests"], HANG_S))
        counted = job.status()["ranks"][3]["counted"]
        check("and takes part",
              until(lambda: job.status()["ranks"][3]["counted"] > counted + 1, HANG_S))
        job.finish()
        job.proven_course()


class Slowed:
    """Rank 3 takes ten times as long as the others while it is so."""

    def __init__(self, folder):
        self.file = f"{folder}/slow"
        self.words = (f"3:slow_us={10 * STEP_US}", f"3:slow_while={self.file}")

    def begin(self):
        with open(self.file, "w"):
            pass

    def end(self):
        os.unlink(self.file)


def verdict(job):
    return job.status()["ranks"][3]["straggler"]


def known(job):
    """The servers know how long gradients usually take."""
    must(until(lambda: job.status()["fast_ready_ms"] is not None, HANG_S), "nothing is known")


def greedy_comes_back(a):
    """A rank that turns slow has all go async; bsp is back when it has recovered."""
    with tempfile.TemporaryDirectory() as folder:
        slowed = Slowed(folder)
        with Job(a, "--policy", "syncswitch:0.9,greedy", "--samples", "1e9",
                 words=slowed.words) as job:
            job.first = "bsp"
            job.begin()
            known(job)
            slowed.begin()
            must(until(lambda: job.status()["policy_now"] == "async" and
                       verdict(job)["kind"] == "slow", HANG_S), "nothing is done about it")
            slowed.end()
            must(until(lambda: job.status()["policy_now"] == "bsp", HANG_S), "bsp is not back")
            job.finish()
            job.proven_course()


def elastic_comes_back(a):
    """A rank that turns slow rests, with its verdict in the status and the log, and returns when
    it has recovered."""
    with tempfile.TemporaryDirectory() as folder:
        slowed = Slowed(folder)
        with Job(a, "--policy", "syncswitch:0.9,elastic", "--samples", "1e9",
                 words=slowed.words) as job:
            job.first = "bsp"
            job.begin()
            known(job)
            slowed.begin()
            must(until(lambda: job.status()["ranks"][3]["rests"], HANG_S), "rank 3 does not rest")
            found = verdict(job)
            check(f"it is told why: {found}", found["kind"] in ("slow", "stalled") and
                  found["ratio"] > 2 and found["for_s"] is not None)
            must(until(lambda: re.search(r"rank 3 (is slow|has been at its gradient)",
                                         job.server.said()), HANG_S), "the log does not have it")
            slowed.end()
            must(until(lambda: not job.status()["ranks"][3]["rests"], HANG_S), "it never returns")
            must(until(lambda: verdict(job)["for_s"] is None, HANG_S), "it is a straggler for ever")
            check(f"what it cost is kept: {verdict(job)}", verdict(job)["total_s"] > 0)
            must(until(lambda: "rank 3 is no straggler any more" in job.server.said(), HANG_S),
                 "the log does not have the end")
            job.finish()
            job.proven_course()


def syncswitch_summary(a):
    """The summary of muster run has both halves, and why the one ended."""
    with tempfile.TemporaryDirectory() as scratch:
        out = f"{scratch}/figures"
        done = subprocess.run([a.muster, "run", "-n", "2", "--policy", "syncswitch:0.25", *CALM,
                               "--grace", "60s", "--samples", "80", "--listen", "127.0.0.1:0",
                               "--json", out, "--", a.worker, f"{scratch}/log", "1000", "loss=3"],
                              text=True, capture_output=True, timeout=2 * HANG_S)
        check(f"the job ends: {done.stderr[-500:]}", done.returncode == 0)
        with open(out) as f:
            figures = json.load(f)
        rows = [(row["since"], row["policy"], row["counted"]) for row in figures["policies"]]
        check(f"bsp has a quarter: {rows}", rows[0] == (1, "bsp", 20) and
              rows[1][:2] == (11, "async"))
        check(figures["policy_why"], figures["policy_now"] == "async" and
              figures["policy_why"] == "20 samples are done, and the share of bsp was 0.25")


CASES = cases(one_server, two_servers, pairs_servers_own, pairs_workers_own, figures,
              before_the_start, second_before_the_first, fewer_than_the_quorum_has_slots_for,
              later_sessions_are_told, rest, the_last_one_lost,
              adasync_one_server, adasync_two_servers, adasync_by_times, adasync_without_losses,
              dbw,
              dbw_is_refused, syncswitch,
              straggler_greedy, straggler_elastic, greedy_comes_back, elastic_comes_back,
              syncswitch_summary)
# As in exact.py: these come by all lines but for some thirty of 13500.
PATHS = {"figures", "pairs_servers_own", "pairs_workers_own", "rest", "the_last_one_lost",
         "adasync_two_servers", "dbw", "straggler_elastic", "syncswitch_summary"}

if __name__ == "__main__":
    # Whether a rank is slow is measured: the others have to be quicker.
    main(CASES, "musterd", "worker", "muster", paths=PATHS, pairs="all",
         clock=("straggler_elastic", "greedy_comes_back", "elastic_comes_back"))
