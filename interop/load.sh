#!/usr/bin/env bash
# Sends requests to a model server at the limits of its connections and streams, replaces the model
# meanwhile, and compares the numbers: every request must be answered, and counted by the server.
#
# usage: interop/load.sh WEFT [REQUESTS]    needs h2load (Debian: nghttp2-client) and Python 3
set -euo pipefail

weft=$(realpath "$1")
requests=${2:-20000}
dir=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT
command -v h2load >/dev/null || { echo "h2load is not installed (Debian: nghttp2-client)" >&2; exit 2; }

export_model() { "$weft" demo --dir="$dir/run" --steps="$1" >"$dir/demo.log" 2>&1; }
export_model 50

# A request in JSON, and one in protocol buffers with the 5 bytes that gRPC puts before it.
python3 - "$dir" <<'PY'
import json, struct, sys
def field(number, body):
    size, out = len(body), bytearray([number << 3 | 2])
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes(out) + bytes([size]) + body
def varint(number, value):
    return bytes([number << 3, value])
folder = sys.argv[1]
with open(folder + "/row.json", "w") as f:
    json.dump({"instances": [[0.5] * 784]}, f)
size = field(2, varint(1, 1)) + field(2, b"\x08\x90\x06")  # the dimensions 1 and 784
tensor = varint(1, 1) + field(2, size) + field(4, struct.pack("<784f", *[0.5] * 784))
message = field(1, field(1, b"model")) + field(2, field(1, b"x") + field(2, tensor))
with open(folder + "/row.grpc", "wb") as f:
    f.write(struct.pack(">BI", 0, len(message)) + message)
PY

read -r grpc http < <(python3 -c '
import socket
both = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(s.getsockname()[1] for s in both))')
echo 'prometheus_config { enable: true }' >"$dir/monitoring"
"$weft" serve "$dir/run/model" --port="$grpc" --rest-api-port="$http" --monitoring-config-file="$dir/monitoring" >"$dir/serve.log" 2>&1 &
server=$!
url=http://127.0.0.1:$http
curl -sf --retry 50 --retry-all-errors --retry-delay 1 "$url/v2/health/ready" >/dev/null

# counted prints the number of requests that the server has counted with an outcome, or with any.
counted() {
	curl -sf "$url/monitoring/prometheus/metrics" |
		awk -v want="$1" 'index($0, ":tensorflow:serving:request_count{") == 1 && $0 ~ want { n += $NF } END { print n + 0 }'
}

total=0
failed=0
# load NAME CLIENTS OPTION...: sends the requests and looks at both sides.
load() {
	local name=$1 clients=$2
	shift 2
	h2load -n "$requests" -c "$clients" -t 1 "$@" >"$dir/h2load.log" 2>&1 || true
	total=$((total + requests))
	local summary ok
	summary=$(grep '^requests:' "$dir/h2load.log" || tail -3 "$dir/h2load.log")
	ok=$(counted 'status="OK"')
	echo "$name, $clients connections: $(sed -n 's/^finished in //p' "$dir/h2load.log"); $summary"
	if [[ $summary != *" $requests succeeded, 0 failed, 0 errored, 0 timeout" ]] || [ "$ok" != "$total" ]; then
		echo "FAILED: $name: the server has counted $ok good requests, want $total" >&2
		failed=1
	fi
}

predict=$url/v1/models/model:predict
load 'REST' 1 --h1 -d "$dir/row.json" "$predict"
export_model 100 & # a new version while the requests are sent
load 'REST while the model is replaced' 64 --h1 -d "$dir/row.json" "$predict"
wait $!
curl -sf --retry 50 --retry-all-errors "$url/v1/models/model/versions/100" >/dev/null
load 'REST' 1000 --h1 -d "$dir/row.json" "$predict"
rpc=(-d "$dir/row.grpc" -H 'content-type: application/grpc' -H 'te: trailers' "http://127.0.0.1:$grpc/tensorflow.serving.PredictionService/Predict")
load 'gRPC' 1 -m 1 "${rpc[@]}"
load 'gRPC with 100 streams' 16 -m 100 "${rpc[@]}"
load 'gRPC with 10 streams' 200 -m 10 "${rpc[@]}"

kill -TERM $server
status=0
wait $server || status=$?
[ $status = 143 ] || { echo "FAILED: the server ended with the status $status" >&2; failed=1; }
server=
[ $failed = 0 ] || { cat "$dir/serve.log" >&2; exit 1; }
echo "ok: $total requests, none was lost"
