#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Proves from the workers' logs that every version is what its set says, to the bit.

usage: check_history.py LOG --group G --optimizer sgd:LR,MU|add|none [--lr-scale linear|none]
                        [--compensate] [--kills]

It knows nothing of the server: gradients are computed again from (rank, incarnation, ticket), the
tree, the division and the update are done once more with NumPy's float32, and the checksum must be
what every worker saw. Every ticket must have exactly one verdict; every set must be the counted
tickets of its version; all workers must have seen the same bits for the same version.
"""
import argparse
import glob
import sys

import numpy as np

COUNTED = 1
VERDICTS = ["none", "counted", "late", "stale", "cancelled", "refused"]
F32, BF16, F16 = 0, 1, 2
U32 = np.uint32


def mix(x):
    x = np.asarray(x, dtype=U32)
    with np.errstate(over="ignore"):
        x = x ^ (x >> U32(16))
        x = x * U32(0x7FEB352D)
        x = x ^ (x >> U32(15))
        x = x * U32(0x846CA68B)
        return x ^ (x >> U32(16))


def values(elems, rank, incarnation, ticket):
    with np.errstate(over="ignore"):
        seed = mix(
            mix(U32((rank * 1000003 + incarnation) & 0xFFFFFFFF)) + U32(ticket & 0xFFFFFFFF)
        )
        raw = mix(seed + np.arange(elems, dtype=U32)) >> U32(8)
    return (raw.astype(np.float32) - np.float32(8388608)) / np.float32(8388608)


def to_bf16(x):
    bits = x.view(U32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return rounded.astype(np.uint16)


def stored(x, kind):
    """Bytes of float32 values rounded once to the type."""
    if kind == F32:
        return x.astype(np.float32).tobytes()
    return to_bf16(x).tobytes() if kind == BF16 else x.astype(np.float16).tobytes()


def through(x, kind):
    """float32 values as they read after a trip through the type."""
    if kind == F32:
        return x
    if kind == BF16:
        return (to_bf16(x).astype(U32) << U32(16)).view(np.float32)
    return x.astype(np.float16).astype(np.float32)


def checksum(data):
    h = 2166136261
    for byte in data:
        h = ((h ^ byte) * 16777619) & 0xFFFFFFFF
    return h


class Log:
    def __init__(self, path):
        self.path, self.pushes, self.outcomes, self.errors, self.end = path, {}, [], [], None
        for line in open(path):
            word = line.split()
            if word[0] == "job":
                self.rank, self.incarnation, self.workers, self.elems = map(int, word[1:5])
                self.type, self.result_type, self.owner = map(int, word[5:8])
            elif word[0] == "push":
                if int(word[1]):
                    self.pushes[int(word[1])] = (int(word[2]), float(word[3]), int(word[4]))
            elif word[0] == "outcome":
                self.outcomes.append(
                    dict(
                        verdict=int(word[1]),
                        ticket=int(word[2]),
                        counted_in=int(word[3]),
                        version=int(word[4]),
                        finished=int(word[6]),
                        sum=word[7],
                        lr_scale=float(word[8]),
                        set=[
                            (int(r), int(n), float(w))
                            for r, n, w in (s.split(":") for s in word[10:])
                        ],
                    )
                )
            elif word[0] == "end":
                self.end = int(word[1])
            else:
                self.errors.append(line.strip())


def fail(text):
    sys.exit(f"check_history: {text}")


def verdicts(logs, kills):
    """(version) -> the counted, as (rank, incarnation, ticket, tag, weight, sum)."""
    counted = {}
    for log in logs:
        seen = {}
        for out in log.outcomes:
            if out["verdict"] and out["ticket"]:
                if out["ticket"] in seen:
                    fail(f"{log.path}: ticket {out['ticket']} has two verdicts")
                seen[out["ticket"]] = out
        whole = any(o["finished"] for o in log.outcomes)
        for ticket, (tag, weight, is_sum) in log.pushes.items():
            if ticket not in seen:
                if whole:
                    fail(f"{log.path}: ticket {ticket} has no verdict")
                continue
            if seen[ticket]["verdict"] == COUNTED:
                counted.setdefault(seen[ticket]["counted_in"], []).append(
                    (log.rank, log.incarnation, ticket, tag, weight, is_sum)
                )
        unknown = set(seen) - set(log.pushes)
        if unknown:
            fail(f"{log.path}: verdicts for tickets never pushed: {sorted(unknown)}")
        if log.errors and not kills:
            fail(f"{log.path}: {log.errors}")
    return counted


def unheard(logs):
    """(rank) -> contributions whose worker died before it heard their verdict, in order."""
    lost = {}
    for log in logs:
        heard = {o["ticket"] for o in log.outcomes if o["verdict"]}
        lost.setdefault(log.rank, []).extend(
            (log.rank, log.incarnation, t, *log.pushes[t])
            for t in sorted(log.pushes)
            if t not in heard
        )
    return lost


def complete(have, shares, lost):
    """The counted of a version, with those whose worker died before it heard of its verdict."""
    got = {}
    for c in have:
        got[c[0]] = got.get(c[0], 0) + 1
    for rank, count, _ in shares:
        while got.get(rank, 0) < count and lost.get(rank):
            have.append(lost[rank].pop(0))
            got[rank] = got.get(rank, 0) + 1
    return sorted(have), got == {rank: count for rank, count, _ in shares}


def tree(parts, group):
    """parts: rank -> list of float32 leaves in seq order."""
    total, groups = None, {}
    for rank in sorted(parts):
        acc = None
        for leaf in parts[rank]:
            acc = leaf if acc is None else acc + leaf
        key = rank // group
        groups[key] = acc if key not in groups else groups[key] + acc
    for key in sorted(groups):
        total = groups[key] if total is None else total + groups[key]
    return total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("log")
    p.add_argument("--group", type=int, default=8)
    p.add_argument("--optimizer", default="none")
    p.add_argument("--lr-scale", default="linear")
    p.add_argument("--compensate", action="store_true")
    p.add_argument("--kills", action="store_true")
    p.add_argument("--seen", choices=VERDICTS, help="a verdict that somebody must have had")
    p.add_argument("--count", type=int, help="contributions that each version must have")
    p.add_argument(
        "--versions", type=int, default=1, help="at least so many must have been seen"
    )
    a = p.parse_args()
    logs = [Log(path) for path in sorted(glob.glob(a.log + ".*.*"))]
    if not logs:
        fail(f"no logs {a.log}.RANK.INCARNATION")
    job = logs[0]
    counted = verdicts(logs, a.kills)
    had = {out["verdict"] for log in logs for out in log.outcomes if out["ticket"]}
    if a.seen and VERDICTS.index(a.seen) not in had:
        fail(f"nobody had the verdict {a.seen}: the case is too easy")
    seen, sets, scale = {}, {}, {}
    for log in logs:
        for out in log.outcomes:
            v = out["version"]
            for book, what in (
                (seen, out["sum"]),
                (sets, out["set"]),
                (scale, out["lr_scale"]),
            ):
                if book.setdefault(v, what) != what:
                    fail(f"{log.path}: version {v}: {what}, another worker saw {book[v]}")
    newest = max(seen)
    if newest < a.versions:
        fail(f"only {newest} versions, {a.versions} expected")
    theta = through(values(job.elems, 999, 0, 0), job.result_type)
    momentum = np.zeros(job.elems, np.float32)
    lost = unheard(logs)
    checked = gaps = 0
    for v in range(1, newest + 1):
        shares = sets.get(v)
        have = counted.get(v, [])
        if shares is not None:
            have, same = complete(have, shares, lost)
            if not same:
                fail(f"version {v}: its set is {shares}, counted tickets are {have}")
        if not have:
            gaps += 1  # nobody saw it and all its workers died: it cannot be computed again
            break
        if a.count and len(have) != a.count:
            fail(f"version {v} was made of {len(have)} contributions, not {a.count}")
        parts = {}
        for rank, incarnation, ticket, tag, weight, is_sum in have:
            g = through(values(job.elems, rank, incarnation, ticket), job.type)
            stale = (v - 1) - tag
            c = (1.0 / stale if a.compensate and stale > 1 else 1.0) / (
                weight if is_sum else 1.0
            )
            c = np.float32(c)
            parts.setdefault(rank, []).append(g if c == 1 else c * g)
        total = tree(parts, a.group)
        if a.optimizer != "add" and len(have) != 1:
            total = total / np.float32(len(have))
        result = total
        if a.optimizer.startswith("sgd:"):
            lr, mu = map(float, a.optimizer[4:].split(","))
            eta = np.float32(lr * (len(have) / job.workers if a.lr_scale == "linear" else 1.0))
            if mu != 0:
                momentum = np.float32(mu) * momentum + total
                total = momentum
            theta = theta - eta * total
            result = theta
        elif a.optimizer == "add":
            theta = theta + total
            result = theta
        if v in seen:
            bits = f"{checksum(stored(result, job.result_type)):08x}"
            if bits != seen[v]:
                fail(f"version {v}: workers saw {seen[v]}, its set gives {bits}: {have}")
            checked += 1
    if checked == 0:
        fail("no version could be checked")
    print(
        f"{checked} of {newest} versions recomputed to the bit, "
        f"{sum(len(l.pushes) for l in logs)} tickets with one verdict each"
        + (", then one could not be" if gaps else "")
    )


main()
