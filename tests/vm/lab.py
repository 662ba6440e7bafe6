# SPDX-License-Identifier: MIT
"""A laboratory of one to three virtual machines with soft-RoCE, and faults to put them through.

    with Lab(nodes=2) as lab:
        server = lab[0].start("musterd --listen 10.77.0.1:7777")
        lab[1].netem("delay 2ms loss 0.5%")
        print(lab[1].run("ib_write_bw -d rxe0 10.77.0.1", timeout=60).output)
        server.kill()

Node i sees the host's files at the host's paths (what it writes there is lost with it) and has
the addresses 10.77.0.(i+1) and fd77::(i+1) on the card "data", which carries rxe0, and among
several nodes 10.78.0.(i+1) on the card "control". README.md tells the rest.
"""
import collections
import contextlib
import fcntl
import itertools
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import qemu
from qemu import LabError

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
NODES_MAX = 3
NETS = {"data": 0x77, "control": 0x78}
ROCE_PORT = 4791  # of UDP, in RoCE v2
FOLDER = "muster-vm-"
ORDINARY = "setpriv --reuid 65534 --regid 65534 --clear-groups "  # before a command in a node
TAIL = 4000  # characters of output that a complaint shows
TRIES = 2
# What a program says of a mistake that it would make in any time.
BROKE = re.compile(r"Sanitizer|runtime error:|assertion failed|a wrong sum")

Result = collections.namedtuple("Result", "status output")


class LabTimeout(LabError):
    """Something took longer than it was given."""


class LabNotBooted(LabError):
    """A machine was not ready in time, or ended before it was."""


class LabWrong(Exception):
    """What no machine that stood still excuses: a wrong bit."""


class LabSkip(Exception):
    """No machine can be had here; says why."""


def tail(text):
    return text[-TAIL:].strip() or "(nothing)"


def write_strings(path, strings):
    """For the agent, who reads nothing else."""
    path.write_bytes(b"".join(os.fsencode(string) + b"\0" for string in strings))


def read_text(path):
    try:
        return pathlib.Path(path).read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return ""


class Process:
    """A command in a node, from Node.start()."""

    def __init__(self, node, number, command):
        self.node, self.number, self.command = node, number, command
        self.status = None  # once ended: the exit status, or -n after signal n
        self.ended = threading.Event()

    @property
    def output(self):
        """What it wrote so far, to stdout and stderr alike; readable even when its node is off."""
        return read_text(self.output_path)

    @property
    def output_path(self):
        return self.node.share / f"{self.number}.out"

    def is_running(self):
        return not self.ended.is_set()

    def kill(self, number=signal.SIGTERM):
        """Sends a signal to the command and its children; does not wait."""
        self.node.tell(f"kill {self.number} {int(number)}")

    def wait(self, timeout=120):
        """Return: its status. LabTimeout if it runs on, LabError if its node is gone."""
        if not self.ended.wait(timeout):
            raise LabTimeout(f"{self.node.name}: still running after {timeout} s: {self.command}\n"
                             f"{self.node.describe()}")
        if self.status is None:
            raise LabError(f"{self.node.name} is gone, and with it: {self.command}\n"
                           f"--- its output\n{tail(self.output)}\n{self.node.describe_console()}")
        return self.status

    def wait_output(self, pattern, timeout=90):
        """Waits until its output matches a regular expression. Return: the match."""
        end = time.monotonic() + timeout
        while True:
            over = not self.is_running() or time.monotonic() > end
            found = re.search(pattern, self.output, re.M)
            if found:
                return found
            if over:
                raise LabTimeout(f"{self.node.name}: no {pattern!r} within {timeout} s from: "
                                 f"{self.command}\n{self.node.describe()}\n"
                                 f"--- its output\n{tail(self.output)}")
            time.sleep(0.05)


class Node:
    """One machine. Lab makes and closes it."""

    def __init__(self, lab, index, share):
        self.lab, self.index, self.share = lab, index, share
        self.name = f"node{index}"
        self.address = f"10.77.0.{index + 1}"
        self.address6 = f"fd77::{index + 1}"
        self.control_address = f"10.78.0.{index + 1}"
        self.processes = {}
        self.numbers = 0
        self.ready = threading.Event()
        self.word = None  # what the agent said of the network
        self.still_s = 0.0  # the longest that a processor stood still
        self.qemu = self.agent = self.terminal = self.listener = None

    # Commands.

    def start(self, command, env=None, cwd=None):
        """Starts a command, a string for bash or a list; does not wait. Return: Process.

        It has the host's environment, changed by env, and the folder this process has there.
        """
        self.numbers += 1
        process = Process(self, self.numbers, command)
        words = ["bash", "-c", command] if isinstance(command, str) else list(map(str, command))
        settings = [f"{name}={value}" for name, value in (env or {}).items()]
        write_strings(self.share / f"{process.number}.run",
                      [cwd or os.getcwd(), str(len(words)), *words, *settings])
        self.processes[process.number] = process
        self.tell(f"start {process.number}")
        return process

    def run(self, command, timeout=120, check=True, env=None, cwd=None):
        """Runs a command to its end. Return: Result; LabError if check and it failed."""
        process = self.start(command, env, cwd)
        try:
            status = process.wait(timeout)
        except LabTimeout:
            process.kill(signal.SIGKILL)
            raise
        if check and status != 0:
            raise LabError(f"{self.name}: status {status} from: {command}\n{tail(process.output)}")
        return Result(status, process.output)

    def put_file(self, path, text):
        """Writes a file in the node; folders above it are made."""
        (self.share / "put").write_text(text)
        self.run(["install", "-D", "-m", "644", "/lab/put", path])

    def get_file(self, path):
        self.run(["cp", path, "/lab/got"])
        return read_text(self.share / "got")

    # Faults.

    def pause(self):
        """Freezes the whole machine; its own clock stands still too."""
        self.qemu.tell("stop")

    def resume(self):
        self.qemu.tell("cont")

    def power_off(self):
        """As if the plug were pulled: no process and no kernel says goodbye."""
        self.qemu.kill()

    def cut(self, net="data", carrier=True):
        """Breaks the wire of a network. The machine sees its card lose the carrier; or nothing,
        with carrier=False, as when a switch on the way fails."""
        self._set_link(net, carrier, False)

    def fix(self, net="data"):
        """Undoes cut() of either kind."""
        self._set_link(net, True, True)
        self._set_link(net, False, True)

    def _set_link(self, net, carrier, up):
        if carrier:
            self.qemu.tell("set_link", name=net, up=up)
        else:
            self.lab.switch.tell("set_link", name=f"{net}{self.index}", up=up)

    def netem(self, rule, net="data"):
        """Disturbs what the node sends on a network, as in netem("delay 300ms loss 1%");
        None ends it. Several nodes only: one alone sends itself nothing by a card."""
        self.run(f"tc qdisc del dev {net} root 2>/dev/null", check=False)
        if rule is not None:
            self.run(f"tc qdisc add dev {net} root netem {rule}")

    def block(self, other):
        """Drops what arrives here from another node on the data network, and nothing else; what is
        sent there arrives."""
        self._filter(f"match ip src {other.address} action drop")

    def lose(self, every):
        """Drops each every-th frame of soft-RoCE that arrives here on the data network. The kernel
        counts the frames, so a test that moves enough of them is certain to lose some. A prime
        number is best: no burst that is sent again and again then always loses the same frame."""
        self._filter(f"match ip dport {ROCE_PORT} 0xffff action pass random determ drop {every}")

    def lost(self):
        """Frames that lose() has dropped so far."""
        return sum(map(int, re.findall(r"dropped (\d+)", self.run(
            "tc -s filter show dev data ingress").output)))

    def _filter(self, rule):
        self.run("tc qdisc add dev data clsact 2>/dev/null; "
                 f"tc filter add dev data ingress protocol ip u32 {rule}")

    def unblock(self):
        """Undoes all of block() and lose()."""
        self.run("tc qdisc del dev data clsact")

    # Insight.

    def console(self):
        """What the kernel said, and QEMU itself."""
        return read_text(self.share / "console.log") + read_text(self.share / "qemu.log")

    def describe_console(self):
        return f"--- console of {self.name}\n{tail(self.console())}"

    def describe(self):
        """What runs here, as the host and as the node itself see it, and the console's end."""
        running = [p for p in self.processes.values() if p.is_running()]
        lines = [f"--- running on {self.name}"]
        for process in running:
            lines += [f"{process.number}: {process.command}", tail(process.output)]
        with contextlib.suppress(LabError):
            listing = self.start("ps --ppid 2 -p 2 --deselect -o pid,ppid,stat,wchan:22,args")
            seen = listing.ended.wait(5)
            lines += ["--- its processes", listing.output if seen else "(it does not answer)"]
        return "\n".join([*lines, self.describe_console()])

    # Start and end, by Lab.

    def power_on(self, wires, terminal):
        self.agent, theirs = socket.socketpair()
        fds = [theirs.fileno(), *(wire.fileno() for wire in wires.values())]
        args = self._arguments(theirs.fileno(), wires)
        with contextlib.ExitStack() as ours:
            ours.enter_context(theirs)
            if terminal:
                self.terminal, end = socket.socketpair()
                fds.append(ours.enter_context(end).fileno())
                args += qemu.terminal(end.fileno())
            log = ours.enter_context(open(self.share / "qemu.log", "wb"))
            self.qemu = qemu.Qemu(self.name, args, fds, log)
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _arguments(self, agent, wires):
        kernel, initramfs, _ = self.lab.kernel
        args = [*qemu.MACHINE, "-m", str(self.lab.memory), "-smp", str(self.lab.cpus),
                "-kernel", kernel, "-initrd", initramfs, "-append", qemu.APPEND,
                "-chardev", f"file,id=console,path={self.share}/console.log",
                "-serial", "chardev:console", "-device", "virtio-serial-pci"]
        args += qemu.folder("host", "/", False) + qemu.folder("lab", str(self.share), True)
        args += qemu.port("agent", agent)
        for net, wire in wires.items():
            args += qemu.card(net, NETS[net], self.index, wire.fileno())
        return args

    def wait_ready(self, end):
        """Returns when the agent has said that the network is up; end is a time."""
        try:
            self.qemu.greet(max(1.0, end - time.monotonic()))
            self.ready.wait(max(0.0, end - time.monotonic()))
            word = self.word or "no word of its agent"
        except LabError as e:
            word = str(e)
        if self.word != "ready":
            raise LabNotBooted(f"{self.name} does not start: {word}\n{self.describe_console()}")

    def tell(self, line):
        try:
            self.agent.sendall(line.encode() + b"\n")
        except OSError:
            raise LabError(f"{self.name} is gone\n{self.describe_console()}") from None

    def _listen(self):
        with contextlib.suppress(OSError), self.agent.makefile("r") as lines:
            for line in lines:
                verb, *words = line.split()
                if verb == "ready":
                    self.word = " ".join(words)
                    self.ready.set()
                elif verb == "still":
                    self.still_s = max(self.still_s, float(words[1]))
                else:
                    process = self.processes[int(words[0])]
                    process.status = int(words[1])
                    process.ended.set()
        self.ready.set()
        for process in list(self.processes.values()):
            process.ended.set()

    def close(self):
        if self.qemu is not None:
            self.qemu.close()
        if self.listener is not None:
            self.listener.join()
        for end in (self.agent, self.terminal):
            if end is not None:
                end.close()


class Lab:
    """The machines, as a context; lab[i] is a Node. Use it from the thread that opened it.

    nodes: 1 to 3. mtu: of the data cards, one figure or one per node. memory: MiB per node.
    cpus: per node; by default 2 for one node, 1 each for several. terminal: the node that gets
    a console to type at. boot_seconds: until all must be ready.
    """

    latest = []  # those of the present try, see excuse()

    def __init__(self, nodes=1, mtu=4200, memory=1536, cpus=None, terminal=None, boot_seconds=180):
        if not 1 <= nodes <= NODES_MAX:
            raise ValueError(f"{nodes} nodes; 1 to {NODES_MAX} can be had")
        self.count, self.memory, self.terminal = nodes, memory, terminal
        self.mtus = [mtu] * nodes if isinstance(mtu, int) else list(mtu)
        if len(self.mtus) != nodes:
            raise ValueError(f"{len(self.mtus)} MTUs for {nodes} nodes")
        self.cpus = cpus or (2 if nodes == 1 else 1)
        self.boot_seconds = boot_seconds
        self.nodes, self.switch, self.kernel, self.folder = [], None, None, None
        self.found = []  # what reports() said when it was closed
        self.ends = contextlib.ExitStack()
        Lab.latest.append(self)

    def __getitem__(self, index):
        return self.nodes[index]

    def __enter__(self):
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends all machines and removes all traces; does nothing the second time."""
        self.found = self.reports()
        self.ends.close()

    def still(self):
        """What stood still, in words; "" if nothing did."""
        return ", ".join(f"{node.name} stood still for {node.still_s:.1f} s"
                         for node in self.nodes if node.still_s)

    def reports(self):
        """What programs here reported of errors that time does not explain; matches."""
        return self.found or [found for node in self.nodes
                              for process in list(node.processes.values())
                              for found in [BROKE.search(process.output)] if found]

    def _open(self):
        reason = qemu.missing()
        if reason:
            raise LabSkip(reason)
        self.kernel = find_kernel()
        if threading.current_thread() is threading.main_thread():
            self.ends.enter_context(signals_as_exits())
        self.folder = self.ends.enter_context(lab_folder())
        end = time.monotonic() + self.boot_seconds
        with contextlib.ExitStack() as wires:
            self._start_all(wires)
        for node in self.nodes:
            node.wait_ready(end)
        self.reach_all(end)

    def reach_all(self, end):
        """Until each node reaches each other one over the data network: one was seen that had
        booted and never heard the answer of one other."""
        for node, other in itertools.permutations(self.nodes, 2):
            while node.run(["busybox", "ping", "-c", "1", "-W", "1", other.address],
                           check=False).status != 0:
                if time.monotonic() > end:
                    raise LabNotBooted(f"{node.name} does not reach {other.name}")

    def _start_all(self, wires):
        """Starts the switch, then the machines; wires holds sockets until all have theirs."""
        cables = [{net: [wires.enter_context(end) for end in socket.socketpair()]
                   for net in (NETS if self.count > 1 else ())} for _ in range(self.count)]
        if self.count > 1:
            args = ["-M", "none"]
            for index, cable in enumerate(cables):
                for hub, net in enumerate(NETS):
                    args += qemu.switch_port(f"{net}{index}", hub, cable[net][1].fileno())
            fds = [end.fileno() for cable in cables for _, end in cable.values()]
            self.switch = qemu.Qemu("switch", args, fds)
            self.ends.callback(self.switch.close)
            self.switch.greet(self.boot_seconds)
        for index, cable in enumerate(cables):
            share = self.folder / f"node{index}"
            share.mkdir()
            self._configure(index, share)
            node = Node(self, index, share)
            self.nodes.append(node)
            self.ends.callback(node.close)
            node.power_on({net: mine for net, (mine, _) in cable.items()}, self.terminal == index)

    def _configure(self, index, share):
        shown = sorted({str(CHECKOUT), os.getcwd()})
        config = {"NODE": index, "COUNT": self.count, "MTU": self.mtus[index],
                  "NOW": int(time.time()) + 2, "AGENT": HERE / "agent.py",
                  "MODULES": self.kernel[2], "SHOWN": " ".join(shown)}
        (share / "config").write_text("".join(f"{name}={shlex.quote(str(value))}\n"
                                              for name, value in config.items()))
        path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin"
        write_strings(share / "environment", [f"{name}={value}" for name, value in
                                              (os.environ | {"PATH": path}).items()])


def excuse(error):
    """Why a test that failed so may have a second try; None: it may not. That it failed is no
    reason: only that a machine did not boot, or stood still while the test ran, as its own clock
    shows. And no machine excuses a wrong bit or what a sanitizer reports."""
    if isinstance(error, LabWrong) or any(lab.reports() for lab in Lab.latest):
        return None
    if isinstance(error, LabNotBooted):
        return "a machine did not boot"
    return "; ".join(filter(None, (lab.still() for lab in Lab.latest))) or None


def second_try(reason):
    """Says that there is one; tests/run.sh counts these lines."""
    print(f"lab: second try, in new machines: {reason}", flush=True)
    Lab.latest.clear()


def tried(body):
    """Runs body(), and where excuse() has a reason once more. Return: what it returns."""
    Lab.latest.clear()
    for tries in range(1, TRIES + 1):
        try:
            return body()
        except LabSkip:
            raise
        except Exception as e:  # whatever a body takes for a failure
            reason = excuse(e)
            if tries == TRIES or reason is None:
                raise
            print(e, file=sys.stderr)
            second_try(reason)


def main(body):
    """The end of a test program: tried(), and 77 where no machine can be had."""
    try:
        tried(body)
    except LabSkip as e:
        print(f"skipped: {e}")
        sys.exit(77)


def find_kernel():
    """Return: the paths that kernel.sh prints."""
    run = subprocess.run([HERE / "kernel.sh"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, text=True, check=False)
    said = run.stderr.strip().splitlines() or ["kernel.sh said nothing"]
    if run.returncode == 77:
        raise LabSkip(said[-1].removeprefix("skipped: "))
    if run.returncode != 0:
        raise LabError(f"kernel.sh: status {run.returncode}\n{tail(run.stderr)}")
    return run.stdout.splitlines()


@contextlib.contextmanager
def signals_as_exits():
    """SIGTERM and SIGHUP unwind the stack, so that the machines' traces go."""
    def leave(number, _):
        raise SystemExit(128 + number)
    changed = [(number, signal.signal(number, leave)) for number in (signal.SIGTERM, signal.SIGHUP)
               if signal.getsignal(number) == signal.SIG_DFL]
    try:
        yield
    finally:
        for number, before in changed:
            signal.signal(number, before)


def remove(path):
    """A file, or a folder and all in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def lab_folder():
    """A folder that is locked while it is in use; those of labs that were killed are removed."""
    for left in pathlib.Path(tempfile.gettempdir()).glob(FOLDER + "*"):
        with contextlib.suppress(OSError), open(left / "lock", "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=FOLDER, ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        with open(folder / "unlocked", "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / "unlocked").rename(folder / "lock")
            yield folder
