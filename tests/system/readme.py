#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""README.md is taken at its word: every block of it is run as it stands, or it is said how it is
run otherwise, or why it is not. A block that this script does not know is a failure.

It runs in a network of its own, where 10.1.0.1 and the default port are free.

usage: readme.py README.md PREFIX COMPILER     PREFIX: an installed muster
       readme.py --quickstart CHECKOUT         the quickstart, in a fresh clone
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))


def fail(what):
    sys.exit(f"readme: {what}")


def blocks(text):
    """[(line number, first line, whole text)] of all that stands in fences or is indented."""
    found, lines, at = [], text.splitlines(), 0
    while at < len(lines):
        first = at
        if lines[at].startswith("```"):
            at += 1
            while not lines[at].startswith("```"):
                at += 1
            body = lines[first + 1:at]
            at += 1
        elif lines[at].startswith("    ") and not lines[at - 1].strip():
            while at < len(lines) and lines[at].startswith("    "):
                at += 1
            body = [line[4:] for line in lines[first:at]]
        else:
            at += 1
            continue
        found.append((first + 1, body[0], "\n".join(body)))
    return found


def commands(body):
    """One line each, without what is said beside them."""
    lines = body.replace("\\\n", " ").splitlines()
    return [re.sub(r"\s+# .*", "", line).strip() for line in lines]


def shell(line, where, seconds=120):
    done = subprocess.run(["bash", "-c", line], cwd=where, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
    return done.returncode, done.stdout


def well(line, where):
    status, said = shell(line, where)
    if status != 0:
        fail(f"\"{line}\" ends with {status}:\n{said}")
    return said


class Background:
    """Commands that go on until they are ended; their ends are looked at."""

    def __init__(self, where):
        self.where, self.each = where, []

    def start(self, line, count=1):
        for _ in range(count):
            log = tempfile.TemporaryFile("w+")
            self.each.append((line, log, subprocess.Popen(
                ["bash", "-c", "exec " + line if "=" not in line.split()[0] else
                 "exec env " + line], cwd=self.where, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT)))

    def end(self, servers):
        """The leader is told to end; followers and workers end by themselves, in words."""
        self.each[0][2].send_signal(signal.SIGTERM)
        for i, (line, log, process) in enumerate(self.each):
            status = process.wait(90)
            log.seek(0)
            said = log.read()
            if i >= servers and (status != 1 or not said.strip()):
                fail(f"\"{line}\" ends with {status} when its server does:\n{said}")

    def kill(self):
        for _, _, process in self.each:
            if process.poll() is None:
                process.kill()
                process.wait()


def until_it_runs(status_line, where):
    end = time.monotonic() + 90
    while time.monotonic() < end:
        status, said = shell(status_line, where)
        if status == 0 and "is running" in said and not re.search(r"version 0\b", said):
            return said
        time.sleep(0.2)
    fail(f"\"{status_line}\" never shows a job that runs:\n{said}")


# ---- what becomes of each block ----

def nothing(why):
    return lambda body, where: why


def first_program(body, where):
    with open(os.path.join(where, "first.c"), "w", encoding="utf-8") as f:
        f.write(body + "\n")
    return "written to first.c"


def number(text):
    return float(text) if re.fullmatch(r"[0-9.e+-]*\d", text) else -1


# A worker whose server dies while it computes: it has no gradient to fill any more.
SLOW = """#include <muster/muster.h>
#include <unistd.h>
#define muster_gradient(m) (sleep(2), muster_gradient(m))
"""


def build_and_run(body, where):
    build, run = commands(body)
    well(build, where)
    with open(os.path.join(where, "slow.h"), "w", encoding="utf-8") as f:
        f.write(SLOW)
    well(build.replace("-o first", "-o slow -include slow.h"), where)
    strict = well(build + " -std=c17 -Wall -Wextra -Werror", where)
    said = well(run, where)
    told = re.search(r"loss (\S+)$", said, re.M)
    if strict or "version 100: " not in said or not told or not 0 < number(told.group(1)) < 0.5:
        fail(f"\"{run}\" does not train, or tells no loss:\n{said}")
    return "run as it stands"


def by_hand(body, where):
    server, worker, status = commands(body)
    jobs = Background(where)
    try:
        jobs.start(server)
        jobs.start(worker, 4)
        jobs.start(worker.replace("./first", "./slow"))
        until_it_runs(status, where)
        jobs.end(servers=1)
    finally:
        jobs.kill()
    return "run as it stands, one worker slowly, until the server is ended"


def between_hosts(body, where):
    server, worker = commands(body)
    jobs = Background(where)
    try:
        jobs.start(server)
        for rank in range(8):
            jobs.start(worker.replace("MUSTER_RANK=3", f"MUSTER_RANK={rank}"))
        until_it_runs("muster status 10.1.0.1:17077", where)
        jobs.end(servers=1)
    finally:
        jobs.kill()
    return "run as it stands, all ranks on this host; tests/vm has it over RDMA"


def is_it_open(body, where):
    listen, peer = commands(body)
    jobs = Background(where)
    try:
        jobs.start(listen)
        end = time.monotonic() + 90
        status, said = 1, ""
        while "control port of" not in said and time.monotonic() < end:
            status, said = shell(peer, where)
        if status != 0 or not re.search(r"^ok +step ", said, re.M):
            fail(f"\"{peer}\" ends with {status}:\n{said}")
    finally:
        jobs.kill()
    return "run as it stands, both on this host"


def with_certificates(body, where):
    make, server, export, worker = commands(body)
    proof = export.replace("export ", "") + " "
    well(make, where)
    jobs = Background(where)
    try:
        jobs.start(server)
        for rank in range(8):
            jobs.start(proof + worker.replace("MUSTER_RANK=3", f"MUSTER_RANK={rank}"))
        until_it_runs(proof.replace("worker", "observer") + "muster status 10.1.0.1:17077", where)
        jobs.end(servers=1)
    finally:
        jobs.kill()
    return "run as it stands, all ranks on this host"


def names_exist(body, _):
    for name, words in (("_sync.py", ("class Sync", "def step(self, samples")),
                        ("_rank.py", ("def batches(self, loader",))):
        path = os.path.join(ROOT, "client/python/muster", name)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for word in words:
            if word not in text:
                fail(f"{path} has no \"{word}\", of which \"{body}\" speaks")
    return "the names exist; system.torch.* run them"


def several_servers(body, where):
    leader, follower = commands(body)
    well("sed 's/ELEMS = 4 /ELEMS = 20000 /' first.c > long.c && "
         "cc long.c -o long $(pkg-config --cflags --libs muster)", where)
    jobs = Background(where)
    try:
        jobs.start(leader)
        jobs.start(follower)
        jobs.start("MUSTER_SERVER=10.1.0.1:17077 ./long", 8)
        until_it_runs("muster status 10.1.0.1:17077", where)
        jobs.end(servers=2)
    finally:
        jobs.kill()
    return "run on this host, and with a vector of 20000; tests/vm has it over RDMA"


def bench(body, where):
    run, compare = commands(body)
    well(run + " --sizes 4K --samples 20 --lease 60s", where)
    if not os.access(os.path.join(ROOT, compare), os.X_OK):
        fail(f"there is no {compare}")
    return f"\"{run}\" run for 4 KiB only; \"{compare}\" is not: it takes Open MPI and Gloo"


def simulate(body, where):
    line, = commands(body)
    rows = [row for row in well(line, where).splitlines() if row.startswith("backup:7 ")]
    if len(rows) != 1:
        fail(f"\"{line}\" prints no row for backup:7")
    return "run as it stands"


def record_and_plan(body, where):
    record, plan = commands(body)
    well(record, where)
    said = well(plan, where)
    if not re.search(r"^run.csv: 100 steps of [45] ranks$", said, re.M):
        fail(f"\"{plan}\" does not say what it has read:\n{said}")
    return "run as it stands"


def stop_and_go_on(body, where):
    first, second, look = commands(body)
    well(first, where)
    well(second, where)
    said = well(look, where)
    if not re.search(r"\b2000\b", said):
        fail(f"\"{look}\" does not name version 2000:\n{said}")
    return "run as it stands"


def service(body, where):
    build, config, _ = commands(body)
    programs_exist("")(build, where)
    well(config.split("|")[0] + " > run1.conf", where)
    said = well("musterd -c run1.conf --print-config", where)
    if "backup:7" not in said:
        fail(f"the file that \"{config}\" writes is not read:\n{said}")
    return "the file is written and read; the rest is deploy/debian.sh try"


def programs_exist(why):
    def look(body, _):
        for line in commands(body):
            program = line.split()[0]
            if not os.access(os.path.join(ROOT, program), os.X_OK):
                fail(f"there is no {program}")
        return why
    return look


BLOCKS = {
    "  worker 0   worker 1   ...   worker 4       each: your compute loop, libmuster in it":
        nothing("a picture"),
    "deploy/quickstart.sh     # builds, then shows what one slow worker costs: 1 to 2 minutes":
        programs_exist("not run here: system.readme_quickstart runs the first, and this is a test "
                       "of the second"),
    "                          mean step     p99 step   accuracy   counted/late, ranks 0 to 4":
        nothing("compared with what is printed by system.readme_quickstart"),
    "time ->     0    20   40   60   80   100  120  140  160  180  200 ms":
        nothing("a picture"),
    "sync = muster.torch.Sync(model, opt)    # in place of DistributedDataParallel": names_exist,
    "muster key new keys                    # ca, server, worker, operator, observer: .pem and "
    ".key":
        with_certificates,
    "#include <muster/muster.h>": first_program,
    "cc first.c -o first $(pkg-config --cflags --libs muster)": build_and_run,
    "musterd --workers 5 --policy backup:4": by_hand,
    "musterd --workers 8 --policy backup:7 --listen 10.1.0.1:17077 --insecure":
        between_hosts,
    "muster doctor --listen                 # on one host, and on the other:": is_it_open,
    "deploy/packages.sh test                                    # QEMU and what else they take":
        programs_exist("not run here: it installs packages and takes virtual machines; "
                       "vm.* run the same"),
    "deploy/debian.sh build && sudo apt-get install ./build/debian/*.deb": service,
    "musterd --workers 8 --servers 2 --listen 10.1.0.1:17077 --insecure     # leads":
        several_servers,
    "muster run -n 5 --policy backup:4 --commits 100 --record run.csv -- ./first":
        record_and_plan,
    "muster run -n 5 --commits 1000 --state run1 --checkpoint-every 10min -- ./first":
        stop_and_go_on,
    "muster sim -n 8 --delay exp:20 --policy bsp --policy backup:7 --policy async": simulate,
    "muster bench                  # what a step costs here: real processes, every result checked":
        bench,
}


def in_own_network():
    """Runs itself again in a network of its own."""
    if os.environ.get("README_NETWORK"):
        well("ip link set lo up && ip address add 10.1.0.1/32 dev lo", ROOT)
        return
    probe = subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True, text=True)
    if probe.returncode != 0:
        print(f"skipped: no network of its own can be had: {probe.stderr.strip()}")
        sys.exit(77)
    os.environ["README_NETWORK"] = "1"
    os.execvp("unshare", ["unshare", "-rn", sys.executable, *sys.argv])


def run_all(readme, prefix, compiler):
    in_own_network()
    with open(readme, encoding="utf-8") as f:
        found = blocks(f.read())
    known = {first for _, first, _ in found}
    for first in BLOCKS:
        if first not in known:
            fail(f"README.md has no block any more that begins with \"{first}\"")
    with tempfile.TemporaryDirectory() as where:
        os.symlink(compiler, os.path.join(where, "cc"))
        os.environ["PATH"] = f"{where}:{prefix}/bin:{prefix}/sbin:{os.environ['PATH']}"
        for line, first, body in found:
            if first not in BLOCKS:
                fail(f"README.md:{line}: how is the block tested that begins with \"{first}\"?")
            print(f"README.md:{line}: {first.strip()[:50]}\n    {BLOCKS[first](body, where)}",
                  flush=True)


def shape(text):
    """Numbers differ from run to run, and with them how wide the columns are."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?", "N", text)).strip()


def run_quickstart(checkout):
    with open(os.path.join(checkout, "README.md"), encoding="utf-8") as f:
        shown = next(body for _, first, body in blocks(f.read()) if "counted/late" in first)
    with tempfile.TemporaryDirectory() as where:
        well(f"git clone -q --no-hardlinks {checkout} clone", where)
        status, said = shell("deploy/quickstart.sh", os.path.join(where, "clone"), 900)
        if status != 0 or shape(shown) not in shape(said):
            fail(f"the quickstart ends with {status}, and README.md shows other words:\n{said}")
        print(said)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--quickstart":
        run_quickstart(sys.argv[2])
    else:
        run_all(*(os.path.abspath(a) for a in sys.argv[1:4]))


main()
