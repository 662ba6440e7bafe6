#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The laboratory itself: that machines start, run, report, suffer and end as lab.py promises.

usage: test_lab.py one|two|three|tries|shared
"""
import contextlib
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest
import uuid
from unittest import mock

import checks
import lab
import shared

VM = pathlib.Path(__file__).with_name("vm.py")
check = unittest.TestCase()
check.maxDiff = None


@contextlib.contextmanager
def phase(name):
    began = time.monotonic()
    yield
    print(f"{time.monotonic() - began:6.2f} s  {name}", flush=True)


@contextlib.contextmanager
def booted(**options):
    """A lab; afterwards nothing of it is left."""
    with contextlib.ExitStack() as stack:
        with phase(f"start of {options.get('nodes', 1)}"):
            laboratory = stack.enter_context(lab.Lab(**options))
        qemus = [node.qemu for node in laboratory.nodes]
        qemus += [laboratory.switch] if laboratory.switch else []
        yield laboratory
    check.assertFalse(any(q.is_alive() for q in qemus))
    check.assertFalse(laboratory.folder.exists())


def is_reachable(node, address, seconds=1):
    return node.run(f"busybox ping -c 1 -W {seconds} {address}", check=False).status == 0


def wait_reachable(node, address, wanted=True, seconds=10):
    end = time.monotonic() + seconds
    while is_reachable(node, address) != wanted:
        check.assertLess(time.monotonic(), end, f"{address} reachable: {not wanted}")


def bandwidth(server, client, size=65536, count=100, timeout=60):
    """Moves count writes of this size over rxe0. Return: MB/s."""
    command = f"ib_write_bw -d rxe0 -R -F -s {size} -n {count}"
    listening = server.start("stdbuf -oL " + command)
    listening.wait_output("Waiting for client")
    said = client.run(f"{command} {server.address}", timeout).output
    check.assertEqual(listening.wait(10), 0)
    row = re.search(rf"^ {size} +{count} +\S+ +(\S+)", said, re.M)
    check.assertIsNotNone(row, said)
    return float(row[1])


# One machine.

def statuses(node):
    check.assertEqual(node.run("echo out; echo err >&2"), (0, "out\nerr\n"))
    check.assertEqual(node.run("exit 3", check=False).status, 3)
    check.assertEqual(node.run("exit 137", check=False).status, 137)
    check.assertEqual(node.run("kill -9 $$", check=False).status, -9)
    check.assertEqual(node.run("sh -c 'kill -11 $$'", check=False).status, -11)
    check.assertEqual(node.run(["sh", "-c", 'echo "$1"', "-", "a 'b' $c"]).output, "a 'b' $c\n")
    check.assertEqual(node.run("printf 'a\\377b'").output, "a\ufffdb")
    check.assertEqual(node.run("no-such-command", check=False).status, 127)
    with check.assertRaisesRegex(lab.LabError, "(?s)status 127.*No such file"):
        node.run(["no-such-command"])
    with check.assertRaisesRegex(lab.LabError, "status 4.*\nwhy"):
        node.run("echo why; exit 4")


def surroundings(node):
    check.assertEqual(node.run("hostname").output, "node0\n")
    check.assertEqual(node.run("pwd").output, os.getcwd() + "\n")
    check.assertEqual(node.run("echo $A", env={"A": "1 '2'"}).output, "1 '2'\n")
    check.assertEqual(node.run("ulimit -l").output, "unlimited\n")
    check.assertEqual(node.run("cat /proc/sys/kernel/randomize_va_space").output, "2\n")
    node.run("echo x >/dev/shm/x && echo x >/tmp/x && echo x >/usr/x && echo x >$PWD/x.lab")
    check.assertFalse(os.path.exists("/usr/x") or os.path.exists("x.lab"))
    node.run(["cmp", __file__, __file__])
    check.assertAlmostEqual(float(node.run("date +%s").output), time.time(), delta=5)
    node.put_file("/new/folder/file", "text\n")
    check.assertEqual(node.run("cat /new/folder/file").output, "text\n")
    check.assertEqual(node.get_file("/new/folder/file"), "text\n")


def processes(node):
    sleepers = [node.start("echo up; sleep 100; echo not reached") for _ in range(3)]
    for sleeper in sleepers:
        sleeper.wait_output("^up$")
    for sleeper, number in zip(sleepers, (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)):
        check.assertTrue(sleeper.is_running())
        sleeper.kill(number)
        check.assertEqual(sleeper.wait(10), -number)
        check.assertEqual(sleeper.output, "up\n")


def hang(node):
    began = time.monotonic()
    with check.assertRaisesRegex(lab.LabTimeout, "(?s)still running.*sleep 1234.*console"):
        node.run("echo before; sleep 1234", timeout=1)
    check.assertLess(time.monotonic() - began, 8)


def device(node):
    for tool in ("ibv_devinfo -d rxe0", "rdma link show rxe0/1"):
        check.assertIn("ACTIVE", node.run(tool).output)
    check.assertGreater(bandwidth(node, node), 0)


def at_prompt(*args, typed=""):
    """Return: status and output of vm.py."""
    run = subprocess.run([VM, *args], input=typed, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=100)
    return run.returncode, run.stdout


def prompt():
    said = at_prompt("--", "sh", "-c", "echo said; kill -15 $$")
    check.assertEqual(said, (128 + 15, "said\n"))
    status, said = at_prompt("--shell", typed="stty -echo; expr 6 '*' 7; exit 4\n")
    check.assertEqual(status, 4, said)
    check.assertIn("42", said)
    status, said = at_prompt("--timeout", "4", "--", "echo before; sleep 1234")
    check.assertEqual(status, 124, said)
    check.assertRegex(said, "(?s)^before.*time is up.*sleep 1234")


def machines_of(mark):
    """QEMU processes whose environment carries the mark."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            comm = path.with_name("comm").read_text()
            if comm.startswith("qemu") and mark.encode() in path.read_bytes():
                found.append(path)
    return found


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        check.assertLess(time.monotonic(), end)
        time.sleep(0.05)


def ends():
    """However the starting process ends, no machine outlives it."""
    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)):
        mark = f"LAB_MARK={uuid.uuid4()}"
        name, value = mark.split("=")
        run = subprocess.Popen([VM, "--nodes", "2", "--", "true"], stdin=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=os.environ | {name: value})
        until(lambda: len(machines_of(mark)) == 3)
        run.send_signal(number)
        check.assertEqual(run.wait(20), status)
        until(lambda: not machines_of(mark))


def one():
    with booted() as machines:
        for test in (statuses, surroundings, processes, hang, device):
            with phase(test.__name__):
                test(machines[0])
    for test in (prompt, ends):
        with phase(test.__name__):
            test()


# Several.

def networks(one, two):
    for address in (two.name, two.control_address):
        check.assertTrue(is_reachable(one, address), address)
    one.run(f"busybox ping -6 -c 1 -W 1 {two.address6}")
    for node, mtu in ((one, 4200), (two, 1500)):
        check.assertIn(f"mtu {mtu}", node.run("ip link show data").output)


def verbs(one, two):
    listening = one.start(f"rping -s -C 3 -a {one.address6}")
    time.sleep(0.5)
    two.run(f"rping -c -C 3 -a {one.address6}")
    check.assertEqual(listening.wait(10), 0)
    print(f"          {bandwidth(one, two):.1f} MB/s")


def loss(one, two):
    one.lose(100)
    shout = f"for i in $(seq 300); do echo > /dev/udp/{one.address}/{lab.ROCE_PORT}; done"
    two.run(shout)
    two.run(f"busybox ping -c 1 {one.address}")  # what was sent before it has arrived
    check.assertEqual(one.lost(), 3)
    one.unblock()
    two.run(shout)
    check.assertNotIn("drop", one.run("tc filter show dev data ingress", check=False).output)


def delay(one, two):
    two.netem("delay 300ms")
    said = two.run(f"busybox ping -c 2 {one.address}").output
    check.assertGreater(float(re.search(r"min/avg/max = ([\d.]+)", said)[1]), 290)
    said = two.run(f"busybox ping -c 2 {one.control_address}").output
    check.assertLess(float(re.search(r"min/avg/max = ([\d.]+)", said)[1]), 100)
    two.netem(None)
    check.assertNotIn("netem", two.run("tc qdisc show dev data").output)


def cut(one, two):
    for carrier in (True, False):
        two.cut(carrier=carrier)
        wait_reachable(one, two.address, False)
        check.assertTrue(is_reachable(one, two.control_address))
        state = two.run("cat /sys/class/net/data/carrier").output
        check.assertEqual(state, "0\n" if carrier else "1\n")
        two.fix()
        wait_reachable(one, two.address)


def pause(one, two):
    ticker = two.start("while :; do echo tick; sleep 0.1; done")
    ticker.wait_output("tick")
    two.pause()
    time.sleep(0.3)
    before = ticker.output
    check.assertFalse(is_reachable(one, two.address))
    check.assertEqual(ticker.output, before)
    two.resume()
    wait_reachable(one, two.address)
    check.assertTrue(ticker.is_running())
    ticker.kill()


def power_off(one, two):
    running = two.start("echo up; sleep 100")
    running.wait_output("up")
    two.power_off()
    with check.assertRaisesRegex(lab.LabError, "node1 is gone"):
        running.wait(10)
    check.assertEqual(running.output, "up\n")
    check.assertFalse(is_reachable(one, two.address))
    with check.assertRaisesRegex(lab.LabError, "gone"):
        two.run("true")


def two():
    with booted(nodes=2, mtu=(4200, 1500)) as machines:
        for test in (networks, verbs, loss, delay, cut, pause, power_off):
            with phase(test.__name__):
                test(*machines.nodes)


def three():
    """The third neither hears of nor suffers from what befalls the first."""
    with booted(nodes=3) as machines:
        with phase("paths"):
            for node in machines.nodes:
                for other in machines.nodes:
                    check.assertTrue(is_reachable(node, other.name))
        with phase("one paused"):
            machines[0].pause()
            check.assertGreater(bandwidth(machines[1], machines[2]), 0)
            machines[0].resume()
            wait_reachable(machines[0], machines[2].address)
        with phase("one off"):
            machines[0].power_off()
            check.assertGreater(bandwidth(machines[1], machines[2]), 0)


# Second tries: what has one, and what has none.

class Stillborn(lab.Lab):
    """Its machine is without power before it has booted."""

    def _start_all(self, wires):
        super()._start_all(wires)
        self[0].power_off()


def stand_still(node):
    """As on a host that is busy elsewhere; unlike pause() the machine's clock goes on."""
    node.run("sleep 0.5")  # those that watch have begun
    os.kill(node.qemu.process.pid, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(node.qemu.process.pid, signal.SIGCONT)
    until(lambda: node.still_s > 1)


def excused(node):
    stand_still(node)
    raise AssertionError("not in time")


def checked(node):
    check.assertEqual(node.run("exit 3", check=False).status, 0)


def paused(node):
    node.pause()
    time.sleep(1.2)
    node.resume()
    node.run("sleep 0.5")
    raise AssertionError("not in time")


def wrong(node):
    stand_still(node)
    raise checks.Disproved("a wrong bit")


def reported(node):
    node.run("echo '==1==ERROR: AddressSanitizer: heap-buffer-overflow'")
    excused(node)


def tried(fail, kind=lab.Lab):
    """Runs a test whose first try fails so. Return: how many tries it had, and what was printed."""
    runs, printed = [], io.StringIO()

    def body():
        runs.append(fail)
        with (kind if len(runs) == 1 else lab.Lab)() as machines:
            if len(runs) == 1:
                fail(machines[0])

    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()), \
            contextlib.suppress(AssertionError, checks.Failed):
        lab.main(body)
    lab.Lab.latest.clear()
    return len(runs), printed.getvalue()


def tries():
    for fail in (checked, paused, wrong, reported):
        with phase(f"{fail.__name__}: no second try"):
            check.assertEqual(tried(fail), (1, ""))
    with phase("stood still: a second try"):
        runs, printed = tried(excused)
        check.assertEqual(runs, 2)
        check.assertRegex(printed, r"^lab: second try.*node0 stood still for [12]\.\d s\n$")
    with phase("not booted: a second try"):
        check.assertEqual(tried(checked, Stillborn),
                          (2, "lab: second try, in new machines: a machine did not boot\n"))
    with phase("a command that fails: no second try"):
        status, said = at_prompt("--second-try", "--", "exit 3")
        check.assertEqual((status, "second try" in said), (3, False))


# Machines that one case after the other has.

def leave_rxe1(node):
    node.run("ip link add second type dummy; ip addr add 10.79.0.1/24 dev second; "
             "ip link set second up; rdma link add rxe1 type rxe netdev second")


def leave_stray(node):
    """It is in a session of its own, so no signal of lab.py comes to it."""
    node.run("setsid sleep 1000 >/dev/null 2>&1 & sleep 0.2")


def leave_stopped(node):
    node.start("echo up; sleep 1000").wait_output("up")
    node.start("echo up; kill -STOP $$").wait_output("up")


LEFT = {
    "delay": lambda node: node.netem("delay 300ms loss 10%"),
    "delay of control": lambda node: node.netem("delay 300ms", "control"),
    "lost frames": lambda node: (node.lose(3), node.block(node.lab[0])),
    "a filter of another kind": lambda node: node.run("tc qdisc add dev data ingress"),
    "a cut wire": lambda node: node.cut(),
    "a cut in the switch": lambda node: node.cut("control", carrier=False),
    "a machine that is paused": lambda node: node.pause(),
    "a second device": leave_rxe1,
    "no device": lambda node: node.run("rdma link del rxe0"),
    "an MTU": lambda node: node.run("ip link set data mtu 1500"),
    "a neighbour": lambda node: node.run(
        "ip neigh replace 10.77.0.1 lladdr 52:54:00:00:00:00 dev data nud permanent"),
    "a process": leave_stray,
    "processes that run and stand": leave_stopped,
    "files": lambda node: node.run("mkdir /tmp/a /lab/a; echo x >/tmp/a/b; echo x >/lab/a/b; "
                                   "echo x >/dev/shm/x"),
}
SPOILT = {
    "an address": (lambda node: node.run("ip addr add 10.99.0.1/24 dev data"), r"10\.99\.0\.1"),
    "a mount": (lambda node: node.run("mount -t tmpfs none /mnt"), "/mnt tmpfs"),
    "no power": (lambda node: node.power_off(), "node1 is off"),
    "a processor that stood still": (lambda node: stand_still(node), "node1 stood still"),
}


def after(fault):
    """Return: whether a lab is lent again after such a case, and what was said."""
    said = io.StringIO()
    with shared.lab(nodes=2) as machines:
        fault(machines[1])
    with contextlib.redirect_stdout(said), shared.lab(nodes=2) as again:
        check.assertIn("ACTIVE", again[1].run(["rdma", "link"]).output)
        check.assertFalse(list(again[1].share.glob("a")))
    return again is machines, said.getvalue()


def sharing():
    for name, fault in LEFT.items():
        with phase(f"{name}: undone"):
            check.assertEqual(after(fault), (True, ""))
    # The check itself: nothing is undone, and it is seen.
    with mock.patch.object(shared, "GONE_S", 1), \
            mock.patch.object(shared.Whole, "_undo", lambda self: None):
        for name, sign in (("delay", "netem"), ("lost frames", "clsact"), ("files", "/tmp/a"),
                           ("a second device", "rxe1"), ("a process", "sleep 1000"),
                           ("an MTU", "mtu 1500"), ("a neighbour", "PERMANENT")):
            with phase(f"{name}: seen"):
                again, said = after(LEFT[name])
                check.assertFalse(again)
                check.assertRegex(said, f"lab: new machines, since node1 .*{sign}")
    with mock.patch.object(shared, "GONE_S", 5):
        for name, (fault, sign) in SPOILT.items():
            with phase(f"{name}: new machines"):
                again, said = after(fault)
                check.assertFalse(again)
                check.assertRegex(said, f"lab: new machines, since .*{sign}")
    with phase("a case that fails: new machines"):
        with contextlib.suppress(checks.Failed), shared.lab(nodes=2) as machines:
            raise checks.Failed("NOT SO")
        with shared.lab(nodes=2) as again:
            check.assertIsNot(again, machines)


def shares():
    try:
        sharing()
    finally:
        shared.close()


if __name__ == "__main__":
    lab.main({"one": one, "two": two, "three": three, "tries": tries,
              "shared": shares}[sys.argv[1]])
