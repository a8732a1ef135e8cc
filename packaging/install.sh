#!/usr/bin/env bash
# Installs what the tests of the packages need besides Node and Python: uv, in a folder of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
hash="$(sha256sum <requirements.txt) $(python3 --version)"
if [ ! -x .work/venv/bin/uvx ] || [ "$(cat .work/venv.stamp 2>/dev/null)" != "$hash" ]; then
	rm -rf .work/venv
	python3 -m venv .work/venv
	.work/venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt </dev/null
	echo "$hash" >.work/venv.stamp
fi
