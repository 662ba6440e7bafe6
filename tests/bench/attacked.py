#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What attacks cost an honest job: its mean step, and the time to join it, with each and without.

The job has certificates, runs over shared memory, and two workers carry it (backup:2), each of
which sleeps for some milliseconds a step in place of computing. In each round every attack has its
turn: the job goes on alone for some seconds, then for as long under the attack. Twice in each of
these times a third worker joins and leaves. Printed are, for each attack, the ratio of the mean
steps of neighbours in time (median over the rounds, and quartiles), the times to join, how often
the attacker acted in a second, and the server's memory at the end.

The attackers run on the same host, as processes with the nice value 19: an attacker elsewhere takes
none of its processors, and this leaves the job most of them.

usage: attacked.py BUILD [--rounds N] [--seconds S] [--only NAME,...] [--step-ms MS] [--elems N]
"""
import argparse
import array
import contextlib
import errno
import mmap
import os
import pathlib
import re
import signal
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/system"), str(ROOT / "client/python")]
from server import ASK_STATUS, REPORT, frame, hello, text  # noqa: E402

WORKERS, STEADY, JOINER, INSIDER = 4, 2, 2, 3  # ranks 0 and 1 carry the job
JOIN_S = 60.0
HEARTBEAT = 7
COUNTERS = 4096  # bytes of the file in which steps and acts are counted
ACTS = WORKERS   # the attacker's counter, behind those of the workers
HELD = 1000      # connections that are held
PER_SECOND = 1000


class Counters:
    """Numbers that processes share; each has one writer."""

    def __init__(self, path):
        with open(path, "r+b") as f:
            self.memory = mmap.mmap(f.fileno(), COUNTERS)

    def add(self, i, more=1):
        struct.pack_into("<Q", self.memory, 8 * i, self.get(i) + more)

    def get(self, i):
        return struct.unpack_from("<Q", self.memory, 8 * i)[0]


# ---- attackers ----

class Attacker:
    """What the attacks have in common. They go on until they are killed."""

    def __init__(self, a):
        self.host, port = a.address.split(":")
        self.port, self.keys, self.elems = int(port), a.keys, a.elems
        self.act = lambda: a.counters.add(ACTS)

    def connect(self):
        while True:
            with contextlib.suppress(OSError):
                return socket.create_connection((self.host, self.port), 10)

    def proven(self, role):
        """A connection that has proven this role."""
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        c.check_hostname = False
        c.load_verify_locations(f"{self.keys}/ca.pem")
        c.load_cert_chain(f"{self.keys}/{role}.pem", f"{self.keys}/{role}.key")
        while True:
            with contextlib.suppress(OSError):
                return c.wrap_socket(self.connect())

    def insider(self):
        """A worker that was let in. Return: its connection, and the first words it was told."""
        while True:
            s = self.proven("worker")
            with contextlib.suppress(OSError):
                s.sendall(hello(rank=INSIDER, elems=self.elems))
                data = s.recv(65536)
                if len(data) > 12 and struct.unpack_from("<IHHI", data)[2] == 2:
                    return s, data
            s.close()
            time.sleep(0.05)

    def flood(self, open_one, words):
        """Says that again and again, and reads nothing. Who is hung up on comes again."""
        while True:
            s = open_one()
            with contextlib.suppress(OSError):
                while True:
                    s.sendall(words * 64)
                    for _ in range(64):
                        self.act()
            s.close()

    def held(self):
        here = []
        while True:
            here.append(self.connect())
            self.act()
            if len(here) > HELD:
                here.pop(0).close()

    def plain(self):
        while True:
            with self.connect() as s, contextlib.suppress(OSError):
                s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                s.recv(4096)
                self.act()

    def messages(self):
        self.flood(lambda: self.insider()[0], frame(HEARTBEAT))

    def reports(self):
        said = text("loss") + struct.pack("<dQ", 0.5, 1)
        self.flood(lambda: self.insider()[0], frame(REPORT, said))

    def status(self):
        """Asks, and reads the answers, as fast as they come."""
        while True:
            s = self.proven("observer")
            with contextlib.suppress(OSError):
                while True:
                    s.sendall(frame(ASK_STATUS, bytes(4)))
                    if not s.recv(1 << 20):
                        break
                    self.act()
            s.close()

    def rejoins(self):
        while True:
            self.insider()[0].close()
            self.act()

    def tokens(self):
        """Asks for links at the listener for data, with a token that nobody has."""
        s, data = self.insider()
        address = re.search(rb"(/[!-~]*muster[!-~]*|@muster[!-~]*)", data).group().decode()
        s.close()
        said = struct.pack("<II16sQQII", 0x6D68736D, 1, bytes(16), 1 << 16, 1 << 16, 8, 8)
        memory = os.memfd_create("attacker")
        os.ftruncate(memory, 1 << 20)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory]))]
        while True:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.settimeout(10)
                with contextlib.suppress(OSError):
                    s.connect(address)
                    s.sendmsg([said], rights)
                    s.recv(4096)
                    self.act()


def impostors(a, *words):
    """tests/transport/tls/impostors.c, with what it says counted."""
    host, port = a.address.split(":")
    process = subprocess.Popen([a.build / "tests/transport/impostors", host, port, *words],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for _ in process.stdout:
        a.counters.add(ACTS, 100)


def wrong(a):
    impostors(a, f"{a.other}/worker.pem", f"{a.other}/worker.key", str(PER_SECOND), "1000000000")


def half(a):
    impostors(a, "-", "-", str(PER_SECOND), "1000000000", "1500")


ATTACKS = {
    "held": "connections that say nothing",
    "half": "handshakes that stop half-way",
    "wrong": "certificates of another authority",
    "plain": "plain text to the TLS port",
    "messages": "a worker that sends heartbeats without end",
    "reports": "a worker that reports values without end",
    "status": "an observer that asks without end",
    "rejoins": "a worker that joins and leaves without end",
    "tokens": "callers of the data listener with a wrong token",
}


# ---- the honest ----

def set_environment(build, keys):
    os.environ["MUSTER_LIBRARY"] = str(build / "client/libmuster.so")
    for name, file in (("CA", "ca.pem"), ("CERT", "worker.pem"), ("KEY", "worker.key")):
        os.environ[f"MUSTER_TLS_{name}"] = f"{keys}/{file}"


def carry(a):
    """A worker that pushes and sleeps, until it is killed."""
    import muster
    import numpy
    with muster.Worker(a.elems, server=a.address, rank=a.rank, join_timeout=JOIN_S) as w:
        out = w.start(numpy.zeros(a.elems, "f4"))
        while not out.finished:
            time.sleep(a.step_ms / 1e3)
            w.gradient()[:1] = 1
            w.push()
            out = w.wait()
            a.counters.add(a.rank)


def join(a, rank):
    """Seconds until it is in; where its rank is still taken it comes again."""
    import muster
    begin = time.monotonic()
    while True:
        try:
            w = muster.Worker(a.elems, server=a.address, rank=rank, join_timeout=JOIN_S)
            return time.monotonic() - begin, w
        except muster.Error as e:
            if e.errno not in (errno.EEXIST, errno.EBUSY) or time.monotonic() - begin > JOIN_S:
                raise
            time.sleep(0.02)


class Job:
    """A server with certificates and the workers that carry its job."""

    def __init__(self, a):
        keys = a.keys
        self.a, self.children = a, []
        self.server = subprocess.Popen(
            [a.build / "server/musterd", "-n", str(WORKERS), "--policy", f"backup:{STEADY}",
             "--listen", "127.0.0.1:0", "--join-timeout", "never", "--lease", "30s",
             f"--tls-ca={keys}/ca.pem", f"--tls-cert={keys}/server.pem",
             f"--tls-key={keys}/server.key"], stderr=subprocess.PIPE, text=True)
        for line in self.server.stderr:
            found = re.search(r"127\.0\.0\.1:\d+", line)
            if found:
                a.address = found.group()
                break
        threading.Thread(target=self.server.stderr.read, daemon=True).start()

    def __enter__(self):
        for rank in range(STEADY):
            self.children.append(self.play("carry", rank))
        starting = [threading.Thread(target=self.start_and_leave, args=(rank,))
                    for rank in range(STEADY, WORKERS)]
        for thread in starting:
            thread.start()
        for thread in starting:
            thread.join()
        return self

    def start_and_leave(self, rank):
        import numpy
        with join(self.a, rank)[1] as w:
            w.start(numpy.zeros(self.a.elems, "f4"))

    def __exit__(self, *what):
        for child in [*self.children, self.server]:
            child.kill()
            child.wait()

    def play(self, what, rank=0):
        """Another process of this script."""
        a = self.a
        return subprocess.Popen(
            [sys.executable, __file__, str(a.build), "--play", what, "--rank", str(rank),
             "--address", a.address, "--keys", a.keys, "--other", a.other, "--shared", a.shared,
             "--elems", str(a.elems), "--step-ms", str(a.step_ms)], start_new_session=True)

    def memory_mib(self):
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


# ---- what is measured ----

def measure(a, joins):
    """The mean step over some seconds, within which a worker joins twice."""
    begin, steps = time.monotonic(), a.counters.get(0)
    for _ in range(2):
        took, w = join(a, JOINER)
        w.close()
        joins.append(took)
        time.sleep(a.seconds / 4)
    time.sleep(max(0.0, begin + a.seconds - time.monotonic()))
    steps = a.counters.get(0) - steps
    return (time.monotonic() - begin) / max(steps, 1)


class Figures:
    def __init__(self):
        self.ratio, self.alone, self.under, self.step = [], [], [], []
        self.per_second, self.memory_mib = [], 0.0


def attack(a, job, name, figures):
    """A time without, and one with the attack."""
    alone = measure(a, figures.alone)
    acts = a.counters.get(ACTS)
    attacker = job.play(name)
    try:
        end = time.monotonic() + JOIN_S
        while a.counters.get(ACTS) == acts and time.monotonic() < end:
            time.sleep(0.02)
        acts, begin = a.counters.get(ACTS), time.monotonic()
        under = measure(a, figures.under)
        figures.per_second.append((a.counters.get(ACTS) - acts) / (time.monotonic() - begin))
        figures.memory_mib = job.memory_mib()
    finally:
        os.killpg(attacker.pid, signal.SIGKILL)
        attacker.wait()
    figures.step.append(alone)
    figures.ratio.append(under / alone)


def quartiles(values):
    return statistics.quantiles(values, n=4) if len(values) > 1 else values * 3


def report(figures):
    print("| attack | in a second | step | quartiles | join alone | under it, ms (most) | memory |")
    print("|---|---|---|---|---|---|---|")
    for name, f in figures.items():
        low, middle, high = quartiles(f.ratio)
        print(f"| {ATTACKS[name]} | {statistics.median(f.per_second):.0f} | {middle:.2f} | "
              f"{low:.2f}, {high:.2f} | {1e3 * statistics.median(f.alone):.0f} | "
              f"{1e3 * statistics.median(f.under):.0f} ({1e3 * max(f.under):.0f}) | "
              f"{f.memory_mib:.0f} MiB |")


def read_line():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=3.0)
    p.add_argument("--only", default=",".join(ATTACKS), type=lambda names: names.split(","))
    p.add_argument("--step-ms", type=float, default=5.0)
    p.add_argument("--elems", type=int, default=1 << 18)
    for hidden in ("play", "address", "keys", "other", "shared"):
        p.add_argument("--" + hidden, help=argparse.SUPPRESS)
    p.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    if unknown := set(a.only) - set(ATTACKS):
        p.error(f"there is no attack {', '.join(unknown)}; there are {', '.join(ATTACKS)}")
    return a


def play(a):
    """What another process of this script does."""
    a.counters = Counters(a.shared)
    if a.play == "carry":
        set_environment(a.build, a.keys)
        carry(a)
        return
    os.nice(19)
    if a.play in ("wrong", "half"):
        {"wrong": wrong, "half": half}[a.play](a)
    else:
        getattr(Attacker(a), a.play)()


def main():
    a = read_line()
    if a.play:
        return play(a)
    before = os.getloadavg()[0]
    figures = {name: Figures() for name in a.only}
    with tempfile.TemporaryDirectory() as folder:
        a.keys, a.other, a.shared = (f"{folder}/{name}" for name in ("keys", "other", "shared"))
        for keys in (a.keys, a.other):
            subprocess.run([a.build / "tools/muster", "key", "new", keys], check=True,
                           stdout=subprocess.DEVNULL)
        with open(a.shared, "wb") as f:
            f.truncate(COUNTERS)
        a.counters = Counters(a.shared)
        set_environment(a.build, a.keys)
        with Job(a) as job:
            for _ in range(a.rounds):
                for name, f in figures.items():
                    attack(a, job, name, f)
    report(figures)
    steps = [s for f in figures.values() for s in f.step]
    print(f"{a.rounds} rounds of {a.seconds:g} s, {4 * a.elems >> 10} KiB, a step alone "
          f"{1e3 * statistics.median(steps):.1f} ms, {os.cpu_count()} processors, load "
          f"{before:.1f} before and {os.getloadavg()[0]:.1f} after")


main()
