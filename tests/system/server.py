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
PROTOCOL = 19
HELLO, ERROR, ASK_STATUS, STATUS, TENSORS, REPORT, SEND_TABLE = 1, 3, 11, 12, 22, 26, 34
SECONDS = 60  # more than enough for whatever is waited for: there to end what hangs
# On a busy host a process may stand still for some seconds. A test of what a lease is for sets its
# own.
LEASE = ["--lease", "30s"]


def frame(kind, body=b"", magic=MAGIC, protocol=PROTOCOL, length=None):
    return (
        struct.pack("<IHHI", magic, protocol, kind, len(body) if length is None else length)
        + body
    )


def field(tag, value):
    return struct.pack("<HI", tag, len(value)) + value


def fields(*values):
    """A body, or a row in one: the values, with the tags 1, 2, ..."""
    return b"".join(field(tag, value) for tag, value in enumerate(values, 1))


def each(form, *numbers):
    """A value for each number, as struct packs it."""
    return [struct.pack("<" + c, number) for c, number in zip(form, numbers, strict=True)]


def rows(*each_row):
    return struct.pack("<I", len(each_row)) + b"".join(
        struct.pack("<I", len(row)) + row for row in each_row)


def rows_of(value):
    """The bytes of each row."""
    (count,), at, found = struct.unpack_from("<I", value), 4, []
    for _ in range(count):
        (length,) = struct.unpack_from("<I", value, at)
        found.append(value[at + 4:at + 4 + length])
        at += 4 + length
    return found


def text(s):
    return s if isinstance(s, bytes) else s.encode()


def ask_status(watch=0):
    return frame(ASK_STATUS, fields(*each("I", watch)))


def values(body):
    """The fields of a body, by tag."""
    found = {}
    while body:
        tag, length = struct.unpack_from("<HI", body)
        found[tag] = body[6:6 + length]
        body = body[6 + length:]
    return found


def error(body):
    """(code, sentence) of an ERROR."""
    found = values(body)
    return struct.unpack("<i", found[1])[0], found[2].decode()


def origins(*addresses):
    """From where links are dialled, 16 bytes each; over shared memory none is needed."""
    return rows(*(fields(address) for address in addresses))


def hello(job="default", rank=-1, elems=100, kind=0, result=0, owner=0, table=(0, 0, 0, 0, 0, 0),
          comes_back=0, dials=(), more=b""):
    """table: the number of tensors, of runs and of bytes of names, and digests of names, places and
    scales; dials: addresses as of origins(); more: further fields."""
    return frame(
        HELLO, fields(text(job), *each("iQIIIII", rank, elems, kind, result, owner, os.getpid(),
                                       comes_back),
                      *each("IIQQQQ", *table), origins(*dials)) + more
    )


def tensors(at, total, *named):
    """A piece of a table: from number @at on, the name and the number of elements of each."""
    return scaled(at, total, *((name, count, 1, 1) for name, count in named))


def scaled(at, total, *named):
    """The same, with each one's scales of rate and decay."""
    return frame(TENSORS, fields(*each("II", at, total), rows(
        *(fields(text(name), *each("Qff", *figures)) for name, *figures in named))))


def digest(data):
    """FNV-1a of 64 bits."""
    so_far = 0xCBF29CE484222325
    for byte in data:
        so_far = (so_far ^ byte) * 0x100000001B3 % (1 << 64)
    return so_far


def read_log(log):
    """All that was written so far, read by another open file: writers share the place of @log."""
    with open(f"/proc/self/fd/{log.fileno()}", errors="replace") as f:
        return f.read()


class Server:
    def __init__(self, musterd, *options, stderr=None, preexec_fn=None, listen="127.0.0.1:0",
                 **env):
        r, w = os.pipe()
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [musterd, "--listen", listen, *LEASE, *options],
            pass_fds=[w],
            stderr=self.log if stderr is None else stderr,
            stdin=subprocess.DEVNULL,
            env=dict(os.environ, MUSTER_READY_FD=str(w), **env),
            preexec_fn=preexec_fn,
        )
        os.close(w)
        with os.fdopen(r) as ready:
            line = ready.readline()
        if not line:
            self.process.wait(SECONDS)
            sys.exit(f"musterd does not start: {self.said()}")
        self.port = int(re.search(r":(\d+)$", line).group(1))
        self.host = listen.rpartition(":")[0]
        self.address = f"{self.host}:{self.port}"

    def connect(self):
        return socket.create_connection((self.host, self.port), SECONDS)

    def say(self, data, wait=SECONDS):
        """Sends, and returns (code, sentence) of the error, or None if it just closes."""
        with self.connect() as s:
            s.settimeout(wait)
            s.sendall(data)
            return read_error(s)

    def answer(self, data, wait=SECONDS):
        """Sends, and returns the first message that comes back: protocol, kind, body."""
        with self.connect() as s:
            s.settimeout(wait)
            s.sendall(data)
            _, protocol, kind, length = struct.unpack("<IHHI", s.recv(12, socket.MSG_WAITALL))
            return protocol, kind, s.recv(length, socket.MSG_WAITALL)

    def say_table(self, data, *pieces, wait=SECONDS):
        """The same with a hello whose table is asked for; its pieces as tensors() makes them."""
        with self.connect() as s:
            s.settimeout(wait)
            s.sendall(data)
            head = s.recv(12, socket.MSG_WAITALL)
            if head != frame(SEND_TABLE):
                sys.exit(f"nobody asked for the table: {head!r}")
            s.sendall(b"".join(pieces))
            return read_error(s)

    def connections(self):
        """Established ones, a line of the kernel's table each: the server's ends and the callers'.
        """
        port = f":{self.port:04X}"
        with open("/proc/net/tcp") as f:
            rows = [line.split() for line in f.readlines()[1:]]
        rows = [row for row in rows if row[3] == "01"]
        return ([row for row in rows if row[1].endswith(port)],
                [row for row in rows if row[2].endswith(port)])

    def connected(self):
        """How many are connected."""
        return len(self.connections()[1])

    def unread(self):
        """How many have sent something that the server has not read."""
        return sum(int(row[4].split(":")[1], 16) > 0 for row in self.connections()[0])

    def said(self):
        return read_log(self.log)

    def end(self, seconds):
        """(exit status, log); None where it is not over by then."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        return status, self.said()

    def stop(self):
        """Ends it by SIGTERM. Return: exit status and log."""
        self.process.terminate()
        return self.process.wait(SECONDS), self.said()

    def kill(self):
        self.process.kill()
        self.process.wait()


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
        sys.exit(f"expected an error, got message {kind}")
    return error(data[12 : 12 + length])
