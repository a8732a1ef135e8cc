package backend

import (
	"bytes"
	"fmt"
	"testing"
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
func exchange(size int) (request, answer []byte) {
	text := bytes.Repeat([]byte("word "), max(1, size/5-16))
	request = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"},"_meta":{"progressToken":7}}}`, text)
	answer = fmt.Appendf(nil, `{"result":{"content":[{"type":"text","text":"%s"}]},"jsonrpc":"2.0","id":7}`, text)
	return request, answer
}

func TestRelayingAllocatesNothing(t *testing.T) {
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		b, w := readyBackend()
		request, answer := exchange(size)
		got := testing.AllocsPerRun(200, func() {
			b.ClientLine(w.now, request)
			b.ServerLine(w.now, 0, answer, true)
		})
		if got != 0 {
			t.Errorf("%d bytes: %v allocations for a call and its answer", size, got)
		}
	}
}

func BenchmarkRelay(b *testing.B) {
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			k, w := readyBackend()
			request, answer := exchange(size)
			b.SetBytes(int64(len(request) + len(answer)))
			b.ReportAllocs()
			for b.Loop() {
				k.ClientLine(w.now, request)
				k.ServerLine(w.now, 0, answer, true)
			}
		})
	}
}
