#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The kill matrix: real processes, hurt at exactly a moment.

usage: kill.py [MOMENT ...] --muster MUSTER --musterd TRIP_MUSTERD --worker TRIP_WORKER
               [--violence V,...] [--victim V,...] [--policy P] [--lease MS] [--timings SEED]
               [--parallel N] [--markdown FILE] [--every N] [--hosts]
       kill.py --list [--paths]

A moment is a place in the protocol where processes are made to stand still (trip.c), not a time
that was slept. What becomes of each cell must be as expected() says, and is proven by the workers'
histories: no version lost, no sum wrong, nobody stuck, nothing left. --timings draws other steps,
other work and other pieces. --every 2 runs every second cell, so that each moment, victim and
violence has half of its own, --every 4 a quarter. With --hosts each process has a host of its own
(hosts.py), and the job is over TCP. Ends with 1 if one cell is not so.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys

import host_cell
import matrix
import violence
from base import LEASE_S, listing
from cell import HEADS, MOMENTS, VICTIMS, VIOLENCE, WORKERS, Cell, no_cell

# Its cells execute the lines that those of all moments execute, but for some seventy of 11000 (as
# gcov counts them). Next comes "rejoin", which lacks three times as many.
PATHS = ("join",)


def rows(cells, a):
    done = {(c.victim, c.violence, c.moment): c for c in cells}
    for moment in a.moments:
        for victim in a.victim:
            for one in a.violence:
                why = no_cell(victim, one, moment, a.hosts)
                cell = done.get((victim, one, moment))
                if cell:
                    yield moment, victim, one, cell.figures(), bool(cell.problems)
                elif why or one == "full":
                    yield moment, victim, one, why or "no user namespaces here", False


def print_table(cells, a):
    print(f"{'moment':8} {'victim':7} {'violence':8} " + " ".join(f"{h:>13}" for h in HEADS))
    for moment, victim, one, figures, bad in rows(cells, a):
        text = f"({figures})" if isinstance(figures, str) else \
            " ".join(f"{f:>13}" for f in figures)
        print(f"{moment:8} {victim:7} {one:8} {text}{'  NOT SO' if bad else ''}")


def once_more(cell, a):
    """Some promises are about time, and on a busy host a process may stand still for a lease: a
    cell that failed by time alone is tried once more, without another beside it, and with a lease
    that is longer than such a standstill."""
    print(f"again: {cell.name}: {cell.problems[0].splitlines()[0]}", file=sys.stderr)
    a = argparse.Namespace(**vars(a))
    set_lease(a, max(a.lease_s, LEASE_S))
    return Cell(cell.victim, cell.violence, cell.moment, a).run()


def namespace():
    """A mount namespace of its own, in which any user may mount a tmpfs."""
    if os.environ.get("KILL_NAMESPACE"):
        return True
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    probe = subprocess.run([*command, "true"], capture_output=True, check=False)
    if probe.returncode == 0:
        os.environ["KILL_NAMESPACE"] = "1"
        os.execvp(command[0], [*command, sys.executable, *sys.argv])
    return False


def set_lease(a, lease_s):
    a.lease_s = lease_s
    a.join_s = max(10, 6 * lease_s)  # all but one have to come by then


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("moments", nargs="*", metavar="MOMENT")
    p.add_argument("--list", action="store_true")
    p.add_argument("--labels", action="store_true", help="none: CMake has that of all")
    p.add_argument("--paths", action="store_true", help="of the list, the one with most code")
    for tool in ("--muster", "--musterd", "--worker"):
        p.add_argument(tool)
    p.add_argument("--victim", type=lambda t: t.split(","), default=list(VICTIMS))
    p.add_argument("--violence", type=lambda t: t.split(","), default=list(VIOLENCE))
    p.add_argument("--policy", default="backup:4")
    p.add_argument("--lease", type=float, default=800, metavar="MS")
    p.add_argument("--timings", metavar="SEED")
    p.add_argument("--parallel", type=int, default=2, metavar="N")
    p.add_argument("--markdown", metavar="FILE")
    p.add_argument("--every", type=int, default=1, metavar="N")
    p.add_argument("--hosts", action="store_true", help="each process has a host of its own")
    a = p.parse_args()
    a.moments = a.moments or list(MOMENTS)
    set_lease(a, a.lease / 1000)
    for word, known in ((a.moments, MOMENTS), (a.victim, VICTIMS), (a.violence, VIOLENCE)):
        for one in word:
            if one not in known:
                p.error(f"what is {one}? There are {', '.join(known)}")
    return a


def number(*names):
    """The number of a cell, by its victim, violence and moment."""
    return sum(list(of).index(one) for of, one in zip((VICTIMS, VIOLENCE, MOMENTS), names))


def main():
    a = parse()
    if a.list:
        print("\n".join(PATHS if a.paths else MOMENTS))
        return
    a.scene = violence.Scene
    if not a.hosts:
        play(a)
        return
    a.scene = host_cell.Scene
    with host_cell.Places(a.parallel, 1 + WORKERS) as a.places:
        play(a)


def play(a):
    before = listing()
    can_fill = a.hosts or "full" not in a.violence or namespace()
    cells = [Cell(victim, one, moment, a) for moment in a.moments for victim in a.victim
             for one in a.violence if not no_cell(victim, one, moment, a.hosts)
             and (one != "full" or can_fill)
             and number(victim, one, moment) % a.every == 0]
    with concurrent.futures.ThreadPoolExecutor(a.parallel) as pool:
        list(pool.map(Cell.run, cells))
    cells = [once_more(cell, a) if cell.problems and not cell.hard else cell for cell in cells]
    print_table(cells, a)
    if a.markdown:
        matrix.write(a.markdown, rows(cells, a), a)
    left = listing() - before
    if left:
        sys.exit(f"left behind: {sorted(left)}")
    bad = [cell for cell in cells if cell.problems]
    for cell in bad:
        print(f"\nNOT SO: {cell.name}\n" + "\n".join(cell.problems), file=sys.stderr)
    if bad:
        sys.exit(f"{len(bad)} of {len(cells)} cells")


if __name__ == "__main__":
    main()
