"""The network of the between-graph programs: 784 inputs, one hidden layer, 10 classes."""
import math

import tensorflow.compat.v1 as tf


class MLP:
    def __init__(self, hidden_units):
        self.x = tf.placeholder(tf.float32, [None, 784], name="x")
        self.y = tf.placeholder(tf.float32, [None, 10], name="y")
        hid_w = tf.Variable(tf.truncated_normal([784, hidden_units], stddev=1.0 / 28), name="hid_w")
        hid_b = tf.Variable(tf.zeros([hidden_units]), name="hid_b")
        sm_w = tf.Variable(tf.truncated_normal([hidden_units, 10], stddev=1.0 / math.sqrt(hidden_units)), name="sm_w")
        sm_b = tf.Variable(tf.zeros([10]), name="sm_b")
        hidden = tf.nn.relu(tf.nn.xw_plus_b(self.x, hid_w, hid_b))
        logits = tf.nn.xw_plus_b(hidden, sm_w, sm_b)
        self.probabilities = tf.nn.softmax(logits, name="probabilities")
        self.loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=self.y, logits=logits), name="loss")
        right = tf.equal(tf.argmax(logits, 1), tf.argmax(self.y, 1))
        self.accuracy = tf.reduce_mean(tf.cast(right, tf.float32), name="accuracy")
