#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Two servers of a job, each of them a service: whichever is killed, both come back, and the job
loses nothing. The test plays the service manager, and does what the unit file says.

usage: units.py --musterd MUSTERD --worker GOES_ON --unit MUSTERD@.SERVICE
"""
import os
import re
import shlex
import signal
import socket
import tempfile
import threading
import time

from base import Child, cases, check, main, must
from generations import WORKERS, Line, exact, undisturbed
from server import SECONDS

COMMITS, KILLS = 120, 4
WORDS = ("elems=20000", "pace_us=700")
BURST, BURST_S = 5, 10  # systemd's own limit of starts
KNOWN = {"Restart": "on-abnormal", "Type": "notify"}


def read_unit(path):
    """The settings of its section [Service]; of one that is there several times the last."""
    with open(path) as f:
        section = f.read().partition("[Service]\n")[2].partition("\n[")[0]
    return dict(re.findall(r"^(\w+)=(.*)$", section, re.M))


class Unit(threading.Thread):
    """A service: its process, which is started again whenever the unit file wants that."""

    def __init__(self, a, folder, name, **config):
        super().__init__()
        self.unit, self.ended, self.starts = read_unit(a.unit), [], []
        strange = {key: self.unit[key] for key in KNOWN if self.unit[key] != KNOWN[key]}
        must(not strange, "this test does not know what this means:", strange)
        path = os.path.join(folder, f"{name}.conf")
        with open(path, "w") as f:
            f.writelines(f"{key} = {value};\n" for key, value in config.items())
        words = shlex.split(self.unit["ExecStart"].replace("/etc/muster/%i.conf", path))
        must(path in words and words[2:] == [path, "--shm-group", "muster", "--no-core"], words)
        self.command = [a.musterd, *words[1:3], words[-1]]  # that group may not be there
        self.stopped = threading.Event()
        self.child, self.before = None, ""
        self.begin()
        self.start()

    def begin(self):
        self.starts.append(time.monotonic())
        self.child = Child(self.command)

    def wants_another(self, status):
        """Restart=on-abnormal is: a signal has ended it. RestartForceExitStatus adds statuses."""
        lately = [at for at in self.starts if time.monotonic() - at < BURST_S]
        return not self.stopped.is_set() and len(lately) < BURST and (
            status < 0 or str(status) in self.unit.get("RestartForceExitStatus", "").split())

    def run(self):
        while True:
            self.ended.append(self.child.process.wait())
            if not self.wants_another(self.ended[-1]):
                return
            self.before += self.child.said()
            self.stopped.wait(float(re.fullmatch(r"(\d+)s", self.unit["RestartSec"])[1]))
            self.begin()

    def said(self):
        return self.before + self.child.said()

    def end(self, seconds):
        """(the last exit status, all that was said), once nobody starts it again."""
        self.join(seconds)
        return None if self.is_alive() else self.ended[-1], self.said()

    def kill(self):
        self.stopped.set()
        while self.is_alive():
            self.child.process.kill()
            self.join(0.1)


class Units(Line):
    """A job whose two servers are such services."""

    def __init__(self, a, commits):
        self.a, self.folder, self.worker, self.before = a, tempfile.TemporaryDirectory(), [], []
        self.log, self.transport, self.of_worker = self.path("log"), "shm", {}
        self.held = socket.socket()
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind(("127.0.0.1", 0))
        self.listen = f"127.0.0.1:{self.held.getsockname()[1]}"
        patient = {"server_patience": '"60s"', "join_timeout": '"60s"', "server_lease": '"30s"'}
        self.server = Unit(a, self.folder.name, "leader", listen=f'"{self.listen}"', servers=2,
                           workers=WORKERS, owner='"workers"', commits=commits, **patient)
        self.follower = [Unit(a, self.folder.name, "follower", join=f'"{self.listen}"',
                              listen='"127.0.0.1:0"', **patient)]


def either_is_killed(a):
    digest = undisturbed(a, COMMITS, *WORDS)
    with Units(a, COMMITS) as job:
        job.join_all(*WORDS)
        leader, follower = job.server, job.follower[0]
        for number in range(KILLS):
            job.reaches(job.newest() + 10)
            unit = (leader, follower)[number % 2]
            os.kill(unit.child.process.pid, signal.SIGKILL)
        exact(job, COMMITS, digest)
        check("the follower ends with its leader", follower.end(SECONDS)[0] == 0)
        # Each kill takes both along. One that was not there yet may have been spared that.
        ends = leader.ended, follower.ended
        check(f"they have ended with {ends}", all(
            set(e) <= {-signal.SIGKILL, 75, 0} and e.count(-signal.SIGKILL) == KILLS / 2 and
            e.count(0) == 1 and 75 in e for e in ends))


CASES = cases(either_is_killed)
if __name__ == "__main__":
    main(CASES, "musterd", "worker", "unit")
