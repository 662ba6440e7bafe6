#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""run.py itself, without machines: each case of a group runs, whatever became of those before it,
and the end says what was not so, in words from which tests/one_run.py tells a wrong bit from a busy
host.

usage: test_run.py
"""
import contextlib
import io
import pathlib
import sys
import unittest
from unittest import mock

import lab
import run
from checks import Disproved, Failed, check

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import one_run  # pylint: disable=wrong-import-position


def well(_):
    """Passes."""


def exact(_):
    """Has a name that is a word of wrong bits, and fails by time."""
    check("rank 2 is lost in time", False, "of the proof the last line")


def disproved(_):
    """Finds a wrong bit."""
    raise Disproved("NOT SO: version 3 is what its set says\nthe worker's last line")


def late(_):
    """A machine is too slow."""
    raise lab.LabTimeout("node0: no word within 90 s\nits console")


def mistaken(_):
    """Has a mistake of its own."""
    raise ValueError("of the case")


def lacking(tools):
    """Needs what is not built."""
    tools.digits.strip()


def without(_):
    """There are no machines."""
    raise lab.LabSkip("no kernel")


class Standing:
    """A lab whose machine stood still, or whose programs have reported something."""

    def __init__(self, still="", said=""):
        self.still = lambda: still
        self.reports = lambda: [lab.BROKE.search(said)] if said else []


class Run(unittest.TestCase):
    def ends(self, *cases):
        """Exit status, and what is printed."""
        said = io.StringIO()
        tools = run.Programs.__new__(run.Programs)
        tools._paths = {"digits": ""}  # pylint: disable=protected-access
        with mock.patch.object(run, "chosen", lambda _: cases), \
                mock.patch.object(run, "Programs", lambda _: tools), \
                mock.patch.object(sys, "argv", ["run.py", "group"]), \
                contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = run.main()
        return status, said.getvalue()

    def test_all_pass(self):
        status, said = self.ends(well, well)
        self.assertEqual(status, 0, said)
        self.assertEqual(said.count(": passed"), 4)

    def test_those_after_one_that_fails_run_and_all_that_failed_are_named(self):
        for fails in exact, disproved, late, mistaken:
            with self.subTest(fails.__name__):
                status, said = self.ends(fails, well, exact)
                self.assertEqual(status, 1)
                self.assertRegex(said, r"\w+\.well: passed")
                self.assertRegex(said, rf"\nFAILED: \w+\.{fails.__name__}, \w+\.exact\n")

    def test_the_last_line_is_what_was_not_so(self):
        last = self.ends(exact, late)[1].splitlines()[-1]
        self.assertEqual(last, "vm: NOT SO: rank 2 is lost in time; node0: no word within 90 s")

    def test_time_may_be_the_host_s_fault_and_a_wrong_bit_is_not(self):
        self.assertFalse(one_run.is_broken(self.ends(exact, late, well)[1]))
        self.assertTrue(one_run.is_broken(self.ends(disproved, well)[1]))
        self.assertTrue(one_run.is_broken(self.ends(exact, disproved, late, well)[1]))

    def test_what_a_program_reported_is_in_the_last_line(self):
        def reported(_):
            """A sanitizer said something."""
            lab.Lab.latest.append(Standing("node0 stood still", "==1==ERROR: AddressSanitizer: x"))
            raise lab.LabTimeout("node0: no word")
        status, said = self.ends(reported, well)
        self.assertEqual(status, 1)
        self.assertNotIn("second try", said)
        self.assertTrue(one_run.is_broken(said), said)

    def test_only_the_case_whose_machine_stood_still_is_tried_again(self):
        runs = []

        def once(_):
            """Fails beside a machine that stood still."""
            runs.append("once")
            if len(runs) == 1:
                lab.Lab.latest.append(Standing("node0 stood still for 1.0 s"))
                raise Failed("not in time")

        def other(_):
            """Passes."""
            runs.append("other")
        status, said = self.ends(once, other)
        self.assertEqual((status, runs), (0, ["once", "once", "other"]), said)
        self.assertIn("lab: second try, in new machines: node0 stood still for 1.0 s", said)

    def test_what_cannot_run_is_skipped(self):
        self.assertEqual(self.ends(without)[0], 77)
        self.assertEqual(self.ends(lacking)[0], 77)
        status, said = self.ends(lacking, well)
        self.assertEqual(status, 0)
        self.assertIn("skipped digits is not built here", said)
        self.assertEqual(self.ends(exact, without)[0], 1)

    def test_each_case_is_in_a_group_and_each_name_finds_it(self):
        for case in run.all_cases():
            self.assertEqual(list(run.chosen([run.name_of(case)])), [case])
            self.assertTrue(case.__doc__, run.name_of(case))


if __name__ == "__main__":
    unittest.main()
