"""Parameters that exist: without them, most requests would end at an unknown session or model."""

import json
import os
import urllib.request

import schemathesis

URL = os.environ["API"]
GRAPH = {"node": [
    {"name": "x", "op": "Placeholder", "attr": {"dtype": {"type": "DT_FLOAT"}, "shape": {"shape": {"unknown_rank": True}}}},
    {"name": "y", "op": "Square", "input": ["x"], "attr": {"T": {"type": "DT_FLOAT"}}},
]}


def post(path, value):
    """Returns the answer to a request."""
    request = urllib.request.Request(URL + path, json.dumps(value).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def session():
    """Returns a session with a callable, which has the handle 0."""
    handle = post("/v1/sessions", {"graph_def": GRAPH})["session"]
    post(f"/v1/sessions/{handle}/callables", {"options": {"feed": ["x:0"], "fetch": ["y:0"]}})
    return handle


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Uses a session or model that exists in two of three requests."""
    if not path_parameters or hash(str(path_parameters)) % 3 == 0:
        return path_parameters
    known = {"model": "model", "version": "200", "handle": 0}
    out = {name: known.get(name, value) for name, value in path_parameters.items()}
    if "session" in out:
        out["session"] = session()
    return out
