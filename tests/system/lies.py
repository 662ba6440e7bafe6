#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workers that tell one server what they do not tell another, and servers that answer one worker
differently (lie.c). A worker that lies is ended, or late; nobody else is hurt, and no sum is wrong.

usage: lies.py CASE --musterd MUSTERD --worker WORKER --lie-musterd M --lie-worker C
       lies.py --list
"""
import contextlib

from base import CALM, LEASE_S, cases, check, main, until
from server import SECONDS
from servers import Job, wrote

COMMITS = 40
# A server that stands still for a minute, because of what lingers, is noticed.
JOB = ["-n", "4", "--policy", "backup:3", *CALM]
ENDS = ["--commits", str(COMMITS)]
PATIENT = [*CALM, "--patience", "7s"]
# Shorter than a link takes that is slow (lie.c), and longer than a process stands still by chance.
LEASE = ["--lease", f"{LEASE_S}s"]


def start(a, liar, lie, options=(), words=()):
    """A job of three servers and four workers, one of which lies; rank 0 does not."""
    job = Job(a, 3, *JOB, *options, workers=0)
    words = [*words, *job.until_told()]
    for rank in range(4):
        if rank == liar:
            job.work(rank, "sleep_us=1000", *words, program=a.lie_worker, MUSTER_LIE=lie)
        else:
            job.work(rank, "sleep_us=1500", *words)
    return job


def others_go_on(job, liar, name, statuses):
    """The liar ends with one of those, and all others as if it had not been there. A job that is
    to end it goes on until it has."""
    if 0 not in statuses:
        job.worker[liar].process.wait(SECONDS)
        job.sees(COMMITS)
        job.end_job()
    ends = [w.end(SECONDS) for w in job.worker]
    codes = [status for status, _ in ends]
    status, log = job.leader.end(SECONDS)
    followers = [m.end(SECONDS) for m in job.follower]
    everything = log + "".join(said for _, said in (*followers, *ends))
    check(f"{name}: no assertion", "assertion" not in everything)
    honest = [c for rank, c in enumerate(codes) if rank != liar]
    check(f"{name}: {codes}, leader {status}, followers {[m[0] for m in followers]}",
          not any(honest) and status == 0 and not any(m[0] for m in followers)
          and codes[liar] in statuses)
    if codes[liar] != 0:
        words = ends[liar][1].strip()
        check(f"in words: {words[-110:]}", "rank" in words)
    job.proven("--kills", "--versions", str(COMMITS))
    return log


def headers_that_differ(a):
    for part, field in ((1, "seq"), (2, "tag"), (0, "weight"), (1, "slot"),
                        (1, "epoch"), (0, "flags"), (2, "size")):
        liar = (part + 1) % 4
        with start(a, liar, f"{part} header 15 {field}") as job:
            log = others_go_on(job, liar, f"another {field} to server {part}", {1})
            check("the leader says why", f"rank {liar}" in log and "broke the protocol" in log)


def headers_that_are_missing(a):
    """It waits for a verdict that nobody can give; it is ended when others wait for it too long, or
    waits for the end of the job with them. Three jobs side by side, for each takes as long."""
    with contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(start(a, 2, f"{part} header 15 never", [*PATIENT, *ENDS]))
                for part in range(3)]
        for part, job in enumerate(jobs):
            others_go_on(job, 2, f"no header to server {part}", {0, 1})


def headers_again(a):
    for part, lie in ((1, "twice"), (2, "flood"), (0, "flood")):
        with start(a, 3, f"{part} header 15 {lie}") as job:
            others_go_on(job, 3, f"{lie} to server {part}", {1})


def descriptors_that_linger(a):
    """What a worker passes over its link's socket would keep who closes it for a minute."""
    for part in range(3):
        with start(a, 2, f"{part} header 15 linger") as job:
            log = others_go_on(job, 2, f"a lingering descriptor to server {part}", {1})
            check("nobody is called silent", "silent" not in log)


def one_gives_up_alone(a):
    """Given up on one server, full on the others; given up on all but one."""
    for part in range(3):
        with start(a, 1, f"{part} header 15 now") as job:
            others_go_on(job, 1, f"given up on server {part} alone", {1})
    with start(a, 1, "2 abandon 3 never", ENDS, words=["1:abandon=4"]) as job:
        others_go_on(job, 1, "given up on all servers but one", {0, 1})


def nobody_waits_longer_than_patience(a):
    """Where all are needed, the job waits for who keeps its header from one server, and then no
    more: longer by a lease where there are several servers, as one of them may be away."""
    with Job(a, 2, "-n", "3", "--policy", "bsp", *ENDS, *LEASE, "--patience", "9s",
             workers=2) as job:
        job.work(2, "sleep_us=1000", program=a.lie_worker, MUSTER_LIE="1 header 15 never")
        others_go_on(job, 2, "no header to server 1, under bsp", {1})


LANES = ("up_bytes", "down_bytes", "up_credits", "down_credits")
OTHER_LANES = "other figures than its welcome has; sent away"


def links_that_are_too_small(a):
    """A server reads and writes as far as its own figures say, so a link has those or is refused.
    A worker that comes for the rank after that is let in."""
    for field in LANES:
        with Job(a, 2, "-n", "2", *ENDS, workers=1) as job:
            job.work(1, program=a.lie_worker, MUSTER_LIE=f"- dial 2 {field}")
            status, said = job.worker.pop().end(SECONDS)
            check(f"a link with other {field}: {said.strip()[-110:]}",
                  status == 1 and "cannot link rank 1" in said)
            job.work(1, "again=1")
            ends = [child.end(SECONDS)[0] for child in (*job.worker, *job.follower)]
            status, log = job.leader.end(SECONDS)
            check(f"the job goes on: {ends}, leader {status}",
                  ends == [0, 0, 0] and status == 0 and OTHER_LANES in log)


def links_between_servers_that_are_too_small(a):
    """The follower's first link is refused; it asks for another, and the job goes on."""
    for field in LANES:
        with Job(a, 2, "-n", "1", *ENDS, workers=1, followers=0) as job:
            job.join(program=a.lie_musterd, MUSTER_LIE=f"- dial 1 {field}")
            ends = [job.worker[0].end(SECONDS)[0], job.follower[0].end(SECONDS)[0]]
            status, log = job.leader.end(SECONDS)
            check(f"a follower's link with other {field}: {ends}, leader {status}",
                  ends == [0, 0] and status == 0 and OTHER_LANES in log)


def messages_that_are_wrong(a):
    """What breaks the protocol on the control connection ends its worker. Of a start state that is
    not what was asked for nothing is kept, nor of tensors: the next worker's are."""
    state = "a start state that nobody asked for, or with a gap"
    table = "a table of tensors "
    spoilt = "a start state that is infinite or NaN at element 20000"
    for lie, words in (("state 1 offset", state), ("state 1 total", state),
                       ("state 1 split", state), ("state 1 nan", spoilt),
                       ("tensors 1 early", "longer than it may send, for nobody asked it"),
                       ("tensors 2 gap", f"{table}that are too many, or with a gap"),
                       ("tensors 6 other", "other scales of tensors than the job has"),
                       ("tensors 6 border", f"{table}with other borders than the job has"),
                       ("tensors 6 name", f"{table}with other names than the job has"),
                       ("heartbeat 1 unasked", "longer than it may send, for nobody asked it"),
                       ("heartbeat 1 table", f"{table}that nobody asked for"),
                       ("heartbeat 1 alien", "a message that is not a worker's")):
        servers = 2 if lie in ("state 1 split", "tensors 2 gap") else 1
        with Job(a, servers, "-n", "2", *ENDS, workers=0) as job:
            asked = lie.startswith("state")  # else it lies before anybody else comes
            scaled = ["tensors=700", "scales=1"]
            job.work(0, f"start={int(asked)}", *scaled, program=a.lie_worker, MUSTER_LIE=f"- {lie}")
            if asked:
                job.work(1, "start=0", *scaled)
            status, said = job.worker.pop(0).end(SECONDS)
            # One that was hung up on before it had a link may notice the link first.
            check(f"{lie}: {said.strip()[-110:]}",
                  status == 1 and (words in said or lie.startswith("tensors")))
            job.work(0, "start=1", "again=1", *scaled)
            if not asked:
                job.work(1, "start=0", *scaled)
            ends = [w.end(SECONDS)[0] for w in job.worker]
            status, log = job.leader.end(SECONDS)
            check(f"the job goes on: {ends}, leader {status}",
                  ends == [0, 0] and status == 0 and words in log)
            job.proven("--kills", "--versions", str(COMMITS), rules="sgd:0.1,0.9,tensors=700")


def links_that_take_their_time(a):
    """A server hears its workers while it makes a link for longer than their lease: here for one
    that comes back, as over RDMA, where its memory is registered."""
    a.musterd = a.lie_musterd
    with Job(a, 1, "-n", "3", "--policy", "backup:2", *LEASE, workers=0,
             MUSTER_LIE="- link 4 slow") as job:
        job.work_all(3, "sleep_us=10000", "2:die=20", *job.until_told())
        job.worker.pop(2).end(SECONDS)
        job.work(2, "sleep_us=10000", "again=1")
        check("one comes back", until(lambda: wrote(f"{job.log}.2.2") >= 5000, SECONDS))
        job.end_job()
        ends = [w.end(SECONDS)[0] for w in job.worker]
        status, log = job.leader.end(SECONDS)
        check(f"all go on: {ends}, leader {status}", not any(ends) and status == 0)
        check("nobody is called silent", "silent" not in log)


def answers_that_differ(a):
    """A server whose answer is not the others': its worker does not read what is half another
    version, and says so."""
    for field in ("number", "version"):
        with Job(a, 2, "-n", "1", workers=0, followers=0) as job:
            job.join(program=a.lie_musterd, MUSTER_LIE=f"- answer 20 {field}")
            job.work(0, "sleep_us=500")
            status, said = job.worker[0].end(SECONDS)
            check(f"another {field}: {said.strip()[-150:]}",
                  status == 1 and "server 1" in said and "differ" in said)
            ends = [job.leader.end(SECONDS)[0], job.follower[0].end(SECONDS)[0]]
            check(f"and the servers end: {ends}", None not in ends)


CASES = cases(headers_that_differ, headers_that_are_missing, headers_again, descriptors_that_linger,
              one_gives_up_alone, nobody_waits_longer_than_patience, messages_that_are_wrong,
              links_that_are_too_small, links_between_servers_that_are_too_small,
              answers_that_differ, links_that_take_their_time)
# Patience of some seconds, leases of eight; and workers wait two seconds to be told why they end.
main(CASES, "musterd", "worker", "lie-musterd", "lie-worker",
     clock=("headers_that_are_missing", "nobody_waits_longer_than_patience",
            "messages_that_are_wrong", "links_that_take_their_time"))
