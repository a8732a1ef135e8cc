// Command sharing measures servers that several sessions share, and the ways between stdio and HTTP:
//
//	bench/sharing/install.sh DIR
//	go run ./bench/sharing -installed DIR
//
// Memory: ten sessions, each with the same five servers from npm and PyPI, as `outlive run` and as `outlive run
// --shared` with default settings. Every process that exists because of the sessions counts: runs, keepers, the
// daemon and the servers.
//
// Latency: the round trip of a small call to the server itself, behind `outlive run` and behind `outlive run
// --shared`, which take turns in one run. The client writes and reads the pipes with plain system calls.
//
// Transports: `outlive run URL` beside mcp-remote, and `outlive gateway --listen ADDR -- CMD` beside supergateway and
// both programs called mcp-proxy, likewise in turns.
//
// The sections "sharing" (memory and latency) and "transports" of docs/BENCHMARKS.md are rewritten, or with -only one of them. The program starts a goroutine for each call that is to be
// in flight over HTTP, and those of net/http; the server at the URL is this program once more.
package main
