#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tests/freeze.py itself: who is below it stands still, sees nothing of it but the time, and always
goes on.

usage: freezes.py CASE
       freezes.py --list
"""
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from base import HANG_S, HERE, cases, check, main, tagged, until

FREEZE = os.path.join(HERE, os.pardir, "freeze.py")
STOOD_S = 0.2  # between two beats that are 10 ms apart
MARK = f"FREEZES_MARK={os.getpid()}"
NO_FREEZER = "freeze: no freezer"


class Beats(threading.Thread):
    """Counts while it runs, and the longest time that it has not."""

    def __init__(self):
        super().__init__(daemon=True)
        self.count, self.last = 0, time.monotonic()

    def run(self):
        while True:
            time.sleep(0.01)
            self.count, self.last = self.count + 1, time.monotonic()


def is_seen():
    """One thread of this process has stood still while another beat."""
    beats = [Beats() for _ in range(3)]
    for one in beats:
        one.start()
    end = time.monotonic() + HANG_S
    while time.monotonic() < end:
        before = [one.count for one in beats]
        time.sleep(STOOD_S)
        passed = [one.count - was for one, was in zip(beats, before)]
        if min(passed) == 0 and max(passed) > 5:
            return 0
    return 1


def beat(path):
    """Adds to the file, for so long that nobody waits for its end."""
    end = time.monotonic() + 4 * HANG_S
    with open(path, "ab", buffering=0) as f:
        while time.monotonic() < end:
            f.write(b".")
            time.sleep(0.01)


def start(*command, options=()):
    name, value = MARK.split("=")
    return subprocess.Popen([sys.executable, FREEZE, "--longest", "2", "--pause", "0.1",
                             *options, "--", *command], env=os.environ | {name: value},
                            stderr=subprocess.PIPE, text=True)


def own_cgroups():
    """The folders of such a test that are left, wherever cgroup v2 is."""
    found = subprocess.run(["find", "/sys/fs/cgroup", "-name", "freeze.*", "-type", "d"],
                           capture_output=True, text=True, check=False)
    return set(found.stdout.split())


def a_thread_alone(_):
    """The other threads of its process go on."""
    process = start(sys.executable, __file__, "is-seen", options=["--at-once", "1"])
    _, said = process.communicate(timeout=2 * HANG_S)
    if NO_FREEZER in said:
        print("skipped:", said.strip())
        sys.exit(77)
    check(f"a thread has stood still alone: {said.strip()}", process.returncode == 0)


def status(_):
    """It is the command's, with either way to freeze."""
    for options in [], ["--signals"]:
        for script, wanted in ("exit 7", 7), ("kill -9 $$", 128 + 9), ("sleep 0.5", 0):
            process = start("sh", "-c", script, options=options)
            _, said = process.communicate(timeout=HANG_S)
            check(f"{script} {options}: {process.returncode}: {said.strip()}",
                  process.returncode == wanted and "stood still" in said)


def ended_at_any_instant(_):
    """A process that has just been stopped, or is about to go on, goes on at the end."""
    spec = importlib.util.spec_from_file_location("freeze", FREEZE)
    freeze = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(freeze)
    os_kill = os.kill
    for call, what in ("freeze", "has just been stopped"), ("thaw", "is about to go on"):
        child = subprocess.Popen(["sleep", str(2 * HANG_S)])
        freezer, victim = freeze.Signals(), (child.pid, None)

        def ended(pid, number):
            os.kill = os_kill
            if number == signal.SIGSTOP:
                os_kill(pid, number)
            raise freeze.Ended(signal.SIGTERM)

        if call == "thaw":
            freezer.freeze(victim)
        os.kill = ended
        try:
            getattr(freezer, call)(victim)
        except freeze.Ended:
            freezer.close()
        check(f"who {what} goes on", until(
            lambda pid=child.pid: freeze.Signals.below(os.getpid())[pid] not in "Tt", HANG_S))
        child.kill()
        child.wait()


def ended_by_a_signal(_):
    """A frozen process then goes on; the command is told, and what it has left lives."""
    for options in [], ["--signals"]:
        with tempfile.TemporaryDirectory() as folder:
            path, log = os.path.join(folder, "beats"), os.path.join(folder, "log")
            script = (f'"$@" 2> /dev/null & trap "touch {folder}/told; exit 0" TERM; '
                      "while :; do sleep 0.05; done")
            process = start("sh", "-c", script, "sh", sys.executable, __file__, "beat", path,
                            options=[*options, "--log", log, "--at-once", "9"])

            def read(name):
                with open(name) as f:
                    return f.read()

            check("somebody is frozen", until(lambda: os.path.exists(path) and os.path.exists(log)
                                              and read(log).count("\n") > 8, HANG_S))
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=HANG_S)
            check(f"it ends by the signal: {process.returncode} {said.strip()}",
                  process.returncode == 128 + signal.SIGTERM)
            check("the command was told", os.path.exists(os.path.join(folder, "told")))
            size = os.path.getsize(path)
            check("what it has left goes on", until(lambda: os.path.getsize(path) > size + 20,
                                                    HANG_S))
            for pid in tagged(MARK):
                os.kill(pid, signal.SIGKILL)
            check("no cgroup is left", not any(c.endswith(f".{process.pid}")
                                               for c in own_cgroups()))


if sys.argv[1:2] == ["is-seen"]:
    sys.exit(is_seen())
if sys.argv[1:2] == ["beat"]:
    beat(sys.argv[2])
main(cases(a_thread_alone, status, ended_at_any_instant, ended_by_a_signal))
