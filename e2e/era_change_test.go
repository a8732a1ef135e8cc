package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// eraChange is a client whose server comes back as a version of its program that speaks the other era only.
type eraChange struct {
	client, before, after string
}

var eraChanges = []eraChange{
	{"ts1", "ts", "ts2-modern"},
	{"go-legacy", "go-legacy", "ts2-modern"},
	{"ts2-modern", "ts2-modern", "ts"},
	{"py-modern", "ts2-modern", "go-legacy"},
}

// shellWord is a word for a shell, which expands nothing in it.
func shellWord(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// deploy makes what the script starts from now on another server.
func (w *workspace) deploy(t *testing.T, name string) {
	t.Helper()
	text := "exec"
	for _, arg := range servers()[name].argv {
		text += " " + shellWord(arg)
	}
	if err := os.WriteFile(w.path("serve.new"), []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(w.path("serve.new"), w.path("serve")); err != nil {
		t.Fatal(err)
	}
}

// TestEraChange: a client keeps its connection, its era, its subscription and its log level while its server becomes one
// of the other era, by a crash or by a planned restart, and again when the change is taken back. Without a bridge the
// legacy client is told why nothing works, and the modern one hears what its server says.
func TestEraChange(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for i, ch := range eraChanges {
		for _, planned := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%s→%s/planned=%v", ch.client, ch.before, ch.after, planned), func(t *testing.T) {
				onePerKind(t, planned == (i%2 == 1))
				t.Parallel()
				ch.play(t, planned)
			})
		}
	}
}

func (ch eraChange) play(t *testing.T, planned bool) {
	w := newWorkspace(t)
	w.deploy(t, ch.before)
	s := w.join(t, gatewayClients()[ch.client], w.wrap([]string{"sh", w.path("serve")})...)
	v := vocabularyOf(cell{lane: "run", client: part{key: ch.client}, server: part{key: ch.before}})
	era := s.hello.Era
	s.run(t, "before", func(t *testing.T) {
		v.list(t, s)
		v.subscribes(t, s)
		v.logs(t, s)
	})
	for _, version := range []string{ch.after, ch.before} {
		from, old := s.mark(), s.serverPID(t)
		w.deploy(t, version)
		if planned {
			s.call(t, "restart_server", map[string]any{"reason": "another version"})
		} else {
			killed(t, old)
		}
		s.run(t, version+"/serves", func(t *testing.T) {
			if !eventually(func() bool { return s.serverPID(t) != old }) {
				t.Errorf("the server is still process %d", old)
			}
			v.callEcho(t, s)
			v.list(t, s)
			v.fails(t, s)
			v.progresses(t, s)
			v.cancels(t, s)
		})
		if !s.modern() { // which listens for updates of the resource only
			s.run(t, version+"/lists are read again", func(t *testing.T) {
				s.awaitEvent(t, from, "changed list", func(e event) bool { return strings.HasSuffix(e.Method, "tools/list_changed") })
			})
		}
		s.run(t, version+"/asks", func(t *testing.T) {
			v.told(t, s)
			v.elicits(t, s)
			v.samples(t, s)
		})
		s.run(t, version+"/subscription", func(t *testing.T) { v.updates(t, s) })
		if e := s.hello.Era; e != era {
			t.Errorf("the client speaks %s now, and did %s", e, era)
		}
	}
	s.do(t, step{"op": "unsubscribe", "uri": v.uri})
	s.do(t, step{"op": "close"})
	<-s.driver.exited()
	if i := slices.IndexFunc(s.seen(0), func(e event) bool { return trouble(e, true) }); i >= 0 {
		t.Errorf("the client noticed: %s", s.seen(0)[i])
	}
	s.noneLeft(t)
	if audit := w.audit(t); !slices.ContainsFunc(audit, func(e map[string]any) bool { return e["event_type"] == "bridge_engaged" }) {
		t.Error("nobody was told of the bridge")
	}
}

// TestEraChangeUntranslated: with --bridge off the legacy client's calls say what the matter is.
func TestEraChangeUntranslated(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	w := newWorkspace(t)
	w.deploy(t, "ts")
	s := w.join(t, gatewayClients()["ts1"], w.wrap([]string{"sh", w.path("serve")}, "--bridge", "off", "--max-restarts", "3")...)
	old := s.serverPID(t)
	w.deploy(t, "ts2-modern")
	killed(t, old)
	_, ch := s.begin(step{"op": "call", "tool": "echo", "args": map[string]any{"text": "there?"}})
	const want = "it speaks the modern era of the protocol only now"
	if r := s.await(t, "echo", ch); r.Error == nil || !strings.Contains(r.Error.Message, want) {
		t.Errorf("a call of a server that became a modern one: %s, want an error with %q", r, want)
	}
	s.do(t, step{"op": "close"})
	<-s.driver.exited()
	s.noneLeft(t)
}
