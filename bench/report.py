"""Medians, ratios and where they are kept."""
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics

from bench import floor

RESULTS = pathlib.Path(__file__).parent / "results"
PAGE = pathlib.Path(__file__).parent.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Weft and TensorFlow's own server, measured alternately by the same clients on one machine. A cell shows
the median over rounds and the interquartile range; a ratio is the median of the rounds' ratios.
[performance.md](performance.md) explains the figures. `make bench` writes this page, and keeps all
figures in [bench/results](../bench/results).

"""


def table(groups, runs, headlines=False):
    """A Markdown table of {group: {side: [{row: number} of each round]}}; the first side is compared with the second."""
    ours, theirs = next(iter(runs.values()))
    least = floors(groups, runs)
    lines = [f"| measure | unit | {ours} | {theirs} | {ours} is better by |" + ("" if headlines else " aim |"),
             "|---|---|---:|---:|---:|" + ("" if headlines else "---:|")]
    for group in groups:
        for row in group.rows:
            if headlines and not row.headline:
                continue
            a, b = (values(runs[group.name][side], row) for side in (ours, theirs))
            lines.append(f"| {row.name} | {row.unit} | {cell(a)} | {cell(b)} | {better(row, a, b)} |" + ("" if headlines else f" {aim(row, a, b, least.get(row.name))} |"))
    return "\n".join(lines)


def values(rounds, row):
    """The numbers of a row, None for a round that has none."""
    return [r.get(row.name) for r in rounds]


def floors(groups, runs):
    """What rows would be with a server that takes no time: the lesser of both sides, whose answers hardly differ."""
    out = {}
    for group in groups:
        for row in group.rows:
            if row.name.startswith(floor.PREFIX):
                sides = [[x for x in values(rounds, row) if x] for rounds in runs[group.name].values()]
                out[row.name.removeprefix(floor.PREFIX)] = min((statistics.median(xs) for xs in sides if xs), default=None)
    return out


def aim(row, ours, theirs, least=None):
    """What a row should reach, with a mark where it does, and otherwise what a server that takes no time would reach."""
    if row.aim:
        found = ratios(row, ours, theirs)
        if found and statistics.median(found) >= row.aim:
            return f"{row.aim:g}x ✓"
        theirs = [x for x in theirs if x]
        return f"{row.aim:g}x" + (f", floor {number(statistics.median(theirs) / least)}x" if least and theirs else "")
    if row.bound:
        found = [x for x in ours if x is not None]
        within = found and (statistics.median(found) <= row.bound if row.better == "lower" else statistics.median(found) >= row.bound)
        return f"{'at most' if row.better == 'lower' else 'at least'} {number(row.bound)}" + (" ✓" if within else "")
    return ""


def ratios(row, ours, theirs):
    """By how much the first side was better in each round."""
    return [b / a if row.better == "lower" else a / b for a, b in zip(ours, theirs) if a and b]


def better(row, ours, theirs):
    """The median of the rounds' ratios, and the middle half of them: what both sides met in a round cancels out."""
    found = ratios(row, ours, theirs)
    if not found:
        return ""
    low, high = middle(found)
    text = f"{number(statistics.median(found))}x"
    return text if len(found) < 3 else f"{text} ({number(low)}–{number(high)})"


def middle(xs):
    """What a quarter is below, and what a quarter is above."""
    xs = sorted(xs)
    quarter = len(xs) // 4
    return xs[quarter], xs[-1 - quarter]


def cell(numbers):
    """The median, and the middle half where there are several."""
    numbers = [x for x in numbers if x is not None]
    if not numbers:
        return "–"
    low, high = middle(numbers)
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
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())


def save(groups, where, runs):
    """Keeps the figures as JSON and the table as Markdown, named after the day, with those that this day had of other groups."""
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
    """Writes the headline rows to the documentation."""
    present = [g for g in groups if g.name in kept]
    runs = {g.name: kept[g.name]["runs"] for g in present}
    PAGE.write_text(HEAD + machine(present, kept) + "\n\n" + table(present, runs, headlines=True) + "\n")


def machine(present, kept):
    """The machine that the first group was measured on."""
    conditions = kept[present[0].name]["conditions"]
    return ", ".join(f"{key} {conditions[key]}" for key in ("processor", "cores", "tensorflow")) + "."


def page(groups, kept):
    """The whole table, with when and under what load each group was measured."""
    present = [g for g in groups if g.name in kept]
    lines = ["Medians (middle half); ratios are the medians of those of the rounds, in which the sides took turns. Behind an aim",
             "that is not reached: what a server that takes no time would reach with the same clients.",
             machine(present, kept), "",
             table(present, {g.name: kept[g.name]["runs"] for g in present}), ""]
    when = {}
    for g in present:
        where = kept[g.name]["conditions"]
        rounds = len(next(iter(kept[g.name]["runs"].values())))
        when.setdefault(f"{where['date']}, load at start {where['load at start']}, {rounds} rounds", []).append(g.name)
    lines += [f"* {how}: {', '.join(names)}" for how, names in when.items()]
    return "\n".join(lines) + "\n"
