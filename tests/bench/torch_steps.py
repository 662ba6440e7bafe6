#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Training in PyTorch: muster.torch.Sync beside DistributedDataParallel over Gloo, in turn.

Two questions, each asked of both in every round, and one of muster alone; medians over the rounds
are printed, with their lowest and highest.

straggler: how long four ranks take to learn, if one is five times slower. The model is small, and
    each rank sleeps after its backward pass, so that computing takes 10 ms (50 ms in the slow rank)
    whatever the processors do. muster runs under backup:3. Printed are the time until the loss on
    data that are kept aside is below 0.2, and that loss after the same number of versions. A
    version of muster has the samples of three ranks, so it goes on until there have been as many
    samples as in Gloo's versions; printed are the loss and the time then, too.
share: what a step takes besides forward, backward and optimiser, where nobody is slow (bsp, two
    ranks). Each rank makes the same steps without the others in between, and their median is taken
    away. Printed too is by how much the memory of rank 0 grows when it joins and makes two steps:
    gradients of the model are in it, and what it shares with the server.
digest: what it costs a step of two ranks under bsp that every 16th version is compared (Sync,
    on_difference). In one job ranks make 32 steps with that and 32 without it in turn, as often
    as there are rounds; a ratio is that of two neighbours. Printed besides is what the digest of
    the whole state takes at the start.

usage: torch_steps.py BUILD [--rounds N] [--only straggler|share|digest] [--versions N]
                      [--sizes 25K,1M,25M]
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPUTE_S, SLOW = 0.010, 5  # of a step; how many times slower the last rank is
RANKS, SHARE_RANKS = 4, 2
LOSS = 0.2
BATCH = 16
UNITS = {"K": 1000, "M": 1000000}
# Versions that the servers keep. The straggler is behind by some; where nobody is slow, no rank is
# by more than one, and a version is as large as the model.
HISTORY = {"straggler": 64, "share": 2, "digest": 2}


def size_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def read_line():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", choices=("straggler", "share", "digest"))
    p.add_argument("--versions", type=int, default=200)
    p.add_argument("--sizes", default="25K,1M,25M",
                   type=lambda text: [size_of(size) for size in text.split(",")])
    p.add_argument("--rank-of", choices=("muster", "gloo"), help=argparse.SUPPRESS)
    p.add_argument("--out", help=argparse.SUPPRESS)
    a = p.parse_args()
    try:
        import torch  # noqa: F401, only whether it is there
    except ImportError:
        print("skipped: there is no PyTorch here; Debian has it in python3-torch")
        sys.exit(77)
    return a


# ---- a rank ----


class Alone:
    """A model without others, in the shape of the two below."""

    def __init__(self, model, opt):
        self.model, self.opt = model, opt

    def step(self):
        self.opt.step()


class Gloo(Alone):
    def __init__(self, model, opt):
        import torch
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo")
        super().__init__(torch.nn.parallel.DistributedDataParallel(model), opt)


class Muster(Alone):
    def __init__(self, model, opt):
        import muster.torch
        super().__init__(model, opt)
        self.sync = muster.torch.Sync(model, opt)

    def step(self):
        self.sync.step(samples=BATCH)


def teacher(count, seed):
    """Points in 20 dimensions, and which of five fixed directions is the nearest to each."""
    import torch
    directions = torch.randn(20, 5, generator=torch.Generator().manual_seed(1))
    x = torch.randn(count, 20, generator=torch.Generator().manual_seed(seed))
    return x, (x @ directions).argmax(1)


def learn(peer, rank, versions):
    """For rank 0: seconds until the loss is low enough, or None; that loss after so many versions;
    and the loss and the seconds after as many samples as are in so many versions of all ranks."""
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 5))
    job = peer(model, torch.optim.Adam(model.parameters(), lr=0.01))
    kept_x, kept_y = teacher(500, 2)
    x, y = teacher(20000, 3 + rank)
    loss_of = torch.nn.functional.cross_entropy
    pause = COMPUTE_S * (SLOW if rank == RANKS - 1 else 1)
    ends = versions, versions if peer is Gloo else -(-versions * RANKS // (RANKS - 1))
    reached, apart, step, version, after = None, 0.0, -1, 0, {}
    begin = time.monotonic()
    while version < ends[1]:
        step += 1
        started = time.monotonic()
        batch = slice(step * BATCH % len(x), step * BATCH % len(x) + BATCH)
        job.opt.zero_grad()
        loss_of(job.model(x[batch]), y[batch]).backward()
        time.sleep(max(0.0, started + pause - time.monotonic()))
        job.step()
        version = job.sync.version if peer is Muster else step + 1
        if peer is Muster and job.sync.finished:
            break
        due = [end for end in ends if version >= end and end not in after]
        if rank == 0 and (step % 5 == 4 or due):
            looked = time.monotonic()
            with torch.no_grad():
                loss = loss_of(model(kept_x), kept_y).item()
            if reached is None and loss < LOSS:
                reached = looked - begin - apart
            after.update((end, (loss, looked - begin - apart)) for end in due)
            apart += time.monotonic() - looked
    if rank != 0:
        return None
    if peer is Muster:
        job.sync.finish("all versions are there")
    return {"reached": reached, "loss": after[ends[0]][0], "as_many": after[ends[1]]}


def steps_of(job, x, y, count):
    import torch
    times = []
    for _ in range(count):
        started = time.monotonic()
        job.opt.zero_grad()
        torch.nn.functional.mse_loss(job.model(x), y).backward()
        job.step()
        times.append(time.monotonic() - started)
    return times


def resident():
    """Bytes of this process's memory, shared ones too, but none of files."""
    with open("/proc/self/status") as f:
        return sum(1024 * int(line.split()[1]) for line in f
                   if line.startswith(("RssAnon:", "RssShmem:")))


def wide(size):
    """A model of so many parameters, and a batch for it."""
    import torch
    width = max(8, int((size / 4) ** 0.5))
    layers = [torch.nn.Linear(width, width, bias=False) for _ in range(4)]
    return torch.nn.Sequential(*layers), torch.randn(4, width)


def digest(size, rounds):
    """Seconds of a step with comparisons and without, in each round; and of the claim."""
    import torch
    from muster import _claim, _compare, _state
    net, x = wide(size)
    job = Muster(net, torch.optim.SGD(net.parameters(), lr=1e-6, momentum=0.9))
    steps_of(job, x, x, 16)
    began = time.monotonic()
    _claim.of_whole(_state.Whole(net, job.opt, None), ())
    claim = time.monotonic() - began
    often, found = _compare.EVERY, {True: [], False: []}
    for _ in range(rounds):
        for compares, steps in found.items():
            _compare.EVERY = often if compares else 1 << 60
            steps.append(statistics.mean(steps_of(job, x, x, 2 * often)))
    job.sync.close()
    return {"with": found[True], "without": found[False], "claim": claim}


def share(peer, rank, size):
    """Seconds of a step of the job and of one alone, and what joining takes of memory."""
    import torch
    net, x = wide(size)
    before = resident()
    job = peer(net, torch.optim.SGD(net.parameters(), lr=1e-6))
    steps_of(job, x, x, 2)
    memory = resident() - before
    plain = wide(size)[0]
    alone = Alone(plain, torch.optim.SGD(plain.parameters(), lr=1e-6))
    count = 5 if size > 5000000 else 20
    together, apart = [], []
    for block in range(4):
        apart += steps_of(alone, x, x, count)
        together += steps_of(job, x, x, count)[1:]  # in the first they wait for each other
    if getattr(job, "sync", None):
        job.sync.close()
    return {"step": statistics.median(together), "alone": statistics.median(apart),
            "memory": memory}


def be_rank(a):
    import torch
    torch.set_num_threads(1)
    rank = int(os.environ.get("MUSTER_RANK", os.environ.get("RANK", "0")))
    peer = Muster if a.rank_of == "muster" else Gloo
    if a.only == "straggler":
        said = learn(peer, rank, a.versions)
    elif a.only == "digest":
        said = digest(a.sizes[0], a.rounds)
    else:
        said = share(peer, rank, a.sizes[0])
    if rank == 0:
        pathlib.Path(a.out).write_text(json.dumps(said))


# ---- rounds ----


def ranks(a, peer, what, count, policy, **more):
    """Runs the ranks of one peer. Return: what rank 0 says."""
    with tempfile.NamedTemporaryFile() as out, tempfile.TemporaryDirectory() as folder:
        command = ["/usr/bin/python3", __file__, str(a.build), "--rank-of", peer, "--only", what,
                   "--out", out.name]
        for name, value in more.items():
            command += [f"--{name}", str(value)]
        env = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(ROOT / "client" / "python"),
                   MUSTER_LIBRARY=str((a.build / "client" / "libmuster.so").resolve()))
        if peer == "muster":
            run_muster([a.build / "tools" / "muster", "run", "-n", str(count), "--owner", "workers",
                        "--policy", policy, "--history", str(HISTORY[what]), "--", *command], env)
        else:
            run_gloo(command, count, dict(env, MASTER_ADDR="127.0.0.1", GLOO_SOCKET_IFNAME="lo"))
        return json.loads(pathlib.Path(out.name).read_text())


@contextlib.contextmanager
def said_if_it_fails(who):
    """A file for what programs say, which is shown if they fail: SystemExit."""
    with tempfile.TemporaryFile("w+") as said:
        try:
            yield said
        except SystemExit as e:
            said.seek(0)
            raise SystemExit(f"{said.read()}{who} has failed: {e}") from e


def run_muster(command, env):
    with said_if_it_fails("muster run") as said:
        done = subprocess.run(command, env=env, stdout=said, stderr=said)
        if done.returncode:
            raise SystemExit(f"exit status {done.returncode}")


def run_gloo(command, count, env):
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with said_if_it_fails("a rank of Gloo") as said:
        children = [subprocess.Popen(command, stdout=said, stderr=said,
                                     env=dict(env, RANK=str(rank), WORLD_SIZE=str(count),
                                              MASTER_PORT=str(port)))
                    for rank in range(count)]
        statuses = [child.wait() for child in children]
        if any(statuses):
            raise SystemExit(f"exit statuses {statuses}")


def told(values, unit=1.0):
    return (f"{statistics.median(values) * unit:8.2f} "
            f"({min(values) * unit:.2f} to {max(values) * unit:.2f})")


def straggler(a):
    found = {"muster": [], "gloo": []}
    for _ in range(a.rounds):
        for peer, all_of in found.items():
            all_of.append(ranks(a, peer, "straggler", RANKS, f"backup:{RANKS - 1}",
                                versions=a.versions))
    for peer, all_of in found.items():
        reached = [one["reached"] for one in all_of]
        if None in reached:
            print(f"{peer:7} did not reach a loss of {LOSS} in every round", end="; ")
        else:
            print(f"{peer:7} loss {LOSS} after {told(reached)} s", end="; ")
        print(f"after {a.versions} versions {told([one['loss'] for one in all_of])}", end="; ")
        print(f"after as many samples {told([one['as_many'][0] for one in all_of])}, "
              f"{told([one['as_many'][1] for one in all_of])} s", flush=True)


def shares(a):
    for size in a.sizes:
        found = {"muster": [], "gloo": []}
        for _ in range(a.rounds):
            for peer, all_of in found.items():
                all_of.append(ranks(a, peer, "share", SHARE_RANKS, "bsp", sizes=size))
        for peer, all_of in found.items():
            besides = [one["step"] - one["alone"] for one in all_of]
            memory = statistics.median(one["memory"] for one in all_of) / 2**20
            print(f"{size:9} parameters, {peer:7} {told(besides, 1e3)} ms besides computing, "
                  f"{memory:.1f} MiB", flush=True)


def digests(a):
    for size in a.sizes:
        one = ranks(a, "muster", "digest", SHARE_RANKS, "bsp", sizes=size, rounds=a.rounds)
        ratios = [(w - wo) / wo for w, wo in zip(one["with"], one["without"])]
        print(f"{size:9} parameters, a step {told(one['without'], 1e3)} ms, with comparisons "
              f"{told(one['with'], 1e3)} ms: {statistics.median(ratios):+.2%} in the median of "
              f"{a.rounds}; the claim {one['claim'] * 1e3:.1f} ms", flush=True)


def main():
    a = read_line()
    if a.rank_of:
        be_rank(a)
        return
    for name, ask in (("straggler", straggler), ("share", shares), ("digest", digests)):
        if a.only in (None, name):
            ask(a)
    print(f"{a.rounds} rounds, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    sys.exit(main())
