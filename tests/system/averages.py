#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The moving average of the parameters (musterd --average) of real jobs, as checkpoints have it.

usage: averages.py CASE --muster MUSTER --worker WORKER
       averages.py --list [--threads]
"""
import os
from unittest import mock

import numpy as np

import history
from base import cases, check, main, must
from checkpoints import Folder

DECAY, COMMITS = 0.65, 24  # from version 16 on that is less than what young averages have


def rest(version):
    return np.float32(min(DECAY, (1 + version) / (10 + version)))


def averaged(average, theta, version):
    """Each product and the sum are rounded to float."""
    left = rest(version)
    return left * average + (np.float32(1) - left) * theta


def average_of(folder, optimizer):
    """By version, from what its workers have written."""
    proof = history.prove(os.path.join(folder.folder.name, "log"), history.Rules(optimizer))
    must(proof.lost == 0, "versions that nobody saw")
    averages = {0: proof.parameters[0]}
    for version in range(1, proof.newest + 1):
        averages[version] = averaged(averages[version - 1], proof.parameters[version], version)
    return averages


JOBS = [
    # servers, options of the job, of the workers, of the check, kernels
    (1, ["--optimizer", "sgd:lr=0.1,momentum=0.9"], [], "sgd:0.1,0.9", ""),
    (1, ["--optimizer", "sgd:lr=0.1,momentum=0.9", "--shards", "3", "--chunk", "4K"],
     ["result_type=bf16"], "sgd:0.1,0.9", "baseline:tile=128"),
    (2, ["--optimizer", "adam:lr=0.01", "--shards", "2"], ["type=bf16", "result_type=f16"],
     "adam:lr=0.01", ""),
    (3, ["--optimizer", "sgd:lr=0.1,momentum=0,clip=3", "--policy", "async"], ["keep=3"],
     "sgd:0.1,0,clip=3", "baseline"),
    (1, ["--optimizer", "add"], [], "add", ""),
]


def numpys(a):
    """Whatever makes the parameters, however they are divided, with any kernels: of every version,
    also of those behind one that is being saved."""
    for servers, options, worker, optimizer, kernels in JOBS:
        folder = Folder(a)
        with mock.patch.dict(os.environ, {"MUSTER_KERNELS": kernels} if kernels else {}):
            folder.run(COMMITS, "--servers", str(servers), "--average", str(DECAY),
                       "--checkpoint-every", "5", *options, worker=worker)
        averages = average_of(folder, optimizer)
        must(len(folder.versions()) == 2, "versions", folder.versions())
        for version in folder.versions():
            check(f"{servers} servers, {optimizer}: the average of version {version} is NumPy's",
                  folder.vectors(version)["average"] == averages[version].tobytes())


def begins_at_a_resume(a):
    """With the parameters; and whoever goes on without it is told."""
    folder = Folder(a)
    worker = ["by_version=1"]
    resume = ["--resume", folder.state, "--log-level", "info"]
    folder.run(6, worker=worker)
    before = np.frombuffer(folder.vectors(6)["parameters"], np.float32)
    said = folder.run(7, "--average", str(DECAY), *resume, worker=worker)
    check("that is said", "average begins with the parameters of version 6" in said)
    now = folder.vectors(7)
    check("it begins with the parameters", now["average"] == averaged(
        before, np.frombuffer(now["parameters"], np.float32), 7).tobytes())
    said = folder.run(8, *resume, worker=worker)
    check("an average that is not kept on is named", "is not kept on: say --average" in said)
    check("and is not in checkpoints any more", "average" not in folder.vectors(8))


CASES = cases(numpys, begins_at_a_resume)

if __name__ == "__main__":
    main(CASES, "muster", "worker")
