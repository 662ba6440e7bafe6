#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""docs/map.md has every folder of the product and every module in it, as the tree has them; and no
folder has more files than a reader can keep in mind.

usage: map.py ROOT [--write]
  --write  writes docs/map.md

What a folder is for stands in ranks.txt, what a module is for in the first sentence of its header,
or of its source if it has no header.
"""

import collections
import pathlib
import re
import sys

import layers
import tree

MAP = pathlib.Path("docs/map.md")
PRODUCT = ("include/", "common/", "server/", "client/", "tools/")
FILES = 30
COMMENT = re.compile(r"\A/\*[^\n]*SPDX[^\n]*\*/\n\s*/\*(.*?)\*/", re.S)
SENTENCE = re.compile(r"(.*?(?<!et al)[.?])(?:\s|$)")
LONGEST = 200  # of a first sentence
HEAD = """<!-- SPDX-License-Identifier: MIT -->
# Map of the tree

`tests/tidy/map.py . --write` makes this page: from `tests/tidy/ranks.txt`, and from the first
sentence of each module's header. A module is a header and its source. A directory may be included
by those of a higher rank.
"""


def first_sentence(text):
    """The first sentence of the comment that a file begins with; None if there is no such
    comment."""
    found = COMMENT.match(text)
    if not found:
        return None
    text = "\n".join(line.strip().removeprefix("*").strip() for line in
                     found.group(1).splitlines()).strip()
    words = " ".join(text.split("\n\n")[0].split())  # the first paragraph
    sentence = SENTENCE.match(words)
    return sentence.group(1).rstrip(".:") if sentence else words.rstrip(".:")


def modules(root):
    """{folder: {stem: sentence}}, of the product."""
    found = collections.defaultdict(dict)
    for path in tree.files(root, ".h", ".c"):
        if not str(path).startswith(PRODUCT):
            continue
        sentence = first_sentence(tree.read(root, path))
        at = found[str(path.parent)]
        if path.suffix == ".h" or not at.get(path.stem):
            at[path.stem] = sentence or at.get(path.stem)
    return found


def drawn(root):
    titles, ranks, found = layers.read_titles(), layers.read_ranks()[0], modules(root)
    lines = [HEAD]
    for folder in sorted(found):
        rank = ranks[layers.home(pathlib.PurePath(folder, "x"), ranks)]
        lines.append(f"## {folder}\n\n{titles.get(folder, '')} Rank {rank}.\n\n"
                     "| module | what it is |\n|---|---|")
        lines += [f"| {stem} | {sentence or ''} |" for stem, sentence in
                  sorted(found[folder].items())]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def complaints(root):
    titles, found = layers.read_titles(), modules(root)
    counts = collections.Counter(str(p.parent) for p in tree.files(root, ".c", ".h"))
    for folder, stems in sorted(found.items()):
        if not titles.get(folder):
            yield f"{folder}: ranks.txt does not say what it is for"
        if counts[folder] > FILES:
            yield f"{folder}: {counts[folder]} files of {FILES}: make folders by idea"
        for stem, sentence in sorted(stems.items()):
            if not sentence:
                yield f"{folder}/{stem}: does not begin with a comment that says what it is"
            elif len(sentence) > LONGEST:
                yield (f"{folder}/{stem}: its first sentence has {len(sentence)} letters "
                       f"of {LONGEST}")
    for folder in titles:
        if not (pathlib.Path(root) / folder).is_dir():
            yield f"{folder}: is in ranks.txt, and not in the tree"
    page = pathlib.Path(root) / MAP
    if not page.is_file() or page.read_text(encoding="utf-8") != drawn(root):
        yield f"{MAP}: is not as the tree is: tests/tidy/map.py . --write"


def main():
    root = sys.argv[1]
    if sys.argv[2:] == ["--write"]:
        (pathlib.Path(root) / MAP).write_text(drawn(root), encoding="utf-8")
        return
    found = list(complaints(root))
    tree.conclude(found, sum(len(stems) for stems in modules(root).values()))


if __name__ == "__main__":
    main()
