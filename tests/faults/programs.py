#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whole programs, whose calls of the system fail in turn: what is said then is an error in words,
or nothing went wrong; no program crashes, hangs, or leaves processes behind. Which calls there are
to fail, runs without a fault tell.

usage: programs.py CASE MUSTER FAULTY_MUSTER MUSTERD FAULTY_MUSTERD FAKE_MUSTERD WORKER [MOST]
  MOST  calls of a kind are tried at most: what fails later leaves by the same code
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import scene

AT_ONCE = 4  # a run mostly waits
NEVER = 10**9  # so many calls of a kind no run makes
CRASHES = re.compile(r"Sanitizer|runtime error|assert|stack smashing|free\(\)", re.I)
MUSTER, FAULTY_MUSTER, MUSTERD, FAULTY_MUSTERD, FAKE, WORKER = sys.argv[2:8]
MOST = int(sys.argv[8]) if len(sys.argv) > 8 else NEVER


def made_calls(report):
    """{call: count} of what faulty.c reports."""
    return {call: int(count) for call, count in map(str.split, report.splitlines())}


class Case:
    """A command line. `most`: so many calls of a kind are tried."""

    most = 30
    seconds = 120
    statuses = (0, 1, 2, 3)
    unharmed = (0,)  # statuses of a run that no fault has struck

    def begin(self):
        """Starts what all runs need."""

    def end(self):
        """Ends it."""

    def command(self, folder):
        """@folder: of this run alone."""
        raise NotImplementedError

    def environment(self):
        return {}


class Status(Case):
    """muster status, as JSON too"""

    most = 600

    def begin(self):
        ready, write = os.pipe()
        env = dict(os.environ, FAKE_JOB="run:600000", MUSTER_READY_FD=str(write))
        self.server = subprocess.Popen([FAKE, "--workers=3", "--listen=127.0.0.1:0"], env=env,
                                       pass_fds=[write])
        os.close(write)
        with os.fdopen(ready) as line:
            self.address = line.read().split()[-1]

    def end(self):
        self.server.kill()
        self.server.wait()

    def command(self, folder):
        return [FAULTY_MUSTER, "status", "--json", str(folder / "status"), self.address]


class Doctor(Case):
    """muster doctor; without a device it finds faults by itself"""

    most = 12
    unharmed = (0, 1)

    def command(self, folder):
        return [FAULTY_MUSTER, "doctor", "--json", str(folder / "doctor")]


class Run(Case):
    """muster run, with the real server and workers"""

    most = 12

    def command(self, folder):
        return [FAULTY_MUSTER, "run", "-n", "2", "--listen", "127.0.0.1:0", "--lease", "10s",
                "--join-timeout", "20s", "--json", str(folder / "run"), "--", WORKER]

    def environment(self):
        return {"MUSTER_MUSTERD": MUSTERD}


class Daemon(Case):
    """musterd, under a muster run that no fault strikes"""

    most = 6

    def command(self, folder):
        config = folder / "config"
        config.write_text("workers = 2;\nlease = \"10s\";\njoin_timeout = \"20s\";\n")
        return [MUSTER, "run", "-n", "2", "--listen", "127.0.0.1:0", "--config", str(config), "--",
                WORKER]

    def environment(self):
        return {"MUSTER_MUSTERD": FAULTY_MUSTERD}


CASES = {"status": Status, "doctor": Doctor, "run": Run, "musterd": Daemon}


class Trial:
    """One run with one fault."""

    def __init__(self, case, call, number):
        self.text = f"{call} {number}"
        self.call, self.number = call, number
        self.complaints = []
        mark = "FAULT_MARK=" + uuid.uuid4().hex
        env = dict(os.environ, **case.environment())
        env[mark.split("=")[0]] = mark.split("=")[1]
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report"
            env["MUSTER_FAULT"] = f"{self.text} {report}"
            self.run(case.command(pathlib.Path(folder)), env, case.seconds)
            self.made = made_calls(report.read_text()) if report.exists() else None
        self.judge(case, scene.tagged(mark))

    def run(self, command, env, seconds):
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.out, self.err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            self.out, self.err = process.communicate()
            self.complaints.append(f"did not end within {seconds} s")
        self.status = process.returncode

    def struck(self):
        return self.made is None or self.made[self.call] >= self.number

    def judge(self, case, left):
        if self.made is None and "cannot start" not in self.err:
            self.complaints.append("ended without its report")
        if CRASHES.search(self.err):
            self.complaints.append("crashed")
        if self.status not in (case.statuses if self.struck() else case.unharmed):
            self.complaints.append(f"ended with status {self.status}")
        if self.status != 0 and len(self.err) + len(self.out) < 10:
            self.complaints.append("failed without a word")
        if left:
            self.complaints.append(f"left {len(left)} processes behind")
        for pid in left:
            os.kill(pid, 9)

    def complain(self):
        for complaint in self.complaints:
            print(f"{self.text} failed: {complaint}\n{self.err}", flush=True)
        return len(self.complaints)


def calls_of(case, pool):
    """How many calls of each kind the case makes, where nothing fails; where that varies, the most.
    Return: {call: count}, complaints."""
    trials = list(pool.map(lambda _: Trial(case, "malloc", NEVER), range(AT_ONCE)))
    counts = {}
    for trial in trials:
        for call, count in (trial.made or {}).items():
            counts[call] = max(count, counts.get(call, 0))
    return counts, sum(trial.complain() for trial in trials)


def play(case, pool):
    """Return: failure points, complaints."""
    most = min(case.most, MOST)
    counts, complaints = calls_of(case, pool)
    points = [(call, number) for call, count in counts.items()
              for number in range(1, min(count, most) + 1)]
    struck = collections.Counter()
    for trial in pool.map(lambda point: Trial(case, *point), points):
        complaints += trial.complain()
        struck[trial.call] += trial.struck()
    print(" ".join(f"{call} {found}{'+' if found == most else ''}"
                   for call, found in struck.items()))
    return struck.total(), complaints


def file_size():
    """What `ulimit -f` allows is too little for a job: musterd refuses it, and lives to say so."""
    limit = (8192, 8192)
    env = dict(os.environ, MUSTER_MUSTERD=MUSTERD)
    done = subprocess.run([MUSTER, "run", "-n", "2", "--listen", "127.0.0.1:0", "--join-timeout",
                           "60s", "--", WORKER], env=env, text=True, capture_output=True,
                          timeout=120, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
    said = "cannot set up job" in done.stderr and "File too large" in done.stderr
    killed = "killed by signal" in done.stderr
    if not said or killed or done.returncode != 1:
        print(f"status {done.returncode}\n{done.stderr}")
    sys.exit(0 if said and not killed and done.returncode == 1 else 1)


def main():
    name = sys.argv[1]
    if name == "file_size":
        file_size()
    case = CASES[name]()
    case.begin()
    try:
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            points, complaints = play(case, pool)
    finally:
        case.end()
    print(f"{name}: failure points: {points}, complaints: {complaints}")
    sys.exit(1 if complaints or points < 10 else 0)


if __name__ == "__main__":
    main()
