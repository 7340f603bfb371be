"""What benchmarks of single steps share."""
import time


def plain(tf):
    """No rewriting of the graph: what is measured are the nodes that were asked for."""
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def best(step, n):
    """The shortest of n runs: what disturbs only lengthens."""
    times = []
    for _ in range(n):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)
