#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a person is told who tries a job between two hosts, and has left something out.

usage: first_try.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER
       first_try.py --list
"""
import contextlib
import os
import tempfile

import base
from base import HANG_S, cases, check, main, must, until
from hosts import Network


class Place:
    """One host of a network, with a folder, and what runs there."""

    def __init__(self, hosts, ends):
        self.host, self.ends = hosts[0], ends
        self.folder = ends.enter_context(tempfile.TemporaryDirectory())

    def starts(self, *command, **env):
        child = base.Child(list(command), preexec_fn=self.host.enter, **env)
        self.ends.callback(child.kill)
        return child

    def starts_worker(self, a, server):
        return self.starts(a.worker, os.path.join(self.folder, "log"), "100", "rounds=3",
                           **base.worker_environment(server, 0))

    def has(self, file, text):
        """This host alone reads that in place of the file."""
        path = os.path.join(self.folder, os.path.basename(file))
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        self.host.run(["mount", "--bind", path, file])


@contextlib.contextmanager
def one_host():
    with contextlib.ExitStack() as ends, Network(1) as hosts:
        yield Place(hosts, ends)


def told(child, *words):
    """It says so, soon or late."""
    must(until(lambda: all(word in child.said() for word in words), HANG_S), child.said())
    line = next(line for line in child.said().splitlines() if words[0] in line)
    print(f"it is told: {line}")
    return line


def name_of_this_host_is_at_loopback(a):
    """As in Debian's /etc/hosts: musterd and muster run warn, and say what to give instead."""
    with one_host() as place:
        place.has("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 node1\n")
        server = place.starts(a.musterd, "-n", "1", "--listen", "node1:0")
        line = told(server, "only this host can join", "--listen node1:0 is 127.0.1.1:")
        port = line.split(" is 127.0.1.1:")[1].split()[0]
        check("it says what to give", f"--listen 0.0.0.0:{port}" in line)
        run = place.starts(a.muster, "run", "-n", "1", "--listen", "node1:0", "true")
        told(run, "--listen node1:0 is 127.0.1.1:", "only this host can join")
        server = place.starts(a.musterd, "-n", "1", "--listen", "localhost:0")
        line = told(server, "listening on ", "(only this host can join there")
        check("who asks for it is not warned", " warn " not in server.said())
        server = place.starts(a.musterd, "-n", "1", "--insecure", "--listen",
                              f"{place.host.address}:0")
        check("nor who is to be reached", "only this host" not in told(server, "listening on "))


def nobody_listens_at_an_address(a):
    """A worker that calls another host is told that a server without --listen is not there; one
    that calls its own host is not."""
    with one_host() as place:
        far = f"{place.host.address}:1"
        workers = [place.starts_worker(a, server) for server in (far, "127.0.0.1:1")]
        line = told(workers[0], "no server answers", "(Connection refused)")
        check("it says what to give", f"musterd --listen {far}" in line
              and "without --listen" in line)
        check("its own host needs none", "--listen" not in told(workers[1], "no server answers"))
        worker = place.starts_worker(a, "fd00::1:7777")
        told(worker, "without brackets", "[fd00::1]:7777", "MUSTER_SERVER")


def name_that_nobody_knows(a):
    """Where names cannot be looked up, nothing is said of firewalls."""
    with one_host() as place:
        place.has("/etc/resolv.conf", "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n")
        place.has("/etc/nsswitch.conf", "hosts: files dns\n")
        line = told(place.starts_worker(a, "node7.example:1"), "no server answers", "node7")
        check("it is about the name", "could not be looked up" in line and "firewall" not in line)


def follower_says_for_whom_it_waits(a):
    """For a leader that is not there, and then for the first worker."""
    with one_host() as place:
        leader = f"{place.host.address}:17077"
        follower = place.starts(a.musterd, "--insecure", "--join", place.host.address)
        told(follower, f"no leader answers at {leader}", "Connection refused",
             f"musterd --listen {leader}")
        place.starts(a.musterd, "-n", "1", "--servers", "2", "--insecure", "--listen", leader)
        told(follower, f"the leader at {leader} has taken this server", "first worker")
        check("each is said once", follower.said().count("no leader answers") == 1)


if __name__ == "__main__":
    main(cases(name_of_this_host_is_at_loopback, nobody_listens_at_an_address,
               name_that_nobody_knows, follower_says_for_whom_it_waits),
         "musterd", "worker", "muster")
