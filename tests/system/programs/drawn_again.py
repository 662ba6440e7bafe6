# SPDX-License-Identifier: MIT
"""A program that trains, as a user writes it, with an account of its samples.

usage: muster run -n 3 --owner workers --policy backup:2 -- python3 drawn_again.py FOLDER [even]

Each rank writes a line of JSON to FOLDER/rank.N for each step: the samples that it has computed on,
as [epoch, index], and the verdict; and at the end what is still to come. The last rank hands each
gradient in when the others have made three versions more, and these wait for it when they have made
six: rank 0 and the last one tell by files how far they are. With "even" nobody waits so."""
import json
import os
import sys
import time

import muster.torch
import torch

COUNT, BATCH, LAST, BEHIND = 50, 4, 30, 3


def tell(path, versions):
    for version in versions:
        with open(f"{path}.{version}", "w"):
            pass


def wait(path, version):
    while not os.path.exists(f"{path}.{version}"):
        time.sleep(0.005)


def main():
    torch.set_num_threads(1)
    folder, even = sys.argv[1], sys.argv[2:] == ["even"]
    data = torch.utils.data.TensorDataset(torch.eye(COUNT))
    model = torch.nn.Linear(COUNT, 1)
    opt = torch.optim.SGD(model.parameters(), 0.1)
    sampler = muster.torch.Sampler(COUNT, BATCH, seed=2, on_late="again")
    sync = muster.torch.Sync(model, opt, sampler=sampler)
    first, last = (os.path.join(folder, name) for name in ("first", "last"))
    told = 0
    with open(os.path.join(folder, f"rank.{sync.rank}"), "w") as account:
        for x, in sync.batches(torch.utils.data.DataLoader(data, batch_sampler=sampler)):
            epochs = [epoch for epoch, _ in sampler.batch()]
            opt.zero_grad()
            model(x).square().mean().backward()
            if even:
                time.sleep(0.01)
            elif sync.rank == sync.workers - 1:
                wait(first, min(sync.version + BEHIND, LAST))
            elif sync.rank == 0 and sync.version > 2 * BEHIND:
                wait(last, sync.version - 2 * BEHIND)
            done = sync.step(samples=len(x))
            json.dump({"samples": list(zip(epochs, x.argmax(1).tolist())),
                       "verdict": done.verdict.name}, account)
            account.write("\n")
            if sync.rank == 0 and done.version >= LAST and not sync.finished:
                sync.finish("enough")  # before the last rank hears of it
            if sync.rank != 1:
                tell(first if sync.rank == 0 else last, range(told, done.version + 1))
            told = done.version + 1
        json.dump(sampler.state_dict(), account)


if __name__ == "__main__":
    main()
