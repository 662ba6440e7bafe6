#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The policy that was in force outlives the servers (--server-patience): workers bring it to those
that take their place, or a checkpoint has it, whatever the command line of those says.

usage: changed.py CASE --musterd MUSTERD --worker GOES_ON --muster MUSTER --stays STAYS
       changed.py --list
"""
import json
import subprocess
import tempfile

from base import HANG_S, cases, check, main, must, until
from generations import SMALL, WORKERS, Line
from server import SECONDS

LONG = "100000"  # versions: none of these jobs ends by itself
STATES = "comes_back=1"  # a rank may lack more than the newest version


def ask(a, command, *words):
    done = subprocess.run([a.muster, command, "--timeout", f"{HANG_S}s", *words], text=True,
                          capture_output=True, timeout=2 * HANG_S)
    must(done.returncode == 0, f"muster {command} {words}: {done.stdout} {done.stderr}")
    return done.stdout


def change(job, policy, *more):
    return ask(job.a, "policy", job.listen, policy, *more)


def in_force(job):
    """The policy in force, and the number of the change that it came with."""
    told = json.loads(ask(job.a, "status", "--json", "-", job.listen))
    return told["policy"], told["policy_change"]


def goes_on(job, by=5):
    job.reaches(job.newest() + by)


def is_under(job, policy, number, *said):
    goes_on(job)
    found = in_force(job)
    log = job.server.said()
    must(found == (policy, number), f"in force is {found}, must be {(policy, number)}: {log}")
    for words in said:
        check(f"its log says: {words}", words in log)


def workers_bring_it(a):
    """Each change, also where two servers are lost in a row, and the other is the leader."""
    for servers, kill in ((1, Line.kill_server), (2, Line.kill_follower)):
        with Line(a, "--commits", LONG, "--policy", "bsp", servers=servers) as job:
            job.join_all("elems=20000", "pace_us=700", STATES)
            job.reaches(5)
            must(in_force(job) == ("bsp", 0), in_force(job))
            change(job, "backup:2")
            kill(job)
            is_under(job, "backup:2", 1, "goes on under backup:2", "change 1, as its workers say",
                     "not under --policy bsp", "ranks that rested take part again")
            change(job, "backup:1", "--force")
            kill(job)
            if servers == 1:  # before anybody has come back
                kill(job)
            is_under(job, "backup:1", 2)
            change(job, "bsp")
            kill(job)
            is_under(job, "bsp", 3, "goes on under bsp, as --policy of this server says too")
            for worker in job.worker:
                must(worker.process.poll() is None, f"a worker has ended: {job.said()}")
            text = ask(a, "status", job.listen)
            must("policy bsp came with change 3 of the policy" in text, text)


def a_server_that_cannot_run_it_says_so(a):
    """And the next one that can does: the change is not forgotten."""
    with Line(a, "--commits", LONG, "--policy", "bsp") as job:
        job.join_all(*SMALL, STATES)
        job.reaches(5)
        change(job, "deadline:30000,2")
        options = job.options
        job.options = [*options, "--patience", "20s"]
        job.kill_server()
        is_under(job, "bsp", 0, "goes on under --policy bsp: the policy was changed to "
                 "deadline:30000,2 while it ran (change 1), which this server cannot run",
                 "has to be shorter than the patience of 20 s",
                 "muster policy asks for another one")
        job.options = options
        job.kill_server()
        is_under(job, "deadline:30000,2", 1)


def a_learning_policy_begins_anew(a):
    with Line(a, "--commits", LONG, "--policy", "bsp") as job:
        job.join_all(*SMALL, STATES)
        job.reaches(5)
        change(job, "adasync:ksync,2")
        job.kill_server()
        is_under(job, "adasync:ksync,2", 1,
                 "what the policy has learnt begins anew: adasync:ksync,2")


class Saved(Line):
    """Servers own, and each version is saved."""

    def __init__(self, a, folder, *options):
        super().__init__(a, "--commits", LONG, "--policy", "bsp", "--state", folder, "--resume",
                         folder, "--or-begin", "--checkpoint-every", "1", *options,
                         owner="servers")

    def lines(self, rank, kind=None, process=None):
        """In the order of version, generation, policy, as of goes_on."""
        words = [line.split() for line in self.worker[rank].said().splitlines()]
        return [[w[0], w[2], w[1], w[3]] for w in words if w[:1] == [kind]] if kind else words

    def join_all(self):
        a, self.a.worker = self.a.worker, self.a.stays
        super().join_all()
        self.a.worker = a

    def all_know(self, generation, policy):
        """Each rank is in this generation, and has been told that this is the policy."""
        def know():
            last = [self.lines(r, "version")[-1:] for r in range(WORKERS)]
            return all(w and w[0][2:] == [str(generation), policy] for w in last)
        must(until(know, SECONDS), f"not all know {policy}: {self.said()}")


def a_checkpoint_keeps_it(a):
    """Workers bring it, or the checkpoint alone, where all of them are lost as well."""
    with tempfile.TemporaryDirectory() as folder, Saved(a, folder) as job:
        job.join_all()
        goes_on(job)
        change(job, "backup:2")
        goes_on(job, 20)
        job.all_know(1, "backup:2")
        job.kill_server()
        job.all_know(2, "backup:2")
        must(in_force(job) == ("backup:2", 1), in_force(job))
        change(job, "bsp")
        job.all_know(2, "bsp")
        job.kill_server()
        job.all_know(3, "bsp")
        must(in_force(job) == ("bsp", 2), in_force(job))
        change(job, "kasync:2")
        saved = job.newest() + 10
        goes_on(job, 150)  # versions are saved ten times a second at most
        for worker in job.worker:
            worker.kill()
        job.worker = []
        job.kill_server()
        job.join_all()
        must(until(lambda: "as its checkpoint says" in job.server.said(), SECONDS), job.said())
        job.all_know(4, "kasync:2")
        must(in_force(job) == ("kasync:2", 3) and job.newest() >= saved, in_force(job))


def a_command_line_without_patience_holds(a):
    """A job that ends with its servers begins under what is typed, and says what was in force."""
    with tempfile.TemporaryDirectory() as folder, Saved(a, folder) as job:
        job.join_all()
        goes_on(job)
        change(job, "backup:2")
        goes_on(job, 150)
        job.server.kill()
        job.lead(patient=[])
        said = job.server.said
        must(until(lambda: "goes on from version" in said(), SECONDS), said())
        check("the policy is that of the command line",
              "the policy is bsp from now on, as the command line says; it was changed to "
              "backup:2 while the job ran" in said())


CASES = cases(workers_bring_it, a_checkpoint_keeps_it, a_command_line_without_patience_holds,
              a_server_that_cannot_run_it_says_so, a_learning_policy_begins_anew)

if __name__ == "__main__":
    main(CASES, "musterd", "worker", "muster", "stays", paths=("workers_bring_it",))
