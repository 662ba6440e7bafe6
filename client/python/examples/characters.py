#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A transformer that learns to continue a text, character by character.

    muster run -n 4 --owner workers --policy backup:3 -- /usr/bin/python3 characters.py --data FILE

Without --data it learns a text of its own: sums, written out."""
import argparse

import muster.torch
import torch
from torch import nn

CONTEXT, WIDTH = 48, 64


def own_text():
    return "".join(f"{a} and {b} make {a + b}. " for a in range(40) for b in range(40))


class Transformer(nn.Module):
    def __init__(self, alphabet):
        super().__init__()
        self.symbol, self.place = nn.Embedding(alphabet, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True,
                                           norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(WIDTH, alphabet)
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), -torch.inf).triu(1))

    def forward(self, text):
        length = text.shape[1]
        x = self.symbol(text) + self.place.weight[:length]
        return self.out(self.layers(x, self.mask[:length, :length]))


def batch_of(text, size, draw):
    at = torch.randint(len(text) - CONTEXT - 1, (size,), generator=draw).tolist()
    rows = torch.stack([text[i:i + CONTEXT + 1] for i in at])
    return rows[:, :-1], rows[:, 1:]


class Batches:
    def __init__(self, text, size, seed):
        self.text, self.size, self.draw = text, size, torch.Generator().manual_seed(seed)

    def __iter__(self):
        while True:
            yield batch_of(self.text, self.size, self.draw)


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--data", help="a file with a text")
    options.add_argument("--steps", type=int, default=200)
    options = options.parse_args()
    torch.set_num_threads(1)
    text = own_text()
    if options.data:
        with open(options.data) as f:
            text = f.read()
    alphabet = sorted(set(text))
    coded = torch.tensor([alphabet.index(c) for c in text])
    model = Transformer(len(alphabet))
    opt = torch.optim.AdamW(model.parameters(), 0.002)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, options.steps)

    def apply():
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        schedule.step()

    sync = muster.torch.Sync(model, opt, apply, scheduler=schedule)
    batches = Batches(coded, 16, seed=sync.rank)
    for x, y in sync.batches(batches, until=options.steps):
        opt.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        sync.step(samples=len(x))
    print(f"loss {loss:.3f}")


if __name__ == "__main__":
    main()
