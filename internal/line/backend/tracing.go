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
	if b.opts.Trace == nil {
		return line, tracecontext.Spans{}
	}
	switch mcp.Lookup(b.env.Method.Of(line)) {
	case mcp.Initialize, mcp.Discover, mcp.Ping, mcp.SetLevel, mcp.Subscribe, mcp.Unsubscribe, mcp.Listen:
		// Outlive repeats it to other processes, where the context would be another request's, or it lasts for ever.
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
