#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The tables of docs/tcp.md are those that networks.py prints; its figures are what links carry.

usage: test_networks.py MUSTER
"""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../docs/tcp.md")
MUSTER = ""


def rows(*args):
    """The rows that it prints, without the heading: {(link, vector): the whole line}."""
    done = subprocess.run([sys.executable, os.path.join(HERE, "networks.py"), MUSTER, *args],
                          check=True, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()[2:]
    return {tuple(line.split(" | ")[:2]): line for line in lines}


def shown():
    """The tables of the page, in their order, as rows() has them."""
    tables, inside = [], False
    with open(PAGE, encoding="utf-8") as f:
        for line in f.read().splitlines():
            if line.startswith("| link | vector |"):
                tables.append({})
                inside = True
            elif not line.startswith("|"):
                inside = False
            elif inside and not line.startswith("|---"):
                tables[-1][tuple(line.split(" | ")[:2])] = line
    return tables


class Networks(unittest.TestCase):
    def test_the_page_has_what_is_printed(self):
        even, slow = shown()
        self.assertEqual(even, rows())
        printed = rows("--slow", "3")
        self.assertGreater(len(slow), 5)
        self.assertEqual(slow, {key: printed[key] for key in slow})

    def test_a_slow_link_takes_the_time_of_its_bytes(self):
        """The link of the server carries 100 MB of each of 4 workers, and as much to each."""
        line = rows("--batches", "20")["| 100 Mbit/s", "100 MB"]
        first = line.split(" | ")[2]
        self.assertRegex(first, r"^6[34]\.\d s$")  # 2 x 4 x 8 s, and the batch


if __name__ == "__main__":
    MUSTER = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
