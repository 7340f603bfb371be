"""Lets a real OpenTelemetry collector take the traces of a cluster, whose client is TensorFlow.

python -m interop.opentelemetry bin/weft COLLECTOR
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from interop.prometheus import free_port, until

CONFIG = """
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:%d
exporters:
  debug:
    verbosity: detailed
    sampling_initial: 1000000
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [debug]
"""

PROGRAM = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
with tf.device("/job:ps"):
    v = tf.Variable(1.0)
with tf.device("/job:worker"):
    u = v.assign_add(v * 2)
with tf.Session(sys.argv[1]) as s:
    s.run(tf.global_variables_initializer())
    for _ in range(20):
        s.run(u.op)
"""

Span = collections.namedtuple("Span", "trace parent id name kind task")


def read(log):
    """Returns the spans that the collector has printed."""
    spans = []
    for resource in log.read_text().split("ResourceSpans #")[1:]:
        task = re.search(r"service\.instance\.id: Str\((.*)\)", resource).group(1)
        for text in resource.split("\nSpan #")[1:]:
            field = dict(re.findall(r"^    (\w[\w ]*?) *: ?(.*)$", text, re.M))
            spans.append(Span(field["Trace ID"], field["Parent ID"], field["ID"], field["Name"], field["Kind"], task))
    return spans


def check(spans):
    """Fails if a step is not one trace over both tasks."""
    by_id = {s.id: s for s in spans}
    for s in spans:
        assert not s.parent or s.parent in by_id, "%r has an unknown parent" % (s,)
        assert not s.parent or by_id[s.parent].trace == s.trace, "%r is in another trace than its parent" % (s,)
    ran = [s for s in spans if s.name == "tensorflow.WorkerService/RunGraph" and s.kind == "Server"]
    assert len(ran) >= 20, "%d calls of RunGraph" % len(ran)
    for s in ran:
        path = []
        at = s
        while at:
            path.append((at.name.split("/")[-1], at.kind, at.task.split(":")[1].split("/")[0]))
            at = by_id.get(at.parent)
        want = [("RunGraph", "Server", "ps"), ("RunGraph", "Client", "worker"), ("step", "Internal", "worker"), ("RunStep", "Server", "worker")]
        assert path == want, path
    received = [s for s in spans if s.name == "tensorflow.WorkerService/RecvTensor" and s.kind == "Server"]
    assert received, "no tensor was received"


def main(weft, collector):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        port, tasks = free_port(), [free_port(), free_port()]
        (folder / "config.yaml").write_text(CONFIG % port)
        (folder / "program.py").write_text(PROGRAM)
        environment = dict(os.environ, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:%d" % port, OTEL_BSP_SCHEDULE_DELAY="200")
        processes = []
        try:
            with open(folder / "log", "w") as log:
                processes.append(subprocess.Popen([collector, "--config", folder / "config.yaml"], stdout=log, stderr=log))
            until("the start of the collector", lambda: "Everything is ready" in (folder / "log").read_text())
            spec = "ps|127.0.0.1:%d,worker|127.0.0.1:%d" % tuple(tasks)
            for job, compression in (("ps", "none"), ("worker", "gzip")):
                processes.append(subprocess.Popen(
                    [weft, "server", "--cluster-spec=" + spec, "--job-name=" + job], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    env=dict(environment, OTEL_EXPORTER_OTLP_COMPRESSION=compression)))
            subprocess.run([sys.executable, folder / "program.py", "grpc://127.0.0.1:%d" % tasks[1]], check=True,
                           stderr=subprocess.DEVNULL, timeout=120)
            for p in processes[1:]:
                p.terminate()
            for p in processes[1:]:
                assert p.wait(timeout=30) in (0, 128 + 15), "a task ended with %d" % p.returncode
            until("the end of the traces", lambda: sum(s.name == "step" for s in read(folder / "log")) >= 21)
            spans = read(folder / "log")
            check(spans)
            print("the collector has %d spans of %d traces; each step is one trace over both tasks" % (len(spans), len({s.trace for s in spans})))
        finally:
            for p in processes:
                p.kill()
                p.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
