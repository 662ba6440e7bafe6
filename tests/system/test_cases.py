#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Several cases of a script in one process (base.py): each by itself, all, and what failed."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = """
import os, sys
sys.path.insert(0, {here!r})
from base import cases, check, main, must

state = []

def good(a):
    state.append(1)
    check("nothing is left of another case", len(state) == 1)
    os.system("echo a process speaks")

def wrong(a):
    print("so far so good")
    must(False, "version 3 has other bits")

def late(a):
    must(False, "too late")

def raises(a):
    raise ValueError("no such thing")

def dies(a):
    os.kill(os.getpid(), 9)

def again(a):
    good(a)

main(cases(good, wrong, late, raises, dies, again), quick=("good",), clock=("late",))
"""


class Cases(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.script = os.path.join(folder.name, "some.py")
        with open(self.script, "w") as f:
            f.write(SCRIPT.format(here=HERE))

    def play(self, *words):
        done = subprocess.run([sys.executable, self.script, *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def test_each_begins_with_nothing_of_another(self):
        status, said = self.play("good", "again")
        self.assertEqual(status, 0, said)
        self.assertEqual(said.count("nothing is left of another case"), 2)
        self.assertEqual(said.count("a process speaks"), 2)

    def test_all_are_played_and_those_that_failed_are_named(self):
        status, said = self.play("wrong", "good", "raises", "dies", "again")
        self.assertEqual(status, 1)
        self.assertIn("3 of 5 cases failed: wrong, raises, dies", said)
        self.assertIn("ok again", said)

    def test_the_last_line_is_what_the_first_that_failed_said_at_last(self):
        for cases, last in ((("good", "wrong", "late"), "some: version 3 has other bits"),
                            (("late", "wrong"), "some: too late"),
                            (("raises", "good"), "ValueError: no such thing"),
                            (("dies", "good"), "wait status 9")):
            with self.subTest(cases):
                self.assertEqual(self.play(*cases)[1].splitlines()[-1], last)

    def test_one_alone_ends_as_it_says(self):
        self.assertEqual(self.play("late"), (1, "some: too late\n"))

    def test_a_case_that_is_not_there_is_refused(self):
        for words in ((), ("good", "nothing")):
            status, said = self.play(*words)
            self.assertEqual(status, 2)
            self.assertIn("which case?", said)

    def test_the_list_has_labels_where_they_are_asked_for(self):
        self.assertEqual(self.play("--list")[1].split(),
                         ["good", "wrong", "late", "raises", "dies", "again"])
        self.assertEqual(self.play("--list", "--labels")[1].split(),
                         ["good:quick", "wrong", "late:clock", "raises", "dies", "again"])


if __name__ == "__main__":
    unittest.main()
