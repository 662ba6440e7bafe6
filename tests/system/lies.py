#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workers that tell one server what they do not tell another, and servers that answer one worker
differently (lie.c). Who lies is ended, or late; nobody else is hurt, and no sum is wrong.

usage: lies.py CASE --musterd MUSTERD --crowd CROWD --lie-musterd M --lie-crowd C
       lies.py --list
"""
import argparse
import os
import sys

from servers import Child, Job, check

COMMITS = 40
JOB = ["-n", "4", "--policy", "backup:3", "--commits", str(COMMITS), "--lease", "1s"]
PATIENT = ["--patience", "300ms"]


def start(a, liar, lie, options=(), crowd=()):
    """A job of three servers and four workers, one of which lies."""
    job = Job(a, 3, *JOB, *options, workers=0)
    for rank in range(4):
        if rank == liar:
            a.crowd, honest = a.lie_crowd, a.crowd
            os.environ["MUSTER_LIE"] = lie
            job.work(rank, "sleep_us=1000", *crowd)
            del os.environ["MUSTER_LIE"]
            a.crowd = honest
        else:
            job.work(rank, "sleep_us=1500", *crowd)
    return job


def others_go_on(job, liar, name, statuses):
    """The liar ends with one of those, and all others as if it had not been there."""
    ends = [w.end(20) for w in job.worker]
    codes = [status for status, _ in ends]
    status, log = job.lead_end(10)
    members = [m.end(10) for m in job.member]
    everything = log + "".join(said for _, said in (*members, *ends))
    check(f"{name}: no assertion", "assertion" not in everything)
    honest = [c for rank, c in enumerate(codes) if rank != liar]
    check(f"{name}: {codes}, lead {status}, members {[m[0] for m in members]}",
          not any(honest) and status == 0 and not any(m[0] for m in members)
          and codes[liar] in statuses)
    if codes[liar] != 0:
        words = ends[liar][1].strip()
        check(f"in words: {words[-110:]}", "rank" in words)
    job.proven("--kills", "--versions", str(COMMITS))
    return log


def headers_that_differ(a):
    for part, field in ((1, "seq"), (2, "tag"), (0, "weight"), (1, "slot"),
                        (1, "epoch"), (0, "flags")):
        liar = (part + 1) % 4
        with start(a, liar, f"{part} header 15 {field}") as job:
            log = others_go_on(job, liar, f"another {field} to server {part}", {1})
            check("the lead says why", f"rank {liar}" in log and "broke the protocol" in log)


def headers_that_are_missing(a):
    """It waits for a verdict that nobody can give; it is ended when others wait for it too long, or
    waits for the end of the job with them."""
    for part in range(3):
        with start(a, 2, f"{part} header 15 never", PATIENT) as job:
            others_go_on(job, 2, f"no header to server {part}", {0, 1})


def headers_again(a):
    for part, lie in ((1, "twice"), (2, "flood"), (0, "flood")):
        with start(a, 3, f"{part} header 15 {lie}") as job:
            others_go_on(job, 3, f"{lie} to server {part}", {1})


def one_gives_up_alone(a):
    """Given up on one server, full on the others; given up on all but one."""
    for part in range(3):
        with start(a, 1, f"{part} header 15 now") as job:
            others_go_on(job, 1, f"given up on server {part} alone", {1})
    with start(a, 1, "2 abandon 3 never", crowd=["1:abandon=4"]) as job:
        others_go_on(job, 1, "given up on all servers but one", {0, 1})


def nobody_waits_longer_than_patience(a):
    """Where all are needed, the job waits for who keeps its header from one server, and then no
    more."""
    with Job(a, 2, "-n", "3", "--policy", "bsp", "--commits", str(COMMITS), *PATIENT,
             workers=2) as job:
        a.crowd, honest = a.lie_crowd, a.crowd
        os.environ["MUSTER_LIE"] = "1 header 15 never"
        job.work(2, "sleep_us=1000")
        del os.environ["MUSTER_LIE"]
        a.crowd = honest
        others_go_on(job, 2, "no header to server 1, under bsp", {1})


def answers_that_differ(a):
    """A server whose answer is not the others': its worker does not read what is half another
    version, and says so."""
    for field in ("number", "version"):
        with Job(a, 2, "-n", "1", "--lease", "1s", workers=0, members=0) as job:
            os.environ["MUSTER_LIE"] = f"- answer 20 {field}"
            job.member.append(Child([a.lie_musterd, "--join", job.address]))
            del os.environ["MUSTER_LIE"]
            job.work(0, "sleep_us=500")
            status, said = job.worker[0].end(10)
            check(f"another {field}: {said.strip()[-150:]}",
                  status == 1 and "server 1" in said and "differ" in said)
            ends = [job.lead_end(10)[0], job.member[0].end(10)[0]]
            check(f"and the servers end: {ends}", None not in ends)


CASES = {f.__name__: f for f in (headers_that_differ, headers_that_are_missing, headers_again,
                                 one_gives_up_alone, nobody_waits_longer_than_patience,
                                 answers_that_differ)}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("case", nargs="?")
    p.add_argument("--list", action="store_true")
    for name in ("--musterd", "--crowd", "--lie-musterd", "--lie-crowd"):
        p.add_argument(name)
    a = p.parse_args()
    if a.list:
        print("\n".join(CASES))
    else:
        CASES[a.case](a)


main()
