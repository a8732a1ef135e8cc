#!/usr/bin/env bash
# Makes packages and tests them: each is installed, run and removed in an empty environment without a network.
#
#   packaging/test.sh                                     all targets, in dist/
#   packaging/test.sh -targets linux/amd64 -out /tmp/x    what `go run .` takes
#   packaging/test.sh -smoke …                            tests what is in them, and installs and runs the archives and the deb only
#   OUTLIVE_DIST_COLD=1 packaging/test.sh                 the second build, which must be equal, compiles everything anew
set -euo pipefail
tests=()
if [ "${1:-}" = -smoke ]; then
	shift
	tests=(-test.run '^(TestChecksums|TestArchive|TestDeb|TestRpm|TestApk|TestBillOfMaterials|TestFleetArchive|TestThereIsNoNetwork|TestProgramsNameNoMachine)$')
fi
args=("$@")
out=
for ((i = 0; i < $# - 1; i++)); do
	if [ "${args[i]}" = -out ]; then
		out=$(realpath -m "${args[i + 1]}") # where it is seen from here
		args[i + 1]=$out
	fi
done
cd "$(dirname "${BASH_SOURCE[0]}")"
if [ ${#tests[@]} = 0 ]; then
	bash install.sh
	go test ./fleet # by itself: the door does without the libraries that read Kubernetes' files
fi
go run . "${args[@]}"
mkdir -p .work
go test -c -o .work/packaging.test .
quiet=()
if unshare -rn true 2>/dev/null; then
	quiet=(unshare -rn env OUTLIVE_NO_NETWORK=1)
else
	echo "unshare is not permitted: the tests run with a network"
fi
OUTLIVE_DIST=${out:-$PWD/../dist} "${quiet[@]}" .work/packaging.test -test.timeout 20m -test.v "${tests[@]}" >.work/test.log 2>&1 </dev/null || {
	cat .work/test.log
	exit 1
}
grep -E '^ *--- SKIP' -A1 .work/test.log || true
sed -n '/^from /,$p' .work/test.log
echo "packages: $(grep -c '^--- PASS' .work/test.log) tests passed"
