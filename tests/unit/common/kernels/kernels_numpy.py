#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Computes what kernels_case prints once more with NumPy, and compares bit by bit.

usage: kernels_numpy.py KERNELS_CASE [SEED CASES]
"""

import itertools
import math
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed (Debian package python3-numpy)")
    sys.exit(77)

F32, BF16, F16 = range(3)
NAN_F32, NAN_BF16, NAN_F16 = 0x7FC00000, 0x7FC0, 0x7E00


def patterns(words):
    return np.array([int(w, 16) for w in words], dtype=np.uint32)


def floats(words):
    return patterns(words).view(np.float32)


def widen(words, kind):
    if kind == F32:
        return floats(words)
    if kind == BF16:
        return (patterns(words) << 16).view(np.float32)
    return patterns(words).astype(np.uint16).view(np.float16).astype(np.float32)


def to_f32(x):
    return np.where(np.isnan(x), NAN_F32, x.view(np.uint32))


def to_f16(x):
    return np.where(np.isnan(x), NAN_F16, x.astype(np.float16).view(np.uint16))


def to_bf16(x):
    """Between the number cut off and the one above it, by their distances in double."""
    cut = x.view(np.uint32) >> 16

    def magnitude(pattern):
        bits = (pattern & 0x7FFF) << 16
        bounded = bits.astype(np.uint32).view(np.float32).astype(np.float64)
        return np.where(bits == 0x7F800000, 2.0**128, bounded)

    low, high, exact = magnitude(cut), magnitude(cut + 1), np.abs(x.astype(np.float64))
    to_low, to_high = exact - low, high - exact
    up = (to_high < to_low) | ((to_high == to_low) & (cut % 2 == 1))
    return np.where(np.isnan(x), NAN_BF16, np.where(np.isinf(x), cut, cut + up))


def accumulate(terms):
    """From the first one on, in order; NumPy rounds each sum of two float32 once."""
    total = None
    for term in terms:
        total = term if total is None else total + term
    return total


def tree_sum(leaves, group):
    """leaves: (rank, what it adds), in order."""
    def by(key, items):
        return [list(same) for _, same in itertools.groupby(items, key)]

    ranks = [(same[0][0], accumulate(x for _, x in same))
             for same in by(lambda leaf: leaf[0], leaves)]
    groups = by(lambda rank: rank[0] // group, ranks)
    return accumulate(accumulate(x for _, x in same) for same in groups)


def leaf_of(words, kind):
    coefficient, g = floats(words[1:2]), widen(words[2:], kind)
    return int(words[0]), g if coefficient[0] == 1 else coefficient * g


def sgd(case, theta, mean):
    """As PyTorch's SGD. Return: the parameters and the momentum."""
    _, mu, nesterov, decay, *_ = floats(case["figures"])
    g = mean + decay * theta if decay != 0 else mean
    m = mu * floats(case["m2"]) + g
    slope = g + mu * m if nesterov != 0 else m
    return theta - floats(case["eta2"]) * slope, m


def adagrad(case, theta, mean):
    """As PyTorch's Adagrad. Return: the parameters and the sum of squares."""
    _, epsilon, decay, *_ = floats(case["figures3"])
    g = mean + decay * theta if decay != 0 else mean
    total = floats(case["squares3"]) + g * g
    return theta - floats(case["eta3"]) * quotient(g, np.sqrt(total) + epsilon), total


def quotient(dividend, divisor):
    """An infinite divisor must not make a 0 of it."""
    return np.where(np.isinf(divisor), np.float32(np.nan), dividend / divisor)


def rmsprop(figures, scalars, states, theta, mean):
    """With the scalars of its row. Return: the parameters and the states."""
    _, alpha, _, _, _, mu, decay, _ = figures
    rate, share, inside, outside = scalars
    g = mean + decay * theta if decay != 0 else mean
    squares = alpha * states[0] + g * g
    m = mu * states[1] + quotient(g, np.sqrt(share * squares + inside) + outside)
    return theta - rate * m, squares, m


def adam(figures, scalars, states, theta, mean, apart=False):
    _, beta1, beta2, epsilon, decay, *_ = figures
    rate, first, second, _ = scalars
    g = mean + decay * theta if decay != 0 and not apart else mean
    start = theta - (rate * decay) * theta if decay != 0 and apart else theta
    m, squares = beta1 * states[0] + g, beta2 * states[1] + g * g
    return start - (rate * first) * quotient(m, np.sqrt(squares) * second + epsilon), m, squares


def adamw(*words):
    return adam(*words, apart=True)


def lars(figures, scalars, states, theta, mean):
    """Nesterov's, with one state."""
    _, mu, _, decay, *_ = figures
    down = scalars[0] * (mean + decay * theta if decay != 0 else mean)
    v = mu * states[0] + down
    return theta - (down + mu * v), v, states[1]


def lamb(figures, scalars, states, theta, mean):
    _, beta1, beta2, epsilon, decay, *_ = figures
    rate, first, second, _ = scalars
    m, squares = beta1 * states[0] + mean, beta2 * states[1] + mean * mean
    direction = first * quotient(m, np.sqrt(squares) * second + epsilon) + decay * theta
    return theta - rate * direction, m, squares


def two_states(case, theta, mean):
    for row in (rmsprop, adam, adamw, lars, lamb):
        def part(name):
            return floats(case[f"{row.__name__}.{name}"])

        results = row(part("figures"), part("scalars"), (part("0"), part("1")), theta, mean)
        for name, result in zip(("next", "0.after", "1.after"), results):
            yield f"{row.__name__}.{name}", to_f32(result)


def squares(block):
    """As the kernels: sixteen lanes, each in order; then their halves."""
    padded = np.zeros(-(-len(block) // 16) * 16)
    padded[:len(block)] = block.astype(np.float64) ** 2
    lanes = np.add.accumulate(padded.reshape(-1, 16))[-1]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]


def norm_differs(number, case):
    vector, got = floats(case["vector"]), float.fromhex(case["squares"][0])
    want = math.fsum(squares(block) for block in (vector[:17], vector[17:40], vector[40:]))
    if got != want:
        yield f"case {number}: the kernels' squares are {got.hex()}, NumPy's {want.hex()}"


def expected(case):
    """case: name -> words. Returns name -> patterns."""
    kind, group, _ = (int(w) for w in case["case"])
    mean = tree_sum([leaf_of(words, kind) for words in case["leaf"]], group)
    mean = mean / floats(case["divisor"])
    theta, m, mu, eta = (floats(case[name]) for name in ("theta", "m", "mu", "eta"))
    if mu[0] != 0:
        m = mu * m + mean
    slope = m if mu[0] != 0 else mean
    sgd2, momentum2 = sgd(case, theta, mean)
    theta3, sum3 = adagrad(case, theta, mean)
    return {**dict(two_states(case, theta, mean)), "adagrad": to_f32(theta3), "sum3": to_f32(sum3),
            "sgd2": to_f32(sgd2), "momentum2": to_f32(momentum2),
            "f32": to_f32(mean), "bf16": to_bf16(mean), "f16": to_f16(mean),
            "sgd": to_f32(theta - eta * slope), "momentum": to_f32(m), "add": to_f32(theta + mean)}


def read_cases(lines):
    case = None
    for line in lines:
        name, *words = line.split()
        if name == "case":
            if case:
                yield case
            case = {"leaf": []}
        if name == "leaf":
            case["leaf"].append(words)
        else:
            case[name] = words
    if case:
        yield case


def differences(number, case):
    yield from norm_differs(number, case)
    for name, want in expected(case).items():
        got = patterns(case[name])
        for i in np.flatnonzero(got != want):
            yield f"case {number}, {name}[{i}]: the kernels have {got[i]:x}, NumPy {int(want[i]):x}"


def main():
    program = sys.argv[1]
    seed, count = sys.argv[2:4] if len(sys.argv) > 3 else ("1", "200")
    run = subprocess.run([program, seed, count], stdout=subprocess.PIPE, text=True, check=True)
    cases = list(read_cases(run.stdout.splitlines()))
    with np.errstate(all="ignore"):
        wrong = [d for number, case in enumerate(cases) for d in differences(number, case)]
    print(*wrong[:20], sep="\n", end="\n" if wrong else "")
    print(f"seed {seed}: {len(cases)} cases, {len(wrong)} differences")
    sys.exit(1 if wrong or len(cases) != int(count) else 0)


if __name__ == "__main__":
    main()
