#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Which peers may join, and what an operator may do to a job that runs: real processes over
loopback.

usage: access.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER
       access.py --list
"""
import errno
import json
import os
import re
import socket
import struct
import subprocess
import tempfile

import base
from base import CALM, HANG_S, cases, check, main, must, until
from policy import Job, ask
from server import ERROR, Server, error, fields, frame, hello, text

BEYOND = "0.0.0.0:0"
WELCOME, FINISH = 2, 9


def run(*command):
    return subprocess.run(command, text=True, capture_output=True, timeout=2 * HANG_S,
                          stdin=subprocess.DEVNULL)


def beyond_loopback(a):
    """A server that anybody could reach does not start unless that is meant; then it says so."""
    for name, command in (("listen", ["-n", "1", "--listen", BEYOND]),
                          ("listen", ["-n", "1", "--listen", "[::]:0"]),
                          ("join", ["--join", "192.0.2.1:17077"])):
        done = run(a.musterd, *command)
        check(f"{command}: {done.stderr.strip()}", done.returncode == 2 and all(
            word in done.stderr for word in (f"--{name} ", "beyond loopback", "muster key new",
                                             "--insecure")))
    server = Server(a.musterd, "-n", "1", "--listen", BEYOND, "--insecure")
    try:
        must(until(lambda: "listening on" in server.said(), HANG_S), server.said())
        check("the start says so", "INSECURE: 0.0.0.0:" in server.said())
        check("and whether root runs it",
              ("this server is run by root" in server.said()) == (os.geteuid() == 0))
        for host, warns in ("0.0.0.0", 1), ("127.0.0.1", 0):
            worker = base.Child([a.worker, "/nonexistent/log", "100"], MUSTER_RANK="7",
                                MUSTER_SERVER=f"{host}:{server.port}")
            said = worker.end(HANG_S)[1]
            check(f"a worker without certificates warns {warns} times of {host}",
                  said.count("INSECURE: 0.0.0.0:") == warns and "rank 7 is not one" in said)
        done = ask(a, "status", server.address)
        check(f"the status says so: {done.stdout}", "access: INSECURE: whoever" in done.stdout)
        doc = json.loads(ask(a, "status", "--json", "-", server.address).stdout)
        check("in JSON, too", doc["access"] == "insecure")
    finally:
        server.kill()


def on_loopback(a):
    """There every local user may join, which the status says."""
    server = Server(a.musterd, "-n", "1")
    try:
        done = ask(a, "status", server.address)
        check(f"the status says so: {done.stdout}",
              "access: every user of the server's host may join" in done.stdout)
        doc = json.loads(ask(a, "status", "--json", "-", server.address).stdout)
        check("in JSON, too", doc["access"] == "local")
        check("the start does not warn", "INSECURE" not in server.said())
    finally:
        server.kill()


def evicted(a, servers):
    """The session of a rank ends with a clear error; the job goes on without it, and with the next
    that takes the rank; and the whole history is exact, so each contribution had one verdict."""
    with Job(a, "--policy", "backup:-1", servers=servers) as job:
        job.begin()
        job.refused("evict", "4", job.address, says=["rank 4 is not one", "0 to 3"])
        status, out, err = job.muster("evict", "2", job.address)
        check(out + err, status == 0 and out.startswith("rank 2 is evicted"))
        code, said = job.worker[2].end(HANG_S)
        check(f"its worker is told: {said[-300:]}",
              code not in (0, None) and "evicted by an operator" in said)
        job.refused("evict", "2", job.address, says=["rank 2 takes no part"])
        before = job.status()
        check("the status shows it", (before["ranks"][2]["state"], before["ranks"][2]["gone_at"]
                                    is not None) == ("evicted", True))
        job.reaches(before["commits"] + 5)
        job.work(2, "sleep_us=3000", "rounds=1000000000", "again=1")
        job.came_again(2)
        job.end_job()
        codes = job.codes(HANG_S)
        check(f"all but the evicted end well: {codes}", codes.count(0) == 4 and len(codes) == 5)
        job.proven_course("--kills")


def evict(a):
    evicted(a, 1)


def evict_of_two_servers(a):
    evicted(a, 2)


def a_job_that_fails_at_any_loss(a):
    """There an eviction would end the job for everybody, so it is refused."""
    with Job(a, "--on-loss", "fail") as job:
        job.begin()
        job.refused("evict", "1", job.address, says=["--on-loss fail", "muster finish"])
        job.finish()


def no_fewer_than_min_workers(a):
    """The same where an eviction would leave too few workers."""
    with Job(a, "--min-workers", "4") as job:
        job.begin()
        job.refused("evict", "1", job.address, says=["rank 1", "--min-workers", "muster finish"])
        job.finish()


def finish(a):
    """An operator ends the job well, and everybody is told why."""
    with Job(a) as job:
        job.begin()
        status, out, err = job.muster("finish", "--why", "enough is enough", job.address)
        check(out + err, status == 0 and re.search(
            r"is finished at version \d+: an operator finished the job: enough is enough", out))
        codes = job.codes(HANG_S)
        check(f"all workers end well: {codes}", codes == [0] * 4)
        status, said = job.server.end(HANG_S)
        check("and so does the server, which says why",
              status == 0 and "an operator finished the job: enough is enough" in said)
        job.proven_course()


def before_the_start(a):
    """There is nothing to finish yet."""
    server = Server(a.musterd, "-n", "1")
    try:
        done = ask(a, "finish", server.address)
        check(done.stderr, done.returncode == 1 and "has not started" in done.stderr)
    finally:
        server.kill()


def finish_by_an_operator_alone(a):
    """A worker that would end the job is told that it may not, and the job goes on."""
    with Job(a, "--finish", "operator") as job:
        job.begin()
        job.end_job()
        code, said = job.worker[0].end(HANG_S)
        check(f"the worker is told: {said[-300:]}",
              code not in (0, None) and "only an operator may finish job" in said)
        must(until(lambda: job.status()["ranks"][0]["state"] in ("lost", "left"), HANG_S),
             "the worker does not go")
        check("the job goes on", job.status()["state"] == "running")
        status, out, _ = job.muster("finish", job.address)
        check(out, status == 0)
        codes = job.codes(HANG_S)
        check(f"the others end well: {codes}", codes.count(0) == 3)


def a_finish_on_the_wire(a):
    """A worker whose library does not keep to the welcome says FINISH all the same: it is refused
    in words, and loses its session alone."""
    with base.Job(a, "-n", "3", "--policy", "backup:2", "--min-workers", "1", "--finish",
                  "operator", *CALM) as job:
        words = ["sleep_us=2000", f"until={job.path('enough')}"]
        job.work(0, *words)
        job.work(1, *words)
        job.work(2, "rounds=1")
        job.begin(ranks=[0, 1])
        check("the third leaves", job.worker[2].end(HANG_S)[0] == 0)
        code, said = say_finish(job.server)
        check(f"the next of its rank is refused: {said}", code == -errno.EPROTO and
              "only an operator may finish (--finish operator)" in said)
        doc = json.loads(ask(a, "status", "--json", "-", job.address).stdout)
        check("the job goes on", doc["state"] == "running")
        done = ask(a, "finish", job.address)
        check(done.stdout.strip(), done.returncode == 0)
        codes = job.codes(HANG_S)
        check(f"the others end well: {codes}", codes == [0, 0, 0])
        check("and so does the server", job.server.end(HANG_S)[0] == 0)
        job.proven("--kills")


def hear(s):
    """(kind, body) of the next message."""
    _, _, kind, length = struct.unpack("<IHHI", s.recv(12, socket.MSG_WAITALL))
    return kind, s.recv(length, socket.MSG_WAITALL) if length > 0 else b""


def say_finish(server):
    """(code, sentence) that answers a worker's FINISH, once it has joined as rank 2."""
    joined = []

    def joins():
        """Not before the server has noticed that the rank's last worker has left."""
        s = server.connect()
        s.settimeout(HANG_S)
        s.sendall(hello(rank=2))
        if hear(s)[0] == WELCOME:
            joined.append(s)
        else:
            s.close()
        return joined

    check("a worker by hand has joined", until(joins, HANG_S))
    with joined[0] as s:
        s.sendall(frame(FINISH, fields(text("because it wants to"))))
        kind, body = hear(s)
        while kind != ERROR:
            kind, body = hear(s)
    return error(body)


def nobody_is_there(a):
    """A worker that finds no server says so long before its time is over, once, and joins the one
    that comes. The port is kept by a socket that does not listen."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{place.getsockname()[1]}"
        worker = base.Child([a.worker, os.path.join(folder, "log"), "100", "rounds=3"],
                            **base.worker_environment(address, 0))
        server = None
        try:
            must(until(lambda: "no server answers" in worker.said(), HANG_S), worker.said())
            place.close()
            server = Server(a.musterd, "-n", "1", "--listen", address)
            status, said = worker.end(HANG_S)
            check(f"it says where, and what to do: {said}", said.count("no server answers") == 1
                  and all(word in said for word in (f"no server answers at {address} (",
                                                    "for 60 s in all", "MUSTER_SERVER")))
            check("and joins the server that comes later", status == 0)
        finally:
            worker.kill()
            if server is not None:
                server.kill()


CASES = cases(beyond_loopback, on_loopback, evict, evict_of_two_servers,
              a_job_that_fails_at_any_loss, no_fewer_than_min_workers, finish, before_the_start,
              finish_by_an_operator_alone, a_finish_on_the_wire, nobody_is_there)

if __name__ == "__main__":
    # A caller that is sent away waits two seconds for the words, and has five seconds for its
    # hello.
    main(CASES, "musterd", "worker", "muster",
         clock=("evict", "evict_of_two_servers", "finish_by_an_operator_alone",
                "a_finish_on_the_wire"))
