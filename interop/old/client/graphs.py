"""graphs.py WORKER0 WORKER1 SECONDS [NAME...]: runs the graphs on a cluster of three tasks.

Prints a line for each: "ok NAME", "FAIL NAME why", or "skip NAME what this TensorFlow lacks".
"""

from __future__ import print_function

import os
import sys
import threading
import traceback

import check
import graphs_control
import graphs_files
import graphs_maths
import graphs_queues
import graphs_session
import graphs_state
import tensorflow as tf

MODULES = [
    graphs_maths,
    graphs_state,
    graphs_queues,
    graphs_control,
    graphs_files,
    graphs_session,
]


def attempt(name, f, tasks):
    try:
        with tf.Graph().as_default() as g, g.container(check.box(name)):
            f(tasks)
        return "ok %s" % name
    except check.Skip as e:
        return "skip %s %s" % (name, e)
    except Exception as e:  # whatever a graph raises is its result
        at = traceback.extract_tb(sys.exc_info()[2])[-1]
        for frame in traceback.extract_tb(sys.exc_info()[2]):
            if "graphs_" in os.path.basename(frame[0]):
                at = frame
        why = "%s line %d: %s: %s" % (os.path.basename(at[0]), at[1], type(e).__name__, e)
        return "FAIL %s %s" % (name, why[:600].replace("\n", " | "))


def main():
    tasks = check.cluster(sys.argv[1], sys.argv[2])
    limit, names = float(sys.argv[3]), sys.argv[4:]
    dir(tf.contrib)  # is imported by its first use, which may take longer than a graph may
    failed = 0
    for name, f in check.GRAPHS.items():
        if names and not any(n in name for n in names):
            continue
        said = []
        t = threading.Thread(target=lambda: said.append(attempt(name, f, tasks)))
        t.daemon = True
        t.start()
        t.join(limit)
        line = said[0] if said else "FAIL %s not done in %.0f s" % (name, limit)
        failed += line.startswith("FAIL")
        print(line)
        sys.stdout.flush()
    os._exit(1 if failed else 0)  # threads of graphs that hang must not keep the process


if __name__ == "__main__":
    main()
