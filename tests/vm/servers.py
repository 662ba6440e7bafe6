# SPDX-License-Identifier: MIT
"""Jobs of several servers over RDMA verbs, between machines with soft-RoCE, and what becomes of
them when a server, its machine, its network or one of its links is lost."""
import contextlib
import json
import re
import signal
import time

import shared
from checks import Failed, check, until
from job import Job, identity, make_keys
from lab import LabError

SGD = ["--optimizer", "sgd:0.1,0.9"]
OLD = ["--optimizer", "sgd:0.1,0"]  # where old gradients count
ELEMS = 9001  # the least that two servers can share is 8192, and three 12288
# The cases that execute the most code; the others run with all tests only.
TELLING = ("backup", "kbatchasync", "into")
# name: (options of the leader, those of the workers, those of the check, nodes of the followers)
EXACT = {
    "bsp": (["-n", "3", "--policy", "bsp", "--commits", "30"], [], SGD, (1,)),
    "backup": (["-n", "5", "--policy", "backup:4", "--commits", "60"],
               ["sleep_us=500", "4:sleep_us=8000"], [*SGD, "--seen", "late"], (1,)),
    "async": (["-n", "4", "--policy", "async", "--commits", "80"], [], [*OLD, "--count", "1"],
              (1,)),
    "kbatchasync": (["-n", "3", "--policy", "kbatchasync:4", "--chunk", "4K", "--commits", "12"],
                    ["ranges=3"], OLD, (1,)),
    "workers_own": (["-n", "3", "--policy", "bsp", "--owner", "workers", "--commits", "30"],
                    ["owner=workers", "start=0"], ["--optimizer", "none"], (1,)),
    "three": (["-n", "3", "--policy", "backup:2", "--commits", "20", "--partition", "1,2,1"],
              ["ranges=7", "elems=20001"], SGD, (1, 0)),
    "into": (["-n", "3", "--policy", "backup:2", "--commits", "20", "--partition", "1,2,1"],
             ["registered=1", "ranges=7", "into=1", "elems=20001"], SGD, (1, 0)),
}
LEASE_S = 5.0  # longer than an emulated processor stands still on a busy host
LINK_S = 2.0  # by default
# So long an emulated processor on a busy host may take for what should take no time, and this
# process may stand still beside it.
SLACK_S = 12.0


def endless(lease_s):
    """Options of a job that goes on until something happens to it."""
    return ["-n", "2", "--commits", "100000", "--lease", f"{lease_s:.0f}s",
            "--server-lease", f"{lease_s:.0f}s"]


LONG = endless(LEASE_S)
# Long enough that what is noticed within SLACK_S was not noticed by a lease.
NO_LEASE = endless(4 * SLACK_S)


class Servers(Job):
    """A job whose leader is in node 0; followers has the nodes of servers 1 and on."""

    def __init__(self, tools, machines, *options, followers=(1,), keys=None):
        super().__init__(tools, machines, *options, "--servers", str(len(followers) + 1),
                         keys=keys)
        self.follower = [machines[node].start([tools.musterd, "--join", self.address,
                                             *identity(keys, "server"), "--transport", "verbs"])
                         for node in followers]

    def start_workers(self, nodes, *options, elems=ELEMS):
        """Rank i in nodes[i]."""
        for rank, node in enumerate(nodes):
            self.start_worker(rank, node, *options, elems=elems)

    def said(self):
        return "\n".join([super().said(), *(f"--- server {i}, {m.status}\n{m.output.strip()}"
                                            for i, m in enumerate(self.follower, 1))])

    def end_all(self, seconds=120):
        """To the end that was asked for."""
        self.end(dict.fromkeys(self.workers, 0), seconds=seconds)
        self.followers_end(*[0] * len(self.follower))

    def followers_end(self, *expected, seconds=120):
        """None: of that one nothing is expected."""
        with self.told():
            got = tuple(None if status is None else follower.wait(seconds)
                        for follower, status in zip(self.follower, expected))
        check(f"the followers end with {expected}", got == expected, self.said())

    @contextlib.contextmanager
    def told(self):
        try:
            yield
        except LabError as e:
            raise Failed(f"{e}\n{self.said()}") from None

    def all_fail(self, began, within, words, gone=()):
        """All processes but those of gone end with 1 and words of their own."""
        named = [("the leader", self.server)]
        named += [(f"server {i}", m) for i, m in enumerate(self.follower, 1)]
        named += [(f"rank {rank}", w) for rank, w in self.workers.items()]
        for name, process in named:
            if name in gone:
                continue
            with self.told():
                status = process.wait(max(0.1, began + within + 5 - time.monotonic()))
            said = process.output.strip().splitlines()
            last = said[-1] if said else ""
            check(f"{time.monotonic() - began:5.1f} s  {name}: {last}", status == 1 and last and
                  re.search(words[name.split()[0]], process.output), f"{status}\n{self.said()}")
        seconds = time.monotonic() - began
        check(f"all have ended after {seconds:.1f} s", seconds < within, self.said())


def foreign_keys(tools, machine, keys):
    """Certificates of another authority in /lab/other, and both.pem: who gives that believes the
    servers of the job, so that it is for them to refuse it."""
    machine.run([tools.muster, "key", "new", "/lab/other"])
    machine.run(f"cat {keys}/ca.pem /lab/other/ca.pem >/lab/other/both.pem")
    return [["--tls-ca", "/lab/other/both.pem", *identity("/lab/other", role)[2:]]
            for role in ("worker", "server")]


def strangers(tools, job):
    """Each would end the job if it were let in, or have the follower's place."""
    machine = job.lab[1]
    worker, server = foreign_keys(tools, machine, job.keys)
    names = ("MUSTER_TLS_CA", "MUSTER_TLS_CERT", "MUSTER_TLS_KEY")
    work = [tools.worker, "/lab/stranger", ELEMS, "rounds=1", "finish=1"]
    join = [tools.musterd, "--join", job.address, "--transport", "verbs"]
    for name, command, env, status, words in (
            ("a worker without a certificate", work, {}, 1, "who proves itself by TLS"),
            ("a server without one", [*join, "--insecure"], {}, 2, "who proves itself by TLS"),
            ("a worker of another authority", work, dict(zip(names, worker[1::2])), 1,
             "refuses the certificate in /lab/other/worker.pem"),
            ("a server of another authority", [*join, *server], {}, 2,
             "refuses the certificate in /lab/other/server.pem")):
        with job.told():
            got = machine.run(command, check=False, env={"MUSTER_SERVER": job.address} | env)
        check(f"{name}: {got.output.strip()}", got.status == status and words in got.output,
              f"status {got.status}\n{job.said()}")


def certificates(tools):
    """The control connections are TLS, and the addresses that links over RDMA come from are told
    there. Strangers come while the job runs and a rank is free: they are refused, and every version
    is exact."""
    with shared.lab(nodes=2) as machines:
        job = Servers(tools, machines, "-n", "4", "--policy", "backup:3", "--lease", "30s",
                      "--link-timeout", "13s", keys=make_keys(tools, machines))
        job.start_workers((0, 1, 0, 1), "sleep_us=20000", "3:rounds=5", *job.until_enough())
        with job.told():
            check("rank 3 leaves, and its rank is free", job.workers[3].wait() == 0, job.said())
        job.wait_version(0, 5)
        strangers(tools, job)
        status = machines[1].run([tools.muster, "status", job.address,
                                  *identity(job.keys, "observer")]).output
        check("an observer sees who may join, and that the rank is free still",
              "access: by certificates" in status and "3 of 4 workers live" in status, status)
        joined = re.findall(r"(?:rank|server) \d.* joined", job.server.output)
        check(f"nobody else has joined: {joined}", len(joined) == 5, job.said())
        job.wait_version(0, job.newest(0) + 8)
        job.enough()
        job.end_all()
        job.check_history(*SGD)


def exact(tools, names=TELLING):
    """Every version is what its set says, to the bit, whoever holds which part of it."""
    with shared.lab(nodes=2) as machines:
        for name in names:
            options, words, proof, followers = EXACT[name]
            began = time.monotonic()
            job = Servers(tools, machines, *options, followers=followers)
            elems = next((int(w[6:]) for w in words if w.startswith("elems=")), ELEMS)
            job.start_workers([rank % 2 for rank in range(int(options[1]))], *words, elems=elems)
            job.end_all()
            job.check_history(*proof)
            print(f"{time.monotonic() - began:6.1f} s  {name}", flush=True)


def exact_rest(tools):
    """The other jobs of exact."""
    exact(tools, [name for name in EXACT if name not in TELLING])


def loss(tools):
    """Frames are lost and overtaken between the servers, both ways; nothing of it is seen."""
    with shared.lab(nodes=2) as machines:
        for node in machines.nodes:
            node.netem("delay 2ms reorder 1%")
            node.lose(211)
        for name in ("bsp", "backup"):
            options, words, proof, followers = EXACT[name]
            job = Servers(tools, machines, "--link-timeout", "2s", *options, followers=followers)
            job.start_workers([rank % 2 for rank in range(int(options[1]))], *words)
            job.end_all()
            job.check_history(*proof)
        drops = [node.lost() for node in machines.nodes]
        check(f"frames were lost: {drops}", all(drops))


def cut(node):
    for net in ("data", "control"):
        node.cut(net, carrier=False)


def fix(node):
    for net in ("data", "control"):
        node.fix(net)


def begin(tools, machines, *options, nodes=(0, 1), **how):
    """A job that goes on until something happens to it, or until enough()."""
    job = Servers(tools, machines, *options, **how)
    job.start_workers(nodes, "sleep_us=10000", *job.until_enough())
    job.wait_version(0, 5)
    return job


def follower_lost(tools):
    """A follower, or its machine: the job ends for everybody, in words that name the server."""
    words = {"the": r"server 1 of 2 \(10\.78\.0\.2:\d+\)", "rank": r"server 1 \(?of",
             "server": r"the leader was silent|the leader has ended the job"}
    with shared.lab(nodes=2) as machines:
        far = machines[1]
        print("--- killed", flush=True)
        job = begin(tools, machines, *NO_LEASE)
        began = time.monotonic()
        job.follower[0].kill(signal.SIGKILL)
        job.all_fail(began, SLACK_S, words, gone=("server 1",))
        job.check_history(*SGD, "--kills")

        print("--- stopped", flush=True)
        job = begin(tools, machines, *LONG)
        began = time.monotonic()
        job.follower[0].kill(signal.SIGSTOP)
        job.all_fail(began, LEASE_S + SLACK_S, words, gone=("server 1",))
        job.follower[0].kill(signal.SIGCONT)
        job.followers_end(1)
        job.check_history(*SGD, "--kills")

        print("--- cut off", flush=True)
        job = begin(tools, machines, *LONG)
        began = time.monotonic()
        cut(far)
        job.all_fail(began, LEASE_S + LINK_S + SLACK_S, words | {"rank": "."})
        fix(far)
        job.check_history(*SGD, "--kills")

        print("--- without power", flush=True)
        job = begin(tools, machines, *LONG)
        began = time.monotonic()
        far.power_off()
        job.all_fail(began, LEASE_S + SLACK_S, words, gone=("server 1", "rank 1"))
        job.check_history(*SGD, "--kills")


def leader_lost(tools):
    """Followers and workers end by themselves."""
    words = {"the": r"server 1 of 2 \(10\.78\.0\.2:\d+\)", "rank": ".",
             "server": r"the leader (was silent|is gone)"}
    with shared.lab(nodes=2) as machines:
        near = machines[0]
        for what, number, options, within in (
                ("killed", signal.SIGKILL, NO_LEASE, SLACK_S),
                ("stopped", signal.SIGSTOP, LONG, LEASE_S + SLACK_S)):
            print(f"--- {what}", flush=True)
            job = begin(tools, machines, *options)
            began = time.monotonic()
            job.server.kill(number)
            job.all_fail(began, within, words, gone=("the leader",))
            job.server.kill(signal.SIGCONT)
            with job.told():
                job.server.wait()
            job.check_history(*SGD, "--kills")

        print("--- cut off", flush=True)
        job = begin(tools, machines, *LONG)
        began = time.monotonic()
        cut(near)
        job.all_fail(began, LEASE_S + LINK_S + SLACK_S, words)
        fix(near)
        job.check_history(*SGD, "--kills")

        print("--- without power", flush=True)
        job = begin(tools, machines, *LONG)
        began = time.monotonic()
        near.power_off()
        job.all_fail(began, LEASE_S + LINK_S + SLACK_S, words, gone=("the leader", "rank 0"))
        job.check_history(*SGD, "--kills")


def goes_on(job, what, remade):
    """What was done to it is over: it makes versions. remade: links with the leader, so far."""
    version = job.newest(0)
    job.wait_version(0, version + 8)
    count = job.follower[0].output.count("linked with the leader again")
    check(f"{what}: on from version {version}, with a line made anew {count} times",
          count == remade, job.said())


def away(tools):
    """For less than the lease, and the link timeout: nobody is lost, and no link. Both are so long
    that this process may stand still for five seconds meanwhile."""
    with shared.lab(nodes=3) as machines:
        near, far, _ = machines.nodes
        # Followers follow the leader's timers: by their own a link would be lost after 2 s.
        job = begin(tools, machines, "-n", "3", "--policy", "backup:2", "--lease", "30s",
                    "--link-timeout", "13s", nodes=(2, 2, 2))
        for what, node in (("the follower", far), ("the leader", near)):
            cut(node)
            time.sleep(2.5)
            fix(node)
            goes_on(job, f"{what} cut off for a part of the link timeout", 0)
        for what, process in (("follower", job.follower[0]), ("leader", job.server)):
            process.kill(signal.SIGSTOP)
            time.sleep(2)
            process.kill(signal.SIGCONT)
            goes_on(job, f"the {what} stopped", 0)
        job.enough()
        job.end_all()
        job.check_history(*SGD)


def line_anew(tools):
    """The link between two servers is lost for less than the lease, and made anew. What has been
    executed and not acknowledged comes again, and must not be executed again."""
    with shared.lab(nodes=3) as machines:
        near, far, _ = machines.nodes
        job = begin(tools, machines, "-n", "3", "--policy", "backup:2", "--lease", "12s",
                    "--link-timeout", "1100ms", nodes=(2, 2, 2))
        for count, (what, blocked) in enumerate((
                ("to the leader", [(near, far)]), ("to the follower", [(far, near)]),
                ("either way", [(near, far), (far, near)])), 1):
            for node, other in blocked:
                node.block(other)
            time.sleep(3)
            for node, _ in blocked:
                node.unblock()
            goes_on(job, f"nothing comes {what} for longer than the link timeout", count)
        job.enough()
        job.end_all()
        job.check_history(*SGD)
        said = re.findall("the link with .* is lost: .*", job.said())
        check("\n".join(said), said and all(re.search("lost: .{20}", line) for line in said))


def line_lost(tools):
    """Servers that hear of each other, but cannot reach each other's memory for a lease."""
    with shared.lab(nodes=3) as machines:
        near, far, _ = machines.nodes
        job = begin(tools, machines, *LONG, "--link-timeout", "1100ms", nodes=(2, 2))
        near.block(far)
        began = time.monotonic()
        job.all_fail(began, LEASE_S + LINK_S + SLACK_S, {
            "the": r"server 1 of 2 \(10\.78\.0\.2:\d+\) (had|gives up: there was) no link with",
            "server": "the leader has ended the job|no link with the leader",
            "rank": "server 1 of 2"})
        job.check_history(*SGD, "--kills")


def one_link(tools):
    """Between a worker's machine and one server: that worker is lost, and nobody else."""
    with shared.lab(nodes=3) as machines:
        for server in (1, 0):
            job = begin(tools, machines, "-n", "4", "--policy", "backup:3", nodes=(0, 1, 0, 2))
            machines[2].block(machines[server])
            began = time.monotonic()
            until(lambda: "rank 3 is gone" in job.server.output, 60, "rank 3 is lost")
            seconds = time.monotonic() - began
            said = re.search(r"rank 3 is gone.*", job.server.output)[0]
            print(f"{said} ({seconds:.1f} s)", flush=True)
            goes_on(job, "the others", 0)
            job.enough()
            job.end({0: 0, 1: 0, 2: 0, 3: 1}, seconds=120)
            job.followers_end(0)
            said = job.workers[3].output.strip()
            check(said, re.search(rf"server {server} \(?of", said) or
                  server == 0 and "10.77.0.3" in said, job.said())
            job.check_history(*SGD, "--kills")
            machines[2].unblock()


def footprint(tools):
    """What a device has in use, and what is registered of memory, is what was said at the start."""
    workers, elems = 3, 300000
    with shared.lab(nodes=3) as machines:
        job = Servers(tools, machines, "-n", str(workers))
        job.start_workers((2,) * workers, "sleep_us=100000", *job.until_enough(), elems=elems)
        job.wait_version(0, 2)
        links = {0: workers + 1, 1: workers + 1, 2: 2 * workers}
        for node in machines.nodes:
            shown = json.loads(node.run("rdma -j resource show qp").output)
            pairs = sum(row["type"] == "RC" for row in shown)
            check(f"{node.name}: {pairs} queue pairs, two for each of {links[node.index]} links",
                  pairs == 2 * links[node.index], shown)
        said = {"leader": (job.server, machines[0]), "follower": (job.follower[0], machines[1])}
        for name, (process, node) in said.items():
            # What workers write to, but for the smallest, which the other server does; and what
            # is composed for each worker. The largest that is sent from has the results.
            shown = json.loads(node.run("rdma -j resource show mr").output)
            slots = sorted(row["mrlen"] for row in shown if row["rkey"] != "0")[1:]
            composed = sorted(row["mrlen"] for row in shown if row["rkey"] == "0")[:workers]
            told = float(re.search(rf"memory: ([0-9.]+) MiB for {workers} workers",
                                   process.output)[1])
            held = sum(slots + composed) / 2**20
            check(f"{name}: {held:.2f} MiB are registered for workers, {told} were announced",
                  len(slots) == workers and abs(held - told) < 0.06, shown)
        job.enough()
        job.end_all()
        job.check_history(*SGD)
