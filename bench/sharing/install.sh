#!/usr/bin/env bash
# Installs the servers, and the programs that outlive is measured beside, from npm and PyPI into a directory of their own:
#
#   bench/sharing/install.sh DIR
#   go run ./bench/sharing -installed DIR
set -euo pipefail
dir=${1:?usage: bench/sharing/install.sh DIR}
mkdir -p "$dir/npm" "$dir/bin"
dir=$(cd "$dir" && pwd)
: >"$dir/versions"

servers=(@modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31
	@modelcontextprotocol/server-sequential-thinking@2026.8.31)
peers=(mcp-remote@0.15.1 supergateway@4.0.0 mcp-proxy@6.7.19)
(cd "$dir/npm" && echo '{"private":true}' >package.json && npm install --no-audit --no-fund --loglevel=error "${servers[@]}" "${peers[@]}")
for package in "${peers[@]}"; do
	ln -sf "../npm/node_modules/.bin/${package%@*}" "$dir/bin/${package%@*}"
	echo "${package%@*} (npm) ${package##*@}" >>"$dir/versions"
done

# name PACKAGE VERSION: each in an environment of its own, since they want different versions of the SDK.
pypi() {
	python3 -m venv "$dir/pypi/$1"
	"$dir/pypi/$1/bin/pip" install --quiet "$1==$2"
}
pypi mcp-server-time 2026.10.19
pypi mcp-server-git 2026.10.19
pypi mcp-proxy 0.13.0
ln -sf "../pypi/mcp-proxy/bin/mcp-proxy" "$dir/bin/mcp-proxy-pypi"
echo "mcp-proxy (PyPI) 0.13.0" >>"$dir/versions"
cat "$dir/versions"
