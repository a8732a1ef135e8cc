// Package backend keeps one MCP server alive behind one client connection. It is the core of the
// program: the proxy puts it between a client's and a server's pipes, the gateway between its clients and its servers.
//
// A [Backend] does no I/O, reads no clock and starts no goroutine. Its owner calls it with what happened (a line from
// the client, a line from the server, an exit, a tick of the clock) and it answers through [World]: lines to either
// side, processes to start and to end, events. One goroutine owns a Backend; nothing in it locks. So a thousand
// crashes at every message boundary are an ordinary table test.
//
// The Backend itself takes lines apart and hands each to the part that it concerns. A part is a type with its own state, and
// embeds the core: there it finds the other parts, the call being handled, the processes, the session, and tables that decide
// nothing.
//
//	Backend    backend.go  the clock and the ends of processes     client.go, server.go  lines of either side
//	           arrays.go  JSON arrays of messages   status.go  what status shows   options.go, world.go  settings, what it acts on
//	           record.go  what must survive the program, and going on with it
//	core       core.go  and its tables:
//	           process.go, phase.go  one process, how far it has come     calls.go  every request in flight or waiting
//	           questions.go  what outlive asks a server     asks.go  what servers ask the client
//	           memory.go  what runs of the command have shown     history.go  what became of processes and restarts
//	           tally.go  what calls came to     reconnects.go  lost connections to a server elsewhere     tracing.go  spans of a request
//	flow       flow.go  when a request may go out, and the queue     refuse.go  how a request is refused or given up
//	           recover.go  what becomes of requests whose server died
//	handshake  handshake.go  the client's own; what it is told while the first start fails
//	replay     replay.go  telling a new process what the old one knew     replaycalls.go  calls repeated to it
//	eras       eras.go  whether client and server speak one era, and where they do not: a bridge.Bridge before all
//	           erachange.go  a bridge that comes or goes in the middle, because a restarted server speaks another era
//	prober     probe.go  server/discover on behalf of legacy servers
//	lists      lists.go  reading lists     drift.go  telling of changes
//	restartTools  tools.go  the injected tools
//	streams    streams.go  when a server may be asked for streams     listen.go  subscriptions/listen across processes
//	requestStates, tasks   states.go, tasks.go  what a server gave out, and what ended with its process
//	showing    showing.go  every message shown to those who watch; an atomic load for each while nobody does
//	noiseLog   noise.go  server output that is not a message
//	mender     mender.go what servers and clients get wrong about a message, where it is certain what is meant
//	healthWatch, limits    health.go  whether the server still works     limits.go, idle.go  what it may take, when it sleeps
//	longCalls  longcalls.go  progress of calls that nothing is heard of
//	spares     spares.go  processes beside the serving one: overlap reload, standby, retirement
//	lifecycle  lifecycle.go  the machine's events, and what it decides     ends.go  exit and end of a process, and of all
//
// A process is told nothing before its handshake is answered, initialize or server/discover, unless its client begins without
// one; and it is asked for streams only after it has answered for a list. It is ready when the handshake is answered.
//
// One process serves. Beside it there may be spares, which are being brought up or stand by, and retired ones, which
// finish what they were asked. Every call knows the generation of the process that has it. One that a bridge asks for carries
// the bridge's own bridge.Call, which outlives it: the flow answers the call and forgets it, the bridge answers its client.
//
// The hot path is one line relayed: [Backend.ClientLine] or [Backend.ServerLine], one scan, one look into a table, one
// forward. It allocates nothing, watched or not.
package backend
