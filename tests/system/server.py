# SPDX-License-Identifier: MIT
"""A musterd of a test's own, and just enough of its protocol to be rude to it."""
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile

MAGIC = struct.unpack("<I", b"mstr")[0]
HELLO, ERROR, ASK_STATUS = 1, 3, 11


def frame(kind, body=b"", magic=MAGIC, protocol=1, length=None):
    return (
        struct.pack("<IHHI", magic, protocol, kind, len(body) if length is None else length)
        + body
    )


def text(s):
    return struct.pack("<H", len(s)) + s.encode()


def hello(job="default", rank=-1, elems=100, kind=0, result=0, owner=0):
    return frame(
        HELLO, text(job) + struct.pack("<iQIIII", rank, elems, kind, result, owner, os.getpid())
    )


class Server:
    def __init__(self, musterd, *options):
        r, w = os.pipe()
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [musterd, "--listen", "127.0.0.1:0", *options],
            pass_fds=[w],
            stderr=self.log,
            stdin=subprocess.DEVNULL,
            env=dict(os.environ, MUSTER_READY_FD=str(w)),
        )
        os.close(w)
        with os.fdopen(r) as ready:
            line = ready.readline()
        self.port = int(re.search(r":(\d+)$", line).group(1))

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), 5)

    def say(self, data, wait=8):
        """Sends, and returns (code, sentence) of the error, or None if it just closes."""
        with self.connect() as s:
            s.settimeout(wait)
            s.sendall(data)
            return read_error(s)

    def stop(self):
        self.process.terminate()
        status = self.process.wait(10)
        self.log.seek(0)
        return status, self.log.read()


def read_error(s):
    data = b""
    while True:
        try:
            more = s.recv(65536)
        except ConnectionResetError:
            more = b""
        if not more:
            break
        data += more
    if not data:
        return None
    _, _, kind, length = struct.unpack_from("<IHHI", data)
    if kind != ERROR:
        sys.exit(f"hostile: expected an error, got message {kind}")
    code, n = struct.unpack_from("<iH", data, 12)
    return code, data[18 : 18 + n].decode()
