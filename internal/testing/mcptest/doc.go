// Package mcptest holds a scripted MCP server that fails on demand and a client that checks every answer.
//
// It is test support for the rooms above and the built-in server of `outlive demo`; no test package is imported.
//
//   - [ServerMain] is the server: stdio, both eras, faults by flag (see [Usage]) and by tool. [Reexec] turns the
//     running binary into it, [Command] gives the command line for that.
//   - [Client] speaks raw lines: ids are chosen byte for byte, each request must get exactly one answer with
//     exactly those bytes, everything else is recorded. [Spawn] puts one in front of a command.
//
// Goroutines of a server: one reads stdin; each call that takes time has one; a signal goroutine while
// -ignore-term is set. They end with stdin's EOF. The tools crash and exit end the whole process, so a server that
// runs inside a test's own process must not be asked to do that.
//
// Goroutines of a client: one reads lines until EOF; each handled request of the server has one until its handler
// returns. [Client.Close] closes the stream and waits for the reader.
package mcptest
