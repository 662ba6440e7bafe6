#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workers that give tables of tensors: those whose table differs are refused, with both workers
named, and do the others no harm.

usage: tables.py CASE --musterd MUSTERD --worker WORKER
       tables.py --list
"""
from base import cases, check, main, until
from server import SECONDS
from servers import Job

RANK = r"rank {} (127.0.0.1:"
SGD = "sgd:lr=0.1,momentum=0.9,decay=0.01"


def job(a, servers, *words, optimizer=SGD):
    """A job of two workers, of which only rank 0 has come."""
    one = Job(a, servers, "-n", "2", "--commits", "20", "--optimizer", optimizer, workers=0)
    one.work(0, *words)
    check("rank 0 has joined", until(lambda: "rank 0 joined" in one.leader.said(), SECONDS))
    return one


def refused(one, sentence, *words):
    """Rank 1 with those tensors."""
    status, said = one.work(1, *words).end(SECONDS)
    one.worker.pop()
    named = all(RANK.format(rank) in said for rank in (0, 1))
    check(f"{sentence}: {said.strip()[-220:]}", status == 1 and named and sentence in said)


def goes_on(one, rules, *words):
    one.work(1, *words)
    ends = [w.end(SECONDS)[0] for w in one.worker] + [one.leader.end(SECONDS)[0]]
    check(f"the job ends well: {ends}", not any(ends))
    one.proven(rules=rules)


def tables_that_differ(a):
    with job(a, 1, "tensors=5") as one:
        refused(one, "another model: tensor number", "tensors=6")
        refused(one, "another model: tensor number", "tensors=5", "rename=1")
        refused(one, "gives scales of tensors other than 1, but", "tensors=5", "scales=1")
        goes_on(one, "sgd:0.1,0.9,decay=0.01", "tensors=0")


def scales_that_differ(a):
    with job(a, 2, "tensors=5", "scales=1") as one:
        refused(one, "gives no scales of tensors other than 1, but", "tensors=0")
        refused(one, "gives no scales of tensors other than 1, but", "tensors=5")
        refused(one, "another model: tensor number", "tensors=6", "scales=1")
        goes_on(one, "sgd:0.1,0.9,decay=0.01,tensors=5", "tensors=5", "scales=1")


def tables_for_norms(a):
    """The borders in the table are those of the norms: all workers give it, or none does."""
    for words, other, sentence in ((["tensors=5"], "tensors=0", "gives no table of tensors, but"),
                                   ([], "tensors=5", "gives a table of tensors, but")):
        with job(a, 2, *words, optimizer="lamb:lr=0.1") as one:
            refused(one, sentence, other)
            warns = "the norms that the optimiser lamb takes are those of the whole vector"
            check("who gives no table is warned", (warns in one.leader.said()) != bool(words))
            if words:
                one.work(1, *words)
            else:
                goes_on(one, "lamb:lr=0.1")


def tables_that_reach_all_servers(a):
    """From the first worker that gives one, whoever sends the start state."""
    came = "the table of 700 tensors has come"
    for sender in ("tensors=700", "tensors=0"):
        with job(a, 2, "tensors=700", "start=0") as one:
            goes_on(one, "sgd:0.1,0.9,decay=0.01", sender, "start=1")
            said = [p.end(SECONDS)[1] for p in (one.leader, *one.follower)]
            check(f"beside {sender} each server has the table, once",
                  [text.count(came) for text in said] == [1, 1])


main(cases(tables_that_differ, scales_that_differ, tables_for_norms, tables_that_reach_all_servers),
     "musterd", "worker")
