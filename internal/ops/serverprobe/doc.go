// Package serverprobe starts one stdio MCP server as an AI client would, looks how it does, and ends it.
//
// [Run] starts the server through package child, once to ask server/discover, and once more for the handshake of the
// older era when that was refused, because a question before the handshake may have cost the first process its life.
// For each process it starts two goroutines, one for stdout and one for stderr; both end with their stream, and Run
// returns only after the process is gone and both have ended, or a quarter of a second later when something else
// holds the streams open. Nothing is shared between runs, so several may be under way at once.
package serverprobe
