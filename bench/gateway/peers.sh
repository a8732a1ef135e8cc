#!/usr/bin/env bash
# Installs the gateways that outlive is measured beside, into a directory of their own:
#
#   bench/gateway/peers.sh DIR
#   go run ./bench/gateway -peers DIR
#
# What cannot be installed is left out, and the report names it.
set -uo pipefail
dir=${1:?usage: bench/gateway/peers.sh DIR}
mkdir -p "$dir/bin" "$dir/npm"
dir=$(cd "$dir" && pwd)
(cd "$dir/npm" && echo '{"private":true}' >package.json && npm install --no-audit --no-fund --loglevel=error supergateway@4.0.0 mcp-proxy@6.7.19)
for name in supergateway mcp-proxy; do
	if [ -x "$dir/npm/node_modules/.bin/$name" ]; then
		ln -sf "$dir/npm/node_modules/.bin/$name" "$dir/bin/$name"
	fi
done
ls "$dir/bin"
