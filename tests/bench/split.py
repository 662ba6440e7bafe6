# SPDX-License-Identifier: MIT
"""Where the time of a step goes, from what the probes of a server and its workers wrote down.

A step of a worker begins with its first put of data and ends when the answer has arrived:

    begin ... header posted ... slot full ... all slots full ... first byte of result put ... end
    '------- transfer ---------'--- others --'------------------ answer ----------------------'

Only what is taken from one clock is told where server and workers are in different machines.
"""
import collections
import statistics

HEADER, ANSWER = 1, 7
EPOCH_MASK = 0xffffff

Note = collections.namedtuple("Note", "ns what rank imm bytes")


def read(text):
    notes = [Note(int(ns), what, int(rank), int(imm), int(bytes_))
             for ns, what, rank, imm, bytes_ in (line.split() for line in text.splitlines())]
    return sorted(notes)


def is_kind(note, what, kind):
    return note.what == what and note.imm >> 28 == kind


class Round:
    """One step of one worker: begin, posted, end."""

    def __init__(self, begin):
        self.begin, self.posted, self.end, self.epoch = begin, None, None, None


def rounds(notes):
    """The steps of a worker, by the epoch of their grant; one slot, so that they are in order."""
    found, now = {}, None
    for note in notes:
        if note.what == "put" and now is None:
            now = Round(note.ns)
        elif is_kind(note, "posted", HEADER):
            now.posted, now.epoch = note.ns, note.imm & EPOCH_MASK
        elif is_kind(note, "arrived", ANSWER) and now is not None and now.epoch is not None:
            now.end = note.ns
            found[now.epoch] = now
            now = None
    return found


class Served:
    """One step at the server: when each slot was full, the first byte put, the arithmetic."""

    def __init__(self):
        self.full, self.first, self.summed = {}, None, 0  # full: by rank


def served(notes, workers):
    found, now = {}, None
    for note in notes:
        if is_kind(note, "arrived", HEADER):
            now = found.setdefault(note.imm & EPOCH_MASK, Served())
            now.full[note.rank] = note.ns
        elif now is None or len(now.full) < workers:
            continue
        elif note.what == "summed":
            now.summed += note.bytes
        elif note.what == "put" and note.imm == 0 and now.first is None:
            now.first = note.ns
    return found


def split(server, workers, one_clock):
    """Median us of each part, of the worker that ends last; warm-up left out. Return: a dict."""
    at_server, at_workers = served(server, len(workers)), [rounds(notes) for notes in workers]
    parts = collections.defaultdict(list)
    epochs = sorted(set(at_server).intersection(*at_workers))
    for epoch in epochs[len(epochs) // 10:]:
        served_, own = at_server[epoch], [found[epoch] for found in at_workers]
        if len(served_.full) < len(workers) or served_.first is None:
            continue
        all_full = max(served_.full.values())
        parts["posted to usable"].append(max(one.end - one.posted for one in own))
        parts["full to first byte"].append(served_.first - all_full)
        parts["sum"].append(served_.summed)
        if one_clock:
            rank = max(range(len(own)), key=lambda rank: own[rank].end)
            parts["transfer"].append(served_.full[rank] - own[rank].begin)
            parts["others"].append(all_full - served_.full[rank])
            parts["answer"].append(own[rank].end - all_full)
    return {name: statistics.median(values) / 1e3 for name, values in parts.items()}
