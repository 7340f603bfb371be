"""Measures Weft and TensorFlow's server in turns, with the same clients, and prints the ratios.

  python -m bench.run                            the whole table; takes about 30 minutes
  python -m bench.run --only latency,training    only groups whose names have one of these prefixes
  python -m bench.run --quick                    one short round, as a smoke test

Without --quick, the figures are saved in bench/results. Figures of a group replace those of the
same group and day.
"""

import argparse
import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def main():
    from bench import measurer, report
    from bench.groups import groups
    from interop import cluster

    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--weft", default=cluster.WEFT, metavar="COMMAND", help="command line of the first server"
    )
    parser.add_argument(
        "--tensorflow",
        default=cluster.TENSORFLOW,
        metavar="COMMAND",
        help="command line of the second server",
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="GROUP,GROUP",
        help="prefixes of the names of groups to measure",
    )
    parser.add_argument("--rounds", type=int, help="rounds of every group")
    parser.add_argument("--quick", action="store_true", help="one short round of every group")
    args = parser.parse_args()

    only = tuple(name.strip() for name in args.only.split(",")) if args.only else ("",)
    selected = [g for g in groups() if g.name.startswith(only)]
    if not selected:
        parser.error("the groups are " + ", ".join(g.name for g in groups()))
    where = report.conditions()
    servers = {"Weft": args.weft, "TensorFlow": args.tensorflow}
    process = measurer.Measurer(selected, servers, args.quick)
    runs = {}
    try:
        for g in selected:
            rounds = 1 if args.quick else args.rounds or g.rounds
            runs[g.name] = alternate(process, g, servers, rounds)
            if not args.quick:  # after each group, so that a run that is ended keeps its figures
                saved = report.save(groups(), where, runs)
    finally:
        process.close()
    print(report.table(selected, runs))
    if not args.quick:
        print(f"saved in {saved}")


def alternate(measurer, group, servers, rounds):
    """Returns {side: [{row: number} of each round]}.

    The sides take turns, and alternate in which is first, so that both meet the same load.
    """
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
