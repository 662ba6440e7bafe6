#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The kill matrix of servers in whose place others are started (--server-patience): a leader or a
follower is ended at exactly a moment, both are started again at once, and the job goes on.

usage: kill_servers.py [MOMENT ...] --muster MUSTER --musterd TRIP_MUSTERD --worker TRIP_GOES_ON
                       --withdraws TRIP_WITHDRAWS [--owner O,...] [--transport T,...]
                       [--victim V,...] [--violence V,...] [--parallel N] [--markdown FILE]
                       [--every N]
       kill_servers.py --list

A moment is a place in the protocol where processes are made to stand still (trip.c, held_disk.c).
In each cell all versions must be the bits of a job that nobody disturbs, each worker must be told
the truth of each of its contributions, and all must end. Ends with 1 if one cell is not so.
"""
import argparse
import concurrent.futures
import functools
import sys
import tempfile
import types

import server_cell
from base import listing
from matrix import host
from server_cell import HEADS, MOMENTS, OWNERS, TRANSPORTS, VICTIMS, VIOLENCE, Cell, has_cell

PAGE = """<!-- SPDX-License-Identifier: MIT -->
<!-- Written by tests/system/kill_servers.py --markdown; do not edit. -->
# The kill matrix of servers

As [the kill matrix](kill-matrix.md); but servers have `--server-patience`, and each that has ended
is started again at once, at its address. The job has two servers, three workers and policy `bsp`.
Each cell ends one server at one moment. A moment is a place in the protocol, and not a time.
Processes of a build for tests are made to stand still there (`tests/system/programs/trip.c`,
`held_disk.c`). `ctest -R system.kill_servers.all` runs the whole matrix, `tests/run.sh` every
{every}th cell of it. This page is what

    tests/system/kill_servers.py --markdown tests/kill-matrix-servers.md ...

has written, with the programs that `ctest -N -V -R system.kill_servers.all` names.

| moment | what it is |
| --- | --- |
{moments}

`kill` is kill -9, and `term` SIGTERM. At the moment `start` a leader was killed before, and those
that took the place of both servers are starting.

*next commit* is the time in milliseconds from the violence to the first look of a worker at a
version that was not made before. Two starts of processes are in it: that of the leader, and that of
a follower, which ends when it has noticed that its leader is gone. A leader that is told to end
lingers for a second, so that all hear of it. *withdrawn* is the number of
versions that a rank was told are void: where servers own, they go on from the newest checkpoint,
of which there is one every {often} versions. *cancelled* is the largest number of contributions
that a rank has lost. *sums wrong* counts versions that are not what their sets say, and *stuck*
workers that have not ended. Each cell also checks that all versions have the bits of a job that was
not disturbed (where a process is replaced: that all ranks have the same), that every contribution
was counted or reported as lost, and that the other server has ended with 75.

Measured on {host}, one job at a time, while the host had
other work, too.

| moment | owner | transport | victim | violence | {heads} |
| --- | --- | --- | --- | --- |{lines}
"""
END = """
## What has no cell

- `rejoin` and `state` where servers own: no worker needs the state of another.
- `save` where workers own: nothing is saved.
- SIGTERM of a follower where servers own: it serves on for `--stop-timeout`, so that the last
  version can be saved when its leader is told to end, too.
- A server that is ended after it has told some workers that the job is finished: they have ended,
  and a start without them has no majority (docs/protocol.md section 11).
"""
EVERY = 6  # of which tests/run.sh runs one


def keys(a):
    every = [(owner, transport, moment, victim, one) for moment in a.moments for owner in a.owner
             for transport in a.transport for victim in a.victim for one in a.violence
             if has_cell(owner, moment, victim, one)]
    return [key for key in every if number(key) % a.every == 0]


def number(key):
    """The number of a cell: each word is in about one of so many."""
    owner, transport, moment, victim, violence = key
    return sum(list(of).index(one) * times for of, one, times in (
        (MOMENTS, moment, 1), (OWNERS, owner, 3), (TRANSPORTS, transport, 5), (VICTIMS, victim, 2),
        (VIOLENCE, violence, 3)))


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("moments", nargs="*", metavar="MOMENT")
    p.add_argument("--list", action="store_true")
    p.add_argument("--labels", action="store_true", help="none: CMake has that of all")
    for tool in ("--muster", "--musterd", "--worker", "--withdraws"):
        p.add_argument(tool)
    for name, known in (("owner", OWNERS), ("transport", TRANSPORTS), ("victim", VICTIMS),
                        ("violence", VIOLENCE)):
        p.add_argument("--" + name, type=lambda t: t.split(","), default=list(known))
    p.add_argument("--parallel", type=int, default=2, metavar="N")
    p.add_argument("--markdown", metavar="FILE")
    p.add_argument("--every", type=int, default=1, metavar="N")
    a = p.parse_args()
    a.moments = a.moments or list(MOMENTS)
    for words, known in ((a.moments, MOMENTS), (a.owner, OWNERS), (a.transport, TRANSPORTS),
                         (a.victim, VICTIMS), (a.violence, VIOLENCE)):
        for one in words:
            if one not in known:
                p.error(f"what is {one}? There are {', '.join(known)}")
    return a


def tools_of(a, owner):
    return types.SimpleNamespace(muster=a.muster, musterd=a.musterd,
                                 worker=a.worker if owner == "workers" else a.withdraws)


def play(key, tools, wanted):
    """In a process of its own."""
    cell = Cell(key, tools, wanted).run()
    return key, cell.figures(), cell.problem


def told(key, figures, problem):
    """Says what came of a cell. Return: the same."""
    print(" ".join(f"{word:9}" for word in key), " ".join(f"{figure:>11}" for figure in figures),
          "NOT SO" if problem else "", flush=True)
    return key, figures, problem


def write(path, done):
    moments = "\n".join(f"| `{name}` | {text} |" for name, text in MOMENTS.items())
    page = PAGE.format(moments=moments, host=host(), heads=" | ".join(HEADS), every=EVERY,
                       often=server_cell.OFTEN, lines=" ---: |" * len(HEADS))
    for (owner, transport, moment, victim, violence), figures, problem in done:
        page += f"| {moment} | {owner} | {transport} | {victim} | {violence} | " \
            f"{' | '.join(figures)} |{' NOT SO |' if problem else ''}\n"
    with open(path, "w") as f:
        f.write(page + END)


def play_all(cells, tools, wanted, parallel):
    print(" ".join(f"{word:9}" for word in ("owner", "transport", "moment", "victim", "violence")),
          " ".join(f"{head:>11}" for head in HEADS))
    with concurrent.futures.ProcessPoolExecutor(parallel) as pool:
        return [told(*cell) for cell in
                pool.map(play, cells, [tools] * len(cells), [wanted] * len(cells))]


def main():
    a = parse()
    if a.list:
        print("\n".join(MOMENTS))
        return
    before = listing()
    tools = types.SimpleNamespace(of=functools.partial(tools_of, a))
    cells = keys(a)
    with tempfile.TemporaryDirectory(prefix="kill-") as folder:
        done = play_all(cells, tools, server_cell.Wanted(tools, folder), a.parallel)
    if a.markdown:
        write(a.markdown, done)
    bad = [(key, problem) for key, _, problem in done if problem]
    for key, problem in bad:
        print(f"\nNOT SO: {', '.join(key)}\n{problem}", file=sys.stderr)
    left = listing() - before
    if left:
        sys.exit(f"left behind: {sorted(left)}")
    if bad:
        sys.exit(f"{len(bad)} of {len(cells)} cells")


if __name__ == "__main__":
    main()
