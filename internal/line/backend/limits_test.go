package backend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

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
		w := readyWorld(Options{Limits: Limits{MaxRSS: 100 << 20}})
		p := w.b.process
		for _, look := range strings.Fields(looks) {
			w.vitals.Known = true
			fmt.Sscan(look, &w.vitals.RSS)
			w.vitals.RSS <<= 20
			w.b.limits.checkMemory(p)
		}
		var done []string
		for _, e := range w.events {
			switch e.Type {
			case event.LimitReached:
				done = append(done, "renewed")
			case event.ServerUnhealthy:
				done = append(done, "condemned")
			}
		}
		if got := strings.Join(done, " "); got != want {
			t.Errorf("%s MiB: %q, want %q", looks, got, want)
		}
	}
}
