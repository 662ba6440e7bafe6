#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""docs/policies.md says what every policy is that the parser knows, and every paper of the list has
a row that says by which name it is offered, or that it is not. The names that may be typed for it
are those of server/options/policy_names.c.

usage: policies.py ROOT
"""
import pathlib
import re
import sys

import tree

PAGE = pathlib.Path("docs/policies.md")
NAMES = pathlib.Path("server/options/policy_names.c")
NOT_OFFERED = "not offered"

# The schemes that the project set out from: a word of each row.
PAPERS = ("Valiant", "Sync-Opt", "Async-Opt", "SyncReplicasOptimizer", "K-sync", "AdaSync",
          "Sync-Switch", "Non-blocking SGD", "Anytime Minibatch", "DBW", "Stale synchronous",
          "Bounded delay", "Eventual", "n-softsync", "Downpour", "EASGD", "Federated", "DiLoCo",
          "ElasticDL", "Hogwild", "Ako", "Project Adam", "ASAGA", "SVRG", "Splash", "D-PSGD",
          "MATCHA", "SAINA")


def known(root):
    """Return: the names of fixed policies, and of adaptive ones, from their tables."""
    rule = tree.read(root, "server/core/policy/rule.c")
    table = rule.partition("struct policy policies[] = {")[2].partition("\n};")[0]
    adaptive = pathlib.Path(root, "server/core/policy/adaptive")
    rows = "".join(path.read_text(encoding="utf-8") for path in adaptive.glob("controller_*.c"))
    return (set(re.findall(r'^\t\{ "(\w+)",', table, re.M)),
            set(re.findall(r'^\t\.name = "(\w+)",', rows, re.M)))


def rows(page, heading):
    """The cells of all rows of all tables below a heading, down to the next one."""
    if f"\n{heading}\n" not in page:
        return []
    text = page.partition(f"\n{heading}\n")[2]
    text = re.split(r"^##", text, maxsplit=1, flags=re.M)[0]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in text.splitlines() if line.startswith("| ")]


def names(cell):
    """The policies in a cell, without their numbers."""
    return {re.split(r"[:, ]", code)[0] for code in re.findall(r"`([^`]+)`", cell)}


def plain(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


def check_tables(page, fixed, adaptive):
    """Every policy has its rows, and no row has a policy that there is not."""
    for heading, wanted in (("## The policies", fixed | adaptive), ("## Rows as data", fixed)):
        found = set().union(*(names(row[0]) for row in rows(page, heading)), set())
        for name in sorted(wanted - found):
            yield f'{PAGE}: "{heading}" has no row of {name}'
        for name in sorted(found - wanted):
            yield f'{PAGE}: "{heading}" has a row of {name}, which the parser does not know'


def table_of(text, name):
    """The pairs of a table of policy_names.c; a second string may stand in several pieces."""
    body = text.partition(f"}} {name}[] = {{")[2].partition("\n};")[0]
    return dict(re.findall(r'\{\s*"([^"]+)",\s*"([^"]*)"', body))


def check_papers(page, policies, called, absent):
    """Each paper has one row; what may be typed for it leads to what the row says."""
    found = rows(page, "### From a paper's name to ours")[1:]
    for paper in PAPERS:
        if not any(paper in row[0] for row in found):
            yield f"{PAGE}: no row says whether {paper} is offered"
    for row in found:
        ours = names(row[1])
        if (row[1] != NOT_OFFERED and not ours) or not ours <= policies:
            yield f'{PAGE}: "{row[0]}": {row[1]} is no policy, and not "{NOT_OFFERED}"'
        if row[1] == NOT_OFFERED and not row[2]:
            yield f'{PAGE}: "{row[0]}" does not say why it is not offered'
        for typed in re.findall(r"`([^`]+)`", row[0]):
            name = plain(typed)
            leads = {called[name]} if name in called else {name} & policies
            if not (leads & ours if ours else name in absent):
                yield f'{PAGE}: "{row[0]}": {NAMES} says something else of {typed}'


def check_names(policies, called, absent):
    for name in sorted((called.keys() | absent.keys()) & policies | called.keys() & absent.keys()):
        yield f"{NAMES}: {name} is a policy, or is in both tables"
    for name, ours in called.items():
        if ours not in policies:
            yield f"{NAMES}: {name}: there is no policy {ours}"
    for name in called.keys() | absent.keys():
        if plain(name) != name:
            yield f"{NAMES}: {name} would never be found: it has more than small letters and digits"


def main():
    root = sys.argv[1]
    page, text = tree.read(root, PAGE), tree.read(root, NAMES)
    fixed, adaptive = known(root)
    called, absent = table_of(text, "called"), table_of(text, "absent")
    complaints = [*check_tables(page, fixed, adaptive),
                  *check_papers(page, fixed | adaptive, called, absent),
                  *check_names(fixed | adaptive, called, absent)]
    if not (fixed and adaptive and called and absent):
        complaints.append("a table was not found where it used to be")
    tree.conclude(complaints, 2)


if __name__ == "__main__":
    main()
