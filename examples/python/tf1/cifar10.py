"""A small convolutional network on images in the binary format of CIFAR-10. The process of worker 0
builds a copy of the network on every worker, averages their gradients, and applies the average to
variables on the parameter server. Queue runners read and distort the images on each worker. One
process per task:

    python -m weft_shim cifar10.py --job_name=ps
    python -m weft_shim cifar10.py --job_name=worker --task_index=1
    python -m weft_shim cifar10.py --job_name=worker --task_index=0
"""

from __future__ import print_function

import glob
import os
import tempfile

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string("ps_hosts", "localhost:2222", "host:port of the parameter server")
tf.app.flags.DEFINE_string(
    "worker_hosts", "localhost:2223,localhost:2224", "host:port of each worker"
)
tf.app.flags.DEFINE_string("job_name", "worker", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "index of the task in its job")
tf.app.flags.DEFINE_integer("max_steps", 100, "number of steps")
tf.app.flags.DEFINE_integer("batch_size", 32, "images of a worker in a step")
tf.app.flags.DEFINE_string("train_dir", "", "folder for the checkpoint and the summaries")
tf.app.flags.DEFINE_string(
    "data_dir", "", "folder with data_batch_*.bin, which all workers see; if empty, draw images"
)
FLAGS = tf.app.flags.FLAGS

SIZE, CROP = 32, 24


def draw_images(folder):
    """Writes a file in which the class determines the colours and the stripes of an image."""
    rng = np.random.RandomState(5)
    labels = rng.randint(0, 10, 2000)
    row = np.arange(SIZE)
    colour = np.random.RandomState(6).randint(40, 216, [10, 3])
    wave = 1 + 0.5 * np.sin(row * (labels[:, None] + 1) * 0.3)
    images = colour[labels][:, :, None, None] * wave[:, None, :, None]
    images = images + 20 * rng.randn(2000, 3, SIZE, SIZE)
    pixels = np.clip(images, 0, 255).astype(np.uint8).reshape(2000, -1)
    records = np.concatenate([labels[:, None].astype(np.uint8), pixels], 1)
    records.tofile(os.path.join(folder, "data_batch_1.bin"))


def distorted_inputs(files):
    """Returns batches of images and labels, from queues that threads of the client keep full."""
    names = tf.train.string_input_producer(files)
    reader = tf.FixedLengthRecordReader(record_bytes=1 + 3 * SIZE * SIZE)
    _, value = reader.read(names)
    record = tf.decode_raw(value, tf.uint8)
    label = tf.reshape(tf.cast(tf.slice(record, [0], [1]), tf.int32), [])
    image = tf.reshape(tf.slice(record, [1], [3 * SIZE * SIZE]), [3, SIZE, SIZE])
    image = tf.cast(tf.transpose(image, [1, 2, 0]), tf.float32)
    image = tf.random_crop(image, [CROP, CROP, 3])
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, max_delta=20)
    image = (image - 128) / 64
    return tf.train.shuffle_batch(
        [image, label], FLAGS.batch_size, capacity=600, min_after_dequeue=200, num_threads=2
    )


def variable(name, shape, stddev):
    with tf.device("/job:ps/task:0/cpu:0"):
        return tf.get_variable(
            name, shape, initializer=tf.truncated_normal_initializer(stddev=stddev)
        )


def inference(images):
    with tf.variable_scope("conv"):
        kernel = variable("weights", [5, 5, 3, 16], 0.05)
        conv = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], padding="SAME")
        conv = tf.nn.relu(tf.nn.bias_add(conv, variable("biases", [16], 0.01)))
        pool = tf.nn.max_pool(conv, [1, 3, 3, 1], [1, 2, 2, 1], padding="SAME")
        norm = tf.nn.lrn(pool, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)
    with tf.variable_scope("local"):
        flat = tf.reshape(norm, [FLAGS.batch_size, 12 * 12 * 16])
        weights = variable("weights", [12 * 12 * 16, 48], 0.04)
        local = tf.nn.relu(tf.matmul(flat, weights) + variable("biases", [48], 0.01))
        tf.add_to_collection("losses", 0.001 * tf.nn.l2_loss(weights))
    with tf.variable_scope("softmax"):
        return tf.nn.xw_plus_b(
            local, variable("weights", [48, 10], 0.1), variable("biases", [10], 0.01)
        )


def tower_loss(files, scope):
    images, labels = distorted_inputs(files)
    logits = inference(images)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    decay = tf.get_collection("losses", scope)
    return tf.reduce_mean(entropy) + tf.add_n(decay)


def average(tower_gradients):
    out = []
    for of_one in zip(*tower_gradients):
        mean = tf.reduce_mean(tf.stack([g for g, _ in of_one]), 0)
        out.append((mean, of_one[0][1]))
    return out


def main(_):
    workers = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": workers})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps" or FLAGS.task_index > 0:
        server.join()

    train_dir = FLAGS.train_dir or tempfile.mkdtemp()
    data_dir = FLAGS.data_dir
    if not data_dir:
        data_dir = tempfile.mkdtemp()
        draw_images(data_dir)
    files = sorted(glob.glob(os.path.join(data_dir, "data_batch_*.bin")))
    with tf.device("/job:ps/task:0/cpu:0"):
        global_step = tf.Variable(0, name="global_step", trainable=False)
    rate = tf.train.exponential_decay(0.05, global_step, 100, 0.5, staircase=True)
    optimizer = tf.train.GradientDescentOptimizer(rate)
    gradients, losses = [], []
    for i in range(len(workers)):
        with tf.device("/job:worker/task:%d" % i), tf.name_scope("tower_%d" % i) as scope:
            with tf.variable_scope(tf.get_variable_scope(), reuse=i > 0):
                losses.append(tower_loss(files, scope))
            gradients.append(optimizer.compute_gradients(losses[i]))
    loss = tf.add_n(losses) / len(losses)
    apply_op = optimizer.apply_gradients(average(gradients), global_step=global_step)
    averages = tf.train.ExponentialMovingAverage(0.99, global_step)
    train_op = tf.group(apply_op, averages.apply(tf.trainable_variables()))
    tf.summary.scalar("loss", loss)
    for variable_ in tf.trainable_variables():
        tf.summary.histogram(variable_.op.name, variable_)
    summary_op = tf.summary.merge_all()
    saver = tf.train.Saver()

    config = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(server.target, config=config) as sess:
        sess.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        writer = tf.summary.FileWriter(train_dir, sess.graph)
        for step in range(FLAGS.max_steps):
            _, value = sess.run([train_op, loss])
            assert not np.isnan(value), "Model diverged with loss = NaN"
            if step % 10 == 0:
                print("step %d, loss = %.3f" % (step, value))
            if step % 50 == 0:
                writer.add_summary(sess.run(summary_op), step)
        path = saver.save(sess, os.path.join(train_dir, "model.ckpt"), global_step)
        print("saved %s, loss = %.3f" % (path, value))
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=10)
        writer.close()


if __name__ == "__main__":
    tf.app.run()
