"""Lets a real Prometheus read the metrics of a cluster that trains, and checks the files in deploy.

python -m interop.prometheus bin/weft bin/betweengraph

The programs prometheus and promtool (Debian package prometheus) must be on the PATH or in the folder
that PROMETHEUS names.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).parent.parent
DEPLOY = ROOT / "deploy" / "prometheus"
DASHBOARD = ROOT / "deploy" / "grafana" / "weft.json"
TASKS = [("ps", 0), ("worker", 0), ("worker", 1)]

# Expressions of the dashboard that have no value in this cluster: it has no queues, and nothing is refused.
WITHOUT_DATA = {"weft_grpc_server_refused_total", "== 0", 'code!="OK"', "weft_queue_elements"}


def program(name):
    path = shutil.which(name, path=os.environ.get("PROMETHEUS", os.environ["PATH"]))
    if path is None:
        sys.exit("%s is not there: install the Debian package prometheus, or set PROMETHEUS to its folder" % name)
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.read().decode()


def until(what, check, seconds=60):
    """Returns the first value of check that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            value = check()
        except OSError:
            value = None
        if value:
            return value
        time.sleep(0.2)
    raise SystemExit("FAILED: %s did not happen within %d s" % (what, seconds))


def main(weft, training):
    promtool, prometheus = program("promtool"), program("prometheus")
    for command in (["check", "config", "prometheus.yaml"], ["test", "rules", "alerts_test.yaml"]):
        subprocess.run([promtool, *command], cwd=DEPLOY, check=True, stdout=subprocess.DEVNULL)
    print("promtool accepts the configuration and the alert rules, whose tests pass")

    with tempfile.TemporaryDirectory() as folder:
        run(pathlib.Path(folder), weft, training, promtool, prometheus)


def run(folder, weft, training, promtool, prometheus):
    ports, pages = [free_port() for _ in TASKS], [free_port() for _ in TASKS]
    spec = "ps|127.0.0.1:%d,worker|127.0.0.1:%d;127.0.0.1:%d" % tuple(ports)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = []
    try:
        for (job, index), page in zip(TASKS, pages):
            processes.append(subprocess.Popen(
                [weft, "server", "--cluster-spec=" + spec, "--job-name=" + job, "--task-index=%d" % index, "--http-address=127.0.0.1:%d" % page], **quiet))
        for page in pages:
            until("the start of a task", lambda page=page: get("http://127.0.0.1:%d/livez" % page))
        for index in range(2):
            processes.append(subprocess.Popen(
                [training, "--ps-hosts=127.0.0.1:%d" % ports[0], "--worker-hosts=127.0.0.1:%d,127.0.0.1:%d" % tuple(ports[1:]),
                 "--task-index=%d" % index, "--target=grpc://127.0.0.1:%d" % ports[1 + index], "--train-steps=1000000",
                 "--log-dir=" + str(folder / "log")], **quiet))

        config = (DEPLOY / "prometheus.yaml").read_text()
        config = re.sub(r"targets: \[.*\]", "targets: " + json.dumps(["127.0.0.1:%d" % p for p in pages]), config)
        (folder / "prometheus.yaml").write_text(config.replace("interval: 5s", "interval: 1s"))
        shutil.copy(DEPLOY / "alerts.yaml", folder)
        at = "127.0.0.1:%d" % free_port()
        processes.append(subprocess.Popen(
            [prometheus, "--config.file=" + str(folder / "prometheus.yaml"), "--storage.tsdb.path=" + str(folder / "data"), "--web.listen-address=" + at],
            **quiet))

        def query(expression):
            answer = json.loads(get("http://%s/api/v1/query?query=%s" % (at, urllib.parse.quote(expression))))
            assert answer["status"] == "success", (expression, answer)
            return answer["data"]["result"]

        until("three tasks being up", lambda: len(query('up{job="weft"} == 1')) == 3)
        until("steps", lambda: query("sum(rate(weft_steps_total[10s])) > 1"))
        until("a checkpoint", lambda: query('sum(weft_checkpoint_operations_total{operation=~"Save.*",code="OK"}) > 0'))
        print("Prometheus reads the metrics of three tasks that train")

        for page in pages:
            text = get("http://127.0.0.1:%d/metrics" % page)
            subprocess.run([promtool, "check", "metrics"], input=text, text=True, check=True)
        print("promtool has nothing to say about the metrics")

        count = 0
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            for target in panel["targets"]:
                expression = target["expr"].replace("$__rate_interval", "15s").replace('"$instance"', '".*"')
                if any(text in expression for text in WITHOUT_DATA):
                    query(expression)
                else:
                    until("data for " + expression, lambda e=expression: query(e), 30)
                count += 1
        print("all %d expressions of the dashboard have data, or are valid" % count)

        processes[0].kill()
        until("the alert about a dead task", lambda: query('ALERTS{alertname="WeftTaskDown"}'))
        names = {r["name"] for g in json.loads(get("http://%s/api/v1/rules" % at))["data"]["groups"] for r in g["rules"]}
        print("%d alert rules are loaded, and the one about a dead task has noticed it" % len(names))
    finally:
        for p in processes:
            p.kill()
        for p in processes:
            p.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
