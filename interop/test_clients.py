"""Clients of other gRPC libraries, and of HTTP/2, with a Weft server."""

import os
import shutil
import subprocess
import unittest

import grpc

from interop.clustertest import ClusterTest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NODE_PATH = os.path.join(ROOT, ".tmp", "node", "node_modules")  # make clients
SERVING = b"\x08\x01"  # a HealthCheckResponse
CHECK = "/grpc.health.v1.Health/Check"
CLOSE = "/tensorflow.MasterService/CloseSession"


class Clients(ClusterTest):
    jobs = {"worker": 1}

    def address(self):
        return self.cluster.target("worker", 0).removeprefix("grpc://")


class Core(Clients):
    """The client of gRPC's C library, in Python."""

    def setUp(self):
        super().setUp()
        self.channel = grpc.insecure_channel(self.address())
        self.addCleanup(self.channel.close)

    def call(self, path, request=b"", **kwargs):
        return self.channel.unary_unary(path)(request, **kwargs)

    def assert_fails(self, code, text, *args, **kwargs):
        with self.assertRaises(grpc.RpcError) as raised:
            self.call(*args, timeout=kwargs.pop("timeout", 60), **kwargs)
        self.assertEqual(raised.exception.code(), code, raised.exception.details())
        self.assertIn(text, raised.exception.details())

    def test_empty(self):
        self.assertEqual(self.call(CHECK), SERVING)

    def test_large(self):
        unknown = b"\x7a\xff\xff\x3f" + b"x" * 0xFFFFF  # a field that is skipped
        self.assertEqual(self.call(CHECK, unknown), SERVING)

    def test_compression(self):
        for compression in grpc.Compression.Gzip, grpc.Compression.Deflate:
            self.assertEqual(self.call(CHECK, b"\x7a\x7f" + b"x" * 127, compression=compression), SERVING)

    def test_metadata(self):
        self.assertEqual(self.call(CHECK, metadata=[("x", "y"), ("x-bin", b"\x00\n\xff")]), SERVING)

    def test_status(self):
        self.assert_fails(grpc.StatusCode.ABORTED, "Session x is not found.", CLOSE, b"\x0a\x01x")

    def test_unimplemented(self):
        self.assert_fails(grpc.StatusCode.UNIMPLEMENTED, "", "/tensorflow.MasterService/Other")
        self.assert_fails(grpc.StatusCode.UNIMPLEMENTED, "", "/other.Service/Method")

    def test_bomb(self):
        zeros = bytes(64 << 20)
        self.assert_fails(
            grpc.StatusCode.RESOURCE_EXHAUSTED, "--max-decompression", CHECK, zeros, compression=grpc.Compression.Gzip
        )

    def test_cancel(self):
        future = self.channel.unary_unary("/grpc.health.v1.Health/Watch").future(b"", timeout=0.001)
        with self.assertRaises(grpc.RpcError) as raised:
            future.result()
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertEqual(self.call(CHECK), SERVING)


class Curl(Clients):
    def test_not_grpc(self):
        curl = shutil.which("curl")
        if not curl:
            self.skipTest("curl is not installed")
        done = subprocess.run(
            [curl, "--http2-prior-knowledge", "-s", "-w", "%{http_code}", "http://" + self.address()],
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertIn("This server speaks gRPC", done.stdout)
        self.assertTrue(done.stdout.endswith("405"), done.stdout)


class Node(Clients):
    def test_calls(self):
        node = shutil.which("node")
        if not node or not os.path.isdir(NODE_PATH):
            self.skipTest("make clients installs the library for Node")
        done = subprocess.run(
            [node, os.path.join(ROOT, "interop", "client.js"), self.address()],
            env=dict(os.environ, NODE_PATH=NODE_PATH),
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "check 0801")
        self.assertIn("error 12", lines[1])
        self.assertIn("Session x is not found", lines[2])
        self.assertIn("error 13: Unable to parse request", lines[3])
        self.assertIn("error 4", lines[4])


if __name__ == "__main__":
    unittest.main()
