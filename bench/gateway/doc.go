// Command gateway measures `outlive gateway` beside other programs that put a stdio server behind HTTP.
//
//	go run ./bench/gateway -peers DIR    everything, some minutes; writes its section of docs/BENCHMARKS.md and docs/gateway.svg
//	go run ./bench/gateway -quick        half a minute, writes nothing
//	go run ./bench/gateway -peer 'NAME=COMMAND ARG… {server} … {port}'
//
// bench/gateway/peers.sh installs the others; what is not there is named as missing. The server is bench/echo, the load
// 16 connections with a session each, every one of them waiting for its answer before it calls again.
//
// A machine that does other things too makes single figures worthless, so the gateways take turns within the same seconds
// (A B C, B C A, …), each round starts all of them anew, and each figure is the mean over the middle half of the blocks.
// The client writes requests and reads answers with next to no work of its own (wire.go), because it takes the processor
// away from what is measured.
//
// Goroutines: main, which measures; one for each connection during a block; one for each started gateway, which reads its
// stderr until it ends.
package main
