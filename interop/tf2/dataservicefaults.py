"""dataservicefaults.py DISPATCHER MODE: reads a dataset while its service changes.

Prints "first" after the first elements, waits for a line, and prints all elements as JSON.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

service = tf.data.experimental.service
dataset = tf.data.Dataset.range(300)
dataset = dataset.apply(service.distribute(sys.argv[2], sys.argv[1], max_outstanding_requests=2))
elements = dataset.as_numpy_iterator()
got = [int(next(elements)) for _ in range(5)]
print("first", flush=True)
sys.stdin.readline()
got += [int(x) for x in elements]
print(json.dumps(got), flush=True)
os._exit(0)
