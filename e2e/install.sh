#!/usr/bin/env bash
# Installs what the end-to-end tests need. What is installed already is left as it is.
# OUTLIVE_TIER says of which tier.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# rustup puts cargo where only a login shell looks for it.
export PATH="$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin"

need() {
	command -v "$1" >/dev/null || { echo "e2e: $1 is missing: $2" >&2; exit 1; }
}
need go "install Go 1.26"
need node "install Node 20 or newer"
need npm "install npm"
need python3 "install Python 3.11 or newer, with venv"
need bash "install bash"
need cargo "install Rust 1.88 or newer, from https://rustup.rs"

# At the door nobody needs the conformance suite, a collector of OpenTelemetry or a NATS server of one's own.
door=
[ "${OUTLIVE_TIER:-door}" != door ] || door=1

# chromium is the browser that looks at the dashboard, tmux the terminal in which outlive top is looked at; OpenSSH's server is what
# other machines have. OpenCode would fetch ripgrep from elsewhere.
missing=""
for program in jq chromium tmux; do
	command -v "$program" >/dev/null || missing="$missing $program"
done
[ -x /usr/sbin/sshd ] || missing="$missing openssh-server"
command -v ssh >/dev/null || missing="$missing openssh-client"
[ -n "$door" ] || command -v rg >/dev/null || missing="$missing ripgrep"
if [ -n "$missing" ]; then
	echo "== installing$missing"
	sudo=""
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq </dev/null
	# shellcheck disable=SC2086 # one word for each
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq $missing </dev/null
fi

# promtool checks metrics and alert rules. Only the program is taken: the package would start a Prometheus.
if ! command -v promtool >/dev/null && [ ! -x .work/bin/promtool ]; then
	echo "== promtool of the package prometheus"
	mkdir -p .work/bin .work/deb
	(cd .work/deb && apt-get download -qq prometheus </dev/null && dpkg-deb -x prometheus_*.deb .)
	mv .work/deb/usr/bin/promtool .work/bin/
	rm -rf .work/deb
fi

# Load balancers, for the full run. Only the programs are taken, with the libraries that are missing here: the packages would start them.
for program in nginx haproxy; do
	[ -z "$door" ] && [ ! -x "/usr/sbin/$program" ] && [ ! -x ".work/bin/$program" ] || continue
	echo "== $program of its package"
	sudo=""
	[ "$(id -u)" = 0 ] || sudo=sudo
	at=$PWD/.work/$program
	mkdir -p .work/bin "$at/deb/partial"
	$sudo apt-get update -qq </dev/null
	$sudo apt-get install -y -qq --no-install-recommends --download-only -o "Dir::Cache::archives=$at/deb" "$program" </dev/null
	for package in "$at"/deb/*.deb; do
		dpkg-deb -x "$package" "$at"
	done
	printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$at/usr/lib/$(uname -m)-linux-gnu" "$at/usr/sbin/$program" >".work/bin/$program"
	chmod +x ".work/bin/$program"
done

# A stamp keeps the hash of what was installed, so that a second run installs nothing.
installed() {
	[ -f ".work/$1.stamp" ] && [ "$(cat ".work/$1.stamp")" = "$2" ]
}
mkdir -p .work/bin

hash="$(cat package-lock.json .npmrc | sha256sum) $(node --version)"
if ! installed npm "$hash" || [ ! -d node_modules ]; then
	echo "== npm ci"
	npm ci --no-audit --no-fund --loglevel=error </dev/null
	echo "$hash" >.work/npm.stamp
fi

# The conformance suite needs Node 22 or newer, so it brings its own.
hash="$(cat conformance/package-lock.json conformance/.npmrc | sha256sum) $(uname -m)"
if [ -z "$door" ] && { ! installed conformance "$hash" || [ ! -x conformance/node_modules/node/bin/node ]; }; then
	echo "== npm ci in conformance"
	npm ci --prefix conformance --no-audit --no-fund --loglevel=error </dev/null
	echo "$hash" >.work/conformance.stamp
fi

# Agent CLIs that are driven by the full run only: they are large. Without a lock file, for one that is made where a registry lacks a
# package of another system is refused by npm ci.
hash="$(cat clis/package.json clis/.npmrc | sha256sum) $(node --version)"
if [ -z "$door" ] && { ! installed clis "$hash" || [ ! -d clis/node_modules ]; }; then
	echo "== npm install in clis"
	npm install --prefix clis --loglevel=error </dev/null
	echo "$hash" >.work/clis.stamp
fi

hash="$(sha256sum <requirements.txt) $(python3 --version)"
if ! installed venv "$hash" || [ ! -x .work/venv/bin/python ]; then
	echo "== python -m venv, pip install"
	rm -rf .work/venv
	python3 -m venv .work/venv
	.work/venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt </dev/null
	echo "$hash" >.work/venv.stamp
fi

# The OpenTelemetry Collector with what the tests need, and what exports to it.
hash="$(cat collector/go.* collector/main.go | sha256sum) $(go version)"
if [ -z "$door" ] && { ! installed collector "$hash" || [ ! -x .work/bin/collector ]; }; then
	echo "== go build in collector"
	(cd collector && CGO_ENABLED=0 go build -o ../.work/bin/collector .)
	echo "$hash" >.work/collector.stamp
fi

# A NATS server as its users run it, of the version that outlive-fleet embeds.
hash="$(cat ../outlive-fleet/go.mod | sha256sum) $(go version)"
if [ -z "$door" ] && { ! installed nats "$hash" || [ ! -x .work/bin/nats-server ]; }; then
	echo "== go build nats-server"
	(cd ../outlive-fleet && go build -o ../e2e/.work/bin/nats-server github.com/nats-io/nats-server/v2)
	echo "$hash" >.work/nats.stamp
fi

# The release that users upgrade from, out of the history of this checkout. Where that lacks it, the tests that need it fail and say so.
older="$(sed -n 's/^const olderCommit = "\(.*\)"$/\1/p' older_test.go)"
hash="$older $(go version)"
if [ -z "$door" ] && { ! installed older "$hash" || [ ! -x .work/older/outlive ]; } && git cat-file -e "$older^{commit}" 2>/dev/null; then
	echo "== go build outlive and outlive-fleet of $older"
	rm -rf .work/older
	mkdir -p .work/older/source
	(cd .. && git archive "$older") | tar -x -C .work/older/source
	cp -r .work/older/source/schema .work/older/schema
	# -buildvcs=false: it would be stamped with the commit that is checked out here.
	(cd .work/older/source && go build -buildvcs=false -o ../outlive ./cmd/outlive)
	(cd .work/older/source/outlive-fleet && go build -buildvcs=false -o ../../outlive-fleet .)
	rm -rf .work/older/source
	echo "$hash" >.work/older.stamp
fi

# Servers of other SDKs, each with its own lock file.
hash="$(cat servers/rmcp/Cargo.* servers/rmcp/src/* | sha256sum) $(cargo --version)"
if ! installed rmcp "$hash" || [ ! -x .work/bin/rmcp-server ]; then
	echo "== cargo build in servers/rmcp"
	target=${XDG_CACHE_HOME:-$HOME/.cache}/outlive-e2e/rmcp # as Go keeps what it has compiled: another clone does not wait for it again
	cargo build --locked --quiet --manifest-path servers/rmcp/Cargo.toml --target-dir "$target" </dev/null
	cp "$target/debug/rmcp-server" .work/bin/
	echo "$hash" >.work/rmcp.stamp
fi
hash="$(cat servers/mcpgo/* | sha256sum) $(go version)"
if ! installed mcpgo "$hash" || [ ! -x .work/bin/mcpgo-server ]; then
	echo "== go build in servers/mcpgo"
	go build -C servers/mcpgo -o "$PWD/.work/bin/mcpgo-server" . </dev/null
	echo "$hash" >.work/mcpgo.stamp
fi
