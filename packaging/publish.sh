#!/usr/bin/env bash
# Makes a GitHub release of dist/, for the tag of the commit: run by the release workflow. Wants gh with GH_TOKEN, and cosign
# with an identity (keyless).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tag=$(git describe --exact-match --tags)
version=${tag#v}
# The section of the changelog.
awk -v v="## $version" 'index($0, "## ") == 1 { on = ($0 == v || index($0, v " ") == 1); next } on' CHANGELOG.md >packaging/.work/notes.md
[ -s packaging/.work/notes.md ]
cosign sign-blob --yes --bundle dist/checksums.txt.sigstore.json dist/checksums.txt
# A release has no folders: names are unique without them.
mapfile -t files < <(find dist -type f | sort)
gh release create "$tag" --verify-tag --title "outlive $version" --notes-file packaging/.work/notes.md "${files[@]}"
