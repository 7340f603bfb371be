"""Runs one of TensorFlow's own test files with every session that it opens sent to a server.

python -m interop.old.testfile TARGET SOURCES FILE RESULTS [CASE...]

RESULTS is a file of JSON lines. A case has a line when it starts and one when it ends. Cases that
have a line are not run again, so that the rest of a file can run after a case that never ended.
"""

import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import types
import unittest

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session
from tensorflow.python.platform import googletest, test

MESSAGE = 4000  # characters of a failure's traceback that are kept


class Redirect:
    """Sends the sessions of this process to a server, and counts the steps that they run there.

    A session that names a target itself is left alone: it belongs to a cluster of the test's own.
    """

    def __init__(self, target):
        self.target, self.steps = target, 0

    def install(self):
        base, redirect = session.BaseSession, self
        init = base.__init__

        def redirected(self, target="", graph=None, config=None):
            self.redirected = not target
            if self.redirected:
                target = redirect.target
                copied = config_pb2.ConfigProto()
                if config is not None:
                    copied.CopyFrom(config)
                copied.isolate_session_state = True  # as a local session has variables of its own
                config = copied
            init(self, target, graph, config)

        base.__init__ = redirected
        for name in (
            "_call_tf_sessionrun",
            "_call_tf_sessionprun",
            "_make_callable_from_options",
        ):
            setattr(base, name, self.counted(getattr(base, name)))

    def counted(self, method):
        def call(session_, *args, **kwargs):
            self.steps += session_.redirected
            return method(session_, *args, **kwargs)

        return call


class Sources:
    """Finds modules that test files import and that an installed TensorFlow lacks."""

    def __init__(self, root):
        self.root = root

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("tensorflow.python."):
            return None
        path = os.path.join(self.root, *name.split("."))
        if os.path.exists(path + ".py"):
            return importlib.util.spec_from_file_location(name, path + ".py")
        if os.path.isdir(path):
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations.append(path)
            return spec
        return None


def load(path):
    """Returns the module of a test file, run as a program is but without its tests."""
    googletest.main = test.main = lambda *args, **kwargs: None
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    sys.path.insert(0, os.path.dirname(path))
    with open(path, encoding="utf-8") as f:
        exec(compile(f.read(), path, "exec"), module.__dict__)
    return module


def cases(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        else:
            yield item


def name_of(case):
    """Returns a case's name without the memory addresses that some parameters print."""
    return re.sub(r" at 0x[0-9a-f]+", "", case.id().replace("__main__.", "", 1))


def known(results):
    """Returns the cases that have a line in a file of results."""
    if not os.path.exists(results):
        return set()
    with open(results) as f:
        return {json.loads(line).get("case") for line in f}


def main():
    target, sources, file, results = sys.argv[1:5]
    wanted, done = set(sys.argv[5:]), known(results)
    os.environ.setdefault("TEST_SRCDIR", os.path.join(sources, ".."))
    redirect = Redirect(target)
    redirect.install()
    sys.meta_path.append(Sources(sources))
    argv, sys.argv = sys.argv, [file]
    with open(results, "a") as out:

        def write(**line):
            out.write(json.dumps(line) + "\n")
            out.flush()

        try:
            from absl import flags

            flags.FLAGS(argv[:1], known_only=True)
            module = load(os.path.join(sources, file))
        except BaseException as e:
            write(end=True, message=repr(e)[:MESSAGE])
            os._exit(1)
        for case in cases(unittest.defaultTestLoader.loadTestsFromModule(module)):
            name = name_of(case)
            if name.endswith(".test_session") or name in done or (wanted and name not in wanted):
                continue
            write(case=name, status="not ended")
            outcome, redirect.steps = unittest.TestResult(), 0
            try:
                case.run(outcome)
            except BaseException as e:
                outcome.errors.append((case, repr(e)))
            failures = outcome.errors + outcome.failures
            status = "fail" if failures else "skip" if outcome.skipped else "pass"
            message = failures[0][1][-MESSAGE:] if failures else ""
            write(case=name, status=status, steps=redirect.steps, message=message)
        write(end=True, message="")
    os._exit(0)  # threads of a test that never ended


if __name__ == "__main__":
    main()
