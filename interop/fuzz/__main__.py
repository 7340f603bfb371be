"""Runs random operations on Weft and on TensorFlow and compares the outcomes.

The last line of the output ends in 'N differences, N s'.

  python -m interop.fuzz --tries 50000 --seed 1 --jobs 2
  python -m interop.fuzz --ops MatMul,Conv2D --cases

With several jobs, the seeds are consecutive.
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import re
import sys
import time

os.environ.update({"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"})


def main():
    parser = argparse.ArgumentParser(
        prog="interop.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tries", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--jobs", type=int, default=1, help="concurrent processes, which share the tries"
    )
    parser.add_argument("--ops", help="comma-separated operations to try (default all)")
    parser.add_argument("--server", help="command line of a server instead of bin/weft")
    parser.add_argument(
        "--shown", type=int, default=3, help="number of differences to show per operation and kind"
    )
    parser.add_argument(
        "--allowed",
        action="store_true",
        help="also show expected differences, and how often each reason applied",
    )
    parser.add_argument(
        "--cases",
        action="store_true",
        help="also print differences in the format of the kernels' testdata",
    )
    args = parser.parse_args()

    from interop.fuzz import allowed, run  # imports TensorFlow, which reads the environment

    started = time.monotonic()
    if args.jobs == 1:
        found = [run.job(args, 0)]
    else:
        with concurrent.futures.ProcessPoolExecutor(
            args.jobs, multiprocessing.get_context("spawn")
        ) as pool:
            found = list(pool.map(run.job, [args] * args.jobs, range(args.jobs)))
    ops, worked = found[0].ops, set().union(*(f.worked for f in found))
    if args.allowed:
        reasons = sum((f.reasons for f in found), start=collections.Counter())
        for i, (pattern, kind, why, _) in enumerate(allowed.DIFFERENCES):
            if any(re.search(pattern, op) for op in ops):
                print(f"applied {reasons[i]} times: {pattern}, {kind}: {why}", file=sys.stderr)
    errors = collections.ChainMap(*(f.errors for f in found))
    failed = set(errors) - worked
    for op in sorted(failed):
        print(f"only errors: {op}: {' '.join(errors[op].split())[:150]}", file=sys.stderr)
    left_out = found[0].left_out
    for why in sorted(set(left_out.values())):
        print(
            f"not tried: {why}: {' '.join(op for op in left_out if left_out[op] == why)}",
            file=sys.stderr,
        )

    def total(field):
        return sum(getattr(f, field) for f in found)

    print(
        f"{len(worked)} of {len(ops) + len(left_out)} operations had results, {len(failed)} only errors, {len(ops) - len(worked) - len(failed)} "
        f"crashed TensorFlow or were not reached, {len(left_out)} are not tried"
    )
    print(
        f"{total('tries')} tries: {total('succeeded')} with the same result, "
        f"{total('failed')} with the same error, {total('allowed')} with an expected difference, {total('died')} that crashed TensorFlow, "
        f"{total('different')} differences, {time.monotonic() - started:.0f} s"
    )
    sys.exit(1 if total("different") else 0)


if __name__ == "__main__":
    main()
