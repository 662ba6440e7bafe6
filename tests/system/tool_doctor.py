#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster doctor as a command: what it prints, how it ends, and its test between two processes.

What it says of RDMA depends on the host: the unit tests make hosts up, tests/vm has real ones.

usage: tool_doctor.py MUSTER FAKE_MUSTERD [unittest's arguments]
"""
import json
import os
import re
import signal
import subprocess

import scene
from server import SECONDS

LINE = r"^(ok     |warning|FAIL   )  [a-z ]{10}  \S"


class Doctor(scene.Scene):
    def doctor(self, *args, **more):
        done = subprocess.run([scene.MUSTER, "doctor", "--timeout", f"{SECONDS}s", *args],
                              env=self.environment("", **more), text=True, capture_output=True,
                              timeout=100)
        return done.returncode, done.stdout, done.stderr

    def findings(self, *args, **more):
        return json.loads(self.doctor("--json", "-", *args, **more)[1])["findings"]

    def test_help(self):
        """--help is an answer, and names every option"""
        rc, out, _ = self.doctor("--help")
        self.assertEqual((rc, "usage: muster doctor" in out), (0, True))
        for option in ("--device", "--workers", "--elems", "--peer", "--listen", "--json"):
            self.assertIn(option, out)

    def test_text(self):
        """each check is a line, what is not ok has cause and fix, the last line sums it up"""
        rc, out, _ = self.doctor()
        checks, _, verdict = out.rstrip().rpartition("\n\n")
        level = ""
        for line in checks.splitlines():
            if line.startswith("         "):
                self.assertRegex(line, r"^ +(because|fix) +\S")
                self.assertNotEqual(level, "ok", line)
            else:
                self.assertRegex(line, LINE)
                level = line.split()[0]
        fails = len(re.findall("^FAIL", checks, re.M))
        over = "fix the first" if fails else "a job between hosts can run here over .*TCP$"
        self.assertRegex(verdict, rf"^{fails} failures?, \d+ warnings?: {over}")
        self.assertEqual(rc, 1 if fails else 0)
        self.assertRegex(checks, r"(?m)^ok       shm         wrote 1\.00 MiB: every byte right")
        self.assertRegex(checks, r"(?m)^ok       tcp         wrote 1\.00 MiB: every byte right")
        self.assertRegex(checks, r"(?m)^ok       sockets     \d+ callers may wait at a port; ")
        self.assertRegex(checks, r"(?m)^(ok  |warn).*  addresses   \S")

    def test_rdma_is_spare(self):
        """what RDMA lacks is a failure only of a host that has to have it"""
        lacks = [f["check"] for f in self.findings("--transport", "verbs") if f["level"] == "FAIL"]
        found = {f["check"]: f["level"] for f in self.findings()}
        for check in lacks:
            self.assertEqual(found[check], "warning")
        self.assertEqual(found["tcp"], "ok")

    def test_json(self):
        """--json has the findings, and how writing went; - is that alone"""
        rc, out, _ = self.doctor("--json", "-")
        doc = json.loads(out)
        self.assertEqual(doc["usable"], rc == 0)
        self.assertEqual(doc["failures"], sum(f["level"] == "FAIL" for f in doc["findings"]))
        for finding in doc["findings"]:
            self.assertEqual(bool(finding["fix"]), finding["level"] != "ok", finding)
            self.assertEqual(bool(finding["cause"]), finding["level"] != "ok", finding)
        shm = next(w for w in doc["writes"] if w["check"] == "shm")
        self.assertEqual((shm["ok"], shm["bytes"], shm["wrong"]), (True, 1 << 20, 0))
        self.assertIsNone(doc["way"])
        rc, out, _ = self.doctor("--json", self.path("x"))
        self.assertEqual(len(json.loads(self.read("x"))["findings"]), len(doc["findings"]))
        self.assertIn("modules", out)

    def test_job(self):
        """a job's figures are held against the limit of this process"""
        command = ["prlimit", "--memlock=65536:65536", "setpriv", "--bounding-set=-ipc_lock",
                   "--inh-caps=-ipc_lock", scene.MUSTER, "doctor", "-n8", "--elems=1000000",
                   "--transport=verbs", "--json=-"]
        done = subprocess.run(command, env=self.environment(""), text=True, capture_output=True,
                              timeout=100)
        if "setpriv" in done.stderr:
            self.skipTest(done.stderr.strip())
        memlock = next(f for f in json.loads(done.stdout)["findings"] if f["check"] == "memlock")
        self.assertEqual(memlock["level"], "FAIL")
        self.assertIn("may lock 64.0 KiB; a worker registers 11.5 MiB, the server 76.5 MiB",
                      memlock["found"])

    def directory(self, runtime):
        """What is found of it, with that XDG_RUNTIME_DIR."""
        found = self.findings(XDG_RUNTIME_DIR=runtime)
        shm = next(f for f in found if f["check"] == "shm")
        one = next(f for f in found if f["check"] == "directory")
        self.assertEqual(shm["level"], one["level"])
        if one["level"] == "FAIL":
            self.assertEqual(shm["fix"], "what directory above says")
        return one

    def test_directory(self):
        """where the sockets of listeners cannot lie is said, with why and what fixes it"""
        runtime = self.path("runtime")
        os.mkdir(runtime, 0o700)
        self.assertEqual(self.directory(runtime)["level"], "ok")
        own = os.path.join(runtime, "muster")
        self.assertIn(own, self.directory(runtime)["found"])
        os.chmod(own, 0o755)
        self.wrong(runtime, "has mode 0755, and must have 0700", f"chmod 700 {own}, or set XDG_")
        os.rmdir(own)
        with open(own, "w", encoding="utf-8"):
            pass
        self.wrong(runtime, f"{own} is no directory", "remove it, or set XDG_RUNTIME_DIR")
        os.unlink(own)
        os.chmod(runtime, 0o777)
        self.wrong(runtime, "has mode 0777, so that others could put", f"chmod go-w {runtime}, or")
        self.wrong(self.path("nowhere"), "No such file", "set XDG_RUNTIME_DIR to a directory of")
        self.wrong("run/user", "which is no absolute path", "set it to a directory of this user's")
        self.wrong("/" + 100 * "x", "It may have at most 78", "set it to a shorter path")

    def test_foreign_directory(self):
        """so is one of another user, or in one of another user"""
        if os.geteuid() != 0:
            self.skipTest("only root can give a directory away")
        runtime = self.path("runtime")
        own = os.path.join(runtime, "muster")
        os.makedirs(own, 0o700)
        os.chown(own, 54321, -1)
        self.wrong(runtime, f"{own} belongs to uid 54321", "remove it, or set XDG_RUNTIME_DIR")
        os.rmdir(own)
        os.chown(runtime, 54321, -1)
        self.wrong(runtime, f"{runtime} belongs to uid 54321", "set XDG_RUNTIME_DIR to a directory")

    def wrong(self, runtime, cause, fix):
        one = self.directory(runtime)
        self.assertEqual(one["level"], "FAIL", one)
        self.assertIn(cause, one["cause"])
        self.assertTrue(one["fix"].startswith(fix), one)

    def test_files(self):
        """the hard limit of descriptors is held against what workers take, as musterd does it"""
        allow = ["prlimit", "--nofile=512:512", scene.MUSTER, "doctor", "--json=-"]
        for job, level in (([], "ok"), (["-n1000", "--elems=1000"], "FAIL")):
            done = subprocess.run([*allow, *job], env=self.environment(""), text=True,
                                  capture_output=True, timeout=100)
            files = next(f for f in json.loads(done.stdout)["findings"] if f["check"] == "files")
            self.assertEqual(files["level"], level, files)
            self.assertIn("a server may open 512 files; ", files["found"])
        self.assertRegex(files["found"], r"1000 workers take 4\d\d\d over shared memory, 1\d\d\d ")
        self.assertRegex(files["fix"], r"nofile.*4\d\d\d")

    def test_device(self):
        """a device that is not there fails, whether typed or in the environment"""
        for args, more in ((["--device", "none7"], {}), ([], {"MUSTER_DEVICE": "none7"})):
            found = [f["found"] for f in self.findings(*args, **more) if f["level"] == "FAIL"]
            self.assertTrue(any("no none7" in f or "none:" in f for f in found), found)

    def test_usage(self):
        """wrong usage is 2, with a reason"""
        for args, why in ((["--workers", "3"], "belong together"), (["x"], "options only"),
                          (["--peer", "10.0.0.1:x"], "--listen prints"),
                          (["--peer", "http://10.0.0.1"], "--listen prints"),
                          (["--port", "0", "--listen"], "--port"),
                          (["--peer", "node1", "--transport", "shm"], "for one host"),
                          (["--peer", "verbs:10.0.0.1:1", "--listen"], "on the other"),
                          (["--devices", "x"], "--device")):
            rc, _, err = self.doctor(*args)
            self.assertEqual((rc, why in err), (2, True), err)

    def listen(self, *args):
        """A peer over shared memory. Return: the process and its address."""
        peer = subprocess.Popen([scene.MUSTER, "doctor", "--listen", "--transport", "shm", *args],
                                env=self.environment(""), text=True, stdout=subprocess.PIPE)
        for line in peer.stdout:
            if "--peer" in line:
                return peer, line.split()[-1]
        self.fail("it does not listen")

    def test_peer(self):
        """two processes test the way between them, and an interrupt ends the one that listens"""
        peer, address = self.listen()
        doc = json.loads(self.doctor("--peer", address, "--json", "-")[1])
        peer.send_signal(signal.SIGINT)
        out, _ = peer.communicate(timeout=SECONDS)
        self.assertRegex(out, r"wrote 1\.00 MiB: every byte right\n$")
        self.assertGreaterEqual(peer.returncode, 0)
        write = next(w for w in doc["writes"] if w["check"] == "peer")
        self.assertEqual((write["ok"], write["transport"], write["wrong"]), (True, "shm", 0))
        self.assertNotEqual(write["peer_host"], "")

    def test_no_peer(self):
        """where nobody listens any more that is said, in time"""
        peer, address = self.listen("--for", "100ms")
        peer.communicate(timeout=SECONDS)
        rc, out, _ = self.doctor("--peer", address, "--timeout", "1s")
        self.assertEqual(rc, 1)
        self.assertRegex(out, r"(?m)^FAIL     peer        /.*: a write of 1\.00 MiB failed\n"
                         r" +because +\S.*\n +fix +\S")

scene.main()
