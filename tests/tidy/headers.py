#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every header compiles alone, twice in a row; the public one as strict C17 and as C++ too.

usage: headers.py ROOT c COMPILER
       headers.py ROOT c++
"""

import shutil
import subprocess
import sys

import tree

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only")
PUBLIC = "include/muster/muster.h"
CXX = ("c++", "g++", "clang++")


def compile_alone(root, header, command):
    """None, or what the compiler said."""
    source = f'#include "{header}"\n' * 2
    run = subprocess.run([*command, *WARNINGS, "-I.", "-Iinclude", "-"], cwd=root, input=source,
                         stderr=subprocess.PIPE, text=True, check=False)
    return None if run.returncode == 0 else f"{header}: does not compile alone\n{run.stderr}"


def command_for(header, compiler):
    if str(header) == PUBLIC:
        return (compiler, "-x", "c", "-std=c17")
    return (compiler, "-x", "c", "-std=c17", "-D_GNU_SOURCE")


def check_c(root, compiler):
    headers = tree.files(root, ".h")
    said = [compile_alone(root, h, command_for(h, compiler)) for h in headers]
    tree.conclude([s for s in said if s], len(headers))


def check_cxx(root):
    compiler = next(filter(shutil.which, CXX), None)
    if compiler is None:
        print("skipped: no C++ compiler (Debian package g++)")
        sys.exit(77)
    said = compile_alone(root, PUBLIC, (compiler, "-x", "c++", "-std=c++11"))
    tree.conclude([said] if said else [], 1)


if __name__ == "__main__":
    if sys.argv[2] == "c++":
        check_cxx(sys.argv[1])
    else:
        check_c(sys.argv[1], sys.argv[3])
