#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster and muster status alone, before a musterd that follows a script.

usage: tool_status.py MUSTER FAKE_MUSTERD [unittest's arguments]
"""
import json
import os
import socket
import struct
import subprocess
import threading

import scene
from base import until
from server import SECONDS, STATUS, field, fields, frame, rows, rows_of, values

DONE, STATUS_RANKS, ANOTHER = 25, 13, 99


def frames_of(connection):
    """(kind, body) of each frame, until the end."""
    with connection.makefile("rb") as stream:
        while head := stream.read(12):
            _, _, kind, length = struct.unpack("<IHHI", head)
            yield kind, stream.read(length)


def with_more(kind, body):
    """As a release tells it that knows more: of the job, and of each rank."""
    if kind == STATUS_RANKS:
        body = fields(rows(*(row + field(300, b"more") for row in rows_of(values(body)[1]))))
    return body + field(200, b"more") if kind in (STATUS, STATUS_RANKS) else body


def speak_as_another(listener, address):
    """For one caller: passes on what the musterd at @address says, and what is said to it, as a
    release with another protocol would say it."""
    host, port = address.rsplit(":", 1)
    with listener.accept()[0] as caller, socket.create_connection((host, int(port))) as musterd:
        kind, body = next(frames_of(caller))
        musterd.sendall(frame(kind, with_more(kind, body), protocol=ANOTHER))
        for kind, body in frames_of(musterd):
            caller.sendall(frame(kind, with_more(kind, body), protocol=ANOTHER))
            if kind == STATUS_RANKS:
                return


class Commands(scene.Scene):
    def muster(self, *args, **more):
        if args[:1] == ("status",):
            args = ("status", "--timeout", f"{SECONDS}s", *args[1:])
        done = subprocess.run([scene.MUSTER, *args], env=self.environment("", **more), text=True,
                              capture_output=True, timeout=100)
        return done.returncode, done.stdout, done.stderr

    def test_help(self):
        """--help and --version are answers, not errors"""
        self.assertIn("muster run -n W", self.muster("--help")[1])
        self.assertRegex(self.muster("--version")[1], r"^muster \d+\.\d+\.\d+\n$")
        for command in ("run", "status", "policy", "rest"):
            rc, out, _ = self.muster(command, "--help")
            self.assertEqual((rc, f"usage: muster {command}" in out), (0, True))

    def test_unknown(self):
        """an unknown command is 2, and the nearest one is named"""
        rc, _, err = self.muster("statsu")
        self.assertEqual((rc, "did you mean status?" in err), (2, True))
        self.assertEqual(self.muster()[0], 2)


class Status(Commands):
    def serve(self, script, workers):
        """A musterd of its own. Return: its address."""
        ready, write = os.pipe()
        self.musterd = subprocess.Popen([scene.FAKE, f"--workers={workers}",
                                         "--listen=127.0.0.1:0"], pass_fds=[write],
                                        env=self.environment(script, MUSTER_READY_FD=str(write)))
        os.close(write)
        with os.fdopen(ready) as line:
            return line.read().split()[-1]

    def tearDown(self):
        if hasattr(self, "musterd"):
            self.musterd.kill()
            self.musterd.wait()
        super().tearDown()

    def test_late(self):
        """the late worker is named: by how much, how often"""
        address = self.serve("late:1 run:60000", 3)

        def commits():
            return json.loads(self.muster("status", "--json", "-", address)[1])["commits"]

        self.assertTrue(until(lambda: commits() >= 10, SECONDS))
        rc, out, _ = self.muster("status", address)
        self.assertEqual(rc, 0)
        self.assertRegex(out, r"rank 1 is late: 3\.00 ms after its step's commit on average, in "
                         r"16 of its last 32 gradients \(50 %\); that has been so for 2\.00 s\n$")
        self.assertRegex(out, r"\n +1 +live +\d+ +320 of 640 +50 % +\d+ % +0 +0 / 0 +8\.00 ms "
                              r"+3\.00 ms")

    def test_environment(self):
        """the server comes from the environment where it is not typed"""
        address = self.serve("gather:60000", 2)
        rc, out, _ = self.muster("status", MUSTER_SERVER=address)
        self.assertEqual((rc, out.startswith(f"job default at {address} is gathering")), (0, True))
        self.assertTrue(out.endswith("nobody is late\n"))

    def test_many(self):
        """a job of more ranks than one message holds is shown whole"""
        rc, out, _ = self.muster("status", "--json", "-", self.serve("run:60000", 600))
        ranks = json.loads(out)["ranks"]
        self.assertEqual((rc, [rank["rank"] for rank in ranks]), (0, list(range(600))))

    def test_json(self):
        """--json FILE has the figures, and the table is printed all the same"""
        rc, out, _ = self.muster("status", "--json", self.path("x"), self.serve("run:60000", 2))
        status = json.loads(self.read("x"))
        self.assertEqual((rc, status["state"], status["workers"]), (0, "running", 2))
        self.assertIn("rank", out)

    def test_text(self):
        """what musterd says reaches terminal and JSON without controls, as UTF-8"""
        address, clean = self.serve("rave run:60000", 2), "?]0;mine? caf\u00e9 ???? end"
        rc, out, _ = self.muster("status", "--json", self.path("x"), address)
        self.assertEqual((rc, out.splitlines()[0].count(clean)), (0, 2), out)
        self.assertNotIn("\033", out)
        self.assertEqual(json.loads(self.read("x"))["policy"], clean)

    def test_json_unwritable(self):
        """figures that cannot be written are exit 3, and no half of them is left"""
        address = self.serve("run:60000", 600)
        rc, _, err = self.muster("status", "--json", "/dev/full", address)
        self.assertEqual((rc, "cannot write the figures to /dev/full" in err), (3, True))
        done = subprocess.run(["/bin/sh", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "sh",
                               scene.MUSTER, "status", "--json", self.path("x"), address],
                              env=self.environment(""), capture_output=True, text=True,
                              timeout=100)
        self.assertEqual((done.returncode, os.path.exists(self.path("x"))), (3, False),
                         done.stderr)

    def test_nobody(self):
        """where nobody listens that is said, with the address"""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % free.getsockname()[1]
            rc, _, err = self.muster("status", address)
        self.assertEqual((rc, f"nobody listens on {address}" in err), (1, True))

    def test_stranger(self):
        """where something else listens that is said, too"""
        rc, err = self.before_a_stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n", "status")
        self.assertEqual((rc, "not musterd" in err), (1, True), err)

    def test_newer(self):
        """a musterd whose answer has a field that must be known is called newer"""
        newer = frame(DONE, fields(b"done") + field(0x8000 | 77, b""))
        for words in (("status",), ("finish",)):
            rc, err = self.before_a_stranger(newer, *words)
            self.assertEqual(rc, 1)
            self.assertIn("musterd sent a message DONE with field 77", err)

    def test_another_release(self):
        """a musterd of another release is asked and understood: what only it knows is left out"""
        address = self.serve("late:1 run:60000", 3)
        with socket.create_server(("127.0.0.1", 0)) as other:
            thread = threading.Thread(target=speak_as_another, args=(other, address))
            thread.start()
            rc, out, err = self.muster("status", "--json", "-",
                                       "127.0.0.1:%d" % other.getsockname()[1])
            thread.join()
        self.assertEqual(rc, 0, err)
        here = json.loads(self.muster("status", "--json", "-", address)[1])
        there = json.loads(out)
        self.assertEqual(set(there), set(here))
        self.assertEqual((there["job"], there["workers"]), (here["job"], here["workers"]))
        self.assertEqual([list(rank) for rank in there["ranks"]],
                         [list(rank) for rank in here["ranks"]])
        self.assertEqual([rank["rank"] for rank in there["ranks"]], [0, 1, 2])

    def before_a_stranger(self, greeting, *words):
        """Exit status and error of muster, where what listens says that."""
        with socket.create_server(("127.0.0.1", 0)) as other:
            def greet():
                connection, _ = other.accept()
                connection.sendall(greeting)
                connection.recv(100)
                connection.close()

            thread = threading.Thread(target=greet)
            thread.start()
            rc, _, err = self.muster(*words, "127.0.0.1:%d" % other.getsockname()[1])
            thread.join()
        return rc, err

    def test_hanging(self):
        """a musterd that does not answer is not waited for longer than --timeout"""
        rc, _, err = self.muster("status", "--timeout", "300ms", self.serve("halt:60000", 1))
        self.assertEqual((rc, "does not answer" in err), (1, True))

    def test_address(self):
        """what is no address is refused"""
        self.assertEqual(self.muster("status", "127.0.0.1:none")[0], 2)
        self.assertEqual(self.muster("status", "one:1", "two:2")[0], 2)


scene.main()
