# SPDX-License-Identifier: MIT
"""What a rank has after a version, in digests, which the server compares with those of other ranks:
so that ranks whose parameters have come to differ are found, whatever made them differ."""
from __future__ import annotations

import ctypes
from typing import List, NamedTuple, Tuple

import torch

from . import _tensors
from ._layout import Layout
from ._library import lib

# After each of so many versions a rank takes digests of one block of its parameters. After as many
# as all blocks take, and one more, every lasting difference is found.
EVERY, BLOCKS = 16, 4
_ROWS = 128  # MUSTER_COMPARE_MAX


class Digests(NamedTuple):
    """As struct muster_comparison has them: each is of a section of so many tensors, from the first
    on. Blocks may have parts of the same tensor, so each block has sections of its own."""
    first: int
    each: int
    section: int
    values: List[int]


class _Piece(NamedTuple):
    parameter: torch.nn.Parameter
    start: int  # elements
    end: int


def is_due(version: int) -> bool:
    return version % EVERY == 0


def block_of(version: int) -> int:
    return version // EVERY % BLOCKS


class Blocks:
    """The parameters of a model in blocks of as many elements."""

    def __init__(self, layout: Layout):
        self._block = [self._pieces(layout, number) for number in range(BLOCKS)]

    @staticmethod
    def _pieces(layout: Layout, number: int) -> Tuple[int, List[_Piece]]:
        """The first tensor of a block, by its number in the table of tensors, and the pieces."""
        start, end = (layout.trained * n // BLOCKS for n in (number, number + 1))
        first = 0
        pieces: List[_Piece] = []
        there = (p for _, p in layout.params if p.numel() > 0)  # as in Layout.table()
        for at, p in enumerate(there):
            begins, count = layout.place[id(p)]
            piece = _Piece(p, max(start - begins, 0), min(end - begins, count))
            if piece.start < piece.end:
                first = first if pieces else at
                pieces.append(piece)
        return first, pieces

    def digests(self, number: int) -> Digests:
        first, pieces = self._block[number]
        each = max(1, -(-len(pieces) // _ROWS))
        return Digests(first, each, number + 1, [_digest(pieces[at:at + each])
                                                 for at in range(0, len(pieces), each)])


def _digest(pieces: List[_Piece]) -> int:
    before = 0
    for p, start, end in pieces:
        flat = _tensors.flat(p)[start:end].cpu()
        before = lib.muster_digest(before, ctypes.c_void_p(flat.data_ptr()),
                                   flat.numel() * flat.element_size())
    return before
