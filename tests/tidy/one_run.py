#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What tests/one_run.py says of builds whose tests are made up.

usage: one_run.py
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "one_run.py"
# Fails when it is run for the first time.
ONCE = 'test -e again || { touch again; echo "too late"; exit 1; }'


class OneRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.builds = pathlib.Path(folder.name)

    def build(self, preset, *tests):
        """@tests: a name, a line for the shell, and labels."""
        (self.builds / preset).mkdir()
        lines = []
        for name, line, *labels in tests:
            lines += [f"add_test([=[{name}]=] [=[sh]=] [=[-c]=] [=[{line}]=])",
                      f"set_tests_properties([=[{name}]=] PROPERTIES SKIP_RETURN_CODE 77 "
                      f"TIMEOUT 30 LABELS [=[{';'.join(labels)}]=])"]
        (self.builds / preset / "CTestTestfile.cmake").write_text("\n".join(lines))

    def run_all(self, *options, presets=("release",)):
        command = [sys.executable, PROGRAM, "--builds", self.builds, *options, *presets]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout

    def listed(self, *options):
        status, said = self.run_all("--list", *options, presets=("release", "asan", "tsan"))
        self.assertEqual(status, 0)
        return set(said.split())

    def test_slow_ones_run_where_they_are_asked_for(self):
        tests = [("a", "true"), ("long", "true", "slow"), ("first", "true", "quick")]
        for preset in "release", "asan", "tsan":
            self.build(preset, *tests)
        self.assertEqual(self.listed(), {"release:a", "release:first", "asan:a", "asan:first",
                                         "tsan:a", "tsan:first"})
        self.assertIn("tsan:long", self.listed("--slow"))
        self.assertEqual(self.listed("--label", "quick"),
                         {"release:first", "asan:first", "tsan:first"})

    def test_all_pass(self):
        self.build("release", ("a", "true"), ("b", "exit 77"))
        status, said = self.run_all()
        self.assertEqual(status, 0, said)
        self.assertIn("run: release: 1 tests passed, 1 skipped", said)

    def test_one_that_fails_is_named_with_its_build(self):
        self.build("release", ("a", "true"))
        self.build("asan", ("a", "false"))
        status, said = self.run_all(presets=("release", "asan"))
        self.assertEqual(status, 1)
        self.assertIn("run: release: 1 tests passed", said)
        self.assertIn("run: asan: FAILED, 1 of 1 tests failed: asan:a", said)

    def test_one_whose_program_is_not_there_has_failed(self):
        self.build("release", ("a", "true"), ("b", "true"))
        listed = self.builds / "release" / "CTestTestfile.cmake"
        listed.write_text(listed.read_text() + "\nadd_test(c /nowhere/to/be/found)\n")
        status, said = self.run_all()
        self.assertEqual(status, 1)
        self.assertIn("release:c", said)

    def test_a_build_of_which_no_test_runs_fails(self):
        self.build("release", ("a", "exit 77"))
        self.assertEqual(self.run_all()[0], 1)

    def test_without_a_test_over_rdma_a_run_of_ci_fails(self):
        self.build("release", ("a", "true"), ("vm.a", "exit 77"))
        self.assertEqual(self.run_all("--ci")[0], 1)
        self.build("tsan", ("vm.b", "echo digest: vm.b was NOT RUN: it has passed"))
        self.assertEqual(self.run_all("--ci", presets=("release", "tsan"))[0], 1)
        self.build("asan", ("vm.a", "true"))
        self.assertEqual(self.run_all("--ci", presets=("release", "asan"))[0], 0)

    def test_one_that_looks_at_a_clock_runs_again(self):
        self.build("release", ("a", ONCE, "clock"))
        status, said = self.run_all()
        self.assertEqual(status, 0, said)
        self.assertIn("UNSTABLE: release:a failed, and passed twice alone", said)
        log = self.builds / "all" / "unstable.release.a.0.log"
        self.assertIn("too late", log.read_text())

    def test_another_does_not(self):
        self.build("release", ("a", ONCE))
        status, said = self.run_all()
        self.assertEqual(status, 1)
        self.assertNotIn("UNSTABLE", said)

    def test_one_that_fails_again_has_failed(self):
        self.build("release", ("a", "false", "clock"))
        self.assertEqual(self.run_all()[0], 1)

    def test_no_clock_excuses_what_is_broken(self):
        for words in ("ERROR: AddressSanitizer: heap-use-after-free", "x.c:1: assertion failed",
                      "version 3: workers saw 1, its set gives a wrong sum"):
            with self.subTest(words):
                self.setUp()
                self.build("release", ("a", f'echo "{words}"; {ONCE}', "clock"))
                self.assertEqual(self.run_all()[0], 1)

    def test_nor_wrong_bits_in_the_last_line_of_a_script(self):
        once = 'test -e again || {{ touch again; echo "{}"; echo "exact: {}"; exit 1; }}'
        self.build("release", ("a", once.format("fine", "version 3 has other bits"), "clock"))
        self.assertEqual(self.run_all()[0], 1)
        self.build("asan", ("a", once.format("all bits are right", "too late"), "clock"))
        status, said = self.run_all(presets=("asan",))
        self.assertEqual(status, 0, said)

    def test_nor_one_that_crashes_or_hangs(self):
        for line in "test -e again || { touch again; kill -SEGV $$; }", "sleep 60":
            with self.subTest(line):
                self.setUp()
                self.build("release", ("a", line, "clock"))
                listed = self.builds / "release" / "CTestTestfile.cmake"
                listed.write_text(listed.read_text().replace("TIMEOUT 30", "TIMEOUT 1"))
                status, said = self.run_all()
                self.assertEqual(status, 1)
                self.assertNotIn("runs again", said)


if __name__ == "__main__":
    unittest.main()
