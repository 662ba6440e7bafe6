# SPDX-License-Identifier: MIT
"""Hosts of a test's own: network namespaces, each with one card at a switch, so that a job of
several hosts runs in one. No root is needed where a user may have namespaces.

    with Network(3) as hosts:
        with Job(a, hosts, "-n", "2", "--commits", "40") as job: ...

Nothing has a name outside: the namespaces are held by this process and those that it starts in
them. They end with it, however it ends, and the kernel removes the rest. The process itself is at
the switch, so it reaches each host. No two hosts share /dev/shm, the folder of sockets, a name or a
network; they share processes and all other files.
"""
import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile

import base
from base import CALM, Child, until

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER, CLONE_NEWNET = 1 << 17, 1 << 26, 1 << 28, 1 << 30
MS_REC, MS_PRIVATE = 1 << 14, 1 << 18
PR_SET_PDEATHSIG = 1
OWN = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS
SPACES = ("net", "mnt", "uts")
SWITCH = "10.78.0.254"
C = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """Why there are no namespaces."""


def call(name, *args):
    """One of the C library, which Python has only from 3.12 on."""
    if getattr(C, name)(*args) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def leave():
    """This process leaves the namespaces that it was started in."""
    try:
        call("unshare", OWN)
        return
    except PermissionError:
        pass
    user, group = os.geteuid(), os.getegid()
    try:
        call("unshare", OWN | CLONE_NEWUSER)
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"0 {user} 1")
        write("/proc/self/gid_map", f"0 {group} 1")
    except OSError as e:
        raise Unavailable(f"this user cannot have namespaces of networks here: {e}") from None


def cover(folder):
    """An empty folder in place of that one, seen only here."""
    call("mount", b"none", folder.encode(), b"tmpfs", 0, b"mode=0700")


def ip(lines, enter=None):
    """What `ip` is to do, a line each."""
    try:
        done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True,
                              capture_output=True, preexec_fn=enter, check=False)
    except FileNotFoundError:
        raise Unavailable("there is no program ip (Debian package iproute2)") from None
    if done.returncode != 0:
        raise Unavailable(f"ip: {done.stderr.strip()}")


def shape(card, rule, enter=None):
    """What that card sends. Return: the kernel can."""
    tc = ["tc", "qdisc", "replace" if rule else "del", "dev", card, "root", *(rule or "").split()]
    return subprocess.run(tc, preexec_fn=enter, stderr=subprocess.DEVNULL, check=False,
                          ).returncode == 0


class Host:
    """A network, a name and a /dev/shm of its own."""

    def __init__(self, network, index):
        self.network, self.index = network, index
        self.name, self.port = f"host{index}", f"port{index}"
        self.address = f"10.78.0.{index + 1}"
        self.spaces = []
        self.begin()

    def begin(self):
        """A process makes the namespaces, and stays until this one has them."""
        ready, ready_w = os.pipe()
        go, go_w = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(go_w)
            base.finish(lambda: self.make(ready_w, go))
        os.close(ready_w)
        os.close(go)
        try:
            if os.read(ready, 1) != b"!":
                raise Unavailable(f"{self.name} cannot be made")
            self.spaces = [os.open(f"/proc/{child}/ns/{space}", os.O_RDONLY | os.O_CLOEXEC)
                           for space in SPACES]
            ip([f"link add {self.port} type veth peer name eth0 netns {child}",
                f"link set {self.port} master switch up"])
        finally:
            os.close(go_w)
            os.close(ready)
            os.waitpid(child, 0)
        try:
            ip(["link set lo up", f"address add {self.address}/24 dev eth0", "link set eth0 up"],
               self.enter)
        except subprocess.SubprocessError:
            raise Unavailable(f"no process can enter {self.name}: is this root directory not that "
                              "of the mount namespace (chroot)?") from None

    def make(self, ready, go):
        call("unshare", OWN)
        call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        cover("/dev/shm")
        cover(self.network.sockets)
        socket.sethostname(self.name)
        os.write(ready, b"!")
        os.read(go, 1)

    def enter(self):
        """A process that is about to become a program enters the host; as preexec_fn. It ends with
        this one."""
        folder = os.getcwd()
        for space in self.spaces:
            call("setns", space, 0)
        os.chdir(folder)
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def run(self, command):
        """Return: what it said. It must end well."""
        return subprocess.run(command, preexec_fn=self.enter, check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout

    # ---- faults ----

    def cut(self):
        """The switch sends nothing to the host and takes nothing from it; whoever is connected with
        it hears nothing of that."""
        ip([f"link set {self.port} nomaster"])

    def fix(self):
        """Undoes cut()."""
        ip([f"link set {self.port} master switch"])

    def down(self):
        """The host's own card is switched off: its routes are gone."""
        ip(["link set eth0 down"], self.enter)

    def up(self):
        """Undoes down()."""
        ip(["link set eth0 up"], self.enter)

    def isolate(self, is_on=True):
        """The host reaches no other one that is isolated, and all the rest."""
        ip([f"link set {self.port} type bridge_slave isolated {'on' if is_on else 'off'}"])

    def have_small_buffers(self):
        """Connections to come have little room: what a process does not read soon fills it."""
        for name in ("tcp_rmem", "tcp_wmem"):
            self.run(["sh", "-c", f"echo 4096 16384 65536 >/proc/sys/net/ipv4/{name}"])

    def shape(self, rule):
        """What the host sends is held back, as in shape("tbf rate 8mbit burst 32k latency 1s");
        None ends it. Return: the kernel can."""
        return shape("eth0", rule, self.enter)

    def shape_port(self, rule):
        """The same of what the host is sent."""
        return shape(self.port, rule)


class Network:
    """So many hosts at a switch, as a context; hosts[i] is one of them. A process has one network,
    for it leaves its own for it."""

    def __init__(self, count):
        self.count, self.hosts = count, []
        self.folder = tempfile.TemporaryDirectory(prefix="muster-test-hosts-")
        self.sockets = os.path.join(self.folder.name, "run")

    def __enter__(self):
        os.mkdir(self.sockets, 0o700)
        os.environ["XDG_RUNTIME_DIR"] = self.sockets
        try:
            leave()
            ip(["link set lo up", "link add switch type bridge",
                f"address add {SWITCH}/24 dev switch", "link set switch up"])
            self.hosts = [Host(self, index) for index in range(self.count)]
        except Unavailable as e:
            self.folder.cleanup()
            print(f"skipped: {e}")
            sys.exit(77)
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            for space in host.spaces:
                os.close(space)
        self.folder.cleanup()

    def __getitem__(self, index):
        return self.hosts[index]


class Job(base.Job):
    """A job over TCP whose server is at host 0 and whose rank r is at host `places[r]`. By default
    ranks take the other hosts one after the other."""

    elems = 1237

    def __init__(self, a, hosts, *options, secure=("--insecure",), lease=CALM, places=None,
                 transport="tcp", **env):
        """@secure: how servers prove who they are."""
        self.hosts, self.secure, self.places, self.follower = hosts, secure, places, []
        self.transport = transport
        super().__init__(a, *secure, "--transport", transport, *lease, *options,
                         preexec_fn=hosts[0].enter, listen=f"{hosts[0].address}:0", **env)
        self.leader = self.server

    def children(self):
        return [*self.follower, *self.worker]

    def host_of(self, rank):
        if self.places is not None:
            return self.hosts[self.places[rank]]
        return self.hosts[1 + rank % (self.hosts.count - 1)]

    def work(self, rank, *options, **env):
        return super().work(rank, *options, preexec_fn=self.host_of(rank).enter, **env)

    def join(self, index, *options, program=None):
        """A follower at that host."""
        command = [program or self.a.musterd, "--join", self.address, "--transport",
                   self.transport, *self.secure, *options]
        self.follower.append(Child(command, preexec_fn=self.hosts[index].enter))
        return self.follower[-1]

    def all_said(self):
        named = [("server", self.server), *((f"follower {i}", f)
                                            for i, f in enumerate(self.follower, 1))]
        named += [(f"worker {i}", w) for i, w in enumerate(self.worker)]
        return "\n".join(f"--- {name}, {p.process.poll()}\n{p.said().strip()}" for name, p in named)

    def must(self, what, ok):
        """Ends the test by saying what is not so and what all have said, or says what is so."""
        base.check(what if ok else f"NOT SO: {what}\n{self.all_said()}", ok)

    def awaits(self, what, condition, seconds=base.HANG_S):
        self.must(what, until(condition, seconds))

    def settle(self, *expected):
        """Waits for the ends of all; these are those of the workers, in the order of their starts.
        By default all end well."""
        codes = [w.end(base.HANG_S)[0] for w in self.worker]
        servers = [s.end(base.HANG_S)[0] for s in (self.server, *self.follower)]
        self.must(f"workers end with {codes}, servers with {servers}",
                  codes == list(expected or [0] * len(codes)) and not any(servers))
