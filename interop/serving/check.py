"""Asks a model server about models that TensorFlow wrote, and compares with TensorFlow's answers.

A writer leaves models/NAME/1 and cases/NAME.json in a folder. Cases are a list of requests:
    {"call": "predict", "request": {...}, "want": {...}}
where want is the JSON that TensorFlow Serving answers with.
"""

import json
import math
import pathlib
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from interop import cluster

TOLERANCE = 1e-4
START = 60  # seconds until all models are available


class Server:
    """A model server for the models of a folder, as a context manager."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.names = sorted(p.stem for p in self.folder.glob("cases/*.json"))
        self.grpc, self.http = cluster.free_ports(2)

    def __enter__(self):
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        config = self.folder / "models.config"
        config.write_text(
            "model_config_list {\n"
            + "".join(
                f'  config {{ name: "{n}" base_path: "{self.folder}/models/{n}"'
                ' model_platform: "tensorflow" }\n'
                for n in self.names
            )
            + "}\n"
        )
        command = [
            *(cluster.BINARY, "serve", f"--port={self.grpc}", f"--rest_api_port={self.http}"),
            f"--model_config_file={config}",
        ]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        end = time.monotonic() + START
        for name in self.names:
            while not self.available(name):
                if time.monotonic() > end or self.process.poll() is not None:
                    self.__exit__()
                    raise AssertionError(f"{name} is not available: {self.text()}")
                time.sleep(0.05)
        return self

    def __exit__(self, *exc):
        self.process.terminate()
        self.process.wait(20)

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def available(self, name):
        try:
            state = self.get(f"/v1/models/{name}")
        except (OSError, urllib.error.HTTPError):
            return False
        return [v["state"] for v in state["model_version_status"]] == ["AVAILABLE"]

    def get(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.http}{path}"
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=60) as answer:
            return json.load(answer)


def difference(got, want, where=""):
    """Returns where two JSON values differ, "" if they are equal up to rounding."""
    if isinstance(want, dict):
        if not isinstance(got, dict) or set(got) != set(want):
            return f"{where}: got {str(got)[:200]}, want the keys {sorted(want)}"
        pairs = [(got[k], want[k], f"{where}.{k}") for k in want]
    elif isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"{where}: got {str(got)[:200]}, want {len(want)} elements"
        pairs = [(g, w, f"{where}[{i}]") for i, (g, w) in enumerate(zip(got, want))]
    elif isinstance(want, (int, float)) and not isinstance(want, bool):
        close = isinstance(got, (int, float)) and math.isclose(
            got, want, rel_tol=TOLERANCE, abs_tol=TOLERANCE
        )
        return "" if close else f"{where}: got {got}, want {want}"
    else:
        return "" if got == want else f"{where}: got {got!r}, want {want!r}"
    return next(filter(None, (difference(*p) for p in pairs)), "")


def check(folder):
    """Yields the name of each model with a fault, "" if its answers are TensorFlow's."""
    with Server(folder) as server:
        for name in server.names:
            fault = ""
            for case in json.loads((server.folder / "cases" / f"{name}.json").read_text()):
                try:
                    got = server.get(f"/v1/models/{name}:{case['call']}", case["request"])
                    fault = fault or difference(got, case["want"])
                except urllib.error.HTTPError as e:
                    fault = fault or f"{e.code}: {e.read().decode()}"
            yield name, fault
