"""The time that the networks of examples/models take to train, and the same networks in Keras."""

import os
import re
import subprocess
import sys

from bench.rows import Group, Row
from interop import cluster

# The epochs of examples/models/main.go.
EPOCHS = {
    "cnn": 8, "resnet": 4, "charlstm": 10, "text": 6, "widedeep": 8, "transformer": 10,
    "collaborative": 8,
}

ABOUT = {
    "cnn": "CNN on 4000 images, 8 epochs",
    "resnet": "ResNet-20 on 1500 images, 4 epochs",
    "charlstm": "LSTM on 2000 sequences, 10 epochs",
    "text": "mean of embeddings on 4000 texts, 6 epochs",
    "widedeep": "wide and deep on 20000 rows, 8 epochs",
    "transformer": "Transformer on 6000 sequences, 10 epochs",
    "collaborative": "embeddings for 40000 ratings, 8 epochs",
}


def train(side, name):
    """Trains once, in a process of its own. The time is that of all epochs, with validation."""
    if side.server == cluster.TENSORFLOW:
        command = [sys.executable, "-m", "bench.endtoend.kerasmodels", name, str(EPOCHS[name])]
    else:
        command = [str(cluster.ROOT / "bin" / "bench-models"), name]
    done = subprocess.run(
        command, cwd=cluster.ROOT, env=dict(os.environ, **cluster.QUIET), capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-1000:])
    return {ABOUT[name]: float(re.findall(r"[0-9.]+", done.stdout)[-1])}


GROUPS = [
    Group(
        "examples " + name,
        [Row(ABOUT[name], "s", headline=True)],
        lambda side, name=name: train(side, name),
        rounds=1,
        limit=600,
    )
    for name in EPOCHS
]
