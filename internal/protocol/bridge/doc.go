// Package bridge translates between the two eras of the Model Context Protocol, message by message, so that a client of
// one era can use a server that speaks the other one only.
//
// A [Bridge] stands between a client's lines and its server's. Towards the server it is a client of the server's era,
// towards the client a server of the client's; so whatever keeps the server alive behind it needs to know one era only,
// and what that knows of restarts (handshake, subscriptions, requests sent again) holds unchanged. A bridge
// itself hears of a restart only what any client would: a question withdrawn, a call answered.
//
// There is one Bridge for each client connection, and one for all modern clients of a gateway before a server they share.
// It does no I/O, reads no clock and starts no goroutine: its owner calls it with lines and times, and it answers with
// lines. One goroutine owns it; nothing in it locks. What belongs to others is spliced, never encoded anew.
//
// The two directions:
//
//	calls.go       in both directions: the calls on their way, in one table
//	told.go        likewise: what lasts of the conversation, and what no server has got, for who takes the bridge's place
//
//	legacyside.go  a client of the legacy era before a modern server: what it says
//	legacyserver.go  and what the server says to that
//	rounds.go      input_required becomes requests to the client, their answers one more round
//	watch.go       subscribe, unsubscribe and changed lists through one subscriptions/listen
//
//	modernside.go  a modern client before a server of the legacy era: handshake, and what it says
//	modernserver.go  and what the server says to that
//	suspended.go   requests of the server to the client become input_required; the call waits at the server
//	turns.go       calls that may be asked something, one after the other
//	state.go       the requestState by which a call that waits is found again, and by whom
//
// and the parts of that direction, each of which owns what it is named after:
//
//	listen.go      listens: subscriptions/listen through resources/subscribe
//	ask.go         questions: requests of the server that belong to no call yet; which call they belong to
//	attribution.go       the same where many clients share the server
//
// What they share is pure, and tested against the official schemas of both eras:
//
//	handshake.go                one handshake's result from the other's
//	capabilities.go, meta.go    what a client can do, and where each era says so
//	results.go, tools.go, content.go, errors.go  answers
//	request.go                  what a server asks of a client
//
// # Calls
//
// A [Call] is what the client waits for. The bridge owns it and alone removes it; who keeps the server carries it beside each request
// that the server gets for it ([Message]), and gives it back with the answer ([Bridge.Answered]), so that no id is looked up for that.
// Requests of the bridge's own are carried in the same way. A call is
//
//	queued     because its turn has not come (Queue): no request was made of it
//	sent       one request was made of it, which the keeper of the server has: in its own queue, at a process, or sent again
//	asked      of a legacy client, which is asked what the server wants to know: the request is answered, and another one, under
//	           another id, follows. Meanwhile no process knows of the call, and none can lose it
//	suspended  of a modern client, which was answered with questions: the request stays where it is, and the client's next round,
//	           under another id, waits for its answer
//	ended      answered, failed or cancelled, and out of the table. One that the client of a shared server has cancelled stays until
//	           no process works on it ([Bridge.Over], [Bridge.Reborn]), or for some time: a question may be for it
//
// An id is looked up where there is nothing but an id: in a client's cancellation, for progress, and for an answer that is late.
//
// # Limits
//
// Tasks exist in neither direction: the legacy era's are not offered, the modern extension is not declared, and a tool
// that runs as a task only is not shown. A legacy server knows one set of client capabilities, the handshake's; a request
// that has more gets them with a new handshake, but only while nothing else is in flight. Its log messages belong to a
// connection, so every request in flight that asks for their level gets them; where many clients share it, a request that
// is the only one. What it asks of a client cannot be told apart when several calls run; see ask.go and attribution.go. Progress
// of a call that waits for its client has nowhere to go: the last of it is told in the call's next round. A resource that a
// modern server does not have is an ordinary invalid parameter to a legacy client.
package bridge
