#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Has spin try a model in every order: what holds must hold, and each mutant must be caught.

usage: run.py [--cc CC] [--keep DIR] [--model MODEL] holds [--deep] [CASE ...]
       run.py [--cc CC] [--keep DIR] [--model MODEL] mutants [MUTANT ...]
  --model muster: grants to the end of sessions, the default; generation: the loss of servers
  --cc    compiler for what spin generates (cc)
  --deep  the larger cases too: up to 4 GiB of memory, and minutes
  --keep  where to leave spin's files, trails of what failed among them
exits 77 where there is no spin.
"""

import argparse
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
DEPTH = 100_000
MEMORY_MIB = 4000

ASYNC = {"REPEATS": 1, "QUORUM": 1, "WINDOW": 200}
BATCH = {"REPEATS": 1, "QUORUM": 2, "WINDOW": 200, "K": 2}
PARTIAL = {**BATCH, "QUORUM": 3, "PARTIALS": 1, "OPS": 3, "ABANDONS": 0}
SHM = {"MAPS": 1}
LATE = {"LATE_STARTS": 1}
REST = {"RESTS": 2}
TWO_SHARDS = {"S": 2, "OPS": 1, "PIECES": 1, "KEEPS": 0}

# A case is what it sets other than state.pml. P above W: rank 0 joins again after a loss.
CASES = {
    "bsp": {"P": 3, "KEEPS": 0},
    "bsp_shm": {"P": 3, "K": 2, "ABANDONS": 0, **SHM},
    "backup": {"P": 3, "QUORUM": 1, "KEEPS": 0, "ABANDONS": 0},
    "backup_shm": {"P": 3, "QUORUM": 1, "KEEPS": 0, "ABANDONS": 0, **SHM},
    "late": {"P": 3, "QUORUM": 1, "KEEPS": 0, "ABANDONS": 0, **LATE},
    "late_shm": {"P": 3, "QUORUM": 1, "KEEPS": 0, "ABANDONS": 0, **LATE, **SHM},
    "rest": {"KEEPS": 0, **REST},
    "rest_backup": {"QUORUM": 1, "KEEPS": 0, "ABANDONS": 0, "LATE_STARTS": 2, **REST},
    "async": ASYNC,
    "async_shm": {**ASYNC, **SHM},
    "kbatchasync": BATCH,
    "kbatchasync_shm": {**BATCH, **SHM},
    "partials": {**PARTIAL, "LOSSES": 0},
    "partials_shm": {**PARTIAL, **SHM},
    "room_shm": {**ASYNC, "W": 3, "P": 3, "K": 2, "OTHERS": 1, "KEEPS": 2, "LOSSES": 0,
                 "ABANDONS": 0, "PIECES": 1, **SHM},
    "rails": {"RAILS": 2, "QUORUM": 1, "KEEPS": 0},
    "commits": {"COMMITS": 1},
    "commits_shm": {"COMMITS": 1, **SHM},
    "two_shards_shm": {**TWO_SHARDS, "ABANDONS": 0, **SHM},
    "two_shards_loss": {**TWO_SHARDS, "ABANDONS": 0},
    "two_shards_abandon": {**TWO_SHARDS, "LOSSES": 0},
}
DEEP = {
    "deep_backup": {"P": 3, "QUORUM": 1},
    "deep_backup_shm": {"P": 3, "QUORUM": 1, **SHM},
    "deep_bsp": {"P": 3},
    "deep_bsp_long": {"P": 3, "OPS": 3},
    "deep_bsp_three": {"W": 3, "P": 3},
    "deep_two_shards": {**TWO_SHARDS},
    "deep_two_shards_two": {**TWO_SHARDS, "OPS": 2, "OTHERS": 1, "LOSSES": 0, "ABANDONS": 0},
    "deep_two_shards_shm": {**TWO_SHARDS, "P": 3, "ABANDONS": 0, **SHM},
}
# Liveness: no run of this one goes on for ever without coming to rest.
RESTS = {"rests": {"OPS": 1, "ltl": "comes_to_rest"}}

# Of generation.pml. A case is what it sets other than the head of that file.
NO_KILLS = {"KILLS": 0}
GENERATION_CASES = {
    "bsp": {},
    "twice": {"KILLS": 2},
    "frozen": {**NO_KILLS, "FREEZES": 1, "NEWEST": 1},
    "cut": {"CUTS": 1},
    "evicted": {"EVICTIONS": 1},
    "new": {"CRASHES": 2, "NEWEST": 1, "SERVERS": 4},
    "backup": {"QUORUM": 2},
    "all": {"MIN": 1},
    "anew": {"MIN": 1, "CRASHES": 3, "NEWEST": 1},
    "stranger": {"STRANGER": 1},
    "incarnations": {"INCARNATIONS": 1},
}
GENERATION_DEEP = {
    "deep_long": {"NEWEST": 3, "KILLS": 2},
    "deep_thrice": {"KILLS": 3, "SERVERS": 4, "NEWEST": 1},
    "deep_backup": {"QUORUM": 2, "KILLS": 2, "NEWEST": 1},
    "deep_frozen": {"FREEZES": 1, "NEWEST": 1},
    "deep_one": {"QUORUM": 1, "NEWEST": 1, "KILLS": 2},
}
GENERATION_RESTS = {"rests": {"ltl": "comes_to_rest"}}
GENERATION_MUTANTS = {
    "LOWEST_CLAIM": ("bsp", {}, {"LINE"}),
    "CLAIM_DELIVERED": ("bsp", {}, {"RESULT"}),
    "KEEP_BEHIND": ("bsp", {}, {"RESULT"}),
    "CANCEL_COUNTED": ("bsp", {}, {"VERDICT"}),
    "VERDICT_AGAIN": ("bsp", {}, {"VERDICT", "GOES_ON"}),
    "SET_OF_ANY": ("twice", {}, {"VERDICT"}),
    "TOLD_EARLY": ("bsp", {}, {"KEPT"}),
    "OTHER_RUN": ("stranger", {}, {"LINE"}),
    "HALF": ("frozen", {}, {"ALONE"}),
    "NEW_COUNTS": ("new", {"MAY_RUN_OUT": 1}, {"LINE", "KEPT"}),
    "NO_VERSION": ("new", {"MAY_RUN_OUT": 1}, {"ONE_RUN"}),
    "INCARNATION_AGAIN": ("incarnations", {}, {"AGAIN"}),
    "OLD_WORD": ("rests", {}, {"acceptance cycle"}),
    "OLD_ANSWER": ("frozen", {}, {"LINE", "KEPT"}),
    "TORN_OFFERED": ("backup", {}, {"RESULT"}),
    "MARK_LATE": ("backup", {}, {"RESULT"}),
    "MARK_FIRST": ("frozen", {"NEWEST": 2, "SERVERS": 2, "MAY_RUN_OUT": 1}, {"RESULT"}),
    "VERSION_ALONE": ("twice", {}, {"LINE", "KEPT"}),
    "LINE_BY_NUMBER": ("deep_thrice", {"QUORUM": 1, "MAY_RUN_OUT": 1}, {"RESULT"}),
    "TAKES_BACK": ("frozen", {"KILLS": 1, "MAY_RUN_OUT": 1}, {"LINE"}),
    "NUMBER_CLAIMED": ("deep_thrice", {"MAY_RUN_OUT": 1}, {"LINE", "KEPT"}),
}

# What breaks, in which case, and the promises one of which must be found broken.
MUTANTS = {
    "REGRANT_EARLY": ("async", {}, {"EXACT"}),
    "COUNT_EARLY": ("two_shards_loss", {}, {"EXACT", "TRUST"}),
    "FORGET_INCARNATION": ("bsp", {"KEEPS": 0, "ABANDONS": 0}, {"TRUST"}),
    "FREE_EARLY": ("async", {}, {"FREED"}),
    "NO_DETACH": ("bsp", {"P": 2}, {"FREED"}),
    "SAME_MEMORY": ("bsp_shm", {"K": 1}, {"EXACT"}),
    "REUSE_HELD": ("async_shm", {}, {"HELD"}),
    "WORD_MISSING": ("async_shm", {}, {"HELD", "WAITS"}),
    "JUDGE_TWICE": ("async", {}, {"ONCE"}),
    "COMMIT_TWICE": ("async", {}, {"ORDER"}),
    "HEADER_FIRST": ("async", {}, {"EXACT"}),
    "ABANDON_ONE_RAIL": ("rails", {}, {"EXACT"}),
    "ABANDON_ONE_SHARD": ("two_shards_abandon", {}, {"TRUST"}),
    "ANSWERED_ANY": ("async", {"OPS": 3, "LOSSES": 0, "KEEPS": 0, "ABANDONS": 0}, {"HELD"}),
    "NO_SETTLE": ("bsp", {"P": 2}, {"WAITS"}),
    "ALL_WAIT": ("bsp", {"P": 2}, {"WAITS"}),
    "LEAVE_AT_ONCE": ("bsp", {"P": 2, "KEEPS": 1}, {"ONCE"}),
    "LOSE_COUNTED": ("bsp", {"P": 2}, {"SET"}),
    "IN_PLACE_ALWAYS": ("room_shm", {}, {"ROOM"}),
    "FINISH_KEEPS": ("bsp", {"P": 2, "KEEPS": 1}, {"LEFTOVER"}),
    "SET_STAYS": ("async", {}, {"SET"}),
    "VERDICT_UNHEARD": ("backup", {"P": 2}, {"WAITS"}),
    "ADVISE_EACH": ("async", {"OPS": 6, "OTHERS": 1, "LOSSES": 0, "KEEPS": 0, "ABANDONS": 0},
                    {"BOUNDED"}),
    "LATE_KEPT": ("late", {}, {"WAITS"}),
    "REST_FORGOTTEN": ("rest", {"P": 2}, {"WAITS"}),
    "OUT_OF_ORDER": ("kbatchasync", {}, {"HELD", "ORDER"}),
}


# file, cases, cases of liveness, larger cases, mutants
MODELS = {
    "muster": ("muster.pml", CASES, RESTS, DEEP, MUTANTS),
    "generation": ("generation.pml", GENERATION_CASES, GENERATION_RESTS, GENERATION_DEEP,
                   GENERATION_MUTANTS),
}


def cpu_seconds():
    """The processor time of children that have ended: other programs do not add to it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Search:
    """One search: spin, the compiler, and what pan says."""

    def __init__(self, options, figures, mutant="NOT_MUTATED", optimise="-O1"):
        self.cc = options.cc
        self.file = HERE / MODELS[options.model][0]
        self.optimise = optimise  # what spin generates takes as long to compile as to run
        self.keep = options.keep
        self.figures = dict(figures)
        self.ltl = self.figures.pop("ltl", None)
        self.mutant = mutant
        self.output = ""

    def defines(self):
        return [f"-D{k}={v}" for k, v in {**self.figures, "MUTANT": self.mutant}.items()]

    def build(self, where):
        subprocess.run(["spin", "-a", *self.defines(), self.file], cwd=where, check=True,
                       stdout=subprocess.DEVNULL)
        mode = [] if self.ltl else ["-DSAFETY", "-DNOCLAIM"]
        limits = ["-DCOLLAPSE", "-DNOFAIR", "-DVECTORSZ=4096", f"-DMEMLIM={MEMORY_MIB}"]
        subprocess.run([self.cc, self.optimise, "-w", *mode, *limits, "-o", "pan", "pan.c"],
                       cwd=where, check=True)

    def run(self, name):
        with tempfile.TemporaryDirectory(prefix="model-") as scratch:
            where = pathlib.Path(scratch)
            if self.keep:
                where = pathlib.Path(self.keep).resolve() / name
                where.mkdir(parents=True, exist_ok=True)
            self.build(where)
            began = cpu_seconds()
            claim = ["-a", "-N", self.ltl] if self.ltl else []
            done = subprocess.run(["./pan", f"-m{DEPTH}", "-w24", *claim], cwd=where, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            self.seconds = cpu_seconds() - began
            self.output = done.stdout
            self.trail = self.tell(where) if self.broken() else []
        return self

    def tell(self, where):
        """The last messages before a promise is broken, as spin replays the trail."""
        told = subprocess.run(["spin", "-k", where / f"{self.file.name}.trail", "-t", "-s", "-r",
                               *self.defines(), self.file], cwd=where, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        lines = [line.strip() for line in told.splitlines()
                 if re.search(r"Send|Recv|^ *(rank|server) \d", line)]
        return [re.sub(r"proc\s+\d+ \((\w+):\d+\) \S+", r"\1", line) for line in lines][-40:]

    def figure(self, pattern):
        found = re.search(pattern, self.output)
        return float(found[1]) if found else 0.0

    def states(self):
        return int(self.figure(r"(\d+) states, stored"))

    def mib(self):
        return self.figure(r"([\d.]+)\s+total actual memory usage")

    def broken(self):
        """The promise that is broken, in the words of the assertion; "" if none is."""
        if found := re.search(r"assertion violated .*\|\|(\w+)\)", self.output):
            return found[1]
        if found := re.search(r"^pan:\d+: (.*?) \(at depth", self.output, re.M):
            return "WAITS" if found[1] == "invalid end state" else found[1]
        return ""

    def complete(self):
        return ("errors: 0" in self.output and "Search not completed" not in self.output and
                "max search depth too small" not in self.output)

    def reached(self):
        return set(re.findall(r"^reached (\w+)$", self.output, re.M))


def to_reach(model):
    """The situations of a model: those in its file, and in what that includes."""
    text = (HERE / MODELS[model][0]).read_text()
    text += "".join((HERE / name).read_text() for name in re.findall(r'#include "(.*)"', text))
    return set(re.findall(r"(?<!define )\breach\((\w+)\)", text))


def row(*columns):
    widths = (20, 10, 8, 8)
    cells = [f"{c:>{w}}" for c, w in zip(columns, widths)]
    cells[0] = cells[0].strip().ljust(widths[0])
    print(" ".join(cells), "", *columns[len(widths):], flush=True)


def holds(options):
    _, cases, rests, deep, _ = MODELS[options.model]
    known = {**cases, **rests, **deep}
    chosen = options.names or [*cases, *rests, *(deep if options.deep else {})]
    bad, reached, wanted = 0, set(), to_reach(options.model)
    row("case", "states", "CPU s", "MiB", "outcome")
    for name in chosen:
        search = Search(options, known[name], optimise="-O2" if name in deep else "-O1").run(name)
        reached |= search.reached()
        outcome = "holds" if search.complete() else search.broken() or "NOT COMPLETED"
        row(name, search.states(), f"{search.seconds:.1f}", f"{search.mib():.0f}", outcome)
        if outcome != "holds":
            bad += 1
            print(*search.trail, sep="\n")
            print("\n".join(search.output.splitlines()[-30:]))
    missing = set() if options.names else wanted - reached
    if missing:
        print("never come by:", *sorted(missing))
    print(f"{len(chosen) - bad} of {len(chosen)} cases hold; {len(reached)} of {len(wanted)} "
          f"situations come by; {cpu_seconds():.0f} s in all")
    return bad or len(missing)


def mutants(options):
    _, cases, rests, deep, table = MODELS[options.model]
    known = {**cases, **rests, **deep}
    chosen = options.names or list(table)
    bad = 0
    row("mutant", "states", "CPU s", "MiB", "broken, in the case")
    for name in chosen:
        case, other, promises = table[name]
        optimise = "-O1" if case in deep else "-O0"
        search = Search(options, {**known[case], **other}, name, optimise).run(name)
        caught = search.broken() in promises
        bad += not caught
        row(name, search.states(), f"{search.seconds:.1f}", f"{search.mib():.0f}",
            f"{search.broken() or 'nothing'}, {case}" + ("" if caught else "  <-- NOT CAUGHT"))
    print(f"{len(chosen) - bad} of {len(chosen)} mutants are caught; {cpu_seconds():.0f} s in all")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--keep")
    parser.add_argument("--model", choices=MODELS, default="muster")
    parser.add_argument("what", choices=("holds", "mutants"))
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    for tool in ("spin", options.cc):
        if shutil.which(tool) is None:
            print(f"skipped: there is no {tool}; Debian has it in a package of that name")
            sys.exit(SKIPPED)
    sys.exit(1 if {"holds": holds, "mutants": mutants}[options.what](options) else 0)


if __name__ == "__main__":
    main()
