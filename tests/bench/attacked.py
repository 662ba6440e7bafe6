#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What attacks cost an honest job: its mean step, and the time to join it, with each and without.

The job has certificates, runs over shared memory or RDMA, and two workers carry it (backup:2), each
of which sleeps for some milliseconds a step in place of computing. In each round every attack has
its turn: the job goes on alone for some seconds, then for as long under the attack. Twice in each
of these times a third worker joins and leaves. Printed are, for each attack, the ratio of the mean
steps of neighbours in time (median over the rounds, and quartiles), the times to join, how often
the attacker acted in a second, and the server's memory at the end.

The attackers run on the same host, as processes with the nice value 19: an attacker elsewhere takes
none of its processors, and this leaves the job most of them. With --elsewhere, those who need no
certificate of the job have a second turn, against another server on this host, which has the same
certificates and no job. What the step takes then is what those processors are worth: the attackers'
and a server's, but not this one's.

With --transport verbs it needs an RDMA device. Where there is none:

    tests/vm/vm.py -- /usr/bin/python3 $PWD/tests/bench/attacked.py BUILD --transport verbs

usage: attacked.py BUILD [--rounds N] [--seconds S] [--only NAME,...] [--step-ms MS] [--elems N]
                   [--transport shm|verbs] [--per-second N] [--elsewhere]
"""
import argparse
import array
import contextlib
import ctypes
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
from server import REPORT, ask_status, each, fields, frame, hello, text  # noqa: E402

WORKERS, STEADY, JOINER, INSIDER = 4, 2, 2, 3  # ranks 0 and 1 carry the job
JOIN_S = 60.0
HEARTBEAT = 7
COUNTERS = 4096  # bytes of the file in which steps and acts are counted
ACTS = WORKERS   # the attacker's counter, after those of the workers
HELD = 1000      # connections that are held
CHAIN = 24       # certificates that one caller shows: a few more, and the server reads none


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

class Caller:
    """Asks for a link over RDMA with a token that nobody has, by librdmacm."""

    class Hints(ctypes.Structure):
        """The beginning of struct rdma_addrinfo, and room for the rest."""
        _fields_ = [("flags", ctypes.c_int), ("family", ctypes.c_int), ("qp_type", ctypes.c_int),
                    ("port_space", ctypes.c_int), ("rest", ctypes.c_char * 112)]

    class Conn(ctypes.Structure):
        """struct rdma_conn_param"""
        _fields_ = [("data", ctypes.c_char_p), ("data_len", ctypes.c_uint8),
                    ("resources", ctypes.c_uint8), ("depth", ctypes.c_uint8),
                    ("flow_control", ctypes.c_uint8), ("retries", ctypes.c_uint8),
                    ("rnr_retries", ctypes.c_uint8), ("srq", ctypes.c_uint8),
                    ("qp_num", ctypes.c_uint32)]

    def __init__(self, host, port):
        self.cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
        self.at, self.number = ctypes.c_void_p(), 0xABCD00  # of a queue pair that nobody has
        hints = self.Hints(qp_type=2, port_space=0x0106)    # RC, TCP's
        if self.cm.rdma_getaddrinfo(host.encode(), port.encode(), ctypes.byref(hints),
                                    ctypes.byref(self.at)) != 0:
            sys.exit(f"no address: {host}:{port}")

    def call(self):
        """Return: was it refused?"""
        said = struct.pack("<IBBBB16sQQIIII", 0x7262766D, 2, 0, 1, 3, os.urandom(16),
                           1 << 16, 1 << 16, 8, 8, self.number, 0)
        caller = ctypes.c_void_p()
        if self.cm.rdma_create_ep(ctypes.byref(caller), self.at, None, None) != 0:
            return False
        conn = self.Conn(data=said, data_len=len(said), retries=3, rnr_retries=3,
                         qp_num=self.number)
        self.number += 1
        done = self.cm.rdma_connect(caller, ctypes.byref(conn))
        refused = done != 0 and ctypes.get_errno() == errno.ECONNREFUSED
        self.cm.rdma_destroy_ep(caller)
        return refused


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
        """Says that again and again, and reads nothing. A caller that is hung up on comes again."""
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
        said = fields(text("loss"), *each("dQ", 0.5, 1))
        self.flood(lambda: self.insider()[0], frame(REPORT, said))

    def status(self):
        """Asks, and reads the answers, as fast as they come."""
        while True:
            s = self.proven("observer")
            with contextlib.suppress(OSError):
                while True:
                    s.sendall(ask_status())
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
        verbs = re.search(rb"verbs:([0-9.]+):(\d+)", data)
        if verbs:
            s.close()
            caller = Caller(*(part.decode() for part in verbs.groups()))
            while True:
                if caller.call():
                    self.act()
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
        a.counters.add(ACTS, 10)


def wrong(a):
    impostors(a, f"{a.other}/worker.pem", f"{a.other}/worker.key", str(a.per_second), "1000000000")


def half(a):
    impostors(a, "-", "-", str(a.per_second), "1000000000", "1500")


def chain(a):
    """The server has to read all that is shown before it sees that none of it is of its job."""
    shown = "".join(pathlib.Path(f"{a.other}/{name}.pem").read_text()
                    for name in ("worker", *["server"] * (CHAIN - 1)))
    path = pathlib.Path(f"{a.other}/chain.pem")
    path.write_text(shown)
    impostors(a, str(path), f"{a.other}/worker.key", str(a.per_second), "1000000000")


ATTACKS = {
    "held": "connections that say nothing",
    "half": "handshakes that stop half-way",
    "wrong": "certificates of another authority",
    "chain": f"{CHAIN} of those at once",
    "plain": "plain text to the TLS port",
    "messages": "a worker that sends heartbeats without end",
    "reports": "a worker that reports values without end",
    "status": "an observer that asks without end",
    "rejoins": "a worker that joins and leaves without end",
    "tokens": "callers of the data listener with a wrong token",
}
STRANGERS = ("held", "half", "wrong", "chain", "plain")  # need nothing of the job
IMPOSTORS = {"half": half, "wrong": wrong, "chain": chain}


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


class Server:
    """musterd with certificates."""

    def __init__(self, a):
        keys = a.keys
        self.process = subprocess.Popen(
            [a.build / "server/musterd", "-n", str(WORKERS), "--policy", f"backup:{STEADY}",
             "--listen", "127.0.0.1:0", "--join-timeout", "never", "--lease", "30s",
             "--transport", a.transport, f"--tls-ca={keys}/ca.pem",
             f"--tls-cert={keys}/server.pem", f"--tls-key={keys}/server.key"],
            stderr=subprocess.PIPE, text=True)
        said = ""
        for line in self.process.stderr:
            said += line
            found = re.search(r"listening on (127\.0\.0\.1:\d+)", line)
            if found:
                self.address = found.group(1)
                break
        else:
            sys.exit(said)
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def end(self):
        self.process.kill()
        self.process.wait()

    def memory_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


class Job:
    """A server and the workers that carry its job, and, if it is wanted, a server without a job."""

    def __init__(self, a):
        self.a, self.children = a, []
        self.server = Server(a)
        self.elsewhere = Server(a) if a.elsewhere else None
        a.address = self.server.address

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
        for child in self.children:
            child.kill()
            child.wait()
        for server in filter(None, (self.server, self.elsewhere)):
            server.end()

    def play(self, what, rank=0, server=None):
        """Another process of this script."""
        a = self.a
        address = (server or self.server).address
        return subprocess.Popen(
            [sys.executable, __file__, str(a.build), "--play", what, "--rank", str(rank),
             "--address", address, "--keys", a.keys, "--other", a.other, "--shared", a.shared,
             "--elems", str(a.elems), "--step-ms", str(a.step_ms), "--per-second",
             str(a.per_second)], start_new_session=True)


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
        self.ratio, self.elsewhere, self.step = [], [], []  # of steps
        self.alone, self.under = [], []                     # of joins
        self.per_second, self.memory_mib = [], 0.0


def attacked(a, job, name, server, joins):
    """The mean step while that server is attacked, and how often it is in a second."""
    acts = a.counters.get(ACTS)
    attacker = job.play(name, server=server)
    try:
        end = time.monotonic() + JOIN_S
        while a.counters.get(ACTS) == acts and time.monotonic() < end:
            time.sleep(0.02)
        acts, begin = a.counters.get(ACTS), time.monotonic()
        step = measure(a, joins)
        return step, (a.counters.get(ACTS) - acts) / (time.monotonic() - begin)
    finally:
        os.killpg(attacker.pid, signal.SIGKILL)
        attacker.wait()


def attack(a, job, name, f):
    """A time without, one with the attack, and one with it elsewhere."""
    alone = measure(a, f.alone)
    under, per_second = attacked(a, job, name, job.server, f.under)
    f.step.append(alone)
    f.ratio.append(under / alone)
    f.per_second.append(per_second)
    f.memory_mib = job.server.memory_mib()
    if job.elsewhere and name in STRANGERS:
        f.elsewhere.append(attacked(a, job, name, job.elsewhere, [])[0] / alone)


def quartiles(values):
    return statistics.quantiles(values, n=4) if len(values) > 1 else values * 3


def as_text(values):
    """The median, and the quartiles."""
    if not values:
        return ""
    low, middle, high = quartiles(values)
    return f"{middle:.2f} ({low:.2f}, {high:.2f})"


def report(figures):
    print("| attack | each second | step (quartiles) | if elsewhere | to join alone, ms "
          "| to join under it, ms (most) | memory |")
    print("|---|---|---|---|---|---|---|")
    for name, f in figures.items():
        print(f"| {ATTACKS[name]} | {statistics.median(f.per_second):.0f} | {as_text(f.ratio)} | "
              f"{as_text(f.elsewhere)} | {1e3 * statistics.median(f.alone):.0f} | "
              f"{1e3 * statistics.median(f.under):.0f} ({1e3 * max(f.under):.0f}) | "
              f"{f.memory_mib:.0f} MiB |", flush=True)


def read_line():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=3.0)
    p.add_argument("--only", default=",".join(ATTACKS), type=lambda names: names.split(","))
    p.add_argument("--step-ms", type=float, default=5.0)
    p.add_argument("--elems", type=int, default=1 << 18)
    p.add_argument("--transport", default="shm", choices=("shm", "verbs"))
    p.add_argument("--per-second", type=int, default=1000, help="handshakes that are begun")
    p.add_argument("--elsewhere", action="store_true",
                   help="attack a server without a job, too, for comparison")
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
    with contextlib.suppress(OSError):  # sessions share the processors, and then their processes
        pathlib.Path("/proc/self/autogroup").write_text("19")
    if a.play in IMPOSTORS:
        IMPOSTORS[a.play](a)
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
    print(f"{a.transport}, {a.rounds} rounds of {a.seconds:g} s, {4 * a.elems >> 10} KiB, "
          f"a step alone {1e3 * statistics.median(steps):.1f} ms, {os.cpu_count()} processors, "
          f"load {before:.1f} before and {os.getloadavg()[0]:.1f} after")


main()
