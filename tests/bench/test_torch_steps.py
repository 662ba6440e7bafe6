#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""torch_steps.py shows what the programs that it has started have said, if one of them fails.

usage: test_torch_steps.py
"""
import os
import unittest

import torch_steps

FAILS = ["sh", "-c", "echo there is no memory for that >&2; exit 3"]


class Failures(unittest.TestCase):
    def test_muster_run(self):
        with self.assertRaisesRegex(SystemExit, "no memory for that\nmuster run has failed: .*3"):
            torch_steps.run_muster(FAILS, dict(os.environ))

    def test_a_rank_of_gloo(self):
        words = r"(?s)no memory for that\n.*a rank of Gloo has failed: exit statuses \[3, 3\]"
        with self.assertRaisesRegex(SystemExit, words):
            torch_steps.run_gloo(FAILS, 2, dict(os.environ))

    def test_nothing_is_said_where_nothing_fails(self):
        torch_steps.run_muster(["true"], dict(os.environ))
        torch_steps.run_gloo(["true"], 2, dict(os.environ))


if __name__ == "__main__":
    unittest.main()
