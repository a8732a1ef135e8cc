package backend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
)

// ends notes what limits wants done to the serving process.
type ends struct{ done []string }

func (e *ends) restart(supervise.Source, string) { e.done = append(e.done, "renewed") }
func (e *ends) step(supervise.Event)             {}
func (e *ends) replaceUnhealthy(cause supervise.Cause, _ string) {
	e.done = append(e.done, "condemned")
}

// A process over its limit is replaced when it stays there, once, and ended at the second look that finds it far above.
func TestMemoryLimit(t *testing.T) {
	for looks, want := range map[string]string{
		"90 100 90":              "",
		"101 101 90 101":         "",
		"101 101 101 101":        "renewed",
		"121":                    "",
		"121 121":                "condemned",
		"101 101 101 99 130 130": "renewed condemned",
	} {
		w, done := &fakeWorld{}, &ends{}
		p := &process{phase: active, server: &fakeServer{w: w}}
		c := &core{sink: w, machine: supervise.New(supervise.Options{}), process: p}
		c.opts.Limits.MaxRSS = 100 << 20
		u := limits{core: c, life: done, health: done}
		for _, look := range strings.Fields(looks) {
			w.vitals.Known = true
			fmt.Sscan(look, &w.vitals.RSS)
			w.vitals.RSS <<= 20
			u.checkMemory(p)
		}
		if got := strings.Join(done.done, " "); got != want {
			t.Errorf("%s MiB: %q, want %q", looks, got, want)
		}
	}
}
