package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// Claude Code and Codex on two machines of a fleet are killed together with the server of the fleet that leads: each goes on with its session, once, nobody is told,
// and a third machine sees both.
func TestFleetKeepsRealAgents(t *testing.T) {
	t.Parallel()
	s, f := newCluster(t)
	looks := f.join(t, "looks")
	watchers := map[string]*watcher{}
	for _, kind := range []string{"claude", "codex"} {
		d := declaration{"start": declaration{"resume": resume(kind)}, "expect": done["expect"]}
		a, m := startWatched(t, kind, mockmodel.Tool, agentSetup{}, d, nil)
		usual := a.w.path("state/outlive/agents") // where the member of the machine finds the monitor
		if err := os.MkdirAll(filepath.Dir(usual), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(m.dir, usual); err != nil {
			t.Fatal(err)
		}
		f.joinAs(t, &joined{workspace: a.w, name: kind})
		watchers[kind] = m
	}
	leader := s.complete(t, 3)
	for kind, m := range watchers {
		m.awaitTool()
		looks.shows(t, `^`+kind+`/`+agentName+` `, "agent", "list", "--fleet")
	}
	for _, m := range watchers {
		m.a.model.SetMode(mockmodel.Answer)
	}
	s.servers[leader].kill()
	killed := time.Now()
	for _, m := range watchers {
		m.a.signal(9)
	}
	for kind, m := range watchers {
		m.judges("crashed")
		m.a.resumed()
		t.Logf("the model of %s was asked again %v after the death of its CLI and of the leader", kind, rounded(time.Since(killed)))
		m.judges("done")
		looks.shows(t, `^`+kind+`/`+agentName+` .*has finished`, "agent", "list", "--fleet")
		m.tellsNobody()
		m.await("the journal's entry", func() bool { return strings.Contains(m.journal(), "resume") })
		if n := strings.Count(m.journal(), "- **Action:**"); n != 1 {
			t.Errorf("%s: %d entries of one recovery:\n%s", kind, n, m.journal())
		}
	}
	s.servers[leader].start()
	s.complete(t, 3)
}
