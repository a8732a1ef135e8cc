// Package serverprobe starts one stdio MCP server as an AI client would, looks how it does, and ends it.
//
// [Run] starts the server through package child, once for the handshake of the older era, and once more to ask
// server/discover, which may cost a server its life. A launcher such as npx installs the server before it starts it: that is
// waited for, and a launcher that is given up has the time to undo what it has begun.
// For each process it starts two goroutines, one for stdout and one for stderr; both end with their stream, and Run
// returns only after the process is gone and both have ended, or a quarter of a second later when something else
// holds the streams open. Nothing is shared between runs, so several may be under way at once.
package serverprobe
