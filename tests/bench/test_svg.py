#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Plots: what is drawn where."""
import math
import unittest
import xml.etree.ElementTree as ElementTree

import svg

NAME = "{http://www.w3.org/2000/svg}"


def read(plot):
    return ElementTree.fromstring(plot.text())


def curves_of(plot):
    return [line for line in read(plot).iter(NAME + "polyline") if line.get("class") == "curve"]


def lines_of(plot):
    return [[tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
            for line in curves_of(plot)]


def texts_of(plot, kind=None):
    """The texts with this class: "mid" below the frame, "end" on its left, none at lines."""
    return [text for text in read(plot).iter(NAME + "text") if text.get("class") == kind]


def ticks_of(plot):
    """Return: how many ticks stand below the frame, and how many on its left."""
    ticks = [line for line in read(plot).iter(NAME + "line") if line.get("class") == "tick"]
    return (sum(tick.get("x1") == tick.get("x2") for tick in ticks),
            sum(tick.get("y1") == tick.get("y2") for tick in ticks))


def made(*args, **more):
    return svg.Plot("t", "x (s)", "y (%)", *args, **more)


class Svg(unittest.TestCase):
    def test_corners(self):
        """The extreme points lie in the corners of the frame, a little inside"""
        plot = made()
        plot.add("a", [0, 5, 10], [1, 2, 3])
        (line,) = lines_of(plot)
        end = svg.WIDTH - plot.right() - svg.INSET
        self.assertEqual(line[0], (svg.LEFT + svg.INSET, svg.HEIGHT - svg.BOTTOM - svg.INSET))
        self.assertEqual(line[2], (end, svg.TOP + svg.INSET))
        self.assertEqual(line[1][0], (line[0][0] + line[2][0]) / 2)

    def test_units(self):
        """Both axes have a label with a unit: another label is refused"""
        plot = made()
        plot.add("a", [0, 1], [0, 1])
        self.assertIn("x (s)", [text.text for text in texts_of(plot, "mid")])
        self.assertIn("y (%)", [text.text for text in texts_of(plot, "mid")])
        for label in ("", "seconds", "time (s) ", "time ()"):
            with self.assertRaises(ValueError):
                svg.Plot("t", label, "y (%)")
            with self.assertRaises(ValueError):
                svg.Plot("t", "x (s)", label)

    def test_ticks_at_the_data(self):
        """Where the lines have few values of x, the ticks are these and no others"""
        plot = made(log_x=True)
        plot.add("a", [1, 2, 4, 8], [1, 2, 3, 4])
        plot.add("b", [2, 64], [1, 2])
        self.assertEqual([text for _, text in plot.x.ticks()], ["1", "2", "4", "8", "64"])
        self.assertEqual(ticks_of(plot)[0], 5)

    def test_many_values(self):
        """Where they have many, ticks are round; each axis has three or more"""
        for log, ys in ((False, (0.07, 0.09)), (True, (0.07, 0.09)), (True, (1e-5, 3))):
            plot = made(log_y=log)
            xs = [0.37 * i for i in range(60)]
            plot.add("a", xs, [ys[0] + (ys[1] - ys[0]) * i / 59 for i in range(60)])
            self.assertTrue(all(3 <= n <= 9 for n in ticks_of(plot)), (log, ys, ticks_of(plot)))
            self.assertGreaterEqual(len(texts_of(plot, "end")), 3)

    def test_close_ticks(self):
        """Values that lie close have ticks, and no text on that of the one before"""
        plot = made()
        plot.add("a", [0, 0.1, 50, 100], [1, 2, 3, 4])
        self.assertEqual(ticks_of(plot)[0], 4)
        self.assertEqual(len(texts_of(plot, "mid")) - 2, 3)  # and the two labels

    def test_no_line_hides_another(self):
        """Lines on each other differ in colour, dashes and markers, and the first one is wider"""
        plot = made()
        for i in range(len(svg.COLOURS)):
            plot.add(f"line {i}", range(96), range(96))
        curves = curves_of(plot)
        for key in ("stroke", "stroke-dasharray"):
            self.assertEqual(len({curve.get(key) for curve in curves}), len(curves), key)
        self.assertGreater(float(curves[0].get("stroke-width")),
                           float(curves[1].get("stroke-width")))
        marks = [(mark.get("d"), mark.get("transform")) for mark in read(plot).iter(NAME + "path")]
        self.assertEqual(len({d for d, _ in marks}), len(curves))
        self.assertEqual(len({at for _, at in marks}), len(marks))

    def test_lines_above_bands(self):
        """No band is drawn over a line"""
        plot = made()
        for name in ("a", "b"):
            plot.add(name, [0, 1], [2, 2], [1, 1], [3, 3])
        order = [e.tag for e in read(plot) if e.tag == NAME + "polygon" or
                 e.get("class") == "curve"]
        self.assertEqual(order, 2 * [NAME + "polygon"] + 2 * [NAME + "polyline"])

    def test_labels(self):
        """Each line has its label, in the order of the ends of lines, and no label is on another"""
        names = [f"line {i}" for i in range(12)]
        for ends in (11 * [100] + [0], [100] + 11 * [0]):
            plot = made()
            for name, end in zip(names, ends):
                plot.add(name, [0, 1], [0, end])
            labels = [(float(text.get("y")), text.text) for text in texts_of(plot)]
            self.assertEqual([name for _, name in sorted(labels)], names)
            heights = sorted(y for y, _ in labels)
            self.assertTrue(all(b - a >= svg.LABEL_STEP - 0.01
                                for a, b in zip(heights, heights[1:])))
            self.assertTrue(svg.TOP <= heights[0] and heights[-1] <= svg.HEIGHT - svg.BOTTOM)

    def test_names(self):
        """An axis of names has each name at its dot"""
        plot = svg.Plot("t", "treatment", "y (%)", names=("kept", "reset to zero"))
        plot.add("kept", [0], [1], [0], [2])
        plot.add("reset to zero", [1], [2], [1], [3])
        words = [text.text for text in texts_of(plot, "mid")]
        self.assertIn("kept", words)
        self.assertIn("reset to zero", words)
        self.assertEqual(len(list(read(plot).iter(NAME + "circle"))), 2)

    def test_dots_side_by_side(self):
        """Dots with the same x stand beside each other"""
        plot = made()
        for name in ("a", "b", "c"):
            plot.add(name, [3], [1])
        at = {dot.get("cx") for dot in read(plot).iter(NAME + "circle")}
        self.assertEqual(len(at), 3)

    def test_logarithmic(self):
        """On a logarithmic axis equal factors are equally far apart"""
        plot = made(log_x=True, log_y=True)
        plot.add("a", [1, 10, 100], [1e-3, 1e-2, 1e-1])
        (line,) = lines_of(plot)
        for k in (0, 1):
            self.assertAlmostEqual(line[1][k], (line[0][k] + line[2][k]) / 2, 1)

    def test_what_cannot_be_drawn(self):
        """Points that are not finite, or not above 0 on a logarithmic axis, are left out"""
        plot = made(log_y=True)
        plot.add("a", [0, 1, 2, 3, 4], [1, math.nan, 0, None, 2])
        plot.add("none", [], [])
        self.assertEqual([len(line) for line in lines_of(plot)[:1]], [2])

    def test_flat(self):
        """A line of one height, and a plot of nothing, have axes"""
        flat = made()
        flat.add("a", [3, 4], [0.5, 0.5])
        for plot in (flat, made(), made(log_y=True)):
            self.assertTrue(read(plot).findall(NAME + "line"))

    def test_band(self):
        """A band goes along its upper edge and back along its lower one"""
        plot = made()
        plot.add("a", [0, 1], [2, 2], [1, 1], [3, 3])
        band, = read(plot).iter(NAME + "polygon")
        self.assertEqual(len(band.get("points").split()), 4)

    def test_band_below_0(self):
        """On a logarithmic axis a band whose lower edge is below 0 reaches the end of the axis"""
        plot = made(log_y=True)
        plot.add("a", [0, 1], [2, 2], [1, -1], [3, 3])
        band, = read(plot).iter(NAME + "polygon")
        heights = [float(pair.split(",")[1]) for pair in band.get("points").split()]
        self.assertEqual(heights[2], svg.HEIGHT - svg.BOTTOM - svg.INSET)

    def test_text_is_escaped(self):
        """Names may have any characters"""
        plot = svg.Plot("a < b & c", "x (s)", "y (%)")
        plot.add("<&>", [0, 1], [0, 1])
        self.assertIn("<&>", [text.text for text in read(plot).iter(NAME + "text")])

    def test_ticks(self):
        """Ticks are round numbers within the axis, 2 to 9 of them"""
        for low, high, log in ((0, 1, False), (0, 17.3, False), (2, 2.1, False), (-5, 5, False),
                               (1e-4, 1, True), (0.02, 0.9, True), (3, 40, True)):
            axis = svg.Axis("a (s)", log)
            axis.see(low)
            axis.see(high)
            ticks = [value for value, _ in axis.ticks()]
            self.assertTrue(2 <= len(ticks) <= 9, (low, high, ticks))
            self.assertTrue(all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks))


if __name__ == "__main__":
    unittest.main()
