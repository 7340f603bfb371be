"""Runs TensorFlow's own server for one task of a cluster.

python -m interop.tfserver CLUSTER_JSON JOB TASK CPU_DEVICES
"""

import json
import sys

import tensorflow as tf


def main():
    cluster, job, task, cpu_devices = (
        json.loads(sys.argv[1]),
        sys.argv[2],
        int(sys.argv[3]),
        int(sys.argv[4]),
    )
    config = tf.compat.v1.ConfigProto(device_count={"CPU": cpu_devices})
    if "worker" in cluster:
        config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    tf.distribute.Server(
        cluster, job_name=job, task_index=task, protocol="grpc", config=config
    ).join()


if __name__ == "__main__":
    main()
