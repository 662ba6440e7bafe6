#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Sizes and habits: nothing grows past what a reader can hold, and no unsafe call slips in.

usage: limits.py ROOT
"""

import re
import sys

import tree

FILE_LINES = 700
FUNCTION_LINES = 70
COLUMNS = 100
CONDITIONALS = 2
CONDITIONALS_FREE = ("common/base/", "common/kernels/")
LICENCE = "SPDX-License-Identifier: MIT"
BANNED = {
    "strcpy": "snprintf or memcpy",
    "strcat": "snprintf",
    "sprintf": "snprintf",
    "vsprintf": "vsnprintf",
    "atoi": "mst_parse_u64",
    "gets": "fgets",
}
BANNED_CALL = re.compile(r"\b(" + "|".join(BANNED) + r")\s*\(")
GUARD = re.compile(r"\A\s*#[ \t]*ifndef[ \t]+(\w+)\s*\n#[ \t]*define[ \t]+\1[ \t]*\n")


def functions(lines):
    """Yields (first line, last line) of each function, counted from 1, signature included.

    The house format opens and closes a function's body in column one, and nothing else does.
    """
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
            while start > 1 and re.match(r"[A-Za-z\t ].*[^;]$", lines[start - 2]):
                start -= 1
        elif line == "}" and start is not None:
            yield start, number
            start = None


def licence_complaints(path, lines):
    at = 2 if lines and lines[0].startswith("#!") else 1
    if len(lines) < at or LICENCE not in lines[at - 1]:
        yield f"{path}:{at}: no {LICENCE}"


def column_complaints(path, lines):
    for number, line in enumerate(lines, 1):
        columns = len(line.expandtabs(8))
        if columns > COLUMNS:
            yield f"{path}:{number}: {columns} columns of {COLUMNS}"


def conditional_complaints(path, code):
    if str(path).startswith(CONDITIONALS_FREE):
        return
    used = len(re.findall(r"^[ \t]*#[ \t]*if", GUARD.sub("", code), re.M))
    if used > CONDITIONALS:
        yield f"{path}: {used} #if of {CONDITIONALS}: choose by file in CMake instead"


def c_complaints(path, text):
    code = tree.code_only(text)
    lines = code.splitlines()
    for first, last in functions(lines):
        if last - first + 1 > FUNCTION_LINES:
            yield f"{path}:{first}: function of {last - first + 1} lines of {FUNCTION_LINES}"
    for number, line in enumerate(lines, 1):
        for call in BANNED_CALL.findall(line):
            yield f"{path}:{number}: {call}() is banned; use {BANNED[call]}"
    body = code.split("\n", 1)[1] if "\n" in code else code  # after the licence line
    yield from conditional_complaints(path, body.replace('""', ""))


def check(path, text):
    lines = text.splitlines()
    if len(lines) > FILE_LINES:
        yield f"{path}: {len(lines)} lines of {FILE_LINES}"
    yield from licence_complaints(path, lines)
    yield from column_complaints(path, lines)
    if path.suffix in (".c", ".h"):
        yield from c_complaints(path, text)


def main():
    root = sys.argv[1]
    paths = tree.files(root, ".c", ".h", ".py", ".sh")
    tree.conclude([c for p in paths for c in check(p, tree.read(root, p))], len(paths))


if __name__ == "__main__":
    main()
