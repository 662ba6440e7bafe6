#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""No two structs, unions or enums of the tree share a name, nobody has to learn words of ours, and
no sentence opens without its noun.

A type that a header only declares may be defined by each source that implements it: a test's
own implementation of a stream is a struct mst_stream, too.

usage: names.py ROOT
"""

import collections
import pathlib
import re
import sys

import tree

DEFINED = re.compile(r"^[ \t]*(?:static |const |typedef )*(?:struct|union|enum) (\w+) \{", re.M)
DECLARED = re.compile(r"^struct (\w+);", re.M)

# What muster once called things, the name that the field has for each, and the beginnings of paths
# below which the word is a proper term of something else.
DEAD = {
    "admin": ("control", ("common/host/", "tests/unit/common/host/", "docs/decisions.md")),
    "asker": ("requester", ()),
    "bell": ("notify descriptor", ()),
    "board": ("shared flags", ()),
    "census": ("counts", ()),
    "citizen": ("test worker", ()),
    "comeback": ("state transfer", ()),
    "crew": ("worker threads", ()),
    "desk": ("scratch", ()),
    "door": ("link listener", ()),
    "fate": ("verdict", ()),
    "fold": ("partial sum, or accumulate", ()),
    "gate": ("barrier, or eventcount", ("tools/bench/print.c", "docs/man/muster-bench.1.in",
                                        "tests/system/tool_bench.py")),  # keys of the JSON
    "guest": ("pending session", ("tests/vm/",)),
    "handover": ("state transfer", ()),
    "->hand": ("worker thread", ()),
    "introduce": ("region exchange", ()),
    "introduction": ("region exchange", ()),
    "knock": ("connection request", ()),
    "landing": ("inbound region", ()),
    "letter": ("response", ("client/examples/", "common/config/", "server/options/", "tools/",
                            "tests/bench/peers/", "tests/fuzz/fuzz_option.c",
                            "tests/unit/common/")),
    "mend": ("fix", ()),
    "outbox": ("outbound region", ()),
    "parcel": ("fd message", ()),
    "petition": ("request", ()),
    "ripe": ("ready", ()),
    "seat": ("member", ()),
    "spells": ("periods", ()),
    "stir": ("has_work", ()),
    "strip": ("tile", ("server/core/model/run.py", "tests/bench/", "tests/one_run.py",
                       "tests/system/", "tests/vm/")),
    "tally": ("statistics", ()),
    "the lead": ("the leader", ("include/muster/",)),
    "tempo": ("durations", ()),
    "town": ("fixture", ()),
    "uplink": ("follower", ()),
    "link.window": ("remote mapping", ()),
    "link->window": ("remote mapping", ()),
}

# Words that a reader has to stop at, by the name that a complaint has: what to look for, in lines
# that may be wrapped; what to write instead; and phrases that stay. "Behind" is a place: a worker
# may lag, and messages may queue.
Riddle = collections.namedtuple("Riddle", "what pattern instead stays")
RIDDLES = (
    Riddle("behind", re.compile(
        r"\bbehind\s+(?:the|it|them|that|those|these|each|another|one|an?|what|which|all|@\w+)\b",
        re.I),
        "after, past or beyond",
        re.compile(r"(?:fall|falls|fallen|fell|lags?|further|waits?|waiting) behind\b"
                   r"|(?:is|are|was) behind the (?:history|versions)\b", re.I)),
    Riddle("an opening without its noun", re.compile(
        r"\b(?:Whoever|Whom|Whose|Nor|Those|Of (?:which|whom|those|these))\b"
        r"|/\*\s+(?:Who|Of)\b|\"\"\"(?:Who|Of)\b"),
        "a subject: A worker that ..., The versions of ...", None),
)
CONTINUED = re.compile(r"\n[ \t]*(?:\*|#)?(?=[ \t])[ \t]*|\n[ \t]*")  # a line of the same comment
PROSE = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "docs/man/*.in", "server/core/model/*.md")
UNREAD = "tests/tidy/"  # the words are told here


def dead_patterns():
    """By word, in lower case: an underscore ends it, and a single word may have an ending. What is
    before it is for dead_words(): a pattern that begins with a plain word is looked for quickly."""
    return {word: re.compile(re.escape(word) + ("(?:s|ed|ing)?" if word.isalpha() else "")
                             + "(?![a-z])") for word in DEAD}


def prose(root):
    root = pathlib.Path(root)
    return sorted(path.relative_to(root) for glob in PROSE for path in root.glob(glob))


def dead_words(path, text, patterns):
    """Yields a complaint for each dead word of a file."""
    if str(path).startswith(UNREAD):
        return
    low = text.lower()
    for word, pattern in patterns.items():
        name, places = DEAD[word]
        if str(path).startswith(places):
            continue
        for match in pattern.finditer(low):
            begin, end = match.span()
            if word[0].isalpha() and "a" <= low[begin - 1:begin] <= "z":
                continue
            line = low.count("\n", 0, begin) + 1
            yield f"{path}:{line}: {text[begin:end]!r}: the field says {name}"


def joined(text):
    """The text with each line break, and what begins the next line of a comment, as blanks: every
    letter stays where it was."""
    return CONTINUED.sub(lambda m: " " * len(m.group()), text)


def riddles(path, text):
    """Yields a complaint for each riddle of a file."""
    if str(path).startswith(UNREAD):
        return
    line_up = joined(text)
    for riddle in RIDDLES:
        for match in riddle.pattern.finditer(line_up):
            begin, end = match.span()
            around = " ".join(line_up[max(0, begin - 40):end + 20].split())
            if riddle.stays and riddle.stays.search(around):
                continue
            line = text.count("\n", 0, begin) + 1
            yield (f"{path}:{line}: {' '.join(match.group().split())!r} ({riddle.what}): "
                   f"write {riddle.instead}")


def namesakes(root, paths):
    """Yields a complaint for each type with a name that another type has."""
    places, opaque = collections.defaultdict(list), set()
    for path in paths:
        code = tree.code_only(tree.read(root, path))
        for match in DEFINED.finditer(code):
            places[match[1]].append((path, code.count("\n", 0, match.start()) + 1))
        if path.suffix == ".h":
            opaque.update(DECLARED.findall(code))
    for name, where in sorted(places.items()):
        if name in opaque and all(path.suffix == ".c" for path, _ in where):
            continue
        if len(where) > 1:
            other, (path, line) = where[0], where[-1]
            yield f"{path}:{line}: {name} is also a name in {other[0]}:{other[1]}"


def main():
    root, patterns = sys.argv[1], dead_patterns()
    paths = tree.files(root, ".c", ".h")
    read = paths + tree.files(root, ".py", ".sh", ".pml") + prose(root)
    complaints = list(namesakes(root, paths))
    for path in read:
        text = tree.read(root, path)
        complaints += [*dead_words(path, text, patterns), *riddles(path, text)]
    tree.conclude(complaints, len(paths))


if __name__ == "__main__":
    main()
