package backend

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
)

// handOver carries a backend through JSON into a new one; nil, and why, where that is not possible now.
func handOver(b *Backend, now time.Time) (next *Backend, why string) {
	if why := b.PrepareHandover(now); why != "" {
		return nil, why
	}
	text, err := json.Marshal(b.Save())
	if err != nil {
		return nil, err.Error()
	}
	var s Saved
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err.Error()
	}
	return Restore(b.opts, b.life.runner.(World), b.sink, s, b.process.server, now), ""
}

// handsOver puts another Backend in the place of this one. Nobody may notice.
func (m *model) handsOver() {
	next, why := handOver(m.b, m.now)
	if next == nil {
		m.rt.Logf("no handover: %s", why)
		m.b.AbandonHandover(m.now)
		return
	}
	m.rt.Logf("handed over")
	m.b = next
}

// readyWorld is a client and a server that have been through their handshake.
func readyWorld(opts Options) *fakeWorld {
	w := newWorld(opts)
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	w.server(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`)
	w.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.takeClient()
	w.takeServer()
	return w
}

// takesOver puts another Backend in the place of w's and forgets the old one.
func (w *fakeWorld) takesOver(t *testing.T) {
	t.Helper()
	next, why := handOver(w.b, w.now)
	if next == nil {
		t.Fatalf("no handover: %s", why)
	}
	w.b = next
}

func TestAHandoverKeepsWhatIsInFlight(t *testing.T) {
	w := readyWorld(Options{})
	w.backlog = slowServer
	w.client(`{"jsonrpc":"2.0","id":"queued","method":"x","params":{"n":9007199254740993}}`)
	w.backlog = 0
	w.b.Drained(w.now, w.gen)
	w.client(`{"jsonrpc":"2.0","id":7.0,"method":"tools/call","params":{"name":"look","_meta":{"progressToken":"t"}}}`)
	w.server(`{"jsonrpc":"2.0","id":"s1","method":"roots/list"}`)
	w.takeClient()
	w.takeServer()

	w.takesOver(t)
	w.server(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}`)
	w.server(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	w.client(`{"jsonrpc":"2.0","id":"s1","result":{"roots":[]}}`)
	w.server(`{"jsonrpc":"2.0","id":"queued","result":{}}`)
	want := []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}`,
		`{"jsonrpc":"2.0","id":7.0,"result":{}}`, `{"jsonrpc":"2.0","id":"queued","result":{}}`,
	}
	if got := w.takeClient(); !slices.Equal(got, want) {
		t.Errorf("the client got %q, want %q", got, want)
	}
	if got := w.takeServer(); !slices.Equal(got, []string{`{"jsonrpc":"2.0","id":"s1","result":{"roots":[]}}`}) {
		t.Errorf("the server got %q", got)
	}
}

func TestAnswersToQuestionsOfThePredecessorAreDropped(t *testing.T) {
	w := readyWorld(Options{})
	b := w.b
	w.tick(learnAfter) // it reads the tools for itself
	asked := w.takeServer()
	if len(asked) != 1 || !strings.Contains(asked[0], "tools/list") {
		t.Fatalf("the server was asked %q", asked)
	}
	var q struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(asked[0]), &q); err != nil {
		t.Fatal(err)
	}
	w.takeClient()
	w.takesOver(t)
	w.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, q.ID))
	if got := w.takeClient(); got != nil {
		t.Errorf("the client got %q", got)
	}
	w.tick(learnAfter)
	again := w.takeServer()
	if len(again) != 1 || !strings.Contains(again[0], "tools/list") || again[0] == asked[0] {
		t.Errorf("asked again: %q, before: %q", again, asked)
	}
	if b == w.b {
		t.Error("nothing was handed over")
	}
}

func TestFailuresAndRestartsSurviveAHandover(t *testing.T) {
	w := readyWorld(Options{})
	crash := func() {
		w.exit(139)
		w.tick(time.Second)
		answerReplay(w)
	}
	crash()
	w.takesOver(t)
	crash()
	w.takesOver(t)
	if s := w.b.Status(w.now); s.RestartCount != 2 || s.Generation != 2 || s.LastExit == nil || s.LastExit.Code != 139 {
		t.Errorf("status %+v", s)
	}
}

// answerReplay answers the handshake that a new process is told.
func answerReplay(w *fakeWorld) {
	for _, line := range w.takeServer() {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal([]byte(line), &q) == nil && q.Method == "initialize" {
			w.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`, q.ID))
		}
	}
}

func TestSparesGoBeforeAHandoverAndComeAfterIt(t *testing.T) {
	w := readyWorld(Options{Supervise: supervise.Options{Standby: 1}})
	if !strings.Contains(w.takeActs(), "start 1") {
		t.Fatal("no spare was started")
	}
	if why := w.b.PrepareHandover(w.now); why != "servers beside the serving one are ending" {
		t.Errorf("with a spare: %q", why)
	}
	w.exit(0) // the spare
	w.takesOver(t)
	w.tick(time.Second)
	if acts := w.takeActs(); !strings.Contains(acts, "start 2") {
		t.Errorf("after the handover: %s", acts)
	}
}

// TestEveryFieldIsHandedOver fails when something was added that a handover does not know: whoever adds a field decides
// here what becomes of it.
func TestEveryFieldIsHandedOver(t *testing.T) {
	saved := map[reflect.Type]string{
		reflect.TypeFor[Backend](): "flow handshake replay eras shield lists tools streams states tasks babble health long limits spares life",
		reflect.TypeFor[core]():    "machine session timers process failedInit calls questions asks memory history",

		reflect.TypeFor[flow]():          "",
		reflect.TypeFor[handshake]():     "first",
		reflect.TypeFor[replay]():        "noted",
		reflect.TypeFor[eras]():          "seam",
		reflect.TypeFor[seam]():          "bridge decided asked client inner at",
		reflect.TypeFor[shield]():        "probe",
		reflect.TypeFor[lists]():         "doubted",
		reflect.TypeFor[toolbox]():       "settled shown request verify unsure",
		reflect.TypeFor[streams]():       "cut",
		reflect.TypeFor[requestStates](): "gens row",
		reflect.TypeFor[tasks]():         "tokens open",
		reflect.TypeFor[babble]():        "count total toldAt",
		reflect.TypeFor[healthWatch]():   "watch deaf",
		reflect.TypeFor[longCalls]():     "",
		reflect.TypeFor[limits]():        "used lastUse",
		reflect.TypeFor[spares]():        "told",
		reflect.TypeFor[lifecycle]():     "",
		reflect.TypeFor[questions]():     "open lastID",
		reflect.TypeFor[asks]():          "open dead deadRow mark",
		reflect.TypeFor[memory]():        "known",
		reflect.TypeFor[history]():       "lastOut misfortune introduction startup readyAt begun cause",
		reflect.TypeFor[process]():       "gen started startup era phase hearing listed initialized calls sent hasTools shows read before introduction noise heard",
		reflect.TypeFor[call]():          "id wire state line seq gen touched end resent crashes until begun told token progress batch",
		reflect.TypeFor[probe]():         "active seen seq sentAt readAt",
		reflect.TypeFor[usage]():         "over renewed rss",
		reflect.TypeFor[firstStart]():    "active since tries",
		reflect.TypeFor[noise]():         "lines joined open",
		reflect.TypeFor[calls]():         "nextSeq",
	}
	rebuilt := map[reflect.Type]string{ // made anew, or of one value only when a backend can be saved
		reflect.TypeFor[Backend]():   "wakeAt",
		reflect.TypeFor[core]():      "opts now env reader beside closing over stopped",
		reflect.TypeFor[eras]():      "eraFlips",
		reflect.TypeFor[seam]():      "eras env bare past echo acked",
		reflect.TypeFor[spares]():    "later tookOver",
		reflect.TypeFor[lifecycle](): "events stepping closeWanted code",
		reflect.TypeFor[history]():   "eraMismatch",
		reflect.TypeFor[process](): "pid role trial shut closed undelivered pendingSettings streams unchecked reload requestedBy " +
			"refusal ending retirement knocks settingsBy drainBy closedBy",
		reflect.TypeFor[call]():    "method big tool param first task retry again next prev",
		reflect.TypeFor[toolbox](): "page",
		reflect.TypeFor[calls]():   "byID byToken head tail free spare waiting bytes inFlight held",
	}
	for typ, names := range saved {
		known := strings.Fields(names + " " + rebuilt[typ])
		fields := 0
		for i := range typ.NumField() {
			if of := typ.Field(i).Type; of.Kind() == reflect.Interface || of == reflect.TypeFor[*core]() {
				continue // what a part needs of the others
			}
			fields++
			if name := typ.Field(i).Name; !slices.Contains(known, name) {
				t.Errorf("%s.%s is new: save it in handover.go, or say here why it need not be", typ.Name(), name)
			}
		}
		if len(known) != fields {
			t.Errorf("%s has %d fields, %d are named here", typ.Name(), fields, len(known))
		}
	}
}
