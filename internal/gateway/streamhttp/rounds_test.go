package streamhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// asksOnce answers a call with a question, and its next round with what it has as its state.
func asksOnce(s *testSession, line []byte, reply Stream) {
	var e jsonrpc.Envelope
	if e.Scan(line) != nil {
		return
	}
	result := `{"resultType":"input_required","inputRequests":{},"requestState":"sta.te"}`
	if state := e.RequestState.Of(line); state != nil {
		result = `{"resultType":"complete","had":` + string(state) + `}`
	}
	reply.Send(jsonrpc.AppendResult(nil, e.ID.Of(line), []byte(result)))
}

// stateOf is the requestState of an answer, raw.
func stateOf(t *testing.T, a answer) string {
	t.Helper()
	state := jsonrpc.FindPath([]byte(a.body), "result", "requestState").Of([]byte(a.body))
	if a.status != 200 || state == nil {
		t.Fatalf("%+v", a)
	}
	return string(state)
}

// A call whose server asks something goes on where it began, whichever front its next round comes to; and here, if that has ended. The
// server has its own state each time.
func TestRoundsGoOnWhereTheyBegan(t *testing.T) {
	all, _ := newEquals(t, 2, asksOnce, Options{})
	a, b := all[0], all[1]
	round := func(w *equal, params string) answer {
		t.Helper()
		return w.do("POST", modernLine(1, "tools/call", `"name":"t",`+params), modernHeaders("tools/call", "Mcp-Name: t")...)
	}
	state := stateOf(t, round(a, ""))
	if !strings.HasPrefix(state, `"outlive1.`) || strings.Contains(state, a.at) {
		t.Errorf("the client is given %s", state)
	}
	for n, w := range all {
		if got := round(w, `"requestState":`+state+`,`); got.status != 200 || !strings.Contains(got.body, `"had":"sta.te"`) {
			t.Errorf("round %d: %+v", n, got)
		}
	}
	if n, m := a.hub.opened(), b.hub.opened(); n != 3 || m != 0 {
		t.Errorf("%d messages at the first, %d at the other", n, m)
	}
	for _, own := range []string{`"sta.te"`, `"outlive1.AAAA.sta.te"`, `"outlive1."`, `7`} { // nobody's, and what a client has made up
		if got := round(b, `"requestState":`+own+`,`); got.status != 200 || !strings.Contains(got.body, `"had":`+own) {
			t.Errorf("%s: %+v", own, got)
		}
	}
	a.kill()
	b.front.opts.Peers.Transport.(*http.Transport).CloseIdleConnections() // it may not have seen yet that one is broken
	if got := round(b, `"requestState":`+state+`,`); got.status != 200 || !strings.Contains(got.body, `"had":"sta.te"`) {
		t.Errorf("after the end of the first: %+v", got)
	}
	alone := newWorld(t, &testHub{answer: asksOnce}, Options{})
	if got := stateOf(t, alone.do("POST", modernLine(1, "tools/call", `"name":"t",`), modernHeaders("tools/call", "Mcp-Name: t")...)); got != `"sta.te"` {
		t.Errorf("a gateway alone gives %s", got)
	}
}

// A round whose gateway is lost while it is carried out is answered so.
func TestARoundThatIsLost(t *testing.T) {
	news := make(chan *testSession, 1)
	all, _ := newEquals(t, 2, func(s *testSession, line []byte, reply Stream) {
		if strings.Contains(string(line), "requestState") {
			news <- s
			return
		}
		asksOnce(s, line, reply)
	}, Options{})
	state := stateOf(t, all[0].do("POST", modernLine(1, "tools/call", `"name":"t",`), modernHeaders("tools/call", "Mcp-Name: t")...))
	answered := make(chan answer, 1)
	go func() {
		answered <- all[1].do("POST", modernLine(7, "tools/call", `"name":"t","requestState":`+state+`,`), modernHeaders("tools/call", "Mcp-Name: t")...)
	}()
	<-news
	all[0].kill()
	if a := <-answered; a.status != 200 || !strings.Contains(a.body, `"id":7,`) || !strings.Contains(a.body, lostCall) {
		t.Errorf("%+v", a)
	}
}
