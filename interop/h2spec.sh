#!/usr/bin/env bash
# Runs the HTTP/2 conformance tests of h2spec against a Weft server, and compares the cases that
# fail with interop/h2spec.known.
#
#   interop/h2spec.sh WEFT H2SPEC [FLAG...]
set -euo pipefail
weft=$1 h2spec=$2
shift 2
tmp=$(mktemp -d)
"$weft" server --cluster-spec='worker|127.0.0.1:0' --job-name=worker --port-file "$tmp/port" >"$tmp/server" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" || true; rm -rf "$tmp"' EXIT
for _ in $(seq 200); do
	[ -s "$tmp/port" ] && break
	sleep 0.1
done
port=$(cat "$tmp/port")

# The failures are listed after the cases, with their sections above them.
"$h2spec" -h 127.0.0.1 -p "$port" -o 5 "$@" >"$tmp/report" || true
awk '/^Failures:/ { show = 1 } show && /^ +[0-9.]+ / { section = $1 }
	show && / × / { sub(/^ *× /, ""); print section " " $0 }' "$tmp/report" | sort -u >"$tmp/failed"
grep -v '^#' "$(dirname "$0")/h2spec.known" | sort >"$tmp/known"
tail -n 1 "$tmp/report"
if ! grep -q '145 tests' "$tmp/report" || ! diff "$tmp/known" "$tmp/failed"; then
	cat "$tmp/report" "$tmp/server"
	exit 1
fi
