#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each test that tests/README.md names in its tables is there: a promise names what holds it.

usage: promises.py ROOT BUILD
"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys

import tree

# A test of ctest, or a case of tests/vm/run.py; either with `*`. Files are named too.
NAME = re.compile(r"`([a-z_]+\.[a-z0-9_.*]+)`")
ENDING = re.compile(r"\.(c|h|py|sh|md)$")


def tests_of(build):
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"],
                           capture_output=True, text=True, check=True).stdout
    return [test["name"] for test in json.loads(shown)["tests"]]


def cases_of(root):
    listed = subprocess.run(["/usr/bin/python3", root / "tests/vm/run.py", "--list"],
                            capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (\S+):", listed, re.M)


def named(text):
    """{name: number of its line} of the last column of all rows."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|"):
            for name in NAME.findall(line.rsplit("|", 2)[1]):
                if not ENDING.search(name):
                    found.setdefault(name, number)
    return found


def main():
    root, build = map(pathlib.Path, sys.argv[1:])
    there = tests_of(build) + cases_of(root)
    names = named(tree.read(root, "tests/README.md"))
    tree.conclude([f"tests/README.md:{line}: there is no test {name}"
                   for name, line in names.items() if not fnmatch.filter(there, name)], len(names))


if __name__ == "__main__":
    main()
