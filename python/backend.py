"""Builds packages of weft_shim for pip, with the standard library alone.

    python backend.py FOLDER                        a package for every platform
    python backend.py FOLDER --binary bin/weft      one for Linux that contains the weft program

It is also the build backend of `pip install ./python`. A package of the same sources and version
has the same bytes.
"""

import argparse
import base64
import hashlib
import os
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "weft_shim"
FILES = ["__init__.py", "__main__.py", "startup/sitecustomize.py"]
# Platforms of the static program, by the machine in its ELF header. It needs no C library.
PLATFORMS = {0x3E: "manylinux1_x86_64", 0xB7: "manylinux2014_aarch64"}
METADATA = """Metadata-Version: 2.1
Name: weft-shim
Version: {version}
Summary: Runs TensorFlow programs with Weft's servers
License: Apache-2.0
Project-URL: Source, https://github.com/weft-ml/weft
Requires-Python: >=2.7,!=3.0.*,!=3.1.*,!=3.2.*,!=3.3.*
Description-Content-Type: text/markdown

"""


def version():
    return os.environ.get("WEFT_SHIM_VERSION") or "0.0.0"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, None)


def write_wheel(folder, binary):
    """Writes a package and returns its name. binary is the path of the weft program, or None."""
    platform = platform_of(binary) if binary else "any"
    tag = "py2.py3-none-" + platform
    name = "%s-%s-%s.whl" % (NAME, version(), tag)
    if not os.path.isdir(folder):
        os.makedirs(folder)
    info = "%s-%s.dist-info/" % (NAME, version())
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as z:
        record = Record(z)
        for path in FILES:
            record.add(NAME + "/" + path, read(NAME, *path.split("/")))
        if binary:
            record.add(NAME + "/bin/weft", read(os.path.abspath(binary)), 0o755)
        metadata = METADATA.format(version=version()).encode() + read("README.md")
        pure = str(binary is None).lower()
        wheel = "Wheel-Version: 1.0\nGenerator: weft\nRoot-Is-Purelib: %s\n" % pure
        wheel += "".join("Tag: %s-none-%s\n" % (py, platform) for py in ("py2", "py3"))
        record.add(info + "METADATA", metadata)
        record.add(info + "WHEEL", wheel.encode())
        record.add(info + "LICENSE", read("..", "LICENSE"))
        record.close(info + "RECORD")
    return name


class Record(object):
    """The files of a package, with the sums of their contents."""

    def __init__(self, archive):
        self.archive, self.lines = archive, []

    def add(self, path, data, mode=0o644):
        entry = zipfile.ZipInfo(path)  # of the first day that the format knows
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, data)
        sums = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        self.lines.append("%s,sha256=%s,%d\n" % (path, sums, len(data)))

    def close(self, path):
        self.lines.append(path + ",,\n")
        entry = zipfile.ZipInfo(path)
        entry.external_attr = 0o100644 << 16
        self.archive.writestr(entry, "".join(self.lines))


def platform_of(binary):
    header = read(os.path.abspath(binary))[:20]
    machine = bytearray(header[18:20])
    platform = PLATFORMS.get(machine[0] if len(machine) == 2 else None)
    if header[:4] != b"\x7fELF" or platform is None:
        raise SystemExit("%s is not a program for Linux on amd64 or arm64" % binary)
    return platform


def read(*path):
    with open(os.path.join(HERE, *path), "rb") as f:
        return f.read()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--binary", help="the weft program to put into the package")
    args = parser.parse_args()
    print(os.path.join(args.folder, write_wheel(args.folder, args.binary)))
