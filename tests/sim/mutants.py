#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds muster with one deliberate fault at a time, and sees each be caught by the simulation, or
by random histories of the ledger.

A simulation that finds nothing proves little until it has found what is known to be wrong. Each
mutant replaces a piece of source by another, or several ("also") where one promise is kept in
several places; a piece must occur exactly once, so that a mutant whose target has changed is
noticed. A mutant that only worlds with a certain fault can show names it ("with"), and is sought in
those; one that only near and far workers together show names their worlds ("transport"). A mutant
that no world can show names a policy ("histories"), and is sought in histories of
unit.ledger_random under this policy; or the unit test whose cases show it ("cases"). The world or
history that has caught a mutant ("first") is tried before all others, because a search from world 1
on takes most of the time; --rewrite and --markdown search from world 1 on, and --rewrite notes
which world it was.

usage: mutants.py BUILD [--sample | --seed N | --only NAME,...] [--seeds N] [--jobs N] [--markdown]
                  [--rewrite]
  --sample  the mutants that the list marks ("sample"): one for each file that has any in
            server/core, server/data, server/control and client
  --seed    as many others, drawn by N
Whichever are chosen, each target of the whole list must be found.
exit status: 0 all were caught, 1 some lived, a target was not found, or a file is not in the sample
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).parent / "mutants.json"
MUTANTS = json.loads(TABLE.read_text())
WORLDS = pathlib.Path("tests/sim/test_sim")
UNIT = pathlib.Path("tests/unit")
HISTORIES = UNIT / "server/test_unit_ledger_random"
SAMPLED = ("server/core/", "server/data/", "server/control/", "client/")


def texts(mutant):
    """What each source is to be."""
    found = {}
    for edit in [mutant, *mutant.get("also", [])]:
        text = found.get(edit["file"]) or (ROOT / edit["file"]).read_text()
        if text.count(edit["old"]) != 1:
            raise SystemExit(f"{mutant['name']}: a target occurs {text.count(edit['old'])} "
                             f"times in {edit['file']}")
        found[edit["file"]] = text.replace(edit["old"], edit["new"])
    return found


def sample():
    """The mutants that are marked; each file of SAMPLED that has mutants must have one among
    them."""
    marked = [m for m in MUTANTS if m.get("sample")]
    lacking = {m["file"] for m in MUTANTS} - {m["file"] for m in marked}
    lacking = sorted(f for f in lacking if f.startswith(SAMPLED))
    if lacking:
        raise SystemExit(f'no mutant of {", ".join(lacking)} has "sample" in {TABLE.name}')
    return marked


def choose(args):
    if args.only:
        return [m for m in MUTANTS if m["name"] in args.only.split(",")]
    if args.sample:
        return sample()
    if args.seed is not None:
        print(f"mutants of seed {args.seed}", flush=True)
        return random.Random(args.seed).sample(MUTANTS, len(sample()))
    return MUTANTS


def shown_by(mutant):
    if "cases" in mutant:
        layer = pathlib.Path(mutant["file"]).parts[0]  # whose folder has the tests of the file
        return UNIT / layer / f"test_{mutant['cases'].replace('.', '_')}"
    return HISTORIES if "histories" in mutant else WORLDS


PROGRAMS = sorted({shown_by(mutant) for mutant in MUTANTS})


class Builder:
    """Compiles one source with another text, and links the simulation, or the histories, with it
    before the rest."""

    def __init__(self, build, scratch):
        self.build, self.scratch = pathlib.Path(build).resolve(), pathlib.Path(scratch)
        names = [program.name for program in PROGRAMS]
        out = subprocess.run(["ninja", "-C", str(self.build), "-t", "commands", *names],
                             check=True, capture_output=True, text=True).stdout.splitlines()
        self.link = {program: next(line for line in reversed(out) if f" -o {program} " in line)
                     for program in PROGRAMS}
        self.compile = {}
        for line in out:
            found = re.search(r" -c (\S+\.c)$", line)
            if found:
                self.compile.setdefault(str(pathlib.Path(found.group(1)).resolve()), line)

    def run(self, command):
        done = subprocess.run(command, shell=True, cwd=self.build, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")

    def compile_one(self, name, file, text):
        source, mutated = ROOT / file, self.scratch / f"{name}-{pathlib.Path(file).name}"
        mutated.write_text(text)
        command, obj = self.compile[str(source)], mutated.with_suffix(".o")
        command = re.sub(r" -o \S+", f" -o {obj}", command)
        command = re.sub(r" -M[DTF]+( \S+\.[od])?(?= )", "", command)
        command = re.sub(r" -c \S+$", f" -iquote {source.parent} -c {mutated}", command)
        self.run(command + " -Wno-error -O0 -g0")  # it is run for less time than it is compiled
        return str(obj)

    def make(self, mutant):
        name, program = mutant["name"], self.scratch / mutant["name"]
        objs = " ".join(self.compile_one(name, f, t) for f, t in texts(mutant).items())
        self.run(self.link[shown_by(mutant)].replace(f" -o {shown_by(mutant)} ",
                                                     f" {objs} -o {program} "))
        return program


def replay(program, mutant, seeds):
    """The same of histories."""
    first, last = map(int, seeds.split("-")) if "-" in seeds else (int(seeds), int(seeds))
    done = subprocess.run([str(program), "--policy", mutant["histories"], "--seed", str(first),
                           "--count", str(last - first + 1)], capture_output=True, text=True)
    found = re.search(r"FAILED at line \d+: (?P<sentence>.*)\nagain .* --seed (?P<seed>\d+)",
                      done.stdout)
    return (int(found["seed"]) if found else last) - first + 1, found


def fail_case(program):
    """The same of cases: those before the one that fails."""
    done = subprocess.run([str(program)], capture_output=True, text=True)
    found = re.search(r"(?P<seed>) Test: (?P<sentence>.*) \.\.\.FAILED", done.stdout)
    return 1, found


def live_through(program, mutant, seeds, jobs):
    """Returns how many worlds there were, and the seed and the sentence of the one that failed."""
    if "cases" in mutant:
        return fail_case(program)
    if "histories" in mutant:
        return replay(program, mutant, seeds)
    command = [str(program), "--seeds", seeds, "--jobs", str(jobs), "--short"]
    if "transport" in mutant:
        command += ["--transport", mutant["transport"]]
    if mutant.get("with") == "ranks":
        command += ["--lose-ranks"]
    elif "with" in mutant:
        command += ["--with", mutant["with"]]
    done = subprocess.run(command, capture_output=True, text=True)
    worlds = int(re.search(r"(\d+) worlds", done.stdout).group(1))
    return worlds, re.search(r"seed (?P<seed>\d+) fails: (?P<sentence>.*)", done.stdout)


def hunt_from(first, program, mutant, args):
    """All worlds from this one on. One that fails without the mutant, too, has not caught it."""
    worlds = 0
    if "cases" in mutant:
        _, caught = fail_case(program)
        return 1, None if caught and fails_anyway(mutant, "", args) else caught
    while first <= args.seeds:
        lived, caught = live_through(program, mutant, f"{first}-{args.seeds}", args.jobs)
        worlds += lived
        if not caught or not fails_anyway(mutant, caught["seed"], args):
            return worlds, caught
        first = int(caught["seed"]) + 1
    return worlds, None


def fails_anyway(mutant, seed, args):
    return live_through(pathlib.Path(args.build) / shown_by(mutant), mutant,
                        f"{seed}-{seed}", 1)[1]


def hunt(program, mutant, args):
    """Tries the world that has caught it before; else all from the first on."""
    if "first" in mutant and not (args.rewrite or args.markdown):
        worlds, caught = live_through(program, mutant, str(mutant["first"]), 1)
        if caught and not fails_anyway(mutant, caught["seed"], args):
            return worlds, caught
    return hunt_from(1, program, mutant, args)


def rewrite(firsts):
    """Notes the worlds that have caught mutants, each before the sentence of what is wrong."""
    lines, name = [], None
    for line in TABLE.read_text().splitlines():
        if found := re.match(r'  "name": "(.*)",$', line):
            name = found.group(1)
        if name in firsts and line.startswith('  "first": '):
            continue
        if name in firsts and line.startswith('  "what": '):
            lines.append(f'  "first": {firsts[name]},')
        lines.append(line)
    TABLE.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--sample", action="store_true")
    chosen.add_argument("--seed", type=int)
    chosen.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=20000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--rewrite", action="store_true")
    args = parser.parse_args()
    for mutant in MUTANTS:
        texts(mutant)
    wanted = choose(args)
    lived, firsts = 0, {}
    if args.markdown:
        print("| mutant | what is wrong | worlds until caught | what was seen |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        builder = Builder(args.build, scratch)
        for mutant in wanted:
            worlds, caught = hunt(builder.make(mutant), mutant, args)
            seen = caught["sentence"] if caught else "NOT CAUGHT"
            lived += caught is None
            if caught and "cases" not in mutant:
                firsts[mutant["name"]] = int(caught["seed"])
            if args.markdown:
                those = f" that are {mutant['transport']}" if "transport" in mutant else ""
                those += f", of those with {mutant['with']}" if "with" in mutant else ""
                if "cases" in mutant:
                    those = f" run of {mutant['cases']}"
                if "histories" in mutant:
                    those = f" histories of {mutant['histories']}"
                print(f"| {mutant['name']} | {mutant['what']} | {worlds}{those} | {seen} |",
                      flush=True)
            else:
                print(f"{mutant['name']:28}{worlds:6}  {seen}", flush=True)
    if args.rewrite:
        rewrite(firsts)
    print(f"{len(wanted) - lived} of {len(wanted)} mutants caught", file=sys.stderr)
    return 1 if lived else 0


if __name__ == "__main__":
    sys.exit(main())
