"""Writes files of every kind with an old TensorFlow, and the results of its models.

    ENVIRONMENT/bin/python interop/old/writefiles.py DIR

It runs in an environment of TensorFlow 0.12 to 1.15. internal/test/oldfiles reads what it wrote,
and has a copy of the files of three releases.
"""

from __future__ import print_function

import json
import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function, graph_util
from tensorflow.python.saved_model import builder, utils

POINTS = {"up": [0.5, 1.25], "down": [-0.5, -1.25]}
RELEASE = tuple(int(n) for n in tf.VERSION.split(".")[:2])
V1, V2 = tf.train.SaverDef.V1, tf.train.SaverDef.V2
TWO_DEVICES = tf.ConfigProto(device_count={"CPU": 2})


def model(resources=RELEASE >= (1, 4)):
    """Returns the input, the outputs and the variables of a graph.

    It has a loop in a condition, a function, gradients and variables, of both kinds if resources
    is set. For a positive sum of x it applies y = sin(y * w) * v three times; otherwise it
    squares x.
    """
    x = tf.placeholder(tf.float32, [2], name="x")
    w = tf.get_variable("w", initializer=tf.constant([0.5, 2.0]))
    more = {"use_resource": True} if resources else {}
    v = tf.get_variable("v", initializer=tf.constant([1.5, -1.0]), **more)

    @function.Defun(tf.float32, func_name="squared")
    def squared(x):
        return x * x

    def loop():
        return tf.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y * w) * v), [tf.constant(0), x]
        )[1]

    y = tf.cond(tf.reduce_sum(x) > 0, loop, lambda: tf.identity(squared(x)))
    outputs = {"y": tf.identity(y, "y")}
    outputs["dw"] = tf.identity(tf.gradients(loop(), [w])[0], "dw")
    return x, outputs, [w, v]


def write_models():
    """Writes the model in several forms and returns its results."""
    with tf.Graph().as_default(), tf.Session() as sess:
        x, outputs, variables = model()
        with open("words.txt", "w") as f:
            f.write("one\ntwo\n")
        asset = tf.constant("words.txt", name="words")
        tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, asset)
        saver = tf.train.Saver(variables)
        sess.run(tf.global_variables_initializer())
        saver.save(sess, "./saved", write_meta_graph=True)
        info = {name: utils.build_tensor_info(o) for name, o in outputs.items()}
        if RELEASE >= (1, 0):
            from tensorflow.python.saved_model.signature_def_utils import build_signature_def
        else:
            build_signature_def = utils.build_signature_def
        inputs = {"x": utils.build_tensor_info(x)}
        signature = build_signature_def(inputs, info, "tensorflow/serving/predict")
        b = builder.SavedModelBuilder("model")
        b.add_meta_graph_and_variables(
            sess,
            ["serve"],
            signature_def_map={"serving_default": signature},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
        )
        b.save()
        results = {
            point + "/" + name: sess.run(o, {x: at}).tolist()
            for point, at in POINTS.items()
            for name, o in outputs.items()
        }
        os.remove("words.txt")
        if RELEASE < (1, 0):
            export(sess, x, outputs)
        return results


def write_frozen():
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        model(resources=False)  # releases before 1.5 freeze no others
        sess.run(tf.global_variables_initializer())
        # Before 1.0 a frozen graph has no functions, so that y, which calls one, would not run.
        kept = ["y", "dw"] if RELEASE >= (1, 0) else ["dw"]
        frozen = graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), kept)
        tf.train.write_graph(frozen, ".", "frozen.pb", as_text=False)
        tf.train.write_graph(frozen, ".", "frozen.pbtxt", as_text=True)


def export(sess, x, outputs):
    """Writes a session bundle, the form of models for serving before the SavedModel."""
    from tensorflow.contrib.session_bundle import exporter

    saver = tf.train.Saver(sharded=True)
    e = exporter.Exporter(saver)
    signatures = {
        "inputs": exporter.generic_signature({"x": x}),
        "outputs": exporter.generic_signature(outputs),
    }
    e.init(sess.graph.as_graph_def(), named_graph_signatures=signatures)
    e.export("bundle", tf.constant(7), sess)


def typed_variables():
    """Returns variables of many types, each with the values 1 and 0."""
    types = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64"]
    types += ["float16", "complex128"]
    made = [tf.Variable(np.array([1, 0], t), name=t) for t in types]
    return made + [tf.Variable(np.array([b"a", b"", b"b\x00\xff"], object), name="texts")]


def parts():
    return tf.get_variable(
        "parts",
        initializer=tf.constant(np.arange(12, dtype=np.float32).reshape(6, 2)),
        partitioner=tf.fixed_size_partitioner(3),
    )


def write_checkpoints():
    os.mkdir("checkpoints")
    os.chdir("checkpoints")
    for version, name in ((V1, "v1"), (V2, "v2")):
        with tf.Graph().as_default(), tf.Session() as sess:
            variables = typed_variables()
            if version == V1:  # the format has no strings and no float16
                names = ["texts", "float16", "complex128"]
                variables = [v for v in variables if v.op.name not in names]
            variables += list(parts())
            sess.run(tf.global_variables_initializer())
            saver = tf.train.Saver(variables, write_version=version)
            saver.save(sess, "./" + name, write_meta_graph=False, global_step=3)
        with tf.Graph().as_default(), tf.Session(config=TWO_DEVICES) as sess:
            with tf.device("/cpu:0"):
                tf.Variable([1.0, 2.0], name="a")
            with tf.device("/cpu:1"):
                tf.Variable([3.0, 4.0], name="b")
            sess.run(tf.global_variables_initializer())
            saver = tf.train.Saver(sharded=True, write_version=version)
            saver.save(sess, "./" + name + "-sharded", write_meta_graph=False, write_state=False)
    os.chdir("..")


def write_events():
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.constant(1.0, name="one")
        summaries = [
            tf.summary.scalar("loss", tf.constant(0.5)),
            tf.summary.histogram("weights", tf.constant([1.0, 2.0])),
            tf.summary.image("digit", tf.constant(np.zeros([1, 1, 2, 3], np.uint8))),
            tf.summary.audio("tone", tf.constant(np.zeros([1, 2], np.float32)), 8000),
        ]
        if RELEASE >= (1, 4):
            summaries.append(tf.summary.text("note", tf.constant("*good*")))
        written = sess.run(tf.summary.merge(summaries))
        writer = tf.summary.FileWriter("events", graph)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 0)
        writer.add_summary(written, 1)
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.25)]), 2)
        writer.add_run_metadata(tf.RunMetadata(), "step2", 2)
        writer.close()
    name, = os.listdir("events")
    os.rename(os.path.join("events", name), "events/events.out.tfevents.1.old")


def write_records():
    kinds = tf.python_io.TFRecordCompressionType
    for name, kind in (("plain", kinds.NONE), ("zlib", kinds.ZLIB), ("gzip", kinds.GZIP)):
        options = tf.python_io.TFRecordOptions(kind)
        writer = tf.python_io.TFRecordWriter(name + ".tfrecord", options)
        for record in (b"one", b"", name.encode()):
            writer.write(record)
        writer.close()


def main():
    os.makedirs(sys.argv[1])
    os.chdir(sys.argv[1])
    results = write_models()
    write_frozen()
    write_checkpoints()
    write_events()
    write_records()
    with open("results.json", "w") as f:
        json.dump(results, f, indent=1, sort_keys=True)


if __name__ == "__main__":
    main()
