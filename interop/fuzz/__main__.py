"""Tries random operations on Weft and on TensorFlow, and closes with a line 'N tries, N differences'.

  python -m interop.fuzz --tries 50000 --seed 1
  python -m interop.fuzz --ops MatMul,Conv2D
"""
import argparse
import os
import sys
import time

os.environ.update({"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"})


def main():
    parser = argparse.ArgumentParser(prog="interop.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ops", help="operations to try, with commas between; all by default")
    parser.add_argument("--server", help="command line of a server in place of bin/weft")
    parser.add_argument("--shown", type=int, default=3, help="differences to show for each operation and kind")
    args = parser.parse_args()

    from interop.fuzz import run
    started = time.monotonic()
    found = run.run(args.tries, args.seed, args.ops.split(",") if args.ops else None, args.server, args.shown)
    print(f"{found.tries} tries of {len(found.ops)} operations, {found.succeeded} with a result, {found.failed} with the same error, "
          f"{found.allowed} that may differ, {found.died} that ended TensorFlow's server, {found.different} differences, "
          f"{time.monotonic() - started:.0f} s")
    sys.exit(1 if found.different else 0)


if __name__ == "__main__":
    main()
