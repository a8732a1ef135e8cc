// Command bench measures what outlive costs: side by side and interleaved in
// one run, it compares a server reached directly, through a plain
// byte relay in Go (package floor), and through outlive.
//
//	go run ./bench              everything, about seven minutes; writes docs/BENCHMARKS.md and docs/benchmarks.svg
//	go run ./bench -quick       about a minute, writes nothing
//	go run ./bench -check       exits 1 when a promised ratio is broken
//	go run ./bench -restarts 10000
//	go run ./bench -server "Python SDK=python3 server.py"
//	go run ./bench -launcher "everything=npx -y @modelcontextprotocol/server-everything"
//	go run ./bench -only reloads -reloads 500
//	go run ./bench -only taps -check    calls that somebody watches with outlive tap
//	go run ./bench -faults -peers DIR   who is left when something is killed, some minutes; see package faults and peers.sh
//
// How it measures. A machine that does other things too makes single figures
// worthless, so every comparison is between blocks that took turns within the
// same seconds (A B C, B C A, …), each round starts its processes anew because
// their placement on cores decides much, and each figure is the mean over the
// middle half of the blocks. The client is one locked thread of raw system calls with garbage
// collection off. "Added" is the figure through the relay minus the direct one.
//
// Goroutines: main, which measures; a timer that kills a peer which does not
// answer in time; one per killed or closed peer that waits for its end; and,
// with -faults, one for each cell under way.
package main
