#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Takes the steps of optim_steps once more, and compares to the accuracy of float.

usage: optim_reference.py papers|torch OPTIM_STEPS

With "papers" the formulas of the papers are computed in double with NumPy; with "torch" PyTorch's
optimisers take the steps in float. TensorFlow's form of RMSProp, LARS and LAMB are only among the
former.
"""

import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed (Debian package python3-numpy)")
    sys.exit(77)

STEPS, SEED = 10, 1
# A share of the way that a parameter has gone, and of its start: some 16 roundings of 2**-24.
TOLERANCE = 1e-6
OPTIMIZERS = [
    "sgd", "sgd:nesterov=1,decay=0.05", "sgd:momentum=0",
    "adagrad", "adagrad:lr=0.1,decay=0.05,epsilon=1e-3",
    "rmsprop:inside=0,start=0,epsilon=1e-8,alpha=0.99,lr=0.01,momentum=0",
    "rmsprop:inside=0,start=0,epsilon=1e-3,decay=0.05",
    "adam", "adam:lr=0.1,beta1=0.5,beta2=0.9,epsilon=1e-3,decay=0.05", "adam:beta1=0,beta2=0",
    "adamw", "adamw:lr=0.1,beta1=0.8,beta2=0.99,decay=0.5", "adamw:decay=0",
]
# Which neither Debian's PyTorch nor TensorFlow has.
LARGE_BATCHES = [
    "lars", "lars:lr=5,decay=0.05,trust=0.1", "lars:nesterov=1", "lars:momentum=0,decay=0",
    "lamb", "lamb:lr=0.1,beta1=0.5,beta2=0.9,epsilon=1e-3,decay=0.5", "lamb:decay=0",
]
OUTER = ["outer", "outer:lr=0.3,momentum=0.5,nesterov=0", "outer:momentum=0"]
TENSORFLOWS = [
    "rmsprop", "rmsprop:momentum=0,alpha=0.5,start=0", "rmsprop:epsilon=1e-3,start=4,decay=0.05",
    "rmsprop:inside=0",
]


def steps_of(program, optimizer):
    """Return: what is computed, the figures, the start, [mean], [parameters after it]."""
    run = subprocess.run([program, optimizer, str(STEPS), str(SEED)], stdout=subprocess.PIPE,
                         text=True, check=True)
    lines = [line.split() for line in run.stdout.splitlines()]
    figures = {name: float(value) for name, value in (w.split("=") for w in lines[0][1:])}

    def rows(what):
        return [np.array([float.fromhex(w) for w in words]) for name, *words in lines
                if name == what]

    return figures, rows("theta")[0], rows("mean"), rows("next")


class Sgd:
    """Nesterov's form as in Sutskever et al. 2013, with PyTorch's place for the rate."""

    def __init__(self, f):
        self.f, self.m = f, 0

    def step(self, theta, g):
        g = g + self.f["decay"] * theta
        self.m = self.f["momentum"] * self.m + g
        down = g + self.f["momentum"] * self.m if self.f["nesterov"] else self.m
        return theta - self.f["lr"] * down


class Outer(Sgd):
    """Algorithm 1 of Douillard et al. 2023: the outer gradient is the mean difference, turned
    round."""

    def __init__(self, f):
        super().__init__({**f, "decay": 0})

    def step(self, theta, g):
        return super().step(theta, -g)


class Adagrad:
    """Duchi, Hazan and Singer 2011."""

    def __init__(self, f):
        self.f, self.total = f, 0

    def step(self, theta, g):
        g = g + self.f["decay"] * theta
        self.total = self.total + g**2
        return theta - self.f["lr"] * g / (np.sqrt(self.total) + self.f["epsilon"])


class Rmsprop:
    """Tieleman and Hinton 2012; the rate is inside of the momentum, as TensorFlow has it."""

    def __init__(self, f):
        self.f, self.average, self.m = f, f["start"], 0

    def step(self, theta, g):
        f = self.f
        g = g + f["decay"] * theta
        self.average = f["alpha"] * self.average + (1 - f["alpha"]) * g**2
        divisor = (np.sqrt(self.average + f["epsilon"]) if f["inside"]
                   else np.sqrt(self.average) + f["epsilon"])
        self.m = f["momentum"] * self.m + f["lr"] * g / divisor
        return theta - self.m


class Adam:
    """Algorithm 1 of Kingma and Ba 2014, and algorithm 2 of Loshchilov and Hutter 2017 whose
    decay is multiplied by the rate, as PyTorch has it."""

    def __init__(self, f, apart=False):
        self.f, self.apart, self.m, self.v, self.t = f, apart, 0, 0, 0

    def step(self, theta, g):
        f = self.f
        self.t += 1
        if self.apart:
            theta = theta - f["lr"] * f["decay"] * theta
        else:
            g = g + f["decay"] * theta
        self.m = f["beta1"] * self.m + (1 - f["beta1"]) * g
        self.v = f["beta2"] * self.v + (1 - f["beta2"]) * g**2
        m, v = self.m / (1 - f["beta1"]**self.t), self.v / (1 - f["beta2"]**self.t)
        return theta - f["lr"] * m / (np.sqrt(v) + f["epsilon"])


class Lars:
    """Algorithm 1 of You, Gitman and Ginsburg 2017, with an epsilon in equation 6."""

    def __init__(self, f):
        self.f, self.v = f, 0

    def step(self, theta, g):
        f, w = self.f, np.linalg.norm(theta)
        local = f["trust"] * w / (np.linalg.norm(g) + f["decay"] * w + f["epsilon"])
        down = f["lr"] * local * (g + f["decay"] * theta)
        self.v = f["momentum"] * self.v + down
        return theta - (down + f["momentum"] * self.v if f["nesterov"] else self.v)


class Lamb:
    """Algorithm 2 of You et al. 2019, with the identity for phi."""

    def __init__(self, f):
        self.f, self.m, self.v, self.t = f, 0, 0, 0

    def step(self, theta, g):
        f = self.f
        self.t += 1
        self.m = f["beta1"] * self.m + (1 - f["beta1"]) * g
        self.v = f["beta2"] * self.v + (1 - f["beta2"]) * g**2
        m, v = self.m / (1 - f["beta1"]**self.t), self.v / (1 - f["beta2"]**self.t)
        r = m / (np.sqrt(v) + f["epsilon"]) + f["decay"] * theta
        return theta - f["lr"] * np.linalg.norm(theta) / np.linalg.norm(r) * r


PAPERS = {"sgd": Sgd, "adagrad": Adagrad, "rmsprop": Rmsprop, "adam": Adam,
          "adamw": lambda f: Adam(f, apart=True), "lars": Lars, "lamb": Lamb, "outer": Outer}


def by_paper(name, f, theta, means):
    optimizer = PAPERS[name](f)
    for g in means:
        theta = optimizer.step(theta, g)
        yield theta


def of_torch(torch, name, f, parameters):
    lr, decay, o = f["lr"], f.get("decay", 0), torch.optim
    if name == "sgd":
        return o.SGD(parameters, lr, momentum=f["momentum"], weight_decay=decay,
                     nesterov=f["nesterov"] != 0)
    if name == "adagrad":
        return o.Adagrad(parameters, lr, weight_decay=decay, eps=f["epsilon"])
    if name == "rmsprop":
        return o.RMSprop(parameters, lr, alpha=f["alpha"], eps=f["epsilon"], weight_decay=decay,
                         momentum=f["momentum"])
    if name == "outer":
        return o.SGD(parameters, lr, momentum=f["momentum"],
                     nesterov=f["nesterov"] != 0 and f["momentum"] != 0)
    kind = {"adam": o.Adam, "adamw": o.AdamW}[name]
    return kind(parameters, lr, betas=(f["beta1"], f["beta2"]), eps=f["epsilon"],
                weight_decay=decay)


def by_torch(name, f, theta, means):
    import torch
    torch.set_num_threads(1)
    parameter = torch.nn.Parameter(torch.tensor(theta, dtype=torch.float32))
    optimizer = of_torch(torch, name, f, [parameter])
    for g in means:
        # the outer gradient is a mean difference of parameters, turned round
        parameter.grad = torch.tensor(-g if name == "outer" else g, dtype=torch.float32)
        optimizer.step()
        yield parameter.detach().numpy().astype(np.float64)


def worst(reference, program, optimizer):
    """The largest difference, in tolerances."""
    name = optimizer.partition(":")[0]
    f, theta, means, got = steps_of(program, optimizer)
    off, before, way = 0, theta, np.abs(theta)
    for want, has in zip(reference(name, f, theta, means), got):
        way = way + np.abs(want - before)
        off, before = max(off, float(np.max(np.abs(want - has) / (TOLERANCE * way)))), want
    return off


def main():
    which, program = sys.argv[1:3]
    if which == "torch":
        try:
            import torch  # noqa: F401
        except ImportError:
            print("skipped: PyTorch is not installed (Debian package python3-torch)")
            sys.exit(77)
    reference = by_torch if which == "torch" else by_paper
    wrong = False
    papers = TENSORFLOWS + LARGE_BATCHES if which == "papers" else []
    for optimizer in OPTIMIZERS + OUTER + papers:
        off = worst(reference, program, optimizer)
        wrong |= not off <= 1
        print(f"{optimizer}: {off:.2f} of what it may be off")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
