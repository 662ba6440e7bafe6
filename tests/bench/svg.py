# SPDX-License-Identifier: MIT
"""Line plots as SVG, written by hand: axes that are linear or logarithmic, lines with a band around
them, a label at the end of each line. No library is needed, and the same figures give the same
bytes.

    plot = svg.Plot("Error against time", "time (s)", "error (%)", log_y=True)
    plot.add("bsp", xs, ys, low, high)      # the band is optional
    plot.write("error.svg")

A label of an axis ends with its unit, in brackets. Where the lines have few values of x, each of
these values is a tick. An axis of names (`names`) has a tick for each name, at 0, 1, 2 ...

No line hides another. Lines differ in colour, dashes and markers; the first is solid and wider, and
shows on both sides of those that are drawn over it; all bands are below all lines. A line of one
point is a dot with a bar, and dots at the same x stand side by side. The picture has a white ground
of its own, so it can be read on a dark page, too.

What cannot be drawn is left out: points that are not finite, or not above 0 on a logarithmic axis.
"""
import math
import re
import textwrap
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 800, 420
LEFT, TOP, BOTTOM = 72, 36, 48
INSET = 10  # between the frame and what is drawn
# Okabe and Ito 2008: colours that readers with colour blindness can tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00", "#777777")
DASHES = ("", "11 4", "3 3", "11 3 3 3", "18 4", "6 5", "18 3 3 3 3 3", "2 6")
# Outlines around 0, 0; all of them can be seen where they lie on each other.
MARKERS = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "M-4-4h8v8h-8z", "M0-5l5 9h-10z",
           "M0-6l5 6l-5 6l-5-6z", "M-4-4l8 8M-4 4l8-8", "M0 5l5-9h-10z", "M-5 0h10M0-5v10",
           "M-2-6h4v12h-4z")
FEW = 12         # so many values of x are all ticks, and all have markers
MARKED = 6       # of a line with more points
LABEL_STEP = 17  # pixels from label to label
CHARACTER = 7    # pixels of a character, on average
UNIT = re.compile(r"\([^()]+\)$")
# The digits at which a logarithmic axis may have ticks, from the fewest on.
DIGITS = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9))
TICKS = 4        # at least, where it can be


def number(value):
    """Without the zeroes that say nothing."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def round_numbers(low, high):
    """Return: round numbers from @low to @high, 3 to 7 of them."""
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (step * f) <= 6)
    return [k * step for k in range(math.ceil(low / step - 1e-9),
                                    math.floor(high / step + 1e-9) + 1)]


def round_factors(low, high):
    """Return: round numbers from @low to @high whose digits lie about evenly on a log axis."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in DIGITS:
        every = [d * 10.0 ** e for e in range(first, last + 1) for d in digits]
        every = [value for value in every if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(every) >= TICKS:
            return every
    return round_numbers(low, high)


class Axis:
    def __init__(self, label, log=False, names=()):
        if not UNIT.search(label) and not names:
            raise ValueError(f'the label of an axis needs a unit, as in "time (s)": "{label}"')
        self.label, self.log, self.names = label, log, names
        self.low, self.high = (-0.5, len(names) - 0.5) if names else (math.inf, -math.inf)
        self.values = set()

    def draws(self, value):
        return value is not None and math.isfinite(value) and (not self.log or value > 0)

    def see(self, value):
        self.low, self.high = min(self.low, value), max(self.high, value)

    def span(self):
        """The ends of the axis: a little apart where all values are the same."""
        if self.low > self.high:
            return (1.0, 10.0) if self.log else (0.0, 1.0)
        if self.low == self.high:
            return (self.low / 2, self.low * 2) if self.log else (self.low - 1, self.high + 1)
        return self.low, self.high

    def share(self, value):
        """How far along the axis a value is, from 0 to 1."""
        low, high = self.span()
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)

    def ticks(self):
        """Return: pairs of a value and its text."""
        if self.names:
            return list(enumerate(self.names))
        if 1 < len(self.values) <= FEW:
            every = sorted(self.values)
        else:
            every = (round_factors if self.log else round_numbers)(*self.span())
        return [(value, f"{value:g}") for value in every]


class Plot:
    def __init__(self, title, x_label, y_label, log_x=False, log_y=False, names=()):
        self.title = title
        self.x, self.y = Axis(x_label, log_x, names), Axis(y_label, log_y)
        self.lines = []

    def add(self, name, xs, ys, low=None, high=None):
        """A line; @low and @high are the edges of its band."""
        low, high = low if low is not None else ys, high if high is not None else ys
        points = [point for point in zip(xs, ys, low, high)
                  if self.x.draws(point[0]) and self.y.draws(point[1])]
        for x, y, below, above in points:
            self.x.see(x)
            self.x.values.add(x)
            for value in (y, below, above):
                if self.y.draws(value):
                    self.y.see(value)
        self.lines.append((name, points))

    # Pixels.
    def right(self):
        """How wide the column of the labels is; an axis of names needs none."""
        longest = max((len(name) for name, _ in self.lines), default=0)
        return 24 if self.x.names else 52 + math.ceil(CHARACTER * longest)

    def name_lines(self, name):
        room = (WIDTH - LEFT - self.right()) / max(len(self.x.names), 1)
        return textwrap.wrap(name, max(int(room / CHARACTER) - 1, 4))

    def bottom(self):
        lines = max((len(self.name_lines(name)) for name in self.x.names), default=1)
        return BOTTOM + 14 * (lines - 1)

    def at_x(self, value):
        return LEFT + INSET + self.x.share(value) * (WIDTH - LEFT - self.right() - 2 * INSET)

    def at_y(self, value):
        return (HEIGHT - self.bottom() - INSET -
                self.y.share(value) * (HEIGHT - TOP - self.bottom() - 2 * INSET))

    def path(self, pairs):
        return " ".join(f"{number(self.at_x(x))},{number(self.at_y(y))}" for x, y in pairs)

    def frame(self):
        right, end = WIDTH - self.right(), HEIGHT - self.bottom()
        middle = (LEFT + right) // 2
        yield (f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{end - TOP}" '
               'fill="none" stroke="#333"/>')
        yield f'<text x="{middle}" y="22" class="title">{escape(self.title)}</text>'
        yield f'<text x="{middle}" y="{HEIGHT - 10}" class="mid">{escape(self.x.label)}</text>'
        yield (f'<text transform="translate(16 {(TOP + end) // 2}) rotate(-90)" class="mid">'
               f'{escape(self.y.label)}</text>')
        yield from self.x_ticks(right, end)
        for value, text in self.y.ticks():
            y = number(self.at_y(value))
            yield f'<line x1="{LEFT}" x2="{right}" y1="{y}" y2="{y}" class="grid"/>'
            yield f'<line x1="{LEFT - 4}" x2="{LEFT}" y1="{y}" y2="{y}" class="tick"/>'
            yield f'<text x="{LEFT - 7}" y="{y}" dy="4" class="end">{text}</text>'

    def x_ticks(self, right, end):
        """A text that would touch the one before is left out; its tick is not."""
        free = LEFT - 20.0
        for value, text in self.x.ticks():
            at = self.at_x(value)
            x, half = number(at), CHARACTER * len(text) / 2 + 2
            yield f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{end}" class="grid"/>'
            yield f'<line x1="{x}" x2="{x}" y1="{end}" y2="{end + 4}" class="tick"/>'
            lines = self.name_lines(text) if self.x.names else [text]
            if self.x.names or at - half >= free:
                free = at + half
                for i, line in enumerate(lines):
                    yield f'<text x="{x}" y="{end + 17 + 14 * i}" class="mid">{escape(line)}</text>'

    def band(self, points, colour):
        """An edge that cannot be drawn, as one below 0 on a logarithmic axis, is at its end."""
        edges = [(x, low if self.y.draws(low) else self.y.span()[0], high)
                 for x, _, low, high in points if self.y.draws(high) and low < high]
        if edges:
            around = [(x, high) for x, _, high in edges]
            around += [(x, low) for x, low, _ in reversed(edges)]
            yield f'<polygon points="{self.path(around)}" fill="{colour}" opacity="0.13"/>'

    def beside(self, i):
        """How far to the side the dot of a line stands, so that it hides no other dot."""
        x = self.lines[i][1][0][0]
        same = [k for k, (_, points) in enumerate(self.lines)
                if len(points) == 1 and points[0][0] == x]
        return 12 * (same.index(i) - (len(same) - 1) / 2)

    def marker(self, i, x, y):
        return (f'<path d="{MARKERS[i % len(MARKERS)]}" class="mark" '
                f'transform="translate({number(x)} {number(y)})" '
                f'stroke="{COLOURS[i % len(COLOURS)]}"/>')

    def markers(self, i, points):
        """At all points if they are few; else at some, not the same ones as other lines."""
        if len(points) > FEW:
            step = len(points) / MARKED
            first = step * (i + 0.5) / max(len(self.lines), 1)
            points = [points[int(first + k * step)] for k in range(MARKED)]
        for x, y, _, _ in points:
            yield self.marker(i, self.at_x(x), self.at_y(y))

    def dot(self, i, points):
        """A line of one point: a dot, and a bar for its interval."""
        colour = COLOURS[i % len(COLOURS)]
        x, y, low, high = points[0]
        at = self.at_x(x) + self.beside(i)
        if self.y.draws(low) and self.y.draws(high):
            yield (f'<line x1="{number(at)}" x2="{number(at)}" y1="{number(self.at_y(low))}" '
                   f'y2="{number(self.at_y(high))}" stroke="{colour}" stroke-width="1.6"/>')
        yield (f'<circle cx="{number(at)}" cy="{number(self.at_y(y))}" r="3" fill="{colour}"/>')
        yield self.marker(i, at, self.at_y(y))

    def style(self, i):
        return (f'stroke="{COLOURS[i % len(COLOURS)]}" '
                f'stroke-dasharray="{DASHES[i % len(DASHES)]}"')

    def ends(self):
        """Return: for each line its index, the pixels where it ends, and the height of its label.
        The labels stand in the order of the ends, none on another."""
        ends = []
        for i, (_, points) in enumerate(self.lines):
            x, y = (self.at_x(points[-1][0]), self.at_y(points[-1][1])) if points else \
                   (WIDTH - self.right(), HEIGHT - self.bottom())
            ends.append((i, x + (self.beside(i) if len(points) == 1 else 0), y))
        ends.sort(key=lambda end: (end[2], end[0]))
        heights, free = [], TOP + 6.0
        for _, _, y in ends:
            heights.append(max(y, free))
            free = heights[-1] + LABEL_STEP
        free = HEIGHT - self.bottom() - 4.0
        for k in range(len(heights) - 1, -1, -1):  # up again, where they stand below the frame
            heights[k] = min(heights[k], free)
            free = heights[k] - LABEL_STEP
        return [(*end, height) for end, height in zip(ends, heights)]

    def labels(self):
        for i, x, y, height in self.ends():
            left = WIDTH - self.right() + 12
            yield (f'<polyline points="{number(x)},{number(y)} '
                   f'{number(max(x, left - 12))},{number(y)} {left},{number(height)}" '
                   'class="lead"/>')
            yield (f'<line x1="{left}" x2="{left + 26}" y1="{number(height)}" '
                   f'y2="{number(height)}" stroke-width="2" {self.style(i)}/>')
            yield self.marker(i, left + 13, height)
            yield (f'<text x="{left + 31}" y="{number(height)}" dy="4">'
                   f'{escape(self.lines[i][0])}</text>')

    def drawn(self):
        for i, (_, points) in enumerate(self.lines):
            if len(points) > 1:
                yield from self.band(points, COLOURS[i % len(COLOURS)])
        if not self.x.names:
            yield from self.labels()
        for i, (_, points) in enumerate(self.lines):
            if len(points) == 1:
                yield from self.dot(i, points)
                continue
            yield (f'<polyline points="{self.path((p[0], p[1]) for p in points)}" fill="none" '
                   f'stroke-width="{1.8 if i else 3}" {self.style(i)} class="curve"/>')
            yield from self.markers(i, points)

    def text(self):
        return "\n".join((
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}">',
            "<style>text{font:12px sans-serif;fill:#222}.title{font-size:14px;text-anchor:middle}"
            ".mid{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#e4e4e4}.tick{stroke:#333}"
            ".mark{fill:none;stroke-width:1.3}.lead{fill:none;stroke:#aaa;stroke-width:.8}</style>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            *self.frame(), *self.drawn(), "</svg>", ""))

    def write(self, path):
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.text())
