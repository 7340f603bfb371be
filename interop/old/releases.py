"""Old releases of TensorFlow: the Python, the packages and the virtual environment of each."""

import concurrent.futures
import glob
import os
import pathlib
import shutil
import subprocess
import tempfile

# A folder with environments that exist already, used as they are: {folder}/{release}/bin/python.
READY = os.environ.get("WEFT_INTEROP_OLD")

CACHE = pathlib.Path(
    READY
    or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "weft-interop-old"
    )
)

# A release's packages must be the ones named here: pip would choose later ones, which do not work.
RELEASES = {
    "0.12": ("2.7", ["tensorflow==0.12.1", "protobuf==3.1.0", "numpy==1.16.6", "mock==3.0.5"]),
    "1.0": ("3.6", ["tensorflow==1.0.1", "protobuf==3.19.6", "numpy==1.18.5"]),
    "1.4": ("3.6", ["tensorflow==1.4.1", "protobuf==3.19.6", "numpy==1.18.5"]),
    "1.8": ("3.6", ["tensorflow==1.8.0", "protobuf==3.19.6", "numpy==1.18.5"]),
    "1.12": (
        "3.6",
        ["tensorflow==1.12.3", "protobuf==3.19.6", "numpy==1.18.5", "h5py==2.10.0"],
    ),
    "1.15": (
        "3.7",
        ["tensorflow==1.15.5", "protobuf==3.20.3", "numpy==1.18.5", "h5py==2.10.0"],
    ),
    "2.4": ("3.8", ["tensorflow-cpu==2.4.4", "protobuf==3.20.3"]),
    "2.10": ("3.10", ["tensorflow-cpu==2.10.1", "protobuf==3.19.6", "numpy==1.23.5"]),
    "2.15": ("3.10", ["tensorflow-cpu==2.15.1", "protobuf==4.25.8", "numpy==1.26.4"]),
}


class Missing(RuntimeError):
    """A release cannot be used here."""


def python_of(version):
    """Returns the interpreter of a version: PYTHON37 for 3.7, pyenv's, or one on the PATH."""
    variable = "PYTHON" + version.replace(".", "")
    given = os.environ.get(variable)
    found = [given] if given else []
    found += sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python")))
    found += filter(None, [shutil.which(f"python{version}")])
    why = f"no Python {version} (set {variable})"
    ask = "import sys; print('%d.%d %s' % (sys.version_info[:2] + (sys.maxunicode > 0xffff,)))"
    for python in found:
        try:
            answer = subprocess.run(
                [python, "-c", ask], capture_output=True, text=True, timeout=60
            ).stdout.split()
        except OSError:
            continue
        if answer == [version, "True"]:
            return python
        if answer == [version, "False"]:
            why = f"{python} was built without wide characters"
    raise Missing(why)


def environment(release):
    """Returns the interpreter of a release's environment, and makes the environment if needed."""
    folder = CACHE / release
    python = folder / "bin" / "python"
    if READY and python.exists():
        return str(python)
    version, packages = RELEASES[release]
    done, pins = folder / "done", " ".join(packages)
    if done.exists() and done.read_text() == pins:
        return str(python)
    base = python_of(version)
    shutil.rmtree(folder, ignore_errors=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as modules:
        env = dict(os.environ)
        make = [base, "-m", "venv"]
        if version == "2.7":
            env["PYTHONPATH"] = modules
            make = [base, "-m", "virtualenv", "-q"]
            install(base, "--target", modules, "virtualenv==20.15.1")
        run([*make, str(folder)], env)
    if version == "3.6":
        install(python, "pip==21.3.1")  # the first pip finds no wheels of some dependencies
    install(python, *packages)
    run([str(python), "-W", "ignore", "-c", "import tensorflow"])
    done.write_text(pins)
    return str(python)


def install(python, *arguments):
    run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments])


def run(command, env=None):
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"{' '.join(map(str, command[1:]))}: {(done.stderr or done.stdout)[-1000:]}")


def environments(releases):
    """Returns the interpreters of releases by name, and why the others are missing."""
    pythons, missing = {}, {}
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for release, made in [(r, pool.submit(environment, r)) for r in releases]:
            try:
                pythons[release] = made.result()
            except Missing as e:
                missing[release] = str(e)
    return pythons, missing
