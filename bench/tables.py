"""From what was measured to tables: medians over rounds, bus bandwidth, ratios."""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One contestant at one size: the median over the rounds of each round's median, and the spread of those."""

    median_us: float
    least_us: float
    most_us: float
    rounds: int
    settings: tuple[str, ...]


def bus_factor(op: str, ranks: int) -> float:
    """What NCCL's tests multiply bytes over time with, so that figures of different rank counts can be compared."""
    return {"all_reduce": 2 * (ranks - 1) / ranks, "all_gather": (ranks - 1) / ranks, "reduce_scatter": (ranks - 1) / ranks,
            "all_to_all": (ranks - 1) / ranks, "broadcast": 1.0, "barrier": 0.0}[op]


def bus_gbps(op: str, ranks: int, size: int, microseconds: float) -> float:
    return bus_factor(op, ranks) * size / microseconds / 1e3


def summarize(results: list[dict]) -> dict[tuple[str, int, str, str], dict[str, dict[int, Figure]]]:
    """(op, ranks, dtype, regime) -> contestant -> size -> figure. A failure is no result."""
    gathered: dict = {}
    for line in results:
        if "failure" in line:
            continue
        key = (line["op"], line["ranks"], line["dtype"], "touched" if line["touch"] else "as is")
        gathered.setdefault(key, {}).setdefault(line["contestant"], {}).setdefault(line["asked"], []).append(line)
    return {key: {name: {size: figure_of(lines) for size, lines in sorted(sizes.items())} for name, sizes in names.items()}
            for key, names in gathered.items()}


def figure_of(lines: list[dict]) -> Figure:
    medians = [line["median_us"] for line in lines]
    return Figure(statistics.median(medians), min(medians), max(medians), len(medians),
                  tuple(sorted({line["setting"] for line in lines})))


def best_peer(figures: dict[str, dict[int, Figure]], kinds: dict[str, str], size: int) -> tuple[str, Figure] | None:
    peers = [(name, sizes[size]) for name, sizes in figures.items() if kinds.get(name) == "peer" and size in sizes]
    return min(peers, key=lambda peer: peer[1].median_us, default=None)


def size_name(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def time_name(microseconds: float) -> str:
    if microseconds >= 9995:
        return f"{microseconds / 1e3:.3g} ms"
    return f"{microseconds:.3g} us" if microseconds < 999.5 else f"{microseconds:.0f} us"


def markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def figure_cell(op: str, ranks: int, size: int, figure: Figure | None) -> str:
    if figure is None:
        return ""
    spread = f"{time_name(figure.least_us)} - {time_name(figure.most_us)}"
    bandwidth = f", {bus_gbps(op, ranks, size, figure.median_us):.3g} GB/s" if size >= 1 << 14 and op != "barrier" else ""
    return f"{time_name(figure.median_us)}{bandwidth} ({spread})"


def ratio_rows(figures: dict[str, dict[int, Figure]], kinds: dict[str, str], sizes: list[int]) -> list[str]:
    """How many times as fast as the best peer ours is, how near to the limit, and Python against Gloo."""
    best = {size: best_peer(figures, kinds, size) for size in sizes}
    rows = []
    if any(best.values()):
        rows.append(markdown_row(["best peer", *(best[size][0] if best[size] else "" for size in sizes)]))

    def ratios(title: str, ours: str, other: dict[int, Figure], form: str) -> None:
        mine = figures.get(ours, {})
        cells = [form.format(other[size].median_us / mine[size].median_us) if size in mine and size in other else "" for size in sizes]
        if any(cells):
            rows.append(markdown_row([title, *cells]))

    peers = {size: found[1] for size, found in best.items() if found}
    for name in (name for name in figures if kinds.get(name) == "ours"):
        ratios(f"**{name}**, times the best peer", name, peers, "**{:.2f}x**")
    for name in (name for name in figures if kinds.get(name) == "python"):
        ratios(f"**{name}**, times Gloo", name, figures.get("Gloo", {}), "**{:.2f}x**")
    for name in (name for name in figures if kinds.get(name) == "ours" and "symmetric" in name):
        ratios(f"{name}, share of the bare loop's speed", name, figures.get("bare loop", {}), "{:.0%}")
    return rows


def markdown(summary: dict, kinds: dict[str, str]) -> str:
    """One table for each operation and number of ranks."""
    parts = []
    for (op, ranks, dtype, regime), figures in summary.items():
        sizes = sorted({size for by_size in figures.values() for size in by_size})
        buffers = ", buffers written before each operation" if regime == "touched" else ""
        parts.append(f"### {op}, {ranks} ranks, {dtype}{buffers}\n")
        parts.append(markdown_row(["", *map(size_name, sizes)]))
        parts.append("|---" * (len(sizes) + 1) + "|")
        for name, by_size in sorted(figures.items(), key=lambda item: list(kinds).index(item[0])):
            parts.append(markdown_row([name, *(figure_cell(op, ranks, size, by_size.get(size)) for size in sizes)]))
        parts += ratio_rows(figures, kinds, sizes)
        parts.append("")
    return "\n".join(parts)


def settings_table(summary: dict) -> str:
    """Which setting each figure was measured with."""
    parts = [markdown_row(["operation", "ranks", "library", "settings, by size"]), "|---|---|---|---|"]
    for (op, ranks, _, regime), figures in summary.items():
        for name, by_size in figures.items():
            chosen = "; ".join(f"{size_name(size)}: {' / '.join(figure.settings)}" for size, figure in by_size.items())
            if any(figure.settings != ("default",) for figure in by_size.values()):
                parts.append(markdown_row([op if regime == "as is" else f"{op}, touched", str(ranks), name, chosen]))
    return "\n".join(parts) + "\n"
