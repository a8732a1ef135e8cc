// Package gateway is `outlive gateway`: many clients before many servers, each server kept alive by a backend.Backend.
//
// A [Gateway] decides and does no I/O: its methods take messages of clients and servers with a time, and it acts through
// its [World] and its clients' [Stream]s. A [Runner] is the world: it puts the gateway, and a host.Host for every server
// process, on one lineloop.Loop. The goroutine of [Runner.Run] owns all of it. The goroutines of an HTTP front reach it
// only through Post, and get their lines through Streams that never block; besides them there are the hosts' own
// (package host).
//
// Between a client and a server:
//
//	Session   one client: what it said, what it has seen, its open requests         session.go client.go subscription.go listen.go
//	          its arrays of messages; whose a request is; our own tools             array.go dispatch.go tools.go
//	scope     the links that a session uses: its own, or those of all modern clients scope.go
//	          those that legacy clients share; of run --shared by abilities, roots  pool.go roots.go join.go
//	view      the part of all servers that a client sees                            view.go
//	server    what is known of a server from all its processes                      standing.go memory.go
//	Link      one kept server, whose client the gateway is: handshake, lists, calls link.go handshake.go upstream.go
//	listing   its part that reads the server's lists                                lists.go
//	exchange  one request in flight: whose it is, and its id at the server          exchange.go
//	ask       one request of a server to a client, and which client that is         asks.go attribution.go
//
// A legacy client has its own process of each server, because the protocol keeps state in the connection; with
// Server.Shared it uses a shared one. Modern requests carry all their state and share one process for each server, or
// Server.Instances of them.
//
// Over HTTP a session of the legacy era can go on at another gateway, from its record (record.go).
//
// Messages to servers go to an outbox first and are sent when the present message is handled: a backend may answer at
// once, and its calls must not nest.
package gateway
