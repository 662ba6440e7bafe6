#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What it costs a rank to give its state to one that comes back (muster.torch.Sync).

A job of two ranks whose workers own: rank 0 goes on, rank 1 comes, takes its state and leaves,
again and again. The model is one tensor, the optimiser AdamW, so a state has 12 bytes for each
parameter. Each step sleeps before it, as if it computed. Printed are medians over the times that a
state was given, with the lowest and the highest, in ms, all of rank 0:

get:    making the bytes: the state of model and optimiser, and one copy of it
give:   muster_give_state(): one more copy; a thread of the library sends it
step:   the sync.step() in which both happened
sends:  the step after it, in which the state is on its way to the server
usual:  a step while nobody wanted a state, and rank 1 was not there

usage: give_state.py BUILD [--rounds N] [--sizes 25K,1M,25M]
"""
import argparse
import contextlib
import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
from server import Server  # noqa: E402, the path comes first
UNITS = {"K": 1000, "M": 1000000}
GAP_S = 0.3  # in which rank 1 is not there
KEPT = 2 << 30  # bytes of versions that the server keeps for who catches up


def size_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def rank_of(size):
    import torch
    torch.set_num_threads(1)
    import muster.torch
    model = torch.nn.Linear(size, 1, bias=False)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, opt, muster.torch.Sync(model, opt)


def step(model, opt, sync):
    """Return: how long sync.step() took, and what it returned."""
    opt.zero_grad()
    weight = next(model.parameters())
    weight.sum().backward()
    time.sleep(max(0.005, weight.numel() * 4e-9))
    begin = time.monotonic()
    said = sync.step()
    return time.monotonic() - begin, said


def timed(into, function):
    def call(*arguments):
        begin = time.monotonic()
        out = function(*arguments)
        into.append(time.monotonic() - begin)
        return out
    return call


def line(name, times):
    ms = sorted(t * 1000 for t in times)
    if ms:
        print(f"  {name:6} {statistics.median(ms):9.3f}  ({ms[0]:.3f} to {ms[-1]:.3f}, {len(ms)})")


def newcomer(size):
    """It comes again if the job was too fast for it, or is over."""
    with contextlib.suppress(OSError):
        rank_of(size)[2].close()


def donor(size, rounds):
    from muster import _state
    model, opt, sync = rank_of(size)
    get, give, gave, sends, usual = [], [], [], [], []
    _state.encode = timed(get, _state.encode)
    sync._worker.give_state = timed(give, sync._worker.give_state)
    while len(give) < rounds:
        before = len(give)
        took, said = step(model, opt, sync)
        if len(give) > before:
            gave.append(took)
            sends.append(step(model, opt, sync)[0])
        elif len(said.set) == 1:
            usual.append(took)
    for name, times in (("get", get), ("give", give), ("step", gave), ("sends", sends),
                        ("usual", usual)):
        line(name, times)
    if min(map(len, (get, give, gave, sends))) < rounds:
        sys.exit(f"of {rounds} states fewer were timed")
    sync.finish("all states have been given")
    while not sync.finished:
        step(model, opt, sync)


def job(build, size, rounds):
    """Rank 0 prints the figures."""
    print(f"{size} parameters", flush=True)
    keeps = max(8, min(4096, KEPT // (4 * size)))
    server = Server(str(build / "server" / "musterd"), "--workers", "2", "--owner", "workers",
                    "--history", "2", "--catch-up", str(keeps), "--min-workers", "1",
                    "--patience", "60s", "--lease", "30s")

    def start(rank, *words):
        return subprocess.Popen([sys.executable, __file__, str(build), *words],
                                env=dict(os.environ, MUSTER_RANK=str(rank),
                                         MUSTER_SERVER=server.address))

    first = start(0, "--donor", str(size), "--rounds", str(rounds))
    try:
        while first.poll() is None:
            second = start(1, "--newcomer", str(size))
            if second.wait() != 0:
                return second.returncode
            time.sleep(GAP_S)
        return first.returncode
    finally:
        first.kill()
        first.wait()
        server.kill()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--sizes", default="25K,1M,25M",
                   type=lambda text: [size_of(size) for size in text.split(",")])
    p.add_argument("--donor", type=int, help=argparse.SUPPRESS)
    p.add_argument("--newcomer", type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("skipped: there is no PyTorch here; Debian has it in python3-torch")
        sys.exit(77)
    os.environ["MUSTER_LIBRARY"] = str(a.build.resolve() / "client" / "libmuster.so.0")
    sys.path.insert(0, str(ROOT / "client" / "python"))
    if a.donor:
        donor(a.donor, a.rounds)
    elif a.newcomer:
        newcomer(a.newcomer)
    else:
        sys.exit(any([job(a.build, size, a.rounds) for size in a.sizes]))


if __name__ == "__main__":
    main()
