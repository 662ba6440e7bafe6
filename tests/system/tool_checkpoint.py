#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a checkpoint has, read by the lines of docs/checkpoints.md, which know nothing of muster;
and what muster checkpoint says of it.

usage: tool_checkpoint.py --muster MUSTER --writer CHECKPOINT_FILES
"""
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

from base import HERE, TOOLS, run_tests

GROUPS = {"parameters": "F32", "momentum": "F32", "average": "BF16"}
ELEMS = 1001


def read_part(path):
    """Return: the header of a safetensors file, and the data of each of its tensors."""
    with open(path, "rb") as f:
        length, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    return header, {name: data[slice(*t["data_offsets"])] for name, t in header.items()
                    if name != "__metadata__"}


def reader_of_the_docs():
    """Return: the function of docs/checkpoints.md; None: NumPy is not installed."""
    with open(os.path.join(HERE, "../../docs/checkpoints.md"), encoding="utf-8") as f:
        code = re.search("```python\n(.*?)```", f.read(), re.S)[1]
    names = {}
    try:
        exec(compile(code, "docs/checkpoints.md", "exec"), names)  # pylint: disable=exec-used
    except ImportError:
        return None
    return names["read"]


# ---- what should be in it, computed once more ----

def element(version, vector, index):
    which = index + 1 + 5003 * version + 1000003 * vector
    mixed = which * 0x9E3779B97F4A7C15 & (1 << 64) - 1
    # Each operation is rounded to f32, as in C; the quotient is exact.
    number = struct.unpack("<f", struct.pack("<f", mixed >> 40))[0] / 256.0
    bits = struct.pack("<f", number - 1000.0)
    return bits[2:] if vector == 2 else bits


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Checkpoint(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="muster-test-checkpoint-")
        self.addCleanup(shutil.rmtree, self.dir)
        table = subprocess.run([TOOLS.writer, self.dir, "41", "123"], check=True,
                               capture_output=True, encoding="utf-8").stdout
        self.table = {}
        for line in table.splitlines():
            first, count, name = line.split(" ", 2)
            self.table[name] = int(first), int(count)

    def manifest(self, version=123):
        return os.path.join(self.dir, f"v{version:010}.json")

    def parts(self, version=123):
        return sorted(glob.glob(os.path.join(self.dir, f"v{version:010}-*.safetensors")))

    def tool(self, *options, status=0):
        """Return: what muster checkpoint writes to both outputs, and its JSON."""
        figures = os.path.join(self.dir, "figures")
        done = subprocess.run([TOOLS.muster, "checkpoint", self.dir, *options, "--json", figures],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        with open(figures, encoding="utf-8") as f:
            return done.stdout, done.stderr, json.load(f)

    # ---- the files ----

    def test_the_lines_of_the_docs_read_every_tensor(self):
        read = reader_of_the_docs()
        if read is None:
            self.skipTest("NumPy is not installed (Debian package python3-numpy)")
        whole = {name: array.tobytes() for name, array in read(self.manifest()).items()}
        self.assertEqual(len(whole), len(GROUPS) * len(self.table))
        for vector, group in enumerate(GROUPS):
            for name, (first, count) in self.table.items():
                full = name if group == "parameters" else f"{group}/{name}"
                expected = b"".join(element(123, vector, i) for i in range(first, first + count))
                self.assertEqual(whole[full], expected, full)

    def test_headers_are_as_safetensors_wants_them(self):
        for path in self.parts():
            header, tensors = read_part(path)
            with open(path, "rb") as f:
                length, = struct.unpack("<Q", f.read(8))
                self.assertEqual(f.read(1), b"{")
            self.assertEqual((8 + length) % 4096, 0)
            self.assertTrue(all(isinstance(text, str)
                                for text in header.pop("__metadata__").values()))
            end = 0
            for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
                size = {"F32": 4, "BF16": 2}[t["dtype"]]
                begin, after = t["data_offsets"]
                self.assertEqual((begin, after - begin), (end, size * t["shape"][0]), name)
                self.assertEqual(begin % size, 0)
                end = after
            self.assertEqual(os.path.getsize(path), 8 + length + end)
            self.assertEqual(sum(map(len, tensors.values())), end)

    def test_the_library_reads_it_too(self):
        try:
            from safetensors import safe_open
        except ImportError:
            self.skipTest("safetensors is not installed")
        for path in self.parts():
            with safe_open(path, framework="np") as f:
                self.assertEqual(f.metadata()["job"], "night")
                for name in f.keys():
                    if not name.startswith("average/"):  # NumPy has no BF16
                        self.assertEqual(f.get_tensor(name).tobytes(), read_part(path)[1][name])

    def test_checksums_are_as_documented(self):
        for path in self.parts():
            header, tensors = read_part(path)
            about = header["__metadata__"]
            for name, data in tensors.items():
                said = dict(word.split("=") for word in about["tensor/" + name].split())
                self.assertEqual(said["crc32c"], f"{crc32c(data):08x}")
                self.assertIn(said["group"], GROUPS)
            with open(path, "rb") as f:
                length, = struct.unpack("<Q", f.read(8))
                f.seek(0)
                raw = f.read(8 + length)
            mark = about["header_crc32c"].encode()
            self.assertEqual(f"{crc32c(raw.replace(mark, b'00000000', 1)):08x}".encode(), mark)

    def test_the_manifest_says_what_it_is(self):
        with open(self.manifest(), encoding="utf-8") as f:
            text = f.read()
        manifest = json.loads(text)
        self.assertEqual(manifest["format"], "muster-checkpoint")
        self.assertEqual((manifest["format_version"], manifest["version"]), (1, 123))
        self.assertEqual(manifest["groups"], GROUPS)
        self.assertEqual(sum(part["count"] for part in manifest["parts"]), ELEMS)
        self.assertEqual(manifest["values"], {"ledger.clock": 123, "samples": 123,
                                              "clocks": [123], "incarnations": [1]})
        body = text[:text.rindex('  "crc32c"')].encode()
        self.assertEqual(f"{crc32c(body):08x}", manifest["crc32c"])

    # ---- the tool ----

    def test_the_tool_lists_what_is_there(self):
        said, _, figures = self.tool("--tensors")
        self.assertIn("night, backup:6, sgd:lr=0.1,momentum=0.9", said)
        newest, older = figures["checkpoints"]
        self.assertEqual((newest["version"], older["version"]), (123, 41))
        self.assertEqual((newest["state"], newest["samples"]), ("complete", 320 * 123))
        self.assertEqual(newest["bytes"], sum(map(os.path.getsize, self.parts())))
        names = {t["name"] for t in newest["tensors"] if t["group"] == "parameters"}
        self.assertEqual(names, set(self.table))
        self.assertNotIn("tensors", older)

    def test_the_tool_finds_a_changed_bit(self):
        path = self.parts()[1]
        with open(path, "r+b") as f:
            f.seek(-1, os.SEEK_END)
            last = f.read(1)[0]
            f.seek(-1, os.SEEK_END)
            f.write(bytes([last ^ 1]))
        self.tool()
        said, errors, figures = self.tool("--verify", status=1)
        self.assertIn(os.path.basename(path), said)
        self.assertIn("1 of the 2 checkpoints", errors)
        self.assertEqual([row["state"] for row in figures["checkpoints"]], ["damaged", "verified"])
        self.assertIn('"average/fc1.weight"', figures["checkpoints"][0]["why"])

    def test_the_tool_finds_a_missing_part_and_a_cut_manifest(self):
        os.unlink(self.parts()[0])
        os.truncate(self.manifest(41), 100)
        said, _, figures = self.tool(status=1)
        self.assertIn("is missing", said)
        self.assertIn("cut or damaged", said)
        self.assertEqual([row["state"] for row in figures["checkpoints"]], ["damaged"] * 2)

    def test_the_tool_refuses_what_it_cannot_mean(self):
        def run(*arguments):
            done = subprocess.run([TOOLS.muster, "checkpoint", *arguments], capture_output=True,
                                  text=True, timeout=60, check=False)
            return done.returncode, done.stderr

        self.assertEqual(run()[0], 2)
        self.assertEqual(run(self.dir, self.dir)[0], 2)
        self.assertEqual(run(self.dir, "--no-such")[0], 2)
        status, said = run(os.path.join(self.dir, "none"))
        self.assertEqual(status, 1)
        self.assertIn("there is no directory", said)
        with tempfile.TemporaryDirectory() as empty:
            status, said = run(empty)
        self.assertEqual(status, 1)
        self.assertIn("there is no checkpoint in", said)


if __name__ == "__main__":
    run_tests("muster", "writer")
