"""Compares kernels of Weft with TensorFlow's, in alternation, on the same core or cores.

  python -m bench.kernels                     every family with one thread; keeps the table in bench/results
  python -m bench.kernels --threads 2         with two
  python -m bench.kernels --isa avx2          both sides held to AVX2
  python -m bench.kernels --quick softmax     a look at the families that are named, or begin like that; keeps nothing
  python -m bench.kernels "common: cast"      a look at some cases of a family

A case is one step with many nodes of one operation, one after another, so that what a step costs besides is shared by all;
what an empty step costs is taken off. The family "training" has whole models instead, of which many steps are run one
after another. The ratio is TensorFlow's time by Weft's: more than 1 is faster.
"""
import argparse
import json
import math
import os
import statistics
import time

from bench.steps import best, plain

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

STEP = 0.02  # seconds that a step is made to take
NODES = 2000  # of a step, at most
TRAINING = 0.5  # seconds of training that are timed at once

# What holds both servers to an instruction set: oneDNN, which TensorFlow's products and convolutions go through (the rest
# of the wheel is compiled for AVX), and Weft.
HELD = {"avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "WEFT_SIMD": "avx2"}}


def main():
    parser = argparse.ArgumentParser(prog="bench.kernels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", help="only these, or cases of them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", choices=HELD, help="hold both sides to an instruction set")
    parser.add_argument("--rounds", type=int, default=9, help="alternations of each case")
    parser.add_argument("--quick", action="store_true", help="three alternations")
    args = parser.parse_args()
    rounds = 3 if args.quick else args.rounds

    import tensorflow.compat.v1 as tf

    from bench import commoncases, kernelcases, productcases, report, trainingcases  # noqa: F401 (the cases register themselves)
    from interop import cluster

    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    where = report.conditions(rounds) | {"threads": args.threads}
    if args.isa:
        where["instruction set"] = args.isa
        os.environ.update(HELD[args.isa])  # the servers inherit it, and the cores
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-args.threads:])  # they take a thread for each
    with cluster.Cluster({"local": 1}) as ours, cluster.Cluster({"local": 1}, cluster.TENSORFLOW) as theirs:
        os.sched_setaffinity(0, cores)
        targets = [ours.target("local"), theirs.target("local")]
        results = {}
        for family, cases in kernelcases.FAMILIES.items():
            cases = {name: c for name, c in cases.items()
                     if not args.families or any(f"{family}: {name}".startswith(f) for f in args.families)}
            if not cases:
                continue
            results[family] = {}
            for name, c in cases.items():
                try:
                    r = compare(targets, c, rounds)
                except NotThere as e:
                    print(f"{family}: {name}: TensorFlow fails: {e}", flush=True)
                    continue
                results[family][name] = r
                print(f"{family}: {name}: {1e6 * r['weft']:.1f} µs, TensorFlow {1e6 * r['tensorflow']:.1f} µs, ratio {r['ratio']:.2f}", flush=True)
    print(table(results))
    if not args.quick and not args.families:
        print(f"kept in {save(report, where, results)}")


class NotThere(Exception):
    """TensorFlow cannot run a case, as some of oneDNN's operations when they are held to AVX2."""


def compare(targets, case, rounds):
    """Times one case on both targets, in turns, each going first every other time."""
    import tensorflow.compat.v1 as tf

    from bench import trainingcases

    with tf.Graph().as_default():
        if isinstance(case, trainingcases.Training):
            step, initial = case.step()
            times, copies = alternate(tf, targets, tf.ConfigProto(), initial, [step], rounds, train), 1
        else:
            initial, make = nodes(tf, *case)
            nothing = tf.no_op()
            many, copies = enough(tf, targets[1], initial, nothing, make)
            times = alternate(tf, targets, plain(tf), initial, [many, nothing], rounds, beyond)
    return {"weft": statistics.median(times[0]) / copies, "tensorflow": statistics.median(times[1]) / copies,
            "ratio": statistics.median(b / a for a, b in zip(*times))}


def enough(tf, target, initial, nothing, make):
    """Returns nodes that take a step of the wished length, and their number, which is TensorFlow's for both."""
    copies = 1
    while True:
        step = make(copies)
        try:
            with tf.Session(target, config=plain(tf)) as sess:
                again(tf, lambda: sess.run(initial))
                calls = sess.make_callable(step), sess.make_callable(nothing)
                once = max(again(tf, lambda: beyond(*calls)) / copies, STEP / NODES / 10)
        except tf.errors.OpError as e:
            raise NotThere(e.message) from e
        # What a few nodes take is lost in what a step takes besides, so that more of them are counted anew.
        wished = min(NODES, max(1, int(STEP / once)))
        if wished < 2 * copies:
            return step, copies
        copies = min(wished, 16 * copies)


def alternate(tf, targets, config, initial, steps, rounds, measure):
    """Returns what measure finds of the steps on each target, round by round."""
    times = [[], []]
    sessions = [tf.Session(t, config=config) for t in targets]
    try:
        for s in sessions:
            again(tf, lambda: s.run(initial))
        calls = [[s.make_callable(step) for step in steps] for s in sessions]
        for i in range(-1, rounds):  # the first warms up
            for side in (0, 1) if i % 2 else (1, 0):
                t = again(tf, lambda: measure(*calls[side]))
                if i >= 0:
                    times[side].append(t)
    finally:
        for s in sessions:
            s.close()
        for target in targets:
            tf.Session.reset(target)  # variables outlive sessions
    return times


def again(tf, measure, tries=5):
    """Calls measure anew where TensorFlow's server takes a request for one that it has had already: it does so now and then,
    and drops the step."""
    for left in reversed(range(tries)):
        try:
            return measure()
        except tf.errors.AbortedError as e:
            if not left or "received twice" not in e.message:
                raise
            print("a round is tried again: " + " ".join(e.message.split())[:100], flush=True)


def beyond(many, nothing):
    """The time of a step beyond that of another."""
    return max(best(many, 3) - best(nothing, 5), 1e-9)


def train(step):
    """The mean time of some steps that follow each other, once they have begun to."""
    once = best(step, 3)
    count = max(5, int(TRAINING / once))
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def nodes(tf, inputs, build):
    """Returns the initializer of the inputs, and a function that makes n nodes, one after another."""
    from bench import kernelcases

    def variables(inputs, first):
        return [tf.Variable(kernelcases.value(x, [first, i]), use_resource=True) for i, x in enumerate(inputs)]

    def values(holders):
        return [v.read_value() for v in holders]

    if isinstance(inputs, kernelcases.Update):
        gradient, changed = variables([inputs.gradient], 1), variables([inputs.shape] * (inputs.slots + 1), 3)
        further = variables(inputs.further, 5)
        holders, read = gradient + changed + further, values(gradient) + changed + values(further)
    else:
        holders = variables(inputs, 1)
        read = values(holders)
    initial = tf.group(*(v.initializer for v in holders))

    def make(n):
        last = None
        for _ in range(n):
            with tf.control_dependencies([last] if last is not None else []):
                y = build(*read)
                last = y if isinstance(y, tf.Operation) else tf.nest.flatten(y)[0].op
        return last

    return initial, make


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
    held = f"-{where['instruction set']}" if "instruction set" in where else ""
    path = report.RESULTS / f"kernels-{where['threads']}{held}-{where['date'].split()[0]}"
    path.with_suffix(".json").write_text(json.dumps({"conditions": where, "results": results}, indent=1) + "\n")
    line = ", ".join(f"{key} {value}" for key, value in where.items())
    path.with_suffix(".md").write_text(f"{line}. TensorFlow's time by Weft's; more than 1 is faster.\n\n{table(results)}\n")
    return path.with_suffix(".md")


if __name__ == "__main__":
    main()
