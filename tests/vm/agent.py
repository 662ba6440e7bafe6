# SPDX-License-Identifier: MIT
"""Runs inside a test machine: starts what the host asks for and tells how it ended.

Asked, a line each: "start NUMBER" runs what /lab/NUMBER.run says, its output to /lab/NUMBER.out,
as a session of its own; "kill NUMBER SIGNAL" goes to all of that session's first process group.
Told: "ready WORD" once the network is up, "end NUMBER STATUS", negative if by a signal; "still CPU
SECONDS" when a processor of the machine did nothing for so long.
A .run file holds strings that end in NUL: folder, count of words, the words, NAME=VALUE ...
It starts in emulation, so it imports only what is built into the interpreter.
"""
import os
import select
import signal
import time

PORTS = "/sys/class/virtio-ports"
BEAT_S = 0.2
STILL_S = 0.5  # in which nothing ran here that should have


def open_port():
    for port in os.listdir(PORTS):
        with open(f"{PORTS}/{port}/name") as f:
            if f.read().strip() == "agent":
                return os.open(f"/dev/{port}", os.O_RDWR)
    raise SystemExit("agent: no port of that name")


def strings(path):
    with open(path, "rb") as f:
        return f.read().split(b"\0")[:-1]


def changed(environment, settings):
    return environment | dict(setting.split(b"=", 1) for setting in settings)


def start(number):
    """Return: the process, which leads a group of its own. OSError if there can be none."""
    into = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    files = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
             (os.POSIX_SPAWN_OPEN, 1, f"/lab/{number}.out", into, 0o644),
             (os.POSIX_SPAWN_DUP2, 1, 2)]
    folder, count, *rest = strings(f"/lab/{number}.run")
    os.chdir(folder)
    words, settings = rest[:int(count)], rest[int(count):]
    return os.posix_spawnp(words[0], words, changed(os.environb, settings), file_actions=files,
                           setsid=True, setsigmask=[], setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])


def try_start(port, number, numbers):
    try:
        numbers[start(number)] = number
    except OSError as e:
        with open(f"/lab/{number}.out", "w") as f:
            f.write(f"{e}\n")
        os.write(port, b"end %d 127\n" % number)


def reap(port, numbers):
    """Tells of those that ended; numbers is pid -> number."""
    while numbers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        code = os.waitstatus_to_exitcode(status)
        os.write(port, b"end %d %d\n" % (numbers.pop(pid), code))


def obey(port, line, numbers):
    verb, number, *rest = line.split()
    if verb == b"start":
        try_start(port, int(number), numbers)
        return
    for pid, known in numbers.items():
        if known == int(number):
            os.killpg(pid, int(rest[0]))


def serve(port):
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(port, select.POLLIN)
    poll.register(woken, select.POLLIN)
    numbers, partial = {}, b""
    while True:
        for fd, _ in poll.poll():
            if fd == woken:
                os.read(woken, 4096)
                reap(port, numbers)
                continue
            *lines, partial = (partial + os.read(port, 4096)).split(b"\n")
            for line in lines:
                obey(port, line, numbers)


def watch(port, cpu):
    """Never returns: looks how late a processor wakes it. The machine's clock goes with the host's,
    and stands still only while the machine is paused on purpose."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # what else runs here does not count
    while True:
        began = time.monotonic()
        time.sleep(BEAT_S)
        late = time.monotonic() - began - BEAT_S
        if late > STILL_S:
            os.write(port, b"still %d %.2f\n" % (cpu, late))


def main():
    port = open_port()
    os.environb.update(changed({}, strings("/lab/environment")))
    with open("/run/ready", "rb") as f:
        os.write(port, b"ready " + f.read())
    for cpu in os.sched_getaffinity(0):
        if os.fork() == 0:
            watch(port, cpu)
    serve(port)


main()
