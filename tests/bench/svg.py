# SPDX-License-Identifier: MIT
"""Line plots as SVG, written by hand: axes that are linear or logarithmic, lines with a band around
them, a legend. No library is needed, and the same figures give the same bytes.

    plot = svg.Plot("Error against time", "seconds", "error", log_y=True)
    plot.add("bsp", xs, ys, low, high)      # the band is optional
    plot.write("error.svg")

A line of one point is a dot with a bar. An x axis without a label has no numbers. The picture has a
white ground of its own, so it can be read on a dark page, too.

What cannot be drawn is left out: points that are not finite, or not above 0 on a logarithmic axis.
"""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 800, 420
LEFT, RIGHT, TOP, BOTTOM = 72, 176, 36, 48  # the legend is on the right
MIDDLE = (LEFT + WIDTH - RIGHT) // 2
# Okabe and Ito 2008: colours that readers with colour blindness can tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
DASHES = ("", "6 3", "2 3")


def number(value):
    """Without the zeroes that say nothing."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Axis:
    def __init__(self, label, log=False):
        self.label, self.log = label, log
        self.low, self.high = math.inf, -math.inf

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
        low, high = self.span()
        if self.log:
            first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
            steps = (1,) if last - first > 3 else (1, 2, 5)
            every = [step * 10.0 ** e for e in range(first, last + 1) for step in steps]
        else:
            step = 10.0 ** math.floor(math.log10((high - low) / 4))
            step *= next(f for f in (1, 2, 5, 10) if (high - low) / (step * f) <= 6)
            every = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
        slack = 1e-9 * (high - low)
        return [value for value in every if low - slack <= value <= high + slack]


class Plot:
    def __init__(self, title, x_label, y_label, log_x=False, log_y=False):
        self.title = title
        self.x, self.y = Axis(x_label, log_x), Axis(y_label, log_y)
        self.lines = []

    def add(self, name, xs, ys, low=None, high=None):
        """A line; @low and @high are the edges of its band."""
        low, high = low if low is not None else ys, high if high is not None else ys
        points = [point for point in zip(xs, ys, low, high)
                  if self.x.draws(point[0]) and self.y.draws(point[1])]
        for x, y, below, above in points:
            self.x.see(x)
            for value in (y, below, above):
                if self.y.draws(value):
                    self.y.see(value)
        self.lines.append((name, points))

    # Pixels.
    def at_x(self, value):
        return LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)

    def at_y(self, value):
        return HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - TOP - BOTTOM)

    def path(self, pairs):
        return " ".join(f"{number(self.at_x(x))},{number(self.at_y(y))}" for x, y in pairs)

    def frame(self):
        yield (f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" '
               f'height="{HEIGHT - TOP - BOTTOM}" fill="none" stroke="#333"/>')
        yield f'<text x="{MIDDLE}" y="22" class="title">{escape(self.title)}</text>'
        yield f'<text x="{MIDDLE}" y="{HEIGHT - 10}" class="mid">{escape(self.x.label)}</text>'
        yield (f'<text transform="translate(16 {HEIGHT // 2}) rotate(-90)" class="mid">'
               f'{escape(self.y.label)}</text>')
        for value in self.x.ticks() if self.x.label else ():
            x, end = number(self.at_x(value)), HEIGHT - BOTTOM
            yield f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{end}" class="grid"/>'
            yield f'<text x="{x}" y="{end + 16}" class="mid">{value:g}</text>'
        for value in self.y.ticks():
            y = number(self.at_y(value))
            yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" class="grid"/>'
            yield f'<text x="{LEFT - 6}" y="{y}" dy="4" class="end">{value:g}</text>'

    def band(self, points, colour):
        edges = [(x, low, high) for x, _, low, high in points
                 if self.y.draws(low) and self.y.draws(high) and low < high]
        if edges:
            around = [(x, high) for x, _, high in edges]
            around += [(x, low) for x, low, _ in reversed(edges)]
            yield f'<polygon points="{self.path(around)}" fill="{colour}" opacity="0.18"/>'

    def dot(self, points, colour):
        """A line of one point: a dot, and a bar for its interval."""
        for x, y, low, high in points:
            at = number(self.at_x(x))
            if self.y.draws(low) and self.y.draws(high):
                yield (f'<line x1="{at}" x2="{at}" y1="{number(self.at_y(low))}" '
                       f'y2="{number(self.at_y(high))}" stroke="{colour}"/>')
            yield f'<circle cx="{at}" cy="{number(self.at_y(y))}" r="4" fill="{colour}"/>'

    def drawn(self):
        for i, (name, points) in enumerate(self.lines):
            colour = COLOURS[i % len(COLOURS)]
            dash = DASHES[i // len(COLOURS) % len(DASHES)]
            style = f'stroke="{colour}" stroke-dasharray="{dash}"'
            yield from self.band(points, colour) if len(points) > 1 else self.dot(points, colour)
            yield (f'<polyline points="{self.path((p[0], p[1]) for p in points)}" fill="none" '
                   f'stroke-width="1.6" {style}/>')
            x, y = WIDTH - RIGHT + 10, TOP + 12 + 18 * i
            yield (f'<line x1="{x}" x2="{x + 24}" y1="{y}" y2="{y}" '
                   f'stroke-width="2" {style}/>')
            yield f'<text x="{x + 30}" y="{y + 4}">{escape(name)}</text>'

    def text(self):
        return "\n".join((
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}">',
            "<style>text{font:12px sans-serif;fill:#222}.title{font-size:14px;text-anchor:middle}"
            ".mid{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#ddd}</style>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            *self.frame(), *self.drawn(), "</svg>", ""))

    def write(self, path):
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.text())
