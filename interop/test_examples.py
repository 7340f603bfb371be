"""The programs of examples/python, in separate processes as users start them."""

import os
import re
import subprocess
import sys
import tempfile

from interop import cluster
from interop.clustertest import ClusterTest

EXAMPLES = cluster.ROOT / "examples" / "python"


def start(program, *flags):
    """Starts a program. ExampleTest.finish waits for it and returns its output."""
    return subprocess.Popen(
        [sys.executable, program, *flags],
        cwd=EXAMPLES,
        env=dict(os.environ, **cluster.QUIET),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class ExampleTest(ClusterTest):
    cpu_devices = 2

    def finish(self, process):
        out, _ = process.communicate(timeout=500)
        self.assertEqual(process.returncode, 0, out[-2000:])
        return out

    def run_example(self, program, *flags):
        return self.finish(start(program, "--target=" + self.cluster.target(), *flags))

    def start_workers(self, program, *flags):
        hosts = [f"--{job}_hosts=" + ",".join(self.cluster.spec[job]) for job in ("ps", "worker")]
        for i in range(2):
            yield start(
                program,
                *hosts,
                f"--task_index={i}",
                "--target=" + self.cluster.target("worker", i),
                *flags,
            )

    def accuracy(self, out):
        return float(re.findall(r"(?:test|training) accuracy : ([0-9.]+)", out)[-1])


class Tutorial(ExampleTest):
    """The Python twin of the tutorial prints what the Go programs print."""

    jobs = {"worker": 1}

    def test_figures(self):
        folder = cluster.ROOT / "examples" / "tutorial"
        tests = (folder / "tutorial_test.go").read_text()
        want = [
            line.removeprefix("// Output:").strip()
            for block in re.findall(r"\t(// Output:.*(?:\n\t//.*)*)", tests)
            for line in re.sub(r"\n\t// ?", "\n", block).splitlines()
        ]
        out = self.finish(start(folder / "tutorial.py", self.cluster.target()))
        got = [line.replace(",", "") for line in out.splitlines()]
        want = [line.capitalize() if line == "true" else line for line in want if line]
        self.assertEqual([line for line in got if line in want], want, out[-2000:])


class Examples(ExampleTest):
    def test_hello(self):
        self.assertIn("Hello, distributed TensorFlow!", self.run_example("hello.py"))

    def test_a_plus_b(self):
        self.assertEqual(self.run_example("a_plus_b.py").split()[-1], "2")
        self.assertEqual(self.run_example("a_plus_b.py", "--nosoft").split()[-1], "2")

    def test_in_graph(self):
        for mode, steps in ("async", 400), ("sync", 200):
            out = self.run_example("in_graph.py", "--mode=" + mode)
            self.assertIn(f"step : {steps} ", out)
            self.assertGreater(self.accuracy(out), 0.85, out)

    def test_between_graph(self):
        for out in map(
            self.finish, list(self.start_workers("between_graph.py", "--train_steps=3000"))
        ):
            self.assertRegex(out, r"job : worker/\d step : \d+ ,training accuracy : ")
            self.assertGreater(self.accuracy(out), 0.95, out)


class HookExamples(ExampleTest):
    """Uses queues, accumulators, checkpoints and SavedModels."""

    def test_sync_replicas(self):
        with tempfile.TemporaryDirectory() as out:
            chief, other = self.start_workers(
                "sync_replicas.py", "--last_step=100", "--save_steps=50", "--model_dir=" + out
            )
            text = self.finish(chief)
            self.assertGreater(self.accuracy(text), 0.9, text)
            self.finish(other)
            self.assertLessEqual({"ckpt", "saved_at_end", "saved_later"}, set(os.listdir(out)))
