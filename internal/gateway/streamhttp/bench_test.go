package streamhttp

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// sink is a ResponseWriter that keeps nothing but the status.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

// mirrorHub answers at once and notes nothing.
type mirrorHub struct{}

func (mirrorHub) Open(Peer) Session                             { return mirrorHub{} }
func (mirrorHub) Resume(Peer, []byte, Stream) (Session, bool)   { return mirrorHub{}, true }
func (mirrorHub) Attach(Stream)                                 {}
func (mirrorHub) Release()                                      {}
func (mirrorHub) Close()                                        {}
func (mirrorHub) ParamHeaders(string, string) []mcp.ParamHeader { return nil }
func (mirrorHub) Message(line []byte, reply Stream) {
	var e jsonrpc.Envelope
	if e.Scan(line) == nil && e.Kind == jsonrpc.Request {
		reply.Send(jsonrpc.AppendResult(nil, e.ID.Of(line), e.Params.Of(line)))
	}
}

// BenchmarkCall is one small call without net/http: what the transport's own rules cost.
func BenchmarkCall(b *testing.B) {
	front := New(mirrorHub{}, Options{})
	defer front.Close()
	opened := &sink{header: http.Header{}}
	front.ServeHTTP(opened, request(context.Background(), "POST", "http://localhost/mcp", initializeLine("2025-11-25")))
	session := "Mcp-Session-Id: " + opened.header.Get("Mcp-Session-Id")
	for _, bc := range []struct {
		name, body string
		headers    []string
	}{
		{"legacy", call(1), []string{session}},
		{"modern", modernLine(1, "tools/call", `"name":"t",`), modernHeaders("tools/call", "Mcp-Name: t")},
	} {
		b.Run(bc.name, func(b *testing.B) {
			r := request(context.Background(), "POST", "http://localhost/mcp", bc.body, bc.headers...)
			w := &sink{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				r.Body = io.NopCloser(strings.NewReader(bc.body))
				front.ServeHTTP(w, r)
				if w.status != http.StatusOK {
					b.Fatalf("status %d", w.status)
				}
			}
		})
	}
}
