#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The moving average of the parameters (musterd --average) of real jobs, as checkpoints have it.

usage: averages.py CASE --muster MUSTER --worker WORKER
       averages.py --list [--threads]
"""
import glob
import itertools
import os
import struct
from unittest import mock

import numpy as np

import history
from base import LEASE_S, cases, check, main, must
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
    also of those after one that is being saved."""
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


def read(folder, elems):
    """What the workers have got while the job ran: (version, bytes) by rank."""
    got = {}
    for path in glob.glob(os.path.join(folder.folder.name, "log.average.*")):
        with open(path, "rb") as f:
            data = f.read()
        size = 8 + 4 * elems
        must(len(data) % size == 0, "a piece of an average in", path)
        got[int(path.rsplit(".", 1)[1])] = [
            (struct.unpack_from("<Q", data, i)[0], data[i + 8:i + size])
            for i in range(0, len(data), size)]
    return got


PULLS = [
    # servers, elements, options of the job, of the workers, of the check
    (2, 70001, ["--optimizer", "adam:lr=0.01", "--shards", "2", "--policy", "async"],
     ["result_type=bf16"], "adam:lr=0.01"),
    (3, 200003, ["--optimizer", "sgd:lr=0.1,momentum=0.9", "--checkpoint-every", "3"], [],
     "sgd:0.1,0.9"),
    (1, 5, ["--optimizer", "add"], [], "add"),
]


def is_one_pull_away(a):
    """While the steps go on, from any number of servers: all of it is of the version that is named
    with it, to the bit. So it is of one version, whatever each server was doing."""
    for servers, elems, options, worker, optimizer in PULLS:
        folder = Folder(a)
        folder.run(COMMITS, "--servers", str(servers), "--average", str(DECAY), *options,
                   worker=["average=2", *worker], elems=elems)
        averages = average_of(folder, optimizer)
        got = read(folder, elems)
        must(sorted(got) == [0, 1, 2], "who got averages:", sorted(got))
        pulls = [pull for rank in got for pull in got[rank]]
        check(f"{servers} servers: each of {len(pulls)} averages is NumPy's of its version",
              all(data == averages[version].tobytes() for version, data in pulls))
        check(f"{servers} servers: they are of several versions",
              len({version for version, _ in pulls}) > 2)
        check(f"{servers} servers: a worker gets the last one after the end of the job",
              all(got[rank][-1][0] == COMMITS for rank in got))
        check(f"{servers} servers: none is older than the one before",
              all(one[0] <= next_one[0] for rank in got
                  for one, next_one in itertools.pairwise(got[rank])))


def none_is_kept(a):
    """That is said, with what to do."""
    folder = Folder(a)
    said = folder.run(5, worker=["average=1"], expect=1)
    check("a worker is told that the servers keep no average",
          "the servers keep no average of the parameters: start musterd with --average" in said)


LONG = 2_000_000  # elements: more than what a connection takes before it is read


def reads_in_vain(a, worker, *options, policy="async"):
    """Rank 2 asks and does not take all of it. Return: the averages of the others by rank, and the
    last one as the checkpoint has it."""
    folder = Folder(a)
    folder.run(12, "--servers", "2", "--policy", policy, "--optimizer", "sgd:lr=0.1,momentum=0.9",
               "--average", str(DECAY), "--grace", "30s", *options,
               worker=["2:average=1", *worker], elems=LONG)
    got = read(folder, LONG)
    must(all(version < 12 for version, _ in got.pop(2)), "rank 2 has taken each that it asked for")
    return got, folder.vectors(12)["average"]


def a_reader_that_dies_frees_its_place(a):
    """In the middle of it, or before: the others get theirs."""
    # The others wait for its first gradient: a job that is over before it asks proves nothing.
    got, last = reads_in_vain(a, ["2:die_asking=1", "0:average=2", "1:average=2"], policy="ssp:2")
    check("the others have the last one, to the bit",
          all(got[rank][-1] == (12, last) for rank in (0, 1)))


def a_reader_that_stands_still_frees_its_place(a):
    """When its session ends, after its lease."""
    got, last = reads_in_vain(a, ["2:stop_asking=1", "0:average=2", "1:average=2"],
                              "--lease", f"{LEASE_S}s", "--server-lease", "60s")
    check("the others have the last one, to the bit",
          all(got[rank][-1] == (12, last) for rank in (0, 1)))


def no_commit_waits_for_a_reader(a):
    """Its lease is longer than this test may take."""
    got, _ = reads_in_vain(a, ["2:stop_asking=1"], "--lease", "200s")
    check("all versions are made while it stands still", got == {})


CASES = cases(numpys, begins_at_a_resume, is_one_pull_away, none_is_kept,
              a_reader_that_dies_frees_its_place, a_reader_that_stands_still_frees_its_place,
              no_commit_waits_for_a_reader)

if __name__ == "__main__":
    # A lease of eight seconds.
    main(CASES, "muster", "worker",
         clock=("a_reader_that_stands_still_frees_its_place",))
