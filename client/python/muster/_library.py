# SPDX-License-Identifier: MIT
"""libmuster as ctypes sees it: the structs of muster.h, its functions, and where it is found."""
import ctypes as c
import os
import sysconfig
from typing import List, Optional

VERSION = "0.1.0"  # of muster.h, which the structs below repeat
NAME = "libmuster.so.0"


class Tensor(c.Structure):
    _fields_ = [("name", c.c_char_p), ("first", c.c_uint64), ("count", c.c_uint64),
                ("lr_scale", c.c_float), ("decay_scale", c.c_float)]


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("server", c.c_char_p), ("job", c.c_char_p),
                ("rank", c.c_int32), ("elems", c.c_uint64), ("type", c.c_int),
                ("result_type", c.c_int), ("owner", c.c_int), ("tensors", c.POINTER(Tensor)),
                ("tensor_count", c.c_uint32), ("join_ms", c.c_uint32), ("wait_ms", c.c_uint32),
                ("result_into", c.c_void_p), ("clip", c.c_double), ("comes_back", c.c_bool),
                ("tls_ca", c.c_char_p), ("tls_cert", c.c_char_p), ("tls_key", c.c_char_p),
                ("start_version", c.c_uint64)]


class Contribution(c.Structure):
    _fields_ = [("size", c.c_size_t), ("weight", c.c_double), ("loss", c.c_double),
                ("has_loss", c.c_bool), ("sum", c.c_bool), ("full", c.c_bool),
                ("keep", c.c_bool), ("part", c.c_bool)]


class Share(c.Structure):
    _fields_ = [("rank", c.c_uint32), ("count", c.c_uint32), ("weight", c.c_double)]


class Orders(c.Structure):
    _fields_ = [("lr_scale", c.c_double), ("alpha", c.c_double), ("local_steps", c.c_uint32),
                ("push_every", c.c_uint32), ("fetch_every", c.c_uint32), ("by_micro", c.c_bool)]


class Outcome(c.Structure):
    _fields_ = [("size", c.c_size_t), ("verdict", c.c_int), ("ticket", c.c_uint64),
                ("counted_in", c.c_uint64), ("version", c.c_uint64), ("fresh", c.c_bool),
                ("finished", c.c_bool), ("result", c.c_void_p), ("set", c.POINTER(Share)),
                ("set_len", c.c_uint32), ("weight", c.c_double), ("orders", Orders),
                ("newest", c.c_uint64), ("generation", c.c_uint64), ("withdrawn", c.c_uint64),
                ("workers", c.c_uint32)]


class Taken(c.Structure):
    """Not of muster.h: where muster_take_state() puts what it takes."""
    _fields_ = [("state", c.c_void_p), ("bytes", c.c_size_t), ("version", c.c_uint64)]


class Averaged(c.Structure):
    """Not of muster.h: where muster_average() puts what it brings."""
    _fields_ = [("average", c.c_void_p), ("version", c.c_uint64)]


class Part(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_char_p), ("digest", c.c_uint64),
                ("kind", c.c_int)]


class Claim(c.Structure):
    _fields_ = [("size", c.c_size_t), ("version", c.c_uint64), ("parts", c.POINTER(Part)),
                ("part_count", c.c_size_t)]


class Agreement(c.Structure):
    _fields_ = [("size", c.c_size_t), ("state", c.c_void_p), ("state_bytes", c.c_size_t),
                ("why", c.c_char_p), ("version", c.c_uint64), ("source", c.c_uint32),
                ("give", c.c_bool), ("kernels_differ", c.c_bool), ("reserved", c.c_char * 2)]


class Comparison(c.Structure):
    _fields_ = [("size", c.c_size_t), ("parts", c.POINTER(Part)), ("part_count", c.c_size_t),
                ("tensors", c.POINTER(c.c_uint64)), ("tensor_count", c.c_size_t),
                ("first", c.c_uint32), ("each", c.c_uint32), ("takes", c.c_bool),
                ("last", c.c_bool), ("reserved", c.c_char * 2), ("section", c.c_uint32)]


class Difference(c.Structure):
    _fields_ = [("size", c.c_size_t), ("version", c.c_uint64), ("why", c.c_char_p),
                ("source", c.c_uint32), ("kernels_differ", c.c_bool), ("reserved", c.c_char * 3)]


class Piece(c.Structure):
    _fields_ = [("first", c.c_uint64), ("count", c.c_uint64), ("src", c.c_void_p)]


class Region(c.Structure):
    _fields_ = [("base", c.c_void_p), ("bytes", c.c_size_t), ("writable", c.c_bool)]


class PushVerdict(c.Structure):
    _fields_ = [("ticket", c.c_uint64), ("incarnation", c.c_uint32), ("verdict", c.c_int),
                ("counted_in", c.c_uint64)]


class Job(c.Structure):
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("policy", c.c_char_p),
                ("rank", c.c_uint32), ("incarnation", c.c_uint32), ("workers", c.c_uint32),
                ("slots", c.c_uint32), ("elems", c.c_uint64), ("type", c.c_int),
                ("result_type", c.c_int), ("owner", c.c_int), ("lease_ms", c.c_uint32),
                ("patience_ms", c.c_uint32), ("verdicts", c.POINTER(PushVerdict)),
                ("verdict_count", c.c_uint32), ("first_version", c.c_uint64),
                ("first_samples", c.c_double)]


_HANDLE = c.c_void_p
_SIGNATURES = {
    "muster_version": (c.c_char_p,),
    "muster_open": (c.c_int, c.POINTER(Options), c.POINTER(_HANDLE)),
    "muster_close": (None, _HANDLE),
    "muster_error": (c.c_char_p, _HANDLE),
    "muster_job": (c.POINTER(Job), _HANDLE),
    "muster_start": (c.c_int, _HANDLE, c.c_void_p, c.POINTER(Outcome)),
    "muster_gradient": (c.c_void_p, _HANDLE),
    "muster_regions": (c.c_int, _HANDLE, c.POINTER(Region), c.c_uint32),
    "muster_push_ranges": (c.c_int, _HANDLE, c.POINTER(Piece), c.c_uint32),
    "muster_push": (c.c_int, _HANDLE, c.POINTER(Contribution), c.POINTER(c.c_uint64)),
    "muster_abandon": (c.c_int, _HANDLE),
    "muster_check": (c.c_int, _HANDLE),
    "muster_pull": (c.c_int, _HANDLE),
    "muster_wait": (c.c_int, _HANDLE, c.POINTER(Outcome)),
    "muster_try_wait": (c.c_int, _HANDLE, c.POINTER(Outcome)),
    "muster_wake": (None, _HANDLE),
    "muster_fd": (c.c_int, _HANDLE),
    "muster_state_wanted": (c.c_int, _HANDLE),
    "muster_give_state": (c.c_int, _HANDLE, c.c_void_p, c.c_size_t),
    "muster_take_state": (c.c_int, _HANDLE, c.c_void_p, c.c_void_p, c.c_void_p),
    "muster_agree": (c.c_int, _HANDLE, c.POINTER(Claim), c.c_void_p, c.c_size_t,
                     c.POINTER(Agreement)),
    "muster_compare": (c.c_int, _HANDLE, c.POINTER(Comparison)),
    "muster_difference": (c.c_int, _HANDLE, c.POINTER(Difference)),
    "muster_digest": (c.c_uint64, c.c_uint64, c.c_void_p, c.c_size_t),
    "muster_finish": (c.c_int, _HANDLE, c.c_char_p),
    "muster_goal": (c.c_int, _HANDLE, c.c_uint64, c.POINTER(c.c_uint64)),
    "muster_average": (c.c_int, _HANDLE, c.c_void_p, c.c_void_p),
    "muster_report": (c.c_int, _HANDLE, c.c_char_p, c.c_double),
}


def _beside() -> Optional[str]:
    """Where CMake has put the library that came with this package: PREFIX/lib, PREFIX/lib64 or
    PREFIX/lib/TRIPLET, with this file in PREFIX/lib/python3/dist-packages/muster."""
    triplet = sysconfig.get_config_var("MULTIARCH") or ""
    prefix = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
    for folder in ("lib/" + triplet, "lib", "lib64"):
        path = os.path.join(prefix, folder, NAME)
        if os.path.exists(path):
            return path
    return None


def _series(version: str) -> List[str]:
    return version.split(".")[:2]


def load() -> c.CDLL:
    """The library, of the release of this package: MUSTER_LIBRARY, or the one that was installed
    with this package, or the one that the loader finds. ImportError, in words, where there is none,
    or another."""
    path = os.environ.get("MUSTER_LIBRARY") or _beside() or NAME
    try:
        lib = c.CDLL(path)
    except OSError as e:
        raise ImportError(f"muster: the library cannot be loaded: {e}; install libmuster (Debian: "
                          "libmuster0), or set MUSTER_LIBRARY to its file") from e
    if not hasattr(lib, "muster_version"):
        raise ImportError(f"muster: {path} is no libmuster, or one that is older than this "
                          f"package, which is {VERSION}; install the same release of both")
    lib.muster_version.restype = c.c_char_p
    found = lib.muster_version().decode()
    if _series(found) != _series(VERSION):
        raise ImportError(f"muster: this package is {VERSION}, and {path} is {found}; install "
                          "the same release of both")
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


lib = load()
