#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workers that get their ranks from a launcher: mpirun and torchrun themselves, srun's variables.

usage: launchers.py CASE --musterd MUSTERD --worker WORKER
       launchers.py --list
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

import base
from base import cases, check, main
from server import SECONDS

WORKERS = 3
LAUNCHERS = ("MUSTER_", "OMPI_", "PMIX_", "PMI_", "SLURM_", "MASTER_", "TORCH", "WORLD", "RANK")


def need(program, package):
    if shutil.which(program) is None:
        print(f"skipped: there is no {program} here; Debian has it in {package}")
        sys.exit(77)


class Job(base.Job):
    """A server for three workers, which somebody else starts."""

    def __init__(self, a):
        super().__init__(a, "--workers", str(WORKERS), "--commits", "20", "--join-timeout", "300s")

    def script(self, variable):
        """Writes down which process the launcher means by which rank; the last rank comes first."""
        script = self.path("worker.sh")
        if os.path.exists(script):  # a shell may be reading it
            return ["sh", script]
        with open(script, "w") as f:
            f.write(f'echo "${variable} $$" > "{self.folder.name}/meant.$$"\n'
                    f'sleep "0.$(({WORKERS} - {variable}))"\n'
                    f'exec "{self.a.worker}" "{self.log}" 2000\n')
        return ["sh", script]

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
        return kept | {"MUSTER_SERVER": self.address} | more

    def run(self, command, **more):
        done = subprocess.run(command, env=self.environment(**more), cwd=self.folder.name,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300)
        check(f"the launcher ends well\n{done.stdout}", done.returncode == 0)

    def ranks_are_the_launchers(self):
        meant = {}
        for path in glob.glob(self.path("meant.*")):
            with open(path) as f:
                rank, pid = map(int, f.read().split())
                meant[rank] = pid
        _, log = self.server.end(SECONDS)
        joined = re.findall(r"rank (\d+) joined from .*, process (\d+)", log)
        check(f"{joined} are {meant}", {int(r): int(pid) for r, pid in joined} == meant)
        check("all ranks are there", sorted(meant) == list(range(WORKERS)))
        self.proven()


def mpirun(a):
    need("mpirun", "openmpi-bin")
    with Job(a) as job:
        job.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(WORKERS),
                 *job.script("OMPI_COMM_WORLD_RANK")])
        job.ranks_are_the_launchers()


def torchrun_of(job, **more):
    # Debian 12's torchrun cannot do without -r and -t, for its Python is newer than itself.
    job.run(["torchrun", "--standalone", "-r", "1", "-t", "1", "--log_dir", job.folder.name,
             "--nproc_per_node", str(WORKERS), "--no_python", *job.script("RANK")], **more)
    job.ranks_are_the_launchers()


def torchrun(a):
    need("torchrun", "python3-torch")
    with Job(a) as job:
        torchrun_of(job)


def torchrun_within_srun(a):
    """srun gives the one torchrun of a host its number, which is not its workers'."""
    need("torchrun", "python3-torch")
    with Job(a) as job:
        torchrun_of(job, SLURM_PROCID="0", SLURM_NTASKS="1", PMI_RANK="0")


def srun_variables(a):
    """There is no Slurm here: three processes with what srun gives its tasks."""
    with Job(a) as job:
        workers = [subprocess.Popen(job.script("SLURM_PROCID"), env=job.environment(
            SLURM_PROCID=str(rank), SLURM_NTASKS=str(WORKERS), SLURM_STEP_ID="0"))
            for rank in range(WORKERS)]
        codes = [w.wait(SECONDS) for w in workers]
        check(f"all end well: {codes}", not any(codes))
        job.ranks_are_the_launchers()


def the_same_rank_for_all(a):
    """A batch script without srun has SLURM_PROCID=0, and so has all that it starts."""
    with Job(a) as job:
        env = job.environment(SLURM_PROCID="0")
        first = subprocess.Popen(job.script("SLURM_PROCID"), env=env, stderr=subprocess.DEVNULL)
        try:
            taken = f"{job.folder.name}/log.0.1"
            while not os.path.exists(taken):
                if first.poll() is not None:
                    sys.exit("launchers: the first worker has ended")
                time.sleep(0.01)
            second = subprocess.run(job.script("SLURM_PROCID"), env=env, text=True, timeout=SECONDS,
                                    stderr=subprocess.PIPE)
            check(f"the second is refused: {second.stderr.strip()}",
                  second.returncode != 0 and "rank 0" in second.stderr and
                  "SLURM_PROCID=0" in second.stderr)
        finally:
            first.kill()
            first.wait()


CASES = cases(mpirun, torchrun, torchrun_within_srun, srun_variables, the_same_rank_for_all)
main(CASES, "musterd", "worker")
