// Command gateway measures `outlive gateway` beside other programs that put a stdio server behind HTTP.
//
//	go run ./bench/gateway -peers DIR    everything, about a quarter of an hour; writes its section of docs/BENCHMARKS.md and docs/gateway.svg
//	go run ./bench/gateway -quick        a little of everything, writes nothing
//	go run ./bench/gateway -only load,kills -gateways outlive,docker -peers DIR
//	go run ./bench/gateway -peer 'NAME=COMMAND ARG… {server} … {port}'
//
// bench/gateway/peers.sh installs the others; what is not there is named as missing, and what fails is named as failed. The
// server is bench/echo. outlive runs with its default settings; those of the others stand in peers_linux.go and in the report.
//
// Measured are: calls a second, round trips and memory with 16 and with 128 sessions that call without a pause (load); what a
// session sees when its server is killed (kills); both once more with the Python SDK's client (checks); memory and processes
// with more and more sessions, and with more and more servers (sessions, backends); outlive with lazy servers (lazy).
//
// A machine that does other things too makes single figures worthless, so under load the gateways take turns within the same
// seconds (A B C, B C A, …), each round starts all of them anew, each figure is the mean over the middle half of the blocks, and
// ratios are taken within a round. The client writes requests and reads answers with next to no work of its own (wire.go),
// because it takes the processor away from what is measured; one block in each round is taken with a second client that shares
// no code with it (check_linux.go).
//
// Goroutines: main, which measures; one for each connection during a block or while sessions are opened; one for each started
// gateway, which waits for its end.
package main
