#!/usr/bin/env bash
# Installs the programs that outlive is measured beside, and the servers of others, from their registries into a directory:
#
#   bench/peers.sh DIR                     all of them
#   bench/peers.sh DIR faults gateway      those of some parts: faults, gateway, sharing (and transports)
#   go run ./bench gateway -peers DIR
#
# Packages of Debian are unpacked, not installed. What cannot be installed is left out, and the report names it. A program that was
# got in another way can be put into DIR/bin under the name used here, with a line "NAME VERSION" in DIR/versions.
set -uo pipefail
dir=${1:?usage: bench/peers.sh DIR [faults|gateway|sharing]...}
shift
[ $# -gt 0 ] || set -- faults gateway sharing
mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd)
touch "$dir/versions"

# version_is NAME VERSION
version_is() {
	sed -i "/^$1 /d" "$dir/versions"
	printf '%s %s\n' "$1" "$2" >>"$dir/versions"
}

# program NAME PATH VERSION: PATH is called NAME in DIR/bin.
program() {
	[ -x "$2" ] || return 0
	ln -sf "$2" "$dir/bin/$1"
	version_is "$1" "$3"
}

# npm_package PACKAGE VERSION COMMAND: each in a folder of its own.
npm_package() {
	local at="$dir/npm/$3"
	[ ! -x "$at/node_modules/.bin/$3" ] || return 0
	mkdir -p "$at"
	(cd "$at" && echo '{"private":true}' >package.json && npm install --no-audit --no-fund --loglevel=error "$1@$2") || return 0
	program "$3" "$at/node_modules/.bin/$3" "$(node -p "require('$at/node_modules/$1/package.json').version")"
}

# python_package PACKAGE[==VERSION] COMMAND NAME: each in an environment of its own, since they want different versions of the SDK.
python_package() {
	local at="$dir/pypi/${1%%==*}"
	python3 -m venv "$at" && "$at/bin/pip" install --quiet "$1" || return 0
	program "$3" "$at/bin/$2" "$("$at/bin/python" -c "import importlib.metadata as m; print(m.version('${1%%==*}'))")"
}

# deb_program NAME PACKAGE: s6 needs its own libraries; exec keeps the process number.
deb_program() {
	local path="$dir/root/usr/bin/$1"
	[ -x "$path" ] || return 0
	printf '#!/bin/sh\nLD_LIBRARY_PATH=%s/root/usr/lib/%s exec %s "$@"\n' "$dir" "$(uname -m)-linux-gnu" "$path" >"$dir/bin/$1"
	chmod +x "$dir/bin/$1"
	version_is "$1" "$(dpkg-deb -f "$dir"/debs/"$2"_*.deb Version)"
}

faults() {
	if command -v apt-get >/dev/null; then
		mkdir -p "$dir/debs" "$dir/root"
		(cd "$dir/debs" && apt-get download s6 runit tini libskarnet2.13 libexecline2.9 libs6-2.11)
		for deb in "$dir"/debs/*.deb; do
			dpkg -x "$deb" "$dir/root"
		done
		deb_program s6-supervise s6
		deb_program runsv runit
		deb_program tini tini
	fi
	python_package supervisor supervisord supervisord
	npm_package pm2 latest pm2-runtime
}

gateway() {
	npm_package supergateway 4.0.0 supergateway
	npm_package mcp-proxy 6.7.19 mcp-proxy
	npm_package @1mcp/agent 0.35.0 1mcp
	python_package fastmcp==4.1.2 fastmcp fastmcp
	# docker/mcp-gateway cannot be had by "go install": its go.mod replaces a module. The two secrets-engine modules are newer than
	# the ones it names, since these have been withdrawn.
	local docker=v0.43.3
	mkdir -p "$dir/docker"
	cat >"$dir/docker/go.mod" <<EOF
module peers

go 1.26.0

require (
	github.com/docker/mcp-gateway $docker
	github.com/docker/secrets-engine/client v0.0.30
	github.com/docker/secrets-engine/x v0.2.2-do.not.use
)

replace github.com/modelcontextprotocol/registry => github.com/docker/mcp-community-registry v0.0.0-20251024214917-21000e320421
EOF
	if (cd "$dir/docker" && GOFLAGS='-buildvcs=false -mod=mod' go build -o docker-mcp github.com/docker/mcp-gateway/cmd/docker-mcp); then
		program docker-mcp "$dir/docker/docker-mcp" "$docker"
	fi
}

sharing() {
	for name in server-filesystem server-memory server-sequential-thinking; do
		npm_package "@modelcontextprotocol/$name" 2026.8.31 "mcp-$name"
	done
	python_package mcp-server-time==2026.10.19 mcp-server-time mcp-server-time
	python_package mcp-server-git==2026.10.19 mcp-server-git mcp-server-git
	npm_package mcp-remote 0.15.1 mcp-remote
	npm_package supergateway 4.0.0 supergateway
	npm_package mcp-proxy 6.7.19 mcp-proxy
	python_package mcp-proxy==0.13.0 mcp-proxy mcp-proxy-pypi
}

for part in "$@"; do
	"$part"
done
cat "$dir/versions"
