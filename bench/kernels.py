"""Compares Weft's kernels with TensorFlow's, in turns, on the same cores.

  python -m bench.kernels                     every family with one thread; saved in bench/results
  python -m bench.kernels --threads 2         with two threads
  python -m bench.kernels --isa avx2          both sides limited to AVX2
  python -m bench.kernels --quick softmax     only families with this prefix, fewer rounds, not saved
  python -m bench.kernels "common: cast"      only cases of a family with this prefix

A case is one step with many nodes of one operation in sequence, which amortizes the cost of a step.
The time of an empty step is subtracted. The family "training" has whole models instead, which run
many steps in sequence. The ratio is TensorFlow's time divided by Weft's; above 1, Weft is faster.
"""

import argparse
import json
import math
import os
import statistics
import time

from bench.steps import best, plain

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

STEP = 0.02  # target duration of a step, in seconds
MAX_NODES = 2000  # nodes of a step
TRAINING = 0.5  # duration of a training measurement, in seconds

# Environment that limits both servers to an instruction set. In TensorFlow it applies to oneDNN,
# which computes products and convolutions; the rest of the wheel is compiled for AVX.
ISA_LIMITS = {"avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "WEFT_SIMD": "avx2"}}


def main():
    parser = argparse.ArgumentParser(
        prog="bench.kernels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("families", nargs="*", help="prefixes of families or of 'family: case'")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", choices=ISA_LIMITS, help="limit both sides to an instruction set")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each case")
    parser.add_argument("--quick", action="store_true", help="three rounds")
    args = parser.parse_args()
    rounds = 3 if args.quick else args.rounds

    import tensorflow.compat.v1 as tf

    from bench import kernelcases, report  # noqa: F401 (the import registers the cases)
    from bench.kernelcases import registry
    from interop import cluster

    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    where = report.conditions(rounds) | {"threads": args.threads}
    if args.isa:
        where["instruction set"] = args.isa
        os.environ.update(ISA_LIMITS[args.isa])  # inherited by the servers, as are the cores
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-args.threads :])  # a server uses one thread per core
    with (
        cluster.Cluster({"local": 1}) as ours,
        cluster.Cluster({"local": 1}, cluster.TENSORFLOW) as theirs,
    ):
        os.sched_setaffinity(0, cores)
        targets = [ours.target("local"), theirs.target("local")]
        results = {}
        for family, cases in registry.FAMILIES.items():
            cases = {
                name: c
                for name, c in cases.items()
                if not args.families
                or any(f"{family}: {name}".startswith(f) for f in args.families)
            }
            if not cases:
                continue
            results[family] = {}
            for name, c in cases.items():
                try:
                    r = compare(targets, c, rounds)
                except Unsupported as e:
                    print(f"{family}: {name}: TensorFlow fails: {e}", flush=True)
                    continue
                results[family][name] = r
                print(
                    f"{family}: {name}: {1e6 * r['weft']:.1f} µs, TensorFlow {1e6 * r['tensorflow']:.1f} µs, ratio {r['ratio']:.2f}",
                    flush=True,
                )
    print(table(results))
    if not args.quick and not args.families:
        print(f"saved in {save(report, where, results)}")


class Unsupported(Exception):
    """TensorFlow cannot run a case. Some oneDNN operations fail if limited to AVX2."""


def compare(targets, case, rounds):
    """Times one case on both targets in turns, which alternate in order."""
    import tensorflow.compat.v1 as tf

    from bench.kernelcases import training

    with tf.Graph().as_default():
        if isinstance(case, training.Training):
            step, initial = case.step()
            times, copies = (
                alternate(tf, targets, tf.ConfigProto(), initial, [step], rounds, train),
                1,
            )
        else:
            initial, make = nodes(tf, *case)
            nothing = tf.no_op()
            many, copies = replicate(tf, targets[1], initial, nothing, make)
            times = alternate(tf, targets, plain(tf), initial, [many, nothing], rounds, net_time)
    return {
        "weft": statistics.median(times[0]) / copies,
        "tensorflow": statistics.median(times[1]) / copies,
        "ratio": statistics.median(b / a for a, b in zip(*times)),
    }


def replicate(tf, target, initial, nothing, make):
    """Returns a step of about STEP seconds in TensorFlow, and its number of nodes."""
    copies = 1
    while True:
        step = make(copies)
        try:
            with tf.Session(target, config=plain(tf)) as sess:
                with_retries(tf, lambda: sess.run(initial))
                calls = sess.make_callable(step), sess.make_callable(nothing)
                once = max(
                    with_retries(tf, lambda: net_time(*calls)) / copies, STEP / MAX_NODES / 10
                )
        except tf.errors.OpError as e:
            raise Unsupported(e.message) from e
        # The time of few nodes is lost in the overhead of a step, so the estimate is repeated
        # with more.
        target_copies = min(MAX_NODES, max(1, int(STEP / once)))
        if target_copies < 2 * copies:
            return step, copies
        copies = min(target_copies, 16 * copies)


def alternate(tf, targets, config, initial, steps, rounds, measure):
    """Returns the results of measure for the steps on each target, round by round."""
    times = [[], []]
    sessions = [tf.Session(t, config=config) for t in targets]
    try:
        for s in sessions:
            with_retries(tf, lambda: s.run(initial))
        calls = [[s.make_callable(step) for step in steps] for s in sessions]
        for i in range(-1, rounds):  # round -1 is a warm-up
            for side in (0, 1) if i % 2 else (1, 0):
                t = with_retries(tf, lambda: measure(*calls[side]))
                if i >= 0:
                    times[side].append(t)
    finally:
        for s in sessions:
            s.close()
        for target in targets:
            tf.Session.reset(target)  # variables outlive sessions
    return times


def with_retries(tf, measure, tries=5):
    """Calls measure, and again if TensorFlow's server wrongly rejects a request as a duplicate.

    This happens rarely, and the server aborts the step.
    """
    for left in reversed(range(tries)):
        try:
            return measure()
        except tf.errors.AbortedError as e:
            if not left or "received twice" not in e.message:
                raise
            print("retrying a round: " + " ".join(e.message.split())[:100], flush=True)


def net_time(many, nothing):
    """Returns the time of a step minus that of an empty one."""
    return max(best(many, 3) - best(nothing, 5), 1e-9)


def train(step):
    """Returns the mean time of consecutive steps, after a warm-up."""
    once = best(step, 3)
    count = max(5, int(TRAINING / once))
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def nodes(tf, inputs, build):
    """Returns the initializer of the inputs, and a function that builds n nodes in sequence."""
    from bench.kernelcases import registry

    def variables(inputs, first):
        return [
            tf.Variable(registry.value(x, [first, i]), use_resource=True)
            for i, x in enumerate(inputs)
        ]

    def values(holders):
        return [v.read_value() for v in holders]

    if isinstance(inputs, registry.Update):
        gradient, changed = (
            variables([inputs.gradient], 1),
            variables([inputs.shape] * (inputs.slots + 1), 3),
        )
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
    rows = ["| family | geometric mean | minimum | cases |", "|---|---:|---:|---:|"]
    for family, cases in results.items():
        ratios = [c["ratio"] for c in cases.values()]
        rows.append(
            f"| {family} | {geometric_mean(ratios):.2f} | {min(ratios):.2f} | {len(ratios)} |"
        )
    return "\n".join(rows)


def save(report, where, results):
    """Saves every case as JSON and the families as a table.

    The files are named after the number of threads and the date.
    """
    report.RESULTS.mkdir(exist_ok=True)
    limit = f"-{where['instruction set']}" if "instruction set" in where else ""
    path = report.RESULTS / f"kernels-{where['threads']}{limit}-{where['date'].split()[0]}"
    path.with_suffix(".json").write_text(
        json.dumps({"conditions": where, "results": results}, indent=1) + "\n"
    )
    line = ", ".join(f"{key} {value}" for key, value in where.items())
    path.with_suffix(".md").write_text(
        f"{line}. The ratio is TensorFlow's time divided by Weft's.\n\n{table(results)}\n"
    )
    return path.with_suffix(".md")


if __name__ == "__main__":
    main()
