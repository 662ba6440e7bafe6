# SPDX-License-Identifier: MIT
"""What the servers' optimisers make of a mean, with each step rounded to float as they round it."""
import math

import numpy as np

NONE = (np.float32(0), np.float32(0))  # states, before the first version

# What a specification may leave out; the rest is 0.
FALLBACKS = {
    "adagrad": {"epsilon": 1e-10},
    "rmsprop": {"alpha": 0.9, "epsilon": 1, "inside": 1, "start": 1, "momentum": 0.9},
    "adam": {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    "adamw": {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "decay": 0.01},
    "lars": {"momentum": 0.9, "decay": 5e-4, "trust": 0.001, "epsilon": 1e-8},
    "outer": {"momentum": 0.9, "nesterov": 1},
    "lamb": {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-6, "decay": 0.01},
}


def figures(optimizer, given):
    return {**FALLBACKS.get(optimizer, {}), **{name: float(given[name]) for name in given}}


class Step:
    """The figures of one version: in double, and rounded once where the kernel gets them. @norms:
    of a vector, the norm of its tensor for each element."""

    def __init__(self, figures, version, lr_scale, tensor_lr, tensor_decay, norms):
        self.figures, self.version, self.norms = figures, version, norms
        self.rate = np.float32(self.exact("lr") * lr_scale) * tensor_lr
        self.decay = self("decay") * tensor_decay

    def exact(self, name):
        return self.figures.get(name, 0.0)

    def __call__(self, name):
        return np.float32(self.exact(name))

    def decayed(self, theta, g):
        return np.where(self.decay == 0, g, g + self.decay * theta)


def add(step, theta, total, states):
    return theta + total, states


def outer(step, theta, mean, states):
    mu = step("momentum")
    if mu == 0:
        return theta + step.rate * mean, states
    m = mu * states[0] + mean
    return theta + step.rate * (mean + mu * m if step("nesterov") else m), (m,)


def sgd(step, theta, mean, states):
    g, mu = step.decayed(theta, mean), step("momentum")
    if mu == 0:
        return theta - step.rate * g, states
    m = mu * states[0] + g
    return theta - step.rate * (g + mu * m if step("nesterov") else m), (m,)


def adagrad(step, theta, mean, states):
    g = step.decayed(theta, mean)
    total = states[0] + g * g
    return theta - step.rate * (g / (np.sqrt(total) + step("epsilon"))), (total,)


def rmsprop(step, theta, mean, states):
    alpha, epsilon = float(step("alpha")), step.exact("epsilon")
    left = step.exact("start") * alpha**step.version
    inside = np.float32(left + epsilon if step("inside") else left)
    outside = np.float32(0 if step("inside") else epsilon)
    g = step.decayed(theta, mean)
    squares = step("alpha") * states[0] + g * g
    slope = g / (np.sqrt(np.float32(1 - alpha) * squares + inside) + outside)
    m = step("momentum") * states[1] + slope if step("momentum") else slope
    return theta - step.rate * m, (squares, m)


def adam(step, theta, mean, states, apart=False):
    beta1, beta2 = float(step("beta1")), float(step("beta2"))
    first = np.float32((1 - beta1) / (1 - beta1**step.version))
    second = np.float32(math.sqrt((1 - beta2) / (1 - beta2**step.version)))
    g = mean if apart else step.decayed(theta, mean)
    m, squares = step("beta1") * states[0] + g, step("beta2") * states[1] + g * g
    if apart:
        theta = np.where(step.decay == 0, theta, theta - step.rate * step.decay * theta)
    slope = m / (np.sqrt(squares) * second + step("epsilon"))
    return theta - step.rate * first * slope, (m, squares)


def trusted(step, theta, direction, ratio):
    """The rate of each element, times what @ratio makes of the norms of its tensor."""
    norms = step.norms(theta), step.norms(direction)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        trust = ratio(*norms).astype(np.float32)
    fine = (norms[0] != 0) & (norms[1] != 0) & np.isfinite(trust)
    return step.rate * np.where(fine, trust, np.float32(1))


def lars(step, theta, mean, states):
    def ratio(w, g):
        decay = np.asarray(step.decay, np.float32).astype(float)
        return step.exact("trust") * w / (g + decay * w + step.exact("epsilon"))

    mu = step("momentum")
    down = trusted(step, theta, mean, ratio) * step.decayed(theta, mean)
    if mu == 0:
        return theta - down, states
    v = mu * states[0] + down
    return theta - (down + mu * v if step("nesterov") else v), (v,)


def lamb(step, theta, mean, states):
    beta1, beta2 = float(step("beta1")), float(step("beta2"))
    first = np.float32((1 - beta1) / (1 - beta1**step.version))
    second = np.float32(math.sqrt((1 - beta2) / (1 - beta2**step.version)))
    m, squares = step("beta1") * states[0] + mean, step("beta2") * states[1] + mean * mean
    slope = m / (np.sqrt(squares) * second + step("epsilon"))
    direction = first * slope + step.decay * theta
    return theta - trusted(step, theta, direction, lambda w, r: w / r) * direction, (m, squares)


def adamw(step, theta, mean, states):
    return adam(step, theta, mean, states, apart=True)


STEPS = {step.__name__: step for step in (add, outer, sgd, adagrad, rmsprop, adam, adamw, lars,
                                          lamb)}
