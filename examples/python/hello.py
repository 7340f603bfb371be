"""A graph with one constant on a server.

  weft server --cluster-spec='local|localhost:2222' --job-name=local --task-index=0
  python hello.py --target=grpc://localhost:2222
"""
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.app.flags.DEFINE_string("target", "grpc://localhost:2222", "any task of the cluster")
FLAGS = tf.app.flags.FLAGS


def main(_):
    c = tf.constant("Hello, distributed TensorFlow!")
    with tf.Session(FLAGS.target) as sess:
        print(sess.run(c).decode())


if __name__ == "__main__":
    tf.app.run()
