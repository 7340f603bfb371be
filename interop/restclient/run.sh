#!/usr/bin/env bash
# Starts a server, generates a client from the description that it serves, and trains a network with
# it. Usage: interop/restclient/run.sh WEFT OAPI-CODEGEN
set -euo pipefail

weft=$(realpath "$1") generator=$(realpath "$2")
cd "$(dirname "$0")"
url=http://127.0.0.1:${PORT:-18480}
"$weft" server --cluster-spec="worker|127.0.0.1:${GRPC_PORT:-18481}" --job-name=worker --task-index=0 \
  --http-address="${url#http://}" --rest &
trap 'kill $!; wait' EXIT
mkdir -p api
curl -sf --retry 20 --retry-all-errors "$url/v1/openapi.json" > api/openapi.json
"$generator" -generate types,client -package api api/openapi.json > api/api.go
go run . "$url"
