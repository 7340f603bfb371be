"""Graphs of client/graphs_*.py on clusters of three tasks, each served by Weft or an old release.

The letters of a cluster name the servers of ps 0, worker 0 (the master) and worker 1: W is Weft, T
is the old TensorFlow. The client is always the old TensorFlow.
"""

import ast
import functools
import subprocess

from interop.old.processes import CLIENT, Failed, Processes

CLUSTERS = ["TTT", "WWW", "WTT", "TTW", "TWT", "WTW", "WWT"]
TASKS = [("ps", 0), ("worker", 0), ("worker", 1)]
GRAPH_SECONDS = 25  # for one graph
TOTAL_SECONDS = 900

# Graphs that a master of a release does not end, or not always, with tasks of its own either.
FAULTS = {"1.0": ["runners_feed_a_shuffled_batch", "step_in_parts", "step_that_waits_too_long"]}


@functools.cache
def names():
    """Returns the names of all graphs, which are the functions with a decorator."""
    found = []
    for path in sorted(CLIENT.glob("graphs_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                found.append(node.name)
    return found


def run(release, python, cluster, wanted, folder, server):
    """Runs graphs on one cluster. Yields (name, ok, skip or FAIL, why)."""
    faults = FAULTS.get(release, []) if cluster[1] == "T" else []
    wanted = [n for n in names() if not wanted or any(w in n for w in wanted)]
    yield from ((n, "skip", "a fault of the master") for n in wanted if n in faults)
    wanted = [n for n in wanted if n not in faults]
    if not wanted:
        return
    with Processes(folder, python, {"ps": 1, "worker": 2}, server) as p:
        for kind, (job, task) in zip(cluster, TASKS):
            p.start_server(job, task, weft=kind == "W")
        p.wait_for_servers()
        targets = ["grpc://" + host for host in p.spec["worker"]]
        command = [python, str(CLIENT / "graphs.py"), *targets, str(GRAPH_SECONDS), *wanted]
        p.start("client", command)
        try:
            p.running["client"].wait(TOTAL_SECONDS)
        except subprocess.TimeoutExpired:
            yield "client", "FAIL", f"not done in {TOTAL_SECONDS} s"
        count = 0
        for line in p.log("client").splitlines():
            word, _, rest = line.partition(" ")
            if word in ("ok", "skip", "FAIL"):
                name, _, why = rest.partition(" ")
                count += 1
                yield name, word, why
        if not count:
            yield "client", "FAIL", p.last_words("client")
        try:
            p.check_servers()
        except Failed as e:
            yield "servers", "FAIL", str(e)
