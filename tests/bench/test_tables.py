#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""compare.py's arithmetic and words, on figures made up for the purpose; nothing is measured."""
import contextlib
import csv
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import compare
import tables


def figure(p50, size_bytes=4096, workers=4, **others):
    return {"size_bytes": size_bytes, "workers": workers, "samples": 100, "min_us": p50 / 2,
            "p50_us": p50, "p99_us": p50 * 3, "max_us": p50 * 4, "checked": 400, "wrong": 0,
            "cpus": 2, **others}


def rounds_of(**peers):
    """rounds_of(muster_slot=(1, 2)): in turn, as compare.py runs them."""
    rounds = tables.Rounds()
    for turn in zip(*peers.values()):
        for name, p50 in zip(peers, turn):
            rounds.add(name.replace("_", " "), figure(p50))
    return rounds


def rows_by_peer(rounds):
    return {row["peer"]: row for row in rounds.rows()}


class Rows(unittest.TestCase):
    def test_a_row_has_median_and_spread_of_the_rounds(self):
        row = rows_by_peer(rounds_of(muster_slot=(9.0, 2.0, 4.0)))["muster slot"]
        self.assertEqual((row["p50_us"], row["p50_low_us"], row["p50_high_us"]), (4.0, 2.0, 9.0))
        self.assertEqual((row["p99_us"], row["max_us"]), (12.0, 36.0))
        self.assertEqual((row["rounds"], row["samples"]), (3, 300))
        self.assertEqual(row["rounds_us"], "9.0 2.0 4.0")

    def test_an_even_number_of_rounds_has_the_mean_of_the_middle_two(self):
        rows = rows_by_peer(rounds_of(Gloo=(1.0, 10.0, 4.0, 2.0)))
        self.assertEqual(rows["Gloo"]["p50_us"], 3.0)

    def test_ratios_are_of_medians_and_above_one_where_muster_is_faster(self):
        rows = rows_by_peer(rounds_of(muster_slot=(1, 2, 30), muster_own=(4, 5, 3),
                                      Gloo=(10, 8, 9)))
        self.assertEqual(rows["Gloo"]["ratio_slot"], 9 / 2)
        self.assertEqual(rows["Gloo"]["ratio_own"], 9 / 4)
        self.assertEqual(rows["muster own"]["ratio_slot"], 2)
        self.assertEqual(rows["muster slot"]["ratio_slot"], 1)

    def test_without_muster_there_is_no_ratio(self):
        row = rows_by_peer(rounds_of(Gloo=(10,)))["Gloo"]
        self.assertEqual((row["ratio_slot"], row["ratio_own"], row["ratio_backup"]), ("", "", ""))

    def test_settings_are_kept_apart(self):
        rounds = tables.Rounds()
        for size, workers, delay, p50 in ((4096, 4, 0, 1), (8192, 4, 0, 2), (4096, 2, 0, 4),
                                          (4096, 4, 10, 8)):
            rounds.add("Gloo", figure(p50, size, workers, delay_ms=delay))
        self.assertEqual([row["p50_us"] for row in rounds.rows()], [1, 2, 4, 8])

    def test_bandwidths_are_of_one_workers_gradient(self):
        rounds = tables.Rounds()
        rounds.add("Open MPI", figure(1000.0, 1 << 20, 4))
        row = rows_by_peer(rounds)["Open MPI"]
        self.assertAlmostEqual(row["algbw_gbs"], 1.048576)
        self.assertAlmostEqual(row["busbw_gbs"], 1.048576 * 1.5)

    def test_what_is_wrong_adds_up(self):
        rounds = tables.Rounds()
        for wrong in (3, 0, 4):
            rounds.add("Gloo", figure(1.0, wrong=wrong))
        self.assertEqual(rows_by_peer(rounds)["Gloo"]["wrong"], 7)
        self.assertEqual(rounds.wrong(), 7)


class Texts(unittest.TestCase):
    def test_sizes(self):
        for size, text in ((4, "4 B"), (4096, "4 KiB"), (100 << 20, "100 MiB"), (1 << 30, "1 GiB"),
                           (4100, "4100 B")):
            self.assertEqual(tables.size_text(size), text)

    def test_a_table(self):
        lines = list(tables.table(rounds_of(muster_slot=(10.0, 12.0, 11.0),
                                            Gloo=(4400.0, 5500.0, 1234.5)).rows()))
        self.assertEqual(len(lines), 3)
        self.assertEqual(lines[1].split(), ["4", "KiB", "4", "muster", "slot", "11.0", "(10.0",
                                            "..", "12.0)", "33.0", "0.37", "1.00", "300", "0"])
        self.assertEqual(lines[2].split(), ["4", "KiB", "4", "Gloo", "4400", "(1234", "..",
                                            "5500)", "13200", "0.00", "400.00", "300", "0"])
        self.assertNotIn("delay", lines[0])
        self.assertEqual(len({len(line) for line in lines}), 1, "columns stand one below another")

    def test_a_table_of_straggler_rounds(self):
        rounds = tables.Rounds()
        rounds.add("muster backup", figure(2.0, delay_ms=100))
        rounds.add("Gloo", figure(9.0, delay_ms=100))
        lines = list(tables.table(rounds.rows()))
        self.assertIn("delay ms", lines[0])
        self.assertNotIn("algbw", lines[0])
        self.assertIn(" 100 ", lines[2])
        self.assertIn(" 4.50 ", lines[2])
        self.assertEqual(len({len(line) for line in lines}), 1)

    def test_csv_can_be_read_back(self):
        out = io.StringIO()
        tables.write_csv(out, rounds_of(muster_slot=(2.0, 4.0), Gloo=(9.0, 9.0)).rows())
        rows = list(csv.DictReader(io.StringIO(out.getvalue())))
        self.assertEqual([r["peer"] for r in rows], ["muster slot", "Gloo"])
        self.assertEqual((float(rows[1]["ratio_slot"]), rows[1]["ratio_own"]), (3.0, ""))
        self.assertEqual(set(rows[0]), set(tables.CSV_FIELDS))

    def test_a_busy_host_is_warned_of(self):
        self.assertNotIn("WARNING", "".join(compare.host_lines(0.5)))
        self.assertIn("WARNING", "".join(compare.host_lines(0.51)))


class Options(unittest.TestCase):
    def parse(self, *words):
        return compare.parse(["--build", "b", *words])

    def refused(self, message, *words):
        err = io.StringIO()
        with self.assertRaises(SystemExit) as end, contextlib.redirect_stderr(err):
            self.parse(*words)
        self.assertEqual(end.exception.code, 2)
        self.assertIn(message, err.getvalue())

    def test_defaults(self):
        args = self.parse()
        self.assertEqual(args.sizes, [4 << 10, 64 << 10, 1 << 20, 25 << 20, 100 << 20])
        self.assertEqual((args.workers, args.rounds, args.delays), ([2, 4, 8], 5, [1, 10, 100]))
        self.assertEqual(args.straggler_size, 1 << 20)

    def test_quick_gives_way_to_what_is_typed(self):
        args = self.parse("--quick", "--rounds", "3", "--workers", "8")
        self.assertEqual((args.rounds, args.workers, args.sizes), (3, [8], [4 << 10, 1 << 20]))

    def test_nonsense_is_refused(self):
        self.refused("multiple of 4", "--sizes", "4K,7")
        self.refused("multiple of 4", "--sizes", "K")
        self.refused("must be 2 to 64", "--workers", "1")
        self.refused("must be 1 to 99", "--rounds", "0")
        self.refused("goes with --fill all", "--muster", "bench")
        self.refused("no peer is called nccl", "--only", "muster,nccl")


class Drivers(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def args(self, *words):
        return compare.parse(["--build", str(self.folder), "--scratch", str(self.folder), *words])

    def test_what_is_not_built_is_skipped_with_a_sentence(self):
        peers = compare.Peers(self.args("--only", "muster"))
        self.assertEqual((peers.names, len(peers.skipped)), ([], 1))
        self.assertRegex(peers.skipped[0], "^skipped: muster: .* is not built$")

    def test_with_nobody_left_the_status_is_that_of_a_skipped_test(self):
        run = subprocess.run([sys.executable, compare.__file__, "--build", self.folder, "--only",
                              "muster"], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(run.returncode, 77)

    def test_figures_are_found_among_other_lines(self):
        text = "a word\n" + compare.json.dumps(figure(1.5))
        self.assertEqual(compare.figure_in(text, self.folder / "none"), figure(1.5))
        (self.folder / "json").write_text(compare.json.dumps([figure(2.5)]))
        self.assertEqual(compare.figure_in("", self.folder / "json"), figure(2.5))
        with self.assertRaisesRegex(compare.DriverError, "no figures"):
            compare.figure_in("", self.folder / "none")

    def test_figures_of_results_that_were_not_checked_are_none(self):
        text = compare.json.dumps(figure(1.5, checked=99))
        with self.assertRaisesRegex(compare.DriverError, "checked 99 results of 100 steps"):
            compare.figure_in(text, self.folder / "none")

    def test_a_driver_that_fails_is_quoted(self):
        with self.assertRaisesRegex(compare.DriverError, "exit status 3: no luck"):
            compare.execute(["sh", "-c", "echo no luck >&2; exit 3"])

    def course(self, scripts):
        """Two rounds of drivers that are shell scripts, by peer."""
        course = compare.Course(self.args("--rounds", "2"), None)
        meter = {"elems": 1024, "workers": 4, "delay-ms": 0}
        runs = [compare.Run(peer, ["sh", "-c", script]) for peer, script in scripts.items()]
        with contextlib.redirect_stderr(io.StringIO()):
            course.turns(lambda _: runs, meter)
        return course

    def test_peers_take_turns(self):
        log = self.folder / "log"
        line = compare.json.dumps(figure(5.0))
        course = self.course({peer: f"echo {peer} >>{log}; echo '{line}'" for peer in "AB"})
        self.assertEqual(log.read_text().split(), ["A", "B", "A", "B"])
        self.assertEqual([row["rounds"] for row in course.rounds.rows()], [2, 2])

    def test_one_that_fails_leaves_the_others_their_rounds(self):
        line = compare.json.dumps(figure(5.0))
        course = self.course({"A": "exit 1", "B": f"echo '{line}'"})
        self.assertEqual([row["peer"] for row in course.rounds.rows()], ["B"])
        self.assertEqual(len(course.failures), 2)

    def finish(self, wrong, failures):
        rounds = tables.Rounds()
        rounds.add("Gloo", figure(1.0, wrong=wrong))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            status = compare.finish(self.args(), (rounds,), failures)
        return status, out.getvalue()

    def test_the_status_tells_of_wrong_elements_and_of_failures(self):
        self.assertEqual(self.finish(0, []), (0, ""))
        self.assertEqual(self.finish(2, []), (1, "WRONG: 2 elements\n"))
        self.assertEqual(self.finish(0, ["why"]), (1, "FAILED: why\n"))


if __name__ == "__main__":
    os.environ["COLUMNS"] = "200"  # argparse breaks its sentences elsewhere
    unittest.main()
