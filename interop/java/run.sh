#!/usr/bin/env bash
# Serves the model of "weft demo" and asks for it with a client in Java (Maven, gRPC, protobuf).
# Usage: interop/java/run.sh WEFT
set -euo pipefail

weft=$(realpath "$1")
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$tmp"' EXIT
"$weft" demo --dir="$tmp/digits" --steps=100 > "$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
"$weft" serve "$tmp/digits/model" --port=18486 --rest_api_port=18487 &
curl -sf --retry 20 --retry-all-errors http://127.0.0.1:18487/v2/health/ready > "$tmp/ready"
input=$(curl -sf http://127.0.0.1:18487/v2/models/model | sed -E 's/.*"inputs": \[\{"name": "([^"]*)".*/\1/')
machine=$(uname -m)
mvn -q -B -Dos.type="$(uname -s | tr '[:upper:]' '[:lower:]')-${machine/aarch64/aarch_64}" compile exec:java -Dexec.args="18486 18487 $input"
