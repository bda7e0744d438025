"""Plots as SVG, by hand: readable on light and on dark pages, one line per contestant."""

import math
from html import escape

from contestants import CONTESTANTS
from tables import Figure, bus_gbps, size_name

WIDTH, HEIGHT = 760, 430
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 34, 46
# Told apart also without colour: each has a mark of its own.
COLORS = ("#e4572e", "#f2a541", "#b8860b", "#2a9d8f", "#4c78a8", "#9467bd", "#d16ba5", "#6b8e23", "#8c8c8c")
MARKS = ("M-4,-4h8v8h-8z", "M0,-5L5,4H-5z", "M0,5L5,-4H-5z", "M0,-5L5,0L0,5L-5,0z", "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0",
         "M-4,-4L4,4M4,-4L-4,4", "M-5,0h10M0,-5v10", "M-4,-2h8v4h-8z", "M-2,-4h4v8h-4z")
NAMES = [contestant.name for contestant in CONTESTANTS]
STYLE = """<style>
text{font:12px system-ui,sans-serif;fill:#333}.title{font-weight:600;font-size:14px}.grid{stroke:#888;stroke-opacity:.3}
.line{fill:none;stroke-width:2}@media(prefers-color-scheme:dark){text{fill:#ddd}}
</style>"""

Series = dict[str, dict[int, float]]


class Axis:
    """From values to pixels."""

    def __init__(self, low: float, high: float, begin: float, end: float, logarithmic: bool) -> None:
        self.logarithmic = logarithmic
        self.low, self.high = (math.log10(low), math.log10(high)) if logarithmic else (low, high)
        if self.low == self.high:
            self.low, self.high = self.low - 0.5, self.high + 0.5
        self.begin, self.end = begin, end

    def __call__(self, value: float) -> float:
        value = math.log10(value) if self.logarithmic else value
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    if logarithmic:
        return [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    step = 10 ** math.floor(math.log10(high / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if high / (step * factor) <= 6)
    return [step * i for i in range(math.floor(high / step) + 2)]


def number(value: float) -> str:
    return f"{value:g}"


def plot(title: str, unit: str, series: Series, logarithmic: bool) -> str:
    """An SVG document with sizes from left to right; `series` is contestant -> size -> value."""
    series = {name: series[name] for name in sorted(series, key=place) if series[name]}
    sizes = sorted({size for points in series.values() for size in points})
    values = [value for points in series.values() for value in points.values()]
    marks = ticks(min(values), max(values), logarithmic)
    x = Axis(sizes[0], sizes[-1], LEFT, WIDTH - RIGHT, True)
    y = Axis(marks[0], marks[-1], HEIGHT - BOTTOM, TOP, logarithmic)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">', STYLE,
             f"<title>{escape(title)}</title>", f'<text class="title" x="{LEFT}" y="20">{escape(title)}</text>']
    for mark in marks:
        parts.append(f'<path class="grid" d="M{LEFT},{y(mark):.1f}H{WIDTH - RIGHT}"/>'
                     f'<text x="{LEFT - 8}" y="{y(mark) + 4:.1f}" text-anchor="end">{number(mark)}</text>')
    for size in sizes:
        parts.append(f'<path class="grid" d="M{x(size):.1f},{TOP}V{HEIGHT - BOTTOM}"/>'
                     f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{size_name(size)}</text>')
    parts.append(f'<text x="{LEFT - 8}" y="20" text-anchor="end">{escape(unit)}</text>')
    for row, (name, points) in enumerate(series.items()):
        parts.append(line(x, y, points, name) + legend(row, name))
    return "\n".join([*parts, "</svg>\n"])


def place(name: str) -> int:
    return NAMES.index(name) if name in NAMES else len(NAMES)


def look(name: str) -> tuple[str, str]:
    """A contestant's mark and how it is drawn: the same in all plots, whoever else takes part."""
    index = place(name)
    color = COLORS[index % len(COLORS)]
    return MARKS[index % len(MARKS)], f'fill="{color}" stroke="{color}"'


def line(x: Axis, y: Axis, points: dict[int, float], name: str) -> str:
    mark, drawn = look(name)
    places = [(x(size), y(value)) for size, value in sorted(points.items())]
    path = "M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in places)
    marks = "".join(f'<path d="{mark}" transform="translate({a:.1f},{b:.1f})" {drawn}/>' for a, b in places)
    return f'<path class="line" d="{path}" {drawn}/>{marks}'


def legend(row: int, name: str) -> str:
    mark, drawn = look(name)
    at = TOP + 10 + 22 * row
    return (f'<path d="{mark}" transform="translate({WIDTH - RIGHT + 18},{at})" {drawn}/>'
            f'<text x="{WIDTH - RIGHT + 30}" y="{at + 4}">{escape(name)}</text>')


def plots_of(summary: dict) -> dict[str, str]:
    """File name -> SVG: latency and bus bandwidth of every operation that has more than one size."""
    files = {}
    for (op, ranks, dtype, regime), figures in summary.items():
        if len({size for by_size in figures.values() for size in by_size}) < 2:
            continue
        name = f"{op}_{ranks}_ranks" + ("" if dtype == "float32" else f"_{dtype}") + ("_touched" if regime == "touched" else "")
        title = f"{op}, {ranks} ranks, {dtype}" + (", buffers written before" if regime == "touched" else "")
        files[f"{name}_latency.svg"] = plot(f"{title}: time", "us", series_of(figures, lambda size, us: us), True)
        bandwidth = series_of(figures, lambda size, us, op=op, ranks=ranks: bus_gbps(op, ranks, size, us))
        files[f"{name}_bandwidth.svg"] = plot(f"{title}: bus bandwidth", "GB/s", bandwidth, False)
    return files


def series_of(figures: dict[str, dict[int, Figure]], value) -> Series:
    return {name: {size: value(size, figure.median_us) for size, figure in by_size.items()} for name, by_size in figures.items()}
