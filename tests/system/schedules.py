# SPDX-License-Identifier: MIT
"""Schedules of the rate, as docs/policies.md has them: "warmup:50+steps:0.5,100"."""
import math


def down(samples, end, floor, share):
    return floor + (1 - floor) * share if samples < end else floor


FACTORS = {
    "constant": lambda s: 1.0,
    "warmup": lambda s, end: min(s / end, 1.0),
    "steps": lambda s, factor, *at: math.prod(factor for one in at if s >= one),
    "stairs": lambda s, factor, every: factor ** (s // every),
    "exp": lambda s, factor, over: factor ** (s / over),
    "linear": lambda s, end, floor=0.0: down(s, end, floor, 1 - s / end),
    "cosine": lambda s, end, floor=0.0: down(s, end, floor, (1 + math.cos(math.pi * (s / end))) / 2),
}


def factor(text, samples):
    product = 1.0
    for one in text.split("+"):
        name, _, numbers = one.partition(":")
        product *= FACTORS[name](samples, *map(float, filter(None, numbers.split(","))))
    return product
