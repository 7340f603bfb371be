"""What it costs to be observed: steps of a cluster with metrics, or traces, beside one without.

The clusters run at the same time and take turns of some milliseconds, so that all meet the same load.
Only one is busy at a time. The figures are ratios of Weft to Weft, and rows of Weft alone. "Nothing
else" is a second cluster that is not observed: it shows the error of the others.
"""

import contextlib
import http.server
import statistics
import threading

from bench.endtoend import latency
from bench.rows import Group, Row
from interop import cluster

TURNS = 300
KINDS = {"callable": 200, "one hop": 100, "training": 20}  # calls in one turn
NAMES = {
    "callable": "a callable of a constant",
    "one hop": "one hop to another task",
    "training": "a training step on a parameter server",
}


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes all spans."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def collector():
    """Runs a collector of traces, and returns its URL."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "http://127.0.0.1:%d" % server.server_port
        server.shutdown()


def measure(side):
    if side.server == cluster.TENSORFLOW:
        return {}
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(collector())

        def start(server, **variables):
            return stack.enter_context(cluster.Cluster({"ps": 1, "worker": 2}, server, variables=variables))

        sampled = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}
        clusters = {
            PLAIN: start(side.server),
            AGAIN: start(side.server),
            METRICS: start(side.server + " --http-address=127.0.0.1:0"),
            SAMPLED: start(side.server, OTEL_EXPORTER_OTLP_ENDPOINT=url, **sampled),
            TRACES: start(side.server, OTEL_EXPORTER_OTLP_ENDPOINT=url),
        }
        targets = {name: c.target("worker", 0) for name, c in clusters.items()}
        return relative_times(side, targets)


def relative_times(side, targets, *options):
    """Returns the time of each kind of step on each target but the first, relative to the first.

    The targets are named for row_name, and take turns. options are those of the Go client.
    """
    first, *others = targets
    out = {}
    for kind, calls in KINDS.items():
        turns = str(side.count(TURNS))
        (found,) = latency.go_steps(
            ",".join(targets.values()), {1: calls}, "-steps", kind, "-turns", turns, *options
        )
        for i, name in enumerate(others, 1):
            ratios = [turn[i] / turn[0] for turn in found["turns"]]
            out[row_name(name, kind, first)] = statistics.median(ratios)
    return out


def row_name(name, kind, first):
    return f"{NAMES[kind]}, {name}, relative to {first}"


PLAIN, AGAIN, METRICS = "neither", "with nothing else", "with metrics"
SAMPLED, TRACES = "with a hundredth of all traces", "with all traces"
BOUNDS = {AGAIN: None, METRICS: 1.02, SAMPLED: 1.05, TRACES: None}

GROUPS = [
    Group(
        "observed",
        [Row(row_name(name, kind, PLAIN), "", bound=bound) for name, bound in BOUNDS.items() for kind in KINDS],
        measure,
        rounds=3,
        limit=240,
    )
]
