"""Compares kernels of Weft with TensorFlow's, in alternation, on the same core or cores.

  python -m bench.kernels                     every family with one thread; keeps the table in bench/results
  python -m bench.kernels --threads 2         with two
  python -m bench.kernels --quick softmax     a look at the families that are named, or begin like that; keeps nothing

A case is one step with many nodes of one operation, one after another, so that what a step costs besides is shared by all;
what an empty step costs is taken off. The ratio is TensorFlow's time by Weft's: more than 1 is faster.
"""
import argparse
import json
import math
import os
import statistics
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

STEP = 0.02  # seconds that a step is made to take


def main():
    parser = argparse.ArgumentParser(prog="bench.kernels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", help="only these")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9, help="alternations of each case")
    parser.add_argument("--quick", action="store_true", help="three alternations")
    args = parser.parse_args()
    rounds = 3 if args.quick else args.rounds

    import tensorflow.compat.v1 as tf

    from bench import kernelcases, report
    from interop import cluster

    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    where = report.conditions(rounds) | {"threads": args.threads}
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-args.threads:])  # the servers inherit it and take a thread for each
    with cluster.Cluster({"local": 1}) as ours, cluster.Cluster({"local": 1}, cluster.TENSORFLOW) as theirs:
        os.sched_setaffinity(0, cores)
        targets = [ours.target("local"), theirs.target("local")]
        results = {}
        for family, cases in kernelcases.FAMILIES.items():
            if args.families and not any(family.startswith(f) for f in args.families):
                continue
            results[family] = {name: compare(targets, *c, rounds) for name, c in cases.items()}
            for name, r in results[family].items():
                print(f"{family}: {name}: {1e6 * r['weft']:.1f} µs, TensorFlow {1e6 * r['tensorflow']:.1f} µs, ratio {r['ratio']:.2f}", flush=True)
    print(table(results))
    if not args.quick and not args.families:
        print(f"kept in {save(report, where, results)}")


def compare(targets, inputs, build, rounds):
    """Times one case on both targets, in turns, each going first every other time."""
    import tensorflow.compat.v1 as tf

    with tf.Graph().as_default():
        initial, make = nodes(tf, inputs, build)
        nothing, one = tf.no_op(), make(1)
        with tf.Session(targets[1], config=plain(tf)) as sess:  # the number of nodes is TensorFlow's for both
            sess.run(initial)
            once = best(sess.make_callable(one), 3) - best(sess.make_callable(nothing), 3)
        copies = min(400, max(1, int(STEP / max(once, 1e-6))))
        many = one if copies == 1 else make(copies)
        sessions = [tf.Session(t, config=plain(tf)) for t in targets]
        try:
            for s in sessions:
                s.run(initial)
            steps = [(s.make_callable(nothing), s.make_callable(many)) for s in sessions]
            times = [[], []]
            for i in range(-1, rounds):  # the first warms up
                for side in (0, 1) if i % 2 else (1, 0):
                    t = (best(steps[side][1], 3) - best(steps[side][0], 3)) / copies
                    if i >= 0:
                        times[side].append(max(t, 1e-9))
        finally:
            for s in sessions:
                s.close()
            for target in targets:
                tf.Session.reset(target)  # variables outlive sessions
    return {"weft": statistics.median(times[0]), "tensorflow": statistics.median(times[1]),
            "ratio": statistics.median(b / a for a, b in zip(*times))}


def nodes(tf, inputs, build):
    """Returns the initializer of the inputs, and a function that makes n nodes, one after another."""
    from bench import kernelcases

    rng = tf.random.stateless_uniform
    if isinstance(inputs, kernelcases.Update):
        gradient = tf.Variable(rng(inputs.shape, [1, 2]), use_resource=True)
        variables = [tf.Variable(rng(inputs.shape, [3, i]), use_resource=True) for i in range(inputs.slots + 1)]
        holders, initial = [gradient] + variables, tf.group(*(v.initializer for v in [gradient] + variables))
        read = [gradient.read_value()] + variables
    else:
        holders = [tf.Variable(rng(x, [1, i]) if isinstance(x, list) else tf.constant(x), use_resource=True) for i, x in enumerate(inputs)]
        initial, read = tf.group(*(v.initializer for v in holders)), [v.read_value() for v in holders]

    def make(n):
        last = None
        for _ in range(n):
            with tf.control_dependencies([last] if last is not None else []):
                y = build(*read)
                last = y if isinstance(y, tf.Operation) else tf.nest.flatten(y)[0].op
        return last

    return initial, make


def plain(tf):
    """No rewriting of the graph: what is measured is the node that was asked for."""
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def best(step, n):
    """The shortest of n runs: what disturbs only lengthens."""
    times = []
    for _ in range(n):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def table(results):
    rows = ["| family | geometric mean | least | cases |", "|---|---:|---:|---:|"]
    for family, cases in results.items():
        ratios = [c["ratio"] for c in cases.values()]
        rows.append(f"| {family} | {geometric_mean(ratios):.2f} | {min(ratios):.2f} | {len(ratios)} |")
    return "\n".join(rows)


def save(report, where, results):
    """Writes every case as JSON and the families as a table, named after the day and the number of threads."""
    report.RESULTS.mkdir(exist_ok=True)
    path = report.RESULTS / f"kernels-{where['threads']}-{where['date'].split()[0]}"
    path.with_suffix(".json").write_text(json.dumps({"conditions": where, "results": results}, indent=1) + "\n")
    line = ", ".join(f"{key} {value}" for key, value in where.items())
    path.with_suffix(".md").write_text(f"{line}. TensorFlow's time by Weft's; more than 1 is faster.\n\n{table(results)}\n")
    return path.with_suffix(".md")


if __name__ == "__main__":
    main()
