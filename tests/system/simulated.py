# SPDX-License-Identifier: MIT
"""What the tests of muster sim share: a job's figures.

Nothing there depends on chance or on the clock: a simulation gives the same figures for the same
seed. The first argument of such a test is the program muster.
"""
import json
import os
import subprocess
import sys
import unittest

MUSTER = os.path.abspath(sys.argv.pop(1))
P = 8  # workers


def run(*args):
    done = subprocess.run([MUSTER, "sim", *map(str, args)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def given(option, values):
    """The option once more for each value."""
    return [word for value in values for word in (option, value)]


class Sim(unittest.TestCase):
    def jobs(self, *args, rc=0):
        """The figures of each policy."""
        status, out, err = run("--json", "-", "-q", *args)
        self.assertEqual(status, rc, err)
        return json.loads(out)["jobs"]

    def job(self, *args, **more):
        one, = self.jobs(*args, **more)
        return one

    def step(self, *args):
        """The mean step, in ms."""
        return self.job(*args)["step_ms"]["mean"]

    def near(self, got, want, share, what):
        self.assertLess(abs(got / want - 1), share, f"{what}: {got:.4f}, and not {want:.4f}")
