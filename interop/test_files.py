"""Files of every kind, written by the Go client and read by TensorFlow, and vice versa."""

import glob
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf
from tensorboard.backend.event_processing import event_accumulator

from interop.clustertest import ClusterTest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
POINTS = {"up": [0.5, 1.25], "down": [-0.5, -1.25]}
RESULTS = ["y", "dx", "dw", "dv"]
COMPRESSIONS = {"plain": "", "zlib": "ZLIB", "gzip": "GZIP"}


def go_files(what, folder):
    """Runs the Go program on a folder and returns the contents of the files."""
    done = subprocess.run(
        ["go", "run", "./interop/files", what, folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Files(ClusterTest):
    jobs = {"worker": 1}

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def check_results(self, want, sess, results=RESULTS):
        for point, x in POINTS.items():
            for name in results:
                got = sess.run(name + ":0", {"x:0": x})
                np.testing.assert_allclose(
                    got, want[f"{point}/{name}"], rtol=1e-5, err_msg=f"{point}/{name}"
                )

    def check_gradients(self, want, sess, sources):
        """Differentiates the imported graph, which has a loop and a condition."""
        graph = tf.get_default_graph()
        sources = {
            name: graph.get_tensor_by_name(s) if isinstance(s, str) else s
            for name, s in sources.items()
        }
        y = graph.get_tensor_by_name("y:0")
        for name, dy in zip(sources, tf.gradients(y, list(sources.values()))):
            tf.identity(dy, "again_" + name)
        for point, x in POINTS.items():
            for name in sources:
                got = sess.run(f"again_{name}:0", {"x:0": x})
                np.testing.assert_allclose(
                    got, want[f"{point}/{name}"], rtol=1e-5, err_msg=f"{point}/{name}"
                )

    def test_go_writes(self):
        held = go_files("write", self.dir)
        with self.subTest("checkpoints"):
            self.read_checkpoints()
        with self.subTest("saved model"), tf.Session(graph=tf.Graph()) as sess:
            tf.saved_model.loader.load(sess, ["serve"], self.path("model"))
            self.check_results(held["model"], sess)
        with self.subTest("meta graph"), tf.Graph().as_default(), self.session() as sess:
            saver = tf.train.import_meta_graph(self.path("saved.meta"), clear_devices=True)
            saver.restore(sess, tf.train.latest_checkpoint(self.dir))
            self.check_results(held["model"], sess)
        with self.subTest("meta graph in process"), tf.Graph().as_default(), tf.Session() as sess:
            saver = tf.train.import_meta_graph(self.path("stripped.meta"))
            saver.restore(sess, self.path("saved"))
            self.check_results(held["model"], sess)
            w, v = tf.trainable_variables()
            self.check_gradients(held["model"], sess, {"dx": "x:0", "dw": w, "dv": v})
        with self.subTest("frozen graph"), tf.Graph().as_default(), tf.Session() as sess:
            graph = tf.GraphDef()
            with open(self.path("frozen.pb"), "rb") as f:
                graph.ParseFromString(f.read())
            tf.import_graph_def(graph, name="")
            self.check_results(held["model"], sess, ["y"])
        with self.subTest("events"):
            self.read_events()
        with self.subTest("records"):
            for name, kind in COMPRESSIONS.items():
                options = tf.io.TFRecordOptions(compression_type=kind)
                records = list(tf.io.tf_record_iterator(self.path(name + ".tfrecord"), options))
                self.assertEqual(records, [b"one", b"", name.encode()])

    def test_pipelines(self):
        """TensorFlow reads the batches of the pipelines of package data, bit for bit."""
        for name, epochs in go_files("data", self.dir).items():
            graph = tf.GraphDef()
            with open(self.path(name + ".pb"), "rb") as f:
                graph.ParseFromString(f.read())
            with self.subTest(name), tf.Graph().as_default() as g, tf.Session() as sess:
                tf.import_graph_def(graph, name="")
                batch = g.get_operation_by_name("next").outputs
                for epoch, want in epochs.items():
                    sess.run("start", {"epoch:0": int(epoch)})
                    for values in want:
                        for got, value in zip(sess.run(batch), values, strict=True):
                            if got.dtype == object:
                                value = [text.encode() for text in value]
                            np.testing.assert_array_equal(got, np.array(value, got.dtype))
                    with self.assertRaises(tf.errors.OutOfRangeError):
                        sess.run(batch)

    def test_keras(self):
        """A model goes from Keras to a Go program, and from there to Keras as a SavedModel."""
        done = subprocess.run(
            [sys.executable, "-m", "interop.keras.served", self.dir],
            cwd=ROOT, capture_output=True, text=True, timeout=500,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertLess(float(done.stdout.split()[-1]), 1e-6)

    def read_checkpoints(self):
        self.assertEqual(
            tf.train.latest_checkpoint(self.path("checkpoints")), self.path("checkpoints", "v2")
        )
        for name in ["v2", "v1"]:
            reader = tf.train.load_checkpoint(self.path("checkpoints", name))
            kinds = reader.get_variable_to_dtype_map()
            for key, kind in kinds.items():
                if (
                    key == "parts"
                ):  # TensorFlow's V1 reader does not merge slices, its operations do
                    with tf.Graph().as_default(), tf.Session() as sess:
                        value = sess.run(
                            tf.raw_ops.RestoreSlice(
                                file_pattern=self.path("checkpoints", "v1"),
                                tensor_name=key,
                                shape_and_slice="6 0,6",
                                dt=tf.float32,
                            )
                            if name == "v1"
                            else tf.constant(reader.get_tensor(key))
                        )
                    self.assertEqual(list(value), [0, 1, 2, 3, 4, 5])
                    continue
                value = reader.get_tensor(key)
                if key == "texts":
                    self.assertEqual(list(value), [b"a", b"", b"b\x00\xff"])
                else:
                    self.assertEqual(kind.name, key)
                    self.assertEqual([complex(v) for v in value], [1, 0], key)
            self.assertEqual(len(kinds), {"v2": 17, "v1": 5}[name])

    def read_events(self):
        events = event_accumulator.EventAccumulator(self.path("events"))
        events.Reload()
        tags = events.Tags()
        self.assertEqual(tags["scalars"], ["loss"])
        self.assertEqual(tags["histograms"], ["weights"])
        self.assertEqual(tags["images"], ["digit"])
        self.assertEqual(tags["audio"], ["tone"])
        self.assertEqual(tags["tensors"], ["note"])
        self.assertEqual(tags["run_metadata"], ["step2"])
        self.assertTrue(tags["graph"])
        self.assertEqual([(e.step, e.value) for e in events.Scalars("loss")], [(1, 0.5), (2, 0.25)])
        self.assertEqual(events.SummaryMetadata("note").plugin_data.plugin_name, "text")
        self.assertEqual([n.name for n in events.Graph().node], ["one"])
        (file,) = glob.glob(self.path("events", "*.tfevents.*"))
        logs = [
            e.session_log
            for e in tf.train.summary_iterator(file)
            if e.WhichOneof("what") == "session_log"
        ]
        self.assertEqual([log.status for log in logs], [tf.SessionLog.START])

    def test_go_reads(self):
        want = {"model": self.write_models()}
        want["saved"] = want["model"]
        self.write_checkpoints()
        self.write_events()
        for name, kind in COMPRESSIONS.items():
            with tf.io.TFRecordWriter(self.path(name + ".tfrecord"), kind) as w:
                for record in ["one", "", name]:
                    w.write(record)
        held = go_files("read", self.dir)
        self.assertEqual(held["records"], {name: ["one", "", name] for name in COMPRESSIONS})
        self.assertEqual(
            held["v2"], {"w": "1 2", "half": "1.5", "texts": "a b", "parts": "0 1 2 3 4 5"}
        )
        self.assertEqual(held["v1"], {"w": "1 2", "n": "7"})
        self.assertEqual(
            held["events"],
            {
                "loss": "float32 ",
                "weights": "summary.Histogram ",
                "digit/image/0": "summary.Image ",
                "tone/audio/0": "summary.Audio ",
                "note": "tensor.Tensor text",
                "graph": "graph",
            },
        )
        for name in ["model", "saved"]:
            self.assertEqual(sorted(held[name]), sorted(want[name]))
            for key, value in want[name].items():
                np.testing.assert_allclose(
                    held[name][key], value, rtol=1e-5, err_msg=f"{name} {key}"
                )
        for point in POINTS:
            np.testing.assert_allclose(
                held["frozen"][point + "/y"], want["model"][point + "/y"], rtol=1e-5
            )

    def write_models(self):
        """Writes a model in three forms and returns its results.

        It has loops, conditions, functions and both kinds of variables.
        """
        with tf.Graph().as_default(), tf.Session() as sess:
            tf.disable_control_flow_v2()
            x = tf.placeholder(tf.float32, [2], name="x")
            w = tf.get_variable("w", initializer=[0.5, 2.0], use_resource=False)
            v = tf.get_variable("v", initializer=[1.5, -1.0], use_resource=True)

            def loop():
                return tf.while_loop(
                    lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y * w) * v), [0, x]
                )[1]

            y = tf.cond(tf.reduce_sum(x) > 0, loop, lambda: tf.square(x))
            outputs = {"y": tf.identity(y, "y")}
            for name, g in zip(["dx", "dw", "dv"], tf.gradients(y, [x, w, v])):
                outputs[name] = tf.identity(g, name)
            sess.run(tf.global_variables_initializer())
            tf.train.Saver().save(sess, self.path("saved"))
            tf.saved_model.simple_save(sess, self.path("model"), {"x": x}, outputs)
            frozen = tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, ["y"])
            tf.io.write_graph(frozen, self.dir, "frozen.pb", as_text=False)
            return {
                f"{point}/{name}": sess.run(o, {x: at})
                for point, at in POINTS.items()
                for name, o in outputs.items()
            }

    def write_checkpoints(self):
        with tf.Graph().as_default(), tf.Session() as sess:
            w = tf.get_variable("w", initializer=[1.0, 2.0])
            half = tf.get_variable("half", initializer=tf.constant(1.5, tf.bfloat16))
            texts = tf.Variable(["a", "b"], name="texts", use_resource=False)
            parts = tf.get_variable(
                "parts",
                initializer=tf.constant([0.0, 1, 2, 3, 4, 5]),
                partitioner=tf.fixed_size_partitioner(3),
            )
            sess.run(tf.global_variables_initializer())
            tf.train.Saver([w, half, texts] + list(parts)).save(
                sess, self.path("checkpoints", "v2"), write_meta_graph=False
            )
        with tf.Graph().as_default(), tf.Session() as sess:
            tf.get_variable("w", initializer=[1.0, 2.0])
            tf.get_variable("n", initializer=tf.constant(7, tf.int64))
            sess.run(tf.global_variables_initializer())
            saver = tf.train.Saver(write_version=tf.train.SaverDef.V1)
            saver.save(
                sess, self.path("checkpoints", "v1"), write_meta_graph=False, write_state=False
            )

    def write_events(self):
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            merged = tf.summary.merge(
                [
                    tf.summary.scalar("loss", 0.5),
                    tf.summary.histogram("weights", [1.0, 2.0]),
                    tf.summary.image("digit", np.zeros([1, 1, 2, 3], np.uint8)),
                    tf.summary.audio("tone", np.zeros([1, 2], np.float32), 8000),
                    tf.summary.text("note", tf.constant("*good*")),
                ]
            )
            with tf.summary.FileWriter(self.path("events"), graph) as writer:
                writer.add_summary(sess.run(merged), 1)
        self.assertTrue(glob.glob(self.path("events", "*.tfevents.*")))


class OldCheckpoints(ClusterTest):
    """V1 checkpoints, written and read by the servers of a cluster and in this process."""

    jobs = {"ps": 2, "worker": 1}
    mixes = ["weft", "tf-ps"]

    def variables(self):
        """Returns two variables and a partitioned one, with their values as initializers."""
        with tf.device(tf.train.replica_device_setter(2)):
            w = tf.get_variable("w", initializer=[1.0, 2.0], use_resource=False)
            n = tf.get_variable("n", initializer=tf.constant(7, tf.int64), use_resource=False)
            parts = tf.get_variable(
                "parts",
                initializer=tf.constant(np.arange(12.0).reshape(6, 2)),
                partitioner=tf.fixed_size_partitioner(3),
            )
        return [w, n, *parts]

    def test_v1(self):
        for sharded in (False, True):
            for writer in ("cluster", "process"):
                with tempfile.TemporaryDirectory() as folder:
                    self.save(writer, sharded, folder)
                    for reader in ("cluster", "process"):
                        if (writer, reader) != ("process", "process"):
                            for version in (tf.train.SaverDef.V1, tf.train.SaverDef.V2):
                                with self.subTest(
                                    writer=writer, reader=reader, sharded=sharded, version=version
                                ):
                                    self.restore(reader, version, folder)

    def open(self, where, graph):
        if where == "cluster":
            return tf.Session(self.cluster.target(), graph=graph)
        for op in graph.get_operations():
            op._set_device("")
        return tf.Session(graph=graph)

    def save(self, where, sharded, folder):
        with tf.Graph().as_default() as graph:
            variables = self.variables()
            saver = tf.train.Saver(variables, write_version=tf.train.SaverDef.V1, sharded=sharded)
            init = tf.global_variables_initializer()
            with self.open(where, graph) as sess:
                sess.run(init)
                saver.save(sess, os.path.join(folder, "model"), global_step=3)

    def restore(self, where, version, folder):
        with tf.Graph().as_default() as graph:
            variables = self.variables()
            saver = tf.train.Saver(variables, write_version=version)
            lose = tf.group([tf.assign(v, tf.zeros_like(v)) for v in variables])
            with self.open(where, graph) as sess:
                sess.run(tf.global_variables_initializer())
                sess.run(lose)
                saver.restore(sess, tf.train.latest_checkpoint(folder))
                w, n, *parts = sess.run(variables)
        self.assertEqual((list(w), n), ([1, 2], 7))
        np.testing.assert_array_equal(np.concatenate(parts), np.arange(12.0).reshape(6, 2))
