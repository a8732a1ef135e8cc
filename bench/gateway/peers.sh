#!/usr/bin/env bash
# Installs the gateways that outlive is measured beside, from their package registries, into a directory of their own:
#
#   bench/gateway/peers.sh DIR
#   go run ./bench/gateway -peers DIR
#
# What cannot be installed is left out, and the report names it. A program that was got in another way can be put into
# DIR/bin under the name used here, with a line "NAME VERSION" in DIR/versions.
set -uo pipefail
dir=${1:?usage: bench/gateway/peers.sh DIR}
mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd)
touch "$dir/versions"

# program NAME PATH VERSION: PATH is called NAME in DIR/bin.
program() {
	[ -x "$2" ] || return 0
	ln -sf "$2" "$dir/bin/$1"
	sed -i "/^$1 /d" "$dir/versions"
	printf '%s %s\n' "$1" "$3" >>"$dir/versions"
}

# npm_package PACKAGE VERSION COMMAND
npm_package() {
	local at="$dir/npm/$3"
	mkdir -p "$at"
	(cd "$at" && echo '{"private":true}' >package.json && npm install --no-audit --no-fund --loglevel=error "$1@$2") || return 0
	program "$3" "$at/node_modules/.bin/$3" "$(node -p "require('$at/node_modules/$1/package.json').version")"
}

npm_package supergateway 4.0.0 supergateway
npm_package mcp-proxy 6.7.19 mcp-proxy
npm_package @1mcp/agent 0.35.0 1mcp

if python3 -m venv "$dir/fastmcp" && "$dir/fastmcp/bin/pip" install --quiet fastmcp==4.1.2; then
	program fastmcp "$dir/fastmcp/bin/fastmcp" "$("$dir/fastmcp/bin/python" -c 'import importlib.metadata as m; print(m.version("fastmcp"))')"
fi

# docker/mcp-gateway cannot be had by "go install": its go.mod replaces a module. The two secrets-engine modules are newer than
# the ones it names, since these have been withdrawn.
docker=v0.43.3
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
cat "$dir/versions"
