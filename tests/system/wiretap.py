#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What somebody on the wire between two hosts can read of a job over TCP: its gradients and
results, unless there are certificates.

usage: wiretap.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER
       wiretap.py --list
"""
import contextlib
import os
import socket
import tempfile

from base import cases, check, main
from hosts import SPACES, Job, Network, call
from tls import environment, make_keys, options
from vectors import values

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
ROOM = 64 << 20  # for the packets of a job, which are looked at once it is over
ETHERNET, TCP = 14, 6
PORT = 17078  # for data
ROUNDS = 10
MARKER = 32  # bytes


@contextlib.contextmanager
def inside(host):
    """This thread is in the host's network meanwhile."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    call("setns", host.spaces[SPACES.index("net")], 0)
    try:
        yield
    finally:
        call("setns", own, 0)
        os.close(own)


class Tap:
    """All that passes the card of a host."""

    def __init__(self, host):
        with inside(host):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                        socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        self.socket.bind(("eth0", ETH_P_ALL))
        self.socket.setblocking(False)

    def heard(self, port):
        """What the connections with that port of the host carried: to it, and from it."""
        way = [b"", b""]
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = self.socket.recv(1 << 17)[ETHERNET:]
                if packet[0] >> 4 != 4 or packet[9] != TCP:
                    continue
                segment = packet[(packet[0] & 15) * 4:int.from_bytes(packet[2:4], "big")]
                payload = segment[segment[12] >> 4 << 2:]
                if int.from_bytes(segment[2:4], "big") == port:
                    way[0] += payload
                elif int.from_bytes(segment[:2], "big") == port:
                    way[1] += payload
        return way

    def close(self):
        self.socket.close()


def overhear(a, hosts, secure, **env):
    """One worker's job, whose results are its gradients. Return: what passed to the server's data
    port and from there, and how many of the gradients could be read in either."""
    tap = Tap(hosts[0])
    try:
        with Job(a, hosts, "-n", "1", "--owner", "workers", "--commits", str(ROUNDS),
                 "--data-port", str(PORT), secure=secure) as job:
            job.work(0, "owner=workers", "start=0", **env)
            job.settle()
            job.proven(rules="none")
            way = tap.heard(PORT)
            vectors = [values(job.elems, 0, 1, 1 + i).tobytes() for i in range(ROUNDS)]
            return way, [sum(v[at:at + MARKER] in heard for v in vectors
                             for at in (0, len(v) // 2)) for heard in way]
    finally:
        tap.close()


def gradients(a):
    """In the clear every gradient and result can be read; with certificates none."""
    with Network(2) as hosts, tempfile.TemporaryDirectory() as folder:
        keys = make_keys(a, os.path.join(folder, "keys"))
        plain, read = overhear(a, hosts, ["--insecure"])
        check(f"in the clear {read} of {2 * ROUNDS} places are read", min(read) >= ROUNDS)
        sealed, read = overhear(a, hosts, options(keys, "server"), **environment(keys, "worker"))
        check(f"with certificates {[len(s) for s in sealed]} bytes pass instead of "
              f"{[len(p) for p in plain]}",
              all(len(s) > len(p) / 2 for s, p in zip(sealed, plain)))
        check(f"and {read} places are read", not any(read))


CASES = cases(gradients)
if __name__ == "__main__":
    main(CASES, "musterd", "worker", "muster")
