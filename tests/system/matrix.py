# SPDX-License-Identifier: MIT
"""The kill matrix as a page (kill.py --markdown)."""
import os

from cell import CALM_LEASE_S, HEADS, MOMENTS, VICTIMS, VIOLENCE, no_cell

HEAD = """<!-- SPDX-License-Identifier: MIT -->
<!-- Written by tests/system/kill.py --markdown; do not edit. -->
# The kill matrix

Real processes over shared memory: a server and five workers, policy `{policy}`, a lease of
{lease:.0f} ms where it has to be waited for, and of {calm} s elsewhere. Each cell of the matrix
does one violence to one victim at one moment. A moment is a place in the protocol, and not a time.
Processes of a build for tests are made to stand still there (`tests/system/programs/trip.c`), so no
test has to sleep and hope to meet the moment. `ctest -R system.kill.all` runs the whole
matrix, `tests/run.sh` every second cell.
`kill.py --timings SEED` draws other steps, other work, other ranks and other pieces.

| moment | what it is |
| --- | --- |
{moments}

| violence | what is done to the victim |
| --- | --- |
{violence}

A silent control connection is one whose relay passes nothing on and tells nobody. The victim
`worker` is the worker that the moment is about. If the `server` is cut off or silenced, this is
done to the connections of all workers; for the `run` it is its own connection to the server.

The times are in milliseconds from the violence. *next commit*: until one of the other workers has
the next commit. *lost after*: until the server says that the worker is lost. *all ended*: until
all processes have ended. Under `{policy}` no step needs the victim, so the next commit must come
long before a lease is over, and it does. A dash means that there is nothing to measure, because
the job ends with a sentence, or was over.

*versions lost* counts versions that a worker saw and that cannot be computed again, bit by bit,
from the workers' histories. *stuck* counts processes that have not ended in time. Each cell also
checks exit statuses, that every process that fails says why, that the server gives back the
descriptors and the memory of a lost worker, and that no process, socket or file is left.

Measured on {host}, two jobs at a time.

"""
HOSTS_HEAD = """<!-- SPDX-License-Identifier: MIT -->
<!-- Written by tests/system/kill.py --hosts --markdown; do not edit. -->
# The kill matrix between hosts

As [the kill matrix](kill-matrix.md), which says what moments, violence and columns are; but each
process has a host of its own, which is a network namespace (`tests/system/hosts.py`), and the job
is over TCP. `ctest -R system.kill_hosts.all` runs all of it, `tests/run.sh` every fourth cell.

One violence is added: `dark`, a host that is cut off the network. No process is told of that. Its
links end because its kernel acknowledges nothing any more, which takes two seconds by default, and
no lease.

Measured on {host}, two jobs at a time.

"""
HOSTS_END = """
## What has no cell

{reasons}
"""
FULL = """
## What a full tmpfs means

Processes share memory in memfds. A memfd is in a tmpfs of the kernel's own, which has no size. So
this tmpfs cannot be full; only the host's memory can be used up, and then the kernel kills
processes, which is the violence `kill`. Neither server nor library writes a file, in `/dev/shm` or
elsewhere. So `full` fills another tmpfs to the last byte: the one with standard error of all
processes, their `TMPDIR` and the figures of `muster run --json`. No process stops because of that.
`muster run` ends with 1, and says that it could not write the figures. A worker that is about to
make its link also gets an `RLIMIT_FSIZE`, so that it cannot make its memfd: the worker ends with a
sentence, and if the job runs already, the others go on.

## What has no cell

{reasons}

A server keeps its versions in memory. When the server is gone, they are gone, and its job ends
with a sentence for every worker. With `--server-patience` other servers take its place:
[the kill matrix of servers](kill-matrix-servers.md) has that.
"""


def host():
    with open("/proc/cpuinfo") as f:
        models = [line.split(":")[1].strip() for line in f if line.startswith("model name")]
    return f"{len(models)} cores of {models[0]}" if models else os.uname().machine


def write(path, rows, a):
    moments = "\n".join(f"| `{name}` | {text} |" for name, text in MOMENTS.items())
    violence = "\n".join(f"| `{name}` | {text} |" for name, text in VIOLENCE.items()
                         if name != "dark")
    out = (HOSTS_HEAD if a.hosts else HEAD).format(
        policy=a.policy, lease=a.lease, calm=CALM_LEASE_S, moments=moments, violence=violence,
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
                why = no_cell(victim, one, moment, a.hosts)
                if why and (a.hosts or one != "dark"):
                    reasons.setdefault(why, set()).add(f"{victim}, {one}, {moment}")
    text = "\n".join(f"- {len(cells)} cells, {sorted(cells)[0]} and the like: {why}."
                     for why, cells in reasons.items())
    with open(path, "w") as f:
        f.write(out + (HOSTS_END if a.hosts else FULL).format(reasons=text))
