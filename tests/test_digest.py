#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""digest.py itself, in a checkout of two files: it leaves a test out only if it has passed with the
same inputs.

usage: test_digest.py
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "digest.py"


class Digest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.root / "tests/digests").mkdir(parents=True)
        shutil.copy(SCRIPT, self.root / "tests")
        (self.root / "a.txt").write_text("one\n")
        (self.root / "test").write_text('echo ran "$@"\nexit "$1"\n')

    def run_it(self, *words, inputs=("*.txt", "test"), **environment):
        """What digest.py returns, and whether the command has run."""
        known = {k: v for k, v in os.environ.items() if not k.startswith(("CI", "MUSTER_"))}
        done = subprocess.run(
            [self.root / "tests/digest.py", "long", "--inputs", *inputs, "--", "sh",
             self.root / "test", *words], env=known | environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        ran = "\nran" in "\n" + done.stdout
        self.assertNotEqual(ran, "NOT RUN" in done.stdout or "no file" in done.stdout)
        return done.returncode, ran

    def record(self, *words):
        self.assertEqual(self.run_it(*words, MUSTER_RECORD="1"), (0, True))

    def commit(self, what):
        git = ["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", what], check=True)

    def test_without_a_digest_it_runs_each_time(self):
        self.assertEqual(self.run_it("0"), (0, True))
        self.assertEqual(self.run_it("0"), (0, True))

    def test_what_has_passed_with_the_same_inputs_is_not_run(self):
        self.record("0")
        self.assertEqual(self.run_it("0"), (0, False))

    def test_where_nothing_is_to_be_left_out_it_is_run(self):
        self.assertEqual(self.run_it("0", MUSTER_RECORD="1"), (0, True))
        self.assertEqual(self.run_it("0"), (0, False))
        self.assertEqual(self.run_it("0", MUSTER_WHOLE="1"), (0, True))

    def test_the_place_of_the_checkout_is_no_input(self):
        self.record("0")
        other = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.root = shutil.copytree(self.root, other / "copy")
        self.assertEqual(self.run_it("0"), (0, False))

    def test_a_changed_input_a_new_one_and_one_that_is_gone_run_it(self):
        self.record("0")
        (self.root / "a.txt").write_text("two\n")
        self.assertEqual(self.run_it("0"), (0, True))
        (self.root / "a.txt").write_text("one\n")
        self.assertEqual(self.run_it("0"), (0, False))
        (self.root / "b.txt").write_text("")
        self.assertEqual(self.run_it("0"), (0, True))
        (self.root / "b.txt").unlink()
        (self.root / "a.txt").rename(self.root / "c.txt")
        self.assertEqual(self.run_it("0"), (0, True))

    def test_another_word_of_the_command_runs_it(self):
        self.record("0")
        self.assertEqual(self.run_it("0", "more"), (0, True))

    def test_what_fails_fails_and_is_not_recorded(self):
        self.record("0")
        self.assertEqual(self.run_it("3"), (3, True))
        self.assertEqual(self.run_it("3", MUSTER_RECORD="1"), (3, True))
        self.assertEqual(self.run_it("3"), (3, True))

    def test_what_fails_with_the_recorded_inputs_fails_when_it_is_run(self):
        (self.root / "test").write_text('echo ran\nexit "${FAILS-0}"\n')
        self.record()
        self.assertEqual(self.run_it(MUSTER_RECORD="1", FAILS="1"), (1, True))

    def test_what_is_skipped_is_skipped_and_not_recorded(self):
        self.assertEqual(self.run_it("77", MUSTER_RECORD="1"), (77, True))
        self.assertEqual(self.run_it("77"), (77, True))

    def test_a_pattern_that_matches_nothing_is_a_mistake(self):
        self.assertEqual(self.run_it("0", inputs=("*.text", "test")), (1, False))

    def test_ci_runs_what_the_newest_commit_has_changed(self):
        self.record("0")
        self.assertEqual(self.run_it("0", CI="1"), (0, True))  # there are no commits
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.commit("first")
        self.assertEqual(self.run_it("0", CI="1"), (0, True))
        (self.root / "other").write_text("")
        self.commit("another file")
        self.assertEqual(self.run_it("0", CI="1"), (0, False))
        (self.root / "a.txt").write_text("two\n")
        self.record("0")
        self.commit("an input and the digest")
        self.assertEqual(self.run_it("0"), (0, False))
        self.assertEqual(self.run_it("0", CI="1"), (0, True))


if __name__ == "__main__":
    unittest.main()
