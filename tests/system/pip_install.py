#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Python package in a virtual environment that sees the system's packages: pip installs it from
a copy of the tree, without any network, and a job uses it from outside of the tree.

usage: pip_install.py --musterd MUSTERD --library LIBMUSTER
"""
import os
import shutil
import subprocess
import sys
import tempfile

from base import CALM, HANG_S, HERE, Child, cases, check, main, must, worker_environment
from server import Server

SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "client", "python")
NEEDS = ("venv", "ensurepip", "pip", "setuptools", "wheel")
WORK = """
import importlib.metadata, os, sys
import muster
assert muster.__file__.startswith(sys.prefix), muster.__file__
assert importlib.metadata.version("muster") == muster.__version__
assert os.path.exists(os.path.join(os.path.dirname(muster.__file__), "py.typed"))
if len(sys.argv) > 1:
    import muster.torch, torch
    model = torch.nn.Linear(3, 1)
    with muster.torch.Sync(model, torch.optim.SGD(model.parameters(), 0.5)) as sync:
        model(torch.ones(2, 3)).sum().backward()
        print("version", sync.step(samples=2).version)
else:
    with muster.Worker(elems=3, owner="workers") as worker:
        worker.start()
        worker.gradient()[:] = 1
        worker.push()
        print("version", worker.wait().version)
"""


def environment():
    """Without what could reach into the virtual environment, or out to an index."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON", "VIRTUAL_"))}
    return {**kept, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, env=environment(), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    must(done.returncode == 0, *command, done.stdout)
    return done.stdout


def has(python, *modules):
    return subprocess.run([python, "-c", f"import {', '.join(modules)}"], env=environment(),
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def installs(a):
    lacks = [m for m in NEEDS if not has(sys.executable, m)]
    if lacks:
        print(f"skipped: this Python has no {', '.join(lacks)}: deploy/packages.sh test")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="muster-test-") as folder:
        copy, outside = os.path.join(folder, "copy"), os.path.join(folder, "outside")
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns(
            "__pycache__", "build", "*.egg-info", ".mypy_cache"))
        os.mkdir(outside)
        run(sys.executable, "-m", "venv", "--system-site-packages", "env", cwd=folder)
        python = os.path.join(folder, "env", "bin", "python")
        run(os.path.join(folder, "env", "bin", "pip"), "install", "--no-build-isolation", ".",
            cwd=copy)
        shutil.rmtree(copy)
        torch = ["torch"] if has(python, "torch") else []
        jobs(a, [python, "-c", WORK, *torch], outside)


def jobs(a, command, folder):
    for name in [name for name in os.environ if name not in environment()]:
        del os.environ[name]
    os.environ["MUSTER_LIBRARY"], musterd = map(os.path.abspath, (a.library, a.musterd))
    os.chdir(folder)
    # On a busy host importing torch may take most of a minute.
    server = Server(musterd, *CALM, "--join-timeout", "180s", "--owner", "workers", "--workers",
                    "2")
    try:
        ranks = [Child(command, **worker_environment(server.address, rank)) for rank in range(2)]
        for said in [rank.end(3 * HANG_S) for rank in ranks]:
            check(f"a rank has ended with {said}", said[0] == 0 and "version 1\n" in said[1])
    finally:
        server.kill()
        os.chdir(HERE)


main(cases(installs), "musterd", "library")
