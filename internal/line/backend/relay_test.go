package backend

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// nullWorld takes everything and keeps nothing.
type nullWorld struct{ fakeWorld }

func (*nullWorld) ForwardToClient([]byte) {}

func (w *nullWorld) Start(l Launch) (Server, error) {
	gen := l.Gen
	return &nullServer{fakeServer{w: &w.fakeWorld, gen: gen}}, nil
}

type nullServer struct{ fakeServer }

func (*nullServer) Forward([]byte) {}
func (*nullServer) Send([]byte)    {}

// readyBackend is a backend through its legacy handshake.
func readyBackend() (*Backend, *nullWorld) {
	w := &nullWorld{}
	w.now = epoch
	w.b = New(Options{Name: "srv", Command: []string{"srv"}}, w, w)
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	w.server(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`)
	w.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w.b, w
}

// exchange is one call and its answer, about size bytes each.
func exchange(id string, size int) (request, answer []byte) {
	text := bytes.Repeat([]byte("word "), max(1, size/5-16))
	request = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"},"_meta":{"progressToken":%[1]s}}}`, id, text)
	answer = fmt.Appendf(nil, `{"result":{"content":[{"type":"text","text":"%s"}]},"jsonrpc":"2.0","id":%s}`, text, id)
	return request, answer
}

// benchIDs are ids as clients number their requests.
var benchIDs = []string{`7`, `"a1b2c3d4-e5f6-7890-abcd-ef1234567890"`}

func TestRelayingAllocatesNothing(t *testing.T) {
	for _, id := range benchIDs {
		for _, size := range []int{200, 4 << 10, 64 << 10} {
			b, w := readyBackend()
			request, answer := exchange(id, size)
			got := testing.AllocsPerRun(200, func() {
				b.ClientLine(w.now, request)
				b.ServerLine(w.now, 0, answer, true)
			})
			if got != 0 {
				t.Errorf("id %s, %d bytes: %v allocations for a call and its answer", id, size, got)
			}
		}
	}
}

// A client may give one progress token to several requests: what is reported goes to the newest that is left.
func TestOneProgressTokenForSeveralRequests(t *testing.T) {
	b, w := readyBackend()
	for id := 1; id <= 3; id++ {
		w.client(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","_meta":{"progressToken":0}}}`, id))
	}
	for _, next := range []struct{ ends, left string }{{`2`, `3`}, {`3`, `1`}, {`1`, ``}} {
		w.server(`{"jsonrpc":"2.0","id":` + next.ends + `,"result":{}}`)
		left := ""
		if c := b.calls.withToken([]byte(`0`)); c != nil {
			left = string(c.id)
		}
		if left != next.left {
			t.Errorf("after the end of request %s progress is that of request %q, want %q", next.ends, left, next.left)
		}
	}
}

func BenchmarkRelay(b *testing.B) {
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		for _, watched := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d,watched=%t", size, watched), func(b *testing.B) {
				k, w := readyBackend()
				k.opts.Tap = &tap.Tap{}
				var batch tap.Batch
				r := k.opts.Tap.Open(tap.Options{})
				if !watched {
					r.Close()
				}
				request, answer := exchange(benchIDs[0], size)
				b.SetBytes(int64(len(request) + len(answer)))
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					k.ClientLine(w.now, request)
					k.ServerLine(w.now, 0, answer, true)
					if n%100 == 0 {
						r.Take(&batch)
					}
				}
			})
		}
	}
}
