"""Measures Weft and TensorFlow's server in alternation, from the same clients, and prints the ratios.

  python -m bench.run                            the whole table, a quarter of an hour
  python -m bench.run --only latency,training    only these groups, or those whose names begin like that
  python -m bench.run --quick                    a short look, to see that it works

All but --quick keep the figures in bench/results. A part of the table replaces what it was on the same day.
"""
import argparse
import importlib
import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

MODULES = ("start", "latency", "executor", "contention", "transfers", "training", "garbage", "memory", "scale")


def groups():
    """All groups of all modules, in the order of the table."""
    return [g for m in MODULES for g in importlib.import_module("bench." + m).GROUPS]


def main():
    from bench import process, report
    from interop import cluster

    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=cluster.WEFT, metavar="COMMAND", help="command line of the first side's server")
    parser.add_argument("--tensorflow", default=cluster.TENSORFLOW, metavar="COMMAND", help="of the second's")
    parser.add_argument("--only", default="", metavar="GROUP,GROUP", help="groups to measure, by how their names begin")
    parser.add_argument("--rounds", type=int, help="alternations of every group")
    parser.add_argument("--quick", action="store_true", help="one short alternation of every group")
    args = parser.parse_args()

    only = tuple(name.strip() for name in args.only.split(",")) if args.only else ("",)
    wanted = [g for g in groups() if g.name.startswith(only)]
    if not wanted:
        parser.error("the groups are " + ", ".join(g.name for g in groups()))
    where = report.conditions()
    servers = {"Weft": args.weft, "TensorFlow": args.tensorflow}
    measurer = process.Measurer(wanted, servers, args.quick)
    try:
        runs = {g.name: alternate(measurer, g, servers, 1 if args.quick else args.rounds or g.rounds) for g in wanted}
    finally:
        measurer.close()
    print(report.table(wanted, runs))
    if not args.quick:
        print(f"kept in {report.save(groups(), where, runs)}")


def alternate(measurer, group, servers, rounds):
    """Returns {side: [{row: number} of each round]}. The sides take turns, and in going first, so that both meet the same load."""
    runs = {name: [] for name in servers}
    start = time.monotonic()
    for i in range(rounds):
        for side in sorted(servers, reverse=i % 2 == 0):
            values = measurer.measure(group, side)
            if isinstance(values, str):
                print(f"{group.name}, {side}: {values}", flush=True)
                values = {}
            runs[side].append({name: round(value, 4) for name, value in values.items()})
    measurer.release()
    print(f"{group.name}: {rounds} rounds in {time.monotonic() - start:.0f} s", flush=True)
    return runs


if __name__ == "__main__":
    main()
