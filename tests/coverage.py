#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Line coverage of what decides, from the counts that a run of the tests has left in a build with
MUSTER_COVERAGE: a table per file, the lines that no test came by, and a failure below a limit.

usage: coverage.py BUILD [--limit 95] [--lines] DIRECTORY ...
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def counts_of(gcda):
    """{path: {line: executions}} as gcov tells them of one object."""
    run = subprocess.run(["gcov", "--json-format", "--stdout", gcda.name], cwd=gcda.parent,
                         capture_output=True, text=True, check=True)
    found = {}
    for entry in json.loads(run.stdout)["files"]:
        lines = found.setdefault(entry["file"], {})
        for line in entry["lines"]:
            number = line["line_number"]
            lines[number] = max(lines.get(number, 0), line["count"])
    return found


def add(total, found, directories):
    """Takes over the files that lie in one of the directories."""
    for name, lines in found.items():
        path = pathlib.Path(name)
        if path.is_absolute() and path.is_relative_to(ROOT):
            path = path.relative_to(ROOT)
        if str(path.parent) not in directories:
            continue
        merged = total.setdefault(str(path), {})
        for number, count in lines.items():
            merged[number] = merged.get(number, 0) + count


def gather(build, directories):
    """The counts of every source in the directories; one without any was never linked."""
    total = {}
    for gcda in sorted(pathlib.Path(build).resolve().rglob("*.gcda")):
        if any(gcda.name == f"{source.name}.gcda" for source in sources(directories)):
            add(total, counts_of(gcda), directories)
    return total


def sources(directories):
    return sorted(path for d in directories for path in (ROOT / d).glob("*.c"))


def share(hit, all_lines):
    return 100.0 * hit / all_lines if all_lines else 0.0


def ranges(numbers):
    """[1, 2, 3, 7] as "1-3, 7"."""
    out = []
    for number in sorted(numbers):
        if out and number == out[-1][1] + 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def print_row(name, hit, lines):
    print(f"{name:<36} {hit:>6} of {lines:>6}  {share(hit, lines):6.1f} %")


def judge(directory, total, limit, with_lines):
    """Prints a directory's table. Returns whether it reaches the limit."""
    hit = lines = 0
    for source in sources([directory]):
        name = str(source.relative_to(ROOT))
        counts = total.get(name, {})
        if not counts:
            print(f"{name:<36} no counts: not in the build, or no test links it")
            return False
        reached = sum(1 for count in counts.values() if count > 0)
        print_row(name, reached, len(counts))
        if with_lines and reached < len(counts):
            print(f"{'':<36}   not: {ranges(n for n, c in counts.items() if c == 0)}")
        hit += reached
        lines += len(counts)
    print_row(directory, hit, lines)
    print()
    return lines > 0 and share(hit, lines) >= limit


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--limit", type=float, default=95.0)
    parser.add_argument("--lines", action="store_true", help="also the lines not reached")
    args = parser.parse_args()
    total = gather(args.build, args.directories)
    low = [d for d in args.directories if not judge(d, total, args.limit, args.lines)]
    for directory in low:
        print(f"{directory}: below {args.limit:g} % of its lines, or not measured")
    sys.exit(1 if low else 0)


if __name__ == "__main__":
    main()
