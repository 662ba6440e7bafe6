#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""muster bench: real servers and workers, for a moment each.

usage: tool_bench.py MUSTER MUSTERD SPOILT_MUSTER [unittest's arguments]
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile

import scene
from base import until
from server import LEASE, SECONDS

SPOILT = sys.argv.pop(3)
TIMES = ("min_us", "p50_us", "p90_us", "p99_us", "max_us")


class Bench(scene.Scene):
    def start_bench(self, *args, program=None, **more):
        return subprocess.Popen([program or scene.MUSTER, "bench", *LEASE, *args],
                                env=self.environment("", **more), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def bench(self, *args, **more):
        return self.finish(self.start_bench(*args, **more), 300)

    def figures(self, *args, **more):
        """Measures, which has to succeed. Return: the JSON's rows."""
        rc, out, err = self.bench("--json", "-", *args, **more)
        self.assertEqual(rc, 0, err)
        return json.loads(out)


class Measures(Bench):
    def test_table(self):
        """a row for each number of workers and each size, with all columns"""
        rc, out, err = self.bench("-n", "2,3", "--sizes", "4K,100000", "--samples", "30")
        self.assertEqual((rc, err), (0, ""))
        head, *rows = [line.split() for line in out.splitlines() if not line.startswith("#")]
        self.assertEqual([(row[0], row[1], row[3]) for row in rows],
                         [("4K", "1024", "2"), ("100000", "25000", "2"), ("4K", "1024", "3"),
                          ("100000", "25000", "3")])
        for row in rows:
            cell = dict(zip(head, row, strict=True))
            self.assertEqual((cell["samples"], cell["#wrong"], cell["type"]), ("30", "0", "f32"))
            self.assertEqual((cell["p99"], cell["p99.9"]), ("-", "-"))
            self.assertLessEqual(float(cell["min"]), float(cell["p50"]))
            self.assertGreater(float(cell["p50"]), 0)

    def test_json(self):
        """the fields that programs rely on, in their units"""
        row, = self.figures("-n", "3", "--sizes", "64K", "--samples", "40", "--warmup", "5")
        self.assertEqual([row[key] for key in ("transport", "buffers", "type", "owner", "policy",
                                               "workers", "size_bytes", "count", "samples",
                                               "wrong", "late", "latency_of_last")],
                         ["shm", "slot", "f32", "workers", "bsp", 3, 65536, 16384, 40, 0, 0,
                          False])
        self.assertEqual((row["commits"], row["checked"], row["counted"]), (45, 135, 120))
        times = [row[key] for key in TIMES]
        self.assertEqual((times, times[0] > 0), (sorted(times), True))
        self.assertTrue(row["min_us"] <= row["mean_us"] <= row["max_us"], row)
        self.assertIsNone(row["p999_us"])
        self.assertAlmostEqual(row["algbw_gbs"], 65536 / row["p50_us"] / 1e3, places=3)
        self.assertAlmostEqual(row["busbw_gbs"], row["algbw_gbs"] * 4 / 3, places=3)
        self.assertAlmostEqual(row["server_gbs"], row["algbw_gbs"] * 3, places=3)
        for key in ("server_gbs_per_core", "server_cpu_s", "server_rss_bytes", "first_commit_ms",
                    "gate_p50_us"):
            self.assertGreater(row[key], 0, key)
        self.assertGreaterEqual(row["sum_us"], 0)  # who learns late that it has pushed sees none

    def test_every_result_is_checked(self):
        """each type, both kinds of buffers, both owners: all right, to the bit"""
        for size_type in ("f32", "bf16", "f16"):
            for buffers in ("slot", "own"):
                for owner in ("workers", "servers"):
                    row, = self.figures("-n", "3", "--sizes", "30004", "--samples", "11",
                                        "--type", size_type, "--buffers", buffers,
                                        "--owner", owner)
                    self.assertEqual([row[key] for key in ("type", "buffers", "owner", "wrong",
                                                           "checked", "samples")],
                                     [size_type, buffers, owner, 0, 63, 11])

    def test_several_servers(self):
        """the followers are started too, all results come right, and all servers are counted"""
        for servers, more in ((2, ("--shards", "1")), (3, ("--owner", "servers", "--partition",
                                                           "2,1,1"))):
            row, = self.figures("-n", "3", "--sizes", "96K", "--samples", "40", "--warmup", "5",
                                "--servers", str(servers), *more)
            self.assertEqual([row[key] for key in ("servers", "wrong", "checked", "counted",
                                                   "late", "commits")],
                             [servers, 0, 135, 120, 0, 45])
            self.assertGreater(row["server_rss_bytes"], servers << 20)
        rc, out, err = self.bench("-n", "2", "--servers", "2", "--sizes", "64K,1M", "--budget",
                                  "5ms")
        self.assertEqual((rc, err), (0, ""))
        head, *rows = [line.split() for line in out.splitlines() if not line.startswith("#")]
        self.assertEqual([(row[head.index("size")], row[head.index("servers")]) for row in rows],
                         [("64K", "2"), ("1M", "2")])

    def test_encrypted(self):
        """over TCP by TLS, with certificates that are made for the run and go with it"""
        with tempfile.TemporaryDirectory() as place:
            row, = self.figures("-n", "2", "--servers", "2", "--transport", "tcp", "--data-tls",
                                "on", "--sizes", "96K", "--samples", "40", TMPDIR=place)
            self.assertEqual((row["transport"], row["wrong"]), ("tcp", 0))
            self.assertEqual(os.listdir(place), [])
            rc, _, err = self.bench("-n", "2", "--transport", "tcp", "--data-tls", "on", "--sizes",
                                    "4K", TMPDIR=os.path.join(place, "nowhere"))
            self.assertEqual(rc, 2)
            self.assertIn("TMPDIR names another", err)

    def test_tail(self):
        """with 1000 samples there is a p99.9"""
        row, = self.figures("-n", "2", "--sizes", "4K", "--samples", "1000")
        self.assertLessEqual(row["p99_us"], row["p999_us"])
        self.assertLessEqual(row["p999_us"], row["max_us"])

    def test_budget(self):
        """without --samples the budget ends a row"""
        row, = self.figures("-n", "2", "--sizes", "1M", "--budget", "200ms")
        self.assertGreaterEqual(row["samples"], 5)  # that many in any case
        # The last one begins within the budget, and ends after it.
        self.assertTrue(row["samples"] == 5 or (row["samples"] - 1) * row["min_us"] <= 200e3, row)

    def test_delay(self):
        """bsp waits for a delayed worker, and backup does not"""
        job = ("-n", "3", "--sizes", "4K", "--samples", "6", "--warmup", "1", "--delay")
        row, = self.figures(*job, "2:const:200")
        self.assertGreater(row["p50_us"], 100e3)
        self.assertGreater(row["wait_us"], 100e3)
        # For so long a busy host does not keep the others from each of their steps.
        row, = self.figures(*job, "2:const:3000", "--policy", "backup:2")
        self.assertLess(row["min_us"], 1500e3)
        self.assertEqual((row["owner"], row["wrong"]), ("servers", 0))

    def test_latency_of_last(self):
        """the last push is far from the others, and its wait is not measured"""
        row, = self.figures("-n", "3", "--latency-of-last", "--sizes", "64K", "--samples", "6",
                            "--settle", "500ms", "--budget", "5s")
        self.assertEqual((row["latency_of_last"], row["wrong"], row["samples"]), (True, 0, 6))
        self.assertLessEqual(row["first_p50_us"], row["p50_us"])
        self.assertLessEqual(row["own_p50_us"], row["p50_us"])
        self.assertLess(row["min_us"], 450e3)
        self.assertGreater(row["gate_p50_us"], 500e3)


class Spoilt(Bench):
    def spoilt(self, how, *args):
        rc, out, err = self.bench("-n", "3", "--sizes", "64K", "--samples", "10", "--json", "-",
                                  *args, program=SPOILT, SPOIL=how)
        self.assertEqual((rc, "elements of results are wrong" in err), (1, True), err)
        row, = json.loads(out)
        return row["wrong"]

    def test_bit(self):
        """one wrong bit in one element of one result is one wrong element"""
        for buffers in ("slot", "own"):
            for size_type in ("f32", "bf16"):
                self.assertEqual(self.spoilt("bit", "--buffers", buffers, "--type", size_type), 1)

    def test_owner(self):
        """also where the servers own"""
        self.assertEqual(self.spoilt("bit", "--owner", "servers"), 1)

    def test_old(self):
        """an old result is wrong nearly everywhere"""
        self.assertGreater(self.spoilt("old"), 12000)
        self.assertGreater(self.spoilt("old", "--owner", "servers"), 12000)

    def test_shift(self):
        """so is a page in another's place, in its 1024 elements"""
        self.assertIn(self.spoilt("shift"), range(800, 1025))

    def test_servers(self):
        """and where two servers share the vector, in the part of either"""
        self.assertEqual(self.spoilt("bit", "--servers", "2"), 1)
        self.assertGreater(self.spoilt("old", "--servers", "2"), 12000)

    def test_unspoilt(self):
        """the same program without SPOIL finds nothing wrong"""
        row, = self.figures("-n", "3", "--sizes", "64K", "--samples", "10", program=SPOILT)
        self.assertEqual(row["wrong"], 0)


class Ends(Bench):
    def running(self, word):
        found = []
        for pid in scene.tagged(self.mark):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
                if word in f.read():
                    found.append(pid)
        return found

    def workers(self):
        return self.running(b"--as-worker-of")

    def begin(self, *more):
        process = self.start_bench("-n", "3", "--sizes", "1M", "--budget", "1h", "--samples",
                                   "10000000", *more)
        self.assertTrue(until(lambda: len(self.workers()) == 3, SECONDS))
        return process

    def test_signal(self):
        """a signal ends it, with all its processes"""
        process = self.begin()
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process)[0], 128 + signal.SIGINT)

    def test_dead_worker(self):
        """a worker that dies fails the measurement, and nobody waits at its barrier"""
        process = self.begin()
        os.kill(self.workers()[1], signal.SIGKILL)
        rc, _, err = self.finish(process)
        self.assertEqual((rc, "workers 3, 1048576 bytes" in err), (1, True), err)

    def test_dead_follower(self):
        """so does a server that dies, and it is named"""
        process = self.begin("--servers", "2")
        self.assertTrue(until(lambda: len(self.running(b"--join=")) == 1, SECONDS))
        os.kill(self.running(b"--join=")[0], signal.SIGKILL)
        rc, _, err = self.finish(process)
        self.assertEqual((rc, "server 1" in err), (1, True), err)

    def test_no_server(self):
        """without a musterd there is a sentence"""
        rc, _, err = self.bench("--sizes", "4K", "--samples", "5", MUSTER_MUSTERD="/nowhere")
        self.assertEqual((rc, "cannot start /nowhere" in err), (1, True), err)


class Usage(Bench):
    def test_refused(self):
        """what cannot be measured is refused with 2, and with the option's name"""
        for args, word in [(["--sizes", "4Q"], "--sizes"), (["--sizes", "4K,,8K"], "--sizes"),
                           (["--sizes", "4098"], "--sizes"), (["--sizes", "0"], "--sizes"),
                           (["--workers", "two"], "--workers"), (["--workers", "0"], "--workers"),
                           (["--workers", "4,99999"], "--workers"),
                           (["--buffers", "other"], "--buffers"), (["--type", "f64"], "--type"),
                           (["--policy", "async"], "--policy"),
                           (["--policy", "backup:9"], "--policy"),
                           (["--policy", "bps"], "bps"), (["--delay", "slow:3"], "slow:3"),
                           (["--samples", "0"], "--samples"), (["--commits", "5"], "--commits"),
                           (["--json", "/nowhere/x"], "--json"), (["rest"], "rest"),
                           (["--latency-of-last", "-n", "1"], "--latency-of-last"),
                           (["--latency-of-last", "--policy", "backup:3"], "--latency-of-last"),
                           (["--workers", ",".join(["2"] * 33)], "--workers"),
                           (["--servers", "2", "--sizes", "1M,4K"], "4096 bytes"),
                           (["--servers", "2", "--partition", "1,2,3"], "--partition"),
                           (["--servers", "17"], "--servers"),
                           (["--lr-schedule", "warmup:9"], "--lr-schedule"),
                           (["--lr-distance", "9"], "--lr-distance"),
                           (["--join", "127.0.0.1:1"], "--join")]:
            rc, out, err = self.bench(*args)
            self.assertEqual((rc, out, word in err), (2, "", True), (args, err))

    def test_help(self):
        """--help is an answer"""
        rc, out, _ = self.bench("--help")
        self.assertEqual((rc, "usage: muster bench" in out, "--latency-of-last" in out),
                         (0, True, True))
        self.assertNotIn("as-worker-of", out)



scene.main()
