#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every C file is as clang-format 14 would write it (other versions lay some lines out otherwise).

usage: format.py ROOT
"""

import shutil
import subprocess
import sys

import tree

FORMATTER = "clang-format-14"


def main():
    root = sys.argv[1]
    if shutil.which(FORMATTER) is None:
        print(f"skipped: {FORMATTER} is not installed (Debian package {FORMATTER})")
        sys.exit(77)
    paths = tree.files(root, ".c", ".h")
    if not paths:
        tree.conclude([], 0)
    run = subprocess.run([FORMATTER, "--dry-run", "-Werror", "--style=file", *map(str, paths)],
                         cwd=root, stderr=subprocess.PIPE, text=True, check=False)
    complaints = [ln for ln in run.stderr.splitlines() if " error: " in ln]
    if run.returncode != 0 and not complaints:
        complaints = run.stderr.splitlines()
    tree.conclude(complaints, len(paths))


if __name__ == "__main__":
    main()
