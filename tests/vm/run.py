#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs cases in machines with soft-RoCE. Cases of a group come one after the other, and share
machines (shared.py).

usage: run.py [--build DIR] GROUP|CASE ...
       run.py --list
  CASE         jobs.loss, say, or loss alone: all of that name
  --build DIR  whose programs are run; by default the folder that this one is started in, if that
               is a build, else build/release

If a case fails the others still run, in new machines. The last line says what was not so.
exit status: 0 all passed; 1 some failed; 77 nothing could be run
"""
import argparse
import collections
import json
import pathlib
import sys
import time
import traceback

import doctor
import jobs
import kills
import lab
import servers
import shared
import tcp
import transports
from checks import Failed

PROGRAMS = "tests/vm/programs.json"  # in a build; CMake writes it
# Cases that switch a machine off come last: after each of them machines are booted again.
GROUPS = {
    "one": (transports.copies, transports.rails, jobs.exact, jobs.modes, jobs.two_rails,
            jobs.standard_files,
            kills.kill_while_writing, kills.stop_when_counted, kills.kill_server_in_answer),
    "two": (jobs.digits, jobs.loss, jobs.late_write, jobs.bad_input, jobs.silence,
            jobs.device_lost, servers.exact, servers.certificates, servers.loss,
            jobs.dead_machine, servers.follower_lost, servers.leader_lost),
    "three": (servers.away, servers.line_anew, servers.line_lost, servers.one_link,
              servers.footprint),
    # Programs below any job, which seldom change: CMakeLists.txt names the files.
    "transports": (transports.register, transports.threads, transports.processes,
                   transports.hostile, transports.removal, doctor.here, doctor.soft_roce,
                   doctor.peer, doctor.mtu),
    # What a sanitizer looks at: it makes all else too slow for clocks.
    "sanitized": (transports.listener, transports.faults, transports.register),
    # What repeats.
    "rest": (transports.listener, transports.faults, transports.threads_long,
             transports.processes_long, jobs.exact_rest, jobs.modes_rest, jobs.loss_rest,
             servers.exact_rest, tcp.netem, tcp.narrow),
}

Outcome = collections.namedtuple("Outcome", "name seconds word said")


class NotBuilt(Exception):
    """A program that a case needs is not there, as some libraries are not."""


class Programs:
    """Their paths, as attributes."""

    def __init__(self, build):
        try:
            self._paths = json.loads((build / PROGRAMS).read_text())
        except FileNotFoundError:
            sys.exit(f"run.py: {build} is no build with tests: cmake -DMUSTER_TESTS=ON")

    def __getattr__(self, name):
        path = self._paths.get(name)
        if not path:
            raise NotBuilt(f"{name} is not built here")
        return path


def name_of(case):
    return f"{case.__module__}.{case.__name__}"


def promise_of(case):
    return " ".join(case.__doc__.split())


def all_cases():
    return list(dict.fromkeys(case for group in GROUPS.values() for case in group))


def chosen(words):
    """The cases that are meant, or those of the groups."""
    for word in words:
        found = GROUPS.get(word.removeprefix("vm.")) or [
            case for case in all_cases() if word in (case.__name__, name_of(case))]
        if not found:
            sys.exit(f"run.py: there is no case {word}; --list has them")
        yield from found


def words_of(error):
    """The sentence of a failure, and what it is when no machine excuses it: tests/one_run.py looks
    for such words in the last line, and does not run a group again that has them."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    reports = [found[0] for machines in lab.Lab.latest for found in machines.reports()]
    if isinstance(error, lab.LabWrong):
        reports.append("a wrong bit")
    return ": ".join([*reports, said])


def once(case, tools):
    """A case that fails leaves its machines to nobody."""
    try:
        case(tools)
    except BaseException:
        shared.close()
        raise


def attempt(case, tools):
    """Return: how the case has ended, and in which words."""
    try:
        lab.tried(lambda: once(case, tools))
    except NotBuilt as e:
        return "skipped", str(e)
    except (Failed, lab.LabError) as e:
        print(e, flush=True)
        return "FAILED", words_of(e)
    except lab.LabSkip:
        raise
    except Exception as e:  # a mistake in the case itself
        traceback.print_exc(file=sys.stdout)
        return "FAILED", words_of(e)
    return "passed", ""


def run_all(cases, tools):
    for case in cases:
        print(f"--- {name_of(case)}: {promise_of(case)}", flush=True)
        began = time.monotonic()
        word, said = attempt(case, tools)
        outcome = Outcome(name_of(case), time.monotonic() - began, word, said)
        print(f"{outcome.seconds:6.1f} s  {outcome.name}: {word} {said}".rstrip(), flush=True)
        yield outcome


def report(outcomes):
    """Return: exit status. The names of cases are not in the last line: tests/one_run.py takes
    words such as exact for those of a wrong bit."""
    failed = [o for o in outcomes if o.word == "FAILED"]
    skipped = [o for o in outcomes if o.word == "skipped"]
    print(f"--- {len(outcomes)} cases in machines that were booted {shared.Kept.booted} times")
    for o in outcomes:
        print(f"{o.seconds:6.1f} s  {o.name}: {o.word}")
    if failed:
        print("FAILED:", ", ".join(o.name for o in failed))
        print("vm:", "; ".join(o.said for o in failed))
        return 1
    if len(skipped) == len(outcomes):
        print("skipped:", "; ".join(o.said for o in skipped))
        return 77
    return 0


def parse():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("names", nargs="*")
    p.add_argument("--build", type=pathlib.Path)
    p.add_argument("--list", action="store_true")
    a = p.parse_args()
    if bool(a.names) == a.list:
        p.error("name groups or cases, or --list")
    if a.build is None:
        here = pathlib.Path.cwd()
        a.build = here if (here / PROGRAMS).exists() else lab.CHECKOUT / "build" / "release"
    return a


def list_all():
    for group, cases in GROUPS.items():
        print(f"vm.{group}")
        for case in cases:
            print(f"  {name_of(case)}: {promise_of(case)}")


def main():
    a = parse()
    if a.list:
        list_all()
        return 0
    cases, tools, outcomes = list(chosen(a.names)), Programs(a.build), []
    try:
        for outcome in run_all(cases, tools):
            outcomes.append(outcome)
    except lab.LabSkip as e:
        print(f"skipped: {e}")
        return report(outcomes) or 77
    finally:
        shared.close()
    return report(outcomes)


if __name__ == "__main__":
    sys.exit(main())
