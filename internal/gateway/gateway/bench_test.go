package gateway

import (
	"fmt"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// echo is a kept server that answers every call at once, as a backend may, and costs nothing itself.
type echo struct {
	*proc
	env jsonrpc.Envelope
	buf []byte
}

// Say implements Upstream.
func (e *echo) Say(line []byte) {
	if e.env.Scan(line) != nil || e.env.Kind != jsonrpc.Request {
		return
	}
	e.buf = append(append(append(e.buf[:0], `{"jsonrpc":"2.0","id":`...), e.env.ID.Of(line)...), `,"result":{"content":[{"type":"text","text":"hello"}]}}`...)
	e.link.Send(e.buf)
}

// counter is a client's stream that only counts.
type counter int

// Send implements Stream.
func (c *counter) Send([]byte) { *c++ }

// One call, there and back, through everything but the backend: what the gateway adds to a message.
func BenchmarkCall(b *testing.B) {
	for _, sessions := range []int{1, 1000} {
		b.Run(fmt.Sprintf("legacy, %d sessions", sessions), func(b *testing.B) {
			w := newWorld(b, Options{})
			w.serve(named("a"), named("b"))
			for range sessions - 1 {
				w.legacy()
			}
			c := w.legacy()
			c.tools()
			p := w.procs[len(w.procs)-1]
			p.link.up = &echo{proc: p}
			benchmark(b, w, c, `{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"b_do","arguments":{"text":"hello"},"_meta":{"progressToken":12}}}`)
		})
		b.Run(fmt.Sprintf("modern, %d listen", sessions), func(b *testing.B) {
			w := newWorld(b, Options{})
			w.plan("a", plan{modern: true})
			w.serve(named("a"))
			for range sessions {
				w.client().modern("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true},`)
			}
			p := w.of("a")[0]
			p.link.up = &echo{proc: p}
			line := []byte(`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"a_do","arguments":{"text":"hello"},` + modernMeta + `}}`)
			var got counter
			b.ReportAllocs()
			for b.Loop() {
				s := w.gw.Open(nil, nil)
				s.Message(w.now, line, &got)
				s.Close(w.now)
			}
			if int(got) != b.N {
				b.Fatalf("%d answers to %d calls", got, b.N)
			}
		})
	}
}

func benchmark(b *testing.B, w *world, c *client, text string) {
	line := []byte(text)
	var got counter
	b.ReportAllocs()
	for b.Loop() {
		c.Message(w.now, line, &got)
	}
	if int(got) != b.N {
		b.Fatalf("%d answers to %d calls", got, b.N)
	}
}

// What one tick costs a gateway with many clients.
func BenchmarkTick(b *testing.B) {
	w := newWorld(b, Options{})
	w.serve(named("a"), named("b"), named("c"))
	for range 1000 {
		w.legacy().tools()
	}
	w.pass(time.Minute)
	for b.Loop() {
		w.gw.Tick(w.now)
	}
}
