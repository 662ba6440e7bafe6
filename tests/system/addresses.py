#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Jobs over TCP whose ends have several addresses: from which a worker dials, which of a server it
dials, and from where its token is good.

usage: addresses.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER
       addresses.py --list
"""
import os
import re
import socket
import struct
import tempfile

import base
from base import CALM, HANG_S, cases, check, main, must

TCP = ("--workers", "2", "--transport", "tcp", *CALM)
# Of this process alone: no other test listens there.
OWN = f"127.{1 + os.getpid() // 65536 % 200}.{os.getpid() // 256 % 256}.{os.getpid() % 256}"
PORT = 20000 + os.getpid() % 10000  # below those that the kernel gives away


def connections(far, port):
    """The sources of all connections to that address, as the kernel lists them."""
    wanted = f"{struct.unpack('=I', socket.inet_aton(far))[0]:08X}:{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f][1:]
    return {socket.inet_ntoa(struct.pack("=I", int(row[1].split(":")[0], 16)))
            for row in rows if row[2] == wanted}


def finishes(job):
    job.end_job()
    must(job.codes(HANG_S) == [0] * len(job.worker), job.server.said())
    status, said = job.server.end(HANG_S)
    must(status == 0, said)
    job.proven()
    print(f"the job is finished and exact: {said.splitlines()[-1]}")


def goes_on(job, *environments):
    """Starts a worker in each of these, and waits until they work; end_job() ends the job."""
    for rank, env in enumerate(environments):
        job.work(rank, "sleep_us=1000", *job.ended_by(0), **env)
    job.begin()


def source_and_port_are_as_told(a):
    """--data-port says at which port, --data-address where, MUSTER_DATA_ADDRESS from where."""
    with base.Job(a, *TCP, "--data-address", OWN, "--data-port", str(PORT)) as job:
        goes_on(job, {"MUSTER_DATA_ADDRESS": "127.0.0.41,fd00::41"},
                {"MUSTER_DATA_ADDRESS": "127.0.0.42"})
        check(f"links come from {connections(OWN, PORT)}",
              connections(OWN, PORT) == {"127.0.0.41", "127.0.0.42"})
        finishes(job)


def token_is_good_where_the_worker_is_connected(a):
    """The data of a worker come from an address that is in no list of its own, as loopback is and
    what a NAT makes of it: its control connection comes from there, too."""
    with base.Job(a, *TCP, "--data-address", "127.0.0.1") as job:
        goes_on(job, {}, {})
        finishes(job)


def server_is_where_it_was_called(a):
    """A server that names no address is tried where the worker has called it."""
    with base.Job(a, *TCP, "--data-port", str(PORT)) as job:
        goes_on(job, {}, {})
        check(f"data go to 127.0.0.1 from {connections('127.0.0.1', PORT)}",
              connections("127.0.0.1", PORT) == {"127.0.0.1"})
        finishes(job)


def name_is_no_address(a):
    """What is no address of this host is refused by the worker, in words with what to do."""
    for value, *words in (("node1", '"node1" is not an IP address', "ip address"),
                          ("lo", '"lo" is an interface', "ip address show dev lo"),
                          ("192.0.2.1", "no address 192.0.2.1", "ip address")):
        with base.Job(a, *TCP) as job:
            worker = job.work(0, MUSTER_DATA_ADDRESS=value)
            status, said = worker.end(HANG_S)
            missing = [word for word in words if word not in said]
            check(f"{value} is refused: {said.strip()}", status not in (0, None) and not missing)


def port_is_held_from_the_start(a):
    """A server that waits for its workers has its --data-port already: another one on this host, of
    whatever networks, and a follower are refused when they start."""
    port, insecure = str(PORT), ("--insecure", "--listen", "0.0.0.0:0")
    with base.Job(a, *TCP, "--data-port", port) as job:
        for options in ((*TCP, "--listen", "127.0.0.1:0"), ("--workers", "2", *insecure),
                        ("--join", job.address, "--transport", "tcp")):
            status, said = base.Child([a.musterd, *options, "--data-port", port]).end(HANG_S)
            check(f"{' '.join(options)}: {said.strip().splitlines()[-1]}", status == 1 and
                  re.search(rf"port {port} is taken at \S+:{port}, .* with --data-port", said))
        goes_on(job, {}, {})
        finishes(job)
    status, said = base.Child([a.musterd, *TCP, "--listen", f"127.0.0.1:{port}", "--data-port",
                               port]).end(HANG_S)
    check(f"that of --listen: {said.strip().splitlines()[-1]}",
          status == 1 and "this server's --listen" in said)


def muster_run_gives_the_port_to_its_leader(a):
    """Two servers of a host cannot both have it."""
    with tempfile.TemporaryDirectory() as folder:
        status, said = base.Child([
            a.muster, "run", "-n", "2", "--servers", "2", "--listen", "127.0.0.1:0", "--transport",
            "tcp", "--data-port", str(PORT), "--commits", "20", *CALM, "--", a.worker,
            os.path.join(folder, "log"), "20000"]).end(HANG_S)
        check(f"the run has ended well: {said}", status == 0)


if __name__ == "__main__":
    main(cases(source_and_port_are_as_told, token_is_good_where_the_worker_is_connected,
               server_is_where_it_was_called, name_is_no_address,
               port_is_held_from_the_start,
               muster_run_gives_the_port_to_its_leader), "musterd", "worker", "muster")
