#!/usr/bin/env bash
# Installs what the end-to-end tests need, builds outlive, runs them, prints counts. Safe to run again and again.
#
#   e2e/run.sh [go test flags…]     e.g.  e2e/run.sh -run 'TestMatrix/go×py'
#   E2E_DIRECT=1 e2e/run.sh         the same sessions without outlive, as a check of clients and servers
#   OUTLIVE_BIN=/path/to/outlive    tests that binary instead of building one
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

bash install.sh

if [ "${E2E_DIRECT:-}" != 1 ] && [ -z "${OUTLIVE_BIN:-}" ]; then
	echo "== go build outlive"
	(cd .. && go build -o e2e/.work/bin/outlive ./cmd/outlive)
	(cd ../outlive-otel && go build -o ../e2e/.work/bin/outlive-otel .)
	(cd ../outlive-fleet && go build -o ../e2e/.work/bin/outlive-fleet .)
	export OUTLIVE_BIN="$PWD/.work/bin/outlive"
fi

echo "== go test"
log=.work/test.log
status=0
go test -count=1 -timeout 35m -parallel "${E2E_PARALLEL:-4}" -v "$@" ./... >"$log" 2>&1 </dev/null || status=$?
count() { grep -cE "^ *--- $1: " "$log" || true; }
passed=$(count PASS) failed=$(count FAIL) skipped=$(count SKIP)
if [ "$status" != 0 ]; then
	grep -vE '^ *(=== (RUN|PAUSE|CONT|NAME)|--- PASS)' "$log" || true
fi
grep -E '^ *--- SKIP' "$log" || true
if [ "$status" = 0 ] && [ "$passed" = 0 ]; then
	echo "e2e: no test ran" >&2
	status=1
fi
echo "e2e: $passed passed, $failed failed, $skipped skipped"
exit "$status"
