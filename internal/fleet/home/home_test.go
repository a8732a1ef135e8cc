package home

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/fleet/gate"
	"github.com/outlive-mcp/outlive/internal/fleet/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A command from another machine reaches the monitor of this one, once, whoever sends it again, and does nothing to an agent that is not what
// it was decided on.
func TestCommandReachesTheMonitor(t *testing.T) {
	dir := t.TempDir()
	registry := "version: 2\nagents:\n  shop:\n    path: " + dir + "\n    kind: command\n    match: {pidfile: pid}\n"
	if err := os.WriteFile(filepath.Join(dir, "registry.yaml"), []byte(registry), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := monitor.Options{Home: dir}
	fleet := mem.New()
	g, err := gate.Open(filepath.Join(dir, "gate.json"), New(opts))
	if err != nil {
		t.Fatal(err)
	}
	stop, err := g.Serve(fleet, "here")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	send := func(c gate.Command) gate.Outcome {
		t.Helper()
		c.Agent, c.By = "shop", "ann"
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		reply := g.Do(ctx, c)
		return reply.Outcome
	}
	view, err := monitor.Inspect(t.Context(), opts)
	if err != nil || len(view.Findings) != 1 {
		t.Fatalf("%+v, %v", view, err)
	}
	now := view.Findings[0].Incarnation
	old := gate.Command{ID: "1", Verb: "say", Incarnation: "7.7.7"}
	current := gate.Command{ID: "2", Verb: "say", Incarnation: now}
	for _, c := range []gate.Command{old, current} {
		if got := send(c); got != gate.Unsure {
			t.Errorf("without a monitor %+v is %s, want %s", c, got, gate.Unsure)
		}
	}
	m, err := monitor.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Once(t.Context())
	if cerr := m.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	if got := send(old); got != gate.Changed {
		t.Errorf("what was decided on another incarnation: %s", got)
	}
	reply, err := gate.Send(t.Context(), fleet, "here", gate.Command{ID: "2", Verb: "say", Agent: "shop", Incarnation: now}, nil)
	if err != nil || reply.Outcome != gate.Done || reply.Text == "" { // its registry names no way, which is what the monitor answers
		t.Errorf("the other, asked again: %+v, %v", reply, err)
	}
	if got := send(gate.Command{ID: "3", Verb: "reset", Incarnation: now}); got != gate.Refused {
		t.Errorf("a verb that is none: %s", got)
	}
}
