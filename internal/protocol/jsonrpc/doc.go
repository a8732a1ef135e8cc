// Package jsonrpc reads, splices and builds single lines of JSON-RPC 2.0, and decodes only what is needed.
//
// [Envelope.Scan] is the hot path of the whole program: every relayed line is scanned once, in both directions. In
// one pass and without allocating it validates the whole text and records the positions of the few members that
// decide what happens to the line. Everything else here serves three rules: bytes are forwarded unchanged ([Replace],
// [Set], [Delete] and [AppendElements] keep every byte they were not asked to change), ids are compared by value and
// answered byte for byte ([SameID], [HashID]), and nothing invalid is forwarded ([Sanitize], [RecoverID]).
//
// The package has no state, starts no goroutine and keeps no reference to the bytes it is given: a [Span] is two
// offsets, valid until the caller changes the line. All functions may be called from any goroutine; one Envelope
// belongs to one goroutine at a time. In all append-style functions dst may be nil and must not overlap the other
// arguments.
//
// If an object has a member twice, the last one counts, as in every JSON parser in use; only the top level of a
// message must not have duplicates ([ErrDuplicateKey]).
package jsonrpc
