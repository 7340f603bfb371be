"""Tests of the packages of weft_shim. They run on Python 2.7 and later.

WEFT_BINARY=bin/weft python python/tests/test_wheel.py
"""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
BACKEND = os.path.join(HERE, "..", "backend.py")
BINARY = os.path.abspath(os.environ.get("WEFT_BINARY") or os.path.join(HERE, "../../bin/weft"))


class WheelTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def build(self, *args):
        env = dict(os.environ, WEFT_SHIM_VERSION="1.2.3")
        command = [sys.executable, BACKEND, self.dir] + list(args)
        return subprocess.check_output(command, env=env).decode().strip()

    def check(self, path):
        """Checks the sums of a package, and returns its entries by name."""
        info = "weft_shim-1.2.3.dist-info/"
        with zipfile.ZipFile(path) as z:
            entries = {e.filename: e for e in z.infolist()}
            rows = [r.split(",") for r in z.read(info + "RECORD").decode().splitlines()]
            self.assertEqual(sorted(r[0] for r in rows), sorted(entries))
            for name, want, size in rows[:-1]:
                data = z.read(name)
                got = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                self.assertEqual((want, int(size)), ("sha256=" + got, len(data)))
            self.assertIn("Version: 1.2.3\n", z.read(info + "METADATA").decode("utf-8"))
        return entries

    def test_pure(self):
        path = self.build()
        self.assertEqual(os.path.basename(path), "weft_shim-1.2.3-py2.py3-none-any.whl")
        self.assertNotIn("weft_shim/bin/weft", self.check(path))
        with open(path, "rb") as f:
            before = f.read()
        self.build()
        with open(path, "rb") as f:
            self.assertEqual(f.read(), before)

    def test_with_program(self):
        path = self.build("--binary", BINARY)
        self.assertIn("-py2.py3-none-manylinux", path)
        entry = self.check(path)["weft_shim/bin/weft"]
        self.assertEqual(entry.external_attr >> 16, 0o100755)

        # pip sets the modes of files, and the module zipfile does not
        with zipfile.ZipFile(path) as z:
            z.extractall(self.dir)
        os.chmod(os.path.join(self.dir, "weft_shim", "bin", "weft"), 0o755)
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([self.dir, os.path.join(HERE, "fake")]))
        env.pop("WEFT_BINARY", None)
        program = "import tensorflow as tf; print(tf.train.Server.create_local_server().target)"
        command = [sys.executable, "-m", "weft_shim", "-c", program]
        self.assertIn("grpc://localhost:", subprocess.check_output(command, env=env).decode())

    def test_other_program(self):
        with self.assertRaises(subprocess.CalledProcessError):
            self.build("--binary", os.path.abspath(__file__))


if __name__ == "__main__":
    unittest.main()
