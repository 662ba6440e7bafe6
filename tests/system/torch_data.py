#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What becomes of samples, by an account that is checked here: of samplers alone, and of whole
programs under muster run; and the examples.

usage: torch_data.py CASE --musterd MUSTERD --library LIBMUSTER --muster MUSTER
       torch_data.py --list
"""
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import types
from collections import Counter

from base import CALM, HERE, check, main, must
from torch_case import PACKAGE, prepare

RANKS, SLOW, BATCH, COUNT = 3, 2, 4, 50  # of programs/drawn_again.py


def run(a, ranks, program, *options):
    """What muster run says of a job of this program. options: of muster run, "--", those of the
    program."""
    if importlib.util.find_spec("torch") is None:
        print("skipped: there is no PyTorch here; Debian has it in python3-torch")
        sys.exit(77)
    at = options.index("--")
    job = subprocess.run(
        [a.muster, "run", "-n", str(ranks), "--owner", "workers", *CALM, "--patience", "60s",
         "--grace", "60s", "--join-timeout", "180s", *options[:at], "--", sys.executable, program,
         *options[at + 1:]],
        env=dict(os.environ, MUSTER_LIBRARY=a.library, PYTHONPATH=PACKAGE, OMP_NUM_THREADS="1"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=300)
    must(job.returncode == 0, "the job has failed:", job.stdout)
    return job.stdout


def told(samplers, draw):
    """A step of all ranks: each takes its batch, or up to three of them, and all hear who is in the
    version. Returns what has counted, and the first batches of those who were late."""
    batches = [taken_for_one_step(sampler, draw.choice((1, 1, 2, 3))) for sampler in samplers]
    taken = [sample for batch in batches for sample in batch]
    must(len(set(taken)) == len(taken), "two ranks compute on the same sample:", batches)
    inside = set(draw.sample(range(len(samplers)), draw.randint(1, len(samplers))))
    for sampler in samplers:
        sampler.version([types.SimpleNamespace(rank=rank, weight=len(batches[rank]))
                         for rank in inside])
    return ([s for rank in inside for s in batches[rank]],
            [s for rank, batch in enumerate(batches) if rank not in inside
             for s in batch[:samplers[0].batch_size]])


def taken_for_one_step(sampler, count):
    """The samples of so many batches, of which a Sync would tell the sampler so."""
    samples = []
    for number in range(count):
        indices, batch = next(iter(sampler)), sampler.batch()
        must(indices == [i for _, i in batch] and len(batch) == sampler.batch_size,
             "a batch is not whole")
        samples += batch
        sampler.seen()
        if number < count - 1:
            sampler.added()
    sampler.given()
    sampler.must_be_of(len(samples))
    sampler.pushed()
    must(next(iter(sampler)) == [i for _, i in samples[:sampler.batch_size]],
         "after a step that goes on another batch is next")
    return tuple(samples)


def drawn(sampler_of, workers, draw):
    """60 versions of samplers that nobody but this test tells anything."""
    samplers = [sampler_of() for _ in range(workers)]
    for rank, sampler in enumerate(samplers):
        sampler.join(rank, workers)
    counted, late, orders = Counter(), Counter(), {}
    for _ in range(60):
        inside, left = told(samplers, draw)
        counted.update(inside)
        late.update(left)
        places = [sampler.state_dict() for sampler in samplers]
        must(all(place == places[0] for place in places), "the samplers of ranks differ")
        another = sampler_of()
        another.join(0, workers)
        another.load_state_dict(json.loads(json.dumps(places[0]), object_hook=with_ranks))
        must([tuple(s) for s in another.batch()] == samplers[0].batch(), "one that goes on differs")
        for epoch, index in inside + left:
            orders.setdefault(epoch, []).append(index)
    must(sum(places[0]["counted"].values()) == counted.total(), "it counts otherwise")
    must(orders[0] != orders[1], "two epochs have one order")
    return counted, late, places[0]


def with_ranks(found):
    """JSON has names of text only."""
    return {int(k) if k.isdigit() else k: v for k, v in found.items()}


def dealt_anew(sampler_of, numbers, draw):
    """The number of workers changes, and rank 0 hears of the last version before that when it knows
    the new number already. Each sample counts once, or is still to come."""
    samplers, counted = [sampler_of()], Counter()
    samplers[0].join(0, 1)
    for workers in numbers:
        before = len(samplers)
        inside = [types.SimpleNamespace(rank=rank, weight=1)
                  for rank in sorted(draw.sample(range(before), draw.randint(1, before)))]
        for share in inside:
            counted.update(samplers[share.rank].batch())
        for rank, sampler in enumerate(samplers):
            if rank == 0:
                sampler.deal(workers)
            sampler.version(inside, before)
            sampler.deal(workers)
        place = samplers[-1].state_dict()
        samplers[0].batch()  # which looks further ahead
        must(samplers[0].state_dict() == place, "rank 0 has another place:", workers)
        samplers += [sampler_of() for _ in range(before, workers)]
        for rank, sampler in enumerate(samplers[before:], before):
            sampler.join(rank, workers)
            sampler.load_state_dict(place)
        del samplers[workers:]
        for _ in range(20):
            counted.update(told(samplers, draw)[0])
        places = [sampler.state_dict() for sampler in samplers]
        must(all(place == places[0] for place in places), "the samplers of ranks differ")
    every = Counter((e, i) for e in range(places[0]["epoch"]) for i in range(samplers[0].length))
    must(counted + Counter(map(tuple, places[0]["queue"])) == every,
         f"of {numbers} workers not all samples have counted once")


def queue(a):
    """Samplers alone: whoever is late, every sample of each epoch counts once, or is dropped once
    if that is wanted, or is still to come."""
    prepare(a)
    import muster.torch
    draw, late_in_all = random.Random(7), 0
    for numbers in ((4, 8, 3), (1, 2, 1, 5), (7, 6, 7)):
        dealt_anew(lambda: muster.torch.Sampler(37, 3, seed=2, on_late="again"), numbers, draw)
    for on_late in ("again", "drop"):
        for workers, length, batch in ((1, 5, 2), (2, 7, 3), (3, 50, 4), (4, 9, 4), (5, 40, 1)):
            counted, late, place = drawn(lambda: muster.torch.Sampler(
                length, batch, seed=workers, on_late=on_late), workers, draw)
            every = Counter((e, i) for e in range(place["epoch"]) for i in range(length))
            dropped = late if on_late == "drop" else Counter()
            must(counted + dropped + Counter(map(tuple, place["queue"])) == every,
                 f"{workers} ranks, {length} samples, {batch} at a time, {on_late}: not all of "
                 "them have counted once")
            late_in_all += late.total()
    check(f"no sample is lost or counted twice, {late_in_all} came late", late_in_all > 100)


def account(folder, rank):
    """The steps of a rank, and the place of its sampler at the end. A sample is (epoch, index)."""
    with open(os.path.join(folder, f"rank.{rank}")) as f:
        *steps, state = map(json.loads, f)
    for step in steps:
        step["samples"] = [tuple(s) for s in step["samples"]]
        must(len(step["samples"]) == BATCH, "a batch is not whole:", step)
    return steps, state


def adds_up(accounts):
    """The samples that have counted, and those that are still to come."""
    state = accounts[0][1]
    must(all(place == state for _, place in accounts), "the samplers of ranks differ")
    counted = Counter(sample for steps, _ in accounts for step in steps
                      if step["verdict"] == "COUNTED" for sample in step["samples"])
    left = Counter(map(tuple, state["queue"]))
    every = Counter((epoch, i) for epoch in range(state["epoch"]) for i in range(COUNT))
    check(f"of {state['epoch']} epochs each sample has counted once, or is still to come",
          counted + left == every and state["epoch"] >= 3)
    return counted, left


def again(a):
    """on_late="again": what a slow rank has computed on in vain another rank computes on, and every
    sample counts once in each epoch."""
    with tempfile.TemporaryDirectory(prefix="muster-test-") as folder:
        said = run(a, RANKS, os.path.join(HERE, "programs", "drawn_again.py"),
                   "--policy", "backup:2", "--history", "64", "--", folder)
        accounts = [account(folder, rank) for rank in range(RANKS)]
    counted, left = adds_up(accounts)
    state, by = accounts[0][1], {}
    for rank, (steps, _) in enumerate(accounts):
        for step in steps:
            if step["verdict"] == "COUNTED":
                by.update(dict.fromkeys(step["samples"], rank))

    late = [step["samples"] for step in accounts[SLOW][0] if step["verdict"] == "LATE"]
    lost = [s for batch in late for s in batch if s not in counted and s not in left]
    check(f"the slow rank was late with {len(late)} batches, of which no sample is lost",
          late and not lost)
    taken = [batch for batch in late if all(by.get(s, SLOW) != SLOW for s in batch)]
    check(f"{len(taken)} of them have counted in another rank", taken)

    for rank, (steps, _) in enumerate(accounts):
        mine = BATCH * sum(step["verdict"] == "COUNTED" for step in steps)
        must(state["counted"].get(str(rank), 0) == mine, f"rank {rank}: {mine} samples have "
             f"counted, and not {state['counted']}")
        must(re.search(rf"counted: .*rank {rank} {mine} of ", said), f"{mine} of rank {rank} is "
             "not in the summary:", said)
    check(f"the summary says the same: {state['counted']}", True)


def examples(a):
    """Each trains on two ranks until a version has come, and ends with a line that says what it has
    learnt; the one of a text takes the user's."""
    def losses(program, after, *options):
        said = run(a, 2, os.path.join(PACKAGE, "examples", program), "--", "--steps", "3", *options)
        # No "$": where Python does not buffer, another rank may write before the end of the line.
        told = [float(loss) for loss in re.findall(rf"loss (\d+\.\d+){after}", said)]
        must(len(told) == 2 and "is finished at version 3: version 3 is made" in said, program,
             "has said:", said)
        return told

    losses("digits_cnn.py", r", accuracy \d+\.\d%")
    with tempfile.NamedTemporaryFile("w", prefix="muster-test-") as text:
        text.write("ab" * 50)
        text.flush()
        told = losses("characters.py", "", "--data", text.name)
    # A model that guesses has a loss of 0.7 with two characters, and of 2.8 with the text of its
    # own.
    check(f"it has read the text that it was given: {told}", max(told) < 1.5)


if __name__ == "__main__":
    CASES = {"again": again, "examples": examples, "queue": queue}
    main(CASES, "musterd", "library", "muster")
