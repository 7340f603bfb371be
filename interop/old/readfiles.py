"""Reads files of every kind, which the Go client wrote, with an old TensorFlow.

    ENVIRONMENT/bin/python interop/old/readfiles.py DIR CONTENTS

It runs in an environment of TensorFlow 0.12 to 1.15. interop/files writes the files and prints
their contents, the file CONTENTS. A line is printed for each kind of file: "ok KIND" or "FAIL KIND".
"""

from __future__ import print_function

import glob
import json
import os
import sys
import traceback

import numpy as np
import tensorflow as tf
from tensorflow.python.saved_model import loader

POINTS = {"up": [0.5, 1.25], "down": [-0.5, -1.25]}
RELEASE = tuple(int(n) for n in tf.VERSION.split(".")[:2])
# Tensors that the release's reader of checkpoints does not return.
UNREADABLE = {
    "v1": ["parts", "bool"],
    "v2": (["uint32", "uint64"] if RELEASE < (1, 8) else [])
    + (["bfloat16", "float16", "uint16"] if RELEASE < (1, 4) else []),
}
# Releases before 1.12 lack operations of the model with a function, and 0.12 has no VariableV2.
MODELS = [".", "plain"] if RELEASE >= (1, 12) else ["plain"]
TRAINED = MODELS if RELEASE >= (1, 0) else []


def check_close(got, want, what):
    np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=what)


def check_results(want, sess, results):
    for point, x in POINTS.items():
        for name in results:
            key = point + "/" + name
            check_close(sess.run(name + ":0", {"x:0": x}), want["model"][key], key)


def checkpoints(want):
    latest = tf.train.latest_checkpoint("checkpoints")
    assert os.path.basename(latest) == "v2", latest
    for prefix, count in (("v2", 17), ("v1", 5)):
        reader = tf.train.NewCheckpointReader(os.path.join("checkpoints", prefix))
        shapes = reader.get_variable_to_shape_map()
        assert len(shapes) == count, shapes
        for name, shape in shapes.items():
            if name in UNREADABLE[prefix]:
                continue
            value = reader.get_tensor(name)
            if name == "texts":
                assert list(value) == [b"a", b"", b"b\x00\xff"], value
            elif name == "parts":
                assert list(value) == [0, 1, 2, 3, 4, 5], value
            elif name != "bfloat16":
                assert value.dtype.name == name, (name, value.dtype)
                assert [complex(v) for v in value] == [1, 0], (name, value)


def restore(want):
    """Restores variables, partitioned ones too, from checkpoints of both formats."""
    for prefix, version in (("v2", tf.train.SaverDef.V2), ("v1", tf.train.SaverDef.V1)):
        with tf.Graph().as_default(), tf.Session() as sess:
            f = tf.get_variable("float32", initializer=tf.constant([5.0, 5.0]))
            n = tf.get_variable("int64", initializer=tf.constant(np.array([5, 5], np.int64)))
            parts = tf.get_variable(
                "parts", initializer=tf.zeros([6]), partitioner=tf.fixed_size_partitioner(2)
            )
            saver = tf.train.Saver([f, n] + list(parts), write_version=version)
            saver.restore(sess, os.path.join("checkpoints", prefix))
            assert [list(sess.run(v)) for v in (f, n)] == [[1, 0], [1, 0]]
            got = np.concatenate(sess.run(list(parts)))
            assert list(got) == [0, 1, 2, 3, 4, 5], got


def saved_model(want):
    for folder in TRAINED:
        with tf.Session(graph=tf.Graph()) as sess:
            meta = loader.load(sess, ["serve"], os.path.join(folder, "model"))
            assert sorted(meta.signature_def["serving_default"].outputs) == ["dv", "dw", "dx", "y"]
            check_results(want, sess, ["y", "dx", "dw", "dv"])


def meta_graph(want):
    for folder in TRAINED:
        for name in ("saved.meta", "stripped.meta"):
            with tf.Graph().as_default(), tf.Session() as sess:
                saver = tf.train.import_meta_graph(os.path.join(folder, name))
                saver.restore(sess, os.path.join(folder, "saved"))
                check_results(want, sess, ["y", "dx", "dw", "dv"])


def frozen_graph(want):
    for folder in MODELS:
        with tf.Graph().as_default(), tf.Session() as sess:
            graph = tf.GraphDef()
            with open(os.path.join(folder, "frozen.pb"), "rb") as f:
                graph.ParseFromString(f.read())
            tf.import_graph_def(graph, name="")
            check_results(want, sess, ["y"])


def events(want):
    (path,) = glob.glob("events/*.tfevents.*")
    seen = []
    for e in tf.train.summary_iterator(path):
        kind = e.WhichOneof("what")
        if kind == "summary":
            seen += [(v.tag, v.WhichOneof("value")) for v in e.summary.value]
            losses = [v.simple_value for v in e.summary.value if v.tag == "loss"]
            assert losses in ([], [{1: 0.5, 2: 0.25}[e.step]] if e.step else []), e
        else:
            seen.append(kind)
    assert ("loss", "simple_value") in seen and ("weights", "histo") in seen, seen
    assert ("digit", "image") in seen and ("tone", "audio") in seen, seen
    assert ("note", "tensor") in seen and "graph_def" in seen and "session_log" in seen, seen
    assert "tagged_run_metadata" in seen and seen[0] == "file_version", seen


def records(want):
    kinds = tf.python_io.TFRecordCompressionType
    for name, kind in (("plain", kinds.NONE), ("zlib", kinds.ZLIB), ("gzip", kinds.GZIP)):
        options = tf.python_io.TFRecordOptions(kind)
        got = list(tf.python_io.tf_record_iterator(name + ".tfrecord", options))
        assert got == [b"one", b"", name.encode()], got


def main():
    with open(sys.argv[2]) as f:
        want = json.load(f)
    os.chdir(sys.argv[1])
    tf.logging.set_verbosity(tf.logging.ERROR)
    models = (saved_model, meta_graph) if TRAINED else ()
    for kind in (checkpoints, restore) + models + (frozen_graph, events, records):
        try:
            kind(want)
        except Exception:  # the next kind of file is tried too
            print("FAIL", kind.__name__)
            print("  " + traceback.format_exc().strip()[-600:].replace("\n", "\n  "))
            continue
        print("ok", kind.__name__)


if __name__ == "__main__":
    main()
