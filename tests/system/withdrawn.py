#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Jobs that go on when servers are killed and started again (--server-patience), where servers own:
each goes on from its newest checkpoint, and workers are told how many of their versions are void.

usage: withdrawn.py CASE --muster MUSTER --musterd MUSTERD --worker WITHDRAWS
       withdrawn.py --list
"""
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import generations
from base import Child, cases, check, main, must, until, worker_environment
from generations import WORKERS
from server import SECONDS

SMALL = ["elems=1000", "pace_us=700"]
# The optimiser has a vector of its own, which has to be right, too.
OPTIONS = ["--policy", "bsp", "--optimizer", "sgd:lr=0.001,momentum=0.9"]
OFTEN = ["--checkpoint-every", "7"]  # versions


class Line(generations.Line):
    """Servers that save. Each worker is one process, whose log has no number."""

    def __init__(self, a, commits, *options, state=None, **how):
        self.kept = tempfile.TemporaryDirectory()
        self.state = state or os.path.join(self.kept.name, "state")
        super().__init__(a, "--commits", str(commits), *OPTIONS, "--state", self.state, *options,
                         owner="servers", **how)

    def joined(self):
        return Child([self.a.musterd, "--join", self.listen, "--listen", "127.0.0.1:0", "--state",
                      self.state, *self.patient], **self.of_follower)

    def join(self, rank, *words):
        self.worker.append(Child([self.a.worker, self.path("log"), *words],
                                 **worker_environment(self.listen, rank),
                                 MUSTER_TRANSPORT=self.transport, **self.of_worker))
        return self.worker[-1]

    def lines(self, rank, kind=None, process=None):
        path = self.path(f"log.{rank}")
        if not os.path.exists(path):
            return []
        with open(path) as f:
            found = [line.split() for line in f if line.endswith("\n")]
        return [words for words in found if kind in (None, words[0])]

    def newest(self, rank=None):
        """The version that this rank has, or the newest that any has."""
        ranks = range(WORKERS) if rank is None else [rank]
        return max((int(words[1]) for r in ranks for words in self.lines(r, "version")[-1:]),
                   default=0)

    def manifest(self, version=None):
        """That of this version, or the newest; None: there is none."""
        names = sorted(glob.glob(os.path.join(self.state, f"v{version or 0:010}.json"
                                              if version else "v*.json")))
        if not names:
            return None
        with open(names[-1]) as f:
            return json.load(f)

    def is_saved(self, version):
        """A checkpoint of this version or a later one is whole."""
        must(until(lambda: (self.manifest() or {"version": 0})["version"] >= version, SECONDS),
             f"no checkpoint of version {version}: {self.said()}")


    def status(self, *options):
        asked = subprocess.run([self.a.muster, "status", *options, self.listen],
                               capture_output=True, text=True, timeout=SECONDS)
        return asked.stdout if asked.returncode == 0 else ""

    def figures(self):
        return json.loads(self.status("--json", "-") or "{}")


def digests(job):
    """The digests of each version that ranks were given."""
    found = {}
    for rank in range(WORKERS):
        for words in job.lines(rank, "version"):
            found.setdefault(int(words[1]), set()).add(words[2])
    return found


def undisturbed(a, commits, *words):
    with Line(a, commits, patience=None) as job:
        job.join_all(*words)
        job.ended()
        return digests(job)


def accounted(job, commits, first=0):
    """Each rank counts once in each version that is not void; what else it had is void. @first: the
    version that the job has begun with."""
    ends = job.ended()
    for end in ends:
        told = generations.figures(end)
        must(end[1] == str(commits), f"{end}: {job.said()}")
        must(told["counted"] - told["void"] == commits - first, f"{end}: {job.said()}")
    job.is_over()
    return [generations.figures(end) for end in ends]


def exact(job, commits, wanted, first=0):
    """Each version has the same bits however often it was made."""
    ends = accounted(job, commits, first)
    found = digests(job)
    wrong = {v: found[v] for v in found if found[v] != wanted.get(v, set())}
    must(not wrong, f"other bits than in a job that was not disturbed: {wrong}")
    return ends


def killed(a, times, commits, *words, most=12, **how):
    wanted = undisturbed(a, commits, *words)
    with Line(a, commits, *OFTEN, **how) as job:
        job.join_all(*words)
        job.is_saved(1)

        def hurt(number):
            if how.get("servers", 1) == 1:
                job.kill_server()
            elif number % 2 == 0:
                job.kill_leader_of_two()
            else:
                job.kill_follower()
            goes_on(job, number + 2)

        reached = generations.at_random(job, 35, times, most, hurt)
        must(reached < commits, f"the job was over before the last kill: version {reached}")
        ends = exact(job, commits, wanted)
        must(all(end["withdrawn"] > 0 for end in ends), ends)
        print(f"{times} kills: {ends}")


def killed_under_backup(a):
    """A rank may come later than the others have begun, and may miss versions. Each version has one
    result within a generation, and no rank is told twice of what it counts in."""
    with Line(a, 150, *OFTEN, "--policy", "backup:2") as job:
        job.join_all(*SMALL, "any")
        job.is_saved(1)

        def hurt(number):
            job.kill_server()
            goes_on(job, number + 2)

        generations.at_random(job, 36, 6, 10, hurt)
        ends = job.ended()
        found = {}
        for rank in range(WORKERS):
            for _, version, digest, generation in job.lines(rank, "version"):
                found.setdefault((int(version), int(generation)), set()).add(digest)
        several = {which: bits for which, bits in found.items() if len(bits) > 1}
        must(not several, f"other bits at other ranks: {several}")
        must(all(end[1:3] == ends[0][1:3] for end in ends), ends)
        counted = [int(generations.figures(end)["counted"]) - int(generations.figures(end)["void"])
                   for end in ends]
        check(f"each version is made of two or three: {counted}", 300 <= sum(counted) <= 450)
        must(any(generations.figures(end)["withdrawn"] > 0 for end in ends), ends)


def goes_on(job, generation):
    """Another generation has begun, of the same run."""
    must(until(lambda: f"generation {generation} of run" in job.server.said() or
               job.server.process.poll() is not None, SECONDS) and
         f"generation {generation} of run" in job.server.said(),
         f"generation {generation} does not begin: {job.said()}")


def killed_twenty_times(a):
    killed(a, 20, 400, *SMALL)


def killed_over_tcp(a):
    killed(a, 5, 120, "elems=200000", "pace_us=500", most=8, transport="tcp")


def one_of_two_is_killed(a):
    killed(a, 6, 150, "elems=20000", "pace_us=700", most=8, servers=2)


def keeps_its_run(a):
    """The manifests of all generations name one run, and numbers that rise."""
    with Line(a, 100000, *OFTEN) as job:
        job.join_all(*SMALL)
        seen = []
        for generation in range(1, 4):
            job.is_saved((seen[-1]["version"] if seen else 0) + 1)
            seen.append(job.manifest())
            must(seen[-1]["generation"] == generation, [(m["version"], m["generation"])
                                                        for m in seen])
            job.kill_server()
            goes_on(job, generation + 1)
        check(f"one run: {[(m['run'], m['generation']) for m in seen]}",
              len({m["run"] for m in seen}) == 1 and len({m["save"][:16] for m in seen}) == 3)
        check("the line of the last says where each has begun",
              seen[2]["values"]["line.generations"] == [1, 2, 3] and
              seen[2]["values"]["line.began"][0] == 0)
        said = job.before[0].said() + job.server.said()
        check("and the log names it", f"run {seen[0]['run']}" in said)


# ---- what is told ----

def status_says_what_a_loss_costs(a):
    """Run, generation, the newest checkpoint, and the versions after it: in words and in JSON."""
    with Line(a, 100000, "--checkpoint-every", "10min") as job:
        job.join_all(*SMALL)
        job.reaches(30)
        told = job.figures()
        check(f"before the first checkpoint: {told['loss_costs']} of {told['commits']}",
              told["generation"] == 1 and told["checkpoint"] is None and
              told["loss_costs"] == told["commits"] >= 30)
        check("and in words", re.search(
            rf"^generation 1 of run {told['run']}; there is no checkpoint yet: a server that is "
            r"lost now costs all \d+ versions$", job.status(), re.M) is not None)
        job.server.stop()  # with SIGTERM: the newest version is saved
        must(job.server.end(SECONDS)[0] is not None, "the server does not end")
        job.lead()
        goes_on(job, 2)
        began = job.newest()
        job.reaches(began + 30)
        told = job.figures()
        kept = job.manifest()
        check(f"from a checkpoint on: {told['checkpoint']}, {told['loss_costs']}",
              told["generation"] == 2 and told["checkpoint"] == kept["version"] and
              told["loss_costs"] == told["commits"] - kept["version"] >= 30 and
              told["run"] == kept["run"])
        check("and in words", re.search(
            rf"^generation 2 of run {told['run']}; the newest checkpoint is of version "
            rf"{kept['version']}: a server that is lost now costs \d+ versions$",
            job.status(), re.M) is not None)


def log_says_what_a_loss_would_have_cost(a):
    with Line(a, 100000, "--checkpoint-every", "10") as job:
        job.join_all(*SMALL)
        job.is_saved(30)
        found = re.findall(r"checkpoint of version (\d+): .* until then a lost server would have "
                           r"cost (\d+) versions", job.server.said())
        saved = [0] + [int(version) for version, _ in found]
        check(f"each says the versions since the one before: {found[:4]}", len(found) >= 2 and all(
            int(costs) == later - earlier
            for (_, costs), earlier, later in zip(found, saved, saved[1:])))


def rows_of(path):
    """A recording: the remarks of its generations, and the rows of each (version, verdict)."""
    began, rows = {}, {}
    with open(path, encoding="utf-8") as f:
        header = f.readline()
        must(header in ("", "rank,version,start_us,ready_us,verdict,generation\n"), header)
        for line in f:
            if not line.endswith("\n"):
                break  # it is being written
            remark = re.match(r"# generation (\d+) of run ([0-9a-f]{16}) begins with version (\d+)",
                              line)
            if remark:
                began[int(remark[1])] = (remark[2], int(remark[3]))
                rows[int(remark[1])] = []
            elif line[0] != "#":
                _, version, _, _, verdict, generation = line.strip().split(",")
                must(int(generation) == max(rows), f"a row of another generation: {line}")
                rows[int(generation)].append((int(version), verdict))
    return began, rows


def recording_has_all_generations(a):
    """One file, in which each generation has the versions that it made, with its number. A server
    that is killed takes the rows of its last moment with it; else each version is whole."""
    with tempfile.TemporaryDirectory() as folder:
        path, plan = os.path.join(folder, "r.csv"), os.path.join(folder, "plan.json")
        with Line(a, 200, *OFTEN, "--record", path) as job:
            job.join_all(*SMALL)
            job.is_saved(1)

            def hurt(number):
                must(until(lambda: rows_of(path)[1].get(number + 1), SECONDS), "it has no rows")
                job.kill_server()
                goes_on(job, number + 2)

            generations.at_random(job, 7, 3, 30, hurt)
            accounted(job, 200)
            run = job.manifest()["run"]
        began, rows = rows_of(path)
        check(f"four generations of one run: {began}",
              list(began) == [1, 2, 3, 4] and {r for r, _ in began.values()} == {run})
        for number, (_, first) in began.items():
            counted = [version for version, verdict in rows[number] if verdict == "counted"]
            last = max(counted)
            check(f"generation {number} has versions {first} to {last}, each of all ranks", all(
                counted.count(version) == WORKERS for version in range(first, last)))
        check("the last has the end", max(v for v, _ in rows[4]) == 199)
        done = subprocess.run([a.muster, "plan", "--trace", path, "--json", plan],
                              capture_output=True, text=True, timeout=SECONDS)
        must(done.returncode == 0, done.stderr)
        with open(plan, encoding="utf-8") as f:
            told = json.load(f)
        steps = sum(len({v for v, verdict in of if verdict == "counted"}) for of in rows.values())
        check(f"muster plan has all {steps} steps of them", told["steps"] == steps and
              told["input"]["generations"] == 4 and told["input"]["repeats"] == 0)
        check("and says so", "4 generations of servers have steps of their own" in done.stdout)


# ---- what does not go on ----

def nothing_is_saved(a):
    """The server was lost before its first checkpoint: the next one waits, and says what is."""
    with Line(a, 100000, patience="60s") as job:
        job.options = [*job.options, "--join-timeout", "2s"]
        job.join_all(*SMALL)
        job.reaches(20)
        job.kill_server()
        status, log = job.server.end(SECONDS)
        check(f"it ends with {status}: {log[-400:]}", status == 1 and re.search(
            r"come back with version \d+ \(generation 1 of run [0-9a-f]{16}\), and there is no "
            rf"checkpoint in {re.escape(job.state)}", log) is not None)
        check(f"nobody has lost anything by that: {job.said()}", all(
            w.process.poll() is None for w in job.worker))


def checkpoint_of_another_run(a):
    """Another job has its files in the directory: nothing of either is lost."""
    with Line(a, 30) as other:
        other.join_all(*SMALL)
        other.ended()
        other.is_saved(30)  # the server ends after its workers
        theirs = other.manifest()
        with Line(a, 100000, *OFTEN, patience="60s") as job:
            job.join_all(*SMALL)
            job.is_saved(1)
            ours = job.manifest()["run"]
            job.server.kill()
            right, job.options = list(job.options), [other.state if word == job.state else word
                                                     for word in job.options]
            job.lead("--join-timeout", "2s")
            status, log = job.server.end(SECONDS)
            check(f"it ends with {status}: {log[-700:]}", status == 1 and all(
                word in log for word in (theirs["run"], ours, other.state,
                                         "start this server with the directory")))
            check("the checkpoint is there as it was", other.manifest() == theirs)
            job.options = right
            job.lead()
            goes_on(job, 2)


def other_resume_is_refused(a):
    with tempfile.TemporaryDirectory() as folder:
        state, old = os.path.join(folder, "state"), os.path.join(folder, "old")
        os.mkdir(old)
        done = subprocess.run([a.musterd, "-n", "1", "--listen", "127.0.0.1:0", "--state", state,
                               "--resume", old, "--or-begin", "--server-patience", "1min"],
                              capture_output=True, text=True, timeout=SECONDS)
        check(f"it is told why: {done.stderr.strip()}", done.returncode == 2 and
              "leave --resume out" in done.stderr)
        shown = subprocess.run([a.muster, "run", "-n", "1", "--state", state, "--resume", old,
                                "--or-begin", "--print-config", "--", "true"],
                               capture_output=True, text=True, timeout=SECONDS)
        check("muster run does not restart its servers then",
              '\nserver_patience = "0";\n' in shown.stdout)


def nothing_newer_than_the_first_is_left(a):
    """The newest checkpoint is damaged: the one before is gone on from, as the log says."""
    wanted = undisturbed(a, 500, *SMALL)
    with Line(a, 500, "--checkpoint-every", "10") as job:
        job.join_all(*SMALL)
        job.is_saved(40)
        job.server.kill()
        newest = job.manifest()
        part = os.path.join(job.state, newest["parts"][0]["file"])
        shutil.copy(part, part + ".whole")
        with open(part, "r+b") as f:
            f.seek(-1, os.SEEK_END)
            last = f.read(1)
            f.seek(-1, os.SEEK_END)
            f.write(bytes([last[0] ^ 1]))
        job.lead()
        goes_on(job, 2)
        check("the log says which one is damaged",
              f"the checkpoint of version {newest['version']} cannot be used" in job.server.said())
        exact(job, 500, wanted)


def disk_is_full(a):
    """A small disk of its own, in a namespace of its own, in which all processes are."""
    words = [sys.executable, os.path.abspath(__file__), "within_a_small_disk", "--muster", a.muster,
             "--musterd", a.musterd, "--worker", a.worker]
    may = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"],
                         capture_output=True, text=True)
    if may.returncode != 0:
        print("skipped: no disk can be mounted here:", may.stderr.strip())
        sys.exit(77)
    done = subprocess.run(["unshare", "-m", *words], timeout=200)
    check("it goes on", done.returncode == 0)


def within_a_small_disk(a):
    """The successor starts, warns of each version that it cannot save, and saves when it can."""
    with tempfile.TemporaryDirectory() as folder:
        state, fill = os.path.join(folder, "state"), os.path.join(folder, "state", "fill")
        os.mkdir(state)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", state], check=True)
        with Line(a, 100000, *OFTEN, state=state) as job:
            job.join_all(*SMALL)
            job.is_saved(1)
            job.server.kill()
            kept = job.manifest()["version"]
            with contextlib.suppress(OSError), open(fill, "wb", buffering=0) as f:
                while f.write(bytes(1024)):
                    pass
            job.lead()
            goes_on(job, 2)
            warned = until(lambda: re.search(
                r"no checkpoint of version (\d+): .*; the job goes on, and the last one is of "
                r"version (\d+); a lost server would now cost at least (\d+) versions",
                job.server.said()), SECONDS)
            found = re.search(r"no checkpoint of version (\d+): .* is of version (\d+); a lost "
                              r"server would now cost at least (\d+)", job.server.said())
            must(warned and found, f"it does not warn: {job.said()}")
            version, last, costs = map(int, found.groups())
            check(f"it says what is lost: {found[0]}", last == kept and costs == version - kept)
            check("and why", "the disk has" in job.server.said())
            check("the status has the last one", job.figures()["checkpoint"] == kept)
            os.unlink(fill)
            job.is_saved(version + 1)
        subprocess.run(["umount", state], check=True)


def another_server_has_the_directory(a):
    """Two servers with one --state: the second waits as long as --join-timeout, and says so."""
    with Line(a, 100000, *OFTEN) as job:
        job.join_all(*SMALL)
        job.is_saved(1)
        done = subprocess.run([a.musterd, "--workers", "3", "--listen", "127.0.0.1:0", "--state",
                               job.state, "--server-patience", "1min", "--join-timeout", "1s"],
                              capture_output=True, text=True, timeout=SECONDS)
        print(done.stderr)
        check(f"it ends with {done.returncode}, and says for how long it waited",
              done.returncode == 1 and job.state in done.stderr and
              "--join-timeout" in done.stderr)
        before = job.newest()
        job.reaches(before + 20)
        check("the first goes on", job.server.process.poll() is None)


CASES = cases(killed_twenty_times, killed_over_tcp, one_of_two_is_killed, killed_under_backup,
              keeps_its_run,
              status_says_what_a_loss_costs, log_says_what_a_loss_would_have_cost,
              recording_has_all_generations, disk_is_full, within_a_small_disk,
              another_server_has_the_directory,
              nothing_is_saved, checkpoint_of_another_run, other_resume_is_refused,
              nothing_newer_than_the_first_is_left)
if __name__ == "__main__":
    main(CASES, "muster", "musterd", "worker",
         paths=("killed_twenty_times", "nothing_is_saved", "checkpoint_of_another_run"),
         unlisted=("within_a_small_disk",))
