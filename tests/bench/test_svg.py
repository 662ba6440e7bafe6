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


def lines_of(plot):
    return [[tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
            for line in read(plot).iter(NAME + "polyline")]


class Svg(unittest.TestCase):
    def test_corners(self):
        """The extreme points lie in the corners of the frame"""
        plot = svg.Plot("t", "x", "y")
        plot.add("a", [0, 5, 10], [1, 2, 3])
        (line,) = lines_of(plot)
        self.assertEqual(line[0], (svg.LEFT, svg.HEIGHT - svg.BOTTOM))
        self.assertEqual(line[2], (svg.WIDTH - svg.RIGHT, svg.TOP))
        self.assertEqual(line[1][0], (line[0][0] + line[2][0]) / 2)

    def test_logarithmic(self):
        """On a logarithmic axis equal factors are equally far apart"""
        plot = svg.Plot("t", "x", "y", log_x=True, log_y=True)
        plot.add("a", [1, 10, 100], [1e-3, 1e-2, 1e-1])
        (line,) = lines_of(plot)
        for k in (0, 1):
            self.assertAlmostEqual(line[1][k], (line[0][k] + line[2][k]) / 2, 1)

    def test_what_cannot_be_drawn(self):
        """Points that are not finite, or not above 0 on a logarithmic axis, are left out"""
        plot = svg.Plot("t", "x", "y", log_y=True)
        plot.add("a", [0, 1, 2, 3, 4], [1, math.nan, 0, None, 2])
        plot.add("none", [], [])
        self.assertEqual([len(line) for line in lines_of(plot)[:1]], [2])

    def test_flat(self):
        """A line of one height, and a plot of nothing, have axes"""
        flat = svg.Plot("t", "x", "y")
        flat.add("a", [3, 4], [0.5, 0.5])
        for plot in (flat, svg.Plot("t", "x", "y"), svg.Plot("t", "x", "y", log_y=True)):
            self.assertTrue(read(plot).findall(NAME + "line"))

    def test_band(self):
        """A band goes along its upper edge and back along its lower one"""
        plot = svg.Plot("t", "x", "y")
        plot.add("a", [0, 1], [2, 2], [1, 1], [3, 3])
        band, = read(plot).iter(NAME + "polygon")
        self.assertEqual(len(band.get("points").split()), 4)

    def test_text_is_escaped(self):
        """Names may have any characters"""
        plot = svg.Plot("a < b & c", "x", "y")
        plot.add("<&>", [0, 1], [0, 1])
        self.assertIn("<&>", [text.text for text in read(plot).iter(NAME + "text")])

    def test_ticks(self):
        """Ticks are round numbers within the axis, 2 to 8 of them"""
        for low, high, log in ((0, 1, False), (0, 17.3, False), (2, 2.1, False), (-5, 5, False),
                               (1e-4, 1, True), (0.02, 0.9, True), (3, 40, True)):
            axis = svg.Axis("a", log)
            axis.see(low)
            axis.see(high)
            ticks = axis.ticks()
            self.assertTrue(2 <= len(ticks) <= 8, (low, high, ticks))
            self.assertTrue(all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks))


if __name__ == "__main__":
    unittest.main()
