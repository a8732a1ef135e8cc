// Package gateway is `outlive gateway`: many clients before many servers, each server kept alive by a backend.Backend.
//
// A [Gateway] decides and does no I/O: it takes what clients and servers say, and a time, and answers through its [World]
// and the [Stream]s of its clients. A [Runner] is the world: it puts the gateway, and a host.Host for every server process,
// on one lineloop.Loop. The goroutine of [Runner.Run] owns all of it. The goroutines of an HTTP front reach it through Post
// only, and get their lines through Streams that never block; beside them there are the hosts' own (package host).
//
// What stands between a client and a server:
//
//	Session   one client: what it said, what it has seen, what it waits for          session.go client.go subscription.go listen.go
//	scope     which links a session uses: its own, or those all modern clients share  scope.go
//	server    what is known of it, whoever has made the experience                    standing.go memory.go
//	Link      one kept server as the gateway is its client: handshake, lists, calls   link.go greet.go upstream.go
//	listing   its part that has the server's lists, and reads them                   lists.go
//	leveling  its part that has the server's log level                               level.go
//	exchange  one request on its way: whose it is, and under which id                 exchange.go
//	ask       one request of a server on its way to a client                          asks.go
//
// A client of the legacy era has its own process of each server, because the protocol keeps state in the connection; with
// Server.Shared it uses the one that all have. Requests of the modern era carry everything with them and share one process
// for each server, or Server.Instances of them.
//
// What goes to a server is put into an outbox first and handed over when nothing is being handled any more: a backend may
// answer at once, and must not be called while it is calling.
package gateway
