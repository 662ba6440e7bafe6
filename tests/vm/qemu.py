# SPDX-License-Identifier: MIT
"""QEMU processes: how one is started, spoken to and ended.

Machines and the switch between them are wired by socket pairs made before they start, so that
nothing listens anywhere and nothing is left in the file system.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import threading

PROGRAM = "qemu-system-x86_64"
ANSWER_SECONDS = 60
# Before other processes, where this user may: else the machine's clock stands still on a busy host.
FIRST = ["nice", "-n", "-15"]

# Among all machines whose clock Linux can set right on a busy host (q35 has a HPET; the microvm has
# nothing, and may then hang) this starts soonest. la57 is paging deeper than this memory needs.
MACHINE = ["-M", "q35,sata=off,smbus=off,usb=off,vmport=off", "-accel", "tcg",
           "-cpu", "max,la57=off,erms=off,fsrm=off"]
BARE = ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
APPEND = ("console=ttyS0 quiet loglevel=4 panic=-1 oops=panic mitigations=off tsc=reliable "
          "cryptomgr.notests no_timer_check nosoftlockup rcupdate.rcu_cpu_stall_suppress=1")


class LabError(Exception):
    """The laboratory, or a command in it, did not do what was asked."""


class Qemu:
    """One process of QEMU that ends when this one does, and the socket of its monitor.

    Start it from a thread that lives as long as the machine shall: the kernel ends a process
    whose starting thread ended, and this is relied upon.
    """

    def __init__(self, name, args, fds=(), log=subprocess.DEVNULL):
        self.name = name
        self.lock = threading.Lock()
        self.monitor, theirs = socket.socketpair()
        command = [*FIRST, "setpriv", "--pdeathsig", "KILL", "--", PROGRAM, *BARE, *args,
                   "-chardev", f"socket,id=monitor,fd={theirs.fileno()}",
                   "-mon", "chardev=monitor,mode=control"]
        with theirs:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, pass_fds=[theirs.fileno(), *fds])
        self.replies = self.monitor.makefile("rb")

    def greet(self, seconds):
        """Waits for the monitor to answer."""
        self.monitor.settimeout(seconds)
        self.reply("QMP")
        self.tell("qmp_capabilities")
        self.monitor.settimeout(ANSWER_SECONDS)

    def reply(self, *wanted):
        """The next message with one of these keys; events in between are dropped."""
        while True:
            try:
                line = self.replies.readline()
            except OSError as e:
                raise LabError(f"{self.name}: QEMU does not answer: {e}") from None
            if not line:
                raise LabError(f"{self.name}: QEMU is gone")
            message = json.loads(line)
            if any(key in message for key in wanted):
                return message

    def tell(self, verb, **arguments):
        """One command of the monitor, done when this returns."""
        with self.lock:
            try:
                self.monitor.sendall(json.dumps({"execute": verb, "arguments": arguments})
                                     .encode() + b"\n")
            except OSError as e:
                raise LabError(f"{self.name}: {e}") from None
            message = self.reply("return", "error")
        if "error" in message:
            raise LabError(f"{self.name}: {verb}: {message['error'].get('desc')}")
        return message["return"]

    def is_alive(self):
        return self.process.poll() is None

    def kill(self):
        if self.is_alive():
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        self.kill()
        self.replies.close()
        self.monitor.close()


def missing():
    """Why no machine can be started here, or None."""
    for tool, package in ((PROGRAM, "qemu-system-x86"), ("setpriv", "util-linux"),
                          ("rdma", "iproute2"), ("tc", "iproute2")):
        if shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            return f"{tool} is not installed (Debian package {package})"
    return None


def folder(tag, path, writable):
    """A folder of the host's as a 9p device."""
    access = "off" if writable else "on"
    escaped = path.replace(",", ",,")
    return ["-fsdev", f"local,id={tag},path={escaped},security_model=none,multidevs=remap,"
                      f"readonly={access}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def port(name, fd):
    """A channel to a process in the machine."""
    return ["-chardev", f"socket,id={name},fd={fd}",
            "-device", f"virtserialport,chardev={name},name={name}"]


def terminal(fd):
    """A console to type at, /dev/hvc0 in the machine."""
    return ["-chardev", f"socket,id=terminal,fd={fd}", "-device", "virtconsole,chardev=terminal"]


def card(name, net, node, fd):
    """A network card; init.sh tells by its address which network it is on."""
    return ["-netdev", f"socket,id={name}_wire,fd={fd}",
            "-device", f"virtio-net-pci,romfile=,id={name},netdev={name}_wire,"
                       f"mac=52:54:00:{net:02x}:00:{node + 1:02x}"]


def switch_port(name, hub, fd):
    """One end of a wire in the switch; set_link on NAME cuts it without the card's knowing."""
    return ["-netdev", f"socket,id={name},fd={fd}",
            "-netdev", f"hubport,id={name}_hub,hubid={hub},netdev={name}"]
