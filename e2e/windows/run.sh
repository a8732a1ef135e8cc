#!/usr/bin/env bash
# Runs outlive for Windows under Wine: the tests of all rooms, 200 kills, and the commands that people use. Prints counts.
#
#   e2e/windows/run.sh             everything
#   e2e/windows/run.sh smoke       only the rooms that differ by system, 20 kills, and the commands
#   e2e/windows/run.sh audit cli   only the tests of these rooms
#
# Needs Debian's wine (8.0) and a compiler for Windows; as root they are installed. Everything else is in e2e/windows/.work.
# docs/WINDOWS.md says what this shows, and what it cannot show. missing.txt names the tests that Wine cannot pass.
set -euo pipefail
# Wine wants one fixed page of memory, and Linux may have put the heap of its loader there: about one program of 4,500 then ends
# with status 1 before it begins ("failed to map the shared user data"). Without random addresses it is never there.
if [ "$(cat /proc/$$/personality 2>/dev/null)" = 00000000 ] && setarch -R true 2>/dev/null; then
	exec setarch -R bash "${BASH_SOURCE[0]}" "$@"
fi
cd "$(dirname "${BASH_SOURCE[0]}")"
here=$PWD work=$PWD/.work root=$(cd ../.. && pwd)
smoke=
if [ "${1:-}" = smoke ]; then
	smoke=1 KILLS=${KILLS:-20} LIMIT=${LIMIT:-240}
	shift
	set -- $(cd "$root" && ls internal/*/*/*_windows*.go | xargs -n1 dirname | xargs -n1 basename | sort -u)
fi
KILLS=${KILLS:-200}
LIMIT=${LIMIT:-600} # seconds after which the tests of one room hang; how long they take is told
compiler=x86_64-w64-mingw32-gcc-win32

install_wine() {
	command -v wine >/dev/null && command -v "$compiler" >/dev/null && return
	local packages=(wine wine64 gcc-mingw-w64-x86-64-win32)
	if [ "$(id -u)" != 0 ]; then
		echo "windows: install ${packages[*]}, or run this as root" >&2
		exit 1
	fi
	echo "== apt-get install ${packages[*]}"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >"$work/apt.log" 2>&1 ||
		{ tail -n 20 "$work/apt.log" >&2; exit 1; }
}

# A prefix of our own, and in it the library that Wine 8 lacks.
make_prefix() {
	export WINEPREFIX=$work/prefix WINEDEBUG=-all WINEDLLOVERRIDES='bcryptprimitives=n;mscoree=;mshtml='
	[ -d "$WINEPREFIX/drive_c/windows/system32" ] || wineboot -i >"$work/wineboot.log" 2>&1
	"$compiler" -Os -shared -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" bcryptprimitives.c -ladvapi32
	# Files of tests are in memory where there is room for them: a monitor's database waits for the disk at each step.
	local temp
	for temp in "$WINEPREFIX"/drive_c/users/*/Temp; do :; done
	rm -rf "$temp"
	if [ -w /dev/shm ] && [ "$(df --output=avail /dev/shm | tail -n 1)" -gt 1000000 ]; then
		memory=$(mktemp -d /dev/shm/outlive-windows-XXXXXX)
		ln -s "$memory" "$temp"
	else
		mkdir "$temp"
	fi
	wineserver -p 2>/dev/null || true # it stays between two programs, until the end
	wine --version
}

memory=
end() {
	wineserver -k 2>/dev/null || true # of our prefix alone
	[ -z "$memory" ] || rm -rf "$memory"
}

build() {
	echo "== go build for Windows"
	mkdir -p "$work/std" "$work/bin"
	(cd "$here/.." && go run ./overlay wine "$work/std")
	export GOOS=windows GOARCH=amd64 CGO_ENABLED=0
	(
		cd "$root"
		go build -overlay "$work/std/overlay.json" -ldflags='-s -w' -o "$work/outlive.exe" ./cmd/outlive
		local package
		while read -r package; do
			wanted "$package" && echo "$package"
		done < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./internal/... | sed '/^$/d; s,^.*/internal/,internal/,') >"$work/rooms"
		rm -f "$work"/bin/*
		sed 's,^,./,' "$work/rooms" | xargs go test -c -tags wine -vet=off -overlay "$work/std/overlay.json" -ldflags='-s -w' -o "$work/bin/"
	)
	unset GOOS GOARCH CGO_ENABLED
}

rooms=("$@")
wanted() {
	[ ${#rooms[@]} = 0 ] && return
	local room
	for room in "${rooms[@]}"; do
		[ "${1##*/}" != "$room" ] || return 0
	done
	return 1
}

# in_wine runs a room's tests where their files are.
in_wine() {
	local room=$1 seconds=$2
	shift 2
	(cd "$root/$room" && timeout -k 5 "$seconds" wine "$work/bin/${room##*/}.test.exe" -test.v "$@" </dev/null)
}

test_room() {
	local room=$1 name=${1##*/} status=0 begin=$SECONDS
	in_wine "$room" "$LIMIT" -test.timeout "$((LIMIT - 10))s" >"$work/$name.log" 2>&1 || status=$?
	echo "$status" >"$work/$name.status"
	echo "$((SECONDS - begin)) s $room" >>"$work/times"
}

result() { awk -v kind="--- $1:" 'index($0, kind) == 1 {print $3}' "$work/$2.log"; }
# listed are the tests of a room, or parts of tests, that Wine cannot pass, or passes by luck.
listed() { awk -v room="$1" '$1 == room {print $2}' "$here/missing.txt"; }

# excused says whether a log has only such failures of a test.
excused() {
	listed "$1" | awk -v test="$2" '
		NR == FNR {listed[$1]; while (sub(/\/[^\/]*$/, "")) above[$1]; next}
		/^ *--- FAIL:/ && ($3 == test || index($3, test "/") == 1) {
			if ($3 in listed) some = 1
			else if (!($3 in above)) other = 1
		}
		END {exit other || !some}' - "$3"
}

passed=0 failed=0 skipped=0 without=0
fail() {
	echo "FAIL $*"
	failed=$((failed + 1))
}

# judge_room counts. What Wine cannot do is in missing.txt; what fails otherwise gets one more chance, alone, and is told.
judge_room() {
	local room=$1 name=${1##*/} test before=$failed
	if [ "$(cat "$work/$name.status")" != 0 ] && ! grep -aq '^=== RUN' "$work/$name.log"; then # where the loader's addresses stay random
		echo "again $room: ended with status $(cat "$work/$name.status") before its first test"
		test_room "$room"
	elif [ "$(cat "$work/$name.status")" != 0 ] && grep -aq '^wine client error' "$work/$name.log"; then # its client has lost its server
		echo "again $room: $(grep -am 1 '^wine client error' "$work/$name.log")"
		test_room "$room"
	fi
	passed=$((passed + $(result PASS "$name" | wc -l)))
	for test in $(listed "$room"); do
		if grep -aqE "^ *--- PASS: $test " "$work/$name.log"; then
			echo "listed in missing.txt, and passes this time: $room $test"
		fi
	done
	skipped=$((skipped + $(result SKIP "$name" | wc -l)))
	local failing
	failing=$(result FAIL "$name")
	for test in $failing; do
		if excused "$room" "$test" "$work/$name.log"; then
			without=$((without + 1))
		elif in_wine "$room" 90 -test.run "^$test\$" >"$work/$name.again" 2>&1; then
			echo "again $room $test: passed alone"
			passed=$((passed + 1))
		elif excused "$room" "$test" "$work/$name.again"; then
			without=$((without + 1))
		else
			grep -av '^=== ' "$work/$name.again" | tail -n 30
			fail "$room $test"
		fi
	done
	# A panic or a limit ends the others, too.
	if [ "$(cat "$work/$name.status")" != 0 ] && [ -z "$failing" ]; then
		echo "the end of its log, $(wc -c <"$work/$name.log") bytes:"
		tail -n 30 "$work/$name.log"
		fail "$room ended with status $(cat "$work/$name.status")"
	fi
	[ "$failed" = "$before" ] || return 0
	echo "ok   $room ($(result PASS "$name" | wc -l))"
}

test_rooms() {
	echo "== tests under Wine"
	# Two at a time; those that take longest are begun first: the one with the kills, and the one with a database.
	rm -f "$work/times"
	OUTLIVE_TEST_KILLS=$KILLS
	export OUTLIVE_TEST_KILLS
	local room running=0
	while read -r room; do
		test_room "$room" &
		running=$((running + 1))
		if [ "$running" -ge 2 ]; then
			wait -n
			running=$((running - 1))
		fi
	done < <(grep -E '/(cli|monitor)$' "$work/rooms" | sort -r || true; grep -vE '/(cli|monitor)$' "$work/rooms")
	wait
	echo "the slowest:"
	sort -rn "$work/times" | head -n 10
	while read -r room; do
		judge_room "$room"
	done <"$work/rooms"
	grep -ahE ' kills, .* calls' "$work"/*.log || true
}

# check runs a command of people's and looks for what it should say.
check() {
	local what=$1 want=$2 out
	shift 2
	out=$(timeout 120 "$@" 2>&1 </dev/null) || true
	if grep -aqE "$want" <<<"$out"; then
		passed=$((passed + 1))
		echo "ok   $what"
	else
		tail -n 20 <<<"$out"
		fail "$what: does not say $want"
	fi
}

commands() {
	echo "== commands under Wine"
	local exe home program session roaming
	exe=$work/outlive.exe
	home=$work/home
	rm -rf "$home"
	mkdir -p "$home/state"
	for roaming in "$WINEPREFIX"/drive_c/users/*/AppData/Roaming; do :; done # Wine takes %APPDATA% from nowhere else
	mkdir -p "$roaming/Claude"
	program=$(winepath -w "$exe")
	OUTLIVE_STATE_HOME=$(winepath -w "$home/state")
	export OUTLIVE_STATE_HOME
	check version '^outlive ' wine "$exe" --version
	check demo ' 0 errors' wine "$exe" demo

	# A run that stays while status, logs and restart ask for it.
	mkfifo "$home/in"
	wine "$exe" run --name here -- "$program" outlive-mcptest-server -stderr-flood 20 <"$home/in" >"$home/out" 2>"$home/err" &
	session=$!
	exec 9>"$home/in"
	echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}' >&9
	echo '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&9
	echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":20,"b":22}}}' >&9
	check 'run' '"id":2.*42' timeout 30 bash -c "until grep -a '\"id\":2' '$home/out'; do sleep 0.1; done"
	check status 'here' wine "$exe" status
	check restart 'here' wine "$exe" restart here
	check logs '[a-z]{5}' wine "$exe" logs here
	exec 9>&-
	wait "$session" || fail "run ended with status $?"

	cat >"$home/outlive.yaml" <<-YAML
		servers:
		  one:
		    command: '$program'
		    args: [outlive-mcptest-server]
	YAML
	check gateway '"id":1.*serverInfo' bash -c "(echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"sh\",\"version\":\"1\"}}}'; sleep 5) | wine '$exe' gateway -c '$(winepath -w "$home/outlive.yaml")' 2>/dev/null"

	printf '{\n  "mcpServers": {\n    "one": {"command": "C:\\\\tools\\\\one.exe", "args": ["x"]}\n  }\n}\n' >"$roaming/Claude/claude_desktop_config.json"
	cp "$roaming/Claude/claude_desktop_config.json" "$home/before"
	check wrap 'one' wine "$exe" wrap
	check 'wrapped' 'outlive' cat "$roaming/Claude/claude_desktop_config.json"
	check unwrap 'one' wine "$exe" unwrap
	check 'unwrapped as it was' '^same$' bash -c "cmp '$home/before' '$roaming/Claude/claude_desktop_config.json' && echo same"
}

mkdir -p "$work"
trap end EXIT
install_wine
make_prefix
build
test_rooms
[ ${#rooms[@]} != 0 ] && [ -z "$smoke" ] || commands
echo "windows: $passed passed, $failed failed, $skipped skipped, $without need a function that Wine does not have"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
