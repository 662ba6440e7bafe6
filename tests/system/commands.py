#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What README.md and the pages of docs/ tell people to type is typed: every command line of a
block, and every one in the text, that is of muster or musterd is read by the real program, which
must take all of its options. (readme.py also runs those of README.md.)

A program that is asked for --help reads its whole command line before it prints anything. musterd
also checks that its options go together, and prints them.

usage: commands.py --muster MUSTER --musterd MUSTERD
"""
import collections
import glob
import os
import re
import shlex
import subprocess
import unittest

from base import HERE, TOOLS, run_tests

ROOT = os.path.abspath(os.path.join(HERE, "../.."))
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(
    os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "docs/*.md")))]
PROGRAMS = ("muster", "musterd")
# What stands for something of the reader's own.
ELLIPSIS = re.compile(r"\.\.\.|\bOPTIONS\b")
PLACEHOLDER = re.compile("[A-Z]+")
Line = collections.namedtuple("Line", "page number words")


def blocks(lines):
    """(number, text) of lines in fences without a language other than a shell's, or indented by
    four after an empty line; lines that go on are joined."""
    fence, number = None, 0
    while number < len(lines):
        text, first = lines[number], number + 1
        number += 1
        if text.lstrip().startswith("```"):
            fence = text.strip()[3:] or "sh" if fence is None else None
            continue
        indented = text.startswith("    ") and fence is None
        if not indented and fence not in ("sh", "bash", "console"):
            continue
        while text.endswith("\\") and number < len(lines):
            text = text[:-1] + " " + lines[number].strip()
            number += 1
        yield first, text.strip()


def in_text(lines):
    """(number, text) of what stands between single backquotes; it may go on in the next line."""
    whole = "\n".join(lines)
    for found in re.finditer(r"(?<!`)`([^`]+)`(?!`)", whole):
        yield whole.count("\n", 0, found.start()) + 1, found.group(1).replace("\n", " ")


def commands(text):
    """The simple commands of a line of a shell, as words."""
    lexer = shlex.shlex(text.removeprefix("$ "), posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    one = []
    try:
        words = list(lexer)
    except ValueError:  # a quote without its end: this is no line of a shell
        return
    for word in [*words, ";"]:
        if word.startswith("#"):
            yield one
            return
        if set(word) <= set("|&;()"):
            yield one
            one = []
        else:
            one.append(word)


def simple(words):
    """The program and its words, without what stands before it (variables, sudo, a virtual machine)
    and without redirections."""
    before = "--", "sudo", "exec", "time"
    for at, word in enumerate(words):
        if os.path.basename(word) in PROGRAMS and all(
                re.match(r"\w+=", w) or w in before or "--" in words[:at] for w in words[:at]):
            words = [os.path.basename(word), *words[at + 1:]]
            break
    else:
        return []
    kept, skip = [], False
    for word in words:
        if skip or word in ("<", ">", ">>"):
            skip = not skip
            continue
        kept.append(word)
    return kept


def found_in(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        lines = f.read().splitlines()
    for number, text in [*blocks(lines), *in_text(lines)]:
        for words in map(simple, commands(text)):
            if len(words) > 1:
                yield Line(page, number, words)


def dry(words):
    """The command lines that only read what this one says. --budget checks that options go
    together, and tells of memory."""
    program, rest = words[0], words[1:]
    end = rest.index("--") if "--" in rest else len(rest)
    asks = [["--help"]]
    if program == "musterd" and not {"--join", "-c", "--budget", "--user"} & set(rest):
        workers = [] if {"-n", "--workers"} & set(rest) else ["-n", "4"]
        asks = [["--print-config"], ["--budget", "1000G", "--elems", "1000", *workers]]
    return [[getattr(TOOLS, program), *rest[:end], *ask, *rest[end:]] for ask in asks]


def is_of_readers_own(line, said):
    """The option is known; what stands for its value is not one, or is left out in the text."""
    if any(PLACEHOLDER.fullmatch(word) and f'"{word}" is not' in said for word in line.words):
        return True
    return line.words[-1].startswith("-") and f"option {line.words[-1]} needs a value" in said


def refused(line):
    """Why a program does not take the line; None: it does."""
    for command in dry([word for word in line.words if not word.startswith("$")]):
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=60, cwd=ROOT)
        if done.returncode != 0 and not is_of_readers_own(line, done.stderr):
            return f"{done.returncode}: {done.stderr.strip()[:300]}"
    return None


def texts_of_the_code():
    """All texts in the sources of programs and library; one that goes on in the next line whole."""
    found = []
    for folder in ("common", "client", "server"):
        for path in glob.glob(os.path.join(ROOT, folder, "**/*.[ch]"), recursive=True):
            with open(path, encoding="utf-8") as f:
                found.append(re.sub(r'"\s+"', "", f.read()))
    return "\n".join(found).replace('\\"', '"').replace("%%", "%")


def explained(page):
    """(message, part) of the messages in the first column of the page's last table: what is the
    same in each, without what stands for addresses, numbers and the like."""
    varies = r"\.\.\.|\(.*?\)|\S*\d\S*|\bwithin\b|\bms\b|\bConnection reset.*"
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        rows = [line for line in f.read().rstrip().splitlines()[-40:] if line.startswith("| `")]
    for row in rows:
        for message in re.findall(r"`([^`]+)`", row.split(" | ")[0]):
            for part in re.split(varies, message):
                part = re.sub(r'^\W*"?|"\W*$', "", part).strip()
                if len(part) > 7:
                    yield message, part


def of(text):
    return Line("a test", 1, next(filter(None, map(simple, commands(text)))))


def is_whole(line):
    return not any(ELLIPSIS.search(word) for word in line.words)


class Commands(unittest.TestCase):
    def test_every_command_line_of_the_documents_is_taken(self):
        lines = [line for page in PAGES for line in found_in(page)]
        self.assertGreater(len(lines), 100, "hardly any are found")
        for line in filter(is_whole, lines):
            with self.subTest(f"{line.page}:{line.number}: {' '.join(line.words)}"):
                self.assertIsNone(refused(line))

    def test_messages_that_a_page_explains_are_those_of_the_code(self):
        texts = texts_of_the_code()
        parts = list(explained("docs/tcp.md"))
        self.assertGreater(len(parts), 15, "hardly any are found")
        for message, part in parts:
            with self.subTest(message):
                self.assertTrue(part in texts, f"no source has \"{part}\"")

    def test_a_wrong_one_is_noticed(self):
        for text in ("muster run -n 5 --grace 1x -- ./first", "musterd --workers 5 --polic bsp",
                     "musterd --workers 3 --policy backup:9 | cat", "muster sim -n eight",
                     "vm.py -- build/release/tools/muster run --grace 1x -- ./first",
                     "X=1 muster status --timeout", "musterd --budgt SIZE"):
            line = of(text)
            if text.startswith("X=1"):
                self.assertIsNone(refused(line), text)  # the value is left out, as in a text
            else:
                self.assertIsNotNone(refused(line), text)


if __name__ == "__main__":
    run_tests("muster", "musterd")
