#!/usr/bin/env bash
# Checks a release: another one, made of a copy of the source code in another folder, must have the
# same bytes, and the programs in the image and in the Debian package must serve.
#
# usage: check.sh FOLDER, with the files of "make release"
set -euo pipefail
dist=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

(cd "$dist" && sha256sum --check --quiet SHA256SUMS)
git clone --quiet . "$work/elsewhere"
(cd "$work/elsewhere/deploy/packaging" && go run . -source ../.. -out "$work/again")
diff -r "$dist" "$work/again"
echo "two builds in different folders are equal"

# serve PROGRAM starts a task, waits until it is ready, and ends it.
serve() {
	local port="$work/port"
	rm -f "$port"
	"$1" server --cluster-spec='worker|127.0.0.1:0' --job-name=worker --port-file="$port" >"$work/log" 2>&1 &
	local pid=$! status=0
	while [ ! -s "$port" ]; do
		kill -0 "$pid" || { cat "$work/log"; return 1; }
		sleep 0.05
	done
	"$1" status "grpc://127.0.0.1:$(cat "$port")" >"$work/status"
	kill -TERM "$pid"
	wait "$pid" || status=$?
	[ "$status" = 143 ] || { echo "$1 ended with $status"; return 1; }
}

arch=$(dpkg --print-architecture)
dpkg-deb --extract "$dist/weft_$arch.deb" "$work/deb"
serve "$work/deb/usr/bin/weft"
test -s "$work/deb/lib/systemd/system/weft.service"
echo "the program of the Debian package serves"

mkdir "$work/image"
tar -xf "$dist/weft-image.oci.tar" -C "$work/image"
python3 - "$work/image" "$arch" "$work/root" <<'END'
import json, pathlib, sys, tarfile
image, arch, root = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
blob = lambda d: image / "blobs" / d["digest"].replace(":", "/")
index = json.loads((image / "index.json").read_text())
found = [m for m in index["manifests"] if m["platform"]["architecture"] == arch]
manifest = json.loads(blob(found[0]).read_text())
config = json.loads(blob(manifest["config"]).read_text())
assert config["config"]["User"] == "65532:65532", config
size = sum(layer["size"] for layer in manifest["layers"])
assert size < 40e6, f"{size} bytes"
for layer in manifest["layers"]:
    with tarfile.open(blob(layer)) as files:
        files.extractall(root, filter="tar")
print(f"the image has {size / 1e6:.1f} MB")
END
serve "$work/root/usr/bin/weft"
echo "the program of the image serves"
