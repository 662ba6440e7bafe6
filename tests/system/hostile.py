#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Bad peers on the control port: each gets its sentence, and the job does not notice.

usage: hostile.py CASE --musterd MUSTERD --worker WORKER --reach REACH
       hostile.py --list
"""
import collections
import contextlib
import errno
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from base import CALM, HANG_S, Job, cases, check, main, until
from server import (ASK_STATUS, ERROR, HELLO, PROTOCOL, STATUS, Server, ask_status, digest, each,
                    field, fields, frame, hello, read_error, read_log, tensors, values)

WELCOME = 2
REJOINS = 31  # of one rank that are admitted at once, less the worker that was there before


def expect(name, got, pattern):
    if got is None or not re.search(pattern, got[1]):
        sys.exit(f"hostile: {name}: expected a sentence like {pattern!r}, got {got!r}")
    print(f"{name}: {got[1]}")


def refused(server):
    expect("garbage", server.say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "not a message of muster")
    expect(
        "other protocol",
        server.say(frame(HELLO, protocol=PROTOCOL - 1)),
        f"protocol {PROTOCOL - 1}.*this server speaks {PROTOCOL}",
    )
    expect("too long", server.say(frame(HELLO, b"", length=1 << 30)), "not a message of muster")
    expect("long for a stranger", server.say(frame(HELLO, bytes(5000))), "not a message of muster")
    expect("torn hello", server.say(frame(HELLO, field(1, b"default")[:-1])),
           "not a message of muster")
    expect("not a hello", server.say(frame(8, fields(*each("Q", 3)))), "before its hello")
    expect("other job", server.say(hello(job="other")), 'no job "other"')
    expect("a field to skip", server.say(hello(job="other", more=field(1000, b"new"))),
           'no job "other"')
    expect("a field to know", server.say(hello(more=field(0x8000 | 1000, b"new"))),
           "a message HELLO with field 1000, which this release of muster does not know and may "
           "not skip; use one release on both sides, or a newer one here")
    expect("a field twice", server.say(hello(more=field(1, b"default"))), "not a message of muster")
    expect("odd text", server.say(hello(job=b"a\033[2J\xff\n")), r'no job "a\?\[2J\?\?"')
    expect("no length", server.say(hello(elems=0)), "length of 0")
    expect("absurd length", server.say(hello(elems=1 << 60)), "elements cannot be")
    expect(
        "other owner",
        server.say(hello(owner=1)),
        "owner workers does not match.*--owner workers",
    )
    expect("rank out of range", server.say(hello(rank=77)), "rank 77 is not one of")
    for odd in ((3, 4, 9, 1, 1, 1), (101, 2, 300, 1, 1, 1), (3, 0, 9, 1, 1, 1), (3, 1, 2, 1, 1, 1),
                (3, 1, 1 << 40, 1, 1, 1)):
        expect("odd table", server.say(hello(table=odd)), "a table of .* tensors with .* cannot be")
    expect("too many addresses", server.say(hello(dials=[bytes(16)] * 33)),
           "not a message of muster")
    expect("too long a table", server.say(hello(table=(65537, 0, 65537, 1, 1, 0))),
           "not a message of muster")


def asked_by_another_release(server):
    """The status is read whatever the protocol of the release that asks for it is, and whatever
    more it asks for."""
    same = server.answer(ask_status())
    other = server.answer(frame(ASK_STATUS, fields(*each("I", 0)) + field(900, b"more"),
                                protocol=PROTOCOL + 1))
    tags = [sorted(values(body)) for _, _, body in (same, other)]
    check("an observer of another protocol gets the status",
          [other[0], other[1], tags[1]] == [PROTOCOL, STATUS, tags[0]])


def table(ends, names):
    """What a hello says of a table of tensors."""
    places = b"".join(struct.pack("<QQ", first, end - first)
                      for first, end in zip([0, *ends], ends))
    texts = b"".join(name + b"\0" for name in names)
    return len(ends), 0, len(texts), digest(texts), digest(places), 0


def other_tables(server):
    """Workers of the job have given tensors t0, t1 and t2, of 33, 33 and 34 elements."""
    mine, by = [b"t0", b"t1", b"t2"], r"rank \d \(127\.0\.0\.1:\d+, process \d+\)"
    rows = list(zip(mine, (33, 33, 34)))

    def give(name, words, data, *pieces):
        expect(name, server.say_table(data, *pieces), words)

    give("more tensors", rf'tensor number 3 is "t" of 1 elements at rank 1 \(.*\), and not there '
         rf'at {by}', hello(rank=1, table=table([33, 66, 100, 101], mine + [b"t"]), elems=101),
         tensors(0, 4, *rows[:2]), tensors(2, 4, rows[2], (b"t", 1)))
    give("longer tensors", rf'tensor number 0 is "t0" of 34 elements at a worker without a rank '
         rf'\(.*\), and "t0" of 33 elements at {by}',
         hello(table=table([34, 66, 100], mine)), tensors(0, 3, (b"t0", 34)))
    give("an odd name", rf'number 1 is "\?\[2J\?\?" of 33 elements at rank 2 .*, and "t1" of 33',
         hello(rank=2, table=table([33, 66, 100], mine[::-1])),
         tensors(0, 3, rows[0], (b"\033[2J\xff\n", 33)))
    other = hello(rank=2, table=table([33, 66, 100], mine[::-1]))
    give("a table with a gap", "a table of tensors with a gap", other, tensors(1, 3, *rows[1:]))
    give("another length", "a table of tensors with a gap", other, tensors(0, 4, *rows[:1]))
    give("no tensors", "a table of tensors with a gap", other, tensors(0, 3))
    give("the job's table", "another table of tensors than its hello told of", other,
         tensors(0, 3, *rows))
    give("a second hello", "before its hello", other, other)
    give("long pieces", "not a message of muster", other,
         tensors(0, 3, *((b"n" * 255, 1) for _ in range(16))))
    expect("the same table", server.say(hello(rank=1, table=table([33, 66, 100], mine))),
           "rank 1 .* is taken by a live worker")


def while_running(job):
    job.work_all(3, "sleep_us=10000", "tensors=3", *job.ended_by(0))
    job.begin()
    server = job.server
    expect(
        "wrong length",
        server.say(hello(elems=1000)),
        r'length 1000 does not match job "default" \(100\): .* from the worker that came first',
    )
    expect("wrong type", server.say(hello(kind=1)), "gradients of bf16 do not match")
    expect("wrong result", server.say(hello(result=2)), "results of f16 do not match")
    expect("live rank", server.say(hello(rank=1)), "rank 1 .* is taken by a live worker")
    expect("all taken", server.say(hello()), "all 3 ranks .* are taken")
    other_tables(server)
    silent = [server.connect() for _ in range(8)]
    strangers = [server.connect() for _ in range(20)]
    for s in strangers:
        s.close()
    job.end_job()
    status = job.codes(HANG_S)
    for s in silent:
        s.close()
    if any(status):
        sys.exit(f"hostile: workers exited with {status}")
    if server.end(HANG_S)[0] != 0:
        sys.exit("hostile: the server failed")


def silent_strangers(musterd):
    """They keep no place that others need, and nobody waits for them: who says nothing gives its
    place up as soon as another needs it, and not only when it is sent away for its silence. There
    are 64 places, so each time that the host stands still so many can be sent away."""
    server = Server(musterd, "-n", "2")
    silent = [server.connect() for _ in range(450)]
    expect("beside 450 silent ones", server.say(hello(job="other"), wait=HANG_S), 'no job "other"')
    _, log = server.stop()
    late = log.count("said nothing for") + sum(map(int, re.findall(
        r"(\d+) more callers said nothing", log)))
    check(f"{late} of them were waited for", late < 350)
    for s in silent:
        s.close()


def idle_watchers(server):
    """A caller that asked once and then stays does not keep others from asking for ever. There is
    no
    place for the 33rd that asks within a few seconds; the first ones may have lost theirs if this
    took longer."""
    idle = []
    while len(idle) < 700 and (not idle or idle[-1][1] == STATUS):
        idle.append(ask(server))
    kinds = [kind for _, kind in idle]
    time.sleep(5.5)
    last, kind = ask(server)
    if len(kinds) < 33 or kinds[-1] != ERROR or kind != STATUS:
        sys.exit(f"hostile: watchers get {kinds}, and {kind} after those were idle")
    for s, _ in idle:
        s.close()
    last.close()
    print("32 idle watchers: another may ask")


def ask(server):
    """A connection that has asked for the status, and the kind of message it got."""
    s = server.connect()
    s.settimeout(HANG_S)
    s.sendall(ask_status())
    return s, struct.unpack_from("<IHHI", s.recv(65536))[2]


def wrong_length_that_leaves(a):
    """A worker that comes first with a wrong length and leaves again fixes nothing."""

    def is_forgotten(server):
        server.say(hello(elems=78, rank=5))
        return "left before the start" in server.said()

    with Job(a, "-n", "2", "--commits", "20", *CALM) as job:
        with job.server.connect() as wrong:
            wrong.settimeout(HANG_S)
            wrong.sendall(hello(elems=77))
            wrong.recv(1)  # it is welcome
        check("a wrong length is not kept", until(lambda: is_forgotten(job.server), HANG_S))
        job.work_all(2)
        ends = job.codes(HANG_S)
        check(f"a wrong length that has left is forgotten: {ends}",
              not any(ends) and job.server.end(HANG_S)[0] == 0)


def fixed_figures(musterd):
    server = Server(musterd, "-n", "2", "--elems", "1000", "--type", "bf16", "--result-type", "f32")
    expect("length by option", server.say(hello(elems=77)),
           r"length 77 .*\(1000\): .* from --elems")
    expect("type by option", server.say(hello(elems=1000)), r"gradients of f32 .*\(bf16\)")
    expect("result type by option", server.say(hello(elems=1000, kind=1, result=2)),
           r"results of f16 .*\(f32\)")
    server.stop()


def scales_without_effect(musterd):
    """A user must not believe that they have one."""
    scaled = (3, 2, 12, 1, 1, 1)
    server = Server(musterd, "-n", "2", "--optimizer", "add")
    expect("scales of deltas", server.say(hello(table=scaled)), "no effect on the optimiser add")
    server.stop()
    server = Server(musterd, "-n", "2", "--owner", "workers")
    expect("workers own", server.say(hello(table=scaled, owner=1)), "no effect where workers own")
    server.stop()


def never_reading(musterd):
    """A caller that asks again and again and reads nothing is disconnected."""
    server = Server(musterd, "-n", "4096", "--slots", "1")
    with server.connect() as worker, socket.socket() as watcher:
        worker.settimeout(HANG_S)
        worker.sendall(hello())
        worker.recv(1)
        watcher.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        watcher.connect(("127.0.0.1", server.port))
        watcher.settimeout(HANG_S)
        end = time.monotonic() + HANG_S
        try:
            while time.monotonic() < end:
                watcher.sendall(ask_status())
                time.sleep(0.01)
        except (BrokenPipeError, ConnectionResetError):
            pass
        status, log = server.stop()
    if "does not read what it asked for; closed" not in log:
        sys.exit(f"hostile: who does not read is kept: {log}")
    print("never reading: closed")


def too_little_memory(musterd):
    server = Server(musterd, "-n", "2", "--memory", "64M")
    expect(
        "no memory",
        server.say(hello(elems=100_000_000)),
        r"no memory .* 2 workers with 2 slots .*--memory",
    )
    silent = server.connect()
    silent.settimeout(HANG_S)
    if read_error(silent) is not None:
        sys.exit("hostile: a silent caller got an answer")
    status, log = server.stop()
    if status != 128 + 15 or "said nothing" not in log:
        sys.exit(f"hostile: server exited with {status}: {log}")
    print("silence: closed after the grace")


class Flood:
    """Strangers that come without a pause: one says nothing, one rubbish, one asks for the status.
    Each stays until many others have come, so that there are more silent ones than the server has
    places."""

    WORDS = (b"", bytes(range(100, 200)), ask_status())
    STAY = 500

    def __init__(self, server):
        self.server, self.count, self.over = server, 0, False
        self.thread = threading.Thread(target=self.flow)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()

    def flow(self):
        here = collections.deque()
        while not self.over:
            with contextlib.suppress(OSError):
                here.append(self.server.connect())
                self.count += 1
                here[-1].send(self.WORDS[self.count % len(self.WORDS)])
            while len(here) > (0 if self.over else self.STAY):
                here.popleft().close()


def come_and_go_in_a_flood(a):
    """Workers join, one dies and joins again, and all the while strangers keep coming."""
    with Job(a, "-n", "4", "--join-timeout", "never") as job, Flood(job.server) as flood:
        def joins(rank, words=""):
            job.work(rank, "sleep_us=5000", "again=1", f"until={job.path('enough')}")
            joined = re.compile(rf"rank {rank} joined .*{words}\n")
            ok = until(lambda: joined.search(job.server.said()), 60)
            check(f"rank {rank} joins{words} {job.worker[-1].said()}", ok)

        check("strangers are many", until(lambda: flood.count > 2 * Flood.STAY, 60))
        for rank in range(4):
            joins(rank)
        job.begin()
        job.worker[2].kill()
        joins(2, ", again")
        came = flood.count
        check("they still come", until(lambda: flood.count > came + Flood.STAY, 60))
        with open(job.path("enough"), "w"):
            pass
        codes = job.codes(60)
        status, log = job.server.end(60)
        check(f"all end well: {codes}, {status}", codes == [0, 0, -9, 0, 0] and status == 0)
        check("no worker was taken for silent", "silent for its lease" not in log)
        job.proven("--kills")


def rejoin(server, rank):
    """Joins and leaves again and again, until this is refused. Return: how often it was admitted,
    and the sentence."""
    end, count = time.monotonic() + 2 * HANG_S, 0
    while time.monotonic() < end:
        with server.connect() as s:
            s.settimeout(HANG_S)
            s.sendall(hello(rank=rank))
            head = s.recv(12, socket.MSG_PEEK)
            if len(head) == 12 and struct.unpack("<IHHI", head)[2] == WELCOME:
                count += 1
                continue
            code, sentence = read_error(s) or (0, "")
        if "try again in" in sentence:
            return count, sentence
        check(f"else its rank is still taken: {sentence}", code in (-errno.EEXIST, -errno.EBUSY))
        time.sleep(0.01)
    return count, "it was never refused"


def a_worker_that_joins_without_end(a):
    """An honest job goes on meanwhile, and an honest worker of the same rank gets in after it."""
    with Job(a, "-n", "3", "--policy", "backup:2", "--min-workers", "1", *CALM) as job:
        words = ["sleep_us=2000", "again=1", f"until={job.path('enough')}"]
        job.work(0, *words)
        job.work(1, *words)
        job.work(2, "rounds=1")
        job.begin(ranks=[0, 1])
        check("the third leaves", job.worker[2].end(HANG_S)[0] == 0)
        count, sentence = rejoin(job.server, 2)
        check(f"it was admitted {count} times, and then: {sentence}",
              count >= REJOINS and "rank 2 joined" in sentence and "try again in" in sentence)
        job.work(2, *words)
        job.came_again(2)
        job.end_job()
        check("all end well", job.codes(HANG_S) == [0] * 4 and job.server.end(HANG_S)[0] == 0)
        job.proven("--kills")


def memory_of(pid):
    """{inode: may it be written to} of the memory without a file that a process has mapped or open.
    An open descriptor counts as writing."""
    found = {}
    with open(f"/proc/{pid}/maps") as f:
        for line in f:
            _, rights, _, _, inode, *name = line.split()
            if name and name[0].startswith("/memfd:"):
                found[int(inode)] = found.get(int(inode), False) or "w" in rights
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/memfd:"):
                found[os.stat(f"/proc/{pid}/fd/{fd}").st_ino] = True
    return found


def a_worker_reaches_its_own_slots_alone(a):
    """Each has tried to write to the result; and none has the memory of another's slots."""
    with contextlib.ExitStack() as stack:
        job = stack.enter_context(Job(a, "-n", "2", *CALM))
        said = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2)]
        worker = [subprocess.Popen([a.reach], stdin=subprocess.PIPE, stdout=log, stderr=log,
                                   env=dict(os.environ, MUSTER_SERVER=job.address))
                  for log in said]
        for process in worker:
            stack.callback(process.kill)
        check("none can write to a result", until(
            lambda: all("its own slots alone" in read_log(log) for log in said), HANG_S)
            or print(*map(read_log, said)))
        one, other, server = map(memory_of, (worker[0].pid, worker[1].pid,
                                             job.server.process.pid))
        check("the server reads what each may write to", all(
            any(may_write and i in server for i, may_write in m.items()) for m in (one, other)))
        shared = set(one) & set(other)
        check("they share memory that neither may write to, and no other",
              shared and not any(one[i] or other[i] for i in shared))
        for process in worker:
            process.stdin.close()
        check("both end well", [process.wait(HANG_S) for process in worker] == [0, 0])
        results = {read_log(log).splitlines()[-1] for log in said}
        check(f"with one result: {results}", len(results) == 1)


def all_of_it(a):
    with Job(a, "-n", "3", "--join-timeout", "never", *CALM) as job:
        refused(job.server)
        asked_by_another_release(job.server)
        silent_strangers(a.musterd)
        idle_watchers(job.server)
        fixed_figures(a.musterd)
        scales_without_effect(a.musterd)
        while_running(job)
    wrong_length_that_leaves(a)
    never_reading(a.musterd)
    too_little_memory(a.musterd)


main(cases(all_of_it, come_and_go_in_a_flood, a_worker_that_joins_without_end,
           a_worker_reaches_its_own_slots_alone), "musterd", "worker", "reach",
     # A caller has five seconds for its hello, and an idle watcher its place for as long.
     clock=("all_of_it", "a_worker_that_joins_without_end"))
