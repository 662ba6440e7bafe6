#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""deploy/soft-roce.sh in a machine: what it makes there, and what it says of every mistake.

usage: test_soft_roce.py
Exits 77 where no machine can be had.

It runs only if one of the files that decide it has changed (tests/digest.py), so it runs no program
of muster: doctor.py has the script together with muster doctor.
"""
import sys

import lab
from checks import Failed, check, says

SCRIPT = lab.CHECKOUT / "deploy" / "soft-roce.sh"


def script(node, words, status, *sentences, muster="true", before=""):
    """What the script itself finds; the stand-in for muster decides what a write comes to."""
    return says(node, f"{before}{SCRIPT} {words}", status, *sentences, env={"MUSTER": muster})


def wrong_wishes(node):
    for words in ("up", "check a b"):
        script(node, words, 2, r"^usage: soft-roce\.sh up IFACE")
    script(node, "--help", 0, r"^usage: soft-roce\.sh up IFACE")
    for words in ("up data", "down"):
        script(node, words, 1, f"only root may do this: sudo .* {words}$", before=lab.ORDINARY)
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


def life(node):
    """It goes, comes, moves bytes, and goes."""
    script(node, "down", 0, "rxe0 is gone")
    check("no device is left", "rxe0" not in node.run("rdma link").output)
    script(node, "check", 1, r"there is no RDMA device rxe0: .* up IFACE rxe0")
    script(node, "up data", 0, "made rxe0 over data", "rxe0 is active, over data")
    script(node, "check", 0, "rxe0 is active", before=lab.ORDINARY)
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


def soft_roce():
    with lab.Lab() as machines:
        node = machines[0]
        wrong_wishes(node)
        taken(node)
        life(node)
        poor_interfaces(node)
        modules(node)


if __name__ == "__main__":
    try:
        lab.main(soft_roce)
    except Failed as e:
        sys.exit(str(e))
