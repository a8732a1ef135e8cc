// Package backend keeps one MCP server alive behind one client connection. It is the keystone: the proxy puts it
// between a client's and a server's pipes, the gateway between its clients and its many servers.
//
// A [Backend] does no I/O, reads no clock and starts no goroutine. Its owner calls it with what happened (a line from
// the client, a line from the server, an exit, a tick of the clock) and it answers through [World]: lines to either
// side, processes to start and to end, events. One goroutine owns a Backend; nothing in it locks. So a thousand
// crashes at every message boundary are an ordinary table test.
//
// What lives where:
//
//	backend.go    the type, its options, the world it acts on
//	client.go     what comes from the client           server.go     what comes from the server
//	calls.go      every request in flight or waiting   flow.go       when a request may go out, and the queue
//	process.go    one process as its backend sees it    lifecycle.go  start, exit, end
//	spares.go     processes beside the serving one: overlap reload, standby, retirement
//	replay.go     telling a new process what the old one knew   recipe.go   calls repeated to it
//	vitals.go     whether the server still works        limits.go     what one process may take
//	memory.go     what earlier runs of the command have shown
//	recover.go    what becomes of requests whose server died
//	probe.go      server/discover on behalf of legacy servers
//	tools.go      the injected tools                    lists.go      reading lists     drift.go  telling of changes
//	asks.go       requests of the server to the client  listen.go     subscriptions/listen across processes
//	streams.go    when a server may be asked for streams, and what if it is silent after that
//	batch.go      JSON-RPC batches                      noise.go      server output that is no message
//	eras.go       whether client and server speak one era
//	bridge.go     where client and server speak different eras: a bridge.Bridge before all the rest
//	erachange.go  a bridge that comes or goes in the middle, because a restarted server speaks another era
//	refuse.go     every error outlive itself answers     status.go    what status shows
//
// A process is told nothing before its handshake is answered, initialize or server/discover, unless its client begins without
// one; and it is asked for streams only after it has answered for a list. It is ready when the handshake is answered.
//
// One process serves. Beside it there may be spares, which are being brought up or stand by, and retired ones, which
// finish what they were asked. Every call knows the generation of the process that has it.
//
// The hot path is one line relayed: [Backend.ClientLine] or [Backend.ServerLine], one scan, one look into a table, one
// forward. It allocates nothing.
package backend
