#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Lesson 1 in Python: one push, one pull, with nothing but ctypes.

    muster run -n 3 -- /usr/bin/python3 lesson_ctypes.py

The library is MUSTER_LIBRARY, or else the libmuster.so.0 the loader finds. The servers update with
sgd:lr=0.1,momentum=0.9, their default; in the first step momentum changes nothing yet.
"""
import ctypes as c
import os
import sys

ELEMS, LR, COUNTED = 1000, 0.1, 1


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("server", c.c_char_p), ("job", c.c_char_p),
                ("rank", c.c_int32), ("elems", c.c_uint64), ("type", c.c_int),
                ("result_type", c.c_int), ("owner", c.c_int), ("tensors", c.c_void_p),
                ("tensor_count", c.c_uint32), ("join_ms", c.c_uint32), ("wait_ms", c.c_uint32)]


class Contribution(c.Structure):
    _fields_ = [("size", c.c_size_t), ("weight", c.c_double), ("loss", c.c_double),
                ("has_loss", c.c_bool), ("sum", c.c_bool), ("full", c.c_bool),
                ("keep", c.c_bool)]


class Share(c.Structure):
    _fields_ = [("rank", c.c_uint32), ("count", c.c_uint32), ("weight", c.c_double)]


class Orders(c.Structure):
    _fields_ = [("lr_scale", c.c_double), ("alpha", c.c_double), ("local_steps", c.c_uint32),
                ("push_every", c.c_uint32), ("fetch_every", c.c_uint32)]


class Outcome(c.Structure):
    _fields_ = [("size", c.c_size_t), ("verdict", c.c_int), ("ticket", c.c_uint64),
                ("counted_in", c.c_uint64), ("version", c.c_uint64), ("fresh", c.c_bool),
                ("finished", c.c_bool), ("result", c.POINTER(c.c_float)),
                ("set", c.POINTER(Share)), ("set_len", c.c_uint32), ("weight", c.c_double),
                ("orders", Orders)]


class Job(c.Structure):  # the first fields; the library's struct goes on
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("policy", c.c_char_p),
                ("rank", c.c_uint32), ("incarnation", c.c_uint32), ("workers", c.c_uint32)]


muster = c.CDLL(os.environ.get("MUSTER_LIBRARY", "libmuster.so.0"))
muster.muster_error.restype = c.c_char_p
muster.muster_job.restype = c.POINTER(Job)
muster.muster_gradient.restype = c.POINTER(c.c_float)
muster.muster_report.argtypes = [c.c_void_p, c.c_char_p, c.c_double]


def must(rc, handle=None):
    """Negative is a failure, and the library has the words for it."""
    if rc < 0:
        sys.exit(muster.muster_error(handle).decode())


def main():
    options = Options(size=c.sizeof(Options), rank=-1, elems=ELEMS)
    handle = c.c_void_p()
    must(muster.muster_open(c.byref(options), c.byref(handle)))
    rank = muster.muster_job(handle).contents.rank

    # All offer the same start state; the lowest rank's becomes version 0.
    out = Outcome(size=c.sizeof(Outcome))
    must(muster.muster_start(handle, (c.c_float * ELEMS)(), c.byref(out)), handle)

    # Rank r hands in r + 1 everywhere, in the buffer where the server will read it.
    gradient = muster.muster_gradient(handle)
    for i in range(ELEMS):
        gradient[i] = rank + 1
    mine = Contribution(size=c.sizeof(Contribution), weight=1, full=True)
    must(muster.muster_push(handle, c.byref(mine), None), handle)
    must(muster.muster_wait(handle, c.byref(out)), handle)

    shares = [(s.rank, s.count, s.weight) for s in out.set[:out.set_len]]
    want = -LR * sum((r + 1) * weight for r, _, weight in shares) / out.weight
    wrong = [i for i in range(ELEMS) if abs(out.result[i] - want) > 1e-6]
    print(f"{'counted' if out.verdict == COUNTED else 'not counted'}; version {out.version} holds "
          f"{', '.join(f'rank {r} x {n}' for r, n, _ in shares)}; all should be {want:g}")

    # What a worker has found out about a version, muster status and muster run show.
    must(muster.muster_report(handle, b"wrong_parameters", len(wrong)), handle)
    if rank == 0:
        must(muster.muster_finish(handle, b"the lesson is over"), handle)
    if wrong:
        print(f"parameter {wrong[0]} is {out.result[wrong[0]]:g}", file=sys.stderr)
    muster.muster_close(handle)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
