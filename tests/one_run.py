#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the tests of several builds in one run of ctest, the long ones first, so that no build has a
tail of its own in which processors have nothing to do. tests/run.sh calls it.

usage: one_run.py [--label L] [--slow] [--slots N] [--ci] [--builds DIR] PRESET ...
       one_run.py --list [--label L] [--slow] [--builds DIR] PRESET ...
  PRESET      built in build/PRESET
  --label L   only tests with that label
  --slow      also tests that are labelled slow
  --slots N   how many tests run side by side (cmake/muster.cmake)
  --ci        fails if no test over RDMA has run
  --builds DIR  where builds are, instead of in build
  --list      prints the names of the tests that would run

A test that looks at a clock of the host is labelled "clock". If such a test fails, it runs alone,
twice. If it passes both times it is UNSTABLE, and does not fail the run: tests/unstable.md names
its cause and what is to be done. That is not for wrong bits, for what a sanitizer reports, for an
assertion, a crash or a test that hangs.

exit status: 0 all passed; 1 some failed, or a build had no test to run
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What no busy host excuses: anywhere in what a test says, and in its last line, which is where a
# script says what is not so, after its own name.
BROKEN = re.compile(r"Sanitizer|runtime error:|assertion failed|a wrong sum|history\.Broken")
WRONG = re.compile(r"\bbits?\b|exact|checksum|differ|\bsums?\b")
# The closing lines of ctest: "	  7 - unit.base (Timeout)". What is not as it should be, and why.
CLOSING = re.compile(r"^\t\s*\d+ - (\S+) \((.*)\)$")
WELL = ("", "Skipped", "Disabled")
# In place of a program that is not there: ctest shows no command of such a test.
MISSING = ["sh", "-c", "echo 'the program of this test is not there' && exit 1"]

Test = collections.namedtuple("Test", "name command properties")
Result = collections.namedtuple("Result", "name status seconds why output")


def say(*words):
    print("run:", *words, flush=True)


# ---- the list ----

def launcher(preset):
    """The thread sanitizer of clang 14 cannot place its shadow where the kernel scatters mappings
    widely, so it runs without address randomisation where that may be asked for."""
    fixed = ["setarch", os.uname().machine, "-R"]
    may = preset == "tsan" and subprocess.run([*fixed, "true"], capture_output=True).returncode == 0
    return fixed if may else []


def tests_of(preset, a):
    """The tests of one build that are to run, each with the build's name before its own."""
    shown = subprocess.run(["ctest", "--test-dir", a.builds / preset, "--show-only=json-v1"],
                           capture_output=True, text=True, check=True)
    before = launcher(preset)
    for test in json.loads(shown.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        labels = set(properties.get("LABELS", []))
        if (a.slow or "slow" not in labels) and (a.label is None or a.label in labels):
            yield Test(f"{preset}:{test['name']}", before + test.get("command", MISSING),
                       properties)


def quoted(value):
    return f"[==[{value}]==]"


def text_of(value):
    if isinstance(value, list):
        return ";".join(str(v).replace(";", r"\;") for v in value)
    return {True: "ON", False: "OFF"}.get(value, value) if isinstance(value, bool) else value


def write_list(folder, tests):
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for test in tests:
        lines.append(f"add_test({quoted(test.name)} {' '.join(map(quoted, test.command))})")
        figures = " ".join(f"{name} {quoted(text_of(value))}"
                           for name, value in test.properties.items())
        if figures:
            lines.append(f"set_tests_properties({quoted(test.name)} PROPERTIES {figures})")
    (folder / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")


# ---- the run ----

def results_in(junit, reasons):
    """By name. What ctest counts as failed, and why, its closing lines say alone."""
    for case in ET.parse(junit).getroot().iter("testcase"):
        name = case.get("name")
        ran = "passed" if case.get("status") == "run" else "skipped"
        why = reasons.get(name, "")
        yield name, Result(name, "failed" if why not in WELL else ran,
                           float(case.get("time", 0)), why, case.findtext("system-out") or "")


def run(folder, slots, name, *more):
    """The results of what ran, by name."""
    junit = folder / name
    junit.unlink(missing_ok=True)
    with subprocess.Popen(["ctest", "--test-dir", folder, "--parallel", str(slots),
                           "--no-tests=error", "--output-on-failure", "--test-output-size-passed",
                           "1000000", "--test-output-size-failed", "1000000", "--output-junit",
                           junit, *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, errors="replace") as ctest:
        reasons = {}
        for line in ctest.stdout:
            print(line, end="", flush=True)
            found = CLOSING.match(line)
            if found:
                reasons[found.group(1)] = found.group(2)
    return dict(results_in(junit, reasons)) if junit.exists() else {}


def is_broken(output):
    last = (output.strip().splitlines() or [""])[-1]
    name, _, said = last.partition(": ")
    return BROKEN.search(output) or WRONG.search(said if name.isidentifier() else last)


def may_be_unstable(test, failed):
    return ("clock" in test.properties.get("LABELS", []) and failed.why == "Failed" and
            not is_broken(failed.output))


def passes_alone(folder, failed):
    """Twice, one after the other, with nothing beside it. Its logs stay."""
    logs = [folder / f"unstable.{failed.name.replace(':', '.')}.{turn}.log" for turn in range(3)]
    logs[0].write_text(failed.output)
    for log in logs[1:]:
        say(f"{failed.name} runs again, alone")
        again = run(folder, 1, "again.xml", "-R", f"^{re.escape(failed.name)}$")
        done = again.get(failed.name)
        if done is None or done.status != "passed":
            return False
        log.write_text(done.output)
    say(f"UNSTABLE: {failed.name} failed, and passed twice alone (tests/unstable.md); its logs:",
        *logs)
    return True


# ---- the report ----

def report_slowest(results):
    total = sum(r.seconds for r in results.values())
    say(f"the slowest tests, of {total:.0f} s:")
    for r in sorted(results.values(), key=lambda r: -r.seconds)[:15]:
        say(f"  {r.seconds:7.1f} s  {r.name}")


def second_tries(results):
    """Machines that did not boot or stood still, so that their test was tried again."""
    return sum("lab: second try" in r.output for r in results.values())


def report(preset, results, unstable):
    """Return: has this build passed?"""
    mine = [r for r in results.values() if r.name.startswith(preset + ":")]
    ran = [r for r in mine if r.status != "skipped"]
    failed = [r.name for r in mine if r.status == "failed" and r.name not in unstable]
    words = f"{len(ran) - len(failed)} tests passed, {len(mine) - len(ran)} skipped"
    if not ran:
        words = f"FAILED, no test ran, {len(mine)} skipped"
    if failed:
        words = f"FAILED, {len(failed)} of {len(ran)} tests failed: {', '.join(failed)}"
    say(f"{preset}: {words}")
    return bool(ran) and not failed


def over_rdma(results):
    """Has a machine had a device? A test that digest.py leaves out says nothing of that."""
    return any(":vm." in r.name and r.status == "passed" and "was NOT RUN" not in r.output
               for r in results.values())


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("presets", nargs="+")
    p.add_argument("--label")
    p.add_argument("--slots", type=int, default=8)
    p.add_argument("--builds", type=pathlib.Path, default=ROOT / "build")
    for flag in ("--slow", "--ci", "--list"):
        p.add_argument(flag, action="store_true")
    a = p.parse_args()
    tests = {t.name: t for preset in a.presets for t in tests_of(preset, a)}
    folder = a.builds / "all"
    write_list(folder, tests.values())
    if a.list:
        print("\n".join(tests))
        return 0
    results = run(folder, a.slots, "junit.xml")
    failed = [r for r in results.values() if r.status == "failed"]
    unstable = {r.name for r in failed
                if may_be_unstable(tests[r.name], r) and passes_alone(folder, r)}
    report_slowest(results)
    well = [report(preset, results, unstable) for preset in a.presets]
    if second_tries(results):
        say(f"{second_tries(results)} tests had a second try, for a machine failed or stood still")
    if unstable:
        say(f"{len(unstable)} tests are UNSTABLE: {', '.join(sorted(unstable))}")
    if a.ci and not over_rdma(results):
        say("FAILED: every test over RDMA was skipped (tests/vm/README.md)")
        well.append(False)
    lost = set(tests) - set(results)
    if lost:
        say(f"FAILED: {len(lost)} tests have no result, such as {min(lost)}")
        well.append(False)
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
