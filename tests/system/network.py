#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Jobs between hosts over TCP: network namespaces at a switch (hosts.py), whose cards are cut,
switched off and slowed down.

usage: network.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER --transfer PROGRAM
       network.py --list
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from base import HANG_S, Child, cases, check, main, must, until, worker_environment
from hosts import Job, Network
from server import SECONDS
from servers import newest, wrote
from tls import environment, make_keys, options

BACKUP = ("-n", "5", "--policy", "backup:4")
# No case waits for a lease. One that must not be over has to be longer than what is waited for.
ENDLESS = ("--lease", "300s", "--server-lease", "300s", "--patience", "300s")
DEAD_S = 2  # after which a host that acknowledges nothing is lost, unless a busy host is slow
STILL_S = 3  # longer than that


def play(a, hosts, servers, run, words, *proof, elems=20001):
    """One job to its end, whose history is proven; its followers are at the last hosts."""
    with Job(a, hosts, "--optimizer", "sgd:lr=0.1,momentum=0.9", *run, "--servers",
             str(servers)) as job:
        job.elems = elems
        for i in range(1, servers):
            job.join(hosts.count - i)
        job.work_all(int(run[run.index("-n") + 1]), *words)
        job.settle()
        job.proven(*proof)


def exact_one_server(a):
    """Late contributions, one at a time, ranges, and memory of the workers' own."""
    with Network(6) as hosts:
        play(a, hosts, 1, [*BACKUP, "--commits", "100"], ["sleep_us=500", "4:sleep_us=8000"],
             "--seen", "late")
        play(a, hosts, 1, ["-n", "4", "--policy", "async", "--commits", "120"], [], "--count", "1")
        play(a, hosts, 1, ["-n", "3", "--policy", "kbatchsync:4", "--commits", "30"],
             ["ranges=7", "registered=1", "into=1", "result_type=bf16"], elems=400001)


def exact_two_servers(a):
    with Network(6) as hosts:
        play(a, hosts, 2, [*BACKUP, "--commits", "60"], ["sleep_us=500", "4:sleep_us=8000"],
             "--seen", "late")
        play(a, hosts, 2, ["-n", "3", "--policy", "kbatchasync:4", "--chunk", "4K", "--commits",
                           "20"], ["ranges=3"])


def exact_three_servers(a):
    with Network(4) as hosts:
        play(a, hosts, 3, ["-n", "3", "--policy", "backup:2", "--commits", "30", "--partition",
                           "1,2,1"], ["registered=1", "ranges=7", "into=1"])


def network_of(worker):
    """Over what this worker's links go, and over what they do not: as its log says."""
    said = re.search(r"rank \d+ of .* over (\w+), [^;]*?encrypted[^;]*(?:; (.*))?", worker.said())
    return (said[1], said[2] or "") if said else ("", "")


def links_told(a, job, *proof):
    """(network, is it encrypted?) of each rank and of each server, as muster status has them; and
    the text that it prints."""
    ask = [a.muster, "status", job.address, "--timeout", f"{SECONDS}s", *proof]
    said = subprocess.run([*ask, "--json", job.path("status")], preexec_fn=job.hosts[0].enter,
                          check=True, capture_output=True, text=True).stdout
    with open(job.path("status")) as f:
        figures = json.load(f)
    return (*([(row["network"], row["encrypted"]) for row in figures[of]]
              for of in ("ranks", "servers")), said)


def several_networks(a):
    """One job, in which those at the server's host use its shared memory, and others TCP. They hold
    up nobody, come back at another place, and all that counts is exact."""
    with Network(4) as hosts, Job(a, hosts, *BACKUP, transport="auto",
                                  places=[0, 0, 1, 2, 0]) as job:
        job.elems = 20001
        job.work_all(5, "sleep_us=1000", "1:die=5", "2:die=9", "4:sleep_us=8000", *job.ended_by(0))
        for rank, place in ((1, 3), (2, 0)):
            job.lost(rank)
            job.places[rank] = place
            job.work(rank, "sleep_us=1000", "again=1")
            job.came_again(rank)
        over = [network_of(worker) for worker in job.worker]
        job.must(f"by their logs links go over {over}",
                 [name for name, _ in over[2:6]] == ["tcp", "tcp", "", "tcp"] and
                 "not shm: this process sees no listener" in over[2][1])
        job.must("so says the server, and why not over another",
                 all(f"rank {rank} is linked over tcp, not encrypted" in job.server.said()
                     for rank in (1, 2, 3)) and
                 re.search("rank 3 says .* another network: not shm: this process sees no listener",
                           job.server.said()))
        ranks, servers, text = links_told(a, job)
        job.must(f"so does muster status: {ranks}", servers == [(None, None)] and ranks ==
                 [(name, False) for name in ("shm", "tcp", "shm", "tcp", "shm")])
        rows = re.findall(r"^ +\d +\w+ .* (\S+)$", text, re.M)
        job.must(f"and its table: {rows}", rows == ["shm", "tcp", "shm", "tcp", "shm"])
        job.end_job()
        job.settle(0, -9, -9, 0, 0, 0, 0)
        job.proven("--kills")


def one_network_for_all_servers(a):
    """A worker sees the shared memory of one of two servers, and uses TCP to both."""
    with Network(3) as hosts, Job(a, hosts, "-n", "2", "--servers", "2", "--commits", "30",
                                  transport="auto", places=[0, 1]) as job:
        job.elems = 20001
        job.join(2)
        job.work_all(2)
        job.settle()
        over = [network_of(worker) for worker in job.worker]
        job.must(f"by their logs links go over {over}",
                 all(name == "tcp" and "not shm" in why for name, why in over))
        job.proven()


def digits(a):
    """The main job, a worker at each host: one is slow, and one is killed."""
    with Network(6) as hosts, tempfile.TemporaryDirectory() as folder:
        a.worker = a.digits
        with Job(a, hosts, *BACKUP, "--commits", "60") as job:
            for rank in range(5):
                delay = {3: ["--delay", "3:const:25"], 4: ["--delay", "4:const:20"]}.get(rank, [])
                job.worker.append(Child(
                    [a.digits, "--product", "plain", "--delay", "const:5", "--json",
                     os.path.join(folder, str(rank)), *delay],
                    preexec_fn=job.host_of(rank).enter, MUSTER_HISTORY=job.log,
                    **worker_environment(job.address, rank)))
            job.awaits("rank 4 has pushed", lambda: wrote(f"{job.log}.4.1") > 300)
            job.worker[4].signal(signal.SIGKILL)
            job.settle(0, 0, 0, 0, -9)
            job.proven("--kills")
            with open(os.path.join(folder, "0")) as f:
                accuracy = json.load(f)["accuracy"]
            check(f"the digits are learnt: {accuracy}", accuracy > 0.8)


def late_follower(a):
    """The leader and all workers wait for a server that comes late."""
    with Network(4) as hosts, Job(a, hosts, "-n", "3", "--commits", "40", "--servers", "3") as job:
        job.elems = 20001
        job.join(1)
        job.work_all(3)
        job.awaits("all are there", lambda: job.leader.said().count(" of 3 joined from ") == 1 and
                   all("INSECURE" in w.said() for w in job.worker))
        job.join(2)
        job.settle()
        job.proven()


def rejoin(a):
    """Two workers that are killed come back, one after the other, to three servers."""
    with Network(6) as hosts, Job(a, hosts, *BACKUP, "--servers", "3") as job:
        job.elems = 20001
        job.join(4)
        job.join(5)
        job.work_all(5, "sleep_us=1000", "2:die=5", "3:die=9", *job.ended_by(0))
        for rank in (2, 3):
            job.lost(rank)
            job.work(rank, "sleep_us=1000", "again=1")
            job.came_again(rank)
        job.end_job()
        job.settle(0, 0, -9, -9, 0, 0, 0)
        job.proven("--kills")


def state_transfer(a):
    """A worker that was away takes the state of another one, through the server, in pieces."""
    with Network(4) as hosts, Job(a, hosts, "-n", "3", "--owner", "workers", "--history", "2",
                                  "--catch-up", "4096", *ENDLESS, lease=()) as job:

        def start(rank, *words):
            job.worker.append(Child([a.transfer, job.log, *words],
                                    preexec_fn=job.host_of(rank).enter,
                                    **worker_environment(job.address, rank)))

        def lines(rank, session, word):
            path = f"{job.log}.{rank}.{session}"
            if not os.path.exists(path):
                return []
            with open(path) as f:
                return [line for line in f.read().split("\n")[:-1] if line.startswith(word)]

        def version(rank, session=1):
            seen = lines(rank, session, "version ")
            return int(seen[-1].split()[1]) if seen else 0

        for rank in range(3):
            start(rank, f"until={job.path('enough')}")
        job.awaits("the job runs", lambda: version(2) > 5)
        job.worker[2].signal(signal.SIGKILL)
        job.lost(2)
        so_far = version(0)
        job.awaits("the others go on", lambda: version(0) > so_far + 20)
        start(2, f"until={job.path('enough')}")
        job.awaits("rank 2 has the state of another", lambda: lines(2, 2, "took"))
        job.awaits("and goes on", lambda: version(2, 2) > version(0) - 20 > 0)
        job.end_job()
        job.settle(0, 0, -9, 0)


def losses(job, rank):
    """What the server has said each time that it lost this rank."""
    return re.findall(rf"rank {rank} (?:is gone|was silent|broke).*", job.server.said())


def without_its_host(job, rank, away, back):
    """The host of a worker goes, and is back; another worker has the rank then."""
    victim, before = job.worker[-1], len(losses(job, rank))
    away()
    job.awaits(f"rank {rank} is lost", lambda: len(losses(job, rank)) > before)
    words = losses(job, rank)[-1]
    quiet = re.search(r"has acknowledged nothing for (\d+) ms", words)
    # Measured by the one who noticed. The factor is for a host of tests that is busy.
    job.must(f"it is its host that is named, and soon: {words}",
             quiet and int(quiet[1]) < 10000 * DEAD_S)
    job.begin(wrote(f"{job.log}.0.1") + 1000, ranks=[0])
    status, said = victim.end(HANG_S)
    job.must(f"the worker says why: {said.strip().splitlines()[-1]}",
             status == 1 and re.search(r"the host of \S+ has acknowledged nothing|"
                                       r"server \d.*silent", said))
    back()
    job.work(rank, "again=1", "sleep_us=2000")
    job.awaits("it is back", lambda: wrote(f"{job.log}.{rank}.{len(job.worker) - 4}") > 2000)


def worker_host_cut(a):
    """The switch passes nothing on, which both ends can only know from silence; then the host's own
    card is down. Each time the others go on, and the rank comes back when the host is back."""
    with Network(6) as hosts, Job(a, hosts, *BACKUP, *ENDLESS) as job:
        job.work_all(5, "sleep_us=10000", *job.ended_by(0))
        job.begin(1000)
        host = job.host_of(4)
        without_its_host(job, 4, host.cut, host.fix)
        without_its_host(job, 4, host.down, host.up)
        job.end_job()
        job.settle(0, 0, 0, 0, 1, 1, 0)
        job.proven("--kills")


def server_host_cut(a):
    """There is no job without a server: all that are not cut off end with a sentence that names
    what is gone, and nobody waits for a lease. A server that is cut off looks for its leader until
    that can be reached again, and is not there any more."""
    with Network(5) as hosts:
        for gone, words in ((4, "the host of 10.78.0.5:"), (0, "the host of 10.78.0.1:")):
            with Job(a, hosts, "-n", "3", "--servers", "2", *ENDLESS) as job:
                job.elems = 9001
                job.join(4)
                job.work_all(3, "sleep_us=10000")
                job.begin(1000)
                hosts[gone].cut()
                ends = [worker.end(HANG_S) for worker in job.worker]
                last = [(said.strip().splitlines() or [""])[-1] for _, said in ends]
                # Who stands still meanwhile may hear that no worker is left.
                job.must("the workers end and say why:\n  " + "\n  ".join(last),
                         all(status == 1 for status, _ in ends) and
                         any(words in w for w in last) and
                         all(words in w or "fewer than 1 live" in w for w in last))
                status, said = job.leader.end(HANG_S)
                job.must(f"so does the leader: {said.strip().splitlines()[-1]}", status == 1)
                hosts[gone].fix()
                status, said = job.follower[0].end(HANG_S)
                job.must(f"and the follower: {said.strip().splitlines()[-1]}", status == 1)
                job.proven("--kills")


def server_line_cut(a):
    """Two servers that reach all workers, and not each other, lose their line; they have it anew
    when they can, and no version is wrong. Nobody is evicted."""
    with Network(6) as hosts, Job(a, hosts, *BACKUP, "--servers", "2", *ENDLESS) as job:
        job.elems = 9001
        job.places = [1, 2, 3, 4, 1]
        job.join(5)
        job.work_all(5, "sleep_us=10000", *job.ended_by(0))
        job.begin(1000)
        hosts[0].isolate()
        hosts[5].isolate()
        job.awaits("the line is lost", lambda: "the link with server 1 is lost" in
                   job.leader.said())
        hosts[0].isolate(False)
        hosts[5].isolate(False)
        job.awaits("it is there again", lambda: "linked with the leader again" in
                   job.follower[0].said())
        job.begin(wrote(f"{job.log}.0.1") + 1000, ranks=[0])
        job.end_job()
        job.settle()
        job.must("nobody was evicted", "is gone" not in job.leader.said())
        job.proven()


def stands_still(a):
    """A worker, the leader or a follower stands still for longer than a dead host would be borne:
    its kernel answers, so no link ends, and no lease is over. Data fill each window meanwhile."""
    with Network(6) as hosts:
        for host in hosts.hosts:
            host.have_small_buffers()
        for victim in ("worker", "leader", "follower"):
            with Job(a, hosts, *BACKUP, "--servers", "2") as job:
                job.elems = 150001
                job.join(5)
                job.work_all(5, "sleep_us=50000", *job.ended_by(0))
                job.begin(1000)
                who = {"worker": job.worker[4], "leader": job.leader,
                       "follower": job.follower[0]}[victim].process
                who.send_signal(signal.SIGSTOP)
                time.sleep(STILL_S)
                who.send_signal(signal.SIGCONT)
                so_far = newest(f"{job.log}.4.1")
                job.awaits("rank 4 goes on", lambda v=so_far: newest(f"{job.log}.4.1") > v + 5)
                job.end_job()
                job.settle()
                lost = re.findall(r".*(?:is gone|was silent|linked .*again).*", job.all_said())
                job.must(f"the {victim} stood still, and nothing was lost: {lost}", not lost)
                job.proven()


def slow_reader(a):
    """A worker that reads nothing, while the server has a result for it that is longer than all
    buffers on the way, holds up itself alone."""
    with Network(6) as hosts:
        for host in hosts.hosts:
            host.have_small_buffers()
        with Job(a, hosts, *BACKUP, *ENDLESS) as job:
            job.elems = 300001
            job.work_all(5, *job.ended_by(0))
            job.begin(600)
            job.worker[4].signal(signal.SIGSTOP)
            so_far = newest(f"{job.log}.0.1")
            job.awaits("the others go on", lambda: newest(f"{job.log}.0.1") >= so_far + 30)
            job.worker[4].signal(signal.SIGCONT)
            was = newest(f"{job.log}.4.1")
            job.awaits("it goes on", lambda: newest(f"{job.log}.4.1") > was)
            job.end_job()
            job.settle()
            job.proven()


def pushes(log):
    with open(log) as f:
        return sum(line.startswith("push ") for line in f)


def slow_link(a):
    """A host that sends, or is sent to, at 2.4 Mb/s, so that a push or a result takes 0.8 s: the
    others make their versions meanwhile."""
    with Network(6) as hosts:
        for host in hosts.hosts:
            host.have_small_buffers()
        for name, shape in (("sends", hosts[5].shape), ("is sent to", hosts[5].shape_port)):
            with Job(a, hosts, *BACKUP, *ENDLESS) as job:
                job.elems = 60001
                job.work_all(5, "sleep_us=5000", *job.ended_by(0))
                job.begin(2000)
                if not shape("tbf rate 2400kbit burst 16k latency 10s"):
                    print("skipped: this kernel has no token bucket (sch_tbf)")
                    sys.exit(77)
                began = newest(f"{job.log}.0.1")
                slow = pushes(f"{job.log}.4.1")
                job.awaits("it goes on", lambda s=slow: pushes(f"{job.log}.4.1") >= s + 3)
                made, pushed = newest(f"{job.log}.0.1") - began, pushes(f"{job.log}.4.1") - slow
                # At the speed of the slow one it would be one version for each of its pushes.
                job.must(f"a worker that {name} slowly pushes {pushed} times while the others make "
                         f"{made} versions", made >= 5 * pushed)
                shape(None)
                job.end_job()
                job.settle()
                job.proven()


def loss(a):
    """Frames are lost, late and overtaken, where this kernel can do that: nobody is lost for it."""
    with Network(4) as hosts:
        if not all(h.shape("netem delay 20ms reorder 25% 50% loss 0.5%") for h in hosts.hosts):
            print("skipped: this kernel loses nothing (sch_netem); tests/vm/tcp.py has the same")
            sys.exit(77)
        with Job(a, hosts, "-n", "3", "--policy", "backup:2", "--commits", "40", "--servers",
                 "2") as job:
            job.elems = 20001
            job.join(3)
            job.work_all(3)
            job.settle()
            lost = re.findall(r".*(?:is gone|was silent|is lost).*", job.all_said())
            job.must(f"nobody is lost: {lost}", not lost)
            job.proven()


def certificates(a):
    """Every role proves itself over the network: servers, workers, an operator and an observer. Who
    has none, or one of another role, is refused."""
    with Network(5) as hosts, tempfile.TemporaryDirectory() as folder:
        keys = make_keys(a, os.path.join(folder, "keys"))
        with Job(a, hosts, "-n", "3", "--policy", "backup:2", "--servers", "2",
                 secure=options(keys, "server")) as job:
            job.elems = 9001

            def tool(role, *words):
                proof = options(keys, role) if role else ["--insecure"]
                done = subprocess.run([a.muster, *words, job.address, "--timeout", f"{SECONDS}s",
                                       *proof], preexec_fn=hosts[3].enter, check=False,
                                      capture_output=True, text=True)
                return done.returncode, done.stdout + done.stderr

            job.join(4)
            for rank in range(3):
                job.work(rank, "sleep_us=1000", *job.ended_by(0), "2:die=20",
                         **environment(keys, "worker"))
            job.begin(1500)
            job.lost(2)
            job.work(2, "rounds=1")
            status, said = job.worker.pop().end(HANG_S)
            job.must(f"a worker without one: {said.strip().splitlines()[-1]}",
                     status == 1 and "proves itself by TLS" in said)
            job.work(2, "rounds=1", **environment(keys, "observer"))
            status, said = job.worker.pop().end(HANG_S)
            job.must(f"an observer is no worker: {said.strip().splitlines()[-1]}", status == 1)
            job.work(2, "again=1", **environment(keys, "worker"))
            job.came_again(2)
            status, said = tool("observer", "status")
            job.must(f"an observer looks: {said.splitlines()[:1]}", status == 0)
            ranks, servers, said = links_told(a, job, *options(keys, "observer"))
            job.must(f"over which networks, and that it is encrypted: {ranks}, {servers}",
                     ranks == 3 * [("tcp", True)] and servers == [(None, None), ("tcp", True)] and
                     said.count(" tcp+tls") == 4 and
                     "server 1 is linked over tcp, encrypted" in job.leader.said())
            status, said = tool("observer", "finish")
            job.must(f"and does no more: {said.strip()}", status != 0)
            status, said = tool(None, "status")
            job.must(f"nobody else looks: {said.strip().splitlines()[-1]}", status != 0)
            status, said = tool("operator", "finish")
            job.must(f"an operator ends the job: {said.strip()}", status == 0)
            job.settle(0, 0, -9, 0)
            job.proven("--kills")


def resources(process):
    """Descriptors, threads and KiB of a process."""
    with open(f"/proc/{process.pid}/status") as f:
        status = f.read()
    return (len(os.listdir(f"/proc/{process.pid}/fd")),
            *(int(re.search(rf"{what}:\s+(\d+)", status)[1]) for what in ("Threads", "VmRSS")))


def flat(a, rejoins):
    """Ranks come and go, four at a time; what both servers hold for them they give back. No rank
    comes so often that it would have to wait for that (rejoins.h)."""
    together, ranks = 4, 4 * max(1, rejoins // 80)
    with Network(4) as hosts, Job(a, hosts, "-n", str(ranks + 1), "--policy", "async",
                                  "--servers", "2", *ENDLESS) as job:
        job.elems = 9001
        job.join(3)
        servers = job.leader.process, job.follower[0].process

        def come_and_go(some):
            for rank in some:
                job.work(rank, "again=1", f"rounds={1 + rank % 3}")
            ends = [job.worker.pop().end(HANG_S) for _ in some]
            must(not any(status for status, _ in ends), ends, job.all_said())

        def rounds(count):
            for i in range(count):
                first = i * together % ranks
                come_and_go(range(1 + first, 1 + first + together))

        job.work(0, "sleep_us=20000", *job.ended_by(0))
        come_and_go(range(1, 1 + ranks))
        before = [resources(s) for s in servers]
        rounds(rejoins // together)
        is_back = until(lambda: [resources(s)[:2] for s in servers] == [b[:2] for b in before])
        after = [resources(s) for s in servers]
        job.must(f"after {rejoins} rejoins: descriptors, threads, KiB were {before}, are {after}",
                 is_back)
        grown = max(now[2] - then[2] for now, then in zip(after, before))
        # What a server has for a session is more than 100 KiB: if it stayed, that would show.
        job.must(f"no server has grown by more than {grown} KiB", grown < 5 * rejoins + 2048)
        job.end_job()
        job.settle()


def flat_a_hundred(a):
    flat(a, 100)


def flat_a_thousand(a):
    flat(a, 1000)


def nothing_is_left(a):
    """A test that is killed leaves no process and no network."""

    def cards():
        with open("/proc/net/dev") as f:
            return sorted(line.split(":")[0].strip() for line in f if ":" in line)

    before = cards()
    said, said_w = os.pipe()
    test = os.fork()
    if test == 0:
        with Network(2) as hosts, Job(a, hosts, "-n", "1") as job:
            job.work(0, "sleep_us=1000")
            job.begin()
            os.write(said_w, f"{job.server.process.pid} {job.worker[0].process.pid}".encode())
            signal.pause()
    os.close(said_w)
    pids = os.read(said, 64).decode().split()
    if not pids:  # it has said why
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(test, 0)[1]))
    os.kill(test, signal.SIGKILL)
    os.waitpid(test, 0)

    def lives(pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    check(f"server and worker, {pids}, are gone", until(lambda: not any(map(lives, pids))))
    check(f"this host has the cards that it had: {before}", cards() == before)


CASES = cases(exact_one_server, exact_two_servers, exact_three_servers, several_networks,
              one_network_for_all_servers, digits, late_follower,
              rejoin, state_transfer, worker_host_cut, server_host_cut, server_line_cut,
              stands_still, slow_reader, slow_link, loss, certificates, flat_a_hundred,
              flat_a_thousand, nothing_is_left)
if __name__ == "__main__":
    # CMake has the two that need more, or take long.
    main(CASES, "musterd", "worker", "muster", "transfer", "digits",
         unlisted=("digits", "flat_a_thousand"), paths=("exact_two_servers", "rejoin"))
