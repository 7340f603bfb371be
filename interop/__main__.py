"""Runs the interoperability tests and ends with a line 'N passed, N failed'.

python -m interop                         all tests on Weft and on their mixed clusters
python -m interop -k hello -k training    tests whose name contains one of these
python -m interop --mix tf                only on TensorFlow's servers, where all must pass
python -m interop --list                  names only
"""

import argparse
import faulthandler
import os
import pathlib
import sys
import threading
import time
import unittest

os.environ.update({"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"})


def main():
    parser = argparse.ArgumentParser(
        prog="interop", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "-k", dest="names", action="append", default=[], help="run tests whose name contains this"
    )
    parser.add_argument(
        "--mix", action="append", default=[], help="run only on this mix of servers"
    )
    parser.add_argument(
        "--file", dest="files", action="append", default=[], help="only tests of test_FILE.py"
    )
    parser.add_argument("--server", help="command line of a server instead of bin/weft")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one test")
    parser.add_argument("--list", action="store_true", help="list the tests")
    args = parser.parse_args()

    tests = list(find(args.names, args.mix, args.server, args.files))
    if args.list:
        print("\n".join(name_of(t) for t in tests))
        return
    result = Result(args.timeout)
    unittest.TestSuite(tests).run(result)
    result.close()


def find(names, mixes, server, files):
    """Yields the tests of test_*.py files, once for each of their mixes of servers."""
    from interop import clustertest

    if server:
        clustertest.ClusterTest.server = server
    loader = unittest.TestLoader()
    here = pathlib.Path(__file__).parent
    for path in sorted(here.glob("test_*.py")):
        if files and path.stem[len("test_") :] not in files:
            continue
        module = __import__(f"interop.{path.stem}", fromlist=["*"])
        for case in list(vars(module).values()):
            if not (
                isinstance(case, type)
                and issubclass(case, clustertest.ClusterTest)
                and case.__module__ == module.__name__
            ):
                continue
            for mix in mixes or case.mixes:
                tests = loader.loadTestsFromTestCase(clustertest.on_mix(case, mix))
                yield from (t for t in tests if not names or any(n in name_of(t) for n in names))


def name_of(test):
    return f"{type(test).__name__}.{test._testMethodName}"


class Result(unittest.TestResult):
    """Prints a line per test. A test that hangs ends the run with the stacks of all threads."""

    def __init__(self, limit):
        super().__init__()
        self.limit, self.passed, self.failed = limit, 0, 0

    def startTest(self, test):
        super().startTest(test)
        self.started, self.faults = time.monotonic(), []
        self.watchdog = threading.Timer(self.limit, self.give_up, [test])
        self.watchdog.daemon = True
        self.watchdog.start()

    def stopTest(self, test):
        self.watchdog.cancel()
        super().stopTest(test)
        self.report(name_of(test), self.faults)

    def addError(self, test, err):
        super().addError(test, err)
        if isinstance(test, unittest.TestCase):
            self.faults.append(self.errors[-1][1])
        else:  # the cluster of a class did not start, so none of its tests runs
            self.started = time.monotonic()
            self.report(str(test), [self.errors[-1][1]])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.faults.append(self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            kept = self.failures if issubclass(err[0], test.failureException) else self.errors
            self.faults.append(f"{subtest._subDescription()}\n{kept[-1][1]}")

    def report(self, name, faults):
        self.passed, self.failed = self.passed + (not faults), self.failed + bool(faults)
        print(
            f"{'FAIL' if faults else 'ok  '} {name} {time.monotonic() - self.started:.1f}s",
            flush=True,
        )
        for fault in faults:
            print("     " + fault.strip()[-3000:].replace("\n", "\n     "), flush=True)

    def give_up(self, test):
        from interop import cluster

        self.report(
            name_of(test), [f"still running after {self.limit:.0f} s; later tests were not run"]
        )
        faulthandler.dump_traceback(sys.stderr)
        for c in list(cluster.Cluster.running):
            for (job, task), process in c.processes.items():
                print(f"     log of {job}/{task}: {c.log(job, task)}", flush=True)
                process.kill()
        self.close()

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        os._exit(
            1 if self.failed or not self.passed else 0
        )  # a step that hangs must not keep the interpreter alive


if __name__ == "__main__":
    main()
