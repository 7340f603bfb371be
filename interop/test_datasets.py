"""Datasets have the same elements and cardinality as in TensorFlow."""

import glob
import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

from interop.clustertest import ClusterTest

Dataset = tf.data.Dataset
experimental = tf.data.experimental


def endless():
    return Dataset.range(3).repeat()


def words():
    return Dataset.from_tensor_slices(["a", "b", "a", "", "b", "c"])


def reducer():
    return experimental.Reducer(
        init_func=lambda key: (key, np.int64(0)),
        reduce_func=lambda state, x: (state[0], state[1] + x),
        finalize_func=lambda key, total: (key, total),
    )


def numbers(n=10):
    return Dataset.range(n)


# Each function returns a dataset. Of an infinite one, the first elements are compared.
CASES = {
    "filter": lambda: endless().filter(lambda x: x > 1),
    "flat map": lambda: endless().flat_map(lambda x: numbers(2)),
    "interleave": lambda: endless().interleave(lambda x: numbers(2), cycle_length=2),
    "parallel interleave": lambda: endless().interleave(
        lambda x: numbers(2), cycle_length=2, num_parallel_calls=2, deterministic=True
    ),
    "legacy parallel interleave": lambda: numbers(5).apply(
        experimental.parallel_interleave(
            lambda x: Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2
        )
    ),
    "take while": lambda: endless().take_while(lambda x: x < 2),
    "unbatch": lambda: endless().batch(2).unbatch(),
    "groups": lambda: endless().group_by_window(
        key_func=lambda x: x % 2, reduce_func=lambda k, w: w.batch(3), window_size=3
    ),
    "groups that end": lambda: numbers().group_by_window(
        key_func=lambda x: x % 2, reduce_func=lambda k, w: w.batch(3), window_size=3
    ),
    "map": lambda: endless().map(lambda x: x * 2),
    "scan": lambda: endless().scan(np.int64(0), lambda s, x: (s + x, s * x)),
    "windows": lambda: numbers().window(3, shift=2).flat_map(lambda w: w.batch(3)),
    "unique numbers": lambda: endless().unique().take(3),
    "unique words": lambda: words().unique(),
    "ignored errors": lambda: (
        numbers()
        .map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(x % 3, tf.float32), ""))
        .apply(experimental.ignore_errors())
    ),
    "samples": lambda: Dataset.sample_from_datasets([endless(), numbers().repeat()], seed=3),
    "samples that end": lambda: Dataset.sample_from_datasets(
        [numbers(3), numbers(4)], weights=[0.3, 0.7], seed=5
    ),
    "samples until one is empty": lambda: Dataset.sample_from_datasets(
        [numbers(3), numbers(9)], seed=5, stop_on_empty_dataset=True
    ),
    "choices": lambda: Dataset.choose_from_datasets(
        [words(), words().batch(1).unbatch()],
        Dataset.from_tensor_slices(np.array([0, 1, 1, 0], np.int64)),
    ),
    "rebatched": lambda: numbers().batch(4).rebatch(3),
    "rebatched in turns": lambda: numbers(11).batch(4).rebatch([2, 3], drop_remainder=True),
    "zip": lambda: Dataset.zip((endless(), words())),
    "concatenate": lambda: endless().concatenate(numbers(2)),
    "map and batch": lambda: numbers(7).apply(experimental.map_and_batch(lambda x: (x, x * 2), 3)),
    "map and whole batches": lambda: numbers(7).apply(
        experimental.map_and_batch(lambda x: x, 3, drop_remainder=True, num_parallel_calls=2)
    ),
    "shuffled and repeated": lambda: numbers(7).apply(
        experimental.shuffle_and_repeat(4, count=3, seed=7)
    ),
    "shuffled and repeated forever": lambda: numbers(7).apply(
        experimental.shuffle_and_repeat(10, seed=7)
    ),
    "reduced groups": lambda: Dataset.from_tensor_slices(
        np.array([3, -1, 4, 1, -5, 9, 2, 6], np.int64)
    ).apply(experimental.group_by_reducer(lambda x: x % 3, reducer())),
    "files by name": lambda: Dataset.list_files(
        os.path.join(os.path.dirname(__file__), "test_d*.py"), shuffle=False
    ).map(lambda name: tf.strings.split([name], "/").values[-1]),
    "files by name, in any order": lambda: Dataset.list_files(
        os.path.join(os.path.dirname(__file__), "test_*.py"), seed=3
    ).map(lambda name: tf.strings.split([name], "/").values[-1]),
    "ragged batches": lambda: (
        numbers(5)
        .map(tf.range)
        .apply(experimental.dense_to_ragged_batch(2))
        .map(lambda r: r.to_tensor())
    ),
    "sparse batches": lambda: (
        numbers(5)
        .map(tf.range)
        .apply(experimental.dense_to_sparse_batch(2, [6]))
        .map(tf.sparse.to_dense)
    ),
    "padded batches": lambda: numbers(5).map(tf.range).padded_batch(2, padded_shapes=[None]),
    "bucketed": lambda: (
        numbers(9).map(tf.range).bucket_by_sequence_length(tf.size, [3, 6], [2, 2, 2])
    ),
    "shuffled": lambda: numbers().shuffle(4, seed=3),
    "random": lambda: Dataset.random(seed=4),
    "counted": lambda: Dataset.counter(start=3, step=2),
    "rejected and resampled": lambda: (
        numbers(40)
        .map(lambda x: x % 4)
        .rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.25, 0.75], [0.5, 0.5], seed=9)
    ),
    "in memory": lambda: numbers(3).cache().repeat(2),
    "skipped and taken": lambda: numbers().skip(2).take(3).enumerate(start=5),
    "in shards": lambda: numbers().shard(3, 1),
    "on the way": lambda: numbers(5).prefetch(2),
}
MOST = 25

CSV = '''a,b,c,d
1,"x, y",2.5,7
,"two
lines",,8
3,"say ""so""",NA,9
'''


def example(i):
    feature = tf.train.Feature
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "n": feature(int64_list=tf.train.Int64List(value=[i])),
                "x": feature(float_list=tf.train.FloatList(value=[i / 2, -i])),
                "words": feature(bytes_list=tf.train.BytesList(value=[b"w"] * (i % 3))),
            }
        )
    ).SerializeToString()


def parsed(**features):
    return lambda: (
        Dataset.from_tensor_slices([example(i) for i in range(7)])
        .batch(3)
        .apply(experimental.parse_example_dataset(features, num_parallel_calls=2))
    )


CASES.update(
    {
        "parsed examples": parsed(
            n=tf.FixedLenFeature([], tf.int64),
            x=tf.FixedLenFeature([2], tf.float32),
            other=tf.FixedLenFeature([], tf.string, "?"),
        ),
        "sparse features": lambda: parsed(
            words=tf.VarLenFeature(tf.string), n=tf.VarLenFeature(tf.int64)
        )().map(lambda f: {k: tf.sparse.to_dense(v) for k, v in f.items()}),
        "ragged features": lambda: parsed(
            words=tf.io.RaggedFeature(tf.string), n=tf.FixedLenFeature([1], tf.int64)
        )().map(lambda f: (f["n"], f["words"].to_tensor())),
    }
)


class Elements(ClusterTest):
    """The same dataset on a server and in the client's own TensorFlow."""

    jobs = {"worker": 1}

    def elements(self, target, make):
        config = tf.ConfigProto(
            isolate_session_state=True
        )  # iterators of one name are one otherwise
        with tf.Graph().as_default(), tf.Session(target, config=config) as sess:
            tf.set_random_seed(11)
            d = make()
            iterator = tf.data.make_initializable_iterator(d)
            item = iterator.get_next()
            size = sess.run(d.cardinality())
            sess.run(iterator.initializer)
            out = []
            try:
                while len(out) < MOST:
                    out.append([np.asarray(v).tolist() for v in tf.nest.flatten(sess.run(item))])
            except tf.errors.OutOfRangeError:
                out.append("the end")
            return size, out

    def test_elements_and_cardinality(self):
        for name, make in CASES.items():
            with self.subTest(name):
                self.assertEqual(
                    self.elements(self.cluster.target(), make), self.elements("", make)
                )

    def test_comma_separated_values(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.csv")
            with open(path, "w") as f:
                f.write(CSV)
            for options in (
                dict(record_defaults=[0, "", 1.5, tf.int64], na_value="NA"),
                dict(record_defaults=["", 0.0], select_cols=[1, 3]),
                dict(record_defaults=["", tf.string], exclude_cols=[2, 3]),
            ):
                with self.subTest(str(options)):

                    def make():
                        return tf.compat.v2.data.experimental.CsvDataset(
                            [path, path], header=True, **options
                        )

                    self.assertEqual(
                        self.elements(self.cluster.target(), make), self.elements("", make)
                    )

    def test_records_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            for compression in ("", "ZLIB"):
                path = os.path.join(folder, "records" + compression)
                with tf.Graph().as_default(), tf.Session(self.cluster.target()) as sess:
                    sess.run(experimental.TFRecordWriter(path, compression).write(words()))
                found = list(tf.io.tf_record_iterator(path, tf.io.TFRecordOptions(compression)))
                self.assertEqual(found, [b"a", b"b", b"a", b"", b"b", b"c"])

    def test_saved_datasets_go_both_ways(self):
        """Each side loads what the other saves, in several shards and compressed."""
        ours, own = self.cluster.target(), ""
        for writer, loader in ((ours, own), (own, ours)):
            for compression in (None, "GZIP"):
                with (
                    self.subTest(writer=writer, compression=compression),
                    tempfile.TemporaryDirectory() as folder,
                ):
                    path = os.path.join(folder, "saved")
                    with tf.Graph().as_default(), tf.Session(writer) as sess:
                        d = numbers(7).map(lambda x: (x, tf.strings.as_string(x), tf.range(x)))
                        sess.run(
                            d.save(path, compression=compression, shard_func=lambda x, *_: x % 3)
                        )
                    size, found = self.elements(
                        loader, lambda: Dataset.load(path, compression=compression)
                    )
                    self.assertEqual(size, 7)
                    want = [[x, str(x).encode(), list(range(x))] for x in range(7)]
                    self.assertEqual(sorted(found[:-1]), want)

    def test_cached_files_go_both_ways(self):
        ours, own = self.cluster.target(), ""
        for writer, reader in ((ours, own), (own, ours)):
            with self.subTest(writer=writer), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "cache")
                written = self.elements(writer, lambda: words().cache(path))
                self.assertTrue(os.path.exists(path + ".index"))
                self.assertEqual(
                    self.elements(reader, lambda: words().skip(99).cache(path))[1], written[1]
                )

    def test_snapshots_go_both_ways(self):
        """Each side reads what the other writes.

        The reader finds the folder, whose name is a hash of the pipeline, and creates no other.
        """
        ours, own = self.cluster.target(), ""
        for writer, reader in ((ours, own), (own, ours)):
            for compression in (None, "SNAPPY"):
                with (
                    self.subTest(writer=writer, compression=compression),
                    tempfile.TemporaryDirectory() as folder,
                ):

                    def make():
                        d = numbers(6).map(lambda x: (x, tf.strings.as_string(x + 1)))
                        return d.snapshot(folder, compression=compression)

                    written = self.elements(writer, make)[1]
                    self.assertEqual(len(written), 7)
                    runs = glob.glob(folder + "/*/*")
                    self.assertEqual(
                        sorted(self.elements(reader, make)[1][:-1]), sorted(written[:-1])
                    )
                    self.assertEqual(sorted(glob.glob(folder + "/*/*")), sorted(runs))
