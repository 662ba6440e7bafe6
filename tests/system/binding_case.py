# SPDX-License-Identifier: MIT
"""Jobs of the Python binding alone, and how its scripts say what was raised."""
import os
import subprocess
import sys

from base import CALM, HERE, NAME
from server import Server

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "client", "python")
ELEMS = 1000


class Job:
    """A server, and the package of this tree with the library of this build."""

    def __init__(self, a, *options):
        os.environ["MUSTER_LIBRARY"] = a.library
        os.environ["PYTHONPATH"] = PACKAGE
        sys.path.insert(0, PACKAGE)
        self.server = Server(a.musterd, *CALM, *options)
        os.environ["MUSTER_SERVER"] = self.server.address

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.kill()


def raises(kind, function, *arguments):
    try:
        function(*arguments)
    except kind as e:
        return str(e)
    sys.exit(f"{NAME}: {kind.__name__} was not raised")


def spawn(script, *arguments, **env):
    return subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=dict(os.environ, **env))
