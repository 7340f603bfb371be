"""server.py CLUSTER JOB TASK CPUS: runs the server of the TensorFlow at hand for one task."""

import json
import sys

import tensorflow as tf


def main():
    config = tf.ConfigProto(device_count={"CPU": int(sys.argv[4])})
    tf.train.Server(
        json.loads(sys.argv[1]), job_name=sys.argv[2], task_index=int(sys.argv[3]), config=config
    ).join()


if __name__ == "__main__":
    main()
