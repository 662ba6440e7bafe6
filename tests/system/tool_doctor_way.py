#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster doctor --listen and --peer: the way between two hosts by TCP.

A firewall is a rule of routing in network namespaces, which only root can make.

usage: tool_doctor_way.py MUSTER FAKE_MUSTERD [unittest's arguments]
"""
import json
import os
import signal
import socket
import subprocess

import scene
from server import SECONDS


class Way(scene.Scene):
    inside = ()  # what runs a command in the namespace of the end that listens

    def listen(self, *args):
        """Return: the process, and the address that it prints."""
        peer = subprocess.Popen([*self.inside, scene.MUSTER, "doctor", "--listen", *args],
                                env=self.environment(""), text=True, stdout=subprocess.PIPE)
        for line in peer.stdout:
            if "--peer" in line:
                return peer, line.split()[-1]
        self.fail("it does not listen")

    def way(self, address, *args, before=()):
        """The test of the way there. Return: its figures, and the findings about it."""
        done = subprocess.run([*before, scene.MUSTER, "doctor", "--peer", address, "--json=-",
                               *(args or ("--timeout", f"{SECONDS}s"))],
                              env=self.environment(""), text=True, capture_output=True, timeout=200)
        doc = json.loads(done.stdout)
        at = doc["way"]["address"]
        return doc["way"], {f["check"]: f for f in doc["findings"] if f["subject"] == at}

    def asks_for_rdma(self, address):
        """What is found of RDMA to a host whose --listen has none."""
        done = subprocess.run([scene.MUSTER, "doctor", "--peer", address, "--json=-", "--transport",
                               "verbs", "--timeout", f"{SECONDS}s"], env=self.environment(""),
                              text=True, capture_output=True, timeout=200, check=False)
        found = json.loads(done.stdout)["findings"]
        return next(f for f in found if f["check"] == "peer")

    def test_way(self):
        """by TCP two processes test both ports both ways, and tell bytes a second and a step"""
        peer, address = self.listen("--transport", "tcp", "--data-address", "127.0.0.1")
        way, found = self.way(address)
        self.assertEqual({check: f["level"] for check, f in found.items() if check != "window"},
                         dict.fromkeys(("control", "data", "rate", "back", "step"), "ok"))
        for name in ("control", "data", "rate", "back_control", "back_data"):
            self.assertEqual(way[name], {"ok": True, "why": ""})
        self.assertEqual((len(way["up_gbs"]), way["tls"]), (3, None))
        for figure in (*way["up_gbs"], way["down_gbs"], way["round_trip_us"]):
            self.assertGreater(figure, 0)
        self.assertIn("100 MiB", found["step"]["found"])
        self.assertIn("not encrypted", found["control"]["found"])
        self.assertIn("has found no RDMA there", self.asks_for_rdma(address)["cause"])
        peer.send_signal(signal.SIGTERM)
        out, _ = peer.communicate(timeout=SECONDS)
        self.assertEqual(peer.returncode, 0)
        self.assertRegex(out, r"(?m)^127\.0\.0\.1:\d+ \S+ called; it can be called from here, ")

    def test_way_of_nobody(self):
        """a host where nobody listens, one that is none and a server of another kind are told"""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])  # the usual one another test may take meanwhile
        peer, address = self.listen("--data-address", "127.0.0.1", "--port", port, "--for", "100ms")
        peer.communicate(timeout=SECONDS)
        way, found = self.way(address)
        self.assertFalse(way["control"]["ok"])
        self.assertIn("nobody listens at 127.0.0.1", found["control"]["cause"])
        self.assertIn("muster doctor --listen", found["control"]["fix"])
        _, found = self.way("no-such-host.invalid")
        self.assertIn("getent hosts no-such-host.invalid", found["control"]["fix"])
        with socket.create_server(("127.0.0.1", 0)) as silent:
            _, found = self.way("127.0.0.1:%d" % silent.getsockname()[1], "--timeout", "1s")
        self.assertIn("says nothing", found["control"]["cause"])

    def test_way_with_certificates(self):
        """with certificates both ends are proven, and encrypted bytes a second are told, too"""
        keys = self.path("keys")
        subprocess.run([scene.MUSTER, "key", "new", keys], check=True, capture_output=True)

        def pair(role):
            return ("--tls-ca", f"{keys}/ca.pem", "--tls-cert", f"{keys}/{role}.pem", "--tls-key",
                    f"{keys}/{role}.key")
        peer, address = self.listen("--data-address", "127.0.0.1", *pair("server"))
        way, found = self.way(address, "--timeout", f"{SECONDS}s", *pair("worker"))
        self.assertTrue(way["encrypted"] and way["tls"]["ok"], way)
        for figure in (*way["tls_up_gbs"], way["tls_down_gbs"]):
            self.assertGreater(figure, 0)
        self.assertIn(" back, encrypted: ", found["step"]["found"])
        self.assertTrue(way["back_control"]["ok"], way)  # a worker's certificate is no server's
        self.assertIn("encrypted, both ends proven", found["control"]["found"])
        _, found = self.way(address)
        self.assertEqual(found["control"]["level"], "FAIL")
        self.assertIn("--tls-ca", found["control"]["fix"])
        peer.send_signal(signal.SIGINT)
        peer.communicate(timeout=SECONDS)

    def test_data_port(self):
        """a port for data that is asked for is where the other end is called, or told as taken"""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        fixed = ("--data-address", "127.0.0.1", "--data-port", str(port))
        peer, address = self.listen(*fixed, "--transport", "tcp")
        _, found = self.way(address)
        self.assertIn(f"to port {port}: every byte right", found["data"]["found"])
        done = subprocess.run([scene.MUSTER, "doctor", *fixed, "--json=-"], text=True, timeout=200,
                              env=self.environment(""), capture_output=True, check=False)
        doc = json.loads(done.stdout)
        self.assertEqual((done.returncode, doc["data_port"]["ok"]), (1, False))
        taken = next(f for f in doc["findings"] if f["check"] == "data port")
        self.assertIn(f"ss -ltnp 'sport = :{port}'", taken["fix"])
        peer.send_signal(signal.SIGTERM)
        peer.communicate(timeout=SECONDS)

    def namespaces(self):
        """Two hosts; skips where there can be none. Return: what runs a command in either."""
        mark = f"d{os.getpid()}"
        a, b = f"{mark}a", f"{mark}b"
        for line in (f"netns add {a}", f"netns add {b}",
                     f"link add {mark}v netns {a} type veth peer name {mark}w netns {b}",
                     f"-n {a} addr add 10.77.0.1/24 dev {mark}v",
                     f"-n {b} addr add 10.77.0.2/24 dev {mark}w", f"-n {a} link set lo up",
                     f"-n {b} link set lo up", f"-n {a} link set {mark}v up",
                     f"-n {b} link set {mark}w up"):
            made = subprocess.run(["ip", *line.split()], check=False, capture_output=True,
                                  text=True)
            if made.returncode != 0:
                self.skipTest(f"ip {line}: {made.stderr.strip()}")
            if line.startswith("netns add"):
                self.addCleanup(subprocess.run, ["ip", "netns", "del", line.split()[-1]],
                                check=False)
        return ["ip", "netns", "exec", a], ["ip", "netns", "exec", b]

    def drop(self, where, port):
        """A firewall that drops what comes from that port; returns what ends it."""
        rule = f"rule add ipproto tcp sport {port} blackhole".split()
        done = subprocess.run([*where, "ip", *rule], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest(f"ip {' '.join(rule)}: {done.stderr.strip()}")
        rule[1] = "del"
        return lambda: subprocess.run([*where, "ip", *rule], check=True)

    def test_firewalls(self):
        """a firewall that drops is told by the port, in time: of the peer, or of this host"""
        if os.geteuid() != 0:
            self.skipTest("only root can make network namespaces")
        self.inside, here = self.namespaces()
        peer, address = self.listen()
        data = next(line.split()[-1] for line in peer.stdout if "port for data" in line)
        self.assertEqual(address, "10.77.0.1")
        quick = ("--timeout", "3s")
        for where, port, check, level, words in (
                (self.inside, 17077, "control", "FAIL", "let TCP port 17077 in there"),
                (self.inside, data, "data", "FAIL", f"let TCP port {data} in there, too"),
                (here, 17077, "back", "warning", "run the servers on ")):
            end = self.drop(where, port)
            _, found = self.way(address, *quick, before=here)
            end()
            self.assertEqual(found[check]["level"], level, found)
            self.assertIn("does not answer within", found[check]["cause"])
            self.assertIn(words, found[check]["fix"])
        peer.send_signal(signal.SIGINT)
        peer.communicate(timeout=SECONDS)


scene.main()
