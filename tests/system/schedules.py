# SPDX-License-Identifier: MIT
"""Schedules of the rate, as docs/policies.md has them: "warmup:50+steps:0.5,100"."""
import functools
import math


def line(along):
    return 1 - along


def half_a_cosine(along):
    return (1 + math.cos(math.pi * along)) / 2


def down(shape, s, end, floor=0.0):
    return floor + (1 - floor) * shape(s / end) if s < end else floor


FACTORS = {
    "constant": lambda s: 1.0,
    "warmup": lambda s, end: min(s / end, 1.0),
    "steps": lambda s, factor, *at: math.prod(factor for one in at if s >= one),
    "stairs": lambda s, factor, every: factor ** math.floor(s / every),
    "exp": lambda s, factor, over: factor ** (s / over),
    "linear": functools.partial(down, line),
    "cosine": functools.partial(down, half_a_cosine),
}


def factor(text, samples):
    product = 1.0
    for one in text.split("+"):
        name, _, numbers = one.partition(":")
        product *= FACTORS[name](samples, *map(float, filter(None, numbers.split(","))))
    return product
