#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Jobs that go on when servers are killed and started again (--server-patience), where workers own:
the workers come back by themselves, and lose no version and no contribution that they were told of.

usage: generations.py CASE --musterd MUSTERD --worker GOES_ON
       generations.py --list
"""
import contextlib
import os
import random
import signal
import socket
import tempfile
import time

import base
from base import Child, cases, check, main, must, until
from server import SECONDS, Server

AGAIN = 75
WORKERS = 3
SOON = 30  # s, less than a lease


class Line(base.Job):
    """A job whose servers are killed and started again at the same address. Each worker's history
    is read by rank and process."""

    def __init__(self, a, *options, servers=1, transport="shm", workers=WORKERS, patience="60s",
                 owner="workers", env=None, of_follower=None):
        """@env: of the leader. @of_follower: the same of a follower."""
        # Bound here, so that nobody else gets the port while no server has it.
        self.held = socket.socket()
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind(("127.0.0.1", 0))
        self.listen = f"127.0.0.1:{self.held.getsockname()[1]}"
        self.transport = transport
        self.patient = ["--server-patience", patience] if patience else []
        self.options = ["--workers", str(workers), "--owner", owner, "--servers", str(servers),
                        "--transport", transport, "--join-timeout", "10s", *options]
        self.env, self.of_follower, self.of_worker = env or {}, of_follower or {}, {}
        super().__init__(a, *self.patient, *self.options, listen=self.listen, **self.env)
        self.before = []  # servers that are over
        self.follower = [self.joined() for _ in range(servers - 1)]

    def __exit__(self, *of):
        super().__exit__(*of)
        self.held.close()

    def joined(self):
        return Child([self.a.musterd, "--join", self.listen, "--listen", "127.0.0.1:0",
                      *self.patient], **self.of_follower)

    def children(self):
        return self.worker + self.follower

    def lead(self, *more, patient=None):
        """Starts a leader in the place of the last one."""
        self.before.append(self.server)
        self.server = Server(self.a.musterd, *(self.patient if patient is None else patient),
                             *self.options, *more, listen=self.listen, **self.env)

    def trips(self, folder, line):
        """The servers from the next one on stand still at this moment (programs/trip.c)."""
        self.env = {"MUSTER_TRIP": folder}
        with open(os.path.join(folder, "server"), "w") as f:
            f.write(line)
        self.held_at = os.path.join(folder, "server.held")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.held_at)

    def is_held(self):
        must(until(lambda: os.path.exists(self.held_at), SECONDS),
             f"the server does not come to its moment: {self.said()}")

    def kill_server(self):
        self.server.kill()
        self.lead()

    def kill_leader_of_two(self):
        self.server.kill()
        self.again(self.follower[0])
        self.lead()
        self.follower = [self.joined()]

    def kill_follower(self):
        self.follower[0].kill()
        status, log = self.server.end(SOON)
        must(status == AGAIN, f"the leader ends with {status}: {log[-400:]}")
        self.lead()
        self.follower = [self.joined()]

    def again(self, follower):
        status, log = follower.end(SOON)
        must(status == AGAIN, f"the follower ends with {status}: {log[-400:]}")

    def join(self, rank, *words):
        """Starts a worker at this rank."""
        self.worker.append(Child([self.a.worker, self.path("log"), *words],
                                 **base.worker_environment(self.listen, rank),
                                 MUSTER_TRANSPORT=self.transport, **self.of_worker))
        return self.worker[-1]

    def join_all(self, *words, workers=WORKERS):
        for rank in range(workers):
            self.join(rank, *words)

    def stop(self, rank):
        self.worker[rank].process.send_signal(signal.SIGSTOP)

    def lines(self, rank, kind=None, process=None):
        """What the processes at this rank wrote, a list of words each."""
        found = []
        for number in (process,) if process else range(1, 99):
            path = self.path(f"log.{rank}.{number}")
            if not os.path.exists(path):
                break
            with open(path) as f:
                found += [line.split() for line in f if line.endswith("\n")]
        return [words for words in found if kind in (None, words[0])]

    def newest(self, rank=None):
        """The newest version that this rank has applied, or any."""
        ranks = range(WORKERS) if rank is None else [rank]
        return max((int(words[1]) for r in ranks for words in self.lines(r, "version")), default=0)

    def reaches(self, version, rank=None):
        def is_there():
            return self.newest(rank) >= version or all(
                w.process.poll() is not None for w in self.worker)
        there = until(is_there, SECONDS)
        must(there and self.newest(rank) >= version,
             f"version {version} is not reached, but {self.newest(rank)}: {self.said()}")

    def said(self):
        """For a failure: what all have said last."""
        servers = [*self.before[-2:], self.server, *self.follower]
        return "\n".join([*(w.said()[-1500:] for w in self.worker),
                          *(s.said()[-2500:] for s in servers),
                          *(str(line) for r in range(WORKERS) for line in self.lines(r)[-6:])])

    def ended(self, ranks=range(WORKERS), but=()):
        """The last words of each of these ranks, all of which are well. @but: errors that are no
        fault."""
        codes = [w.end(SECONDS)[0] for w in self.worker]
        strange = set(codes) - {0, -signal.SIGKILL} - ({3} if len(ranks) < WORKERS else set())
        must(not strange, f"workers exit with {codes}: {self.said()}")
        ends = []
        for rank in ranks:
            bad = self.lines(rank, "wrong") + [
                line for line in self.lines(rank, "error") if line[1] not in but]
            must(not bad, f"rank {rank}:", *bad, "\n", self.said())
            last = self.lines(rank, "end")
            must(len(last) == 1, f"rank {rank} has no end: {codes} {self.said()}")
            ends.append(last[0])
        return ends

    def is_over(self):
        status, log = self.server.end(SECONDS)
        must(status == 0, f"the last server ends with {status}: {log[-600:]}")


def figures(end):
    """The name and number of all that an end counts."""
    return dict(zip(end[3::2], map(int, end[4::2])))


def undisturbed(a, commits, *words):
    """The digest of the parameters at the end of a job whose server lives."""
    with Line(a, "--commits", str(commits), patience=None) as job:
        job.join_all(*words)
        ends = job.ended()
        must({(end[1], end[2]) for end in ends} == {(str(commits), ends[0][2])}, ends)
        return ends[0][2]


def exact(job, commits, digest, *but):
    """All ranks have all versions, and in each one contribution of each rank."""
    for rank, end in enumerate(job.ended(but=but)):
        told, taken = figures(end), len(job.lines(rank, "took"))
        must(end[1:3] == [str(commits), digest], f"{end}, not {commits} {digest}: {job.said()}")
        must(told["counted"] == commits and told["late"] == 0,
             f"{end}, {taken} states were taken: {job.said()}")
        must(told["pushed"] == commits + told["cancelled"], end)
    job.is_over()
    print(f"all ranks have the bits of a job that was not disturbed: {digest}")


def alike(job, commits):
    """A version is made without a rank that takes a state. All ranks end with the same."""
    ends = job.ended()
    must({(end[1], end[2]) for end in ends} == {(str(commits), ends[0][2])},
         f"{ends}: {job.said()}")
    for end in ends:
        told = figures(end)
        must(told["counted"] <= commits, end)
        must(told["pushed"] == told["counted"] + told["cancelled"] + told["late"], end)
    job.is_over()


def at_random(job, seed, times, most, hurt):
    """Calls @hurt at versions that are drawn, and a moment after them."""
    rand, version = random.Random(seed), 0
    for number in range(times):
        version = max(version, job.newest()) + rand.randint(1, most)
        job.reaches(version)
        time.sleep(rand.uniform(0, 0.003))  # somewhere in a version
        hurt(number)
    return job.newest()


def killed(a, times, commits, *words, most=8, states=False, **how):
    digest = "" if states else undisturbed(a, commits, *words)
    with Line(a, "--commits", str(commits), "--policy", "bsp", **how) as job:
        job.join_all(*words)

        def hurt(number):
            if how.get("servers", 1) == 1:
                job.kill_server()
            elif number % 2 == 0:
                job.kill_leader_of_two()
            else:
                job.kill_follower()

        reached = at_random(job, 35, times, most, hurt)
        must(reached < commits, f"the job was over before the last kill: version {reached}")
        if states:
            alike(job, commits)
        else:
            exact(job, commits, digest)
        cancelled = [figures(job.lines(r, "end")[0])["cancelled"] for r in range(WORKERS)]
        print(f"{times} kills, cancelled: {cancelled}")


def killed_between_answers(a, *words, **how):
    """One worker after another has not been given the version that the others may have."""
    commits, moments = 30, [2, 0, 1, 2, 1, 0]
    digest = undisturbed(a, commits, *words)
    with tempfile.TemporaryDirectory() as folder, \
            Line(a, "--commits", str(commits), "--policy", "bsp", **how) as job:
        a.musterd, plain = a.trip_musterd, a.musterd
        for number, rank in enumerate(moments):
            job.trips(folder, f"before put answer {rank} {2 + number % 3}\n")
            job.kill_server()
            if number == 0:
                job.join_all(*words)
            job.is_held()
        a.musterd, job.env = plain, {}
        job.kill_server()
        exact(job, commits, digest)
        tickets = [figures(job.lines(r, "end")[0]) for r in range(WORKERS)]
        lost = [t["cancelled"] for t in tickets]
        print(f"{len(moments)} kills, cancelled: {lost}")


def killed_in_the_first_start(a, *words):
    """Some of three have the first version, and nobody has made another."""
    commits = 20
    digest = undisturbed(a, commits, *words)
    for rank in range(1, WORKERS):
        with tempfile.TemporaryDirectory() as folder, Line(a, "--commits", str(commits)) as job:
            a.musterd, plain = a.trip_musterd, a.musterd
            job.trips(folder, f"before put answer {rank} 1\n")
            job.kill_server()
            job.join_all(*words)
            job.is_held()
            must(until(lambda n=rank: all(job.lines(r, "began") for r in range(n)), SECONDS),
                 f"ranks 0 to {rank - 1} have not begun: {job.said()}")
            a.musterd, job.env = plain, {}
            job.kill_server()
            exact(job, commits, digest)


def hang_up_on(address, count):
    """A server that is killed as soon as it has taken so many hellos."""
    host, port = address.split(":")
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen()
        taken = [listener.accept()[0] for _ in range(count)]
    for connection in taken:
        connection.recv(16)
        connection.close()


SMALL = ["elems=1000", "pace_us=700"]
LARGE = ["elems=1000000", "pace_us=500"]  # 4 MB: so that deliveries take their time


def killed_twenty_times(a):
    killed(a, 20, 600, *SMALL)


def killed_over_tcp(a):
    killed(a, 6, 40, *LARGE, most=4, transport="tcp")


def killed_with_results_of_its_own(a):
    killed(a, 6, 40, *LARGE, "into=1", most=4)


def killed_with_results_of_its_own_far_away(a):
    killed(a, 6, 40, *LARGE, "into=1", most=4, transport="tcp")


def killed_with_results_of_its_own_over_tcp(a):
    """These workers take states, so nobody keeps a copy of its result for others."""
    killed(a, 6, 40, *LARGE, "into=1", "comes_back=1", most=4, states=True, transport="tcp")


def between_answers(a):
    killed_between_answers(a, *SMALL)


def after_the_hello(a):
    """The first server closes all connections, and the next one is there a moment later."""
    commits = 20
    digest = undisturbed(a, commits, *SMALL)
    with Line(a, "--commits", str(commits)) as job:
        job.server.kill()
        job.join_all(*SMALL)
        hang_up_on(job.listen, WORKERS)
        time.sleep(0.3)  # nobody is there
        job.lead()
        exact(job, commits, digest)


def before_the_links(a):
    """The server has welcomed workers, one or all, and does not take their links any more."""
    commits = 20
    digest = undisturbed(a, commits, *SMALL)
    with tempfile.TemporaryDirectory() as folder, Line(a, "--commits", str(commits)) as job:
        a.musterd, plain = a.trip_musterd, a.musterd
        job.trips(folder, "before poll - - 1\n")
        job.kill_server()
        job.join_all(*SMALL)
        job.is_held()
        must(until(lambda: " joined from " in job.server.said(), SECONDS),
             f"nobody has joined: {job.said()}")
        a.musterd, job.env = plain, {}
        job.kill_server()
        exact(job, commits, digest)


def welcome_and_end_in_one_moment(a):
    """Workers are stopped when they have said hello, and the server is killed after its answer."""
    commits = 20
    digest = undisturbed(a, commits, *SMALL)
    with Line(a, "--commits", str(commits)) as job:
        job.server.process.send_signal(signal.SIGSTOP)
        job.join_all(*SMALL)
        time.sleep(0.5)  # until all have said hello; it shows nothing if they have not
        for rank in range(WORKERS):
            job.stop(rank)
        job.server.process.send_signal(signal.SIGCONT)
        until(lambda: job.server.said().count(" joined from ") == WORKERS, 2)
        job.kill_server()
        for worker in job.worker:
            worker.process.send_signal(signal.SIGCONT)
        exact(job, commits, digest)


def in_the_first_start(a):
    killed_in_the_first_start(a, *SMALL)


def in_the_first_start_with_a_state(a):
    killed_in_the_first_start(a, *SMALL, "offers=1")


def between_answers_into_own_memory(a):
    killed_between_answers(a, *SMALL, "into=1")


def one_of_two_is_killed(a):
    killed(a, 6, 40, *LARGE, most=4, servers=2)


def one_of_two_is_killed_over_tcp(a):
    killed(a, 6, 40, *LARGE, most=4, servers=2, transport="tcp")


def asked_all_the_time(a):
    killed(a, 6, 200, *SMALL, "check=1")


def same_everywhere(job, commits, quorum):
    """All ranks that have a version have the same of it. Who the last steps did not wait for may
    end with an earlier one."""
    digests = {}
    for rank in range(WORKERS):
        had = [words for kind in ("version", "took", "end") for words in job.lines(rank, kind)]
        for _, version, digest in (words[:3] for words in had):
            digests.setdefault(version, set()).add(digest)
    differ = {v: d for v, d in digests.items() if len(d) > 1}
    must(not differ, f"ranks differ at versions {differ}")
    ends = [int(job.lines(rank, "end")[-1][1]) for rank in range(WORKERS)]
    must(ends.count(commits) >= quorum and max(ends) == commits,
         f"ranks end at {ends}: {job.said()}")


def under_a_quorum(a):
    """Versions are made of two of three. Each is what its set says, and the same in all ranks. All
    are kept, so that a rank that has taken a state has the last version, too."""
    commits = 300
    with Line(a, "--commits", str(commits), "--policy", "backup:2", "--history",
              str(commits)) as job:
        job.join_all("comes_back=1", *SMALL)
        at_random(job, 36, 10, 8, lambda _: job.kill_server())
        ends = job.ended()
        same_everywhere(job, commits, 2)
        job.is_over()
        print("all ranks are equal:", *(" ".join(end[1:]) for end in ends))


def stands_still_and_is_killed(a):
    """The workers have given it up; its port still takes connections, and nobody answers."""
    commits = 60
    digest = undisturbed(a, commits, *SMALL)
    with Line(a, "--commits", str(commits), "--lease", "1s", "--server-lease", "2s") as job:
        job.join_all(*SMALL, "wait_ms=500")
        job.reaches(5)
        job.server.process.send_signal(signal.SIGSTOP)
        must(until(lambda: all("has been lost for" in " ".join(line) for rank in range(WORKERS)
                               for line in job.lines(rank, "error")[-1:] or [[]]), SECONDS),
             f"nobody gives it up: {job.said()}")
        job.kill_server()
        exact(job, commits, digest, "-110")


def server_and_worker_are_killed(a):
    commits = 80
    words = ["comes_back=1", "elems=1000", "pace_us=2000"]
    with Line(a, "--commits", str(commits), "--history", "100") as job:
        job.join_all(*words)
        job.reaches(5, 1)
        job.worker[1].kill()
        job.kill_server()
        job.join(1, *words)
        job.ended()
        same_everywhere(job, commits, WORKERS)
        check("the new process has taken a state", job.lines(1, "took", process=2))
        check("and contributes", figures(job.lines(1, "end")[0])["counted"] > 0)
        job.is_over()


def new_worker_without_a_state(a):
    commits = 40
    with Line(a, "--commits", str(commits)) as job:
        job.join_all(*SMALL)
        job.reaches(5, 1)
        job.worker[1].kill()
        job.kill_server()
        late = job.join(1, *SMALL)
        status, said = late.end(SECONDS)
        words = " ".join(sum(job.lines(1, "error", process=2), [])) + said
        check(f"it is told what it lacks: {status} {words.strip()[-300:]}",
              status in (1, 3) and "comes_back" in words)
        ends = job.ended((0, 2))
        check(f"the others go on: {ends}", {end[1] for end in ends} == {str(commits)})


def forked_adrift(a):
    commits = 60
    digest = undisturbed(a, commits, *SMALL)
    with Line(a, "--commits", str(commits)) as job:
        for rank in range(WORKERS):
            job.join(rank, *SMALL, *(["fork_at=5"] if rank == 1 else []))
        job.reaches(5, 1)
        job.server.kill()
        check("it has forked, and its child has closed the handle", until(
            lambda: job.lines(1, "forked"), SECONDS))
        job.lead()
        exact(job, commits, digest)


def wrong_servers_take_its_place(a):
    """A server that is started there by mistake ends no worker: the right one may still come."""
    wrong = [("takes nothing that workers bring", {"patient": []}, []),
             ('this server runs "other"', {}, ["--job", "other"]),
             ("does not match", {}, ["--elems", "5"])]
    with Line(a) as job:
        job.join_all(*SMALL)
        for words, how, options in wrong:
            job.reaches(job.newest() + 5)
            job.server.kill()
            job.lead(*options, **how)
            check(f"workers are refused: {words}", until(
                lambda words=words: job.server.said().count(words) >= WORKERS, SECONDS))
            check("they try on", all(w.process.poll() is None for w in job.worker))
            if words == wrong[-1][0]:
                commits = job.newest() + 60
                job.options += ["--commits", str(commits)]
            job.kill_server()
        exact(job, commits, undisturbed(a, commits, *SMALL))


# ---- what does not go on ----

def last_words(job, rank):
    status, said = job.worker[rank].end(SECONDS)
    return status, " ".join(sum(job.lines(rank, "error")[-1:], [])) + said[-600:]


def are_told(a, ranks, *words, patient=None, owner=None, workers=None):
    """What these ranks are told by a server with these options in place of theirs."""
    with Line(a, "--commits", "100000", patience="3s", workers=WORKERS) as job:
        job.join_all(*SMALL)
        job.reaches(5)
        job.server.kill()
        options = {"--owner": owner, "--workers": workers}
        job.options = [options.get(before) or word
                       for before, word in zip([None, *job.options], job.options)]
        job.lead(patient=patient)
        for rank in ranks:
            status, said = last_words(job, rank)
            check(f"rank {rank} ends with {status}: {said.strip()[-400:]}",
                  status == 3 and all(word in said for word in words))


def successor_without_patience(a):
    are_told(a, range(WORKERS), "takes nothing that workers bring",
             "start it with --server-patience", patient=[])


def successor_where_servers_own(a):
    are_told(a, range(WORKERS), "--owner", owner="servers")


def successor_for_fewer_workers(a):
    are_told(a, [2], "has 2 workers now, ranks 0 to 1", workers="2")


def nobody_takes_its_place(a):
    with Line(a, "--commits", "100000", patience="2s") as job:
        job.join_all(*SMALL)
        job.reaches(5)
        job.server.kill()
        for rank in range(WORKERS):
            status, said = last_words(job, rank)
            check(f"rank {rank} ends with {status}: {said.strip()[-400:]}",
                  status == 3 and said.startswith("error -107 ") and "--server-patience" in said)


CASES = cases(killed_twenty_times, killed_over_tcp, killed_with_results_of_its_own,
              killed_with_results_of_its_own_far_away,
              killed_with_results_of_its_own_over_tcp, between_answers,
              between_answers_into_own_memory, after_the_hello, before_the_links,
              in_the_first_start,
              in_the_first_start_with_a_state, one_of_two_is_killed,
              one_of_two_is_killed_over_tcp, asked_all_the_time, under_a_quorum,
              stands_still_and_is_killed, server_and_worker_are_killed,
              new_worker_without_a_state, forked_adrift, wrong_servers_take_its_place,
              welcome_and_end_in_one_moment,
              successor_without_patience,
              successor_where_servers_own, successor_for_fewer_workers, nobody_takes_its_place)
if __name__ == "__main__":
    # A lease of a second, which is over for nobody but for whoever is stopped.
    main(CASES, "musterd", "worker", "trip-musterd", clock=("stands_still_and_is_killed",),
         paths=("killed_twenty_times", "between_answers", "asked_all_the_time", "under_a_quorum",
                "server_and_worker_are_killed", "forked_adrift", "nobody_takes_its_place",
                "successor_without_patience"))
