"""A server in the process of the program, and a session on it.

python -m weft_shim hello.py
"""

from __future__ import print_function

import tensorflow as tf

server = tf.train.Server.create_local_server()
c = tf.constant("Hello, distributed TensorFlow!")
with tf.Session(server.target) as sess:
    print(sess.run(c).decode())
