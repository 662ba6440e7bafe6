# SPDX-License-Identifier: MIT
"""muster doctor: alone, for deploy/soft-roce.sh, and with --listen and --peer between two machines,
with what may be wrong there."""
import json
import re
import signal

import shared
from checks import check, says, until
from lab import CHECKOUT, ORDINARY
from transports import in_machine

SCRIPT = CHECKOUT / "deploy" / "soft-roce.sh"
RIGHT = r"^ok +write +rxe0/1: wrote 1\.00 MiB: every byte right"


def here(tools):
    """The facts of the machine that it runs in."""
    in_machine(tools.muster, "doctor")


def soft_roce(tools):
    """With a real muster doctor, deploy/soft-roce.sh writes through the device that it made, for an
    ordinary user. All else of the script is in test_soft_roce.py."""
    with shared.lab() as machines:
        node = machines[0]
        says(node, f"{SCRIPT} down", 0, "rxe0 is gone")
        says(node, f"{SCRIPT} up data", 0, "made rxe0 over data", env={"MUSTER": "true"})
        says(node, f"{ORDINARY}{SCRIPT} check", 0, "rxe0 is active", RIGHT, "0 failures",
             env={"MUSTER": tools.muster})


def listen(tools, node):
    """Return: one that listens, and the command that tries it."""
    listening = node.start([tools.muster, "doctor", "--listen", "--transport", "verbs", "--for",
                            "600s"])
    peer = listening.wait_output(r"muster doctor --peer (\S+)")[1]
    return listening, f"{tools.muster} doctor --peer {peer}"


def reach(tools, one, two):
    listening, command = listen(tools, one)
    says(two, command, 0,
         r"^ok +peer +verbs:10\.77\.0\.1:\d+: wrote 1\.00 MiB to node0 rxe0/1: every byte right")
    check(listening.output.splitlines()[-1],
          "node1 rxe0/1 wrote 1.00 MiB: every byte right" in listening.output, listening.output)
    report = json.loads(two.run(f"{command} --json -").output)
    write = next(w for w in report["writes"] if w["check"] == "peer")
    check(f"as JSON: {write}", (write["ok"], write["wrong"], write["peer_host"],
                                write["peer_mtu"]) == (True, 0, "node0", 4096))
    listening.kill(signal.SIGINT)
    check("an interrupt is its normal end", listening.wait() == 0, listening.output)
    says(two, command, 1, "^FAIL +peer", "because +nobody listens there any more",
         "fix +is muster doctor --listen still there")


def packets(node):
    """That came."""
    return int(node.run("cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts").output)


def gone(tools, one, two):
    """The way is cut, or the other end killed: before, and in the midst of a write."""
    listening, command = listen(tools, one)
    two.cut(carrier=False)
    said = says(two, command, 1, "^FAIL +peer", r"because +10\.77\.0\.1.*", "fix +.*4791")
    check("a cut way is named", re.search("does not answer|not resolved|No route|no link", said),
          said)
    two.fix()
    two.netem("delay 60ms rate 20mbit")  # so that all of it takes seconds
    for name, fault, sentence in (
            ("cut", lambda: two.cut(carrier=False), "no acknowledgement from 10.77.0.1 over rxe0"),
            # Its memory goes before its word does: what comes first is the machines' affair.
            ("killed", lambda: listening.kill(signal.SIGKILL),
             "its process is over|it is ending"),
    ):
        began = packets(one)
        trying = two.start(f"{command} --timeout 20s")
        until(lambda began=began: packets(one) > began + 40, 60, "it writes")
        fault()
        status = trying.wait()
        two.fix()
        said = re.search("because +(.*)", trying.output)
        check(f"{name}: {said and said[1]}", status == 1 and said and re.search(sentence, said[1]),
              trying.output)


def peer(tools):
    """It writes to another machine, and names what is in the way."""
    with shared.lab(nodes=2) as machines:
        reach(tools, *machines.nodes)
        gone(tools, *machines.nodes)


def mtu(tools):
    """A smaller one at one end is told; a way that drops what is large, too."""
    with shared.lab(nodes=2) as machines:
        one, two = machines.nodes
        two.run("ip link set data mtu 1500")
        listening, command = listen(tools, one)
        says(two, command, 0, r"^ok +peer", r"^warning +peer mtu .*1024 bytes at rxe0/1 here, "
             "4096 at rxe0/1 of node0", "because +.*different MTUs",
             "fix +the same on both hosts: ip link set IFACE mtu 4200")
        two.run("ip link set data mtu 4200")
        said = says(two, command, 0, "^ok +peer")
        check("the same at both: no word of it", "peer mtu" not in said, said)
        one.run("tc qdisc add dev data ingress && tc filter add dev data parent ffff: matchall "
                "action police rate 10gbit burst 10m mtu 2000 conform-exceed drop")
        check("small packets come through",
              two.run(f"busybox ping -c 1 -W 2 -s 1000 {one.address}").status == 0)
        says(two, command, 1, "^FAIL +peer",
             "because +.*no acknowledgement from 10.77.0.1.*the MTU on both ends")
        check("the other end lives on", listening.is_running(), listening.output)
