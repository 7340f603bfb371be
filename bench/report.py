"""Medians, ratios and where they are kept."""
import datetime
import json
import os
import pathlib
import platform
import statistics

import tensorflow as tf

from bench.measures import MEASURES

RESULTS = pathlib.Path(__file__).parent / "results"


def table(runs):
    """A Markdown table from {side: {measure: [value of each alternation]}}; the first side is compared with the second."""
    ours, theirs = runs
    rows = [f"| measure | unit | {ours} | {theirs} | {ours} is better by |", "|---|---|---:|---:|---:|"]
    for measure, (unit, less_is_better) in MEASURES.items():
        if measure not in runs[ours] or measure not in runs[theirs]:
            continue
        a, b = runs[ours][measure], runs[theirs][measure]
        x, y = statistics.median(a), statistics.median(b)
        ratio = y / x if less_is_better else x / y
        rows.append(f"| {measure} | {unit} | {cell(a)} | {cell(b)} | {ratio:.2f}x |")
    return "\n".join(rows)


def cell(values):
    """The median, and the range where there is one."""
    text = number(statistics.median(values))
    return text if len(set(values)) == 1 else f"{text} ({number(min(values))}–{number(max(values))})"


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def conditions(alternations):
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "load at start": round(os.getloadavg()[0], 1),
        "tensorflow": tf.__version__,
        "alternations": alternations,
    }


def processor():
    with open("/proc/cpuinfo") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())


def save(where, runs):
    """Writes the figures as JSON and the table as Markdown, named after the day."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / where["date"].split()[0]
    path.with_suffix(".json").write_text(json.dumps({"conditions": where, "runs": runs}, indent=1) + "\n")
    line = ", ".join(f"{key} {value}" for key, value in where.items())
    path.with_suffix(".md").write_text(f"{line}. Medians (range).\n\n{table(runs)}\n")
    return path.with_suffix(".md")
