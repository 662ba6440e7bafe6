# SPDX-License-Identifier: MIT
"""Jobs over TCP between machines whose networks lose, delay and hold back, as kernels of network
namespaces may not be able to (tests/system/network.py has the rest)."""
import re

import shared
from checks import check
from job import Job

SGD = ["--optimizer", "sgd:0.1,0.9"]
# Half of 20 ms is more than a frame takes here: a quarter of all frames overtake those before them.
BAD = "delay 20ms reorder 25% 50% loss 0.5%"
NARROW = "tbf rate 100mbit burst 64k latency 500ms"


class TcpJob(Job):
    """Its lease and its timers are those that a job has by default."""

    transport, lease = "tcp", []

    def __init__(self, tools, machines, *options):
        super().__init__(tools, machines, *options, "--data-address", machines[0].address)

    def play(self, nodes, words, *proof, elems):
        """Rank i is in nodes[i]. To the end, and nobody is lost."""
        for rank, node in enumerate(nodes):
            self.start_worker(rank, node, *words, elems=elems,
                              MUSTER_DATA_ADDRESS=self.lab[node].address)
        self.end(dict.fromkeys(self.workers, 0), seconds=240)
        lost = re.findall(r".*(?:is gone|was silent|is lost).*", self.said())
        check(f"nobody is lost: {lost}", not lost, self.said())
        self.check_history(*proof)


def dropped(node, net="data"):
    """Frames that the card's queue has dropped."""
    said = node.run(f"tc -s qdisc show dev {net}").output
    return sum(map(int, re.findall(r"dropped (\d+)", said)))


def netem(tools):
    """Frames are lost, late and overtaken, both ways and on both networks: every version is exact,
    and nobody is evicted by the timers that are set by default."""
    with shared.lab(nodes=2) as machines:
        for node in machines.nodes:
            node.netem(BAD)
            node.netem(BAD, "control")
        TcpJob(tools, machines, "-n", "5", "--policy", "backup:4", "--commits", "60").play(
            (0, 1, 1, 1, 1), ["ranges=3"], *SGD, elems=5003)
        TcpJob(tools, machines, "-n", "3", "--policy", "bsp", "--commits", "12").play(
            (1, 1, 0), ["registered=1", "into=1"], *SGD, elems=200001)
        drops = [dropped(node) for node in machines.nodes]
        check(f"frames were lost: {drops}", all(drops))


def narrow(tools):
    """Between hosts with 100 Mb/s."""
    with shared.lab(nodes=2) as machines:
        for node in machines.nodes:
            node.run(f"tc qdisc add dev data root {NARROW}")
        TcpJob(tools, machines, "-n", "4", "--policy", "backup:3", "--commits", "12").play(
            (1, 1, 1, 0), ["ranges=3"], *SGD, elems=500001)
