# SPDX-License-Identifier: MIT
"""What the figures of papers.py share: jobs in `muster sim` and in real processes, means with their
intervals, tables and plots."""
import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_S = 600
# Student's t for 95 %, two-sided, by degrees of freedom.
T95 = (0, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
       2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)


def interval(values):
    """The mean along the first axis, and half of its confidence interval."""
    values = np.asarray(values, dtype=float)
    n = len(values)
    if n < 2:
        return values.mean(axis=0), np.zeros(values.shape[1:])
    t = T95[n - 1] if n <= len(T95) else 1.96
    return values.mean(axis=0), t * values.std(axis=0, ddof=1) / math.sqrt(n)


def kth(k, n):
    """The mean of the k-th of n exponential times of mean 1 (Renyi 1953)."""
    return sum(1 / i for i in range(n - k + 1, n + 1))


def given(option, values):
    """The option once more for each value."""
    return [word for value in values for word in (option, value)]


def seeds(s):
    return range(s.first_seed, s.first_seed + s.seeds)


def column(points, name):
    """One figure of all points; what is missing is NaN."""
    return np.array([math.nan if p[name] is None else p[name] for p in points])


def digits(a, s):
    """The problem of `muster sim --train`."""
    return f"digits:{a.mnist + ',' if a.mnist else ''}hidden={s.hidden},batch={s.batch}"


def told(command, allowed=(0,)):
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=LIMIT_S, check=False)
    if done.returncode not in allowed:
        sys.exit(f"papers: {' '.join(command)}:\n{done.stderr}")
    return done.stdout


def simulate(a, seed, *args):
    """Return: the jobs of one simulation. Exit status 1 is a job that was trained too fast, and has
    failed: its error is then missing."""
    out = told([a.build / "tools/muster", "sim", "-q", "--json", "-", "--seed", seed, *args],
               (0, 1) if "--train" in args else (0,))
    return json.loads(out)["jobs"]


class Folder:
    """A temporary directory for the files of real jobs."""

    def __enter__(self):
        self.made = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.made.name)
        return self

    def __exit__(self, *_):
        self.made.cleanup()

    def run(self, a, s, seed, options, delays):
        """A job of real processes. Return: what the summary and what rank 0 says."""
        job, end = self.path / "job.json", self.path / "end.json"
        told([a.build / "tools/muster", "run", "-q", "-n", s.workers, "--listen", "127.0.0.1:0",
              "--lease", "60s", "--grace", "60s", "--json", job, *options, "--",
              a.build / "client/examples/digits", "--product", "plain", "--hidden", s.hidden,
              "--batch", s.batch, "--test-every", 0, "--seed", seed,
              "--json", end, *given("--delay", delays), *(("--data", a.mnist) if a.mnist else ())])
        return [json.loads(path.read_text(encoding="utf-8")) for path in (job, end)]


class Table:
    """A CSV file."""

    def __init__(self, a, name, *columns):
        self.path, self.rows = a.out / f"{name}.csv", [columns]

    def add(self, *row):
        """What is missing is an empty field."""
        self.rows.append([x if not isinstance(x, float) else f"{x:.4g}" if math.isfinite(x) else ""
                          for x in row])

    def write(self):
        with open(self.path, "w", newline="", encoding="utf-8") as f:
            csv.writer(f, lineterminator="\n").writerows(self.rows)
        print(os.path.relpath(self.path), flush=True)


def read_table(a, name):
    """The rows of a table that was written, as dicts. Figures are numbers, and what is missing is
    None: so a plot shows what its table has, whoever draws it."""
    with open(a.out / f"{name}.csv", newline="", encoding="utf-8") as f:
        return [{key: figure(text) for key, text in row.items()} for row in csv.DictReader(f)]


def figure(text):
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def groups(rows, *names):
    """The rows that have the same values in these columns, in the order of their first rows."""
    found = {}
    for row in rows:
        key = tuple(row[name] for name in names)
        found.setdefault(key if len(names) > 1 else key[0], []).append(row)
    return found.items()


def draw(a, name, plot):
    path = a.out / f"{name}.svg"
    plot.write(path)
    print(os.path.relpath(path), flush=True)


def add_band(plot, name, xs, means, halves):
    """A line, and around it the band of its intervals; where there is none there is no band."""
    plot.add(name, xs, means, means - halves, means + halves)


def add_rows(plot, name, rows, x, y, half=None, factor=1):
    """The line of two columns of a table; @half: the column of the intervals."""
    means = factor * column(rows, y)
    halves = factor * column(rows, half) if half else 0 * means
    add_band(plot, name, column(rows, x), means, halves)
