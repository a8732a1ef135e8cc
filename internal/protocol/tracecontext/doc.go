// Package tracecontext is the W3C trace context as MCP carries it (SEP-414): traceparent in a request's _meta. It gives each request of
// a client two spans, of which others make the records: one towards the client, and below it one towards the server, whose context the
// server is told. It has no randomness of its own, and starts no goroutine.
package tracecontext
