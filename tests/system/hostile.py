#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Bad peers on the control port: each gets its sentence, and the job does not notice.

usage: hostile.py --musterd MUSTERD --crowd CROWD
"""
import argparse
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

from server import HELLO, Server, frame, hello, read_error


def expect(name, got, pattern):
    if got is None or not re.search(pattern, got[1]):
        sys.exit(f"hostile: {name}: expected a sentence like {pattern!r}, got {got!r}")
    print(f"{name}: {got[1]}")


def refused(server):
    expect("garbage", server.say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "no message of muster")
    expect(
        "other protocol",
        server.say(frame(HELLO, protocol=7)),
        "protocol 7.*this server speaks 1",
    )
    expect("too long", server.say(frame(HELLO, b"", length=1 << 30)), "no message of muster")
    expect("torn hello", server.say(frame(HELLO, b"\x10\x00abc")), "no message of muster")
    expect("not a hello", server.say(frame(8, struct.pack("<Q", 3))), "before its hello")
    expect("other job", server.say(hello(job="other")), 'no job "other"')
    expect("no length", server.say(hello(elems=0)), "length of 0")
    expect("absurd length", server.say(hello(elems=1 << 60)), "elements cannot be")
    expect(
        "other owner",
        server.say(hello(owner=1)),
        "owner workers does not match.*--owner workers",
    )
    expect("rank out of range", server.say(hello(rank=77)), "rank 77 is not one of")


def while_running(server, crowd, log):
    env = dict(os.environ, MUSTER_SERVER=f"127.0.0.1:{server.port}")
    workers = [
        subprocess.Popen(
            [crowd, log, "100", "sleep_us=10000"], env=dict(env, MUSTER_RANK=str(r))
        )
        for r in range(3)
    ]
    time.sleep(0.7)
    expect(
        "wrong length",
        server.say(hello(elems=1000)),
        r'length 1000 does not match job "default" \(100\)',
    )
    expect("wrong type", server.say(hello(kind=1)), "gradients of bf16 do not match")
    expect("wrong result", server.say(hello(result=2)), "results of f16 do not match")
    expect("live rank", server.say(hello(rank=1)), "rank 1 .* is taken by a live worker")
    expect("all taken", server.say(hello()), "all 3 ranks .* are taken")
    silent = [server.connect() for _ in range(8)]
    crowds = [server.connect() for _ in range(20)]
    for s in crowds:
        s.close()
    status = [w.wait(60) for w in workers]
    for s in silent:
        s.settimeout(15)
    if any(status):
        sys.exit(f"hostile: workers exited with {status}")
    if server.process.wait(20) != 0:
        sys.exit("hostile: the server failed")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--musterd", required=True)
    p.add_argument("--crowd", required=True)
    a = p.parse_args()
    server = Server(a.musterd, "-n", "3", "--commits", "150")
    refused(server)
    with tempfile.TemporaryDirectory() as d:
        while_running(server, a.crowd, os.path.join(d, "log"))

    server = Server(a.musterd, "-n", "2", "--memory", "64M")
    expect(
        "no memory",
        server.say(hello(elems=100_000_000)),
        r"no memory .* 2 workers with 2 slots .*--memory",
    )
    silent = server.connect()
    silent.settimeout(10)
    if read_error(silent) is not None:
        sys.exit("hostile: a silent caller got an answer")
    status, log = server.stop()
    if status != 128 + 15 or "said nothing" not in log:
        sys.exit(f"hostile: server exited with {status}: {log}")
    print("silence: closed after the grace")


main()
