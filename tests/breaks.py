#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Breaks muster on purpose, one way at a time, and says which of the quick tests notice.

Each file of tests/breaks is a patch with a mistake that a good engineer might make. Its first line
says what it breaks, and for whom. The patches are applied to a copy of the checkout, with all that
is not committed, in a temporary folder; the checkout is only read. The copy is built once, and for
each patch what has changed. A test that fails without any patch notices nothing. Left out are the
tests with the labels tidy, which look at the style, and clock, which a busy host alone makes fail.
The tests are stopped at the first that fails, unless all are wanted.

usage: breaks.py [--only 01,02] [--label quick | -R REGEX] [--all-tests] [--markdown] [--jobs N]
exit status: 0 all were caught, 1 one was missed, or does not apply or build
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PATCHES = sorted((ROOT / "tests" / "breaks").glob("*.patch"))
SETTINGS = ("-DMUSTER_TESTS=ON", "-DMUSTER_WORLDS=500", "-DMUSTER_MODEL_DEEP=OFF")  # of run.sh
FAILED = re.compile(r" Test +#\d+: (\S+) [ .]*\*\*\*(?!Skipped|Not Run)")


class NotTried(Exception):
    """A patch that could not be tried."""


def run(command, where, log):
    """Returns whether it ended well. What it says is written to the log. If this script is told to
    end, so is all that the command has started."""
    with open(log, "w") as out, subprocess.Popen(
            command, cwd=where, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            start_new_session=True) as child:
        try:
            return child.wait() == 0
        except BaseException:
            os.killpg(child.pid, signal.SIGTERM)
            raise


class Copy:
    """The checkout once more, with a build."""

    def __init__(self, folder, args):
        self.root, self.log, self.args = folder / "muster", folder / "log", args
        self.fails_anyway = []
        listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT,
                                check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)

    def tail(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])

    def configure(self):
        if not run(["cmake", "--preset", "release", *SETTINGS], self.root, self.log):
            raise NotTried(self.tail())

    def build(self):
        if not run(["cmake", "--build", "--preset", "release", "--parallel", str(self.args.jobs)],
                   self.root, self.log):
            raise NotTried(self.tail())

    def patch(self, patch, *options):
        if not run(["git", "apply", *options, str(patch)], self.root, self.log):
            raise NotTried(self.tail())

    def failures(self, stop):
        """The tests that fail now, without those that fail anyway."""
        which = ["-R", self.args.R] if self.args.R else ["-L", f"^{self.args.label}$"]
        command = ["ctest", "--preset", "release", "--parallel", str(4 * self.args.jobs),
                   "--no-tests=error", "-LE", "^(tidy|clock)$", *which]
        if self.fails_anyway:
            command += ["-E", "^(" + "|".join(map(re.escape, self.fails_anyway)) + ")$"]
        if stop:
            command.append("--stop-on-failure")
        if run(command, self.root, self.log):
            return []
        failed = FAILED.findall(self.log.read_text(errors="replace"))
        if not failed:
            raise NotTried(self.tail())
        return failed


def what_of(patch):
    return patch.read_text().splitlines()[0]


def try_patch(copy, patch):
    """Applies it, and takes it back. Returns the tests that fail, and the seconds of the build."""
    began = time.monotonic()
    copy.patch(patch)
    try:
        copy.build()
        built = time.monotonic() - began
        return copy.failures(stop=not copy.args.all_tests), built
    finally:
        copy.patch(patch, "-R")


def row(copy, patch, caught, outcome):
    if copy.args.markdown:
        print(f"| {patch.stem} | {what_of(patch)} | {caught} |", flush=True)
    else:
        print(f"breaks: {patch.stem}: {outcome}", flush=True)


def judge(copy, patch):
    """Returns whether it was caught."""
    began = time.monotonic()
    try:
        failed, built = try_patch(copy, patch)
    except NotTried as e:
        row(copy, patch, "not tried", f"NOT TRIED, it does not apply, build or run:\n{e}")
        return False
    spent = f"built in {built:.0f} s, tested in {time.monotonic() - began - built:.0f} s"
    if failed:
        row(copy, patch, ", ".join(f"`{name}`" for name in failed),
            f"caught by {', '.join(failed)}; {spent}")
    else:
        row(copy, patch, "missed", f"MISSED: {what_of(patch)} {spent}")
    return bool(failed)


def prepare(copy):
    """The build and the tests without a patch."""
    began = time.monotonic()
    copy.configure()
    copy.build()
    built = time.monotonic() - began
    copy.fails_anyway = copy.failures(stop=False)
    print(f"breaks: without a patch {', '.join(copy.fails_anyway) or 'no test'} fails; built in "
          f"{built:.0f} s, tested in {time.monotonic() - began - built:.0f} s", file=sys.stderr,
          flush=True)


def judge_all(copy, patches):
    """Returns how many were caught."""
    try:
        prepare(copy)
    except NotTried as e:
        sys.exit(f"breaks: it does not build or test without a patch:\n{e}")
    return sum([judge(copy, patch) for patch in patches])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="numbers of patches, as in 01,02")
    parser.add_argument("--label", default="quick", help="of the tests that are run")
    parser.add_argument("-R", metavar="REGEX", help="names of the tests that are run instead")
    parser.add_argument("--all-tests", action="store_true", help="go on after the first failure")
    parser.add_argument("--markdown", action="store_true", help="print the rows of a table")
    parser.add_argument("--jobs", type=int, default=min(8, len(os.sched_getaffinity(0))),
                        help="processors to use")
    return parser.parse_args()


def main():
    args = arguments()
    numbers = args.only.split(",") if args.only else [p.stem[:2] for p in PATCHES]
    wanted = [p for p in PATCHES if p.stem[:2] in numbers]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("breaks: told to end"))
    with tempfile.TemporaryDirectory(prefix="muster-breaks-") as folder:
        try:
            caught = judge_all(Copy(pathlib.Path(folder), args), wanted)
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the copy is removed whole
    print(f"breaks: {caught} of {len(wanted)} caught", file=sys.stderr)
    return 0 if wanted and caught == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
