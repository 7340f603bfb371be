"""python -m weft_shim ARGS...: runs `python ARGS...` with Weft's servers.

The interpreter starts anew, so that the program sees the arguments, the path and the tracebacks
that it sees without this module.
"""

import os
import subprocess
import sys

USAGE = """usage: python -m weft_shim PROGRAM [ARG...]
       python -m weft_shim -m MODULE [ARG...]
Runs a TensorFlow program whose tf.train.Server is a Weft server.
See https://github.com/weft-ml/weft/tree/main/python
"""


def main():
    args = sys.argv[1:]
    if not args or args[0] in ("-h", "--help"):
        sys.stderr.write(USAGE)
        return 0 if args else 64
    if sys.flags.ignore_environment or sys.flags.no_site:
        sys.exit("weft_shim: works with none of Python's options -E, -I and -S")
    startup = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")
    path = os.environ.get("PYTHONPATH")
    path = [p for p in path.split(os.pathsep) if p != startup] if path else []
    os.environ["PYTHONPATH"] = os.pathsep.join([startup] + path)
    command = [sys.executable] + options(args) + args
    sys.stdout.flush()
    os.execv(sys.executable, command)


def options(args):
    """Returns the options of this interpreter, those before -m weft_shim."""
    try:
        with open("/proc/self/cmdline", "rb") as f:
            words = [
                os.fsdecode(w) if hasattr(os, "fsdecode") else w for w in f.read().split(b"\0")
            ]
        words = words[1 : len(words) - 1 - len(args)]
    except IOError:
        return subprocess._args_from_interpreter_flags()
    last = words.pop()
    if last == "weft_shim":  # -m weft_shim, -um weft_shim
        last = words.pop()[:-1]
    elif last.startswith("-") and last.endswith("mweft_shim"):
        last = last[: -len("mweft_shim")]
    else:  # the path of this package
        return words
    return words + [last] if last != "-" else words


if __name__ == "__main__":
    sys.exit(main())
