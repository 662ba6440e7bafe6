#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The peer Gloo: torch.distributed.all_reduce of a tensor, in place, as its users call it.

One process imports torch, then forks the workers. Started by compare.py; the times, the contents
and the checks are those of meter.h, through ctypes.

usage: gloo_allreduce.py LIBMETER, and the options in meter.h
"""
import argparse
import ctypes
import os
import sys

import torch
import torch.distributed as dist


def load(path):
    lib = ctypes.CDLL(path)
    pointer, u64 = ctypes.c_void_p, ctypes.c_uint64
    lib.meter_open.restype = pointer
    lib.meter_open.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
    lib.meter_join.argtypes = [pointer, ctypes.c_uint32]
    lib.meter_fill.argtypes = [pointer, pointer, u64]
    lib.meter_next.argtypes = [pointer]
    lib.meter_next.restype = ctypes.c_bool
    lib.meter_done.argtypes = [pointer]
    lib.meter_meet.argtypes = [pointer]
    lib.meter_check.argtypes = [pointer, pointer, u64, u64, ctypes.c_double]
    lib.meter_close.argtypes = [pointer]
    return lib


def meter_open(lib, argv):
    words = (ctypes.c_char_p * (len(argv) + 1))(*[word.encode() for word in argv], None)
    meter = lib.meter_open(len(argv), words)
    return meter, words  # which the meter points into


def steps(lib, meter, elems, workers):
    """In place: with --fill marks, what is not marked grows to infinity, which costs no time."""
    tensor = torch.zeros(elems, dtype=torch.float32)
    tag = 0
    while True:
        lib.meter_fill(meter, tensor.data_ptr(), tag)
        if not lib.meter_next(meter):
            return
        dist.all_reduce(tensor)
        lib.meter_done(meter)
        lib.meter_meet(meter)
        lib.meter_check(meter, tensor.data_ptr(), tag, (1 << workers) - 1, 1.0)
        tag += 1


def enter_namespace(rank):
    """BENCH_NETNS, the beginning of the paths of network namespaces: the worker's is w and rank."""
    prefix = os.environ.get("BENCH_NETNS")
    if prefix is None:
        return
    with open(f"{prefix}w{rank}", encoding="utf-8") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def worker(lib, argv, rank, options):
    enter_namespace(rank)
    meter, _words = meter_open(lib, argv)
    if not meter or lib.meter_join(meter, rank) != 0:
        return 2
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{options.file}.store", rank=rank,
                            world_size=options.workers)
    steps(lib, meter, options.elems, options.workers)
    status = lib.meter_close(meter)
    dist.barrier()  # a rank that leaves first would break the others' connections
    return status


def main():
    argv = sys.argv[1:]  # the library takes the place of the program's name
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("library")
    parser.add_argument("--file", required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--elems", type=int, required=True)
    options = parser.parse_known_args()[0]
    lib = load(options.library)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    children = []
    for rank in range(options.workers):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = worker(lib, argv, rank, options)
            finally:
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(1 if any(statuses) else 0)


if __name__ == "__main__":
    main()
