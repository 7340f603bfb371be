"""Graphs that read and write files on tasks: checkpoints, records, lines, summaries."""

import glob
import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from check import Skip, equal, fails, graph, need, values


class Folder(object):
    """A folder that all processes of the cluster see, as a context manager."""

    def __enter__(self):
        self.name = tempfile.mkdtemp(prefix="weft-old-")
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.name)

    def __call__(self, *names):
        return os.path.join(self.name, *names)


def saved(tasks, **options):
    with tf.device(tasks.ps):
        v = tf.Variable(values(40, 4, 3), name="v")
    with tf.device(tasks.w1):
        n = tf.Variable(np.array(3, np.int64), name="n")
    saver = tf.train.Saver(**options)
    with Folder() as folder, tasks.session() as s:
        s.run(tf.global_variables_initializer())
        for step in range(3):
            s.run(n.assign_add(1))
            path = saver.save(s, folder("model"), global_step=step)
        latest = tf.train.latest_checkpoint(folder.name)
        assert path == latest, (path, latest)
        s.run([v.assign(v * 0), n.assign(0)])
        saver.restore(s, path)
        equal(s.run([v, n]), [values(40, 4, 3), 6])
        saver.restore(s, saver.last_checkpoints[0])
        assert s.run(n) == 5
        reader = tf.train.NewCheckpointReader(path)
        equal(reader.get_tensor("v"), values(40, 4, 3))
        assert not glob.glob(folder("model-0.*")) and not os.path.exists(folder("model-0"))


@graph
def checkpoint(tasks):
    saved(tasks, max_to_keep=2)


@graph
def checkpoint_in_shards(tasks):
    saved(tasks, max_to_keep=2, sharded=True)


@graph
def checkpoint_of_the_first_format(tasks):
    saved(tasks, max_to_keep=2, write_version=tf.train.SaverDef.V1)


@graph
def graph_from_its_file(tasks):
    with tf.device(tasks.ps):
        v = tf.Variable([1.0, 2.0], name="v")
    with tf.device(tasks.w1):
        tf.add_to_collection("double", v * 2)
    saver = tf.train.Saver()
    with Folder() as folder:
        with tasks.session() as s:
            s.run(v.initializer)
            path = saver.save(s, folder("m"))
        for clear in (False, True):
            with tf.Graph().as_default() as g, g.container("imported"):
                again = tf.train.import_meta_graph(path + ".meta", clear_devices=clear)
                with tasks.session() as s:
                    again.restore(s, path)
                    equal(s.run(tf.get_collection("double")[0]), [2.0, 4.0])


@graph
def one_tensor_of_a_checkpoint(tasks):
    with tf.device(tasks.ps):
        v = tf.Variable(values(41, 6, 2), name="whole")
    with Folder() as folder, tasks.session() as s:
        s.run(v.initializer)
        path = tf.train.Saver([v]).save(s, folder("m"))
        with tf.device(tasks.w1):
            part = tf.Variable(tf.zeros([6, 2]), name="elsewhere")
        restore = tf.train.Saver({"whole": part}).restore
        restore(s, path)
        equal(s.run(part), values(41, 6, 2))
        missing = tf.train.Saver({"other_name": part})
        fails(tf.errors.NotFoundError, lambda: missing.restore(s, path), "other_name")


@graph
def summaries_of_a_step(tasks):
    need("summary.merge_all")
    with tf.device(tasks.ps):
        v = tf.Variable([1.0, 5.0], name="v")
        tf.summary.scalar("largest", tf.reduce_max(v))
    with tf.device(tasks.w1):
        tf.summary.histogram("spread", v * 2)
        tf.summary.image("dot", tf.ones([1, 2, 2, 3]), max_outputs=1)
    merged = tf.summary.merge_all()
    with Folder() as folder, tasks.session() as s:
        writer = tf.summary.FileWriter(folder("logs"), s.graph)
        s.run(v.initializer)
        writer.add_summary(s.run(merged), 7)
        writer.close()
        (name,) = os.listdir(folder("logs"))
        found = {}
        for event in tf.train.summary_iterator(folder("logs", name)):
            for value in event.summary.value:
                assert event.step == 7
                found[value.tag.split("/")[0]] = value
        assert found["largest"].simple_value == 5
        assert found["spread"].histo.max == 10 and found["spread"].histo.num == 2
        assert found["dot"].image.width == 2


@graph
def examples_of_records(tasks):
    with Folder() as folder:
        path = folder("rows.tfrecords")
        writer = tf.python_io.TFRecordWriter(path)
        for i in range(5):
            row = tf.train.Example()
            row.features.feature["n"].int64_list.value.append(i)
            row.features.feature["x"].float_list.value.extend([i, i + 0.5])
            if i % 2:
                row.features.feature["tags"].bytes_list.value.extend([b"t"] * i)
            writer.write(row.SerializeToString())
        writer.close()
        with tf.device(tasks.w1):
            names = tf.FIFOQueue(3, [tf.string], [[]])
            put, close = names.enqueue([path]), names.close()
            reader = tf.TFRecordReader()
            key, rows = reader.read_up_to(names, 4)
        with tf.device(tasks.ps):
            parsed = tf.parse_example(
                rows,
                {
                    "n": tf.FixedLenFeature([], tf.int64),
                    "x": tf.FixedLenFeature([2], tf.float32),
                    "tags": tf.VarLenFeature(tf.string),
                },
            )
        with tasks.session() as s:
            s.run(put)
            s.run(close)
            got = s.run(parsed)
            equal(got["n"], [0, 1, 2, 3])
            equal(got["x"], [[i, i + 0.5] for i in range(4)])
            equal(got["tags"].values, [b"t"] * 4)
            equal(s.run(parsed)["n"], [4])
            fails(tf.errors.OutOfRangeError, lambda: s.run(parsed))
            assert s.run(reader.num_records_produced()) == 5


@graph
def columns_of_lines(tasks):
    with Folder() as folder:
        with open(folder("table.csv"), "w") as f:
            f.write('name,count,share\nash,3,0.5\n"elm, old",,0.25\n')
        with tf.device(tasks.w1):
            names = tf.train.string_input_producer([folder("table.csv")], 1, shuffle=False)
            key, line = tf.TextLineReader(skip_header_lines=1).read(names)
        with tf.device(tasks.ps):
            columns = tf.decode_csv(line, [[""], [7], [0.0]])
        with tasks.session() as s:
            s.run(tf.local_variables_initializer())
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(s, coordinator)
            rows = [s.run([key] + columns) for _ in range(2)]
            fails(tf.errors.OutOfRangeError, lambda: s.run(columns))
            coordinator.request_stop()
            coordinator.join(threads)
        assert [r[0].split(b":")[-1] for r in rows] == [b"2", b"3"], rows
        assert [tuple(r[1:]) for r in rows] == [(b"ash", 3, 0.5), (b"elm, old", 7, 0.25)], rows


@graph
def blocks_of_a_binary_file(tasks):
    with Folder() as folder:
        with open(folder("blocks.bin"), "wb") as f:
            f.write(bytearray([9, 9] + list(range(12)) + [8]))
        with tf.device(tasks.w0):
            names = tf.train.string_input_producer([folder("blocks.bin")], shuffle=False)
            reader = tf.FixedLengthRecordReader(4, header_bytes=2, footer_bytes=1)
            _, block = reader.read(names)
        with tf.device(tasks.w1):
            numbers = tf.cast(tf.decode_raw(block, tf.uint8), tf.int32) * 2
        with tasks.session() as s:
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(s, coordinator)
            for first in (0, 8, 16, 0):
                equal(s.run(numbers), [first, first + 2, first + 4, first + 6])
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=10)


@graph
def whole_files(tasks):
    with Folder() as folder:
        for name in ("b.txt", "a.txt"):
            with open(folder(name), "w") as f:
                f.write("file " + name)
        with tf.device(tasks.w1):
            found = tf.matching_files(folder("*.txt"))
            content = tf.read_file(folder("a.txt"))
            missing = tf.read_file(folder("none.txt"))
        with tf.device(tasks.ps):
            write = tf.write_file(folder("c.out"), content + " again")
        with tasks.session() as s:
            assert sorted(s.run(found)) == [folder(n).encode() for n in ("a.txt", "b.txt")]
            assert s.run(content) == b"file a.txt"
            s.run(write)
            with open(folder("c.out")) as f:
                assert f.read() == "file a.txt again"
            fails(tf.errors.NotFoundError, lambda: s.run(missing), "none.txt")


@graph
def model_for_serving(tasks):
    if not hasattr(tf, "saved_model") or not hasattr(tf.saved_model, "builder"):
        raise Skip("tf.saved_model.builder")
    x = tf.placeholder(tf.float32, [None], name="x")
    with tf.device(tasks.ps):
        v = tf.Variable(3.0, name="v")
    with tf.device(tasks.w1):
        y = tf.multiply(x, v, name="y")
    with Folder() as folder:
        with tasks.session() as s:
            s.run(v.initializer)
            builder = tf.saved_model.builder.SavedModelBuilder(folder("model"))
            builder.add_meta_graph_and_variables(s, ["serve"], clear_devices=True)
            builder.save()
        with tf.Graph().as_default(), tf.Session() as s:
            tf.saved_model.loader.load(s, ["serve"], folder("model"))
            equal(s.run("y:0", {"x:0": [1.0, 2.0]}), [3.0, 6.0])
