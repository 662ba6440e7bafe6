#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs a test that is long, and whose outcome few files decide, only if one of them has changed.

usage: digest.py NAME --inputs FILE ... -- COMMAND ...
  FILE     of the checkout, from its root; a pattern stands for all files that it matches. All that
           decide how COMMAND ends must be named.
exit status: that of COMMAND; 0 where it has passed with these inputs, and is not run

tests/digests/NAME has the digest of the inputs with which COMMAND has last passed. With any other
digest, or without that file, it is run. It is also run in continuous integration (CI) if the newest
commit has changed an input or the digest, and wherever MUSTER_WHOLE is set, as tests/run.sh --all
does, which has another compiler too. Only a run that passes with MUSTER_RECORD=1 writes the digest.
"""
import argparse
import hashlib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def files_of(patterns):
    """The files of the checkout that match. A pattern that matches none is a mistake."""
    found = set()
    for pattern in patterns:
        matches = [path for path in ROOT.glob(pattern) if path.is_file()]
        if not matches:
            sys.exit(f"digest: {pattern} is no file of the checkout")
        found.update(matches)
    return sorted(found)


def without_place(word):
    """A word of the command, alike wherever the checkout and the programs lie."""
    path = pathlib.Path(word)
    if not path.is_absolute():
        return word
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def digest_of(files, command):
    """A digest of the files and of their names, so that a file that is renamed or empty counts."""
    total = hashlib.sha256()
    for part in [without_place(word) for word in command]:
        total.update(hashlib.sha256(part.encode()).digest())
    for path in files:
        total.update(hashlib.sha256(str(path.relative_to(ROOT)).encode()).digest())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def is_newest(paths):
    """Has the newest commit changed one of them? Where nobody can say, it has."""
    done = subprocess.run(["git", "-C", ROOT, "diff", "--quiet", "HEAD~1", "HEAD", "--", *paths],
                          stderr=subprocess.DEVNULL, check=False)
    return done.returncode != 0


def reason_to_run(record, digest, files):
    """"" where it is enough that it has passed."""
    recorded = record.read_text() if record.exists() else ""
    if os.environ.get("MUSTER_RECORD"):
        return "its digest is to be recorded"
    if os.environ.get("MUSTER_WHOLE"):
        return "nothing is to be left out"
    if not recorded:
        return "no digest is recorded"
    if recorded != digest + "\n":
        return "an input has changed since its digest was recorded"
    if os.environ.get("CI") and is_newest([*files, record]):
        return "the newest commit has changed an input or the digest"
    return ""


def parse():
    p = argparse.ArgumentParser(usage="digest.py NAME --inputs FILE ... -- COMMAND ...")
    p.add_argument("name")
    p.add_argument("--inputs", nargs="+", required=True)
    if "--" not in sys.argv:
        p.error("no -- before the command")
    at = sys.argv.index("--")
    a = p.parse_args(sys.argv[1:at])
    a.command = sys.argv[at + 1:]
    return a


def main():
    a = parse()
    files = files_of(a.inputs)
    digest, record = digest_of(files, a.command), ROOT / "tests/digests" / a.name
    reason = reason_to_run(record, digest, files)
    if not reason:
        print(f"digest: {a.name} was NOT RUN: it has passed with the same inputs ({digest[:12]})")
        return 0
    print(f"digest: {a.name} runs: {reason}", flush=True)
    status = subprocess.run(a.command, check=False).returncode
    if status == 0 and os.environ.get("MUSTER_RECORD"):
        record.write_text(digest + "\n")
        print(f"digest: {record.relative_to(ROOT)} is {digest[:12]} now; commit it")
    elif status == 0 and reason.startswith(("no digest", "an input")):
        print(f"digest: {a.name} has passed. To record that (it runs once more):\n"
              f"  MUSTER_RECORD=1 ctest --preset release -R '^{a.name}$'")
    return status


if __name__ == "__main__":
    sys.exit(main())
