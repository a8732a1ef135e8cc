package backend

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAHandoverKeepsWhatDecidesAboutACrash: what may be sent again to the next process, and what the client has heard of a
// call, is known to the next image as it was to the one before.
func TestAHandoverKeepsWhatDecidesAboutACrash(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"set","_meta":{"progressToken":"p"}}}`
	progress := func(n string) string {
		return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":` + n + `}}`
	}
	crash := func(w *fakeWorld) {
		w.exit(139)
		w.tick(time.Second)
		answerReplay(w)
	}
	again := func(w *fakeWorld) bool {
		return slices.ContainsFunc(w.takeServer(), func(l string) bool { return strings.Contains(l, `"set"`) })
	}
	for name, c := range map[string]struct {
		before func(w *fakeWorld)
		want   bool // the call is sent again
	}{
		"an idempotent call": {func(*fakeWorld) {}, true},
		"during which the server asked something": {func(w *fakeWorld) {
			w.server(`{"jsonrpc":"2.0","id":"s","method":"roots/list"}`)
			w.client(`{"jsonrpc":"2.0","id":"s","result":{"roots":[]}}`)
		}, false},
	} {
		for _, handover := range []bool{false, true} {
			w := readyWorld(Options{})
			w.client(`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`)
			w.server(`{"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"set","annotations":{"idempotentHint":true}}]}}`)
			w.client(call)
			c.before(w)
			w.takeServer()
			if handover {
				w.takesOver(t)
			}
			crash(w)
			w.tick(0)
			if got := again(w); got != c.want {
				t.Errorf("%s, handover %v: sent again: %v, want %v", name, handover, got, c.want)
			}
		}
	}

	w := readyWorld(Options{})
	w.client(`{"jsonrpc":"2.0","id":4,"method":"prompts/get"}`)
	w.client(strings.Replace(call, "tools/call", "prompts/get", 1))
	w.server(progress("5"))
	w.takeServer()
	crash(w)
	if !again(w) {
		t.Fatal("the call was not sent again")
	}
	w.takesOver(t)
	w.takeClient()
	w.server(progress("3"))
	w.server(progress("6"))
	if got := w.takeClient(); !slices.Equal(got, []string{progress("6")}) {
		t.Errorf("the client hears %q", got)
	}
}
