#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Includes point down, by rooted path, and every foreign header has one home.

usage: layers.py ROOT
"""

import pathlib
import re
import sys

import tree

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">]', re.M)

# Foreign header -> the directories that may see it.
HOMES = {
    r"(infiniband|rdma)/.*": ("common/transport/verbs",),
    r"openssl/.*": ("common/transport/tls", "tests/transport/tls"),
    r"libconfig\.h": ("common/config",),
    r"jansson\.h": ("tools",),
    r"zlib\.h": ("common/digits",),
    r"cblas\.h": ("client/examples/digits",),
    r"CUnit/.*": ("tests",),
    r"(\w*mmintrin|immintrin|arm_neon)\.h": ("common/kernels",),
}

CLOCK = re.compile(r"\b(clock_gettime|gettimeofday|timespec_get)\s*\(")
CLOCK_HOME = "common/base/clock.c"
# The second stands in for the C library's; the third reads the processor time of other processes.
CLOCKS = {CLOCK_HOME, "tests/system/programs/clock.c", "tests/bench/peers/meter.c"}


def read_within(line):
    """A directory, and its files' ranks: {directory/stem: rank}."""
    directory, groups = line.removeprefix("within ").split(":")
    return directory, {f"{directory}/{stem}": rank for rank, group in enumerate(groups.split("|"))
                       for stem in group.split()}


def read_lines():
    lines = (pathlib.Path(__file__).parent / "ranks.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def read_ranks():
    """Ranks of directories, and of the files of those directories that order them."""
    ranks, within = {}, {}
    for line in read_lines():
        if line.startswith("within "):
            directory, files = read_within(line)
            within[directory] = files
        elif line.split()[1] != "-":
            directory, rank = line.split()[:2]
            ranks[directory] = int(rank)
    return ranks, within


def read_titles():
    """What each directory is for."""
    rows = [line.split(None, 2) for line in read_lines() if not line.startswith("within ")]
    return {row[0]: row[2] for row in rows if len(row) == 3}


def below(path, directory):
    return str(path).startswith(directory + "/")


def home(path, ranks):
    """The nearest directory above a path that has a rank, or None."""
    above = (str(parent) for parent in pathlib.PurePath(path).parents)
    return next((directory for directory in above if directory in ranks), None)


def rooted(name, root):
    """The file an include means, as a path from the root; None for one that is not ours."""
    for candidate in (name, "include/" + name):
        if (pathlib.Path(root) / candidate).is_file():
            return candidate
    return None


def foreign_complaint(path, name):
    for pattern, homes in HOMES.items():
        if re.fullmatch(pattern, name) and not any(below(path, h) for h in homes):
            return f"{path}: <{name}> belongs to {' and '.join(homes)}"
    return None


def within_complaint(path, target, files):
    here, there = str(path.with_suffix("")), str(pathlib.PurePath(target).with_suffix(""))
    for stem in (here, there):
        if stem not in files:
            return f"{path}: {stem} has no rank within its directory: add it to ranks.txt"
    if here != there and files[there] >= files[here]:
        return f"{path}: {here} (rank {files[here]} within its directory) may not include " \
               f"{target} (rank {files[there]})"
    return None


def include_complaint(path, quote, name, root, ranks, within):
    target = rooted(name, root)
    if target is None:
        if quote == '"':
            return f'{path}: "{name}" is no path from the root of the checkout'
        return foreign_complaint(path, name)
    here, there = home(path, ranks), home(target, ranks)
    if there is None:
        return f"{path}: {target} has no rank: add its directory to ranks.txt"
    if here == there and here in within:
        return within_complaint(pathlib.PurePath(path), target, within[here])
    if here != there and ranks[there] >= ranks[here]:
        return f"{path}: {here} (rank {ranks[here]}) may not include {target} " \
               f"(rank {ranks[there]})"
    return None


def check(path, root, ranks, within):
    text = tree.read(root, path)
    if home(path, ranks) is None:
        yield f"{path}: has no rank: add its directory to ranks.txt"
        return
    for quote, name in INCLUDE.findall(text):
        complaint = include_complaint(path, quote, name, root, ranks, within)
        if complaint:
            yield complaint
    if str(path) not in CLOCKS and CLOCK.search(tree.code_only(text)):
        yield f"{path}: only {CLOCK_HOME} reads a clock; take now_ns as an argument"


def main():
    root, (ranks, within) = sys.argv[1], read_ranks()
    paths = tree.files(root, ".c", ".h")
    tree.conclude([c for p in paths for c in check(p, root, ranks, within)], len(paths))


if __name__ == "__main__":
    main()
