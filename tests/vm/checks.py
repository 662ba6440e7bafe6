# SPDX-License-Identifier: MIT
"""What a case in machines checks, and how it fails."""
import re
import time

from lab import LabWrong


class Failed(Exception):
    """The test failed; says what was expected."""


class Disproved(Failed, LabWrong):
    """The history is not what the workers saw."""


def check(what, ok, proof=""):
    if not ok:
        raise Failed(f"NOT SO: {what}\n{proof}")
    print(f"{what}", flush=True)


def until(condition, seconds, what):
    """Waits for the condition. Return: seconds it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return time.monotonic() - began


def says(node, command, status, *sentences, env=None):
    """The command ends so, and says each of the sentences, regular expressions."""
    got = node.run(command, 120, False, env)
    for sentence in sentences:
        found = re.search(sentence, got.output, re.M)
        check(found and found[0].strip(), found, f"{command}\nsays no {sentence!r}:\n{got.output}")
    check(f"  ends with {status}", got.status == status, f"{command}: {got}")
    return got.output
