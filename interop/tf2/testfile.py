"""Runs one of TensorFlow's own test files with its servers replaced by processes.

python -m interop.tf2.testfile KIND SOURCES FILE RESULTS [CASE...]

KIND is weft or tensorflow. RESULTS is a file of JSON lines, as in interop.old.testfile: cases that
have a line are not run again. With ONE_CLUSTER in the environment, the clusters of all cases are the
same processes.
"""

import os
import sys
import types
import unittest

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import json

import tensorflow as tf  # before the starter forks

from interop.old import testfile as old
from interop.tf2 import servers


def provide(ports):
    """Provides the module that picks ports, which the tests import, if it is not installed."""
    try:
        import portpicker  # noqa: F401
    except ImportError:
        module = types.ModuleType("portpicker")
        module.pick_unused_port = module.PickUnusedPort = ports.pick
        sys.modules["portpicker"] = module


def quiet_mains():
    """Makes the test file end when it is loaded. What its main would do first is done."""
    from tensorflow.python.compat import v2_compat
    from tensorflow.python.distribute import multi_process_runner, test_util
    from tensorflow.python.eager import test as eager_test
    from tensorflow.python.framework import ops

    def main(enable_v2_behavior=True, config_logical_devices=True):
        if config_logical_devices:
            test_util._set_logical_devices()
        if enable_v2_behavior:
            v2_compat.enable_v2_behavior()

    test_util.main = main
    multi_process_runner.test_main = lambda *a, **k: None
    for api in tf, tf.compat.v2:
        api.__internal__.distribute.multi_process_runner.test_main = multi_process_runner.test_main
    eager_test.main = lambda *a, **k: ops.enable_eager_execution()


def main():
    kind, sources, file, results = sys.argv[1:5]
    wanted, done = set(sys.argv[5:]), old.known(results)
    starter = servers.Starter(kind, results + ".servers")
    sys.meta_path.append(old.Sources(sources))
    ports = servers.Ports()
    started = servers.install(starter, ports, "ONE_CLUSTER" in os.environ)
    provide(ports)
    quiet_mains()
    argv, sys.argv = sys.argv, [file]
    with open(results, "a") as out:

        def write(**line):
            out.write(json.dumps(line) + "\n")
            out.flush()

        try:
            from absl import flags

            flags.FLAGS(argv[:1], known_only=True)
            module = old.load(os.path.join(sources, file))
        except BaseException as e:
            write(end=True, message=repr(e)[: old.MESSAGE])
            os._exit(1)
        for suite in unittest.defaultTestLoader.loadTestsFromModule(module):
            run_class(suite, write, started, wanted, done)
        write(end=True, message="")
    os._exit(0)  # threads of a test that never ended


def run_class(suite, write, started, wanted, done):
    """Runs the cases of one class between its setUpClass and tearDownClass."""
    cases = [
        (old.name_of(case), case)
        for case in old.cases(suite)
        if not old.name_of(case).endswith(".test_session")
    ]
    cases = [(n, c) for n, c in cases if n not in done and (not wanted or n in wanted)]
    if not cases:
        return
    kind = type(cases[0][1])
    fault = ""
    try:
        kind.setUpClass()
    except unittest.SkipTest:
        return
    except BaseException as e:
        fault = repr(e)
    for name, case in cases:
        write(case=name, status="not ended")
        outcome = unittest.TestResult()
        try:
            if fault:
                raise RuntimeError(fault)
            case.run(outcome)
        except BaseException as e:
            outcome.errors.append((case, repr(e)))
        failures = outcome.errors + outcome.failures
        status = "fail" if failures else "skip" if outcome.skipped else "pass"
        message = failures[0][1][-old.MESSAGE :] if failures else ""
        write(case=name, status=status, steps=len(started), message=message)
    try:
        kind.tearDownClass()
    except BaseException as e:
        print("tearDownClass:", repr(e))


if __name__ == "__main__":
    main()
