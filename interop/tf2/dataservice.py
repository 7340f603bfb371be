"""dataservice.py DISPATCHER: input pipelines of TensorFlow 2 on a tf.data service with two workers.

Prints "ok" at the end. CHECK as a second argument runs one check alone.
"""

import os
import sys
import tempfile
import threading

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

service = tf.data.experimental.service
DISPATCHER = sys.argv[1]
WORKERS = 2


def check(what, got, want):
    if got != want:
        raise SystemExit(f"{what}: got {got}, want {want}")


def distribute(dataset, mode=service.ShardingPolicy.OFF, **options):
    return dataset.apply(service.distribute(mode, DISPATCHER, **options))


def numbers(dataset):
    return sorted(int(x) for x in dataset.as_numpy_iterator())


def parallel_epochs():
    dataset = tf.data.Dataset.range(10).map(lambda x: x * 2)
    want = sorted(list(range(0, 20, 2)) * WORKERS)
    for compression in ("AUTO", None):
        got = numbers(distribute(dataset, "parallel_epochs", compression=compression))
        check(f"parallel epochs, compression {compression}", got, want)


def distributed_epoch():
    dataset = tf.data.Dataset.range(100).map(lambda x: x + 1)
    got = numbers(distribute(dataset, "distributed_epoch"))
    check("a distributed epoch", got, list(range(1, 101)))
    slices = tf.data.Dataset.from_tensor_slices(([1, 2, 3], ["a", "b", "c"])).map(lambda x, y: x)
    check("slices", numbers(distribute(slices, "distributed_epoch")), [1, 2, 3])
    steps = tf.data.Dataset.range(20, 0, -3)
    got = numbers(distribute(steps, "distributed_epoch"))
    check("a range downwards", got, sorted(range(20, 0, -3)))
    repeated = tf.data.Dataset.range(5).repeat(3)
    got = numbers(distribute(repeated, "distributed_epoch"))
    check("a repeated source", got, sorted(list(range(5)) * 3))
    zipped = tf.data.Dataset.zip(tf.data.Dataset.range(8), tf.data.Dataset.range(8))
    got = numbers(distribute(zipped.map(lambda x, y: y), "distributed_epoch"))
    check("zipped sources", len(got) <= 8 and len(set(got)) == len(got), True)
    batches = distribute(tf.data.Dataset.range(64).batch(8), "distributed_epoch")
    check("batches", sorted(int(x) for b in batches for x in b), list(range(64)))


def epochs_of_a_client():
    dataset = distribute(tf.data.Dataset.range(6), "distributed_epoch")
    for epoch in range(3):
        check(f"epoch {epoch}", numbers(dataset), list(range(6)))


def shared_job():
    def make():
        return distribute(tf.data.Dataset.range(200), "distributed_epoch", job_name="shared")

    got, lock = [], threading.Lock()

    def read(dataset):
        for x in dataset.as_numpy_iterator():
            with lock:
                got.append(int(x))

    threads = [threading.Thread(target=read, args=(make(),)) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check("a job of two clients", sorted(got), list(range(200)))


def from_dataset_id():
    dataset = tf.data.Dataset.range(12).map(lambda x: (x, {"twice": 2 * x}))
    number = service.register_dataset(DISPATCHER, dataset)
    again = service.from_dataset_id("distributed_epoch", DISPATCHER, number, dataset.element_spec)
    got = sorted(int(d["twice"]) for _, d in again)
    check("a registered dataset", got, list(range(0, 24, 2)))
    named = service.register_dataset(DISPATCHER, dataset, dataset_id="twelve")
    check("the name of a dataset", named.numpy() if hasattr(named, "numpy") else named, b"twelve")
    spec = service.from_dataset_id("parallel_epochs", DISPATCHER, "twelve").element_spec
    check("the element spec of the dispatcher", spec, dataset.element_spec)
    try:
        next(
            iter(
                service.from_dataset_id("parallel_epochs", DISPATCHER, "none", dataset.element_spec)
            )
        )
    except tf.errors.NotFoundError:
        return
    raise SystemExit("a dataset that was not registered was found")


def coordinated_reads():
    consumers = 2
    dataset = tf.data.Dataset.range(1000).repeat()
    iterators = [
        iter(distribute(dataset, job_name="coordinated", consumer_index=i, num_consumers=consumers))
        for i in range(consumers)
    ]
    rows = [[None] * 6 for _ in range(consumers)]

    def read(i):
        for k in range(6):
            rows[i][k] = int(next(iterators[i]))

    threads = [threading.Thread(target=read, args=(i,)) for i in range(consumers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    # The consumers of a round read neighboring elements of one worker.
    check("coordinated reads", [b - a for a, b in zip(*rows, strict=True)], [1] * 6)


def static_sharding():
    """The elements of each policy, and its errors, as TensorFlow's own service has them."""
    policies = service.ShardingPolicy
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{name}" for name in "abcd"]
        for file in files:
            with tf.io.TFRecordWriter(file) as w:
                for i in range(5):
                    w.write(f"{file[-1]}{i}")
        records = tf.data.TFRecordDataset(files)
        by_name = tf.data.Dataset.from_tensor_slices(files).interleave(tf.data.TFRecordDataset)
        hints = tf.data.experimental.SHARD_HINT
        for what, dataset, wanted in (
            (
                "records",
                records,
                {"FILE": 20, "DATA": 20, "FILE_OR_DATA": 20, "HINT": 40, "OFF": 40},
            ),
            ("files by name", by_name, {"FILE": 20, "DATA": 20, "FILE_OR_DATA": 20, "HINT": 40}),
            ("pairs of records", records.batch(2), {"FILE": 10, "DATA": 10, "FILE_OR_DATA": 10}),
            (
                "a range",
                tf.data.Dataset.range(10),
                {"FILE": "unshardable source dataset", "DATA": 10, "FILE_OR_DATA": 10, "HINT": 20},
            ),
            (
                "a range with a hint",
                tf.data.Dataset.range(10).shard(hints, hints),
                {"HINT": 10, "DATA": "SHARD_HINT", "OFF": "SHARD_HINT"},
            ),
        ):
            for policy, want in wanted.items():
                name = f"{what}, sharded by {policy}"
                try:
                    got = list(distribute(dataset, policies[policy]).as_numpy_iterator())
                except (tf.errors.NotFoundError, tf.errors.FailedPreconditionError) as e:
                    text = e.message.partition("}} ")[2]  # without the client's own node
                    check(f"{name}: {e}", str(want) in text and "/job:localhost" not in text, True)
                    continue
                check(name, len(got), want)
                if policy in ("FILE", "DATA", "FILE_OR_DATA"):
                    check(f"different elements of {name}", len({str(x) for x in got}), want)


def errors():
    bad = tf.data.Dataset.range(3).map(lambda x: tf.reshape(tf.range(x + 1), [1]))
    try:
        list(distribute(bad, "parallel_epochs"))
    except tf.errors.InvalidArgumentError:
        pass
    else:
        raise SystemExit("an error of a dataset is lost")
    generated = tf.data.Dataset.random(seed=1).take(3)
    try:
        list(distribute(generated, "distributed_epoch"))
    except tf.errors.UnimplementedError:
        return
    raise SystemExit("a source without splits was divided")


def training_data():
    """Text, strings, ragged and nested elements."""
    dataset = tf.data.Dataset.from_tensor_slices(["a b", "c d e", "f"]).map(tf.strings.split)
    got = sorted(len(x) for x in distribute(dataset, "parallel_epochs"))
    check("ragged elements", got, sorted([2, 3, 1] * WORKERS))
    shuffled = tf.data.Dataset.range(50).shuffle(10).batch(7).prefetch(2)
    got = sorted(int(x) for b in distribute(shuffled, "distributed_epoch") for x in b)
    check("a shuffled pipeline", got, list(range(50)))


CHECKS = [
    parallel_epochs,
    distributed_epoch,
    epochs_of_a_client,
    shared_job,
    from_dataset_id,
    coordinated_reads,
    static_sharding,
    errors,
    training_data,
]

if __name__ == "__main__":
    for f in CHECKS:
        if len(sys.argv) < 3 or f.__name__ in sys.argv[2:]:
            f()
            print(f.__name__, flush=True)
    print("ok", flush=True)
    os._exit(0)
