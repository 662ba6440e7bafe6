#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The public headers, the version script and the library name the same functions, and nothing else.

usage: symbols.py HEADER MAP [LIBRARY]   with all headers beside it
"""

import pathlib
import re
import subprocess
import sys

import tree

DECLARED = re.compile(r"\b(muster_\w+)\s*\(")


def declared(header):
    code = "".join(tree.code_only(part.read_text())
                   for part in sorted(pathlib.Path(header).parent.glob("*.h")))
    return set(DECLARED.findall(re.sub(r"\(\s*\*\s*\w+\s*\)", "", code)))


def listed(version_script):
    """The global names of the script; its node names are not among them."""
    text = tree.code_only(pathlib.Path(version_script).read_text())
    return {name for part in re.findall(r"global:(.*?)(?:local:|})", text, re.S)
            for name in re.findall(r"[\w*?]+", part)}


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library],
                           stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    symbols = (ln.split()[:2] for ln in lines)
    return {name.split("@")[0] for name, kind in symbols if kind != "A"}  # A: a version node


def differences(have, have_what, want, want_what):
    for name in sorted(have - want):
        yield f"{name}: in {have_what}, not in {want_what}"
    for name in sorted(want - have):
        yield f"{name}: in {want_what}, not in {have_what}"


def main():
    header, version_script = sys.argv[1:3]
    names = listed(version_script)
    complaints = [f"{n}: is no muster_ name" for n in sorted(names) if not n.startswith("muster_")]
    complaints += differences(names, "the version script", declared(header), "the header")
    if len(sys.argv) > 3:
        complaints += differences(exported(sys.argv[3]), "the library", names,
                                  "the version script")
    tree.conclude(complaints, len(sys.argv) - 1)


if __name__ == "__main__":
    main()
