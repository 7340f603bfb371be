"""Queues on a parameter server that several clients share."""

import threading

import tensorflow.compat.v1 as tf

from interop.clustertest import ClusterTest

COUNT = 20


class Queues(ClusterTest):
    def queue(self):
        with tf.device("/job:ps/task:0"):
            return tf.FIFOQueue(3, [tf.int32], [[]], shared_name=self._testMethodName)

    def produce(self):
        """Fills the queue, which is smaller than the number of elements, and closes it."""
        with tf.Graph().as_default():
            queue, x = self.queue(), tf.placeholder(tf.int32, [])
            add, close = queue.enqueue(x), queue.close()
            with tf.Session(self.cluster.target("worker", 1)) as sess:
                for i in range(COUNT):
                    sess.run(add, {x: i})
                sess.run(close)

    def test_a_client_receives_what_another_sends_until_the_queue_is_closed(self):
        producer = threading.Thread(target=self.produce)
        producer.start()
        self.addCleanup(producer.join)
        element, sess, got = self.queue().dequeue(), self.session(), []
        with self.assertRaisesRegex(
            tf.errors.OutOfRangeError, "closed and has insufficient elements"
        ):
            while True:
                got.append(int(sess.run(element)))
        self.assertEqual(got, list(range(COUNT)))
