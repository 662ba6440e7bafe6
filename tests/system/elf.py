#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What is installed was built hardened (cmake/harden.cmake): its ELF files say so.

usage: elf.py [--fortified] [--cet] FILE ...
  --fortified  optimised and without sanitizers, so the C library's checked calls are used
  --cet        the compiler marks where indirect jumps may land (x86_64)
"""
import argparse
import re
import subprocess
import sys


def said(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def imports(path):
    """Names of the functions it takes from other libraries."""
    symbols = said("readelf", "--wide", "--dyn-syms", path).splitlines()
    return {line.split()[7].split("@")[0] for line in symbols
            if re.search(r" UND \w", line)}


def begins_marked(path):
    """Is one of its functions marked? The C library's own start code is marked in any case."""
    for name in ("main", "muster_open"):
        code = said("objdump", f"--disassemble={name}", path)
        found = re.search(rf"<{name}>:\n(.*)", code)
        if found:
            return "endbr64" in found[1]
    return False


def complaints(path, fortified, cet):
    header = said("readelf", "--wide", "--file-header", "--program-headers", path)
    dynamic = said("readelf", "--wide", "--dynamic", path)
    taken = imports(path)
    if " GNU_RELRO " not in header:
        yield "its relocated data stay writable (no GNU_RELRO)"
    if not re.search(r"\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW", dynamic):
        yield "functions are bound when they are first called (no BIND_NOW)"
    if "(TEXTREL)" in dynamic:
        yield "its code is relocated (TEXTREL)"
    if not re.search(r" GNU_STACK .* RW ", header):
        yield "its stack may be executable"
    if not re.search(r"Type: +DYN", header):
        yield "it is not position independent"
    if "__stack_chk_fail" not in taken:
        yield "no function has a stack protector"
    if fortified and not {name for name in taken if re.fullmatch(r"__(?!stack)\w+_chk", name)}:
        yield "no call is checked (_FORTIFY_SOURCE)"
    if cet and not begins_marked(path):
        yield "its functions do not say that an indirect jump may land there (-fcf-protection)"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fortified", action="store_true")
    p.add_argument("--cet", action="store_true")
    p.add_argument("files", nargs="+")
    a = p.parse_args()
    found = [f"{path}: {what}" for path in a.files
             for what in complaints(path, a.fortified, a.cet)]
    print("\n".join(found) or f"hardened: {' '.join(a.files)}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
