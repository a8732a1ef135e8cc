#!/usr/bin/env bash
# Installs the supervisors that the fault matrix stands beside, into a directory of their own:
#
#   bench/peers.sh DIR
#   go run ./bench -faults -peers DIR
#
# Packages of Debian are unpacked, not installed; pm2 comes from npm and supervisord from pip. What cannot be installed
# is left out, and the matrix says so.
set -uo pipefail
dir=${1:?usage: bench/peers.sh DIR}
mkdir -p "$dir/bin" "$dir/debs" "$dir/root" "$dir/pm2"
dir=$(cd "$dir" && pwd)
: >"$dir/versions"

# program NAME PATH VERSION: PATH is called NAME from now on.
program() {
	[ -x "$2" ] || return 0
	# s6 needs its own libraries; exec keeps the process number.
	printf '#!/bin/sh\nLD_LIBRARY_PATH=%s/root/usr/lib/%s exec %s "$@"\n' "$dir" "$(uname -m)-linux-gnu" "$2" >"$dir/bin/$1"
	chmod +x "$dir/bin/$1"
	printf '%s %s\n' "$1" "$3" >>"$dir/versions"
}

if command -v apt-get >/dev/null; then
	(cd "$dir/debs" && apt-get download s6 runit tini libskarnet2.13 libexecline2.9 libs6-2.11)
	for deb in "$dir"/debs/*.deb; do
		dpkg -x "$deb" "$dir/root"
	done
	version() { dpkg-deb -f "$dir"/debs/"$1"_*.deb Version; }
	program s6-supervise "$dir/root/usr/bin/s6-supervise" "$(version s6)"
	program runsv "$dir/root/usr/bin/runsv" "$(version runit)"
	program tini "$dir/root/usr/bin/tini" "$(version tini)"
fi
if python3 -m venv "$dir/venv" && "$dir/venv/bin/pip" install --quiet supervisor; then
	program supervisord "$dir/venv/bin/supervisord" "$("$dir/venv/bin/supervisord" --version)"
fi
if (cd "$dir/pm2" && echo '{"private":true}' >package.json && npm install --no-audit --no-fund pm2); then
	program pm2-runtime "$dir/pm2/node_modules/.bin/pm2-runtime" "$(node -p "require('$dir/pm2/node_modules/pm2/package.json').version")"
fi
cat "$dir/versions"
