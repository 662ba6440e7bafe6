#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What an exit status says: of every program whose output does not reach a disk, of jobs that end
before their goal, and of ranks that are started again.

usage: exits.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER
       exits.py --list
"""
import json
import os
import re
import signal
import subprocess
import tempfile

from base import CALM, HANG_S, Child, Job, cases, check, main, must, prove, until
from server import Server

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FULL = "No space left on device"


def run(*command, stdout=subprocess.PIPE, pipes=True, **env):
    """@pipes: False: a pipe without a reader is an error, not the end of the program."""
    plain = {k: v for k, v in os.environ.items() if k != "MUSTER_SERVER"}
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stdout, text=True,
                          stderr=subprocess.PIPE, timeout=3 * HANG_S, env={**plain, **env},
                          restore_signals=pipes)


class Things:
    """What commands look at: a server, a recording, a directory of checkpoints, keys."""

    def __init__(self, a):
        self.a, self.folder = a, tempfile.TemporaryDirectory(prefix="muster-test-")
        self.server = Server(a.musterd, "--workers", "1", "--join-timeout", "never")

    def __enter__(self):
        done = run(self.a.muster, "run", "-n", "2", *CALM, "--quiet", "--listen", "127.0.0.1:0",
                   "--commits", "20", "--state", self.path("state"), "--record", self.path("trace"),
                   "--", self.a.worker, self.path("log"), "100")
        must(done.returncode == 0, done.stderr)
        must(run(self.a.muster, "key", "new", self.path("keys")).returncode == 0, "no keys")
        return self

    def __exit__(self, *_):
        self.server.kill()

    def path(self, name):
        return os.path.join(self.folder.name, name)


def commands(muster):
    return re.findall(r"^  muster (\w+)", run(muster, "--help").stdout, re.M)


# ---- streams and files on a full device ----

def printed(a):
    """Whatever a program prints and a full disk does not take is missing, which its status says."""
    with Things(a) as t:
        sim = [a.muster, "sim", "-n", "2", "--delay", "exp:20", "--commits", "10"]
        lines = [[a.musterd, "--help"], [a.musterd, "--version"],
                 [a.musterd, "-n", "2", "--print-config"],
                 [a.musterd, "-n", "2", "--budget", "1M"],
                 [a.muster, "--help"], [a.muster, "--version"],
                 [a.muster, "run", "-n", "2", "--print-config", "--", "true"],
                 [a.muster, "key", "show", t.path("keys")],
                 [a.muster, "status", t.server.address],
                 [a.muster, "status", t.server.address, "--json", "-"],
                 sim, [*sim, "--json", "-"], [*sim, "--csv", "-"],
                 [a.muster, "plan", "--trace", t.path("trace")],
                 [a.muster, "plan", "--trace", t.path("trace"), "--json", "-"],
                 [a.muster, "plan", "--trace", t.path("trace"), "--csv", "-"],
                 [a.muster, "checkpoint", t.path("state"), "--verify"],
                 [a.muster, "checkpoint", t.path("state"), "--json", "-"]]
        names = commands(a.muster)
        must(len(names) > 10, "muster --help lists", names)
        lines += [[a.muster, name, "--help"] for name in names]
        for line in lines:
            what = " ".join([os.path.basename(line[0]), *line[1:]])
            done = run(*line, stdout=subprocess.DEVNULL)
            must(done.returncode == 0, what, done.returncode, done.stderr)
            with open("/dev/full", "wb") as full:
                done = run(*line, stdout=full)
            must(done.returncode == 3 and done.stderr.count(FULL) == 1, what,
                 "exit", done.returncode, done.stderr)
        check(f"{len(lines)} command lines", True)
        # What it was asked for is done all the same.
        with open("/dev/full", "wb") as full:
            done = run(a.muster, "key", "new", t.path("more"), stdout=full)
        check("keys are made, and what is printed is missing",
              done.returncode == 3 and os.path.exists(t.path("more/ca.pem")))
        with open("/dev/full", "wb") as full:
            done = run(a.muster, "doctor", stdout=full)
        wanted = run(a.muster, "doctor").returncode or 3
        check("what has failed has failed", done.returncode == wanted and
              "cannot write to standard output" in done.stderr)


def figures(a):
    """So it is with files of figures."""
    with Things(a) as t:
        for words in (("status", t.server.address), ("checkpoint", t.path("state")),
                      ("plan", "--trace", t.path("trace")),
                      ("sim", "-n", "2", "--delay", "exp:20", "--commits", "10"),
                      ("bench", "-n", "1", "--sizes", "4K", "--samples", "5", "--lease", "60s")):
            for option in ("--json", "--csv") if words[0] in ("plan", "sim") else ("--json",):
                done = run(a.muster, *words, option, "/dev/full")
                check(f"{words[0]} {option}: {done.stderr.strip()}",
                      done.returncode == 3 and "/dev/full" in done.stderr)


def a_reader_that_closes(a):
    """A reader who takes the first lines only has what he wants: only the status tells it."""
    for program in a.musterd, a.muster:
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            done = run(program, "--help", stdout=pipe, pipes=False)
        check(f"{os.path.basename(program)}: {done.returncode} {done.stderr}",
              done.returncode == 3 and done.stderr == "")


def a_server_alone(a):
    """The status of musterd says what is missing, too: rows, or the last checkpoint. Workers notice
    nothing, and a job that is interrupted is that."""
    with Job(a, "--workers", "2", *CALM, "--commits", "20", "--record", "/dev/full") as job:
        job.work_all(2)
        check("the workers are through", job.codes(HANG_S) == [0, 0])
        check("rows are missing", re.search(
            rf"missing at the end: (\d+) of the \1 rows of the recording /dev/full: {FULL}",
            ended(job, 3)))
    for by_signal in False, True:
        with tempfile.TemporaryDirectory(prefix="muster-test-") as folder:
            state = os.path.join(folder, "state")
            with Job(a, "--workers", "2", *CALM, "--state", state) as job:
                job.work_all(2, "sleep_us=1000", *job.ended_by(0))
                job.begin()
                os.rename(state, state + ".gone")
                if by_signal:
                    job.server.process.terminate()
                else:
                    job.end_job()
                job.codes(HANG_S)
                said = ended(job, 128 + signal.SIGTERM if by_signal else 3)
                check("a checkpoint is missing", re.search(
                    r"missing at the end: the checkpoint of version \d+: .*No such file", said))


def configuration(a):
    """A printed configuration that was cut off anywhere is refused."""
    whole = run(a.musterd, "-n", "3", "--print-config").stdout
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "c.conf")

        def read(text):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return run(a.musterd, "-c", path, "--print-config")

        done = read(whole)
        check("a whole one is read, and printed again", done.returncode == 0 and
              done.stdout == whole)
        lines = whole.splitlines(keepends=True)
        for cut in (0, 1, len(lines[0]), len(whole) // 3, len(whole) // 2, len(whole) - 2,
                    len(whole) - len(lines[-1])):
            done = read(whole[:cut])
            check(f"{cut} of {len(whole)} bytes: {done.stderr.splitlines()[0]}",
                  done.returncode == 2 and re.search("is cut off|is empty", done.stderr))
        check("one that was written by hand needs no such line",
              read("workers = 3;\n").returncode == 0)
        check("lines may be added", read(whole + "# mine\n").returncode == 0)


# ---- goals ----

def ended(job, status):
    got, said = job.server.end(HANG_S)
    must(got == status, "musterd ends with", got, said)
    return said


def left_before_the_goal(a):
    """A job that all workers leave before its goal has failed, and says how far it came."""
    for goal, words in (["--commits", "1000"], "10 of 1000 commits"), \
            (["--samples", "1000"], "20 of 1000 samples"), \
            (["--commits", "1000", "--samples", "5000"], "10 of 1000 commits, 20 of 5000 samples"):
        with Job(a, "--workers", "2", *CALM, *goal) as job:
            job.work_all(2, "rounds=10")
            job.codes(HANG_S)
            check(f"{goal}: {words}", "has failed: all workers have left before the goal of the "
                  f"job: {words}" in ended(job, 1))
            job.proven()
    for goal in [], ["--commits", "10"], ["--commits", "10", "--samples", "1e6"]:
        with Job(a, "--workers", "2", *CALM, *goal) as job:
            job.work_all(2, "rounds=10")
            check(f"{goal}: the workers are through", job.codes(HANG_S) == [0, 0])
            check("and the job is finished", "is finished at version 10" in ended(job, 0))


def the_run_says_so(a):
    """So do summary, figures and status of muster run, with several servers too."""
    for servers, finish, status in ("1", 0, 1), ("2", 0, 1), ("1", 1, 0):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x")
            done = run(a.muster, "run", "-n", "2", *CALM, "--grace", "60s", "--listen",
                       "127.0.0.1:0", "--servers", servers, "--commits", "1000", "--json", path,
                       "--", a.worker, os.path.join(folder, "log"), "9000", "rounds=10",
                       f"1:finish={finish}")
            must(done.returncode == status, done.returncode, done.stderr)
            with open(path, encoding="utf-8") as f:
                told = json.load(f)
            words = r"rank 1 finished the job: .* \(\d+ of 1000 commits\)" if finish else \
                r"all workers have left before the goal of the job: \d+ of 1000 commits"
            state = "finished" if finish else "failed"
            check(f"{told['state']}: {told['why']}", told["state"] == state and
                  re.fullmatch(words, told["why"]))
            check("in the summary, too", re.search(rf"^{state} after .*: {words}$", done.stderr,
                                                   re.M))


def finished_by_an_operator(a):
    """That is done, by whom and how far is told; the answer has the address and the job's name."""
    with Job(a, "--workers", "2", *CALM, "--commits", "1000000", "--job", "tide") as job:
        job.elems = 100
        for rank in range(2):
            job.worker.append(Child([a.worker, job.log, "100", "rounds=1000000"], MUSTER_JOB="tide",
                                    MUSTER_SERVER=job.address, MUSTER_RANK=str(rank)))
        job.begin()
        done = run(a.muster, "finish", "--why", "enough")
        check("without an address nothing is done", done.returncode == 2 and
              "which job?" in done.stderr)
        done = run(a.muster, "rest", "1", job.address)
        check(done.stdout.strip(), done.stdout.startswith(f'{job.address}: job "tide": rank 1'))
        done = run(a.muster, "finish", "--why", "enough", MUSTER_SERVER=job.address)
        check(done.stdout.strip(), done.returncode == 0 and re.fullmatch(
            rf'{job.address}: job "tide" is finished at version \d+: an operator finished the job: '
            r"enough \(\d+ of 1000000 commits\)\n", done.stdout))
        check("the workers are through", job.codes(HANG_S) == [0, 0])
        ended(job, 0)


# ---- ranks ----

# The first process of each rank leaves a mark; of rank 2 it kills itself, and the next one ends the
# job, so that nothing depends on how long it takes to come.
AGAIN = ('if [ -e "$0.$MUSTER_RANK" ]; then exec "$@" again=1 rounds=20 finish=1; fi; '
         'touch "$0.$MUSTER_RANK"; exec "$@" rounds=1000000 2:die=10')


def restarted(a):
    """muster run --restarts: a rank that was killed takes part again, and the job is done."""
    with tempfile.TemporaryDirectory() as folder:
        log, path = os.path.join(folder, "log"), os.path.join(folder, "x")
        done = run(a.muster, "run", "-n", "3", *CALM, "--grace", "60s", "--listen", "127.0.0.1:0",
                   "--restarts", "1", "--json", path, "--", "sh", "-c", AGAIN,
                   os.path.join(folder, "mark"), a.worker, log, "100", "sleep_us=1000")
        must(done.returncode == 0, done.returncode, done.stderr)
        with open(path, encoding="utf-8") as f:
            told = json.load(f)
        check(told["why"], told["why"].startswith("rank 2 finished the job"))
        ranks = [(r["exit"], r["restarts"], r["incarnation"]) for r in told["ranks"]]
        check(f"exit, restarts and sessions: {ranks}", ranks == [(0, 0, 1), (0, 0, 1), (0, 1, 2)])
        prove(log, "--optimizer", "sgd:0.1,0.9", "--kills")


def left_early(a):
    """A rank that left before the job ended is named by server and summary, with both versions; one
    that left with the others is not. One that has failed by itself is in the status, too."""
    for rounds, status in ("2:rounds=20", 0), ("2:rounds=30", 0), ("2:rounds=20", 5):
        early = rounds == "2:rounds=20"
        with tempfile.TemporaryDirectory() as folder:
            done = run(a.muster, "run", "-n", "3", *CALM, "--grace", "60s", "--listen",
                       "127.0.0.1:0", "--", "sh", "-c",
                       f'"$@" || exit; exit $((MUSTER_RANK == 2 ? {status} : 0))', "sh",
                       a.worker, os.path.join(folder, "log"), "100", "rounds=30", rounds)
        check(f"{rounds}, then status {status}: {done.returncode}",
              done.returncode == int(status > 0))
        check("the rank that failed is named", ("\nfailed: rank 2 exited with status 5\n"
                                                in done.stderr) == (status > 0))
        words = "rank 2 left at version 20; the job ended at version 30\n"
        must(("\n" + words in done.stderr, f'musterd: job "default": {words}' in done.stderr) ==
             (early, early), done.stderr)


def a_start_that_fails(a):
    """The reason of a start that fails is told, twice, and how the rest was ended is not."""
    for servers in "1", "2":
        with tempfile.TemporaryDirectory() as folder:
            done = run(a.muster, "run", "-n", "3", *CALM, "--servers", servers, "--listen",
                       "127.0.0.1:0", "--", "sh", "-c",
                       '[ $MUSTER_RANK != 1 ] || exit 3; exec "$@"', "sh", a.worker,
                       os.path.join(folder, "log"), "9000", "rounds=30")
        check(f"{servers} servers: {done.returncode}", done.returncode == 1)
        lines = [line for line in done.stderr.splitlines() if re.search(" error | warn ", line)
                 and " is gone: its " not in line and "link could not be set up" not in line]
        must("rank 1 exited with status 3 before the job had" in done.stderr and
             (len(lines) == 1 or servers == "2"), done.stderr)
        must("SIGTERM" not in done.stderr and "signal 15" not in
             re.sub(r"^ .*", "", done.stderr, flags=re.M), done.stderr)
        check("and is the summary's", "failed after 0: rank 1 exited with" in done.stderr)


# ---- what is said ----

def the_table(a):
    """There is one table, in every help of all commands, and in README.md."""
    table = re.search(r"^exit status:\n((?:  \S.*\n)+)", run(a.musterd, "--help").stdout, re.M)[1]
    check("muster has the same", table in run(a.muster, "--help").stdout)
    rows = re.findall(r"^  (\S+) +(.*)$", table, re.M)
    check("0, 1, 2, 3, 75 and 128+n",
          [status for status, _ in rows] == ["0", "1", "2", "3", "75", "128+n"])
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        text = f.read()
    for status, means in rows:
        check(f"{status}: {means}", f"| {status} | {means} |" in text)


def workers_own(a):
    """Where workers own, a server that saves says at the start that no parameters are saved."""
    for owner in "workers", "servers":
        with tempfile.TemporaryDirectory(prefix="muster-test-") as folder:
            server = Server(a.musterd, "-n", "1", "--owner", owner, "--state",
                            os.path.join(folder, "state"))
            try:
                must(until(lambda s=server: "listening on" in s.said(), HANG_S), server.said())
                check(f"{owner} own", ("no parameters will be in the checkpoints" in server.said())
                      == (owner == "workers"))
            finally:
                server.kill()


CASES = cases(printed, figures, a_reader_that_closes, a_server_alone, configuration,
              left_before_the_goal, the_run_says_so, finished_by_an_operator, restarted, left_early,
              a_start_that_fails, the_table, workers_own)
main(CASES, "musterd", "worker", "muster",
     leave_out=("printed", "figures", "a_reader_that_closes", "configuration", "the_table",
                "workers_own"),
     quick=("configuration", "the_table", "workers_own"))
