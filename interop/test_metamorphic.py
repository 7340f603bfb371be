"""Random programs of internal/test/metamorphic have the same results in TensorFlow.

The Go tests compare every way to run them in Weft with the reference interpreter. To run many:

  python -m interop.test_metamorphic FIRST_SEED COUNT
"""

import base64
import json
import os
import subprocess
import sys

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from interop.clustertest import ClusterTest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEVICES = 3
PROGRAMS = 150


def write(first, count):
    """Yields the programs that the Go program writes."""
    command = [
        "go",
        "run",
        "./interop/metamorphic",
        f"-first={first}",
        f"-programs={count}",
        f"-devices={DEVICES}",
        "-scripts=internal/test/metamorphic/testdata/*.txt",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise RuntimeError("the Go program failed")


def tensor(encoded):
    proto = tf.make_tensor_proto(0)
    proto.ParseFromString(base64.b64decode(encoded))
    return tf.make_ndarray(proto)


def without_rewriting():
    """Returns a config without graph rewriting, which may change the order of side effects."""
    config = tf.ConfigProto(
        device_count={"CPU": DEVICES},
        intra_op_parallelism_threads=1,
        inter_op_parallelism_threads=2,
    )
    config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    return config


def check(program, target="", config=None):
    """Runs a program and returns a description of the first wrong result, or None."""
    graph = tf.Graph()
    with graph.as_default():
        def_ = tf.GraphDef.FromString(base64.b64decode(program["graph"]))
        tf.import_graph_def(def_, name="")
    with tf.Session(target, graph=graph, config=config or without_rewriting()) as session:
        if program["init"]:
            session.run([graph.get_operation_by_name(name) for name in program["init"]])
        for step, (feeds, wants) in enumerate(zip(program["feeds"], program["want"])):
            feed = {name: tensor(value) for name, value in feeds.items()}
            for name, got, want in zip(
                program["fetches"], session.run(program["fetches"], feed), map(tensor, wants)
            ):
                if not same(np.asarray(got), want):
                    return f"step {step}, {name}: TensorFlow returns {got}, the interpreter {want}"
    return None


def same(x, y):
    if y.dtype.kind == "O":
        return x.shape == y.shape and all(a == b for a, b in zip(x.ravel(), y.ravel()))
    return x.dtype == y.dtype and np.array_equal(x, y, equal_nan=y.dtype.kind == "f")


def difference(program, **kwargs):
    try:
        return check(program, **kwargs)
    except tf.errors.OpError as e:
        return f"{type(e).__name__}: {e.message[:500]}"


class Metamorphic(ClusterTest):
    jobs = {"worker": 1}
    cpu_devices = DEVICES
    mixes = ["weft", "tf"]

    def test_programs(self):
        config = without_rewriting()
        config.isolate_session_state = True
        for program in write(1_000_000, PROGRAMS):
            with self.subTest(program["name"]):
                self.assertIsNone(
                    difference(program, target=self.cluster.target("worker", 0), config=config),
                    program["text"],
                )


def main():
    tf.disable_v2_behavior()
    first, count = int(sys.argv[1]), int(sys.argv[2])
    wrong = done = 0
    for program in write(first, count):
        done += 1
        if found := difference(program):
            wrong += 1
            print(f"{program['name']}: {found}\n{program['text']}", flush=True)
    print(f"{done} programs, {wrong} differ")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
