#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A small network that learns a function of two variables, in NumPy, on as many ranks as there are.

    muster run -n 4 --policy backup:3 --optimizer adam:lr=0.01 --commits 400 -- \\
        /usr/bin/python3 regression_numpy.py

The servers own the parameters: one vector, in which each rank looks at its weights by name. Any
program that makes a gradient of a vector can take the place of loss_and_gradient(). Where this is
run with --slow R, rank R sleeps in each step, as a slow host would."""
import argparse
import time

import muster
import numpy as np

HIDDEN, BATCH = 32, 64
SHAPES = {"in.weight": (2, HIDDEN), "in.bias": (HIDDEN,), "out.weight": (HIDDEN, 1),
          "out.bias": (1,)}
SIZES = {name: int(np.prod(shape)) for name, shape in SHAPES.items()}


def function(x):
    return np.sin(2 * x[:, :1]) * x[:, 1:]


def by_name(vector):
    parts = np.split(np.asarray(vector), np.cumsum([*SIZES.values()])[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(SHAPES.items(), parts)}


def predict(p, x):
    hidden = np.tanh(x @ p["in.weight"] + p["in.bias"])
    return hidden, hidden @ p["out.weight"] + p["out.bias"]


def loss_and_gradient(vector, x, y):
    """The gradient of the mean squared error."""
    p = by_name(vector)
    hidden, guess = predict(p, x)
    error = 2 * (guess - y) / len(x)
    below = error @ p["out.weight"].T * (1 - hidden ** 2)
    gradient = {"in.weight": x.T @ below, "in.bias": below.sum(0),
                "out.weight": hidden.T @ error, "out.bias": error.sum(0)}
    return (np.mean((guess - y) ** 2),
            np.concatenate([gradient[name].ravel() for name in SHAPES]))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--slow", type=int, default=-1, help="the rank that is slow")
    options = options.parse_args()
    first = np.random.default_rng(1).normal(0, 0.5, sum(SIZES.values())).astype("f4")

    with muster.Worker(len(first), tensors=[*SIZES.items()]) as worker:
        draw = np.random.default_rng(100 + worker.job.rank)  # each rank has data of its own
        out = worker.start(first)
        while not out.finished:
            x = draw.uniform(-2, 2, (BATCH, 2)).astype("f4")
            loss, gradient = loss_and_gradient(out.result, x, function(x))
            if worker.job.rank == options.slow:
                time.sleep(0.1)
            worker.gradient()[:] = gradient
            worker.push(weight=BATCH, loss=loss)
            out = worker.wait()
        test = np.random.default_rng(2).uniform(-2, 2, (1000, 2)).astype("f4")
        error = loss_and_gradient(out.result, test, function(test))[0]
        print(f"rank {worker.job.rank}: version {out.version}, mean squared error {error:.4f}")


if __name__ == "__main__":
    main()
