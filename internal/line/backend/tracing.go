package backend

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/tracecontext"
)

// traced gives a request two spans, and puts the context of the one towards the server into its _meta (SEP-414). It returns the line
// that the server gets, from which b.env was scanned; without [Options.Trace] that is the client's, byte for byte.
func (b *Backend) traced(line []byte) ([]byte, tracecontext.Spans) {
	if b.opts.Trace == nil || !carriesTrace(mcp.Lookup(b.env.Method.Of(line))) {
		return line, tracecontext.Spans{}
	}
	meta := b.env.Meta.Of(line)
	parent, _ := jsonrpc.Unquote(jsonrpc.Find(meta, "traceparent").Of(meta))
	spans := b.opts.Trace.Begin(parent)
	with, err := jsonrpc.Set(nil, line, jsonrpc.AppendQuoted(nil, spans.Client.String()), "params", "_meta", "traceparent")
	if err != nil || b.env.Scan(with) != nil {
		_ = b.env.Scan(line) // params is no object: it was scanned before
		return line, tracecontext.Spans{}
	}
	return slices.Clip(with), spans
}

// carriesTrace reports whether requests of a method get a trace context: not those that outlive repeats to other processes, whose
// context would be another request's, and not those that last for ever.
func carriesTrace(m mcp.Method) bool {
	switch m {
	case mcp.Initialize, mcp.Discover, mcp.Ping, mcp.SetLevel, mcp.Subscribe, mcp.Unsubscribe, mcp.Listen:
		return false
	}
	return true
}
