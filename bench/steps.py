"""Helpers for the timing of single steps."""

import time


def plain(tf):
    """Returns a config without graph rewriting, so that the measured nodes are those built."""
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def best(step, n):
    """Returns the shortest of n runs, because disturbances only make a run longer."""
    times = []
    for _ in range(n):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)
