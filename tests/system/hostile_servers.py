#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Servers of a job that are none: followers that lie to a leader, leaders that lie to a follower,
strangers at a follower's listener. A server that is lied to says so and ends with 1, or goes on; it
does not hang.

usage: hostile_servers.py CASE --musterd MUSTERD --worker WORKER --stranger STRANGER
       hostile_servers.py --list
"""
import glob
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import base
from base import CALM, HANG_S, LEASE_S, Child, cases, check, main, until
from server import (MAGIC, ask_status, digest, each, fields, frame, hello, origins, rows,
                    scaled, text)

WELCOME, ERROR, START, STATE, HEARTBEAT, FINISHED = 2, 3, 4, 6, 7, 10
SERVE, APPOINT, READY, EXPECT, FORGET, STATE_DONE, RELINK = range(14, 21)
TOKEN = bytes(16)
ELEMS = 9001


def receive(s, size):
    data = b""
    while len(data) < size:
        more = s.recv(size - len(data))
        if not more:
            return None
        data += more
    return data


def message(s):
    """(kind, body) of the next message; None: there is none."""
    head = receive(s, 12)
    if head is None:
        return None
    magic, _, kind, length = struct.unpack("<IHHI", head)
    if magic != MAGIC:
        sys.exit("hostile_servers: that is not a message of muster")
    return kind, receive(s, length)


def await_message(s, wanted):
    while True:
        kind, body = message(s) or (None, b"")
        if kind in (wanted, None):
            return body if kind == wanted else None


def await_words(server, words):
    check(f"it says: {words}", until(lambda: words in server.said()))


class Job(base.Job):
    """A leader, and what a case has instead of its follower."""

    elems = ELEMS

    def __init__(self, a, *options, **more):
        super().__init__(a, *options, **more)
        self.follower = []

    def children(self):
        return [*self.follower, *self.worker]

    def join(self):
        self.follower.append(Child([self.a.musterd, "--join", self.address]))
        return self.follower[-1]


def ended(child):
    """The exit status of a server or another process, and what it said."""
    status, said = child.end(HANG_S)
    if status is None:
        child.kill()
    check("no assertion", "assertion" not in said)
    return status, said


# ---- a leader, and followers that are none ----

def serve(job="default", scheme="shm"):
    return frame(SERVE, fields(text(job), text(scheme), *each("I", os.getpid()), origins()))


def expect(rank, incarnation):
    return frame(EXPECT, fields(*each("II", rank, incarnation), TOKEN, origins()))


def ready(listener):
    return frame(READY, fields(text(listener)))


LIES = {
    "garbage": (b"GET / HTTP/1.1\r\n\r\n", "not a message of muster"),
    "ready without a link": (ready("/muster-nobody"), "ready without a link"),
    "a state that was not sent": (frame(STATE_DONE), "a start state that was not sent"),
    "a hello": (hello(), "not a server's"),
    "a second serve": (serve(), "not a server's"),
    "an appointment": (frame(FINISHED, fields(text("done"))), "not a server's"),
    "giving up": (frame(ERROR, fields(*each("i", -12), text("no room for it"))),
                  "gives up: no room for it"),
    "expected and forgotten by nobody": (expect(0, 1) + expect(77, 0) + expect(0, 99)
                                         + frame(RELINK, fields(TOKEN)) * 300 + ask_status(),
                                         "its connection closed"),
}


def followers_that_lie(a):
    for name, (lie, words) in LIES.items():
        with Job(a, "--servers", "2", "-n", "1", *CALM) as job:
            worker = job.work(0, "rounds=20")
            with job.server.connect() as s:
                s.settimeout(HANG_S)
                s.sendall(serve())
                check("it is appointed", await_message(s, APPOINT) is not None)
                s.sendall(lie)
                if "closed" not in words:
                    await_message(s, None)
            status, said = ended(job.server)
            check(f"{name}: {said.splitlines()[-1]}", status == 1 and words in said)
            status, told = worker.end(HANG_S)
            check(f"its worker: {told.strip()[-130:]}", status == 1 and words in told)


def strangers_before_the_job(a):
    """Until there is a job a place can be had by anybody who says the right words; it is given back
    with the connection."""
    with Job(a, "--servers", "2", "-n", "1", "--commits", "10", *CALM) as job:
        for rest in (b"", b"x" * 100, serve(), ready("@x"), frame(STATE_DONE),
                     frame(RELINK, fields(TOKEN))):
            with job.server.connect() as s:
                s.settimeout(HANG_S)
                s.sendall(serve() + rest)
                if rest:
                    await_message(s, None)
        for other, words in ((serve(job="x"), 'no job "x"'), (serve(scheme="verbs"), "over verbs")):
            code, sentence = job.server.say(other)
            check(f"refused: {sentence}", code == -22 and words in sentence)
        job.work(0, "rounds=20")
        job.join()
        ends = [p.end(HANG_S)[0] for p in (*job.children(), job.server)]
        check(f"the job ends well: {ends}", ends == [0, 0, 0])


# ---- a follower, and leads that are none ----

def appoint(**other):
    f = dict(job="default", index=1, servers=2, elems=9001, first=4096, count=4905, type=0,
             result=0, owner=0, workers=2, slots=2, buffers=4, entries=8, group=8, partials=0,
             repeats=0, optimizer="sgd", parameters=(0.1, 0.9, 0, 0, 0), averages=0, guard=1,
             lease=60 * 10**9, server_lease=60 * 10**9, patience=10**12,
             listener="/muster-nobody-is-here", link_timeout=2 * 10**9, pkey=-1,
             table=(0, 0, 0, 0, 0, 0))
    f.update(other)
    figures = each("IIQQQ", f["index"], f["servers"], f["elems"], f["first"], f["count"])
    figures += each("I" * 10, *(f[name] for name in (
        "type", "result", "owner", "workers", "slots", "buffers", "entries", "group", "partials",
        "repeats")))
    figures += [text(f["optimizer"]), rows(*(fields(*each("d", p)) for p in f["parameters"]))]
    figures += each("II", f["averages"], 0)  # no distances
    figures += each("IIQQQQ", *f["table"])
    figures += each("IIIQQQ", f["guard"], 0, 0, f["lease"],
                    f["server_lease"], f["patience"])  # no norms, no checksums
    figures += [text(""), *each("IQ", 0, 0), text("")]  # nothing is saved, nor resumed
    # of the path; the second is a field of an older protocol, and skipped
    figures += each("QIIIi", f["link_timeout"], 0, 0, 0, f["pkey"])
    return frame(APPOINT, fields(text(f["job"]), *figures, text(f["listener"]), TOKEN))


def unlinked():
    """Appointed by a leader that no link can be had with, which the follower finds out soon."""
    return appoint(lease=600_000_000, server_lease=600_000_000)


def piece(offset, total, data):
    return frame(STATE, fields(*each("QQ", offset, total), data))


PART = 4905 * 4
# A table of one tensor "w", as a first hello tells of it; its scales are 1, or others.
PLAIN = (1, 0, 2, digest(b"w\0"), digest(struct.pack("<QQ", 0, 9001)), 0)
SCALES = (1, 1, *PLAIN[2:5], 99)
NO_TABLE = "a table of tensors that cannot be"
NO_SCALES = "scales of tensors that cannot be"
FIGURES = "figures of a job that cannot be"
SERVER_LEASE = "a lease of servers that cannot be"
ORDERS = {
    "garbage": (b"\0" * 40, "not a message of muster"),
    "an end": (frame(ERROR, fields(*each("i", -5), text("it is all over"))), "it is all over"),
    "a place that cannot be": (appoint(index=2), "a place among servers"),
    "being the leader": (appoint(index=0), "a place among servers"),
    "being the only one": (appoint(servers=1), "a place among servers"),
    "no vector": (appoint(elems=0, first=0, count=0), "a part of the vector"),
    "a vector beyond reason": (appoint(elems=(1 << 40) + 4096, first=1 << 40, count=4096),
                               "a part of the vector"),
    "a part beyond the end": (appoint(first=12288, count=1 << 63), "a part of the vector"),
    "no part": (appoint(count=0), "a part of the vector"),
    "a part beyond the end": (appoint(first=8192, count=4905), "a part of the vector"),
    "a part between pages": (appoint(first=100), "a part of the vector"),
    "no workers": (appoint(workers=0), FIGURES),
    "too few buffers": (appoint(buffers=2), FIGURES),
    "no slots": (appoint(slots=0), FIGURES),
    "too many buffers": (appoint(buffers=1 << 16), FIGURES),
    "no groups": (appoint(group=0), FIGURES),
    "too large groups": (appoint(group=4097), FIGURES),
    "too many partial sums": (appoint(partials=4097), FIGURES),
    "sets too large": (appoint(entries=1 << 31), FIGURES),
    "an optimiser that is none": (appoint(optimizer="lion"), '"lion" is neither'),
    "figures of another optimiser": (appoint(parameters=(0.1,)), "sgd has 5 figures, not 1"),
    "a figure out of range": (appoint(parameters=(0.1, 1.5, 0, 0, 0)), "momentum 1.5 has to be"),
    "no timer": (appoint(link_timeout=0), "a timer or a partition key"),
    "a partition below all": (appoint(pkey=-2), "a timer or a partition key"),
    "a partition above all": (appoint(pkey=1 << 16), "a timer or a partition key"),
    "sets too small": (appoint(entries=1), FIGURES),
    "no lease": (appoint(lease=0), "no lease, or no listener"),
    "no lease of servers": (appoint(server_lease=0), SERVER_LEASE),
    "a lease of servers too short": (appoint(server_lease=60 * 10**9 - 1), SERVER_LEASE),
    "a lease of servers without end": (appoint(server_lease=(1 << 64) - 1), SERVER_LEASE),
    "no listener": (appoint(listener=""), "no lease, or no listener"),
    "more than there is": (appoint(elems=1 << 38, first=1 << 37, count=1 << 37), "no memory for"),
    "a listener where nobody is": (unlinked(),
                                   "no link with the leader for 0.6 s (--server-lease)"),
    "a question": (unlinked() + ask_status(1) * 3, "no link with the leader"),
    "a state with a gap": (appoint() + piece(4, PART, bytes(8)), "with a gap, or of another"),
    "a state of another length": (appoint() + piece(0, PART + 8, bytes(8)), "of another length"),
    "more tensors than elements": (appoint(table=(9002, 0, 9002, 1, 1, 0)), NO_TABLE),
    "more names than tensors": (appoint(table=(1, 0, 257, 1, 1, 0)), NO_TABLE),
    "scales where workers own": (appoint(owner=1, table=SCALES), NO_SCALES),
    "an average where workers own": (appoint(owner=1, averages=1), "an average of parameters that"),
    "scales of an optimiser without": (appoint(optimizer="add", parameters=(), table=SCALES),
                                       "add, for tensors with scales"),
    "a state before the scales": (appoint(table=SCALES) + piece(0, PART, bytes(8)),
                                  "before the table of tensors"),
    "tensors that nobody asked for": (appoint() + scaled(0, 1, ("w", 9001, 1, 1)),
                                      "a table of tensors that nobody asked for"),
    "tensors with a gap": (appoint(table=PLAIN) + scaled(1, 1, ("w", 9, 1, 1)), "with a gap"),
    "tensors beyond the vector": (appoint(table=PLAIN) + scaled(0, 1, ("w", 9002, 1, 1)),
                                  "reach beyond the vector"),
    "too long a name": (appoint(table=PLAIN) + scaled(0, 1, ("weight", 9001, 1, 1)),
                        "longer names than the job has"),
    "a name beyond reason": (appoint(table=PLAIN) + scaled(0, 1, ("w" * 256, 9001, 1, 1)),
                             "the leader"),
    "another name": (appoint(table=PLAIN) + scaled(0, 1, ("v", 9001, 1, 1)), "other names than"),
    "other borders": (appoint(table=PLAIN) + scaled(0, 1, ("w", 9000, 1, 1)), "other borders"),
    "scales that are no numbers": (appoint(table=SCALES) + scaled(0, 1, ("w", 9001, -1, 2)),
                                   "no numbers"),
    "other scales": (appoint(table=SCALES) + scaled(0, 1, ("w", 9001, 1, 2)),
                     "other scales of tensors"),
    "two appointments": (unlinked() + appoint(index=0), "no link with the leader"),
    "a welcome to nobody": (unlinked() + expect(5, 1) + expect(0, 0) + expect(1, 1) * 50
                            + frame(FORGET, fields(*each("II", 9, 9), TOKEN)),
                            "no link with the leader"),
    "a hello": (hello() + unlinked() + hello(), "no link with the leader"),
    "tokens for ever": (unlinked() + frame(RELINK, fields(TOKEN)) * 200, "no link with the leader"),
}


def leaders_that_lie(a):
    with socket.create_server(("127.0.0.1", 0)) as here:
        here.settimeout(HANG_S)
        for name, (order, words) in ORDERS.items():
            follower = Child([a.musterd, "--join", "127.0.0.1:%d" % here.getsockname()[1],
                            "--memory", "64M"])
            s, _ = here.accept()
            with s:
                s.settimeout(HANG_S)
                check("it offers itself", message(s)[0] == SERVE)
                s.settimeout(0.1)
                s.sendall(order)
                alive_until = time.monotonic() + HANG_S
                while follower.process.poll() is None and time.monotonic() < alive_until:
                    try:
                        s.sendall(frame(HEARTBEAT))
                        s.recv(65536)
                    except OSError:
                        pass
                    time.sleep(0.02)
                status, said = ended(follower)
            check(f"{name}: {said.splitlines()[-1]}", status == 1 and words in said)


# ---- strangers at a follower's listener ----

def strangers_at_the_listener(a):
    with Job(a, "--servers", "2", "-n", "1", *CALM) as job:
        follower = job.join()
        worker = job.work(0, "sleep_us=2000", *job.ended_by(0))
        listener = None
        while listener is None:
            listener = re.search(r"serves elements 4096 to 9000 at (\S+)", job.server.said())
            time.sleep(0.01)
        got = subprocess.run([a.stranger, listener.group(1)], timeout=100, text=True,
                             capture_output=True)
        check(f"a wrong token: {got.stdout.strip()}", got.returncode == 0)
        requests = []
        for said in (b"", b"\0", b"GET /", os.urandom(400)):
            requests.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            requests[-1].connect(listener.group(1))
            if said:
                requests[-1].send(said)
        job.begin()
        job.end_job()
        ends = [p.end(HANG_S)[0] for p in (worker, job.server)]
        status, said = ended(follower)
        check(f"nobody else minds: {ends}", ends == [0, 0] and status == 0)
        check("it was sent away", "no valid token; sent away" in said)
        for s in requests:
            s.close()


def lingering():
    """A TCP socket that has more to send than its peer takes: its last close() sleeps."""
    with socket.create_server(("127.0.0.1", 0)) as here:
        s = socket.create_connection(here.getsockname())
        peer, _ = here.accept()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    s.setblocking(False)
    try:
        while True:
            s.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    return s, peer


def strangers_that_linger(a):
    """What they pass would keep whoever closes it for a minute: for longer than a lease nobody is
    called silent, and newcomers are let in after them, long before that minute is over."""
    with tempfile.TemporaryDirectory() as d, \
            Job(a, "-n", "3", "--lease", f"{LEASE_S}s", XDG_RUNTIME_DIR=d) as job:
        options = ["sleep_us=10000", *job.ended_by(0)]
        job.work_all(2, *options)
        peers, calls = [], []
        # A socket has its name before it listens; whoever has joined has called it.
        check("one joins", until(lambda: "rank 0 joined" in job.server.said(), 40))
        listeners = glob.glob(f"{d}/muster/*.sock")
        for words in (b"x", bytes(48), b"x"):
            for i in range(4):
                s, peer = lingering()
                inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                socket.send_fds(inner[0], [b"x"], [s.fileno()])
                call = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                call.connect(listeners[0])
                socket.send_fds(call, [words], [s.fileno() if i % 2 else inner[1].fileno()])
                # The server may have closed its own by now; then this close is the last.
                for mine in (s, *inner):
                    threading.Thread(target=mine.close, daemon=True).start()
                peers.append(peer)
                if i > 1:
                    calls.append(call)
                else:
                    call.close()
        passed_s = time.monotonic()
        job.work(2, *options)
        check("a newcomer is let in", until(lambda: "rank 2 joined" in job.server.said(), 40))
        job.begin()
        time.sleep(max(0, passed_s + LEASE_S + 2 - time.monotonic()))
        job.end_job()
        ends = [*job.codes(40), job.server.end(40)[0]]
        log = job.server.said()
        check(f"all go on: {ends}", ends == [0, 0, 0, 0])
        check("nobody is called silent", "silent" not in log and "evict" not in log)
        check("nothing is left", os.listdir(f"{d}/muster") == [])
        for s in (*peers, *calls):
            s.close()


# ---- a worker that does not wait for a follower ----

def start_before_the_welcome(a):
    """While a follower is still to say that it expects a worker, what the worker missed is lent to
    its welcome: were it started by then, its verdicts would change that."""
    with Job(a, "--servers", "2", "-n", "2", "--join-timeout", "never", *CALM) as job:
        leader, follower = job.server, job.join()
        with leader.connect() as first:
            first.settimeout(HANG_S)
            first.sendall(hello(rank=1, elems=ELEMS))
            check("one is welcome", message(first)[0] == WELCOME)
            follower.signal(signal.SIGSTOP)
            with leader.connect() as s:
                s.settimeout(HANG_S)
                s.sendall(hello(rank=0, elems=ELEMS))
                await_words(leader, "rank 0 joined")
                s.sendall(frame(START, fields(*each("I", 1))))
                await_words(leader, "a message before its hello is answered")
                follower.signal(signal.SIGCONT)
                check("it is sent away", await_message(s, ERROR) is not None)
            with leader.connect() as s:
                s.settimeout(HANG_S)
                s.sendall(hello(rank=0, elems=ELEMS))
                check("another is welcome", message(s)[0] == WELCOME)
        leader.stop()
        follower.end(HANG_S)


CASES = cases(followers_that_lie, strangers_before_the_job, leaders_that_lie,
              strangers_at_the_listener, strangers_that_linger, start_before_the_welcome)
if __name__ == "__main__":
    # A caller has five seconds for its hello; and a lease of eight.
    main(CASES, "musterd", "worker", "stranger",
         clock=("followers_that_lie", "strangers_before_the_job", "strangers_that_linger",
                "start_before_the_welcome"))
