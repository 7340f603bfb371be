# Towers for CIFAR-10 on the workers: every step applies the mean of their gradients. Each worker
# reads the binary files itself; the variables are on the parameter server.
from __future__ import print_function

import os
import sys

import tensorflow as tf

target, workers, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SIDE, BATCH = 24, 16


def inputs(folder):
    files = [os.path.join(folder, "data_batch_%d.bin" % k) for k in range(1, 6)]
    names = tf.train.string_input_producer(files)
    _, record = tf.FixedLengthRecordReader(1 + 32 * 32 * 3).read(names)
    row = tf.decode_raw(record, tf.uint8)
    label = tf.cast(row[0], tf.int32)
    image = tf.transpose(tf.reshape(row[1:], [3, 32, 32]), [1, 2, 0])
    image = tf.random_crop(tf.cast(image, tf.float32), [SIDE, SIDE, 3])
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, 20)
    image = tf.image.per_image_standardization(image)
    return tf.train.shuffle_batch([image, label], BATCH, 300, 100, num_threads=2)


def variable(name, shape, stddev, decay=0.0):
    with tf.device("/job:ps/task:0"):
        start = tf.truncated_normal_initializer(stddev=stddev)
        v = tf.get_variable(name, shape, initializer=start)
    if decay:
        tf.add_to_collection("losses", tf.nn.l2_loss(v) * decay)
    return v


def tower(images, labels, scope):
    with tf.variable_scope("conv1"):
        h = tf.nn.conv2d(images, variable("weights", [5, 5, 3, 8], 0.05), [1, 2, 2, 1], "SAME")
        h = tf.nn.relu(tf.nn.bias_add(h, variable("biases", [8], 0.01)))
        h = tf.nn.max_pool(h, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
        h = tf.nn.lrn(h, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)
    with tf.variable_scope("local"):
        h = tf.reshape(h, [BATCH, 6 * 6 * 8])
        h = tf.nn.relu(tf.matmul(h, variable("weights", [288, 32], 0.04, 0.004)))
    with tf.variable_scope("softmax"):
        logits = tf.matmul(h, variable("weights", [32, 10], 0.1)) + variable("biases", [10], 0.01)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    tf.add_to_collection("losses", tf.reduce_mean(entropy))
    return tf.add_n(tf.get_collection("losses", scope), name="total")


def main():
    with tf.device("/job:ps/task:0"):
        step = tf.get_variable(
            "global_step", [], initializer=tf.constant_initializer(0), trainable=False
        )
        rate = tf.train.exponential_decay(0.1, step, 200, 0.5, staircase=True)
        optimizer = tf.train.GradientDescentOptimizer(rate)
    gradients, losses = [], []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(workers):
            with tf.device("/job:worker/task:%d" % i), tf.name_scope("tower_%d" % i) as scope:
                images, labels = inputs("cifar-10-batches-bin")
                losses.append(tower(images, labels, scope))
                tf.get_variable_scope().reuse_variables()
                gradients.append(optimizer.compute_gradients(losses[-1]))
    with tf.device("/job:ps/task:0"):
        means = []
        for of_variable in zip(*gradients):
            total = tf.add_n([g for g, _ in of_variable])
            means.append((total / float(workers), of_variable[0][1]))
        apply = optimizer.apply_gradients(means, global_step=step)
        averages = tf.train.ExponentialMovingAverage(0.99, step)
        train = tf.group(apply, averages.apply(tf.trainable_variables()))
        for g, v in means:
            tf.summary.histogram(v.op.name + "/gradients", g)
    summary, saver = tf.summary.merge_all(), tf.train.Saver(tf.global_variables())
    config = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(target, config=config) as sess:
        sess.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        writer = tf.summary.FileWriter("train", sess.graph)
        for k in range(steps):
            _, value = sess.run([train, losses[0]])
            if k % 10 == 0:
                print("step %d, loss = %.3f" % (k, value))
            if k % 50 == 0:
                writer.add_summary(sess.run(summary), k)
        saver.save(sess, "train/model.ckpt", global_step=steps)
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=10)
        writer.close()
    print("done")


main()
