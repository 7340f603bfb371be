#!/usr/bin/env bash
# Tests a server of sessions and a model server by their descriptions: random requests must get
# answers that the descriptions allow, and no internal errors.
# Usage: interop/schemathesis/run.sh WEFT SCHEMATHESIS [OPTIONS OF SCHEMATHESIS]
set -euo pipefail

weft=$(realpath "$1") tool=$(realpath "$2")
shift 2
folder=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
cd "$tmp"
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$tmp"' EXIT
rest=http://127.0.0.1:18482 model=http://127.0.0.1:18484
"$weft" demo --dir="$tmp/digits" --steps=200 > demo.log 2>&1
"$weft" server --cluster-spec='worker|127.0.0.1:18483' --job-name=worker --task-index=0 --http-address="${rest#http://}" --rest 2> server.log &
"$weft" serve "$tmp/digits/model" --port=18485 --rest_api_port=18484 --rest_api_timeout_in_ms=60000 2> serve.log &
status=0
for url in "$rest/v1/openapi.json" "$model/openapi.json"; do
  curl -sf --retry 20 --retry-all-errors "$url" > /dev/null
  API="${url%%/v1/*}" SCHEMATHESIS_HOOKS=hooks PYTHONPATH="$folder" "$tool" run "$url" --workers 1 --no-color \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance \
    --suppress-health-check all "$@" || status=$?
done
grep -h panic server.log serve.log && status=1
exit $status
