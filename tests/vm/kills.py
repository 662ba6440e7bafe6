# SPDX-License-Identifier: MIT
"""The most telling cells of the kill matrix over RDMA verbs, in a machine with soft-RoCE: processes
that stand still at exactly a moment (tests/system/programs/trip.c), and what is done to them then.
"""
import json
import re
import signal
import time
import types

import shared
from checks import Failed, check, until
from job import PORT, Job

LEASE_S = 11.0  # half of it is more than this process may stand still beside the machine
SGD = ["--optimizer", "sgd:0.1,0.9"]
COMMITS, AT, WORKERS = 60, 10, range(5)


class TripJob(Job):
    """As a job of five in one machine, whose processes follow plans."""

    def __init__(self, tools, machine_lab, plans):
        Job.numbers += 1
        self.tools, self.lab, self.name = tools, machine_lab, f"job{Job.numbers}"
        self.address, self.workers, self.node = f"127.0.0.1:{PORT}", {}, machine_lab[0]
        self.trip = self.node.share / f"trip-{self.name}"
        self.trip.mkdir()
        self.env = {"MUSTER_TRIP": f"/lab/{self.trip.name}"}
        for name, stages in plans.items():
            (self.trip / name).write_text("".join(stage + "\n" for stage in stages))
        self.before = self.resources()
        self.server = self.node.start(
            [tools.musterd, "--listen", self.address, "--insecure", "--transport", "verbs", "-n",
             "5", "--policy", "backup:4", "--commits", str(COMMITS), "--lease", f"{LEASE_S:.0f}s"],
            self.env)
        self.server.wait_output("listening on")
        for rank in WORKERS:
            # Rank 2 is quick: the job shall not be over before it has come to its moment.
            self.start_worker(rank, 0, "ranges=7", "sleep_us=20000", "2:sleep_us=0", **self.env)

    def until(self, condition, seconds, what):
        try:
            return until(condition, seconds, what)
        except Failed as e:
            raise Failed(f"{e}\n{self.said()}") from None

    def held(self, *names):
        for name in names:
            self.until((self.trip / f"{name}.held").exists, 90, f"{name} trips")

    def go(self):
        for plan in list(self.trip.iterdir()):
            if "." not in plan.name:
                (self.trip / f"{plan.name}.go").touch()

    def awaited(self):
        """(version, ranks that its step waits for)."""
        got = self.node.run([self.tools.muster, "status", "--json", "-", self.address], check=False)
        if got.status:
            return None, []
        status = json.loads(got.output)
        return status["commits"], [row["rank"] for row in status["ranks"] if row["awaited"]]

    def resources(self):
        """Queue pairs, regions and the like that the device has in use."""
        return self.node.run(["rdma", "resource", "show"]).output.strip()

    def next_commit(self, rank, seconds):
        version = self.newest(rank)
        took = self.until(lambda: self.newest(rank) > version, seconds, "the next commit")
        check(f"the next commit comes after {took:.2f} s", took < seconds)

    def finish(self, expected, server=0):
        self.end(expected, server)
        self.check_history(*SGD, "--kills")
        self.until(lambda: self.resources() == self.before, 60,
                   f"the device has no more in use than before: {self.before}")
        check(f"the device has nothing left: {self.before}", True)


def with_trips(tools):
    """The programs that can be held at a moment."""
    return types.SimpleNamespace(muster=tools.muster, musterd=tools.trip_musterd,
                                 worker=tools.trip_worker)


def kill_while_writing(tools):
    """Some ranges have been put, or are on their way, and the header never comes."""
    with shared.lab() as machines:
        job = TripJob(with_trips(tools), machines, {
            "rank2": [f"after put header - {AT}", "after put data - 3"]})
        job.held("rank2")
        job.workers[2].kill(signal.SIGKILL)
        job.next_commit(0, 0.5 * LEASE_S)
        lost(job, 2, 0.5 * LEASE_S)
        job.finish({0: 0, 1: 0, 2: -9, 3: 0, 4: 0})


def stop_when_counted(tools):
    """It is in the set for good; the step waits for others, and then nobody for it."""
    with shared.lab() as machines:
        job = TripJob(with_trips(tools), machines, {
            "rank2": [f"after put header - v{AT}"],
            "rank3": [f"before put header - v{AT}"], "rank4": [f"before put header - v{AT}"]})
        job.held("rank2", "rank3", "rank4")
        job.until(lambda: job.awaited() == (AT, [3, 4]), 60, "rank 2 is counted")
        job.workers[2].kill(signal.SIGSTOP)
        job.go()
        job.next_commit(0, 0.5 * LEASE_S)
        lost(job, 2, 1.5 * LEASE_S)
        job.workers[2].kill(signal.SIGCONT)
        job.finish({0: 0, 1: 0, 2: 1, 3: 0, 4: 0})


def kill_server_in_answer(tools):
    """Some of five answers are there, one result is on its way, and the rest will not come."""
    with shared.lab() as machines:
        job = TripJob(with_trips(tools), machines, {"server": [f"before put answer 2 {AT}"]})
        job.held("server")
        began = time.monotonic()
        job.server.kill(signal.SIGKILL)
        job.finish(dict.fromkeys(WORKERS, 1), -9)
        seconds = time.monotonic() - began
        check(f"all have ended after {seconds:.1f} s", seconds < LEASE_S + 5)
        for rank in WORKERS:
            said = job.workers[rank].output.strip()
            check(said, re.search(r"test_worker: .{20}", said), job.said())


def lost(job, rank, seconds):
    line = rf"rank {rank} (?:lost|is gone|was silent).*"
    took = job.until(lambda: re.search(line, job.server.output), seconds, f"rank {rank} is lost")
    check(f"{re.search(line, job.server.output)[0]} (after {took:.1f} s)", True)
