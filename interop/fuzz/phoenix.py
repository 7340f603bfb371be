"""TensorFlow's server, started again whenever it ends: python -m interop.fuzz.phoenix ADDRESS

TensorFlow is imported once, and each server is a child of a process that has it: it is there in a moment. A line is written
for every child that ended."""
import os
import signal
import sys

import tensorflow as tf


def main():
    address = sys.argv[1]
    while True:
        child = os.fork()
        if child == 0:
            tf.distribute.Server({"worker": [address]}, job_name="worker", task_index=0, protocol="grpc").join()
        signal.signal(signal.SIGTERM, lambda *_: (os.kill(child, signal.SIGKILL), os._exit(0)))
        os.waitpid(child, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main()
