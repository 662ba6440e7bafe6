# SPDX-License-Identifier: MIT
"""What the tidy tests share: the files of a checkout, C without comments, and the verdict."""

import pathlib
import re
import sys

SOURCE_DIRS = ("include", "common", "server", "client", "tools", "tests")


def files(root, *suffixes):
    """The project's files below root with these suffixes, sorted, as paths relative to root."""
    root = pathlib.Path(root)
    found = (p for d in SOURCE_DIRS for p in (root / d).rglob("*"))
    return sorted(p.relative_to(root) for p in found if p.suffix in suffixes and p.is_file())


def read(root, path):
    return (pathlib.Path(root) / path).read_text(encoding="utf-8", errors="replace")


_NOISE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)


def code_only(text):
    """C text with comments and literals blanked, line for line where it was."""
    return _NOISE.sub(lambda m: '""' + "\n" * m.group().count("\n"), text)


def conclude(complaints, checked):
    """Prints the complaints and ends the process: 1 if there are any, or if nothing was checked."""
    for complaint in complaints:
        print(complaint)
    if not checked:
        print("nothing to check: is this the root of a checkout?")
    print(f"{checked} files, {len(complaints)} complaints")
    sys.exit(1 if complaints or not checked else 0)
