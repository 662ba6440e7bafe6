#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A server as a service: what it tells the service manager that has started it, what it keeps of
root's rights, and what a crash leaves behind. The test plays the service manager.

usage: service.py CASE --musterd TRIP_MUSTERD --worker WORKER --unit MUSTERD@.SERVICE
"""
import os
import pwd
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from base import CALM, HANG_S, Job, cases, check, main, must, until
from server import SECONDS, Server

WATCHDOG_US = 3_000_000
SILENT_S = 2  # three beats
EXPOSURE_MAX = 2.5  # of 10; versions of systemd differ a little, and all show up to 4.9 in green
OTHER = "nobody"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class Manager:
    """The end of a service manager."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.environment = {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(WATCHDOG_US)}

    def next(self, seconds=HANG_S):
        """The lines of the next message; None if there is none in this time."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(4096).decode().splitlines()
        except (TimeoutError, BlockingIOError):
            return None

    def wait_for(self, line):
        """Reads messages up to the one that has this line. Return: all of that one."""
        while True:
            lines = self.next()
            must(lines is not None, f"{line} does not come")
            if line in lines:
                return lines


def it_tells_that_it_listens_lives_and_ends(a):
    with tempfile.TemporaryDirectory() as folder:
        manager = Manager(folder)
        server = Server(a.musterd, "-n", "1", **manager.environment)
        first = manager.next()
        check(f"it is ready, and says where: {first}",
              first == ["READY=1", f"STATUS=listening on {server.address}"])
        for _ in range(3):
            manager.wait_for("WATCHDOG=1")
        print("it beats before there is a job")
        server.process.terminate()
        last = manager.wait_for("STOPPING=1")
        check(f"it says that it ends: {last}", "signal 15" in last[1])
        server.end(SECONDS)


def it_beats_for_a_job_and_tells_of_its_end(a):
    """With a shard that has nothing to do for most of the time."""
    with tempfile.TemporaryDirectory() as folder:
        manager = Manager(folder)
        with Job(a, "-n", "1", "--shards", "2", *CALM, **manager.environment) as job:
            job.elems = 10000
            job.work(0, *job.ended_by(0))
            job.begin()
            while manager.next(0) is not None:
                pass
            for _ in range(3):
                manager.wait_for("WATCHDOG=1")
            print("it beats while two threads serve a job")
            job.end_job()
            last = manager.wait_for("STOPPING=1")
            check(f"it says that it ends: {last}", last[1] == "STATUS=the job is over")
            check("all is well", job.server.end(SECONDS)[0] == 0)


def a_data_thread_that_is_stuck_gets_no_beat(a):
    """At most one more beat comes for what the thread had done before it was held."""
    with tempfile.TemporaryDirectory() as folder:
        manager = Manager(folder)
        place = os.path.join(folder, "server")
        with open(place, "w") as f:
            f.write("before put answer - 20\n")
        with Job(a, "-n", "1", *CALM, MUSTER_TRIP=folder, **manager.environment) as job:
            job.work(0, "rounds=0")
            check("the data thread is held", until(lambda: os.path.exists(place + ".held"), HANG_S))
            stuck, beats = False, 0
            while (lines := manager.next(0)) is not None:
                stuck = any("is stuck" in line for line in lines)
            while (lines := manager.next(SILENT_S if stuck else HANG_S)) is not None:
                stuck = any("is stuck" in line for line in lines)
                beats += "WATCHDOG=1" in lines
                must(beats <= 1, "beats go on without the data thread")
            check("the service manager hears that it is stuck, and no beat", stuck)
            check("so does the log", until(
                lambda: "the data thread has not passed" in job.server.said(), 60))
            check("its control thread lives", job.server.say(bytes(16)) is not None)
            with open(place + ".go", "w"):
                pass
            manager.wait_for("WATCHDOG=1")
            print("when the thread goes on, beats do, too")


def crash(a, *options):
    """Return: did a server with a job that crashes leave a core dump?"""
    a.musterd = os.path.abspath(a.musterd)
    with tempfile.TemporaryDirectory() as folder:

        def prepare():
            os.chdir(folder)
            hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
            resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

        with Job(a, "-n", "1", *CALM, *options, preexec_fn=prepare) as job:
            job.work(0, "rounds=0")
            job.begin()
            os.kill(job.server.process.pid, signal.SIGSEGV)
            _, status = os.waitpid(job.server.process.pid, 0)  # Popen would drop a part of it
            job.server.process.returncode = status
            must(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV, "it crashes")
            files = os.listdir(folder)
            must(os.WCOREDUMP(status) or not files, f"what is {files}?")
            return os.WCOREDUMP(status)


def a_crash_leaves_no_core_dump_where_none_is_wanted(a):
    check("none with --no-core", not crash(a, "--no-core"))
    if not crash(a):
        skip("this host makes no core dumps at all (ulimit -H -c, core_pattern)")
    print("one without")


def status_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def root_becomes_the_user_for_good(a):
    """The job goes on over shared memory, in a directory of the user's."""
    if os.geteuid() != 0:
        skip("only root can give up root's rights")
    user = pwd.getpwnam(OTHER)
    with tempfile.TemporaryDirectory() as runtime:
        os.chown(runtime, user.pw_uid, user.pw_gid)
        with Job(a, "-n", "1", *CALM, "--user", OTHER, "--no-core",
                 XDG_RUNTIME_DIR=runtime) as job:
            job.work(0, *job.ended_by(0))
            job.begin()
            now = status_of(job.server.process.pid)
            check(f"ids are the user's: {now['Uid']}",
                  now["Uid"].split() == [str(user.pw_uid)] * 4)
            check(f"groups too: {now['Gid']}", now["Gid"].split() == [str(user.pw_gid)] * 4)
            groups = {int(group) for group in now["Groups"].split()}
            check(f"all of them: {groups}",
                  groups == set(os.getgrouplist(user.pw_name, user.pw_gid)))
            for kind in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
                check(f"no capability is left: {kind}", int(now[kind], 16) == 0)
            check("and none can be had by a program", now["NoNewPrivs"] == "1")
            shared = os.stat(os.path.join(runtime, "muster"))
            check("the directory of sockets is the user's",
                  (shared.st_uid, shared.st_mode & 0o777) == (user.pw_uid, 0o700))
            job.end_job()
            check("the job ends well", job.server.end(SECONDS)[0] == 0)


def only_root_can_become_another(a):
    """Each is told in words, and no server starts."""
    if os.geteuid() != 0:
        command = [a.musterd, "-n", "1", "--listen", "127.0.0.1:0", "--user", OTHER]
    else:
        command = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups", a.musterd,
                   "-n", "1", "--listen", "127.0.0.1:0", "--user", OTHER]
        if subprocess.run([*command[:6], "test", "-x", a.musterd], check=False).returncode != 0:
            skip("other users cannot execute this build")
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    check(f"it is refused: {done.stderr}", done.returncode == 1 and
          f"only root can become the user {OTHER}, and this process is run by uid " in done.stderr)


def the_unit_is_confined(a):
    """As systemd counts, without a running systemd."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        skip("there is no systemd-analyze here")
    with tempfile.TemporaryDirectory() as folder:
        unit = os.path.join(folder, "musterd@.service")
        shutil.copy(a.unit, unit)
        command = [tool, "security", "--no-pager", "--offline=yes",
                   f"--threshold={EXPOSURE_MAX * 10:.0f}", unit]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
    if "unrecognized option" in done.stdout:
        skip("this systemd-analyze judges no unit files, only running services")
    last = [line for line in done.stdout.splitlines() if "exposure level" in line]
    must(last, f"{' '.join(command)}: {done.stdout}")
    check(f"its exposure is below {EXPOSURE_MAX}: {last[0]}", done.returncode == 0)


def the_unit_starts_a_server_again_whose_job_goes_on(a):
    """It has ended because of another server, by the status that --help tells of."""
    with open(a.unit) as f:
        forced = re.search(r"^RestartForceExitStatus=(\d+)$", f.read(), re.M)
    told = subprocess.run([a.musterd, "--help"], check=True, capture_output=True, text=True).stdout
    row = re.search(rf"^ +{forced[1]} +(.*)$", told, re.M)
    check(f"that is {forced[1]}: {row}", row is not None and "started again" in row[1])


CASES = cases(it_tells_that_it_listens_lives_and_ends, it_beats_for_a_job_and_tells_of_its_end,
              a_data_thread_that_is_stuck_gets_no_beat,
              a_crash_leaves_no_core_dump_where_none_is_wanted, root_becomes_the_user_for_good,
              only_root_can_become_another, the_unit_is_confined,
              the_unit_starts_a_server_again_whose_job_goes_on)
# Under a sanitizer a crash is the sanitizer's, which leaves no core dump.
main(CASES, "musterd", "worker", "unit", leave_out=[
    "a_crash_leaves_no_core_dump_where_none_is_wanted", "the_unit_is_confined",
    "root_becomes_the_user_for_good", "only_root_can_become_another"],
     # A silence of two seconds; and a caller has five seconds for its words.
     clock=("a_data_thread_that_is_stuck_gets_no_beat",))
