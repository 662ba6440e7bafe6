# SPDX-License-Identifier: MIT
"""What compare.py makes of the rounds: one row per setting and peer, as text and as CSV.

A round's figure is the p50 of its steps; a row has the median of the rounds' figures and their
spread. Ratios are of medians, by muster's in the same setting: above 1 muster is faster.
"""
import collections
import csv
import statistics

Setting = collections.namedtuple("Setting", "size_bytes workers delay_ms")

# Ratios are taken by these, where they were measured.
BASES = ("muster slot", "muster own", "muster backup")
HEADS = {"muster slot": "/slot", "muster own": "/own", "muster backup": "/backup"}
CSV_FIELDS = ("size_bytes", "workers", "delay_ms", "peer", "rounds", "samples", "p50_us",
              "p50_low_us", "p50_high_us", "p99_us", "max_us", "algbw_gbs", "busbw_gbs",
              "ratio_slot", "ratio_own", "ratio_backup", "checked", "wrong", "cpus", "rounds_us")


def size_text(size_bytes):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit and size_bytes % unit == 0:
            return f"{size_bytes // unit} {name}"
    return f"{size_bytes} B"


class Rounds:
    """Figures as drivers print them, by setting and peer, both in the order of their arrival."""

    def __init__(self):
        self.figures = {}

    def add(self, peer, figure):
        setting = Setting(figure["size_bytes"], figure["workers"], figure.get("delay_ms", 0))
        self.figures.setdefault(setting, {}).setdefault(peer, []).append(figure)

    def rows(self):
        for setting, peers in self.figures.items():
            medians = {p: statistics.median(f["p50_us"] for f in fs) for p, fs in peers.items()}
            for peer, figures in peers.items():
                yield row_of(setting, peer, figures, medians)

    def wrong(self):
        return sum(f["wrong"] for peers in self.figures.values() for fs in peers.values()
                   for f in fs)


def row_of(setting, peer, figures, medians):
    p50s = [f["p50_us"] for f in figures]
    p50 = medians[peer]
    algbw = setting.size_bytes / p50 / 1e3
    row = {
        **setting._asdict(), "peer": peer, "rounds": len(figures),
        "samples": sum(f["samples"] for f in figures),
        "p50_us": p50, "p50_low_us": min(p50s), "p50_high_us": max(p50s),
        "p99_us": statistics.median(f["p99_us"] for f in figures),
        "max_us": max(f["max_us"] for f in figures),
        "algbw_gbs": algbw,
        "busbw_gbs": algbw * 2 * (setting.workers - 1) / setting.workers,
        "checked": sum(f.get("checked", 0) for f in figures),
        "wrong": sum(f["wrong"] for f in figures),
        "cpus": figures[0].get("cpus", ""),
        "rounds_us": " ".join(f"{p:.1f}" for p in p50s),
    }
    for base in BASES:
        name = "ratio_" + HEADS[base][1:]
        row[name] = p50 / medians[base] if base in medians else ""
    return row


def number(value, width, digits):
    return f"{value:{width}.{digits}f}" if value != "" else " " * (width - 1) + "-"


def us(value):
    return f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def table(rows):
    """Lines. The bandwidth stands only where nobody is delayed, the delay only where one is."""
    rows = list(rows)
    delayed = any(r["delay_ms"] for r in rows)
    bases = [b for b in BASES if any(r["ratio_" + HEADS[b][1:]] != "" for r in rows)]
    yield (f"{'size':>8} {'workers':>7}{' delay ms' if delayed else ''}  {'peer':14} {'p50 us':>9} "
           f"{'(low .. high)':>19} {'p99 us':>9}{'' if delayed else ' algbw GB/s'}"
           + "".join(f" {HEADS[b]:>7}" for b in bases) + f" {'steps':>7} {'#wrong':>6}")
    last = None
    for r in rows:
        setting = (r["size_bytes"], r["workers"], r["delay_ms"])
        if last not in (None, setting):
            yield ""
        last = setting
        spread = f"({us(r['p50_low_us'])} .. {us(r['p50_high_us'])})"
        yield (f"{size_text(r['size_bytes']):>8} {r['workers']:7}"
               + (f"{r['delay_ms']:9}" if delayed else "")
               + f"  {r['peer']:14} {us(r['p50_us']):>9} {spread:>19} {us(r['p99_us']):>9}"
               + ("" if delayed else f" {r['algbw_gbs']:10.2f}")
               + "".join(" " + number(r["ratio_" + HEADS[b][1:]], 7, 2) for b in bases)
               + f" {r['samples']:7} {r['wrong']:6}")


def write_csv(file, rows):
    out = csv.DictWriter(file, CSV_FIELDS, lineterminator="\n")
    out.writeheader()
    for row in rows:
        out.writerow({k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()})
