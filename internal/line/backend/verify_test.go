package backend

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/keep/restart"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// restartable is a world whose server has no tools of its own, so that calls of the restart tools are answered at once.
type restartable struct {
	*fakeWorld
	t  *testing.T
	id int
}

func newRestartable(t *testing.T) *restartable {
	r := &restartable{newWorld(Options{}), t, 0}
	r.open()
	return r
}

// open brings the server up.
func (r *restartable) open() {
	r.b.Open(r.now)
	r.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	r.server(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	r.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	r.takeServer()
	r.tick(time.Second)
	r.takeClient()
}

// call calls a tool and returns what was answered at once, "" if nothing was.
func (r *restartable) call(tool, argument, value string) string {
	r.id++
	r.client(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{%q:%q}}}`, r.id, tool, argument, value))
	return strings.Join(r.takeClient(), "\n")
}

func (r *restartable) restart(reason string) {
	r.t.Helper()
	if got := r.call("restart_server", "reason", reason); !strings.Contains(got, "Server restart scheduled (reason: "+reason+")") {
		r.t.Fatalf("restart_server: %s", got)
	}
}

func (r *restartable) verify(since time.Time) string {
	return r.call("verify_server_restarted", "since_timestamp", restart.FormatTime(since))
}

// comesUp lets the process that was started last answer its handshake, and returns what the client was told then.
func (r *restartable) comesUp() string {
	r.t.Helper()
	for _, line := range slices.Backward(r.takeServer()) {
		if id := ownID(line); id != "" && strings.Contains(line, `"initialize"`) {
			r.server(`{"jsonrpc":"2.0","id":` + id + `,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
			return strings.Join(r.takeClient(), "\n")
		}
	}
	r.t.Fatal("no handshake was replayed")
	return ""
}

func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) || want == "" && got != "" {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestAProcessThatBootedAlreadyProvesNoRestart: it may have read the old code before the request.
func TestAProcessThatBootedAlreadyProvesNoRestart(t *testing.T) {
	r := newRestartable(t)
	since := r.now.Add(-time.Millisecond)
	r.restart("first")
	r.tick(200 * time.Millisecond)
	r.restart("second") // in the place of the first
	r.tick(time.Second)
	r.restart("third") // the second one boots
	wantText(t, "while the second boots", r.verify(since), "")
	r.tick(100 * time.Millisecond)
	wantText(t, "the second serves", r.comesUp(), "")
	r.tick(2 * time.Second)
	wantText(t, "the third serves", r.comesUp(), "✅ Server restart verified: occurred at ")
	wantText(t, "asked again", r.verify(since), "(reason: third)")
}

// TestAFailureOfTheProcessBeforeIsNotTheAnswer: another one is started for the request.
func TestAFailureOfTheProcessBeforeIsNotTheAnswer(t *testing.T) {
	r := newRestartable(t)
	since := r.now.Add(-time.Millisecond)
	r.restart("first")
	r.restart("second")
	r.tick(time.Second)
	r.restart("third")
	wantText(t, "while the second boots", r.verify(since), "")
	r.exit(1)
	wantText(t, "the second has failed", strings.Join(r.takeClient(), "\n"), "")
	r.tick(time.Second)
	r.exit(1)
	wantText(t, "the third has failed", strings.Join(r.takeClient(), "\n"), "but it is the old one: the new one did not come up")
}

// TestTwoServersShareAMarkerFile: each answers for itself.
func TestTwoServersShareAMarkerFile(t *testing.T) {
	other := func(r *restartable) {
		m := restart.RequestedMarker(r.now, "B")
		r.marker = &m
	}
	r := newRestartable(t)
	since := r.now.Add(-time.Millisecond)
	r.restart("A")
	r.comesUp()
	r.tick(time.Second)
	between := r.now
	r.tick(time.Second)
	other(r)
	wantText(t, "since before both", r.verify(since), "(reason: A)")
	wantText(t, "since between them", r.verify(between), "")
	r.tick(verifyFor)
	wantText(t, "since between them, later", strings.Join(r.takeClient(), "\n"), "❌ Server restart not complete")
	r.exit(1)
	r.comesUp()
	wantText(t, "this one has crashed since", r.verify(between), "✅")

	r = newRestartable(t)
	since = r.now.Add(-time.Second)
	other(r)
	wantText(t, "this one was never asked", r.verify(since), "")
	r.tick(verifyFor)
	wantText(t, "this one was never asked, later", strings.Join(r.takeClient(), "\n"), "server is ready, but it was started before that")
}

// ordered is a fakeWorld that notes in which order restart_server does what it does.
type ordered struct {
	*fakeWorld
	order []string
}

func (w *ordered) WriteMarker(m restart.MarkerRecord) error {
	w.order = append(w.order, "marker")
	return w.fakeWorld.WriteMarker(m)
}

func (w *ordered) SendToClient(line []byte) {
	if strings.Contains(string(line), "Server restart scheduled") {
		w.order = append(w.order, "answer")
	}
	w.fakeWorld.SendToClient(line)
}

func (w *ordered) Emit(e event.Event) {
	if e.Type == event.ServerRestartRequested {
		w.order = append(w.order, "audit")
	}
	w.fakeWorld.Emit(e)
}

func (w *ordered) Start(l Launch) (Server, error) {
	w.order = append(w.order, "start")
	return w.fakeWorld.Start(l)
}

// RT-2, RT-3, RT-4: the marker is there and the audit log tells of it before the answer, and the answer is there before anything is
// done about processes.
func TestRestartServerAnswersBeforeItRestarts(t *testing.T) {
	w := &ordered{fakeWorld: &fakeWorld{now: epoch, canCount: true}}
	w.b = New(Options{Name: "srv", Command: []string{"srv"}}, w, w)
	r := &restartable{w.fakeWorld, t, 0}
	r.open()
	w.order = nil
	r.restart("new code")
	if got := strings.Join(w.order, " "); got != "marker audit answer start" {
		t.Errorf("in this order: %s", got)
	}
	attrs := map[string]string{}
	for _, e := range r.events {
		for _, a := range e.Attrs {
			if e.Type == event.ServerRestartRequested {
				attrs[a.Key] = a.Value.String()
			}
		}
	}
	if d := cmp.Diff(map[string]string{"reason": "new code", "exit_code": "42", "marker_path": "marker"}, attrs); d != "" {
		t.Errorf("what the audit log tells (-want +got):\n%s", d)
	}
}
