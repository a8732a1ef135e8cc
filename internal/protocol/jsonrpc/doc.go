// Package jsonrpc reads, splices and builds single lines of JSON-RPC 2.0 without decoding what nobody needs decoded.
//
// [Envelope.Scan] is the hot path of the whole program: every relayed line passes through it once, in both directions.
// It validates the whole text and notes where the few members stand that decide what happens to the line, in one pass
// and without allocating. Everything else here serves three rules: bytes are forwarded as they came ([Replace], [Set],
// [Delete] and [AppendElements] leave every byte they were not asked to change), ids are compared by value and answered
// byte for byte ([SameID], [HashID]), and nothing broken passes ([Sanitize], [RecoverID]).
//
// The package owns no state, starts no goroutine and keeps no reference to the bytes it is given: a [Span] is two
// offsets, valid as long as the caller leaves the line alone. All functions may be called from any goroutine; one
// Envelope belongs to one goroutine at a time. In all append-style functions dst may be nil and must not overlap the
// other arguments.
//
// Where an object has a member twice, the last one counts, as in every JSON parser in use; only the top level of a
// message is strict about it ([ErrDuplicateKey]).
package jsonrpc
