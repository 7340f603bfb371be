"""Measures Weft and TensorFlow's server in alternation, from the same clients, and prints the ratios.

  python -m bench.run                    five alternations, a few minutes; keeps the figures in bench/results
  python -m bench.run --quick            one short one, to see that it works; keeps nothing
"""
import argparse
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def main():
    from bench import clients, measures, report
    from interop import cluster

    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=cluster.WEFT, metavar="COMMAND", help="command line of the first side's server")
    parser.add_argument("--tensorflow", default=cluster.TENSORFLOW, metavar="COMMAND", help="of the second's")
    parser.add_argument("--alternations", type=int, default=5)
    parser.add_argument("--steps", type=int, default=500, help="timed steps per measure and alternation")
    parser.add_argument("--quick", action="store_true", help="one alternation of 50 steps")
    args = parser.parse_args()
    alternations, steps = (1, 50) if args.quick else (args.alternations, args.steps)

    measures.tf.logging.set_verbosity(measures.tf.logging.ERROR)
    measures.tf.disable_v2_behavior()
    sides = {"Weft": args.weft, "TensorFlow": args.tensorflow}
    where = report.conditions(alternations)
    training = clients.Clients(2)
    try:
        runs = alternate(sides, alternations, lambda server: measures.one_cluster(server, training, steps))
    finally:
        training.close()
    for name, server in sides.items():
        for measure, value in measures.size_on_disk(server).items():
            runs[name][measure] = [value]
    print(report.table(runs))
    if not args.quick:
        print(f"kept in {report.save(where, runs)}")


def alternate(sides, alternations, measure):
    """Returns {side: {measure: [values]}}. The sides take turns, and in going first, so that both meet the same load."""
    runs = {name: {} for name in sides}
    for i in range(alternations):
        for name, server in sorted(sides.items(), reverse=i % 2 == 0):
            print(f"{i + 1}/{alternations} {name}", flush=True)
            for key, value in measure(server).items():
                runs[name].setdefault(key, []).append(round(value, 3))
    return runs


if __name__ == "__main__":
    main()
