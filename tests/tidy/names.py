#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""No two structs, unions or enums of the tree share a name.

A type that a header only declares may be defined by each source that implements it: a test's
own implementation of a stream is a struct mst_stream, too.

usage: names.py ROOT
"""

import collections
import re
import sys

import tree

DEFINED = re.compile(r"^[ \t]*(?:static |const |typedef )*(?:struct|union|enum) (\w+) \{", re.M)
DECLARED = re.compile(r"^struct (\w+);", re.M)


def main():
    root = sys.argv[1]
    paths = tree.files(root, ".c", ".h")
    places, opaque = collections.defaultdict(list), set()
    for path in paths:
        code = tree.code_only(tree.read(root, path))
        for match in DEFINED.finditer(code):
            places[match[1]].append((path, code.count("\n", 0, match.start()) + 1))
        if path.suffix == ".h":
            opaque.update(DECLARED.findall(code))
    complaints = []
    for name, where in sorted(places.items()):
        if name in opaque and all(path.suffix == ".c" for path, _ in where):
            continue
        if len(where) > 1:
            other, (path, line) = where[0], where[-1]
            complaints.append(f"{path}:{line}: {name} is also a name in {other[0]}:{other[1]}")
    tree.conclude(complaints, len(paths))


if __name__ == "__main__":
    main()
