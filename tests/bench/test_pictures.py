#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What is committed of docs/papers: each picture shows the figures of its table, each was made with
the set-up that is in papers.py, and docs/papers.md shows all of them.

Exits 77 where there is no NumPy.
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

try:
    import numpy  # noqa: F401
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import papers
from paper_tools import ROOT, told

REPORT = ROOT / "docs/papers.md"
COMMITTED = ROOT / "docs/papers"
LARGEST = 64 * 1024  # bytes of a file in docs/papers


def files_of(folder, *suffixes):
    return {str(path.relative_to(folder)): path for path in folder.rglob("*")
            if path.is_file() and path.suffix in suffixes}


class Pictures(unittest.TestCase):
    def test_pictures_show_their_tables(self):
        """Drawn anew from the tables, all pictures are the same to the byte, and none is missing"""
        with tempfile.TemporaryDirectory() as made:
            shutil.copytree(COMMITTED, made, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("*.svg"))
            told([sys.executable, ROOT / "tests/bench/papers.py", "--redraw", "--out", made])
            drawn = files_of(pathlib.Path(made), ".svg")
            committed = files_of(COMMITTED, ".svg")
            self.assertEqual(set(drawn), set(committed))
            for name, path in drawn.items():
                self.assertTrue(path.read_bytes() == committed[name].read_bytes(),
                                f"{name} is not what its table says: papers.py --redraw")

    def test_report_names_figures(self):
        """The report shows every picture and names every table that is committed, and no others"""
        text = REPORT.read_text(encoding="utf-8")
        shown = set(re.findall(r"\(papers/([\w./-]+)\)", text))
        self.assertEqual(shown, set(files_of(COMMITTED, ".svg", ".csv", ".json")))
        for name in papers.FIGURES:
            self.assertIn(f"`{name}`", text)

    def test_committed(self):
        """What is committed was made with the set-ups that are in the script, and is small"""
        setup = json.loads((COMMITTED / "setup.json").read_text(encoding="utf-8"))
        for name, (text, _, figures, _) in papers.FIGURES.items():
            said = {"what": text, "digits": "real", **figures}
            self.assertEqual(setup[name], json.loads(json.dumps(said)), name)
        for name, path in files_of(COMMITTED, ".svg", ".csv", ".json").items():
            self.assertLess(path.stat().st_size, LARGEST, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
