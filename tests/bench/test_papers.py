#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The figures of docs/papers.md: each of them is made from nothing. test_pictures.py looks at those
that are committed.

usage: test_papers.py BUILD DIR DATA

What the figures say is not looked at: with --quick they are made of very short jobs. Exits 77 where
there is no NumPy.
"""
import csv
import json
import math
import pathlib
import shutil
import sys
import types
import unittest
import xml.etree.ElementTree as ElementTree

try:
    import numpy
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import paper_policies
import papers
from paper_tools import ROOT, interval, told

BUILD, OUT, DATA = map(pathlib.Path, sys.argv[1:4])
PAINTED = {"polyline", "circle"}


class Papers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(OUT, ignore_errors=True)
        told([sys.executable, ROOT / "tests/bench/papers.py", "--quick", "--out", OUT,
              "--build", BUILD, "--data", DATA])

    def test_every_figure(self):
        """Each figure makes a plot and a table, and says with what"""
        setup = json.loads((OUT / "setup.json").read_text(encoding="utf-8"))
        self.assertEqual(set(setup), set(papers.FIGURES))
        for name in papers.FIGURES:
            self.assertTrue(list(OUT.rglob(f"{name}*.svg")), name)
            self.assertTrue(list(OUT.rglob(f"{name}*.csv")), name)

    def test_plots_have_lines(self):
        """Each plot is XML, and has a line or a dot"""
        for path in OUT.rglob("*.svg"):
            drawn = [e for e in ElementTree.parse(path).iter()
                     if e.tag.rpartition("}")[2] in PAINTED]
            self.assertTrue(any(e.get("points") or e.get("cx") for e in drawn), path.name)

    def test_tables_have_rows(self):
        """Each row of a table has all columns"""
        for path in OUT.rglob("*.csv"):
            with open(path, newline="", encoding="utf-8") as f:
                head, *rows = csv.reader(f)
            self.assertTrue(rows, path.name)
            self.assertEqual({len(row) for row in rows}, {len(head)}, path.name)

    def test_a_line_is_as_long_as_its_jobs(self):
        """A line begins with the first figure of its jobs, and ends where one of them has failed"""
        s = types.SimpleNamespace(measure="loss")
        whole = [{"simulated_s": t, "loss": None if t == 0 else 4.0 - t} for t in range(4)]
        at = [0, 0.5, 1, 1.5, 2, 3]
        line = paper_policies.drawn(whole, "seconds", s, at)
        numpy.testing.assert_allclose(line, [math.nan, math.nan, 3, 2.5, 2, 1])
        line = paper_policies.drawn(whole[:3], "seconds", s, at)
        numpy.testing.assert_allclose(line[2:], [3, 2.5, 2, math.nan])
        self.assertTrue(numpy.isnan(paper_policies.drawn(whole[:1], "seconds", s, at)).all())

    def test_interval(self):
        """The interval is Student's: for 1 2 3 4 5 the half of it is 2.776 sd / sqrt 5"""
        mean, half = interval([1, 2, 3, 4, 5])
        self.assertEqual(mean, 3)
        self.assertAlmostEqual(half, 2.776 * 2.5 ** 0.5 / 5 ** 0.5)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
