# SPDX-License-Identifier: MIT
"""What the tests of the tools have in common: a run whose processes can all be found again."""
import glob
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import unittest
import uuid

from base import tagged

MUSTER, FAKE = "", ""


class Scene(unittest.TestCase):
    """A folder for one test, and processes that carry its mark."""

    def setUp(self):
        self.mark = "SCENE_MARK=" + uuid.uuid4().hex
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        left = tagged(self.mark)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        keys = glob.glob(self.path("muster-keys-*"))
        self.folder.cleanup()
        self.assertEqual((left, keys), ([], []), "processes, or keys, are left over")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def read(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def environment(self, script, **more):
        name, value = self.mark.split("=")
        env = dict(os.environ, MUSTER_MUSTERD=FAKE, FAKE_JOB=script, HERE=self.folder.name,
                   TMPDIR=self.folder.name)
        env.pop("MUSTER_SERVER", None)
        return env | {name: value} | more

    def start(self, script, *args, **more):
        """muster run, its output kept apart; nothing it inherits is ignored. The script begins when
        the tool has connected, so that none is over before it."""
        script = script if script == "refuse" else f"met {script}"
        return subprocess.Popen([MUSTER, "run", *args], env=self.environment(script, **more),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def finish(self, process, seconds=120):
        out, err = process.communicate(timeout=seconds)
        return process.returncode, out, err

    def run_muster(self, script, *args, **more):
        return self.finish(self.start(script, *args, **more))

    def run_on_terminal(self, script, columns, *args, enough=lambda got: False):
        """Return: exit status and all that the terminal got. When that is enough, there is a file
        over."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve("/bin/sh", ["sh", "-c", 'stty cols "$0"; exec "$@"', str(columns), MUSTER,
                                  "run", *args],
                      self.environment(script, TERM="xterm"))
        got = b""
        while select.select([terminal], [], [], 100)[0]:
            try:
                piece = os.read(terminal, 4096)
            except OSError:
                break
            if not piece:
                break
            got += piece
            if enough(got.decode(errors="replace")):
                with open(self.path("over"), "w"):
                    pass
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), got.decode()


def main():
    global MUSTER, FAKE
    MUSTER, FAKE = sys.argv[1:3]
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
