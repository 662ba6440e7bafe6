#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Servers of a job that are none: members that lie to a lead, leads that lie to a member, strangers
at a member's door. Whoever is lied to says so and ends with 1, or goes on; it does not hang.

usage: hostile_servers.py CASE --musterd MUSTERD --crowd CROWD --stranger STRANGER
       hostile_servers.py --list
"""
import argparse
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

from server import ASK_STATUS, HELLO, MAGIC, Server, frame, hello, text

ERROR, STATE, HEARTBEAT, FINISHED = 3, 6, 7, 10
SERVE, APPOINT, READY, EXPECT, FORGET, STATE_DONE, RELINK = range(14, 21)
TOKEN = bytes(16)
ELEMS = "9001"


def check(what, ok):
    if not ok:
        sys.exit(f"hostile_servers: {what}")
    print(what)


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
        sys.exit("hostile_servers: that is no message of muster")
    return kind, receive(s, length)


def await_message(s, wanted):
    while True:
        kind, body = message(s) or (None, b"")
        if kind in (wanted, None):
            return body if kind == wanted else None


def ended(process, log, seconds):
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        status = None
    log.seek(0)
    said = log.read()
    check("no assertion", "assertion" not in said)
    return status, said


# ---- a lead, and members that are none ----

def serve(job="default", scheme="shm"):
    return frame(SERVE, text(job) + text(scheme) + struct.pack("<I", os.getpid()))


def expect(rank, incarnation):
    return frame(EXPECT, struct.pack("<II", rank, incarnation) + TOKEN)


def ready(door):
    return frame(READY, text(door))


LIES = {
    "garbage": (b"GET / HTTP/1.1\r\n\r\n", "no message of muster"),
    "ready without a link": (ready("@muster-nobody"), "ready without a link"),
    "a state that was not sent": (frame(STATE_DONE), "a start state that was not sent"),
    "a hello": (hello(), "not a server's"),
    "a second serve": (serve(), "not a server's"),
    "an appointment": (frame(FINISHED, text("done")), "not a server's"),
    "giving up": (frame(ERROR, struct.pack("<i", -12) + text("no room for it")),
                  "gives up: no room for it"),
    "expected and forgotten by nobody": (expect(0, 1) + expect(77, 0) + expect(0, 99)
                                         + frame(RELINK, TOKEN) * 300 + frame(ASK_STATUS, bytes(4)),
                                         "its connection closed"),
}


def worker(a, server, folder):
    env = dict(os.environ, MUSTER_SERVER=f"127.0.0.1:{server.port}", MUSTER_RANK="0")
    return subprocess.Popen([a.crowd, os.path.join(folder, "log"), ELEMS, "rounds=20"], env=env,
                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def members_that_lie(a):
    for name, (lie, words) in LIES.items():
        with tempfile.TemporaryDirectory() as d:
            lead = Server(a.musterd, "--servers", "2", "-n", "1", "--lease", "2s")
            w = worker(a, lead, d)
            with lead.connect() as s:
                s.settimeout(10)
                s.sendall(serve())
                check("it is appointed", await_message(s, APPOINT) is not None)
                s.sendall(lie)
                if "closed" not in words:
                    await_message(s, None)
            status, said = ended(lead.process, lead.log, 10)
            check(f"{name}: {said.splitlines()[-1]}", status == 1 and words in said)
            _, told = w.communicate(timeout=10)
            check(f"its worker: {told.strip()[-130:]}", w.returncode == 1 and words in told)


def strangers_before_the_job(a):
    """Until there is a job a seat can be had by anybody who says the right words; it is given back
    with the connection."""
    with tempfile.TemporaryDirectory() as d:
        lead = Server(a.musterd, "--servers", "2", "-n", "1", "--commits", "10")
        for rest in (b"", b"x" * 100, serve(), ready("@x"), frame(STATE_DONE),
                     frame(RELINK, TOKEN)):
            with lead.connect() as s:
                s.settimeout(10)
                s.sendall(serve() + rest)
                if rest:
                    await_message(s, None)
        for other, words in ((serve(job="x"), 'no job "x"'), (serve(scheme="verbs"), "over verbs")):
            code, sentence = lead.say(other)
            check(f"refused: {sentence}", code == -22 and words in sentence)
        w = worker(a, lead, d)
        member = subprocess.Popen([a.musterd, "--join", f"127.0.0.1:{lead.port}"],
                                  stdin=subprocess.DEVNULL)
        ends = [p.wait(20) for p in (w, member, lead.process)]
        w.stderr.close()
        check(f"the job ends well: {ends}", ends == [0, 0, 0])


# ---- a member, and leads that are none ----

def appoint(**other):
    f = dict(job="default", index=1, servers=2, elems=9001, first=4096, count=4905, type=0,
             result=0, owner=0, workers=2, slots=2, buffers=4, entries=8, group=8, folds=0,
             repeats=0, optimizer=0, lr=0.1, momentum=0.9, lease=600_000_000,
             patience=10**12, door="@muster-nobody-is-here")
    f.update(other)
    figures = struct.pack("<IIQQQ", f["index"], f["servers"], f["elems"], f["first"], f["count"])
    figures += struct.pack("<11I", *(f[name] for name in (
        "type", "result", "owner", "workers", "slots", "buffers", "entries", "group", "folds",
        "repeats", "optimizer")))
    figures += struct.pack("<ddQQ", f["lr"], f["momentum"], f["lease"], f["patience"])
    figures += struct.pack("<IIIIi", 14, 2, 0, 0, -1)  # of the fabric
    return frame(APPOINT, text(f["job"]) + figures + text(f["door"]) + TOKEN)


def piece(offset, total, data):
    return frame(STATE, struct.pack("<QQI", offset, total, len(data)) + data)


PART = 4905 * 4
FIGURES = "figures of a job that cannot be"
ORDERS = {
    "garbage": (b"\0" * 40, "no message of muster"),
    "an end": (frame(ERROR, struct.pack("<i", -5) + text("it is all over")), "it is all over"),
    "a place that cannot be": (appoint(index=2), "a place among servers"),
    "being the lead": (appoint(index=0), "a place among servers"),
    "no part": (appoint(count=0), "a part of the vector"),
    "a part beyond the end": (appoint(first=8192, count=4905), "a part of the vector"),
    "a part between pages": (appoint(first=100), "a part of the vector"),
    "no workers": (appoint(workers=0), FIGURES),
    "too few buffers": (appoint(buffers=2), FIGURES),
    "sets too small": (appoint(entries=1), FIGURES),
    "no lease": (appoint(lease=0), "no lease, or no door"),
    "no door": (appoint(door=""), "no lease, or no door"),
    "more than there is": (appoint(elems=1 << 38, first=1 << 37, count=1 << 37), "no memory for"),
    "a door where nobody is": (appoint(), "no link with the lead for its lease"),
    "a question": (appoint() + frame(ASK_STATUS, b"\1\0\0\0") * 3, "no link with the lead"),
    "a state with a gap": (appoint() + piece(4, PART, bytes(8)), "a gap, or another length"),
    "a state of another length": (appoint() + piece(0, PART + 8, bytes(8)), "another length"),
    "two appointments": (appoint() + appoint(index=0), "no link with the lead"),
    "a welcome to nobody": (appoint() + expect(5, 1) + expect(0, 0) + expect(1, 1) * 50
                            + frame(FORGET, struct.pack("<II", 9, 9) + TOKEN),
                            "no link with the lead"),
    "a hello": (hello() + appoint() + hello(), "no link with the lead"),
    "tokens for ever": (appoint() + frame(RELINK, TOKEN) * 200, "no link with the lead"),
}


def leads_that_lie(a):
    with socket.create_server(("127.0.0.1", 0)) as here:
        here.settimeout(10)
        for name, (order, words) in ORDERS.items():
            log = tempfile.TemporaryFile("w+")
            member = subprocess.Popen(
                [a.musterd, "--join", "127.0.0.1:%d" % here.getsockname()[1], "--memory", "64M"],
                stdin=subprocess.DEVNULL, stderr=log)
            s, _ = here.accept()
            with s:
                s.settimeout(0.1)
                check("it offers itself", message(s)[0] == SERVE)
                s.sendall(order)
                alive_until = time.monotonic() + 5
                while member.poll() is None and time.monotonic() < alive_until:
                    try:
                        s.sendall(frame(HEARTBEAT))
                        s.recv(65536)
                    except OSError:
                        pass
                    time.sleep(0.02)
                status, said = ended(member, log, 0.1)
            check(f"{name}: {said.splitlines()[-1]}", status == 1 and words in said)


# ---- strangers at a member's door ----

def strangers_at_the_door(a):
    with tempfile.TemporaryDirectory() as d:
        lead = Server(a.musterd, "--servers", "2", "-n", "1", "--commits", "400")
        log = tempfile.TemporaryFile("w+")
        member = subprocess.Popen([a.musterd, "--join", f"127.0.0.1:{lead.port}"],
                                  stdin=subprocess.DEVNULL, stderr=log)
        env = dict(os.environ, MUSTER_SERVER=f"127.0.0.1:{lead.port}")
        w = subprocess.Popen([a.crowd, os.path.join(d, "log"), ELEMS, "sleep_us=2000"], env=env,
                             stdin=subprocess.DEVNULL)
        door = None
        while door is None:
            lead.log.seek(0)
            door = re.search(r"serves elements 4096 to 9000 at (\S+)", lead.log.read())
            time.sleep(0.01)
        got = subprocess.run([a.stranger, door.group(1)], timeout=10, text=True,
                             capture_output=True)
        check(f"a wrong token: {got.stdout.strip()}", got.returncode == 0)
        knocks = []
        for said in (b"", b"\0", b"GET /", os.urandom(400)):
            knocks.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            knocks[-1].connect("\0" + door.group(1)[1:])
            if said:
                knocks[-1].send(said)
        ends = [p.wait(20) for p in (w, lead.process)]
        status, said = ended(member, log, 10)
        check(f"nobody else minds: {ends}", ends == [0, 0] and status == 0)
        check("it was sent away", "no valid token; sent away" in said)
        for s in knocks:
            s.close()


CASES = {f.__name__: f for f in (members_that_lie, strangers_before_the_job, leads_that_lie,
                                 strangers_at_the_door)}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("case", nargs="?")
    p.add_argument("--list", action="store_true")
    for name in ("--musterd", "--crowd", "--stranger"):
        p.add_argument(name)
    a = p.parse_args()
    if a.list:
        print("\n".join(CASES))
    else:
        CASES[a.case](a)


main()
