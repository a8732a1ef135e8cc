// Package mcptest has a scripted MCP server that fails on demand, and a client that checks every answer.
//
// It is support for other packages' tests and the built-in server of `outlive demo`; it does not import package
// testing.
//
//   - [ServerMain] is the server: stdio, both eras, faults by flag (see [Usage]) and by tool. [Reexec] turns the
//     running binary into it, [Command] returns the command line for that.
//   - [Client] speaks raw lines: ids are chosen byte for byte, each request must get exactly one answer with
//     exactly those bytes, everything else is recorded. [Spawn] connects one to a command.
//
// Goroutines of a server: one reads stdin; each call that takes time has one; there is one for signals while
// -ignore-term is set. They end with stdin's EOF. The tools crash and exit end the whole process, so they must not be
// called on a server that runs inside a test's own process.
//
// Goroutines of a client: one reads lines until EOF; each handled request of the server has one until its handler
// returns. [Client.Close] closes the stream and waits for the reader.
package mcptest
