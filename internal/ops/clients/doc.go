// Package clients knows the AI clients whose configuration starts MCP servers: where their files are on each system,
// how a server is written in them, and how outlive is put in front of it and taken away again.
//
// Everything that decides is pure: [Client.Places] takes the system as an argument, [Wrap], [Unwrap], [Gather] and
// [Scatter] take the bytes of a file and return the bytes of the new one. A file is never decoded and encoded again:
// room edit changes single values in the text, so comments, order, indentation and everything nobody knows stay as they
// are. What an edit of [Wrap] did can be read off its result, so that [Unwrap] needs no record of it and leaves later
// edits of the user alone; each edit is checked by undoing it before it is handed out. [Gather] moves entries to
// another file and does leave a [Record].
//
// [Find] is the only function that touches the disk, and it only reads.
//
// The package starts no goroutine and owns no state.
package clients
