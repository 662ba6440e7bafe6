#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The checker is checked: a history that is right passes, and spoiled in any way it does not.

Three workers under backup:2 are written down as history.h does; one of them died and came back.
"""
import os
import tempfile
import unittest

import numpy as np

import history

WORKERS, ELEMS, VERSIONS = 3, 37, 6
SGD = history.Rules("sgd:0.1,0.9")
# By version, who is in it; the third pushes too, and is late. Rank 2 dies after version 3, before
# it hears that it is in it, and comes back for version 5.
SETS = {1: (0, 1), 2: (0, 2), 3: (1, 2), 4: (0, 1), 5: (0, 1), 6: (0, 2)}


class Worker:
    """Writes the log of one session, as a test worker would."""

    def __init__(self, path, rank, incarnation, verdicts=()):
        self.path, self.rank, self.incarnation = f"{path}.{rank}.{incarnation}", rank, incarnation
        self.ticket = 0
        self.lines = [f"job {rank} {incarnation} {WORKERS} {ELEMS} 0 0 0 1 backup:2"]
        self.lines += ["verdict {} {} {} {}".format(*verdict) for verdict in verdicts]

    def push(self, tag):
        self.ticket += 1
        self.lines.append(f"push {self.ticket} {tag} 1 0")
        return self.rank, self.incarnation, self.ticket

    def see(self, version, sums, verdict=0, counted_in=0, fresh=1, finished=0):
        ticket = self.ticket if verdict else 0
        ranks = SETS.get(version, ())
        shares = "".join(f" {rank}:1:1" for rank in ranks)
        scale = len(ranks) / WORKERS if ranks else 1
        self.lines.append(
            f"outcome {verdict} {ticket} {counted_in} {version} {fresh} {finished} "
            f"{sums[version]} {sums[version]} {scale} {len(ranks)} {1000 + version} "
            f"{len(ranks)}{shares}")

    def write(self, *last):
        with open(self.path, "w") as f:
            f.write("\n".join([*self.lines, *last]) + "\n")


def write_history(path):
    """Plays the job; its sums are computed in its own words."""
    alive = {rank: Worker(path, rank, 1) for rank in range(WORKERS)}
    theta = history.values(ELEMS, 999, 0, 0)
    momentum = np.zeros(ELEMS, np.float32)
    sums = {0: history.checksum(theta.tobytes())}
    for worker in alive.values():
        worker.see(0, sums)
    for version, ranks in SETS.items():
        if version == 5:
            alive[2] = Worker(path, 2, 2, [(1, 3, history.COUNTED, 3)])
            alive[2].see(4, sums)
        who = {rank: worker.push(version - 1) for rank, worker in alive.items()}
        g = [history.values(ELEMS, *who[rank]) for rank in ranks]
        mean = (g[0] + g[1]) / np.float32(2)
        momentum = np.float32(0.9) * momentum + mean
        theta = theta - np.float32(0.1 * 2 / 3) * momentum
        sums[version] = history.checksum(theta.tobytes())
        if version == 3:
            alive.pop(2).write()
        for rank, worker in alive.items():
            end = int(version == VERSIONS)
            if rank in ranks:
                worker.see(version, sums, 1, version, finished=end)
            else:
                worker.see(version, sums, 2, finished=end)
    for worker in alive.values():
        worker.write("end 0")


class Spoiled(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.log = os.path.join(self.folder.name, "log")
        write_history(self.log)

    def tearDown(self):
        self.folder.cleanup()

    def spoil(self, session, old, new, count=1):
        path = f"{self.log}.{session}"
        with open(path) as f:
            text = f.read()
        self.assertIn(old, text)
        with open(path, "w") as f:
            f.write(text.replace(old, new, count))

    def line(self, session, start):
        with open(f"{self.log}.{session}") as f:
            return next(line for line in f if line.startswith(start))

    def refuse(self, sentence, kills=True):
        with self.assertRaisesRegex(history.Broken, sentence) as caught:
            history.prove(self.log, SGD, kills)
        print(caught.exception)

    def test_what_is_right_passes(self):
        proof = history.prove(self.log, SGD, True)
        self.assertEqual((proof.checked, proof.lost, proof.newest), (VERSIONS, 0, VERSIONS))
        self.assertEqual(proof.counts, [2] * VERSIONS)

    def test_a_death_must_be_allowed(self):
        self.refuse("does not end well", kills=False)

    def test_a_verdict_twice(self):
        outcome = self.line("0.1", "outcome 1 1 ")
        self.spoil("0.1", outcome, outcome + outcome.replace(" 1 1 1 1 1 0", " 1 1 1 1 0 0"))
        self.refuse("two verdicts")

    def test_a_verdict_missing(self):
        self.spoil("1.1", self.line("1.1", "outcome 2 2 "), "")
        self.refuse("has no verdict")

    def test_a_pass_takes_a_number(self):
        self.spoil("0.1", "push 1 0 ", "pass 1\npush 2 0 ")
        self.refuse("ticket 2 where ticket 3 should be")

    def test_a_number_is_left_out(self):
        self.spoil("0.1", "push 1 0 ", "push 2 0 ")
        self.refuse("ticket 2 where ticket 1 should be")

    def test_a_pass_at_the_end_is_right(self):
        self.spoil("0.1", "end 0", f"pass {VERSIONS + 1}\nend 0")
        self.assertEqual(history.prove(self.log, SGD, True).checked, VERSIONS)

    def test_a_pass_with_a_verdict(self):
        self.spoil("0.1", self.line("0.1", "push 1 "), "pass 1\n")
        self.refuse("ticket 1, which was never pushed")

    def test_a_verdict_for_nothing(self):
        self.spoil("0.1", "outcome 1 6 ", "outcome 1 9 ")
        self.refuse("never pushed")

    def test_a_verdict_out_of_turn(self):
        self.spoil("0.1", "outcome 1 1 1 1", "outcome 2 2 0 1")
        self.spoil("0.1", "outcome 1 2 2 2", "outcome 1 1 1 2")
        self.refuse("came after")

    def test_a_late_one_called_counted(self):
        self.spoil("1.1", "outcome 2 2 0 2", "outcome 1 2 2 2")
        self.refuse("version 2: its set is")

    def test_a_counted_one_called_late(self):
        self.spoil("1.1", "outcome 1 1 1 1", "outcome 2 1 0 1")
        self.refuse("version 1: workers saw .* are not there")

    def test_counted_in_another_version(self):
        self.spoil("0.1", "outcome 1 1 1 1", "outcome 1 1 2 1")
        self.refuse("1 versions late")

    def test_counted_before_it_was_computed(self):
        self.spoil("0.1", "push 4 3 ", "push 4 4 ")
        self.refuse("of version 4, and counted in 4")

    def test_computed_on_what_it_never_saw(self):
        self.spoil("2.2", "push 1 4 ", "push 1 3 ")
        self.refuse("version 3, which it never saw")

    def test_a_set_with_another_rank(self):
        for session in ("0.1", "1.1", "2.1"):
            self.spoil(session, " 0:1:1 2:1:1", " 0:1:1 1:1:1")
        self.refuse("version 2: (its set is|workers saw)")

    def test_a_set_that_one_saw_otherwise(self):
        self.spoil("1.1", " 1:1:1 2:1:1", " 0:1:1 1:1:1")
        self.refuse("version 3: its set is")

    def test_a_weight_of_a_share(self):
        for session in ("0.1", "1.1"):
            self.spoil(session, " 0:1:1 1:1:1", " 0:1:1 1:1:4", 99)
        self.spoil("2.1", " 0:1:1 1:1:1", " 0:1:1 1:1:4", 99)
        self.spoil("2.2", " 0:1:1 1:1:1", " 0:1:1 1:1:4", 99)
        self.refuse("its set is")

    def test_a_set_out_of_order(self):
        for session in ("0.1", "1.1"):
            self.spoil(session, " 1:1:1 2:1:1", " 2:1:1 1:1:1")
        self.refuse("version 3: its set is")

    def test_bits_that_one_saw_otherwise(self):
        words = self.line("1.1", "outcome 2 2 ").split()
        self.spoil("1.1", words[7], "0badcafe", 1)
        self.refuse("whole is 0badcafe")

    def test_bits_that_all_saw_and_the_set_does_not_give(self):
        words = self.line("1.1", "outcome 2 2 ").split()
        for session in ("0.1", "1.1", "2.1"):
            self.spoil(session, words[7], "0badcafe", 99)
        self.refuse("version 2: workers saw 0badcafe")

    def test_another_gradient(self):
        """Its set is right, and one element of one gradient is another."""
        g = history.values(ELEMS, 0, 1, 1)
        g[3] += np.float32(1e-6)
        for session, rank, incarnation in (("0.1", 0, 1),):
            with open(f"{self.log}.{session}.grad", "wb") as f:
                f.write(g.tobytes())
                for ticket in range(2, VERSIONS + 1):
                    f.write(history.values(ELEMS, rank, incarnation, ticket).tobytes())
        self.refuse("version 1: workers saw")

    def test_versions_backwards(self):
        self.spoil("0.1", "outcome 1 5 5 5 1", "outcome 1 5 5 3 1")
        self.refuse("version 3 after 4")

    def test_the_same_version_called_fresh(self):
        self.spoil("0.1", "outcome 1 5 5 5 1", "outcome 1 5 5 5 0")
        self.refuse("called the same")

    def test_an_outcome_after_the_end(self):
        outcome = self.line("0.1", "outcome 1 6 ")
        after = outcome.replace("outcome 1 6 6 6 1 1", "outcome 0 0 0 6 0 0")
        self.spoil("0.1", outcome, outcome + after)
        self.refuse("after the last")

    def test_ends_that_differ(self):
        self.spoil("1.1", self.line("1.1", "outcome 2 6 "), "")
        self.spoil("1.1", self.line("1.1", "push 6 "), "")
        self.spoil("1.1", " 5 1 0 ", " 5 1 1 ")
        self.refuse("the job ended at versions")

    def test_a_verdict_for_nothing(self):
        self.spoil("2.2", "verdict 1 3 1 3", "verdict 1 3 1 3\nverdict 1 8 1 3")
        self.refuse("verdict of ticket 8")

    def test_a_verdict_that_is_not_so(self):
        self.spoil("2.2", "verdict 1 3 1 3", "verdict 1 3 2 0")
        self.refuse("version 3")

    def test_a_verdict_against_what_was_heard(self):
        self.spoil("2.2", "verdict 1 3 1 3", "verdict 1 3 1 3\nverdict 1 2 4 0")
        self.refuse("two verdicts")

    def test_a_verdict_of_no_session(self):
        self.spoil("2.2", "verdict 1 3 1 3", "verdict 1 3 1 3\nverdict 2 1 1 5")
        self.refuse("ticket 1 of session 2, which was never pushed")

    def test_a_verdict_left_out(self):
        """If there are more pushes than slots, only the last ones can be unread."""
        more = "".join(f"push {ticket} 2 1 0\n" for ticket in range(4, 9))
        self.spoil("2.1", "push 3 2 1 0\n", "push 3 2 1 0\n" + more)
        self.spoil("2.2", "verdict 1 3 1 3\n", "")
        self.refuse("verdicts of .3. of session 1 are lost")

    def test_a_push_that_was_never_read(self):
        """It is in no version, so one that nobody saw can be made up without it."""
        self.spoil("2.1", "push 3 2 1 0\n", "push 3 2 1 0\npush 4 2 1 0\n")
        for session, verdict in (("0.1", "1 1 1"), ("1.1", "1 1 1"), ("2.1", "2 1 0")):
            first = self.line(session, f"outcome {verdict} 1")
            second = self.line(session, "outcome 2 2 0" if session == "1.1" else "outcome 1 2 2")
            self.spoil(session, first, f"outcome {verdict} 2 1 0 " + second.split(" 2 1 0 ", 1)[1])
            self.spoil(session, second, second.replace(" 2 1 0 ", " 2 0 0 "))
            self.spoil(session, "push 2 1 ", "push 2 0 ")
            self.spoil(session, "backup:2", "async")
        self.spoil("2.2", "backup:2", "async")
        self.assertEqual(history.prove(self.log, SGD, True).checked, VERSIONS)

    def test_a_version_of_one_that_nobody_saw(self):
        """A worker that is in it says so. Others whose verdicts are not known cannot be in it,
        too."""
        path, workers = os.path.join(self.folder.name, "async"), 2
        theta, momentum = history.values(ELEMS, 999, 0, 0), np.zeros(ELEMS, np.float32)
        sums = [history.checksum(theta.tobytes())]
        for rank in range(workers):
            momentum = np.float32(0.9) * momentum + history.values(ELEMS, rank, 1, 1)
            theta = theta - np.float32(0.1 / workers) * momentum
            sums.append(history.checksum(theta.tobytes()))
        for rank in range(workers):
            with open(f"{path}.{rank}.1", "w") as f:
                f.write(f"job {rank} 1 {workers} {ELEMS} 0 0 0 1 async\n"
                        f"outcome 0 0 0 0 1 0 {sums[0]} {sums[0]} 1 0 1000 0\n"
                        "push 1 0 1 0\n"
                        f"outcome 1 1 {rank + 1} 2 1 0 {sums[2]} {sums[2]} 0.5 1 1001 1 1:1:1\n"
                        "push 2 2 1 0\n")
        self.assertEqual(history.prove(path, SGD, True).checked, 2)

    def test_a_verdict_left_out_before_another(self):
        self.spoil("2.1", "push 3 2 1 0\n", "push 3 2 1 0\npush 4 2 1 0\n")
        self.spoil("2.2", "verdict 1 3 1 3\n", "verdict 1 4 4 0\n")
        self.refuse("verdicts of .3. of session 1 are lost")

    def test_a_version_older_than_ones_own(self):
        self.spoil("0.1", "outcome 1 1 1 1 1 0", "outcome 1 1 1 0 0 0")
        self.refuse("version 0 after a push that is part of version 1")

    def test_a_ticket_left_out(self):
        self.spoil("0.1", self.line("0.1", "push 2 "), "")
        self.refuse("ticket 3 where ticket 2")

    def test_another_rule_of_the_server(self):
        for other in ({"lr_scale": "none"}, {"schedule": "steps:0.5,1"}):
            with self.assertRaisesRegex(history.Broken, "version 1: its rate is multiplied by"):
                history.prove(self.log, history.Rules("sgd:0.1,0.9", **other), True)
        with self.assertRaisesRegex(history.Broken, "version 2: workers saw"):
            history.prove(self.log, history.Rules("sgd:0.1,0"), True)

    def test_an_error_unforeseen(self):
        self.spoil("0.1", "end 0", "error wait -107\nend -107")
        self.spoil("2.1", "push 3", "end 0\npush 3")
        self.refuse("after the end")

    def test_a_line_torn(self):
        self.spoil("0.1", " 0:1:1 1:1:1", " 0:1:1 1:", 1)
        self.refuse("what is")

    def test_a_set_that_is_not_whole(self):
        self.spoil("0.1", " 0:1:1 1:1:1", " 0:1:1", 1)
        self.refuse("not whole")

    def test_jobs_that_differ(self):
        self.spoil("1.1", " 37 0 0 0 1 ", " 38 0 0 0 1 ")
        self.refuse("elems is 38")

    def test_nothing(self):
        with self.assertRaisesRegex(history.Broken, "no logs"):
            history.prove(self.log + "x", SGD, True)


if __name__ == "__main__":
    unittest.main()
