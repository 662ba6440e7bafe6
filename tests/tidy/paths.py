#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each path that the documentation names is there.

usage: paths.py ROOT

A path is a word between backticks that begins with a folder of the checkout: "*", "{a,b}" and the
words NAME and COMMAND stand for more than one. What `git show` names is of another time.
"""

import itertools
import pathlib
import re
import sys

import tree

FOLDERS = (*(f"{d}/" for d in tree.SOURCE_DIRS), "docs/", "deploy/", "cmake/")
PAGES = ("README.md", "CONTRIBUTING.md", "docs/*.md", "tests/**/*.md", "server/core/model/*.md")
WORD = re.compile(r"`([\w./{},*\[\]-]+)`")
STANDS_FOR = re.compile(r"NAME|COMMAND|PROGRAM")


def spelled_out(word):
    """The patterns that "{a,b}" in a word stands for."""
    parts = [part.split(",") for part in re.split(r"[{}]", word)]
    return ["".join(choice) for choice in itertools.product(*parts)]


def is_there(root, word):
    patterns = (STANDS_FOR.sub("*", each).rstrip("/") for each in spelled_out(word))
    return all(any(root.glob(p)) or any(root.glob(p + ".*")) for p in patterns)


def complaints(root, page):
    text = page.read_text(encoding="utf-8")
    for found in WORD.finditer(text):
        if found.group(1).startswith(FOLDERS) and not is_there(root, found.group(1)):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{page.relative_to(root)}:{line}: there is no {found.group(1)}"


def main():
    root = pathlib.Path(sys.argv[1])
    pages = sorted({page for pattern in PAGES for page in root.glob(pattern)})
    tree.conclude([c for page in pages for c in complaints(root, page)], len(pages))


if __name__ == "__main__":
    main()
