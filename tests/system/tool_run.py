#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster run alone: its workers are shell scripts, and its musterd follows a script, too.

usage: tool_run.py MUSTER FAKE_MUSTERD [unittest's arguments]
"""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time

import scene
from base import tagged, until
from server import SECONDS

SLEEP = ("sleep", "60")
# For workers that start late on a busy host. A test of what the grace is for sets its own.
GRACE = ("--grace", f"{SECONDS}s")
# Where what is said is compared, it is not that another test has the usual port.
ANY_PORT = ("--listen", "127.0.0.1:0")

# A musterd that loses the usual port to somebody else, who holds it for a second; or, if another
# test has it, to that.
THIEF = """#!/bin/sh
case "$*" in
*:17077*)
	setsid /usr/bin/python3 -c '
import os, socket, time
try:
    held = socket.create_server(("127.0.0.1", 17077))
except OSError:
    held = None
open(os.environ["HERE"] + "/taken", "w").close()
time.sleep(1)' &
	while ! [ -e "$HERE/taken" ]; do sleep 0.02; done
	echo "port taken" > /proc/self/fd/$MUSTER_READY_FD
	exit 1 ;;
esac
exec "$FAKE" "$@"
"""


# By which musterd says so.
TAKEN = "echo port taken > /proc/self/fd/$MUSTER_READY_FD"


def sh(text):
    return ("sh", "-c", text)


# Waits until the worker that has written its number to $HERE/pid is gone, and the run knows it.
GONE = ("until [ -e $HERE/pid ]; do sleep 0.05; done; "
        "while kill -0 $(cat $HERE/pid) 2> /dev/null; do sleep 0.05; done; ")
OVER = "until [ -e $HERE/over ]; do sleep 0.05; done"
SAY_PID = "echo $$ > $HERE/part; mv $HERE/part $HERE/pid; "


class Scene(scene.Scene):
    def start(self, script, *args, **more):
        return super().start(script, *GRACE, *args, **more)


class Starting(Scene):
    def test_environment(self):
        """each worker is told the server, the job, its rank and their number"""
        rc, out, _ = self.run_muster("run:300 finish", "-n", "3", "--job", "tide", "--", *sh(
            "echo $MUSTER_JOB $MUSTER_RANK $MUSTER_WORKERS $MUSTER_SERVER; sleep 0.5"))
        lines = sorted(line.split() for line in out.splitlines())
        self.assertEqual(rc, 0)
        self.assertEqual([line[:3] for line in lines],
                         [["tide", str(rank), "3"] for rank in range(3)])
        self.assertTrue(all(line[3].startswith("127.0.0.1:") for line in lines))

    def test_clean(self):
        """a worker starts with no signal blocked, and with nothing to read"""
        for program, said in ((("grep", "SigBlk", "/proc/self/status"), "SigBlk:\t" + "0" * 16),
                              (("wc", "-c"), "0")):
            _, out, _ = self.run_muster("run:100 finish", "-n", "1", "--", *program)
            self.assertEqual(out, said + "\n")

    def test_flags(self):
        """options of the server are handed on as typed; of the own ones, only that it is quiet"""
        conf = self.path("c.conf")
        with open(conf, "w") as f:
            f.write('lease = "3s";\n')
        self.run_muster("run:100 finish", "-q", "-n2", "-c", conf, "--policy=backup:1", "--force",
                        "--json", self.path("x"), "--grace=9s", "--on-loss", "fail", "--listen",
                        "127.0.0.1:0", "--", "sleep", "0.2", FAKE_ARGS=self.path("args"))
        self.assertEqual(self.read("args").split("\n"),
                         ["--log-level=warn", "-c", conf, "--policy=backup:1", "--force",
                          "--on-loss", "fail", "--workers=2", "--listen=127.0.0.1:0", ""])

    def test_file_workers(self):
        """the number of workers may come from the file"""
        with open(self.path("c.conf"), "w") as f:
            f.write('workers = 3;\njob = "reef";\n')
        _, out, _ = self.run_muster("run:300 finish", "-q", "-c", self.path("c.conf"), "--",
                                    *sh("echo $MUSTER_JOB; sleep 0.4"))
        self.assertEqual(out.split(), ["reef"] * 3)

    def test_port_taken(self):
        """if the usual port is taken the run takes another, and a warning says which, also of a
        quiet run: commands without an address would go to the other"""
        with contextlib.ExitStack() as stack:

            def takes_it():  # once the job of another test is over
                other = socket.socket()
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    other.bind(("127.0.0.1", 17077))
                    other.listen()
                except OSError:
                    other.close()
                    return False
                stack.enter_context(other)
                return True

            self.assertTrue(until(takes_it, 200), "who has port 17077?")
            rc, _, err = self.run_muster("run:100 finish", "-n", "1", "--", "sleep", "0.2")
            quiet = self.run_muster("run:100 finish", "-q", "-n", "1", "--", "sleep", "0.2")[2]
        self.assertEqual(rc, 0)
        port = re.search(r"listens on 127\.0\.0\.1:(\d+)", err).group(1)
        self.assertNotEqual(port, "17077")
        for said in (err.replace("listens on", ""), quiet):
            self.assertRegex(said, r"warn muster: 127\.0\.0\.1:17077 is taken by another process")
        self.assertIn(f"has 127.0.0.1:{port} instead", err)

    def test_port_lost(self):
        """a port that is taken between a look at it and musterd's start is given up for another"""
        with open(self.path("musterd"), "w") as f:
            f.write(THIEF)
        os.chmod(self.path("musterd"), 0o755)
        rc, _, err = self.run_muster("run:100 finish", "-n", "1", "--", "sleep", "0.2",
                                     FAKE=scene.FAKE, MUSTER_MUSTERD=self.path("musterd"))
        self.assertEqual(rc, 0, err)
        self.assertTrue(until(lambda: not tagged(self.mark), SECONDS))

    def test_port_lost_and_free_again(self):
        """so it is where the other has gone since, and the port looks free"""
        with open(self.path("musterd"), "w") as f:
            f.write(f'#!/bin/sh\ncase "$*" in *:17077*) {TAKEN}; exit 1;; esac\n'
                    'exec "$FAKE" "$@"\n')
        os.chmod(self.path("musterd"), 0o755)
        rc, _, err = self.run_muster("run:100 finish", "-n", "1", "--", "sleep", "0.2",
                                     FAKE=scene.FAKE, MUSTER_MUSTERD=self.path("musterd"))
        self.assertEqual(rc, 0, err)

    def test_refusal_once(self):
        """a musterd that refuses for another reason is started once, and says so once"""
        with open(self.path("musterd"), "w") as f:
            f.write("#!/bin/sh\necho 'no, not on this host' >&2\nexit 1\n")
        os.chmod(self.path("musterd"), 0o755)
        rc, _, err = self.run_muster("", "-n", "1", "--", "true",
                                     MUSTER_MUSTERD=self.path("musterd"))
        self.assertEqual((rc, err.count("no, not on this host")), (1, 1), err)
        self.assertIn("musterd exited with status 1 before it could listen", err)

    def test_no_port_anywhere(self):
        """a musterd that finds every port taken is started twice, and no more"""
        with open(self.path("musterd"), "w") as f:
            f.write(f"#!/bin/sh\n{TAKEN}\necho taken >&2\nexit 1\n")
        os.chmod(self.path("musterd"), 0o755)
        rc, _, err = self.run_muster("", "-n", "1", "--", "true",
                                     MUSTER_MUSTERD=self.path("musterd"))
        self.assertEqual(rc, 1, err)
        self.assertIn(err.count("taken\n"), (1, 2), err)  # 1: somebody has the usual one now

    def test_together(self):
        """runs that start at the same moment do not take each other's port"""
        runs = [self.start("run:300 finish", "-n", "1", "--", "sleep", "0.4") for _ in range(5)]
        ends = [self.finish(run) for run in runs]
        self.assertEqual([end[0] for end in ends], [0] * 5, ends)

    def test_no_program(self):
        """a program that is not there is named, and all is over"""
        rc, _, err = self.run_muster("gather:60000", "-n", "2", "--", "./no-such-program")
        self.assertEqual(rc, 1)
        self.assertIn("cannot start ./no-such-program as rank 0: No such file", err)
        rc, _, err = self.run_muster("gather:60000", "-n", "2", "--", "no-such-program")
        self.assertEqual(rc, 1)
        self.assertIn("looked for in PATH, and a file in this directory is ./NAME", err)

    def test_odd_name(self):
        """whatever a program is called, the figures as JSON say that it could not be started"""
        rc, _, err = self.run_muster("gather:60000", "-n", "1", "--json", self.path("x"), "--",
                                     b"./\033[2J\xff")
        self.assertEqual((rc, "\033" in err), (1, False))
        self.assertIn("cannot start ./?[2J? as rank 0", json.loads(self.read("x"))["why"])

    def test_odd_end(self):
        """what musterd says of the end reaches terminal and JSON without controls, as UTF-8"""
        rc, _, err = self.run_muster("run:200 rave finish", "-n", "1", "--json", self.path("x"),
                                     "--", "sleep", "0.3")
        self.assertEqual((rc, "\033" in err), (0, False))
        self.assertEqual(json.loads(self.read("x"))["why"], "?]0;mine? caf\u00e9 ???? end")

    def test_no_musterd(self):
        """a musterd that cannot listen ends the run with its status"""
        rc, _, err = self.run_muster("refuse", "-n", "2", "--", *SLEEP)
        self.assertEqual(rc, 1)
        self.assertIn("musterd exited with status 1 before it could listen", err)

    def test_musterd_missing(self):
        """where musterd cannot be found the variable that names it is"""
        rc, _, err = self.run_muster("", "-n", "2", "--", *SLEEP, MUSTER_MUSTERD="/nowhere/musterd")
        self.assertEqual(rc, 1)
        self.assertIn("cannot start /nowhere/musterd: No such file", err)
        self.assertIn("MUSTER_MUSTERD", err)

    def test_usage(self):
        """wrong usage is 2, and says what would be right"""
        for args, sentence in ((("-n", "2"), "no program"), (("--", "true"), "-n W"),
                               (("-n", "2", "--polcy", "bsp"), "--policy"),
                               (("-n", "0", "--", "true"), "from 1 to 4096"),
                               (("-n", "2", "--policy", "backup:3", "--", "true"), "backup:3")):
            rc, _, err = self.run_muster("", *args)
            self.assertEqual((rc, sentence in err), (2, True), (args, err))


class Ending(Scene):
    def test_early_death(self):
        """a worker that fails before the start ends the run at once, with its rank and status"""
        begun = time.monotonic()
        rc, _, err = self.run_muster("gather:60000", "-n", "3", "--",
                                     *sh("[ $MUSTER_RANK != 1 ] || exit 7; exec sleep 60"))
        self.assertEqual(rc, 1)
        self.assertIn("rank 1 exited with status 7 before the job had started", err)
        self.assertLess(time.monotonic() - begun, 30)

    def test_early_kill(self):
        """so does one that is killed"""
        rc, _, err = self.run_muster("gather:60000", "-n", "2", "--",
                                     *sh("[ $MUSTER_RANK != 1 ] || kill -9 $$; exec sleep 60"))
        self.assertEqual(rc, 1)
        self.assertIn("rank 1 was killed by signal 9 (Killed) before the job had started", err)

    def test_early_death_unheard(self):
        """even if musterd does not say whether it has started; one that failed is to blame rather
        than one that just ended before"""
        rc, _, err = self.run_muster("halt:60000", "-n", "2", "--", *sh(
            "touch $HERE/$MUSTER_RANK; "
            "[ $MUSTER_RANK = 1 ] || until [ -e $HERE/1 ]; do sleep 0.02; done; "
            "[ $MUSTER_RANK = 0 ] || { " + GONE + "exit 1; }; " + SAY_PID))
        self.assertEqual(rc, 1)
        self.assertIn("rank 1 exited with status 1 before the job had started", err)

    def test_loss(self):
        """after the start a lost worker is named, and the run goes on to its end"""
        rc, _, err = self.run_muster(
            "gather:100 run:300 touch:runs see:over lose:1 run:300 finish", "-n", "3", "--",
            *sh("until [ -e $HERE/runs ]; do sleep 0.05; done; "
                "[ $MUSTER_RANK != 1 ] || { " + SAY_PID + "kill -9 $$; }; "
                + GONE + "touch $HERE/over"))
        self.assertEqual(rc, 0)
        self.assertRegex(err, r"rank 1 was killed by signal 9 \(Killed\) at version \d+; the")
        self.assertRegex(err, r"\n +1 .* signal 9, Killed, lost at version \d+\n")
        self.assertNotIn("failed: ", err)

    def test_loss_version(self):
        """the version that a loss is named with is one that musterd has told since; without an
        answer there is none"""
        rc, _, err = self.run_muster(
            "run:100 touch:runs halt:1500 run:300 lose:1 run:300 finish", "-n", "2", "--",
            *sh("until [ -e $HERE/runs ]; do sleep 0.02; done; "
                "[ $MUSTER_RANK != 1 ] || kill -9 $$; sleep 2"))
        found = re.search(r"rank 1 was killed by signal 9 \(Killed\) at version (\d+); the", err)
        self.assertEqual((rc, found is not None), (0, True), err)
        self.assertGreaterEqual(int(found[1]), 150)
        rc, _, err = self.run_muster(
            "run:100 touch:gone halt:1500 die:9", "-n", "2", "--",
            *sh("until [ -e $HERE/gone ]; do sleep 0.02; done; "
                "[ $MUSTER_RANK != 1 ] || kill -9 $$; sleep 2"))
        self.assertRegex(err, r"rank 1 was killed by signal 9 \(Killed\); the policy decides")

    def test_crash(self):
        """a worker whose program crashes has failed, also where the policy goes on without it"""
        for signo in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS):
            rc, _, err = self.run_muster(
                "run:300 touch:runs see:over lose:1 run:300 finish", "-n", "3", "--",
                *sh("until [ -e $HERE/runs ]; do sleep 0.05; done; "
                    f"[ $MUSTER_RANK != 1 ] || {{ {SAY_PID} ulimit -c 0; kill -{signo:d} $$; }}; "
                    + GONE + "touch $HERE/over"))
            self.assertEqual(rc, 1, err)
            self.assertRegex(err, rf"\n +1 .* signal {signo:d}, .*, lost at version \d+\n")
            self.assertRegex(err, rf"\nfailed: rank 1 was killed by signal {signo:d} \(.*\)\n")
            for name in os.listdir(self.folder.name):
                os.unlink(self.path(name))

    def test_failed_by_itself(self):
        """a worker whose program says that it has failed has, also where the policy goes on without
        it, unless an operator has evicted it; and after the end, also of one that was started
        again"""
        gone = ("until [ -e $HERE/runs ]; do sleep 0.05; done; "
                f"[ $MUSTER_RANK != 1 ] || {{ {SAY_PID} exit 3; }}; " + GONE + "touch $HERE/over")
        again = ("[ $MUSTER_RANK = 0 ] || [ -e $HERE/first ] || "
                 "{ touch $HERE/first; kill -9 $$; }; [ $MUSTER_RANK = 0 ] || touch $HERE/over; "
                 "until [ -e $HERE/done ]; do sleep 0.05; done; exit $((3 * MUSTER_RANK))")
        for script, program, wanted, end in (
                ("run:300 touch:runs see:over lose:1 run:300 finish", gone, 1, "lost at version"),
                ("run:300 touch:runs see:over leave:1 run:300 finish", gone, 1, ""),
                ("run:300 touch:runs see:over evict:1 run:300 finish", gone, 0, "evicted at ver"),
                ("run:300 see:over again:1 run:300 finish touch:done", again, 1, "started again")):
            rc, _, err = self.run_muster(script, "-n", "2", "--restarts", "1", "--json",
                                         self.path("x"), "--", *sh(program))
            self.assertEqual(rc, wanted, (script, err))
            self.assertRegex(err, rf"\n +1 .*  exit 3.*{end}")
            self.assertEqual("\nfailed: rank 1 exited with status 3\n" in err, wanted == 1, err)
            self.assertEqual([rank["failed"] for rank in json.loads(self.read("x"))["ranks"]],
                             [False, wanted == 1])
            for name in os.listdir(self.folder.name):
                os.unlink(self.path(name))

    def test_left_early(self):
        """a rank that left before the job ended is named, with both versions"""
        rc, _, err = self.run_muster("run:300 leave:1 run:100 finish", "-n", "2", "--json",
                                     self.path("x"), "--", "sleep", "0.2")
        self.assertEqual(rc, 0, err)
        found = re.search(r"^rank 1 left at version (\d+); the job ended at version (\d+)$", err,
                          re.M)
        self.assertTrue(found, err)
        self.assertLess(int(found[1]), int(found[2]))
        ranks = json.loads(self.read("x"))["ranks"]
        self.assertEqual([rank["gone_at"] for rank in ranks], [None, int(found[1])])

    def test_came_back(self):
        """a rank that was killed and taken by another process has not failed"""
        run = self.start("run:300 touch:runs see:back again:1 run:300 finish", "-n", "2", "--", *sh(
            "until [ -e $HERE/runs ]; do sleep 0.05; done; [ $MUSTER_RANK != 1 ] || kill -9 $$; "
            "until [ -e $HERE/back ]; do sleep 0.05; done; sleep 0.5"))
        said, lines = "", 0
        while lines < 2:  # the second is of a status that was asked for after the death
            line = run.stderr.readline()
            self.assertNotEqual(line, "", said)
            said += line
            lines += "info muster: version" in line and "rank 1 was killed" in said
        with open(self.path("back"), "w"):
            pass
        rc, _, err = self.finish(run)
        self.assertEqual(rc, 0, said + err)
        self.assertRegex(err, r"\n +1 .* signal 9, Killed, came back\n")

    def test_restart(self):
        """--restarts: a rank that a signal has ended is started again, also before the start"""
        again = ("[ $MUSTER_RANK = 0 ] || [ -e $HERE/first ] || "
                 "{ touch $HERE/first; kill -9 $$; }; "
                 "[ $MUSTER_RANK = 0 ] || touch $HERE/over; "
                 "until [ -e $HERE/runs ]; do sleep 0.05; done")
        for state in ("run:100", "gather:100"):
            rc, _, err = self.run_muster(f"{state} see:over run:100 touch:runs run:300 finish",
                                         "-n", "2", "--restarts", "2", "--json", self.path("x"),
                                         "--", *sh(again))
            self.assertEqual(rc, 0, err)
            self.assertIn("rank 1 was killed by signal 9 (Killed); it is started again in 1 s "
                          "(1 of 2 restarts)", err)
            self.assertRegex(err, r"\n +1 .* exit 0, started again 1 time\n")
            ranks = json.loads(self.read("x"))["ranks"]
            self.assertEqual([(rank["exit"], rank["restarts"]) for rank in ranks],
                             [(0, 0), (0, 1)])
            for name in os.listdir(self.folder.name):
                os.unlink(self.path(name))

    def test_restarts_end(self):
        """so often and no more; one that exits by itself is not started again"""
        rc, _, err = self.run_muster(
            "run:100 see:over lose:1 run:300 finish", "-n", "3", "--restarts", "1", "--",
            *sh("echo $MUSTER_RANK >> $HERE/starts; [ $MUSTER_RANK != 2 ] || exit 0; "
                "[ $MUSTER_RANK = 0 ] || [ ! -e $HERE/first ] || { " + SAY_PID + "kill -9 $$; }; "
                "[ $MUSTER_RANK = 0 ] || { touch $HERE/first; kill -9 $$; }; "
                + GONE + "touch $HERE/over"))
        self.assertEqual(rc, 0, err)
        self.assertEqual(sorted(self.read("starts").split()), ["0", "1", "1", "2"])
        self.assertRegex(err, r"rank 1 was killed by signal 9 \(Killed\) at version \d+; the pol")

    def test_last_work(self):
        """after a job that has ended well workers may work for ten minutes, and every ten seconds
        it is told who does; after one that has failed for ten seconds, as a halted one has"""
        well = scene.Scene.start(self, "run:200 finish", "-n", "2", "--", *sh(
            f"[ $MUSTER_RANK = 0 ] || exit 0; {OVER}"))
        ill = scene.Scene.start(self, "run:200 fail exit:1", "-n", "1", "--", *SLEEP)
        halted = scene.Scene.start(self, "run:200 finish", "-n", "1", "--", *sh("kill -STOP $$"))
        said = ""
        while "have not exited" not in said:
            line = well.stderr.readline()
            self.assertNotEqual(line, "", said)
            said += line
        self.assertRegex(said, r"the job is over, and 1 of 2 workers have not exited yet: rank 0 "
                               r"\(process \d+\); SIGTERM follows in 5\d\d s \(--grace\)")
        rc, _, err = self.finish(ill)
        self.assertEqual(rc, 1)
        self.assertRegex(err, r"1 of 1 workers have not exited: sending SIGTERM to rank 0 \(proc")
        rc, _, err = self.finish(halted)
        self.assertEqual(rc, 0, err)
        self.assertRegex(err, r"\n +0 .* signal 9, Killed, was halted\n")
        with open(self.path("over"), "w"):
            pass
        rc, _, err = self.finish(well)
        self.assertEqual((rc, "SIGTERM to" in err), (0, False), err)

    def test_missing(self):
        """what musterd says is missing is in status, summary and figures; a failure stays one"""
        for script, wanted, said in (
                ("miss:the_last_checkpoint miss:rows finish exit:3", 3,
                 ["the_last_checkpoint", "rows"]),
                ("finish exit:3", 3, ["something that musterd was to write; its log says what"]),
                ("miss:rows fail exit:1", 1, ["rows"]),
                ("finish", 0, [])):
            rc, _, err = self.run_muster(f"run:200 {script}", "-n", "1", "--json", self.path("x"),
                                         "--", "sleep", "0.3")
            self.assertEqual(rc, wanted, err)
            self.assertEqual(json.loads(self.read("x"))["missing"], said)
            self.assertEqual(re.findall(r"^missing: (.*)$", err, re.M), said)

    def test_failing_worker(self):
        """a worker that the policy did not lose but that fails makes the run fail"""
        rc, _, _ = self.run_muster("run:200 finish", "-n", "2", "--",
                                   *sh("sleep 0.4; exit $MUSTER_RANK"))
        self.assertEqual(rc, 1)

    def test_failed_job(self):
        """a job that fails is 1, with musterd's sentence"""
        rc, _, err = self.run_muster("run:200 fail exit:1", "-n", "2", "--", "sleep", "0.4")
        self.assertEqual(rc, 1)
        self.assertRegex(err, r"failed after .*: too few workers: 1 of 2")

    def test_short_job(self):
        """a job whose workers are gone before anybody has looked has finished all the same"""
        for _ in range(5):
            rc, _, err = self.run_muster("run:60 finish", "-n", "2", "--", "true")
            self.assertEqual(rc, 0, err)

    def test_unread_question(self):
        """the job's end is heard even if musterd goes with a question unread"""
        rc, _, err = self.run_muster("run:100 halt:600 finish", "-n", "1", "--", "sleep", "0.8")
        self.assertEqual(rc, 0, err)

    def test_musterd_killed(self):
        """if musterd dies the workers are ended"""
        rc, _, err = self.run_muster("run:300 die:9", "-n", "2", "--grace", "200ms", "--", *SLEEP)
        self.assertEqual(rc, 1)
        self.assertRegex(err, r"musterd was killed by signal 9 \(Killed\) in the middle of "
                              r"the job; the last version that it told of is \d+")

    def test_musterd_mute(self):
        """if all workers are gone and musterd does not end the job, it is ended"""
        rc, _, err = self.run_muster("run:60000", "-n", "2", "--grace", "300ms", "--", "sleep",
                                     "0.3")
        self.assertEqual(rc, 1)
        self.assertIn("all workers have exited, but musterd has not ended the job", err)

    def test_musterd_stubborn(self):
        """a musterd that neither goes by itself nor when asked is killed"""
        for grace in ("1s", "20s"):  # the longer one for a worker that has been too slow
            rc, _, err = self.run_muster(
                "stubborn run:200 see:there finish touch:over halt:60000", "-n", "1", "--grace",
                grace, "--", *sh(f"touch $HERE/there; {OVER}"))
            if rc == 0 or "have not exited" not in err:
                break
        self.assertEqual(rc, 0, err)

    def test_stubborn_worker(self):
        """a worker that stays after the end is asked, then killed, and the run has failed; the line
        names its rank and process, and --grace"""
        rc, _, err = self.run_muster(
            "run:200 see:alone finish", "-n", "2", "--grace", "200ms", "--",
            *sh("trap '' TERM; [ $MUSTER_RANK = 1 ] || { " + SAY_PID + "exit; }; "
                + GONE + "touch $HERE/alone; sleep 60"))
        self.assertEqual(rc, 1)
        self.assertRegex(err, r"1 of 2 workers have not exited: sending SIGTERM to rank 1 "
                              r"\(process \d+\); --grace gives them more time")
        self.assertRegex(err, r"\n +1 .* signal 9, Killed\n")

    def test_halted_worker(self):
        """a worker halted when the job ends is killed, and counts as lost"""
        run = self.start(
            "run:200 see:alone run:200 finish", "-n", "2", "--grace", "500ms", "--",
            *sh("[ $MUSTER_RANK = 0 ] || { " + SAY_PID + "kill -STOP $$; }; "
                "until grep -qs '^State:.T' /proc/$(cat $HERE/pid 2> /dev/null)/status; do "
                "sleep 0.05; done; echo $$ > $HERE/part; mv $HERE/part $HERE/other"))
        # The other has half a second from the end on, so it is to be gone before.
        self.assertTrue(until(lambda: os.path.exists(self.path("other")), SECONDS))
        other = f"/proc/{self.read('other').strip()}"
        self.assertTrue(until(lambda: not os.path.exists(other), SECONDS))
        with open(self.path("alone"), "w"):
            pass
        rc, _, err = self.finish(run)
        self.assertEqual(rc, 0, err)
        self.assertRegex(err, r"\n +1 .* signal 9, Killed, was halted\n")

    def test_offspring(self):
        """what a worker leaves behind ends with it"""
        rc, _, _ = self.run_muster("run:300 finish", "-n", "1", "--", *sh("sleep 60 & sleep 0.4"))
        self.assertEqual(rc, 0)


class Signals(Scene):
    def interrupted(self, signo, script):
        run = self.start("run:60000", "-n", "2", "--", *sh(script))
        self.assertTrue(until(lambda: os.path.exists(self.path("0")) and
                              os.path.exists(self.path("1")), SECONDS))
        os.kill(run.pid, signo)
        return run

    def test_forwarded(self):
        """each ending signal reaches the workers, and the status is 128 + n"""
        for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            word = signo.name.removeprefix("SIG")
            run = self.interrupted(signo, f"trap 'echo {word} > $HERE/got.$MUSTER_RANK; exit 0' "
                                   f"{word}; touch $HERE/$MUSTER_RANK; sleep 60 & wait")
            rc, _, err = self.finish(run)
            self.assertEqual(rc, 128 + signo, err)
            self.assertEqual([self.read("got.0"), self.read("got.1")], [word + "\n"] * 2)
            self.assertIn("interrupted after", err)
            for name in os.listdir(self.folder.name):
                os.unlink(self.path(name))

    def test_background(self):
        """a run that a shell has put in the background can be interrupted all the same"""
        run = subprocess.Popen(["sh", "-c", '"$@" & wait $!', "sh", scene.MUSTER, "run", "-n", "1",
                                "--", *sh("touch $HERE/0; exec sleep 60")],
                               env=self.environment("run:60000"), stderr=subprocess.DEVNULL)
        self.assertTrue(until(lambda: os.path.exists(self.path("0")), SECONDS))
        with open(f"/proc/{run.pid}/task/{run.pid}/children") as f:
            os.kill(int(f.read().split()[0]), signal.SIGINT)
        self.assertEqual(run.wait(SECONDS), 130)

    def test_nohup(self):
        """a run started with nohup does not hang up"""
        run = subprocess.Popen(["nohup", scene.MUSTER, "run", "-n", "1", *GRACE, "--",
                                *sh("touch $HERE/0; until [ -e $HERE/1 ]; do sleep 0.05; done")],
                               env=self.environment("met run:0 see:1 run:500 finish"),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertTrue(until(lambda: os.path.exists(self.path("0")), SECONDS))
        run.send_signal(signal.SIGHUP)
        with open(self.path("1"), "w"):
            pass
        self.assertEqual(run.wait(SECONDS), 0)

    def test_twice(self):
        """a second signal, soon after it, kills workers that ignore the first"""
        run = self.interrupted(signal.SIGINT,
                               "trap '' INT TERM; touch $HERE/$MUSTER_RANK; exec sleep 120")
        begun = time.monotonic()
        for line in run.stderr:
            if "SIGINT: twice" in line:
                break
            if "SIGINT: passed on" in line:  # again where this test has stood still meanwhile
                time.sleep(0.5)
                run.send_signal(signal.SIGINT)
        rc, _, _ = self.finish(run)
        self.assertEqual(rc, 130)
        self.assertLess(time.monotonic() - begun, SECONDS / 2)

    def test_same(self):
        """a signal to the process, and then to its group, as timeout(1) sends them, is one"""
        for _ in range(8):  # on a busy host it may stand still between the two
            run = self.interrupted(signal.SIGTERM, "trap 'sleep 1; exit 0' TERM; "
                                   "touch $HERE/$MUSTER_RANK; while :; do sleep 0.05; done")
            said = []
            for line in run.stderr:
                said.append(line)
                if "SIGTERM: passed on" in line:
                    run.send_signal(signal.SIGTERM)
                    break
            rc, _, rest = self.finish(run)
            self.assertEqual(rc, 143)
            if "twice" not in rest:
                return
            for rank in "0", "1":
                os.unlink(self.path(rank))
        self.fail(f"it was never taken for one: {said} {rest}")

    def test_while_starting(self):
        """a signal that comes with the first breath ends the run too"""
        for delay in (0.0, 0.005, 0.01, 0.02, 0.05):
            run = self.start("run:60000", "-n", "4", "--", *SLEEP)
            time.sleep(delay)
            run.send_signal(signal.SIGTERM)
            self.assertIn(self.finish(run)[0], (143, -signal.SIGTERM))

    def test_killed(self):
        """nothing survives a muster run that is killed"""
        run = self.interrupted(signal.SIGKILL, "touch $HERE/$MUSTER_RANK; exec sleep 60")
        self.finish(run)
        self.assertTrue(until(lambda: not tagged(self.mark), SECONDS),
                        "processes are left over")


class Printing(Scene):
    def test_json(self):
        """the figures are all there, an exit is a status or minus the signal"""
        self.run_muster("run:300 lose:1 late:2 run:300 finish", "-q", "-n", "3", "--policy",
                        "backup:2", "--json", self.path("x.json"), "--",
                        *sh("[ $MUSTER_RANK != 1 ] || kill -9 $$; sleep 0.7"))
        run = json.loads(self.read("x.json"))
        self.assertLessEqual({"policy", "workers", "commits", "samples", "wall_s", "mean_step_ms",
                              "p50_step_ms", "p99_step_ms", "max_step_ms", "saved_s", "state",
                              "why", "loss", "access", "norm_limit", "norm_median", "ranks"},
                             set(run))
        self.assertEqual((run["state"], run["workers"]), ("finished", 3))
        self.assertEqual([rank["exit"] for rank in run["ranks"]], [0, -9, 0])
        self.assertLessEqual({"rank", "counted", "late", "stale", "cancelled", "refused",
                              "outliers", "damaged", "norm", "max_norm",
                              "mean_ready_ms", "mean_behind_ms", "exit"},
                             set(run["ranks"][0]))
        self.assertGreater(run["ranks"][2]["late"], 0)

    def test_json_on_stdout(self):
        """standard output is the figures and nothing else, whatever the workers print"""
        rc, out, err = self.run_muster("run:200 finish", "-q", "-n", "2", "--json", "-", *ANY_PORT,
                                       "--", *sh("echo noise; sleep 0.3"))
        self.assertEqual((rc, json.loads(out)["state"]), (0, "finished"))
        self.assertEqual(err, "noise\nnoise\n")

    def test_json_of_failure(self):
        """a run that never started has figures, too: a loss nobody told is null"""
        self.run_muster("refuse", "-n", "2", "--json", self.path("x.json"), "--", *SLEEP)
        run = json.loads(self.read("x.json"))
        self.assertEqual((run["state"], run["loss"], run["commits"]), ("failed", None, 0))
        self.assertEqual([rank["exit"] for rank in run["ranks"]], [None, None])

    def test_unwritable(self):
        """figures that cannot be written are known before a long run, not after it"""
        rc, _, err = self.run_muster("run:100 finish", "-n", "1", "--json", "/nowhere/x", "--",
                                     "sleep", "0.2")
        self.assertEqual(rc, 2)
        self.assertIn("option --json: cannot write /nowhere/x: No such file", err)

    def test_full_device(self):
        """figures, a summary, or what is printed, that a full disk does not take are missing"""
        rc, _, err = self.run_muster("run:200 finish", "-n", "1", "--json", "/dev/full", "--",
                                     "sleep", "0.3")
        self.assertEqual(rc, 3)
        self.assertIn("missing: the figures as JSON in /dev/full: No space left on device", err)
        for where, words in (("stdout", ("--json", "-")), ("stderr", ())):
            with open("/dev/full", "wb") as full:
                files = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, where: full}
                run = subprocess.Popen([scene.MUSTER, "run", "-n", "1", *words, *ANY_PORT, "--",
                                        "sleep", "0.3"], text=True, stdin=subprocess.DEVNULL,
                                       env=self.environment("met run:200 finish"), **files)
                self.assertEqual(self.finish(run)[0], 3, where)

    def test_plain(self):
        """without a terminal there is a plain line every two seconds"""
        begun, err = time.monotonic(), ""
        run = self.start("late:1 run:100 see:over finish", "-n", "2", "--", *sh(OVER))

        def lines():
            return re.findall(r"^\S+Z info muster: version \d+, 2 of 2 live, step .*, "
                              r"rank 1 late 50 %$", err, re.M)

        while len(lines()) < 3:
            line = run.stderr.readline()
            self.assertNotEqual(line, "", err)
            err += line
        took = time.monotonic() - begun
        self.assertLessEqual(len(lines()), 1 + took / 2, err)
        with open(self.path("over"), "w"):
            pass
        err += run.stderr.read()
        self.assertEqual(run.wait(SECONDS), 0)
        self.assertNotIn("\r", err)
        self.assertNotIn("\033", err)

    def test_terminal(self):
        """on a terminal one line is redrawn in place, within its width"""
        def live(got):
            drawn = re.findall(r"\r([^\r\n]*)\033\[K", got)
            return drawn, [line for line in drawn if line.startswith("version")]

        for columns in (30, 200):
            rc, got = self.run_on_terminal("met late:1 run:100 see:over finish", columns, "-n",
                                           "2", *GRACE, "--", *sh(OVER),
                                           enough=lambda got: len(live(got)[1]) > 3)
            os.unlink(self.path("over"))
            drawn, lines = live(got)
            self.assertEqual(rc, 0)
            self.assertLess(max(map(len, lines)), columns)
            self.assertEqual(any("rank 1 late" in line for line in lines), columns == 200)
            self.assertEqual(drawn[-1], "", "the line is taken away before the summary")

    def test_quiet(self):
        """--quiet prints nothing of a run that goes well"""
        self.assertEqual(self.run_muster("run:200 finish", "-q", "-n", "1", *ANY_PORT, "--",
                                         "sleep", "0.3"), (0, "", ""))


scene.main()
