# SPDX-License-Identifier: MIT
"""Searches what others may read for what is secret: keys and tokens."""
import base64
import os
import re
import subprocess

from base import check, must


def places_of(*processes):
    """The command lines and environments of these processes, but for the variables that they have
    from this one: some hosts have some that look like a secret, such as INVOCATION_ID."""
    inherited = {b"%s=%s" % pair for pair in os.environb.items()}
    found = []
    for each in processes:
        for name in ("cmdline", "environ"):
            with open(f"/proc/{each.process.pid}/{name}", "rb") as f:
                found += [one for one in f.read().split(b"\0") if one not in inherited]
    return b"\0".join(found).decode(errors="surrogateescape")


def scalar_of(key):
    """The secret number of a key on P-256, in the two orders of bytes that may lie in memory."""
    said = subprocess.check_output(["openssl", "pkey", "-in", key, "-noout", "-text"], text=True)
    digits = re.search(r"priv:([\s0-9a-f:]+)pub:", said).group(1)
    number = bytes.fromhex(re.sub(r"[\s:]", "", digits)).rjust(32, b"\0")[-32:]
    return number, number[::-1]


def must_lack(text, secret, name):
    """@secret: bytes; @text may have them as they are, or in one of the usual spellings."""
    data = text.encode(errors="surrogateescape")
    spelt = [secret.hex(), secret.hex(":"), secret.hex(" "), secret.hex(" ", 4), secret.hex("-")]
    spelt += [each.upper() for each in spelt]
    spelt.append(base64.b64encode(secret).decode().rstrip("="))
    must(secret not in data and not any(each.encode() in data for each in spelt),
         f"{name} is in what others may read")


def no_keys(keys, text):
    """@keys: the folder that has them."""
    for name in os.listdir(keys):
        if name.endswith(".key"):
            with open(f"{keys}/{name}") as f:
                lines = [line for line in f.read().split("\n") if line and "-" not in line]
            must(lines, f"{name} has lines")
            must(not any(line in text for line in lines), f"{name} is in what others may read")
            for number in scalar_of(f"{keys}/{name}"):
                must_lack(text, number, name)
    check("no key is in what others may read", True)


def memory_of(pid, left_out):
    """What a core dump would have of a process, or what it leaves out: what is marked "dd"."""
    with open(f"/proc/{pid}/smaps") as f:
        maps = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) .*?^VmFlags: (.*?)$", f.read(),
                          re.M | re.S)
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for begin, end, rights, flags in maps:
            if rights.startswith("rw") and left_out == ("dd" in flags.split()):
                memory.seek(int(begin, 16))
                try:
                    yield memory.read(int(end, 16) - int(begin, 16))
                except OSError:  # what the kernel maps for devices
                    pass


def keys_stay_out_of_core_dumps(keys, role, pid):
    """A sanitizer keeps so much memory that nobody can search it."""
    with open(f"/proc/{pid}/exe", "rb") as f:
        if b"san_init" in f.read():
            return
    secret = scalar_of(f"{keys}/{role}.key")
    found = {left_out: sum(piece.count(s) for piece in memory_of(pid, left_out) for s in secret)
             for left_out in (False, True)}
    check(f"{role}.key is in memory that no core dump has: {found[True]} times",
          found[True])
    check(f"a core dump has it {found[False]} times", found[False] == 0)
