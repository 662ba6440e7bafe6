#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The report: every figure is made from nothing, and docs/papers.md names every figure there is.

usage: test_papers.py BUILD DIR DATA

What the figures say is not looked at: with --quick they are made of very short jobs. Exits 77 where
there is no NumPy.
"""
import csv
import json
import pathlib
import re
import shutil
import sys
import unittest
import xml.etree.ElementTree as ElementTree

try:
    import numpy  # noqa: F401
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import papers
from paper_tools import ROOT, interval, told

REPORT = ROOT / "docs/papers.md"
COMMITTED = ROOT / "docs/papers"
LARGEST = 64 * 1024  # bytes of a file in docs/papers
BUILD, OUT, DATA = map(pathlib.Path, sys.argv[1:4])
PAINTED = {"polyline", "circle"}


def files_of(folder):
    return {path.name for path in folder.iterdir()}


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
            self.assertTrue(list(OUT.glob(f"{name}*.svg")), name)
            self.assertTrue(list(OUT.glob(f"{name}*.csv")), name)

    def test_plots_have_lines(self):
        """Each plot is XML, and has a line or a dot"""
        for path in OUT.glob("*.svg"):
            drawn = [e for e in ElementTree.parse(path).iter()
                     if e.tag.rpartition("}")[2] in PAINTED]
            self.assertTrue(any(e.get("points") or e.get("cx") for e in drawn), path.name)

    def test_tables_have_rows(self):
        """Each row of a table has all columns"""
        for path in OUT.glob("*.csv"):
            with open(path, newline="", encoding="utf-8") as f:
                head, *rows = csv.reader(f)
            self.assertTrue(rows, path.name)
            self.assertEqual({len(row) for row in rows}, {len(head)}, path.name)

    def test_report_names_figures(self):
        """The report shows every plot and names every table that is committed, and no others"""
        text = REPORT.read_text(encoding="utf-8")
        shown = set(re.findall(r"\(papers/([\w.-]+)\)", text))
        self.assertEqual(shown, files_of(COMMITTED))
        for name in papers.FIGURES:
            self.assertIn(f"`{name}`", text)

    def test_committed(self):
        """What is committed was made with the set-ups that are in the script, and is small"""
        setup = json.loads((COMMITTED / "setup.json").read_text(encoding="utf-8"))
        for name, (text, _, figures, _) in papers.FIGURES.items():
            said = {"what": text, "digits": "real", **figures}
            self.assertEqual(setup[name], json.loads(json.dumps(said)), name)
        for path in COMMITTED.iterdir():
            self.assertLess(path.stat().st_size, LARGEST, path.name)

    def test_interval(self):
        """The interval is Student's: for 1 2 3 4 5 the half of it is 2.776 sd / sqrt 5"""
        mean, half = interval([1, 2, 3, 4, 5])
        self.assertEqual(mean, 3)
        self.assertAlmostEqual(half, 2.776 * 2.5 ** 0.5 / 5 ** 0.5)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
