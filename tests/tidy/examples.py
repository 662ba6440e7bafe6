#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The examples of muster.torch stay what a reader wants of them: each has 100 lines or fewer, and
at most five lines of its code speak of muster, by its name or that of an object that it has made.

usage: examples.py ROOT
"""
import ast
import io
import pathlib
import sys
import tokenize

import tree

LINES, SPEAKING = 100, 5
FOLDER = pathlib.Path("client/python/examples")
TORCH = ("characters.py", "digits_cnn.py")


def is_of_muster(node):
    """muster.torch.Sync(...), say."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id == "muster"


def objects(parsed):
    """The names that the program gives to what muster makes."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.Assign) and is_of_muster(node.value):
            targets = node.targets
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and is_of_muster(node.value):
            targets = [node.target]
        elif isinstance(node, ast.withitem) and is_of_muster(node.context_expr):
            targets = [node.optional_vars]
        elif isinstance(node, ast.alias) and node.name.split(".")[0] == "muster" and node.asname:
            yield node.asname
            continue
        else:
            continue
        yield from (n.id for t in targets if t for n in ast.walk(t) if isinstance(n, ast.Name))


def inside(token):
    """The names in a token: a name, or what an f-string has in braces, which is one token before
    Python 3.12."""
    if token.type == tokenize.NAME:
        return {token.string}
    if token.type == tokenize.STRING and "f" in token.string.split(token.string[-1])[0].lower():
        parsed = ast.parse(token.string, mode="eval")
        return {n.id for n in ast.walk(parsed) if isinstance(n, ast.Name)}
    return set()


def speaking(text):
    """The numbers of the lines of code that speak of muster. Comments and docstrings may."""
    names = {"muster", *objects(ast.parse(text))}
    return sorted({t.start[0] for t in tokenize.generate_tokens(io.StringIO(text).readline)
                   if inside(t) & names})


def complaints(path, text):
    lines = text.splitlines()
    if len(lines) > LINES:
        yield f"{path}: {len(lines)} lines of {LINES}"
    numbers = speaking(text)
    if path.name in TORCH and len(numbers) > SPEAKING:
        yield f"{path}: {len(numbers)} lines speak of muster, of {SPEAKING}:"
        yield from (f"{path}:{n}: {lines[n - 1].strip()}" for n in numbers)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: examples.py ROOT")
    root = pathlib.Path(sys.argv[1])
    paths = sorted(p.relative_to(root) for p in (root / FOLDER).glob("*.py"))
    found = [c for path in paths for c in complaints(path, tree.read(root, path))]
    found += [f"{FOLDER / name} is not there" for name in TORCH if FOLDER / name not in paths]
    tree.conclude(found, len(paths))


main()
