# SPDX-License-Identifier: MIT
"""Whole jobs over RDMA verbs, in machines with soft-RoCE, and what may befall them there."""
import random
import re
import signal
import struct
import sys
import time

import shared
from checks import Failed, check, until
from job import CALM, COUNTED, LATE, PORT, SYSTEM, Job

sys.path.append(str(SYSTEM))
import mode_cases  # pylint: disable=wrong-import-position

SGD = ["--optimizer", "sgd:0.1,0.9"]
OLD = ["--optimizer", "sgd:0.1,0"]  # where old gradients count
BACKUP = ["-n", "5", "--policy", "backup:4"]
LEASE_S = 5  # longer than an emulated processor stands still on a busy host
# The cases that execute the most code. The others are alike over every network, and execute the
# same lines;
# they run with all tests only, as do the modes that are not in MODES.
TELLING = ("workers_own", "registered", "into", "many_chunks")
# Workers that put nothing for a while, that put every micro-batch, and that fetch seldom.
MODES = ("nonblocking", "nonblocking_age", "downpour")
MORE_MODES = ("easgdsync", "anytime", "deadline", "local", "easgd")
# name: (options of the run, options of the workers, options of the check)
EXACT = {
    "bsp": (["-n", "3", "--policy", "bsp", "--commits", "40"], [], SGD),
    "backup": ([*BACKUP, "--commits", "100"], ["sleep_us=500", "4:sleep_us=8000"],
               [*SGD, "--seen", "late"]),
    "async": (["-n", "4", "--policy", "async", "--commits", "120"], [], [*OLD, "--count", "1"]),
    "workers_own": (["-n", "3", "--policy", "bsp", "--owner", "workers", "--commits", "40"],
                    ["owner=workers", "start=0"], ["--optimizer", "none"]),
    "ranges": (["-n", "3", "--policy", "bsp", "--commits", "30"], ["ranges=7"], SGD),
    "registered": (["-n", "3", "--policy", "bsp", "--commits", "30"],
                   ["elems=40001", "ranges=3", "registered=1"], SGD),
    "into": (["-n", "3", "--policy", "kbatchsync:4", "--commits", "30"],
             ["elems=40001", "result_type=bf16", "into=1", "keep=4"], SGD),
    "many_chunks": (["-n", "3", "--policy", "kbatchasync:4", "--chunk", "4K", "--commits", "12"],
                    ["elems=9001"], OLD),
}


def lost(job, rank):
    """What the server said of a rank that it lost, if it did."""
    said = re.findall(rf"^\S+ \w+ musterd: .*(?:rank {rank} lost|rank {rank} is gone|"
                      rf"rank {rank} was silent).{{10,}}$", job.server.output, re.M)
    return "\n".join(said)


def check_lost(job, rank):
    said = lost(job, rank)
    check(said or f"the server says that rank {rank} is lost", said, job.said())


def draw_digits(folder):
    """Files as MNIST's: ten patterns under noise. The digits that the example draws cost an
    emulated
    processor 15 s."""
    chance = random.Random(1)
    patterns = [[chance.randrange(256) for _ in range(784)] for _ in range(10)]
    for name, count in (("train", 500), ("t10k", 100)):
        labels = [i % 10 for i in range(count)]
        images = bytes((pixel + chance.randrange(256)) // 2
                       for label in labels for pixel in patterns[label])
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(
            struct.pack(">2I", 2049, count) + bytes(labels))
        (folder / f"{name}-images-idx3-ubyte").write_bytes(
            struct.pack(">4I", 2051, count, 28, 28) + images)


def digits(tools):
    """The main job over two machines; one worker is slow and one is killed."""
    with shared.lab(nodes=2) as machines:
        job = Job(tools, machines, *BACKUP, "--commits", "40")
        for node in machines.nodes:
            draw_digits(node.share)
        for rank, node in enumerate((0, 0, 1, 1, 1)):
            job.start(rank, node, ["stdbuf", "-oL", tools.digits, "--product", "plain", "--data",
                                   "/lab", "--hidden", "24", "--batch", "16", "--test-every", "10",
                                   "--delay", "const:20", "--delay", "4:const:300"],
                      MUSTER_HISTORY=f"/lab/{job.name}")
        job.workers[0].wait_output("version 10:", 120)
        job.workers[2].kill(signal.SIGKILL)
        job.end({0: 0, 1: 0, 2: -9, 3: 0, 4: 0}, seconds=120)
        log, learnt = job.server.output, job.workers[0].output
        losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)", learnt)]
        check(f"the loss falls: {losses}",
              len(losses) >= 4 and losses[-1] < 0.2 * losses[0], learnt)
        check_lost(job, 2)
        check("the job is over at version 40", "finished at version 40" in log, log)
        job.check_history(*SGD, "--kills")


def run_and_prove(tools, machines, name, run, words, proof):
    """A job of `muster run` in the first machine."""
    elems = next((w[6:] for w in words if w.startswith("elems=")), "1237")
    job = Job.__new__(Job)
    job.lab, job.name, job.workers, job.tools = machines, name, {}, tools
    job.server = machines[0].start(
        [tools.muster, "run", "--transport", "verbs", "--grace", "2s", *CALM, *run, "--",
         tools.worker, f"/lab/{name}", elems, *words])
    job.end({}, seconds=120)
    job.check_history(*proof)


def exact(tools, names=TELLING):
    """Every version is what its set says, to the bit."""
    with shared.lab() as machines:
        for name in names:
            run_and_prove(tools, machines, name, *EXACT[name])


def exact_rest(tools):
    """The other jobs of exact."""
    exact(tools, [name for name in EXACT if name not in TELLING])


def modes(tools, names=MODES):
    """Workers that do more, or less, than a gradient for each batch."""
    with shared.lab() as machines:
        for name in names:
            case = mode_cases.CASES[name]
            job = Job.__new__(Job)
            job.lab, job.name, job.workers, job.tools = machines, name, {}, tools
            job.server = machines[0].start(
                ["env", f"MUSTER_HISTORY=/lab/{name}", tools.muster, "run", "--transport", "verbs",
                 "--grace", "60s", *CALM, *case.options(), "--", tools.micro, *case.arguments()])
            job.end({}, seconds=120)
            job.prove(SYSTEM / "modes.py", lambda log, name=name: [name, "--log", log])


def modes_rest(tools):
    """The other modes."""
    modes(tools, MORE_MODES)


def packets(node, device):
    return int(node.run(["cat", f"/sys/class/infiniband/{device}/ports/1/hw_counters/sent_pkts"])
               .output)


def two_rails(tools):
    """Memory of the workers is registered with two devices. Gradients are sent from it, and results
    written to it, in pieces over both."""
    with shared.lab() as machines:
        node, devices = machines[0], ("rxe0", "rxe1")
        node.run("ip link add second type dummy; ip addr add 10.79.0.1/24 dev second; "
                 "ip link set second mtu 4200 up; rdma link add rxe1 type rxe netdev second")
        before = [packets(node, device) for device in devices]
        run_and_prove(tools, machines, "two_rails",
                      ["-n", "2", "--policy", "bsp", "--commits", "4",
                       "--data-address", "10.77.0.1,10.79.0.1"],
                      ["elems=500000", "ranges=3", "registered=1", "into=1"], SGD)
        sent = [packets(node, device) - count for device, count in zip(devices, before)]
        # 2 MB each way for each worker and version are 7800 packets of 4 KiB or more.
        check(f"each device has sent its part: {sent}", min(sent) > 2600)


# What a program closes before it becomes another one, and what of ours may not have such a number.
CLOSED = {0: "0<&- 1>&- 2>&-", 1: "0<&-", 2: "1>&- 2>&-"}
OURS = re.compile(r"uverbs|rdma_cm|infiniband|anon_inode:|socket:")


def descriptors_of(node, program):
    """The descriptors of each process that runs a program: what each is, by number."""
    listed = node.run(f"for p in $(pgrep -f '^{program} '); do ls -l /proc/$p/fd; done").output
    return [{int(number): what for number, what in re.findall(r" (\d+) -> (.*)", process)}
            for process in listed.split("total ")[1:]]


def standard_files(tools):
    """A server and workers run whose standard files are closed. Nothing that muster, or a library
    of RDMA, has open gets the number of such a file: what the program prints goes nowhere."""
    with shared.lab() as machines:
        node = machines[0]
        job = Job.__new__(Job)
        job.lab, job.name, job.workers, job.tools = machines, "standard_files", {}, tools
        job.address = f"127.0.0.1:{PORT}"
        job.server = node.start(["sh", "-c", f'exec "$@" {CLOSED[0]}', "sh", tools.musterd,
                                 "--listen", job.address, "--insecure", "--transport", "verbs",
                                 *CALM, "-n", str(len(CLOSED)), "--policy", "bsp"])
        until(lambda: node.run(f"</dev/tcp/127.0.0.1/{PORT}", check=False).status == 0, 60,
              "the server listens")
        for rank, closes in CLOSED.items():
            job.start(rank, 0, ["sh", "-c", f'exec "$@" {closes}', "sh", tools.worker,
                                f"/lab/{job.name}", 1237, "sleep_us=20000", *job.until_enough()])
        job.wait_version(0, 2)
        for program, count in ((tools.musterd, 1), (tools.worker, len(CLOSED))):
            found = descriptors_of(node, program)
            check(f"{count} of {program} with a device open",
                  len(found) == count and all(any("uverbs" in what for what in fds.values())
                                              for fds in found), found)
            taken = [fds[fd] for fds in found for fd in range(3) if OURS.search(fds.get(fd, ""))]
            check(f"nothing of ours has a number of a standard file: {taken}", not taken, found)
        job.enough()
        job.end(dict.fromkeys(CLOSED, 0), seconds=120)
        job.check_history(*SGD)


def loss(tools, names=("backup", "workers_own")):
    """Frames are lost and overtaken, both ways; nothing of it is seen."""
    with shared.lab(nodes=2) as machines:
        for node in machines.nodes:
            node.netem("delay 2ms reorder 1%")
            node.lose(61)
        for run, words, proof in (EXACT[name] for name in names):
            before = [node.lost() for node in machines.nodes]
            job = Job(tools, machines, "--link-timeout", "2s", *run)
            ranks = range(int(run[1]))
            for rank in ranks:
                job.start_worker(rank, rank % 2, *words, elems=5003)
            job.end(dict.fromkeys(ranks, 0), seconds=120)
            job.check_history(*proof)
            drops = [node.lost() - lost for node, lost in zip(machines.nodes, before)]
            check(f"frames were lost: {drops}", all(drops))


def loss_rest(tools):
    """The same of a policy in which nobody is late."""
    loss(tools, ("bsp",))


def late_write(tools):
    """A write that comes late harms nobody; nor does one that never comes."""
    with shared.lab(nodes=2) as machines:
        far = machines[1]
        job = Job(tools, machines, *BACKUP, "--link-timeout", "1100ms")
        for rank in range(5):
            job.start_worker(rank, rank // 4, *([] if rank == 4 else ["sleep_us=20000"]),
                             *job.until_enough())
        job.wait_version(0, 20)
        far.netem("delay 500ms")
        before, version = len(job.verdicts(4)), job.newest(0)
        job.wait_version(0, version + 60)
        far.netem(None)
        fixed = len(job.verdicts(4))
        took = job.verdicts(4)[before:fixed]
        check(f"held for half of the budget, rank 4 comes late: {took}", LATE in took)
        until(lambda: COUNTED in job.verdicts(4)[fixed + 1:], 60, "rank 4 counts again")
        far.cut(carrier=False)
        seconds = until(lambda: lost(job, 4), 10, "rank 4 is lost")
        check(f"cut off, it is lost after {seconds:.1f} s", seconds < 10)
        job.wait_version(0, job.newest(0) + 8)
        job.enough()
        job.end(dict.fromkeys(range(4), 0) | {4: 1}, seconds=120)
        check_lost(job, 4)
        check(job.workers[4].output.strip(), re.search("test_worker: .{20}", job.workers[4].output))
        # Whichever end waited for an acknowledgement noticed; where that was the worker, it has
        # closed its connection, and that is what the server saw.
        check("one end says what the link came to",
              "in 4 tries" in lost(job, 4) + job.workers[4].output, job.said())
        job.check_history(*SGD, "--kills", "--seen", "late")


def dead_machine(tools):
    """The plug is pulled, or a worker stops: its lease ends, and the others go on without it."""
    with shared.lab(nodes=2) as machines:
        job = Job(tools, machines, "-n", "3", "--policy", "bsp", "--lease", f"{LEASE_S}s",
                  "--on-loss", "shrink", "--commits", "220")
        job.start_worker(2, 1, "sleep_us=20000")
        for rank in range(2):
            job.start_worker(rank, 0, "sleep_us=20000")
        job.wait_version(0, 20)
        machines[1].power_off()
        seconds = until(lambda: lost(job, 2), 20, "rank 2 is lost")
        check(f"a machine without power is lost after {seconds:.1f} s", seconds < LEASE_S + 5)
        check(f"with work left, at version {job.newest(0)}", job.newest(0) < 200)
        job.end({0: 0, 1: 0}, living=(0, 1))
        check_lost(job, 2)
        job.check_history(*SGD, "--kills")
        job = Job(tools, machines, "-n", "3", "--policy", "bsp", "--lease", f"{LEASE_S}s",
                  "--on-loss", "shrink", "--commits", "220")
        for rank in range(3):
            job.start_worker(rank, 0, "sleep_us=20000")
        job.wait_version(0, 20)
        job.workers[2].kill(signal.SIGSTOP)
        seconds = until(lambda: lost(job, 2), 20, "rank 2 is lost")
        check(f"a stopped worker is lost after {seconds:.1f} s",
              LEASE_S - 1.5 < seconds < LEASE_S + 5)
        job.end({0: 0, 1: 0}, living=(0, 1))
        job.workers[2].kill(signal.SIGCONT)
        job.end({0: 0, 1: 0, 2: 1})
        check_lost(job, 2)
        check(job.workers[2].output.strip(), "lease" in job.workers[2].output)
        job.check_history(*SGD, "--kills")


def refused(node, command, sentence, **options):
    """A program that cannot work says why, and ends with 1. Return: seconds it took."""
    began = time.monotonic()
    got = node.run(command, 70, False, **options)
    seconds = time.monotonic() - began
    check(f"{got.output.strip()} ({seconds:.1f} s)",
          got.status == 1 and re.search(sentence, got.output), f"{got.status}, not {sentence!r}")
    return seconds


def mtus_differ(tools, machines):
    job = Job(tools, machines, "-n", "2", "--policy", "bsp", "--commits", "20")
    for rank in range(2):
        job.start_worker(rank, rank, elems=5003)
    job.end({0: 0, 1: 0})
    job.check_history(*SGD)
    warning = re.search(r"^.*RDMA MTU.*$", job.said(), re.M)
    check(warning and warning[0], warning and "4096" in warning[0] and "1024" in warning[0],
          job.said())


def wrong_addresses(tools, machines):
    one, two = machines.nodes
    worker = [tools.worker, "/lab/none", "100"]
    here = [tools.musterd, "--listen", "127.0.0.1:0", "--transport", "verbs", "-n", "1"]
    refused(one, [*here, "--data-address", "10.99.0.1"], r"10\.99\.0\.1")
    refused(one, [*here, "--data-address", one.control_address], re.escape(one.control_address))
    refused(one, [*here, "--device", "mlx5_7"], "mlx5_7")
    refused(two, worker, "HOST:PORT", env={"MUSTER_SERVER": "node0-control:"})
    refused(two, [tools.muster, "status", "node0-control:17077"], "node0-control:17077")
    refused(two, [tools.muster, "status", "10.78.0.99:17077"], r"10\.78\.0\.99:17077")
    one.cut()
    until(lambda: "DOWN" in one.run(["rdma", "link"]).output, 60, "the port is down")
    refused(one, [*here, "--data-address", "10.77.0.1"], r"rxe0.*10\.77\.0\.1.*down.*link set")
    one.fix()
    until(lambda: "ACTIVE" in one.run(["rdma", "link"]).output, 60, "the port is up")
    job = Job(tools, machines, "-n", "1", "--join-timeout", "120s")
    refused(two, worker, r"10\.99\.0\.1", env={"MUSTER_SERVER": job.address,
                                              "MUSTER_DATA_ADDRESS": "10.99.0.1"})
    job.server.kill()
    job.end({}, 143)


def silence(tools):
    """For a worker that joins the data network is dumb, the control network is not."""
    with shared.lab(nodes=2) as machines:
        one, two = machines.nodes
        worker = [tools.worker, "/lab/none", "100"]
        mac = one.run("cat /sys/class/net/data/address").output.strip()
        two.netem("loss 100%")
        job = Job(tools, machines, "-n", "1", "--join-timeout", "never")
        env = {"MUSTER_SERVER": job.address}
        # The machines greeted each other at boot; nothing may be left of that.
        two.run("ip neigh flush dev data")
        seconds = refused(two, worker, r"10\.77\.0\.1 does not answer when 10\.77\.0\.2 asks"
                          r".*MUSTER_DATA_ADDRESS", env=env)
        check("nobody waits longer than a neighbour may take to answer", 7 < seconds < 20)
        two.run(f"ip neigh replace 10.77.0.1 lladdr {mac} dev data nud permanent")
        seconds = refused(two, worker, r"10\.77\.0\.1 does not answer connection requests from "
                          r"10\.77\.0\.2 over rxe0.*4791.*MUSTER_DATA_ADDRESS", env=env)
        check("nor than three connection requests take", 14 < seconds < 35)
        job.server.kill()
        job.end({}, 143)
        job = Job(tools, machines, "-n", "1", "--join-timeout", "4s")
        seconds = refused(two, worker, r"--join-timeout", env=env)
        check("what the server says is heard meanwhile", seconds < 15)
        job.end({}, 1)


def other_releases(tools, machines):
    """A worker whose control connection, or whose link, is of another version, is told so."""
    job = Job(tools, machines, "-n", "1", "--commits", "20")
    two = machines[1]
    for release, sentence in (
            ("protocol", r"server.* speaks protocol \d+, this library protocol 99.*same release"),
            ("verbs", r"10\.77\.0\.1 speaks version \d+ of muster's verbs transport, this end 99; "
             "use the same version")):
        refused(two, [tools.worker, "/lab/none", "1237"], sentence,
                env={"MUSTER_SERVER": job.address,
                     "LD_LIBRARY_PATH": f"{tools.releases}/{release}"})
    for sentence in (r"10\.78\.0\.2:\d+ speaks protocol 99, this server speaks \d+; use the same",
                     r"10\.77\.0\.2 speaks version 99 of muster's verbs transport, this end \d+; "
                     "use the same"):
        said = re.search(f"^.*{sentence}.*$", job.server.output, re.M)
        check(said and said[0], said, job.said())
    job.start_worker(0, 1)
    job.end({0: 0})


def little_memory(tools, machines):
    """Root may lock any amount, so that it takes an ordinary user to meet the limit."""
    one, two = machines.nodes
    ordinary = "ulimit -l 64; exec setpriv --reuid 65534 --regid 65534 --clear-groups "
    job = Job(tools, machines, "-n", "1", "--join-timeout", "120s")
    refused(two, f"{ordinary} {tools.worker} /tmp/none 100000", "may lock 65536 bytes.*ulimit -l",
            env={"MUSTER_SERVER": job.address})
    job.server.kill()
    job.end({}, 143)
    server = one.start(f"{ordinary} {tools.musterd} --listen node0-control:17077 --insecure"
                       " --transport verbs -n 1")
    server.wait_output("listening")
    refused(two, [tools.worker, "/lab/none", "100000"], "may lock 65536 bytes.*ulimit -l",
            env={"MUSTER_SERVER": "node0-control:17077"})
    check(server.output.strip(), "may lock 65536 bytes" in server.output)
    server.kill()
    check("the server ends", server.wait() == 143)


def device_goes(tools, machines):
    """Under load; first that of a worker, then the server's."""
    for gone, ends, status in ((1, {0: 0, 1: 0, 2: 1}, 0), (0, {0: 1, 1: 1, 2: 1}, 1)):
        job = Job(tools, machines, "-n", "3", "--policy", "bsp", "--commits", "300")
        for rank in range(3):
            job.start_worker(rank, rank // 2, "sleep_us=20000", elems=5003)
        job.wait_version(0, 20)
        deletion = machines[gone].start(["rdma", "link", "del", "rxe0"])
        job.end(ends, status)
        reason = rf"RDMA device rxe0, at 10\.77\.0\.{gone + 1}, was removed"
        # The server's word, which can only guess, may be heard before this worker's own device.
        heard = rf"{reason}|or its device gone" if gone == 1 else reason
        for rank in (rank for rank, s in ends.items() if s):
            check(job.workers[rank].output.strip(),
                  re.search(heard, job.workers[rank].output), job.said())
        if gone == 0:
            check_lost(job, 2)
            check("the server blames nobody but its device", all(
                re.search(rf"rank {rank} is gone: {reason}", job.server.output) for rank in ends),
                job.said())
        check("the device goes", deletion.wait() == 0)
        if gone == 1:
            check_lost(job, 2)
            job.check_history(*SGD, "--kills")
            machines[1].run(["rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "data"])
    machines[1].run(["rdma", "link", "del", "rxe0"])
    refused(machines[0], [tools.musterd, "--listen", "127.0.0.1:0", "--transport", "verbs", "-n",
                          "1"], "RDMA device")


def bad_input(tools):
    """What does not fit together, or is not there, is named."""
    with shared.lab(nodes=2) as machines:
        machines[1].run("ip link set data mtu 1500")
        mtus_differ(tools, machines)
        wrong_addresses(tools, machines)
        little_memory(tools, machines)
        other_releases(tools, machines)


def device_lost(tools):
    """A device goes under load, and then there is none."""
    with shared.lab(nodes=2) as machines:
        device_goes(tools, machines)
