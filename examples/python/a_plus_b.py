"""Two variables on two devices of a parameter server, added on a device that the placer chooses.

  weft server --cluster-spec='ps|localhost:2222,worker|localhost:2223' --job-name=ps --task-index=0 --cpu-devices=2
  weft server --cluster-spec='ps|localhost:2222,worker|localhost:2223' --job-name=worker --task-index=0
  python a_plus_b.py --target=grpc://localhost:2223

Without --cpu-devices=2 the parameter server has no cpu:1. Soft placement then places b on cpu:0. With --nosoft the program
fails with "Cannot assign a device for operation". The servers log the device of each operation.
"""
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.app.flags.DEFINE_string("target", "grpc://localhost:2223", "any task of the cluster")
tf.app.flags.DEFINE_boolean("soft", True, "use another device if the requested one does not exist")
FLAGS = tf.app.flags.FLAGS


def main(_):
    with tf.device("/job:ps/task:0/cpu:0"):
        a = tf.Variable(1, name="a")
    with tf.device("/job:ps/task:0/cpu:1"):
        b = tf.Variable(1, name="b")
    config = tf.ConfigProto(allow_soft_placement=FLAGS.soft, log_device_placement=True)
    with tf.Session(FLAGS.target, config=config) as sess:
        sess.run(tf.global_variables_initializer())
        print(sess.run(a + b))


if __name__ == "__main__":
    tf.app.run()
