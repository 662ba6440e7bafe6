# SPDX-License-Identifier: MIT
"""A job whose processes stop at a moment (trip.c), and what can be done to them there."""
import ctypes
import glob
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import uuid

import history
from base import tagged

SYS_PIDFD_GETFD = 438
LOOK_S = 0.002
ELEMS = 1001
TMPFS = 1 << 18


class Failed(Exception):
    """A cell did not go as it must."""


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(LOOK_S)


class Relay(threading.Thread):
    """Stands in the control connections between workers and their server."""

    def __init__(self, server, host="127.0.0.1"):
        """@server: its address and port. @host: where the relay listens."""
        super().__init__(daemon=True)
        self.server, self.listener = server, socket.create_server((host, 0))
        self.address = f"{host}:{self.listener.getsockname()[1]}"
        self.notified_fd, self.notify_fd = os.pipe()
        self.order, self.pairs = None, {}
        self.start()

    def tell(self, order):
        """cut: both sides get a reset. stall: nothing goes on, and nobody is told. end."""
        self.order = order
        os.write(self.notify_fd, b"!")

    def run(self):
        while self.order != "end":
            stalled = self.order == "stall"
            pairs = [] if stalled else self.pairs
            ready = select.select([self.notified_fd, self.listener, *pairs], [], [])[0]
            if self.notified_fd in ready:
                os.read(self.notified_fd, 1)
                if self.order == "cut":
                    self.drop_all()
            elif self.listener in ready:
                self.join_pair()
            else:
                for one in ready:
                    self.pass_on(one)
        self.drop_all()
        self.listener.close()
        os.close(self.notified_fd)
        os.close(self.notify_fd)

    def join_pair(self):
        caller = self.listener.accept()[0]
        try:
            called = socket.create_connection(self.server)
        except OSError:
            caller.close()
            return
        self.pairs |= {caller: called, called: caller}

    def pass_on(self, one):
        if one not in self.pairs:
            return
        try:
            data = one.recv(65536)
            self.pairs[one].sendall(data)
        except OSError:
            data = b""
        if not data:
            self.pairs.pop(self.pairs.pop(one)).close()

    def drop_all(self):
        for one in self.pairs:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.close()
        self.pairs = {}


def hang_up(pid, port):
    """Shuts the connection that a process has to that port of this host, as if it were cut."""
    with open("/proc/net/tcp") as f:
        inodes = {line.split()[9] for line in f if line.split()[2].endswith(f":{port:04X}")}
    libc, pidfd, done = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid), 0
    for link in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            target = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link))
        except OSError:
            continue
        if target and target[1] in inodes:
            fd = libc.syscall(SYS_PIDFD_GETFD, pidfd, int(os.path.basename(link)), 0)
            if fd < 0:
                raise Failed(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
            with socket.socket(fileno=fd) as theirs:
                theirs.shutdown(socket.SHUT_RDWR)
            done += 1
    os.close(pidfd)
    if done != 1:
        raise Failed(f"process {pid} has {done} connections to port {port}")


def linked(pid):
    """Has a worker a link beside its control connection, or the memory of one?"""
    try:
        fds = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    sockets = sum(fd.startswith("socket:") for fd in fds)
    return sockets > 1 or (holdings(pid) or (0, 0))[1] > 0


def holdings(pid):
    """Descriptors, and maps of shared memory, of a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/maps") as f:
            return len(os.listdir(f"/proc/{pid}/fd")), f.read().count("memfd:muster")
    except OSError:
        return None


class Scene:
    """The processes of one job, apart or under muster run, and what they left."""

    address = "127.0.0.1"  # of the server
    server_options = ()
    worker_holdings = (4, 1)  # descriptors and maps that the server has for a worker

    def __init__(self, tools):
        self.tools, self.mark = tools, "SCENE_MARK=" + uuid.uuid4().hex
        self.folder = tempfile.TemporaryDirectory(prefix="kill-")
        self.trip, self.log = self.path("trip"), self.path("log")
        self.small = self.path("small")  # where they write what is not needed: may be full
        os.mkdir(self.trip)
        os.mkdir(self.small)
        self.process, self.relays, self.mounted = {}, [], False
        self.port = self.began_ns = 0

    def path(self, *names):
        return os.path.join(self.folder.name, *names)

    # ---- before ----

    def plan(self, name, *stages, folder=None):
        with open(os.path.join(folder or self.trip, name), "w") as f:
            f.write("".join(stage + "\n" for stage in stages))

    def not_looking(self, rank, at):
        """The stages of a server that does not look, while that header of a worker is there."""
        return f"after put answer {rank} {at}", "before poll - - 1"

    def mount_small(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={TMPFS}", "none", self.small],
                       check=True)
        self.mounted = True

    def environment(self, **more):
        mark, value = self.mark.split("=")
        env = dict(os.environ, MUSTER_TRIP=self.trip, TMPDIR=self.small)
        for name in ("MUSTER_SERVER", "MUSTER_RANK"):
            env.pop(name, None)
        return env | {mark: value} | more

    def enter(self, name):
        """What a process does before it becomes the program of that name."""
        del name
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def start(self, name, command, pass_fds=(), **env):
        with open(os.path.join(self.small, name), "a") as said:
            self.process[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, pass_fds=pass_fds,
                env=self.environment(**env), preexec_fn=lambda: self.enter(name))
        return self.process[name]

    def start_server(self, *options):
        r, w = os.pipe()
        self.start("server", [self.tools.musterd, "--listen", f"{self.address}:0",
                              *self.server_options, *options],
                   (w,), MUSTER_READY_FD=str(w))
        os.close(w)
        with os.fdopen(r) as ready:
            line = ready.readline()
        if not line:
            raise Failed(f"the server does not start: {self.said('server')}")
        self.port = int(line.rpartition(":")[2])

    def relay(self):
        self.relays.append(Relay((self.address, self.port)))
        return self.relays[-1]

    def start_worker(self, rank, *options, name=None, relay=None, **env):
        address = relay.address if relay else f"{self.address}:{self.port}"
        return self.start(name or f"rank{rank}",
                          [self.tools.worker, self.log, str(ELEMS), *options],
                          MUSTER_SERVER=address, MUSTER_RANK=str(rank), **env)

    def start_run(self, workers, options, words):
        self.start("run", [self.tools.muster, "run", "-n", str(workers), "--listen", "127.0.0.1:0",
                           "--grace", "20s", "--json", os.path.join(self.small, "figures"),
                           *options, "--", self.tools.worker, self.log, str(ELEMS), *words],
                   MUSTER_MUSTERD=self.tools.musterd)
        said = wait_until(lambda: re.search(r"musterd listens on \S+:(\d+)", self.said("run")), 60,
                          "muster run says where it listens")
        self.port = int(said[1])

    # ---- the moment ----

    def held(self, *paths):
        """Waits until those stand still. Return: their process numbers."""
        pids = []
        for path in paths:
            whole = os.path.join(self.trip, path + ".held")
            wait_until(lambda p=whole: os.path.exists(p), 60, f"{path} trips; {self.all_said()}")
            with open(whole) as f:
                pids.append(int(f.read()))
        return pids

    def go(self, *paths):
        for path in paths:
            with open(os.path.join(self.trip, path + ".go"), "w"):
                pass

    def go_all(self):
        for plan in glob.glob(os.path.join(self.trip, "**", "*[0-9r]"), recursive=True):
            if os.path.isfile(plan):
                self.go(os.path.relpath(plan, self.trip))

    def status(self):
        got = subprocess.run([self.tools.muster, "status", "--json", "-",
                              f"{self.address}:{self.port}"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return json.loads(got.stdout) if got.returncode == 0 else None

    def pid_of(self, name):
        """The process of the server or a worker, also under muster run."""
        if name in self.process:
            return self.process[name].pid
        for pid in tagged(self.mark):
            with open(f"/proc/{pid}/environ", "rb") as f:
                env = f.read().decode().split("\0")
            exe = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            if name == "server" and exe == os.path.basename(self.tools.musterd):
                return pid
            if exe == os.path.basename(self.tools.worker) and f"MUSTER_RANK={name[4:]}" in env:
                return pid
        raise Failed(f"there is no {name}")

    def fill_small(self):
        """To the last byte."""
        with open(os.path.join(self.small, "filler"), "wb", buffering=0) as f:
            for size in (4096, 1):
                try:
                    while f.write(b"x" * size):
                        pass
                except OSError:
                    pass

    # ---- after ----

    def said(self, name):
        with open(os.path.join(self.small, name), errors="replace") as f:
            return f.read()

    def all_said(self):
        return "\n".join(f"--- {name}, {process.poll()}\n{self.said(name).strip()}"
                         for name, process in self.process.items())

    def alive(self):
        """Every process of the job that has not ended; what init has to reap has."""
        return [p for p in self.process.values() if p.poll() is None] or tagged(self.mark)

    def newest(self, ranks):
        return max((out.version for log in self.logs(ranks) for out in log.outcomes), default=0)

    def logs(self, ranks):
        paths = [p for p in glob.glob(self.log + ".*")
                 if re.fullmatch(r"\.\d+\.\d+", p[len(self.log) :])]
        logs = [history.Log(path) for path in paths if os.path.getsize(path)]
        return [log for log in logs if log.rank in ranks]

    def next_commit_s(self, ranks, version, since_ns):
        """From then to the first look of one of these at a version after that one."""
        at = [out.at_ns for log in self.logs(ranks) for out in log.outcomes
              if out.version > version and out.at_ns >= since_ns]
        return (min(at) - since_ns) / 1e9 if at else None

    def litter(self):
        """Files that nobody was told to write."""
        known = {*self.process, "figures", "filler"}
        return sorted(set(os.listdir(self.small)) - known)

    def sockets(self):
        """Names of listeners that the kernel still knows, of this scene's server."""
        with open("/proc/net/unix") as f:
            names = re.findall(r"/(\d+)-[0-9a-f]{8}\.sock", f.read())
        pids = {p.pid for p in self.process.values()}
        return [name for name in names if int(name) in pids]

    def close(self):
        """Return: processes that had to be killed."""
        left = tagged(self.mark)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.process.values():
            process.kill()
            process.wait()
        for relay in self.relays:
            relay.tell("end")
            relay.join(60)
        if self.mounted:
            subprocess.run(["umount", "-l", self.small], check=True)
        self.folder.cleanup()
        return left


def limit_files(pid, size):
    """New files of this process, and memory of memfds, end there."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, size))
