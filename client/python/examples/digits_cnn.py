#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A small convolutional network that learns drawn digits, on as many ranks as there are.

    muster run -n 4 --owner workers --policy backup:3 -- /usr/bin/python3 digits_cnn.py --steps 300

The digits are glyphs of 5 x 7 pixels, moved, with noise. `kill -STOP PID` of a rank, and
`kill -CONT PID` within the 5 s of its lease, show what a slow host costs the others: nothing."""
import argparse

import muster.torch
import torch
from torch import nn

GLYPHS = """01110 10001 10011 10101 11001 10001 01110, 00100 01100 00100 00100 00100 00100 01110,
01110 10001 00001 00010 00100 01000 11111, 11111 00010 00100 00010 00001 10001 01110,
00010 00110 01010 10010 11111 00010 00010, 11111 10000 11110 00001 00001 10001 01110,
00110 01000 10000 11110 10001 10001 01110, 11111 00001 00010 00100 01000 01000 01000,
01110 10001 10001 01110 10001 10001 01110, 01110 10001 10001 01111 00001 00010 01100"""


class Digits(torch.utils.data.Dataset):
    def __init__(self, length, seed):
        self.glyphs = torch.tensor([[[float(bit) for bit in row] for row in glyph.split()]
                                    for glyph in GLYPHS.split(",")])
        self.length, self.seed = length, seed

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(self.seed * self.length + index)
        digit = int(torch.randint(10, (1,), generator=draw))
        top, left = torch.randint(8, (2,), generator=draw).tolist()
        image = torch.randn(16, 16, generator=draw) * 0.4
        image[top:top + 7, left:left + 5] += self.glyphs[digit]
        return image[None], digit


def network():
    return nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(32 * 2 * 2, 64), nn.ReLU(), nn.Linear(64, 10))


def accuracy(model, data):
    with torch.no_grad():
        images, digits = zip(*(data[i] for i in range(len(data))))
        right = model(torch.stack(images)).argmax(1) == torch.tensor(digits)
        return right.float().mean().item()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=300)
    options = options.parse_args()
    torch.set_num_threads(1)
    model = network()
    opt = torch.optim.Adam(model.parameters(), 0.003)

    data = Digits(8192, seed=1)
    loader = torch.utils.data.DataLoader(
        data, batch_sampler=muster.torch.Sampler(len(data), 32, on_late="again"))
    sync = muster.torch.Sync(model, opt, sampler=loader.batch_sampler)
    for images, digits in sync.batches(loader, until=options.steps):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(images), digits)
        loss.backward()
        sync.step(samples=len(images))
    print(f"loss {loss:.3f}, accuracy {accuracy(model, Digits(256, seed=2)):.1%}")


if __name__ == "__main__":
    main()
