# SPDX-License-Identifier: MIT
"""The kill matrix as a page (kill.py --markdown)."""
import os

from cell import HEADS, MOMENTS, VICTIMS, VIOLENCE, no_cell

HEAD = """<!-- SPDX-License-Identifier: MIT -->
<!-- Written by tests/system/kill.py --markdown; do not edit. -->
# The kill matrix

Real processes over shared memory: a server, five workers, policy `{policy}`, a lease of
{lease:.0f} ms. In each cell one process is hurt at exactly a moment. The moments are places in
the protocol, where processes of a build for tests are made to stand still
(`tests/system/trip.c`); nothing is slept and hoped for. `ctest -R system.kill` runs all of it;
`kill.py --timings SEED` draws other steps, other work, other ranks and other pieces.

| moment | what it is |
| --- | --- |
{moments}

| violence | what is done to the victim |
| --- | --- |
{violence}

Silent is a control connection whose relay passes nothing on and tells nobody. The victim
`worker` is the one that the moment is about; cut or silent for the `server` are the connections
of all workers, for the `run` it is its own to the server.

In milliseconds from the violence: until one of the others has the *next commit*; until the
server says that the worker is *lost*; until *all* processes have ended. Under `{policy}` nobody
needs the victim, so that the next commit must come long before a lease is over, and does. A
dash: there is nothing to measure, for the job ends with a sentence, or was over. Versions lost
are those that a worker saw and that cannot be computed again from the histories, bit by bit;
stuck is a process that has not ended in its time. Of every cell is checked besides: exit
statuses, that who fails says why, that the server gives back a lost worker's descriptors and
memory, that no process, socket or file is left.

Measured on {host}, two jobs at a time.

"""
FULL = """
## What a full tmpfs means

The memory that processes share are memfds. They lie in a tmpfs of the kernel's own, which has
no size: it cannot be full, only memory can be at an end, and then the kernel kills, which is
the column `kill`. Neither server nor library writes a file, in `/dev/shm` or elsewhere. What is
left, and what `full` does: the tmpfs is filled to the last byte in which standard error of all
processes, their `TMPDIR` and the figures of `muster run --json` lie. Nobody stops for it;
`muster run` ends with 1, and says that it could not write the figures. A worker that is about
to make its link is given an `RLIMIT_FSIZE` too, so that its memfd cannot be had: it ends with a
sentence, and while the job runs the others go on.

## What has no cell

{reasons}

A server keeps its versions in memory: when it is gone they are, and its job ends with a
sentence for everybody.
"""


def host():
    with open("/proc/cpuinfo") as f:
        models = [line.split(":")[1].strip() for line in f if line.startswith("model name")]
    return f"{len(models)} cores of {models[0]}" if models else os.uname().machine


def write(path, rows, a):
    moments = "\n".join(f"| `{name}` | {text} |" for name, text in MOMENTS.items())
    violence = "\n".join(f"| `{name}` | {text} |" for name, text in VIOLENCE.items())
    out = HEAD.format(policy=a.policy, lease=a.lease, moments=moments, violence=violence,
                      host=host())
    out += f"| moment | victim | violence | {' | '.join(HEADS)} |\n"
    out += "| --- | --- | --- |" + " ---: |" * len(HEADS) + "\n"
    for moment, victim, violence, figures, bad in rows:
        if isinstance(figures, str):
            continue
        out += f"| {moment} | {victim} | {violence} | {' | '.join(figures)} |"
        out += " NOT SO |\n" if bad else "\n"
    reasons = {}
    for moment in MOMENTS:
        for victim in VICTIMS:
            for one in VIOLENCE:
                why = no_cell(victim, one, moment)
                if why:
                    reasons.setdefault(why, set()).add(f"{victim}, {one}, {moment}")
    text = "\n".join(f"- {len(cells)} cells, {sorted(cells)[0]} and the like: {why}."
                     for why, cells in reasons.items())
    with open(path, "w") as f:
        f.write(out + FULL.format(reasons=text))
