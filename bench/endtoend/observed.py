"""What it costs to be observed: steps of a cluster with metrics, or traces, beside one without.

The clusters run at the same time and take turns, so that both meet the same load. Only one is busy
at a time. The figures are ratios of Weft to Weft, and rows of Weft alone.
"""

import contextlib
import http.server
import itertools
import statistics
import threading

from bench.endtoend import latency
from bench.rows import Group, Row
from interop import cluster

TURNS = 12
CALLS = 1500  # calls of a kind of step in one turn
KINDS = {"callable": "a callable of a constant", "one hop": "one hop to another task"}


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
            METRICS: start(side.server + " --http-address=127.0.0.1:0"),
            SAMPLED: start(side.server, OTEL_EXPORTER_OTLP_ENDPOINT=url, **sampled),
            TRACES: start(side.server, OTEL_EXPORTER_OTLP_ENDPOINT=url),
        }
        times = {(name, kind): [] for name in clusters for kind in KINDS}
        for turn in range(side.count(TURNS) + 1):
            order = list(clusters)
            for name in order[turn % len(order) :] + order[: turn % len(order)]:
                steps = latency.go_steps(clusters[name].target("worker", 0), {1: side.count(CALLS)})
                if turn == 0:
                    continue  # a warm-up
                for r in steps:
                    if r["step"] in KINDS:
                        times[name, r["step"]].append(r["median"])
        out = {}
        for name, kind in itertools.product(list(clusters)[1:], KINDS):
            ratios = [a / b for a, b in zip(times[name, kind], times[PLAIN, kind], strict=True)]
            out[row_name(name, kind)] = statistics.median(ratios)
        return out


def row_name(name, kind):
    return f"{KINDS[kind]}, {name}, relative to neither"


PLAIN, METRICS = "neither", "with metrics"
SAMPLED, TRACES = "with a hundredth of all traces", "with all traces"
BOUNDS = {METRICS: 1.02, SAMPLED: 1.05, TRACES: None}

GROUPS = [
    Group(
        "observed",
        [Row(row_name(name, kind), "", bound=bound) for name, bound in BOUNDS.items() for kind in KINDS],
        measure,
        rounds=3,
        limit=240,
    )
]
