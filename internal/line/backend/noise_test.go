package backend

import (
	"strings"
	"testing"
)

// A message printed over very many lines is put together in one pass: looking at it anew with each line took a minute.
func TestManyLinesAreOneMessage(t *testing.T) {
	b, w := readyBackend()
	w.client(`{"jsonrpc":"2.0","id":5,"method":"x"}`)
	w.server(`{`)
	w.server(`"jsonrpc":"2.0","id":5,"result":{"brackets in text":"]}\"}","rows":[`)
	for range 20000 {
		w.server(`{"text":"` + strings.Repeat("a", 20) + `"`)
		w.server(`},`)
	}
	w.server(`0]`)
	w.server(`}`)
	w.server(`}`)
	if b.calls.inFlight != 0 || b.process.noise.holding() {
		t.Errorf("%d in flight, %d lines held", b.calls.inFlight, len(b.process.noise.lines))
	}
}
