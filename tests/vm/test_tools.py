#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a host is prepared and examined with: deploy/soft-roce.sh in a machine, and muster doctor
--listen and --peer between two, with what may be wrong there.

usage: test_tools.py CASE --muster MUSTER
       test_tools.py --list
Exits 77 where no machine can be had.
"""
import argparse
import json
import re
import signal
import sys

import lab
from job import Failed, check, until

SCRIPT = lab.CHECKOUT / "deploy" / "soft-roce.sh"
ORDINARY = "setpriv --reuid 65534 --regid 65534 --clear-groups "


def says(node, command, status, *sentences, env=None):
    """The command ends so, and says each of the sentences, regular expressions."""
    got = node.run(command, 120, False, env)
    for sentence in sentences:
        found = re.search(sentence, got.output, re.M)
        check(found and found[0].strip(), found, f"{command}\nsays no {sentence!r}:\n{got.output}")
    check(f"  ends with {status}", got.status == status, f"{command}: {got}")
    return got.output


# deploy/soft-roce.sh

def script(node, words, status, *sentences, muster="true", before=""):
    """What the script itself finds; with a muster what a write through the device comes to, too."""
    return says(node, f"{before}{SCRIPT} {words}", status, *sentences, env={"MUSTER": muster})


def wrong_wishes(node):
    for words in ("up", "check a b"):
        script(node, words, 2, r"^usage: soft-roce\.sh up IFACE")
    script(node, "--help", 0, r"^usage: soft-roce\.sh up IFACE")
    for words in ("up data", "down"):
        script(node, words, 1, f"only root may do this: sudo .* {words}$", before=ORDINARY)
    script(node, "up eth7", 1, "there is no network interface eth7; there are: .*data")
    script(node, "up lo", 1, "over lo no connection is made",
           "ip link add roce type dummy")
    node.run("ip link add link data name data.5 type vlan id 5")
    script(node, "up data.5", 1, "data.5 is a VLAN.*name the interface below it")
    script(node, "check mlx5_7", 1, r"there is no RDMA device mlx5_7: .* up IFACE mlx5_7")
    script(node, "down mlx5_7", 1, "there is no RDMA device mlx5_7")


def taken(node):
    """Where there is a device already. One more is of use to nobody."""
    node.run("ip link add other type dummy && ip link set other up")
    script(node, "up data", 0, "rxe0 is there already, over data", "rxe0 is active")
    script(node, "up data rxe9", 1, r"data has a soft-RoCE device already, rxe0: .* check")
    script(node, "up other", 1, "there is a device rxe0 already, over data",
           "another name: .* up other NAME")


def life(node, muster):
    """It goes, comes, moves bytes, and goes."""
    script(node, "down", 0, "rxe0 is gone")
    check("no device is left", "rxe0" not in node.run("rdma link").output)
    script(node, "check", 1, r"there is no RDMA device rxe0: .* up IFACE rxe0")
    script(node, "up data", 0, "made rxe0 over data", "rxe0 is active, over data",
           r"^ok +write +rxe0/1: wrote 1\.00 MiB: every byte right", "0 failures", muster=muster)
    script(node, "check", 0, "rxe0 is active", "every byte right", muster=muster, before=ORDINARY)
    listening = node.start(f"rping -s -C 3 -a {node.address}")
    says(node, f"for i in 1 2 3 4; do sleep 0.5; rping -c -C 3 -a {node.address} && exit; done; "
         "exit 1", 0)
    check("rping comes through", listening.wait() == 0, listening.output)
    script(node, "down", 0, "rxe0 is gone")
    script(node, "down", 1, "there is no RDMA device rxe0")


def poor_interfaces(node):
    script(node, "up other soft1", 0, "made soft1 over other",
           "warning: other has MTU 1500, so packets are small.*ip link set other mtu 4200",
           "warning: other has no address to connect to: ip addr add ADDRESS/24 dev other")
    node.run("ip addr add 10.80.0.1/24 dev other && ip link set other mtu 4200")
    script(node, "check soft1", 0, "soft1 is active, over other")
    node.run("ip link set other down")
    script(node, "check soft1", 1, "soft1 is DOWN: ip link set other up")
    node.run("ip link set other up")
    node.put_file("/tmp/bin/no", "#!/bin/sh\necho $3 said no; exit 1\n")
    node.run("chmod 755 /tmp/bin/no")
    script(node, "check soft1", 1, "soft1 is active", "soft1 said no", muster="/tmp/bin/no")
    script(node, "down soft1", 0, "soft1 is gone")


def modules(node):
    """The folder of the modules is not here, as in a container; then holds none of ours."""
    node.run("mkdir /tmp/empty && mount --bind /tmp/empty /lib/modules")
    script(node, "up data", 0, "made rxe0 over data", "rxe0 is active")
    script(node, "down", 0)
    node.run("rmmod rdma_rxe")
    script(node, "up data", 1, r"cannot load rdma_rxe: /lib/modules/\S+ is not here",
           "in a container: run this on the host", "after an upgrade of the kernel: reboot")
    node.run("mkdir /lib/modules/$(uname -r) && depmod")
    script(node, "up data", 1, r"kernel \S+ has no rdma_rxe",
           "apt-get install linux-image-amd64")
    node.put_file("/tmp/bin/uname", "#!/bin/sh\necho 6.1.0-1-cloud-amd64\n")
    node.run("chmod 755 /tmp/bin/uname; mkdir /lib/modules/6.1.0-1-cloud-amd64")
    script(node, "up data", 1, "Debian's kernels for clouds leave it out",
           before="PATH=/tmp/bin:$PATH ")
    node.run("umount /lib/modules")
    script(node, "up data", 0, "made rxe0 over data", "rxe0 is active")


def soft_roce(tools):
    with lab.Lab() as machines:
        node = machines[0]
        wrong_wishes(node)
        taken(node)
        life(node, tools.muster)
        poor_interfaces(node)
        modules(node)


# muster doctor

def listen(tools, node):
    """Return: one that listens, and the command that tries it."""
    listening = node.start([tools.muster, "doctor", "--listen", "--for", "600s"])
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
         "mend +is muster doctor --listen still there")


def packets(node):
    """That came."""
    return int(node.run("cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts").output)


def gone(tools, one, two):
    """The way is cut, or the other end killed: before, and in the midst of a write."""
    listening, command = listen(tools, one)
    two.cut(carrier=False)
    said = says(two, command, 1, "^FAIL +peer", r"because +10\.77\.0\.1.*", "mend +.*4791")
    check("a cut way is named", re.search("does not answer|not resolved|No route|no link", said),
          said)
    two.mend()
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
        two.mend()
        said = re.search("because +(.*)", trying.output)
        check(f"{name}: {said and said[1]}", status == 1 and said and re.search(sentence, said[1]),
              trying.output)


def doctor_peer(tools):
    with lab.Lab(nodes=2) as machines:
        reach(tools, *machines.nodes)
        gone(tools, *machines.nodes)


def doctor_mtu(tools):
    """A smaller one at one end is told; a way that drops what is large, too."""
    with lab.Lab(nodes=2, mtu=(4200, 1500)) as machines:
        one, two = machines.nodes
        listening, command = listen(tools, one)
        says(two, command, 0, r"^ok +peer", r"^warning +peer mtu .*1024 bytes at rxe0/1 here, "
             "4096 at rxe0/1 of node0", "because +.*different MTUs",
             "mend +the same on both hosts: ip link set IFACE mtu 4200")
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


CASES = {f.__name__: f for f in (soft_roce, doctor_peer, doctor_mtu)}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("case", nargs="?")
    p.add_argument("--list", action="store_true")
    p.add_argument("--muster")
    a = p.parse_args()
    if a.list:
        print("\n".join(CASES))
        return
    try:
        lab.main(lambda: CASES[a.case](a))
    except Failed as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main()
