# SPDX-License-Identifier: MIT
"""The vectors of test workers, computed from who made them, and their types."""
import zlib

import numpy as np

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
    """The gradient of a test worker."""
    with np.errstate(over="ignore"):
        seed = mix(mix(U32((rank * 1000003 + incarnation) & 0xFFFFFFFF)) + U32(ticket & 0xFFFFFFFF))
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


def loaded(data, kind):
    """float32 values of bytes in the type."""
    if kind == F32:
        return np.frombuffer(data, np.float32)
    if kind == BF16:
        return (np.frombuffer(data, np.uint16).astype(U32) << U32(16)).view(np.float32)
    return np.frombuffer(data, np.float16).astype(np.float32)


def through(x, kind):
    """float32 values as they read after a trip through the type."""
    return loaded(stored(x, kind), kind)


def checksum(data):
    return f"{zlib.crc32(data):08x}"
