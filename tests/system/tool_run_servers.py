#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster run whose servers end before the job does: which of them it starts again, where, and how
often. Its musterd follows a script, which begins anew with each process.

usage: tool_run_servers.py MUSTER FAKE_MUSTERD [unittest's arguments]
"""
import json
import os
import re
import subprocess

import scene
from server import SECONDS

# Where a run fails its workers are not waited for.
HASTE = ("--grace", "100ms")
GRACE = ("--grace", f"{SECONDS}s")
OWN = ("-n", "1", "--owner", "workers", "--listen", "127.0.0.1:0")
WAIT = ("sh", "-c", "until [ -e $HERE/done ]; do sleep 0.05; done")
AGAIN = r"it is started again at (\S+) \((\d) of 5 times in 10 min\)"


class Servers(scene.Scene):
    def turns(self, *scripts):
        """A musterd that follows another script each time, and the last one from then on."""
        lines = [f"{i}) export FAKE_JOB='met {script}' ;;"
                 for i, script in enumerate(scripts)]
        lines.append(f"*) export FAKE_JOB='met {scripts[-1]}' ;;")
        with open(self.path("musterd"), "w") as f:
            f.write("#!/bin/sh\nturn=$(cat $HERE/turn 2> /dev/null || echo 0)\n"
                    "echo $((turn + 1)) > $HERE/turn\necho \"$@\" >> $HERE/lines\n"
                    "case $turn in\n" + "\n".join(lines) + "\nesac\nexec $FAKE \"$@\"\n")
        subprocess.run(["chmod", "+x", self.path("musterd")], check=True)

    def run_turns(self, *args, scripts):
        self.turns(*scripts)
        return self.run_muster("", *GRACE, *args, FAKE=scene.FAKE,
                               MUSTER_MUSTERD=self.path("musterd"))

    def forget(self):
        for name in os.listdir(self.folder.name):
            os.unlink(self.path(name))

    def lines(self):
        """The arguments of each musterd."""
        return self.read("lines").splitlines()

    def test_each_kind_of_loss(self):
        """one that was killed, has crashed, or ended because of another is started again at the
        same address, with the same arguments; the run takes up the next one's words, and goes on"""
        for end, said in (("die:9", "was killed by signal 9 "), ("die:6", "killed by signal 6 "),
                          ("exit:143", "exited with status 143"),
                          ("exit:75", "has ended because another server was lost")):
            rc, _, err = self.run_turns(
                *OWN, "--", *WAIT,
                scripts=(f"run:100 {end}", "gather:100 run:300 finish touch:done"))
            self.assertIn("finished after", err)
            found = re.search(rf"musterd .*{re.escape(said)}.*; {AGAIN}", err)
            self.assertTrue(found, err)
            first, second = self.lines()
            address = re.search(r"musterd listens on (\S+): ", err)[1]
            self.assertEqual((found[1], found[2]), (address, "1"))
            self.assertEqual(re.sub(r"--listen=\S+", "", first),
                             re.sub(r"--listen=\S+", "", second))
            self.assertIn(f"--listen={address}", second)
            self.assertIn("--server-patience=600000ms", first)
            self.assertIn(f"musterd listens on {address} again", err)
            self.assertEqual(rc, 0)
            self.forget()

    def test_its_job_has_ended(self):
        """one that has told the end of the job, or fails by itself, is not started again"""
        for script, wanted, said in (("run:200 finish touch:done", 0, "finished after"),
                                     ("run:200 fail touch:done exit:1", 1, "failed after"),
                                     ("run:200 touch:done exit:1", 1, "status 1 in the middle")):
            rc, _, err = self.run_turns(*OWN, "--", *WAIT, scripts=(script,))
            self.assertEqual((rc, said in err, len(self.lines())), (wanted, True, 1), err)
            self.assertNotIn("started again", err)
            self.forget()

    def test_ends_here_and_goes_on(self):
        """one that says that the job has ended at this server alone has not said its end"""
        rc, _, err = self.run_turns(*OWN, "--", *WAIT, scripts=(
            "run:100 over run:200 exit:75", "gather:100 run:300 finish touch:done"))
        self.assertEqual(rc, 0, err)
        self.assertEqual(len(re.findall(AGAIN, err)), 1, err)

    def test_how_often(self):
        """five times, then the run has failed, and says how to go on"""
        state = self.path("state")
        for args, how in (((), "the same command begins the job anew; with --state DIR"),
                          (("--state", state), f"--resume {state} --or-begin goes on")):
            rc, _, err = self.run_turns(*OWN, *HASTE, *args, "--", *WAIT,
                                        scripts=("run:50 exit:75",))
            self.assertEqual(rc, 1)
            self.assertEqual([t for _, t in re.findall(AGAIN, err)], list("12345"))
            self.assertEqual(len(self.lines()), 6)
            self.assertRegex(err, f"error muster: musterd .* was started again 5 times in 10 min "
                                  f"already: the log says why; .*{re.escape(how)}")
            self.forget()

    def test_stands_still(self):
        """one that does not answer for --server-lease is killed, and started again"""
        rc, _, err = self.run_turns(
            *OWN, "--lease", "500ms", "--server-lease", "2s", "--", *WAIT,
            scripts=("run:300 halt:60000", "run:300 finish touch:done"))
        self.assertEqual(rc, 0, err)
        self.assertIn("musterd has not answered for 2 s (--server-lease): it stands still", err)
        self.assertRegex(err, rf"killed by signal 9 .*; {AGAIN}")

    def test_closes_and_stays(self):
        """one that hangs up and does not end is killed, too"""
        rc, _, err = self.run_turns(*OWN, "--", *WAIT, scripts=(
            "run:300 close halt:60000", "run:300 finish touch:done"))
        self.assertEqual(rc, 0, err)
        self.assertIn("musterd neither listens nor ends: it stands still, and is killed", err)

    def test_worker_dies_meanwhile(self):
        """a rank that dies while a later server gathers is a loss, and no wrong start"""
        rc, _, err = self.run_turns(
            *OWN, "-n", "2", "--", "sh", "-c", f"[ $MUSTER_RANK = 1 ] || {{ {WAIT[2]}; exit; }}; "
            "until [ -e $HERE/gathers ]; do sleep 0.05; done; kill -9 $$",
            scripts=("run:200 die:9", "gather:100 touch:gathers gather:1000 run:300 lose:1 "
                     "run:500 finish touch:done"))
        self.assertEqual(rc, 0, err)
        self.assertRegex(err, r"rank 1 was killed by signal 9 .*the policy decides")

    def test_defaults(self):
        """workers wait for another server where it could have what it needs; what is given holds"""
        conf = self.path("c.conf")
        with open(conf, "w") as f:
            f.write('server_patience = "7s";\n')
        for args, wanted in (((), "0"), (("--owner", "workers"), "10min"),
                             (("--state", self.path("state")), "10min"),
                             (("--owner", "workers", "--server-patience", "0s"), "0"),
                             (("--owner", "workers", "--server-patience=0"), "0"),
                             (("--server-patience", "30s"), "30s"), (("-c", conf), "7s"),
                             (("-c", conf, "--server-patience", "8s"), "8s")):
            out = self.run_muster("", "-n", "2", *args, "--print-config", "--", "true")[1]
            self.assertIn(f'\nserver_patience = "{wanted}";\n', out, args)

    def test_what_would_have_helped(self):
        """where it is not started again, the line that reports the loss says what to give"""
        for args, how in (((), "with --state DIR the server would have been started again"),
                          (("--owner", "workers", "--server-patience", "0"),
                           "with --server-patience 10min the server would have been started")):
            rc, _, err = self.run_muster("run:200 die:9", "-n", "1", "--listen", "127.0.0.1:0",
                                         *HASTE, *args, "--", *WAIT)
            self.assertEqual(rc, 1)
            self.assertRegex(err, r"musterd was killed by signal 9 \(Killed\) in the middle of the "
                                  rf"job; the last version that it told of is \d+; {how}")

    def test_what_it_goes_on_from(self):
        """where servers own, the next one is started with the same words as the first one: it goes
        on from the newest checkpoint, and adds to the same recording"""
        state, record = self.path("state"), self.path("x.csv")
        rc, _, err = self.run_turns(
            "-n", "1", "--listen", "127.0.0.1:0", "--state", state, "--record", record, "--",
            *WAIT, scripts=("run:200 die:9", "run:300 finish touch:done"))
        self.assertEqual(rc, 0, err)
        first, second = (re.sub(r"--listen=\S+", "", line) for line in self.lines())
        self.assertEqual(first, second)
        self.assertIn(f"--record {record}", first.replace("=", " "))

    def test_interrupted(self):
        """a run that ends starts no server again"""
        rc, _, err = self.run_turns(*OWN, "--json", self.path("x"), "--", "sh", "-c",
                                    "kill -INT $PPID; sleep 60", scripts=("run:60000",))
        self.assertEqual((rc, len(self.lines())), (130, 1), err)
        self.assertEqual(json.loads(self.read("x"))["state"], "interrupted")


if __name__ == "__main__":
    scene.main()
