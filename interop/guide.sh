#!/usr/bin/env bash
# Runs the commands of a page: all its blocks of language "sh", in order, as one script with
# bin/weft on the path. Every command must succeed, and so must every HTTP request.
# Usage: interop/guide.sh PAGE
set -euo pipefail

page=$(realpath "$1")
export PATH="$PWD/bin:$PATH"
folder=$(mktemp -d)
cd "$folder"
awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$page" > script
rm -rf /tmp/digits
# curl reports an answer with an error only if it is asked to.
export CURL_HOME=$folder
echo fail > .curlrc
status=0
bash -euo pipefail -c 'trap "kill \$(jobs -p) 2>/dev/null; wait" EXIT; set -v; source ./script' || status=$?
rm -rf "$folder" /tmp/digits
if [ $status = 0 ]; then echo "ok: the commands of $1"; else echo "FAILED: the commands of $1"; fi
exit $status
