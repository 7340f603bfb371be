"""Medians, ratios, tables, and the files that hold them."""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics

from bench.endtoend import nullserver

RESULTS = pathlib.Path(__file__).parent / "results"
PAGE = pathlib.Path(__file__).parent.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Weft and TensorFlow's own server, measured alternately by the same clients on one machine. A cell
shows the median over rounds and the interquartile range; a ratio is the median of the rounds'
ratios. [performance.md](performance.md) explains the figures. `make bench` writes this page, and
keeps all figures in [bench/results](../bench/results).

"""


def table(groups, runs, headlines=False):
    """Returns a Markdown table of {group: {side: [{row: number} of each round]}}.

    The first side is compared with the second.
    """
    ours, theirs = next(iter(runs.values()))
    least = lower_bounds(groups, runs)
    lines = [
        f"| measure | unit | {ours} | {theirs} | {ours} is better by |"
        + ("" if headlines else " aim |"),
        "|---|---|---:|---:|---:|" + ("" if headlines else "---:|"),
    ]
    for group in groups:
        for row in group.rows:
            if headlines and not row.headline:
                continue
            a, b = (values(runs[group.name][side], row) for side in (ours, theirs))
            lines.append(
                f"| {row.name} | {row.unit} | {cell(a)} | {cell(b)} | {better(row, a, b)} |"
                + ("" if headlines else f" {aim(row, a, b, least.get(row.name))} |")
            )
    return "\n".join(lines)


def values(rounds, row):
    """Returns the numbers of a row, with None for a round without one."""
    return [r.get(row.name) for r in rounds]


def lower_bounds(groups, runs):
    """Returns the median of each row with the null server.

    It is the smaller one of both sides, whose recorded responses hardly differ.
    """
    out = {}
    for group in groups:
        for row in group.rows:
            if row.name.startswith(nullserver.PREFIX):
                sides = [
                    [x for x in values(rounds, row) if x] for rounds in runs[group.name].values()
                ]
                out[row.name.removeprefix(nullserver.PREFIX)] = min(
                    (statistics.median(xs) for xs in sides if xs), default=None
                )
    return out


def aim(row, ours, theirs, least=None):
    """Returns the aim of a row, with a mark if it is reached and the null server's ratio if not."""
    if row.aim:
        found = ratios(row, ours, theirs)
        if found and statistics.median(found) >= row.aim:
            return f"{row.aim:g}x ✓"
        theirs = [x for x in theirs if x]
        return f"{row.aim:g}x" + (
            f", null server {number(statistics.median(theirs) / least)}x"
            if least and theirs
            else ""
        )
    if row.bound:
        found = [x for x in ours if x is not None]
        within = found and (
            statistics.median(found) <= row.bound
            if row.better == "lower"
            else statistics.median(found) >= row.bound
        )
        return f"{'at most' if row.better == 'lower' else 'at least'} {number(row.bound)}" + (
            " ✓" if within else ""
        )
    return ""


def ratios(row, ours, theirs):
    """Returns the factor by which the first side was better in each round."""
    return [b / a if row.better == "lower" else a / b for a, b in zip(ours, theirs) if a and b]


def better(row, ours, theirs):
    """Returns the median and interquartile range of the ratios of the rounds.

    Ratios within a round cancel disturbances that both sides met.
    """
    found = ratios(row, ours, theirs)
    if not found:
        return ""
    low, high = quartiles(found)
    text = f"{number(statistics.median(found))}x"
    return text if len(found) < 3 else f"{text} ({number(low)}–{number(high)})"


def quartiles(xs):
    """Returns the first and the third quartile."""
    xs = sorted(xs)
    quarter = len(xs) // 4
    return xs[quarter], xs[-1 - quarter]


def cell(numbers):
    """Returns the median, and the interquartile range if the numbers differ."""
    numbers = [x for x in numbers if x is not None]
    if not numbers:
        return "–"
    low, high = quartiles(numbers)
    text = number(statistics.median(numbers))
    return text if number(low) == number(high) else f"{text} ({number(low)}–{number(high)})"


def number(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def conditions(alternations=None):
    out = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load at start": round(os.getloadavg()[0], 1),
        "tensorflow": importlib.metadata.version("tensorflow-cpu"),
    }
    return out | {"alternations": alternations} if alternations else out


def processor():
    with open("/proc/cpuinfo") as f:
        return next(
            (line.split(":")[1].strip() for line in f if line.startswith("model name")),
            platform.machine(),
        )


def save(groups, where, runs):
    """Saves the figures as JSON and the table as Markdown, in files named after the date.

    Figures of other groups from the same day are kept. Returns the path of the Markdown file.
    """
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / where["date"].split()[0]
    try:
        kept = json.loads(path.with_suffix(".json").read_text())
    except FileNotFoundError:
        kept = {}
    for name, figures in runs.items():
        kept[name] = {"conditions": where, "runs": figures}
    path.with_suffix(".json").write_text(json.dumps(kept, indent=1) + "\n")
    path.with_suffix(".md").write_text(page(groups, kept))
    show(groups, kept)
    return path.with_suffix(".md")


def show(groups, kept):
    """Writes the headline rows to docs/benchmarks.md, if the day has the figures of all groups."""
    headlines = [g.name for g in groups if any(row.headline for row in g.rows)]
    if not all(name in kept for name in headlines):
        return
    present = [g for g in groups if g.name in kept]
    runs = {g.name: kept[g.name]["runs"] for g in present}
    PAGE.write_text(
        HEAD + machine(present, kept) + "\n\n" + table(present, runs, headlines=True) + "\n"
    )


def machine(present, kept):
    """Returns a description of the machine on which the first group was measured."""
    conditions = kept[present[0].name]["conditions"]
    return (
        ", ".join(f"{key} {conditions[key]}" for key in ("processor", "cores", "tensorflow")) + "."
    )


def page(groups, kept):
    """Returns the whole table, with the time and load at which each group was measured."""
    present = [g for g in groups if g.name in kept]
    lines = [
        "Cells show the median and interquartile range over rounds, in which the sides took turns.",
        "A ratio is the median of the rounds' ratios. After an aim that is not reached: the ratio",
        "of the null server, the lower bound of any server with the same clients.",
        machine(present, kept),
        "",
        table(present, {g.name: kept[g.name]["runs"] for g in present}),
        "",
    ]
    when = {}
    for g in present:
        where = kept[g.name]["conditions"]
        rounds = len(next(iter(kept[g.name]["runs"].values())))
        when.setdefault(
            f"{where['date']}, load at start {where['load at start']}, {rounds} rounds", []
        ).append(g.name)
    lines += [f"* {how}: {', '.join(names)}" for how, names in when.items()]
    return "\n".join(lines) + "\n"
