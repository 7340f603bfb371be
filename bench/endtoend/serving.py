"""Requests per second of model servers: weft serve, and TensorFlow in a Python gRPC server."""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from bench.rows import Group, Row
from interop import cluster

CALLS = {1: 1500, 8: 300, 64: 60}  # calls of each client, by number of clients
MODELS = {"mlp": "an MLP of 784, 128, 10", "cnn": "a CNN of two layers", "text": "a text model"}
AIMS = {"mlp": 3, "cnn": 1.3, "text": None}
CLIENT = pathlib.Path(cluster.BINARY).with_name("bench-predictclient")
BATCHING = "max_batch_size { value: 64 } batch_timeout_micros { value: 500 }"


def folder():
    """Returns the folder of the models, and writes them when it is first called."""
    path = pathlib.Path(tempfile.gettempdir()) / "weft-bench-serving"
    if not (path / "text.request").exists():
        subprocess.run([sys.executable, "-m", "bench.servingmodels", path], check=True)
    return path


@contextlib.contextmanager
def serving(command, ready):
    """Runs a server until the end of the context; a line with ready shows that it serves."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            for line in server.stdout:
                if ready in line:
                    yield
                    return
            raise RuntimeError("the server did not start")
        finally:
            server.terminate()


@contextlib.contextmanager
def weft(side, name, *flags):
    """Runs weft serve with a model, and yields its port when the model is loaded."""
    port, http = cluster.free_ports(2)
    binary = side.server.split()[0].strip("'")
    command = [binary, "serve", str(folder() / name), f"--port={port}", f"--rest_api_port={http}"]
    with serving([*command, *flags], "serves HTTP"):
        deadline = time.monotonic() + 30
        while not ready(http):
            if time.monotonic() > deadline:
                raise RuntimeError("the model was not loaded")
            time.sleep(0.05)
        yield port


def ready(http):
    """Reports whether the server has loaded its model."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/v2/health/ready", timeout=5):
            return True
    except urllib.error.URLError:
        return False


@contextlib.contextmanager
def tensorflow(name):
    """Runs the server in Python with a model, and yields its port."""
    port = cluster.free_ports(1)[0]
    model = str(folder() / name / "1")
    with serving([sys.executable, "-m", "bench.servingserver", model, str(port)], "ready"):
        yield port


def requests(port, name, calls):
    """Returns the output of the client."""
    loads = ",".join(f"{n}:{k}" for n, k in calls.items())
    done = subprocess.run(
        [CLIENT, "-target", f"127.0.0.1:{port}", "-request", folder() / f"{name}.request"]
        + ["-calls", loads],
        capture_output=True,
        text=True,
        timeout=100,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def names(what, clients):
    of = "one client" if clients == 1 else f"{clients} clients"
    return f"{what}, {of}", f"{what}, {of}: 99th percentile"


def entries(what, results):
    out = {}
    for r in results:
        rate, tail = names(what, r["clients"])
        out |= {rate: r["rate"], tail: r["p99"]}
    return out


def measure(name):
    def run(side):
        server = tensorflow(name) if side.server == cluster.TENSORFLOW else weft(side, name)
        with server as port:
            calls = {n: side.count(k) for n, k in CALLS.items()}
            return entries(f"serving {MODELS[name]}", requests(port, name, calls))

    return run


def batching(side):
    """Measures Weft with batching. The server in Python has none."""
    if side.server == cluster.TENSORFLOW:
        return {}
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(BATCHING)
        file.flush()
        flags = "--enable_batching", f"--batching_parameters_file={file.name}"
        with weft(side, "cnn", *flags) as port:
            calls = {n: side.count(k) for n, k in CALLS.items()}
            return entries("serving the CNN with batching", requests(port, "cnn", calls))


def rows(what, aim):
    out = []
    for n in CALLS:
        rate, tail = names(what, n)
        out.append(Row(rate, "requests/s", "higher", aim, headline=n == 8))
        out.append(Row(tail, "µs", aim=aim))
    return out


GROUPS = [
    Group(f"serving {name}", rows(f"serving {what}", AIMS[name]), measure(name), rounds=3, limit=180)
    for name, what in MODELS.items()
] + [
    Group(
        "serving with batching", rows("serving the CNN with batching", None), batching, 3, limit=180
    )
]
