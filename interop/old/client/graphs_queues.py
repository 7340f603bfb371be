"""Graphs with queues, readers, staging areas, datasets and lookup tables."""

import threading

import numpy as np
import tensorflow as tf
from check import Skip, equal, fails, graph, need, release


@graph
def queue_between_two_masters(tasks):
    with tf.device(tasks.ps):
        q = tf.FIFOQueue(2, [tf.int32, tf.string], [[], []], shared_name="pairs")
        number = tf.placeholder(tf.int32, [])
        put = q.enqueue([number, tf.as_string(number)])
        take, close = q.dequeue(), q.close()
    with tasks.session() as s, tasks.session(tasks.other) as t:

        def produce():
            for i in range(6):
                s.run(put, {number: i})
            s.run(close)

        thread = threading.Thread(target=produce)
        thread.start()
        for i in range(6):
            got = t.run(take)
            assert got[0] == i and got[1] == b"%d" % i, got
        thread.join()
        fails(tf.errors.OutOfRangeError, lambda: t.run(take), "is closed")


@graph
def queue_of_batches(tasks):
    with tf.device(tasks.ps):
        q = tf.FIFOQueue(20, [tf.float32], [[2]])
        put = q.enqueue_many([np.arange(12, dtype=np.float32).reshape(6, 2)])
        four, rest, size = q.dequeue_many(4), q.dequeue_up_to(9), q.size()
        close = q.close()
    with tf.device(tasks.w1):
        total = tf.reduce_sum(four, 0)
    with tasks.session() as s:
        s.run(put)
        equal(s.run(total), [12.0, 16.0])
        assert s.run(size) == 2
        s.run(close)
        equal(s.run(rest), [[8.0, 9.0], [10.0, 11.0]])


@graph
def other_kinds_of_queues(tasks):
    with tf.device(tasks.w1):
        mixed = tf.RandomShuffleQueue(10, 0, [tf.int32], [[]], seed=1)
        padded = tf.PaddingFIFOQueue(10, [tf.int32], [[None]])
        ranked = tf.PriorityQueue(10, [tf.string], [[]])
    puts = [
        mixed.enqueue_many([[1, 2, 3]]),
        ranked.enqueue_many([np.array([3, 1, 2], np.int64), ["c", "a", "b"]]),
    ]
    longer = [padded.enqueue([[1, 2, 3]]), padded.enqueue([[4]])]
    with tasks.session() as s:
        s.run(puts)
        for put in longer:
            s.run(put)
        assert sorted(s.run(mixed.dequeue_many(3))) == [1, 2, 3]
        equal(s.run(padded.dequeue_many(2)), [[1, 2, 3], [4, 0, 0]])
        equal(s.run(ranked.dequeue_many(3))[1], [b"a", b"b", b"c"])


@graph
def runners_feed_a_shuffled_batch(tasks):
    with tf.device(tasks.w0):
        names = tf.train.string_input_producer(
            [b"ab", b"cde", b"f"], num_epochs=4, shuffle=True, seed=5
        )
        name = names.dequeue()
    with tf.device(tasks.w1):
        text, length = tf.train.shuffle_batch(
            [name, tf.size(tf.string_split([name], ""))], 3, 20, 2, num_threads=2, seed=6
        )
    with tasks.session() as s:
        s.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(s, coordinator)
        seen = []
        try:
            while True:
                words, lengths = s.run([text, length])
                seen += list(words)
                assert [len(w) for w in words] == list(lengths), (words, lengths)
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=10)
        assert sorted(seen) == sorted([b"ab", b"cde", b"f"] * 4), seen


@graph
def step_that_waits_too_long(tasks):
    if release() < (1, 0):
        raise Skip("steps that end at their timeout")
    with tf.device(tasks.ps):
        q = tf.FIFOQueue(1, [tf.float32], [[]])
        take, put = q.dequeue(), q.enqueue(3.0)
    with tf.device(tasks.w1):
        more = take + 1
    with tasks.session(operation_timeout_in_ms=700) as s:
        fails(tf.errors.DeadlineExceededError, lambda: s.run(more))
        s.run(put)
        assert s.run(more) == 4


@graph
def closing_a_queue_cancels(tasks):
    with tf.device(tasks.ps):
        q = tf.FIFOQueue(1, [tf.float32], [[]], name="full")
        put, close = q.enqueue(1.0), q.close(cancel_pending_enqueues=True)
    with tasks.session() as s:
        s.run(put)
        raised = []

        def blocked():
            try:
                s.run(put)
            except tf.errors.OpError as e:
                raised.append(e)

        thread = threading.Thread(target=blocked)
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        s.run(close)
        thread.join(10)
        assert raised and isinstance(raised[0], tf.errors.CancelledError), raised


@graph
def barrier_of_keys(tasks):
    from tensorflow.python.ops import data_flow_ops

    with tf.device(tasks.ps):
        b = data_flow_ops.Barrier([tf.float32, tf.string], [[], []])
        puts = [
            b.insert_many(0, ["x", "y"], [1.0, 2.0]),
            b.insert_many(1, ["y", "x"], ["two", "one"]),
        ]
        take, ready = b.take_many(2), b.ready_size()
    with tasks.session() as s:
        s.run(puts[0])
        assert s.run(ready) == 0
        s.run(puts[1])
        _, keys, (numbers, words) = s.run([take[0], take[1], take[2]])
        assert dict(zip(keys, zip(numbers, words))) == {b"x": (1, b"one"), b"y": (2, b"two")}


@graph
def stage_between_steps(tasks):
    from tensorflow.python.ops import data_flow_ops

    if not hasattr(data_flow_ops, "StagingArea"):
        raise Skip("StagingArea")
    with tf.device(tasks.w1):
        stage = data_flow_ops.StagingArea([tf.float32, tf.int32], [[2], []])
        x = tf.placeholder(tf.float32, [2])
        put = stage.put([x, tf.constant(5)])
        a, b = stage.get()
    with tf.device(tasks.ps):
        y = a * tf.cast(b, tf.float32)
    with tasks.session() as s:
        s.run(put, {x: [1.0, 2.0]})
        got, _ = s.run([y, put], {x: [3.0, 4.0]})
        equal(got, [5.0, 10.0])
        equal(s.run(y), [15.0, 20.0])


@graph
def tables_of_words(tasks):
    lookup = need("contrib.lookup")
    with tf.device(tasks.ps):
        fixed = lookup.HashTable(
            lookup.KeyValueTensorInitializer(["red", "blue"], tf.constant([4, 7], tf.int64)), -1
        )
        found = fixed.lookup(tf.constant(["blue", "green", "red"]))
    with tf.device(tasks.w1):
        size = fixed.size() + tf.size(found, out_type=tf.int64) if release() >= (1, 0) else None
    with tasks.session() as s:
        fails(tf.errors.FailedPreconditionError, lambda: s.run(found), "not initialized")
        s.run(fixed.init)
        equal(s.run(found), [7, -1, 4])
        if size is not None:
            assert s.run(size) == 5


@graph
def tables_that_grow(tasks):
    lookup = need("contrib.lookup")
    with tf.device(tasks.ps):
        table = lookup.MutableHashTable(tf.string, tf.float32, 0.0)
        key, value = tf.placeholder(tf.string, [2]), tf.placeholder(tf.float32, [2])
        insert = table.insert(key, value)
        found, every = table.lookup(tf.constant(["a", "b", "c"])), table.export()
    with tasks.session() as s:
        s.run(insert, {key: [b"a", b"b"], value: [1.0, 2.0]})
        s.run(insert, {key: [b"b", b"c"], value: [5.0, 6.0]})
        equal(s.run(found), [1.0, 5.0, 6.0])
        assert sorted(s.run(every)[0]) == [b"a", b"b", b"c"]


@graph
def dataset_on_a_worker(tasks):
    Dataset = need("data.Dataset")
    with tf.device(tasks.w1):
        limit = tf.placeholder(tf.int64, [])
        data = Dataset.range(limit).map(lambda x: x * x).filter(lambda x: x % 2 < 1).batch(2)
        iterator = data.make_initializable_iterator()
        row = iterator.get_next()
    with tf.device(tasks.ps):
        total = tf.reduce_sum(row)
    with tasks.session() as s:
        s.run(iterator.initializer, {limit: 8})
        equal([s.run(total), s.run(total)], [4, 52])
        fails(tf.errors.OutOfRangeError, lambda: s.run(total), "End of sequence")


@graph
def dataset_of_one_shot(tasks):
    Dataset = need("data.Dataset")
    with tf.device(tasks.w0):
        data = Dataset.from_tensor_slices((np.arange(6), np.arange(6.0))).repeat(2).shuffle(3, 1)
        number, real = data.batch(4).make_one_shot_iterator().get_next()
    with tasks.session() as s:
        seen = []
        for _ in range(3):
            a, b = s.run([number, real])
            equal(b, a.astype(float))
            seen += list(a)
        assert sorted(seen) == sorted(list(range(6)) * 2), seen
