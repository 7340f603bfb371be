"""Tests of weft_shim that need no TensorFlow. They run on Python 2.7 and later.

WEFT_BINARY=bin/weft python python/tests/test_shim.py
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
FAKE = os.path.join(HERE, "fake")
BINARY = os.path.abspath(
    os.environ.get("WEFT_BINARY") or os.path.join(PACKAGE, "..", "bin", "weft")
)
LIMIT = 60  # seconds for anything that a test waits for

SERVE = """
    import os, sys, time
    import tensorflow as tf
    server = tf.train.Server({"ps": ["127.0.0.1:0"], "worker": ["127.0.0.1:1"]}, "ps", 0)
    print(server.target)
    print(server._weft_task.process.pid)
    sys.stdout.flush()
"""


def own_session():
    """Begins a session in which Ctrl-C interrupts: a shell lets its background jobs ignore it."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Program(object):
    """A process that runs a program."""

    def __init__(self, command, env, cwd):
        self.process = subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=own_session,
        )

    def line(self):
        return self.process.stdout.readline().decode().strip()

    def finish(self):
        """Returns the rest of the output and the exit status."""
        out = self.process.communicate()[0].decode()
        return out, self.process.returncode


class ShimTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path))
        with open(path, "w") as f:
            f.write(textwrap.dedent(text))
        return path

    def start(self, args, shim=True, **env):
        path = [FAKE] + ([PACKAGE] if shim else []) + env.pop("more_path", [])
        env = dict(dict(os.environ, WEFT_BINARY=BINARY, TF_CPP_MIN_LOG_LEVEL="1"), **env)
        env["PYTHONPATH"] = os.pathsep.join(path)
        env["PYTHONWARNINGS"] = "ignore"  # Python 3.12 warns of a fork with threads
        command = [sys.executable] + (["-m", "weft_shim"] if shim else []) + args
        p = Program(command, env, self.dir)
        self.addCleanup(p.process.stdout.close)
        self.addCleanup(end, p.process)
        return p

    def run_program(self, text, *args, **env):
        self.write("program.py", text)
        return self.start(["program.py"] + list(args), **env).finish()

    def serve(self, more="", **env):
        """Starts a program with a server. Returns it, the server's address and its process id."""
        self.write("program.py", textwrap.dedent(SERVE) + textwrap.dedent(more))
        p = self.start(["program.py"], **env)
        target, pid = p.line(), p.line()
        self.assertTrue(re.match(r"grpc://127.0.0.1:\d+$", target), target)
        host, port = target[len("grpc://") :].split(":")
        return p, (host, int(port)), int(pid)

    def assert_gone(self, address, pid):
        deadline = time.time() + LIMIT
        while time.time() < deadline:
            if not exists(pid):
                self.assertFalse(answers(address))
                return
            time.sleep(0.02)
        self.fail("the server is still there")


def end(process):
    if process.poll() is None:
        process.kill()
        process.wait()


def exists(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    try:  # a process that has ended may wait for init to notice
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except IOError:
        return os.path.isdir("/proc/self") is False


def answers(address):
    try:
        socket.create_connection(address, 5).close()
        return True
    except EnvironmentError:
        return False


class SameAsWithout(ShimTest):
    """What a program sees must be what it sees without the shim."""

    LOOK = """
        import os, sys
        import helper
        import tensorflow
        path = [p for p in sys.path if p != %r]
        print(__name__, __file__, sys.argv, path, helper.__file__, __package__)
        print(sys.modules["__main__"].__dict__ is globals(), sorted(globals()))
        print(sys.flags.optimize, sys.executable, os.getcwd())
    """ % PACKAGE

    def both(self, *args):
        with_shim, without = [self.start(list(args), shim=s).finish() for s in (True, False)]
        self.assertEqual(with_shim, without)
        return without

    def test_program(self):
        self.write("helper.py", "")
        self.write("sub/helper.py", "")
        self.write("sub/program.py", self.LOOK)
        program = self.write("program.py", self.LOOK)
        for args in [
            ["program.py"],
            ["program.py", "-m", "x", "--", "--flag=a b", ""],
            [program],
            ["sub/program.py", "1"],
            ["-O", "program.py", "-O"],
            ["-m", "program", "1"],
        ]:
            self.assertEqual(self.both(*args)[1], 0)

    def test_package(self):
        self.write("app/__init__.py", "")
        self.write("app/__main__.py", "import sys; print(__package__, sys.argv, sys.path[0])")
        self.write("app/part.py", "from . import __name__ as n; print(n, __name__, __package__)")
        self.assertEqual(self.both("-m", "app", "1")[1], 0)
        self.assertEqual(self.both("-m", "app.part", "1")[1], 0)
        self.assertEqual(self.both("app")[1], 0)
        self.assertEqual(self.both("-c", "import sys; print(sys.argv)", "x")[1], 0)

    def test_ends(self):
        for last, status in [
            ("sys.exit(3)", 3),
            ("sys.exit('a message')", 1),
            ("raise ValueError('what')", 1),
            ("os._exit(4)", 4),
            ("import signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
            ("def f(", 1),
        ]:
            self.write(
                "program.py", "import os, sys\nimport tensorflow\ndef f():\n  %s\nf()\n" % last
            )
            self.assertEqual(self.both("program.py")[1], status)
        self.assertEqual(self.both("missing.py")[1], 2)
        self.both("-m", "missing")

    def test_class_is_the_same(self):
        self.write(
            "program.py",
            """
            import sys
            import tensorflow as tf
            from tensorflow.python.training import server_lib
            from tensorflow.python.training.server_lib import Server
            print(tf.train.Server is Server, Server is server_lib.Server, Server)
            print(Server.__doc__, Server.__init__.__doc__, Server.target.__doc__)
            if sys.version_info[0] > 2:
                loader = server_lib.__loader__
                print(type(loader), server_lib.__spec__.loader is loader, sorted(vars(loader)))
        """,
        )
        self.assertEqual(self.both("program.py")[1], 0)


class Environment(ShimTest):
    def test_other_sitecustomize(self):
        self.write("site/sitecustomize.py", "import sys; sys.customized = __file__")
        out, status = self.run_program(
            "import sys, sitecustomize; print(sys.customized == sitecustomize.__file__)",
            more_path=[os.path.join(self.dir, "site")],
        )
        self.assertEqual((out, status), ("True\n", 0))

    def test_children(self):
        self.write("child.py", SERVE)
        out, status = self.run_program(
            "import subprocess, sys; subprocess.check_call([sys.executable, 'child.py'])"
        )
        self.assertEqual(status, 0, out)
        self.assertIn("grpc://127.0.0.1:", out)

    def test_usage(self):
        out, status = self.start([]).finish()
        self.assertEqual(status, 64)
        self.assertIn("usage: python -m weft_shim", out)
        self.assertEqual(self.start(["--help"]).finish()[1], 0)

    def test_path_of_the_package(self):
        self.write("program.py", "import sys; print(sys.argv + [sys.flags.optimize])")
        package = os.path.join(PACKAGE, "weft_shim")
        p = self.start(["-O", package, "program.py", "1"], shim=False)
        self.assertEqual(p.finish(), ("['program.py', '1', 1]\n", 0))

    def test_install_after_import(self):
        self.write(
            "program.py",
            """
            import tensorflow as tf
            import weft_shim
            weft_shim.install()
            print(tf.train.Server.create_local_server().target)
        """,
        )
        p = self.start(["program.py"], shim=False, more_path=[PACKAGE])
        out, status = p.finish()
        self.assertEqual(status, 0, out)
        self.assertIn("grpc://localhost:", out)


class Life(ShimTest):
    """The server ends with the program, however that ends."""

    def test_normal_end(self):
        p, address, pid = self.serve("assert server.server_def.job_name == 'ps'")
        self.assertEqual(p.finish(), ("", 0))
        self.assertFalse(exists(pid))
        self.assertFalse(answers(address))

    def test_signals(self):
        for how in signal.SIGKILL, signal.SIGTERM:
            for body in "server.join()", "time.sleep(100)":
                p, address, pid = self.serve(body)
                self.assertTrue(answers(address))
                p.process.send_signal(how)
                self.assertEqual(p.finish()[1], -how)
                self.assert_gone(address, pid)

    def test_interrupt(self):
        for body in "server.join()", "time.sleep(100)":
            p, address, pid = self.serve(body)
            p.process.send_signal(signal.SIGINT)
            out, status = p.finish()
            self.assertIn("KeyboardInterrupt", out)
            self.assertIn(status, (1, -signal.SIGINT))
            self.assertFalse(exists(pid))

    def test_interrupt_leaves_the_server_to_the_program(self):
        p, address, pid = self.serve("""
            try:
                print("waits")
                sys.stdout.flush()
                time.sleep(100)
            except KeyboardInterrupt:
                print("interrupted")
                sys.stdout.flush()
                time.sleep(100)
        """)
        self.assertEqual(p.line(), "waits")
        os.killpg(p.process.pid, signal.SIGINT)  # as a terminal does
        self.assertEqual(p.line(), "interrupted")
        self.assertTrue(answers(address))

    def test_killed_with_a_child(self):
        p, address, pid = self.serve("""
            if os.fork() == 0:
                time.sleep(5)
                os._exit(0)
            time.sleep(100)
        """)
        p.process.kill()
        p.process.wait()
        self.assert_gone(address, pid)

    def test_end_of_a_child(self):
        p, address, pid = self.serve("""
            child = os.fork()
            if child == 0:
                sys.exit(0)
            os.waitpid(child, 0)
            print("child ended")
            sys.stdout.flush()
            time.sleep(100)
        """)
        self.assertEqual(p.line(), "child ended")
        self.assertTrue(answers(address))

    def test_end_of_a_thread(self):
        out, status = self.run_program("""
            import threading, socket, time
            import tensorflow as tf
            made = []
            t = threading.Thread(target=lambda: made.append(tf.train.Server.create_local_server()))
            t.start()
            t.join()
            time.sleep(1)
            port = int(made[0].target.rpartition(":")[2])
            socket.create_connection(("localhost", port)).close()
        """)
        self.assertEqual((out, status), ("", 0))

    def test_end_of_the_server(self):
        p, _, pid = self.serve("time.sleep(100)")
        os.kill(pid, signal.SIGKILL)
        out, status = p.finish()
        self.assertEqual(status, 1)
        self.assertIn(
            "the server of /job:ps/task:0 was ended by signal 9, and with it the program", out
        )

    def test_join_until_the_server_ends(self):
        for how in signal.SIGTERM, signal.SIGKILL:
            p, _, pid = self.serve("""
                print("joins")
                sys.stdout.flush()
                server.join()
                print("joined")
            """)
            p.line()
            time.sleep(0.2)
            os.kill(pid, how)
            out, status = p.finish()
            if how == signal.SIGTERM:
                self.assertEqual((out, status), ("joined\n", 0))
            else:
                self.assertIn("the server of /job:ps/task:0 was ended by signal 9", out)
                self.assertEqual(status, 1)

    def test_start(self):
        out, status = self.run_program("""
            import tensorflow as tf
            s = tf.train.Server.create_local_server(start=False)
            s.start()
            s.start()
            t = tf.train.Server({"ps": ["127.0.0.1:9"]}, start=False)
            assert t.target == "grpc://127.0.0.1:9" and t._weft_task.process is None
            u = tf.train.Server.create_local_server(start=False)
            assert s.target != u.target != "grpc://localhost:0", u.target
        """)
        self.assertEqual((out, status), ("", 0))


class Faults(ShimTest):
    def assert_fault(self, want, *args, **env):
        program = "import tensorflow as tf\ntf.train.Server(%s)" % ", ".join(map(repr, args))
        out, status = self.run_program(program, **env)
        self.assertEqual(status, 1, out)
        self.assertIn("weft_shim: the server of /job:worker/task:1 " + want, out)

    def test_port_in_use(self):
        s = socket.socket()
        self.addCleanup(s.close)
        s.bind(("127.0.0.1", 0))
        s.listen(1)
        taken = "127.0.0.1:%d" % s.getsockname()[1]
        self.assert_fault(
            "did not start: cannot listen on %s for" % taken,
            {"worker": ["127.0.0.1:1", taken]},
            "worker",
            1,
        )

    def test_address_of_others(self):
        cluster = {"worker": ["127.0.0.1:1", "192.0.2.1:1"]}
        out, _ = self.run_program(
            "import tensorflow as tf\ntf.train.Server(%r, 'worker', 1)" % cluster
        )
        self.assertIn("the server of /job:worker/task:1 did not start: 192.0.2.1:1 can be", out)
        self.assertIn("or --insecure on a trusted network (WEFT_SERVER_FLAGS sets flags)", out)

    def test_protocol(self):
        cluster = {"worker": ["127.0.0.1:1", "127.0.0.1:0"]}
        self.assert_fault(
            "did not start: --server-def -: a ServerDef with protocol",
            cluster,
            "worker",
            1,
            "grpc+verbs",
        )

    def test_no_binary(self):
        cluster = {"worker": ["127.0.0.1:1", "127.0.0.1:0"]}
        self.assert_fault(
            "cannot be started: /no/weft: ", cluster, "worker", 1, WEFT_BINARY="/no/weft"
        )
        self.assert_fault(
            "needs the program weft", cluster, "worker", 1, WEFT_BINARY="", PATH="/no"
        )

    def test_binary_that_ends(self):
        cluster = {"worker": ["127.0.0.1:1", "127.0.0.1:0"]}
        path = self.write("weft", "#!/bin/sh\nexit 7\n")
        os.chmod(path, 0o755)
        self.assert_fault(
            "did not start: %s ended with status 7" % path, cluster, "worker", 1, WEFT_BINARY=path
        )

    def test_binary_that_does_not_serve(self):
        cluster = {"worker": ["127.0.0.1:1", "127.0.0.1:0"]}
        path = self.write("weft", "#!/bin/sh\necho $$ >pid\nexec sleep 100\n")
        os.chmod(path, 0o755)
        self.assert_fault(
            "does not serve after 0.5 s",
            cluster,
            "worker",
            1,
            WEFT_BINARY=path,
            WEFT_SHIM_TIMEOUT="0.5",
        )
        with open(os.path.join(self.dir, "pid")) as f:
            self.assertFalse(exists(int(f.read())))

    def test_flags(self):
        cluster = {"worker": ["127.0.0.1:1", "127.0.0.1:0"]}
        self.assert_fault(
            "did not start: ", cluster, "worker", 1, WEFT_SERVER_FLAGS="--no-such-flag"
        )


class Flags(ShimTest):
    def commands(self, flags, address, **env):
        """Returns the flags with which a server is started."""
        path = self.write("weft", '#!/bin/sh\necho "$@" >flags\n')
        os.chmod(path, 0o755)
        program = "import tensorflow as tf\ntf.train.Server({'ps': [%r]})" % address
        self.run_program(program, WEFT_BINARY=path, WEFT_SERVER_FLAGS=flags, **env)
        with open(os.path.join(self.dir, "flags")) as f:
            return f.read().split()

    def test_insecure_listens_everywhere(self):
        self.assertEqual(
            self.commands("--insecure", "ps0:2222")[-2:], ["--insecure", "--listen=:2222"]
        )
        self.assertEqual(
            self.commands("--insecure --listen=[::]:1", "ps0:2222")[-1], "--listen=[::]:1"
        )
        self.assertEqual(self.commands("--verbose", "ps0:2222")[-2:], ["--grace=0s", "--verbose"])

    def test_log(self):
        def flags(**env):
            return [f for f in self.commands("", "ps0:2222", **env) if f.startswith("--log")]

        self.assertEqual(flags(TF_CPP_MIN_LOG_LEVEL="0"), ["--log-format=text"])
        self.assertEqual(
            flags(TF_CPP_MIN_LOG_LEVEL="3"), ["--log-format=text", "--log-level=error"]
        )
        self.assertEqual(flags(WEFT_LOG_FORMAT="json", WEFT_LOG_LEVEL="info"), [])

    def test_session_configuration(self):
        out, status = self.run_program("""
            import re, subprocess, weft_shim
            import tensorflow as tf
            d = tf.train._make_server_def({"ps": ["127.0.0.1:0"]}, None, None, None, 3)
            pipe = subprocess.PIPE
            command = [%r, "server", "--server-def=-", "--log-level=warn"]
            p = subprocess.Popen(command, stdin=pipe, stdout=pipe)
            p.stdin.write(d.SerializeToString())
            p.stdin.close()
            print(p.stdout.readline().decode().rpartition(", ")[2])
            p.kill()
        """ % BINARY)
        self.assertEqual((out.strip(), status), ("3 CPU device(s)", 0))


class Remote(ShimTest):
    def test_remote(self):
        p, address, pid = self.serve("time.sleep(100)")
        remote = """
            import tensorflow as tf
            cluster = {"ps": ["127.0.0.1:%d"], "worker": ["127.0.0.1:0"]}
            s = tf.train.Server(cluster, "ps", 0)
            print(s.target)
            tf.train.Server(cluster, "worker", 0)
        """ % address[1]
        self.write("remote.py", remote)
        out, status = self.start(["remote.py"], WEFT_SHIM_REMOTE="1").finish()
        self.assertIn("grpc://127.0.0.1:%d\n" % address[1], out)
        self.assertIn("the server of /job:worker/task:0 is to be a remote one", out)
        self.assertEqual(status, 1)
        self.assertTrue(answers(address))
        self.write("join.py", remote.partition('tf.train.Server(cluster, "worker"')[0] + "s.join()")
        q = self.start(["join.py"], WEFT_SHIM_REMOTE="1")
        q.line()
        p.process.kill()
        self.assertEqual(q.finish(), ("", 0))

    def test_nothing_there(self):
        s = socket.socket()
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
        s.close()
        out, status = self.run_program(
            "import tensorflow as tf\ntf.train.Server({'ps': ['127.0.0.1:%d']})" % port,
            WEFT_SHIM_REMOTE="1",
            WEFT_SHIM_TIMEOUT="0.3",
        )
        self.assertEqual(status, 1)
        self.assertIn("the server of /job:ps/task:0 does not run at 127.0.0.1:%d" % port, out)


if __name__ == "__main__":
    unittest.main()
