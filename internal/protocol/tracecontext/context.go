package tracecontext

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// Sampled is the flag of a trace that is recorded.
const Sampled = 1

// Context is a span in its trace.
type Context struct {
	Trace [16]byte
	Span  [8]byte
	Flags byte
}

// String is the context as the text of a traceparent.
func (c Context) String() string { return fmt.Sprintf("00-%x-%x-%02x", c.Trace, c.Span, c.Flags) }

// Parse reads a traceparent; false: it is none, and a new trace begins.
func Parse(text string) (c Context, ok bool) {
	part := strings.Split(text, "-")
	if len(part) < 4 || len(part[0]) != 2 || len(part[1]) != 32 || len(part[2]) != 16 || len(part[3]) != 2 || text != strings.ToLower(text) {
		return Context{}, false
	}
	version, errVersion := hex.DecodeString(part[0])
	trace, errTrace := hex.DecodeString(part[1])
	span, errSpan := hex.DecodeString(part[2])
	flags, errFlags := hex.DecodeString(part[3])
	if errVersion != nil || errTrace != nil || errSpan != nil || errFlags != nil || version[0] == 0xff || version[0] == 0 && len(part) != 4 {
		return Context{}, false
	}
	c = Context{Trace: [16]byte(trace), Span: [8]byte(span), Flags: flags[0] & Sampled}
	return c, c.Trace != [16]byte{} && c.Span != [8]byte{}
}

// Spans are the two spans of one request.
type Spans struct {
	Parent [8]byte // of the client's; zero: it has said none, and the trace begins here
	Server [8]byte // the one towards the client
	Client Context // the one towards the server, as the server is told
}

// Known reports whether there are spans.
func (s *Spans) Known() bool { return s.Client.Flags != 0 || s.Server != [8]byte{} }

// Source makes spans.
type Source struct {
	// Random fills bytes; it must not fail.
	Random func([]byte)
	// Share of new traces that is recorded, 0 to 1, decided by the trace's id as OpenTelemetry's traceidratio does.
	Share float64
	// Alone says that a client's decision does not count, only Share.
	Alone bool
}

// Begin makes the spans of a request with that traceparent; "": it has none.
func (s *Source) Begin(traceparent string) (spans Spans) {
	parent, given := Parse(traceparent)
	if given {
		spans.Parent, spans.Client.Trace = parent.Span, parent.Trace
	} else {
		s.Random(spans.Client.Trace[:])
	}
	if spans.Client.Flags = parent.Flags; !given || s.Alone {
		spans.Client.Flags = s.decide(spans.Client.Trace)
	}
	s.Random(spans.Server[:])
	s.Random(spans.Client.Span[:])
	return spans
}

func (s *Source) decide(trace [16]byte) byte {
	if s.Share >= 1 || s.Share > 0 && binary.BigEndian.Uint64(trace[8:])>>1 < uint64(s.Share*(1<<63)) {
		return Sampled
	}
	return 0
}
