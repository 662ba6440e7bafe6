#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The reader of standard error may stop reading: no job notices, and nobody is taken for dead.

usage: log.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER
"""
import atexit
import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

from base import CALM, cases, check, main, until, worker_environment
from server import SECONDS, Server, frame, hello

WORKERS = 3
# The ranks after the first WORKERS leave early. Strangers say hello for them in turn, as each rank
# is admitted only so often (server/control/members/rejoins.h).
RANKS = WORKERS + 24
OPTIONS = ("-n", str(RANKS), "--policy", f"backup:{WORKERS}", "--force", *CALM)
WELCOME = 2  # the kind of a message
# So many visits cause more lines than the server keeps.
VISITS = 600


class Reader:
    """Standard error of a program, which is read when the test says so."""

    def __init__(self):
        self.end, self.given = os.pipe()
        self.text = b""
        fcntl.fcntl(self.given, fcntl.F_SETPIPE_SZ, 4096)

    def fill(self):
        """To the brim, by another open file: the program's own is as it was."""
        own = os.open(f"/proc/self/fd/{self.given}", os.O_WRONLY | os.O_NONBLOCK)
        try:
            while True:
                os.write(own, b"#")
        except BlockingIOError:
            os.close(own)

    def line(self, pattern):
        """Reads until there is such a line."""
        while not re.search(pattern, self.text):
            self.text += os.read(self.end, 1)
        return re.search(pattern, self.text)

    def read(self):
        """From now on everything, in a thread of its own."""
        os.close(self.given)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        check("what was kept is read", until(lambda: b"dropped" in self.text, SECONDS))

    def _read(self):
        while piece := os.read(self.end, 4096):
            self.text += piece

    def all(self):
        self.thread.join(SECONDS)
        return self.text.decode().replace("#", "")


class Strangers(threading.Thread):
    """Callers that talk nonsense and go; and callers that say hello for the free rank, and go."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port
        self.visits = 0  # those that were welcome, and have two lines of the log each
        self.over = False

    def call(self, words):
        """Return: the kind of the answer, or None."""
        with socket.create_connection(("127.0.0.1", self.port), SECONDS) as s:
            s.settimeout(SECONDS)
            s.sendall(words)
            try:
                answer = s.recv(65536)
            except ConnectionResetError:
                return None
        return struct.unpack_from("<H", answer, 6)[0] if len(answer) >= 12 else None

    def run(self):
        while not self.over:
            try:
                self.call(b"GET / HTTP/1.1\r\n\r\n")
                self.call(frame(99))
                rank = WORKERS + self.visits % (RANKS - WORKERS)
                self.visits += self.call(hello(rank=rank)) == WELCOME
            except OSError:
                return  # the server is gone
            time.sleep(0.002)


def bother(port, reader, folder):
    """Nobody reads, and strangers cause more lines than are kept; a server that waited for the
    reader would hear no stranger any more, and give its workers no version."""
    reader.fill()
    strangers = Strangers(port)
    strangers.start()
    check("strangers are heard", until(lambda: strangers.visits >= VISITS, 300))
    before = folder.written()
    check("and workers go on", until(
        lambda: all(now > then + 2000 for now, then in zip(folder.written(), before)), SECONDS))
    strangers.over = True
    strangers.join(SECONDS)
    print(f"{strangers.visits} visits")


class Folder(tempfile.TemporaryDirectory):
    """The folder of a job that ends when it is told so."""

    def path(self, name):
        return os.path.join(self.name, name)

    def worker(self, program):
        return [program, self.path("log"), "100", "sleep_us=10000",
                *(f"{rank}:rounds=3" for rank in range(WORKERS, RANKS)),
                f"0:until={self.path('enough')}", "0:finish=1"]

    def written(self):
        """How long the history of each worker is that stays."""
        return [os.path.getsize(self.path(f"log.{rank}.1")) for rank in range(WORKERS)]

    def end_job(self):
        with open(self.path("enough"), "w"):
            pass


def count_broken(text):
    """Callers who broke the protocol: those with a line of their own, and the others."""
    more = re.findall(r"(\d+) more callers broke the protocol", text)
    return text.count("sent bytes that are not a message of muster"), sum(map(int, more))


def judge(text, workers):
    """@text: what was on standard error; @workers: their exit statuses."""
    check(f"the workers work to the end: {workers}", workers == [0] * WORKERS)
    check("nobody was taken for dead", "silent" not in text)
    dropped = sum(int(n) for n in re.findall(r"musterd: (\d+) lines? (?:was|were) dropped", text))
    check(f"{dropped} lines that were dropped are accounted for", dropped > 0)


def start(*command, **more):
    """It does not outlive this test, whatever comes of it."""
    process = subprocess.Popen(command, **more)
    atexit.register(process.kill)
    return process


def server_alone(a):
    """musterd whose standard error is full hears its workers, and says later what it dropped"""
    reader = Reader()
    folder = Folder()
    server = Server(a.musterd, *OPTIONS, stderr=reader.given)
    atexit.register(server.process.kill)
    workers = [start(*folder.worker(a.worker),
                     env=os.environ | worker_environment(server.address, rank))
               for rank in range(RANKS)]
    while len(workers) > WORKERS:
        workers.pop().wait(SECONDS)
    bother(server.port, reader, folder)
    reader.read()
    folder.end_job()
    status = [w.wait(SECONDS) for w in workers]
    check("the job ends well", server.process.wait(SECONDS) == 0)
    judge(reader.all(), status)


def whole_run(a):
    """so does muster run: server and tool share a standard error that is full"""
    reader = Reader()
    folder = Folder()
    run = start(a.muster, "run", *OPTIONS, "--listen", "127.0.0.1:0", "--grace", "60s", "--json",
                folder.path("figures"), "--", *folder.worker(a.worker),
                stdin=subprocess.DEVNULL, stderr=reader.given)
    port = int(reader.line(rb"musterd listens on 127.0.0.1:(\d+):").group(1))
    reader.line(rb"version \d+, %d of %d live" % (WORKERS, RANKS))
    bother(port, reader, folder)
    reader.read()
    folder.end_job()
    check("the run ends well", run.wait(SECONDS) == 0)
    with open(folder.path("figures")) as f:
        ranks = json.load(f)["ranks"]
    judge(reader.all(), [rank["exit"] for rank in ranks[:WORKERS]])
    check("it is summed up", "\nfinished after " in reader.all())


def stopped_terminal(a):
    """a run on a terminal that Ctrl-S has stopped ends by a signal, and leaves no worker"""
    folder = Folder()
    run, terminal = pty.fork()
    if run == 0:
        os.execve(a.muster, [a.muster, "run", "-n", "2", "--listen", "127.0.0.1:0", *CALM, "--",
                             *folder.worker(a.worker)], dict(os.environ, TERM="xterm"))
    shown = b""
    while b"2 of 2 live" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b"\x13")
    time.sleep(2)  # for the live line, which is drawn four times a second, to be in the way
    began = time.monotonic()
    os.kill(run, signal.SIGINT)
    gone = until(lambda: os.waitid(os.P_PID, run, os.WEXITED | os.WNOHANG | os.WNOWAIT),
                 SECONDS)
    took = time.monotonic() - began
    os.kill(run, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(run, 0)[1])
    os.close(terminal)
    check(f"the run ends by the signal: {status}, after {took:.1f} s", gone and status == 130)


def flood(a):
    """a thousand strangers who talk nonsense are a few lines of the log, and their number"""
    server = Server(a.musterd, "-n", "1")
    began = time.monotonic()
    for _ in range(1000):
        server.say(b"GET / HTTP/1.1\r\n\r\n")
    status, text = server.stop()
    took = time.monotonic() - began  # there are six lines every ten seconds
    said, more = count_broken(text)
    check(f"of 1000 strangers {said} have a line, {more} a number", said + more == 1000)
    lines = len(text.splitlines())
    check(f"in {lines} lines", lines < 100 + took and status == 143)


CASES = cases(server_alone, whole_run, stopped_terminal, flood)
# A caller has five seconds to talk nonsense; then it has said nothing.
main(CASES, "musterd", "worker", "muster",
     clock=("flood",))
