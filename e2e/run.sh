#!/usr/bin/env bash
# Installs what the end-to-end tests need, builds outlive, runs them, prints what fails and the counts. Safe to run again and again.
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
	echo "== go build outlive with a clock that can be set"
	mkdir -p .work/clock/std
	go run ./overlay clock "$PWD/.work/clock/std"
	(cd .. && go build -overlay e2e/.work/clock/std/overlay.json -o e2e/.work/clock/outlive ./cmd/outlive)
	(cd ../outlive-fleet && go build -overlay ../e2e/.work/clock/std/overlay.json -o ../e2e/.work/clock/outlive-fleet .)
	export OUTLIVE_CLOCK_BIN="$PWD/.work/clock/outlive"
fi

echo "== go test"
# What fails is printed as it fails; .work/test.log has all, as JSON, with the figures that tests print. A failed test with somebody
# else's program is tried once more, but not in a hunt, where the first failure is what is looked for.
(cd .. && go build -o e2e/.work/bin/testcount ./.ci/testcount)
again=(-again)
[ "${OUTLIVE_TIER:-door}" != hunt ] || again=()
trap : TERM # the counts are still printed
.work/bin/testcount -step e2e -out "${OUTLIVE_RESULTS:-.work}" -raw .work/test.log "${again[@]}" -- \
	go test -json -count=1 -timeout 40m -parallel "${E2E_PARALLEL:-6}" "$@" ./... </dev/null
