package backend

import (
	"fmt"
	"strings"
	"testing"
)

// A client need not answer what a server asks: only so many questions are kept, the rest is answered with an error.
func TestUnansweredQuestionsAreBounded(t *testing.T) {
	for name, id := range map[string]string{"many": "", "long": strings.Repeat("x", 64<<10)} {
		t.Run(name, func(t *testing.T) {
			w := readyWorld(Options{})
			w.takeClient()
			w.takeServer()
			const asked = 3 * asksMost
			for i := range asked {
				w.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s%d","method":"roots/list"}`, id, i))
			}
			kept, refused := len(w.takeClient()), w.takeServer()
			if kept == 0 || kept > asksMost || kept+len(refused) != asked || kept*len(id) > asksBytes {
				t.Fatalf("%d of %d questions are kept, %d refused", kept, asked, len(refused))
			}
			if want := "too many requests of this server wait for the client's answer"; !strings.Contains(refused[0], want) {
				t.Errorf("refused with %s", refused[0])
			}
			w.backlog = slowServer
			w.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%sunread","method":"roots/list"}`, id))
			if got := w.takeServer(); len(got) != 0 {
				t.Errorf("a server that does not read is told %q", got)
			}
			w.backlog = 0
			w.client(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s0","result":{"roots":[]}}`, id))
			w.takeServer()
			w.server(`{"jsonrpc":"2.0","id":"next","method":"roots/list"}`)
			if got := w.takeClient(); len(got) != 1 {
				t.Errorf("after an answer the next question came to %q", got)
			}
		})
	}
}
