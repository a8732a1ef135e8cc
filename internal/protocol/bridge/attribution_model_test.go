package bridge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

// manyClients is the model of many clients and a server, which do whatever they may, with one bridge between them. What the server says of a
// call names it, so that nothing can reach the wrong client unseen.
type manyClients struct {
	t     *rapid.T
	b     *carrier
	now   time.Time
	until time.Time // when the bridge wants to be called
	next  int

	calls  []*manyCall
	waits  map[string]*manyCall // the clients' requests without an answer, by id
	parked map[string]*manyCall // what clients may go on with, by raw state
	works  map[string]*manyCall // what the server works on, by id
	asks   map[string]*manyCall // questions the server waits for, by raw id
	others []string             // requests of the bridge's own
	shown  int                  // questions that clients were shown
	principals
}

// manyCall is one call of a client, in as many rounds as it takes.
type manyCall struct {
	name      string
	tool      string
	who       party
	can       bool
	logs      bool
	withdrawn time.Time // when its client gave it up, zero: it has not
}

var manyParties = []party{
	{"alice", `{"name":"a"}`}, {"bob", `{"name":"b"}`}, {"", `{"name":"a"}`}, {"", `{"name":"b"}`}, {"alice", ""},
}

func newWorldOfMany(t *rapid.T) *manyClients {
	w := &manyClients{t: t, now: start, waits: map[string]*manyCall{}, parked: map[string]*manyCall{}, works: map[string]*manyCall{},
		asks: map[string]*manyCall{}, principals: principals{}}
	w.b = carried(New(Options{Client: mcp.Modern, Key: make([]byte, 32), Principal: w.principals.of}))
	w.call(party{}, false, false)
	return w
}

func (w *manyClients) client(line string) { w.take(w.b.FromClient([]byte(line), w.now)) }
func (w *manyClients) server(line string) { w.take(w.b.FromServer([]byte(line), w.now)) }

// take looks at what the bridge says.
func (w *manyClients) take(out Output) {
	w.until = w.b.Deadline()
	for _, line := range out.ToClient {
		w.toClient(line)
	}
	for _, line := range lines(out.ToServer) {
		w.toServer(line)
	}
	for len(w.others) > 0 {
		id := w.others[0]
		w.others = w.others[1:]
		w.server(`{"jsonrpc":"2.0","id":` + id + `,"result":` + initialized + `}`)
	}
}

func (w *manyClients) toClient(line []byte) {
	var env jsonrpc.Envelope
	if err := env.Scan(line); err != nil {
		w.t.Fatalf("to a client: %q", line)
	}
	if env.Kind == jsonrpc.Notification {
		w.overheard(line)
		return
	}
	id := string(env.ID.Of(line))
	c := w.waits[id]
	if c == nil {
		w.t.Fatalf("a client was answered what it does not ask: %s", line)
	}
	delete(w.waits, id)
	if !jsonrpc.EqualString(env.ResultType.Of(line), "input_required") {
		return
	}
	questions := member(line, "result", "inputRequests")
	for _, value := range jsonrpc.Members(questions) {
		name, _ := jsonrpc.Unquote(member(value.Of(questions), "params", "message"))
		w.shown++
		w.reaches(w.named(name), c)
	}
	w.parked[string(member(line, "result", "requestState"))] = c
}

// reaches fails if what the server says for one call must not reach another one's client. A call that was withdrawn may be
// mixed up with another one of the same client: at once if it was authenticated, after some time if it only has its name.
func (w *manyClients) reaches(of, who *manyCall) {
	forgotten := !of.withdrawn.IsZero() && of.who.alike(who.who) && (of.who.Principal != "" || w.now.Sub(of.withdrawn) >= crossFor)
	if !who.can || of != who && !forgotten {
		w.t.Fatalf("what is said to %v of %s has reached %v of %s", of.who, of.name, who.who, who.name)
	}
}

// overheard takes a log message: the gateway hands it on if one request only asks for any.
func (w *manyClients) overheard(line []byte) {
	name, _ := jsonrpc.Unquote(member(line, "params", "data"))
	var hears []*manyCall
	for _, c := range w.waits {
		if c.logs {
			hears = append(hears, c)
		}
	}
	if len(hears) == 1 {
		able := *hears[0]
		able.can = true
		if of := w.named(name); of != hears[0] {
			w.reaches(of, &able)
		}
	}
}

func (w *manyClients) named(name string) *manyCall {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "t"))
	if err != nil {
		w.t.Fatalf("who is %q?", name)
	}
	return w.calls[n]
}

func (w *manyClients) toServer(line []byte) {
	var env jsonrpc.Envelope
	if err := env.Scan(line); err != nil {
		w.t.Fatalf("to the server: %q", line)
	}
	id := string(env.ID.Of(line))
	switch env.Kind {
	case jsonrpc.Request:
		if mcp.Lookup(env.Method.Of(line)) != mcp.ToolsCall {
			w.others = append(w.others, id)
			return
		}
		if strings.Contains(string(line), "dev.outlive") || w.works[id] != nil {
			w.t.Fatalf("to the server: %s", line)
		}
		name, _ := jsonrpc.Unquote(member(line, "params", "arguments", "call"))
		w.works[id] = w.named(name)
	case jsonrpc.Response, jsonrpc.ErrorResponse:
		if w.asks[id] == nil {
			w.t.Fatalf("the server was answered what it does not ask: %s", line)
		}
		delete(w.asks, id)
	case jsonrpc.Notification:
		if c := w.works[string(env.RequestID.Of(line))]; c != nil && c.withdrawn.IsZero() {
			c.withdrawn = w.now
		}
	}
}

func (w *manyClients) send(c *manyCall, who party, more string) string {
	w.next++
	id := strconv.Itoa(w.next)
	w.waits[id] = c
	w.principals[id] = who.Principal
	meta := `"_meta":{"` + mcp.MetaProtocolVersion + `":"2026-07-28"`
	if who.Info != "" {
		meta += `,"` + mcp.MetaClientInfo + `":` + who.Info
	}
	if c.logs {
		meta += `,"` + mcp.MetaLogLevel + `":"debug"`
	}
	can := `{}`
	if c.can {
		can = `{"elicitation":{}}`
	}
	w.client(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + c.tool + `","arguments":{"call":"` + c.name + `"},` + more + meta + `,"` +
		mcp.MetaClientCapabilities + `":` + can + `}}}`)
	return id
}

func (w *manyClients) call(who party, can, logs bool) {
	c := &manyCall{name: fmt.Sprint("t", len(w.calls)), tool: fmt.Sprint("tool", len(w.calls)%3), who: who, can: can, logs: logs}
	w.calls = append(w.calls, c)
	w.send(c, who, "")
}

// goOn takes a call's next round for who.
func (w *manyClients) goOn(state string, who party) string {
	return w.send(w.parked[state], who, `"requestState":`+state+`,"inputResponses":{"ask1":{"action":"accept"},"ask2":{"action":"accept"}},`)
}

// idle are the calls that the server works on and that wait for no answer.
func (w *manyClients) idle() []string {
	busy := slices.Collect(maps.Values(w.asks))
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.works)), func(id string) bool {
		c := w.works[id]
		return slices.Contains(busy, c) || !c.withdrawn.IsZero() && !w.mayStillAsk(id)
	})
}

// mayStillAsk reports whether the bridge still reckons with a call that was withdrawn. What asks later is beyond what can be told.
func (w *manyClients) mayStillAsk(id string) bool {
	t := w.b.side.(*modernSide).Calls.onWire([]byte(id))
	return t.cancelled() && w.now.Before(t.Ends)
}

// finish has the server answer a call. The answer to one that was withdrawn is no line for the bridge.
func (w *manyClients) finish(id string) {
	c := w.works[id]
	delete(w.works, id)
	if !c.withdrawn.IsZero() {
		w.take(w.b.Over([]byte(id), w.now))
		return
	}
	w.server(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[]}}`)
}

func (w *manyClients) withdraw(q string) {
	delete(w.asks, q)
	w.server(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + q + `}}`)
}

// pass lets time pass.
func (w *manyClients) pass(d time.Duration) {
	end := w.now.Add(d)
	for n := 0; !w.until.IsZero() && !w.until.After(end); n++ {
		if n > 10_000 {
			w.t.Fatalf("the bridge ticks without end")
		}
		if w.until.After(w.now) {
			w.now = w.until
		}
		w.take(w.b.Tick(w.now))
	}
	w.now = end
}

func anyOf[T any](t *rapid.T, of []T, then func(T)) {
	if len(of) > 0 {
		then(rapid.SampledFrom(of).Draw(t, "one"))
	}
}

func (w *manyClients) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"call": func(t *rapid.T) {
			w.call(rapid.SampledFrom(manyParties).Draw(t, "who"), rapid.IntRange(0, 3).Draw(t, "can") > 0, rapid.Bool().Draw(t, "logs"))
		},
		"go on": func(t *rapid.T) {
			anyOf(t, slices.Sorted(maps.Keys(w.parked)), func(state string) {
				c := w.parked[state]
				w.goOn(state, c.who)
				delete(w.parked, state)
			})
		},
		"steal": func(t *rapid.T) {
			anyOf(t, slices.Sorted(maps.Keys(w.parked)), func(state string) {
				thief := rapid.SampledFrom(manyParties).Draw(t, "thief")
				if was := len(w.asks); w.parked[state].who != thief {
					if id := w.goOn(state, thief); w.waits[id] != nil || len(w.asks) != was {
						t.Fatalf("%v went on with what %v was given", thief, w.parked[state].who)
					}
				}
			})
		},
		"cancel": func(t *rapid.T) {
			anyOf(t, slices.Sorted(maps.Keys(w.waits)), func(id string) {
				delete(w.waits, id)
				w.client(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			})
		},
		"finish": func(t *rapid.T) { anyOf(t, w.idle(), w.finish) },
		"silence": func(t *rapid.T) { // what was withdrawn is often not answered at all
			anyOf(t, w.idle(), func(id string) {
				if !w.works[id].withdrawn.IsZero() {
					delete(w.works, id)
				}
			})
		},
		"ask":      w.ask,
		"ask more": w.ask, // so that it happens more often
		"log": func(t *rapid.T) {
			anyOf(t, w.idle(), func(id string) {
				w.server(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"` + w.works[id].name + `"}}`)
			})
		},
		"withdraw": func(t *rapid.T) { anyOf(t, slices.Sorted(maps.Keys(w.asks)), w.withdraw) },
		"die":      w.die,
		"time": func(t *rapid.T) {
			w.pass(rapid.SampledFrom([]time.Duration{10 * time.Millisecond, 120 * time.Millisecond, 3 * time.Second, 31 * time.Second,
				11 * time.Minute}).Draw(t, "passes"))
		},
	}
}

// ask has a call that waits for nothing ask one or two things at once.
func (w *manyClients) ask(t *rapid.T) {
	anyOf(t, w.idle(), func(id string) {
		for range rapid.IntRange(1, 2).Draw(t, "at once") {
			w.next++
			q := fmt.Sprintf(`"q%d"`, w.next)
			w.asks[q] = w.works[id]
			w.server(`{"jsonrpc":"2.0","id":` + q + `,"method":"elicitation/create","params":{"message":"` + w.works[id].name + `"}}`)
		}
	})
}

// die is the death of the server, as its keeper tells of it: some calls are begun anew in another process, others lost.
func (w *manyClients) die(t *rapid.T) {
	for _, q := range slices.Sorted(maps.Keys(w.asks)) {
		w.withdraw(q)
	}
	maps.DeleteFunc(w.works, func(_ string, c *manyCall) bool { return !c.withdrawn.IsZero() })
	w.take(w.b.Reborn(w.now))
	for _, id := range slices.Sorted(maps.Keys(w.works)) {
		if rapid.Bool().Draw(t, "lost") {
			w.finish(id)
		}
	}
}

// end lets everybody finish what was begun: no request may be left without its answer, and no question.
func (w *manyClients) end() {
	for range 100 {
		for _, id := range w.idle() {
			w.finish(id)
		}
		for _, state := range slices.Sorted(maps.Keys(w.parked)) {
			if c := w.parked[state]; c.withdrawn.IsZero() {
				w.goOn(state, c.who)
			}
			delete(w.parked, state)
		}
		w.pass(time.Second)
	}
	w.pass(11 * time.Minute)
	if len(w.waits)+len(w.asks) > 0 {
		w.t.Fatalf("left without an answer: requests %v, questions %v", w.waits, w.asks)
	}
}

func TestNobodyHearsWhatIsAnotherOnes(t *testing.T) {
	shown := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorldOfMany(rt)
		rt.Repeat(w.actions())
		w.end()
		shown += w.shown
	})
	if shown == 0 {
		t.Error("no client was ever asked anything")
	}
}
