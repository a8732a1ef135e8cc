// Package clients knows the AI clients whose configuration starts MCP servers: where their files are on each system,
// how a server is written in them, and how outlive is put in front of it and removed again.
//
// Every decision is in pure functions: [Client.Places] takes the system as an argument, [Client.Wrap] and [Client.Unwrap]
// take the bytes of a file and return the bytes of the new one. A file is never decoded and encoded again: package tree
// changes single values in the text, so that comments, order, indentation and unknown content are kept. Unwrap needs no
// record of what Wrap did, because the result shows it, and it keeps later edits of the user. Each edit is checked by
// undoing it before it is returned.
//
// [Find] is the only function that accesses the disk, and it only reads.
//
// The package starts no goroutine and has no state.
package clients
