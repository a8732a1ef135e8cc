package monitor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/piv"
)

// What a project is called reaches a terminal and the improvement log as text only: no escape, no line of its own.
func TestANameWithControlCharacters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entry := strings.Replace(w.entry("shop", piv.Running, 20*time.Minute, 1001), "name: shop", `name: "sh\e[2J\e]0;x\aop\n### forged"`, 1)
	w.registry(entry)
	view, err := Inspect(t.Context(), w.opts)
	if err != nil || len(view.Findings) != 1 {
		t.Fatal(view, err)
	}
	if text := view.Findings[0].String(); strings.ContainsAny(text, "\x1b\x07\n") || !strings.Contains(text, "forged") {
		t.Errorf("--dry-run prints %q", text)
	}
	w.cycle()
	if log := w.read("improvement-log.md"); strings.ContainsAny(log, "\x1b\x07") || strings.Contains(log, "\n### forged") || !strings.Contains(log, "forged") {
		t.Errorf("log:\n%q", log)
	}
}

// Hidden files that a kill has left half written are removed, once nobody can be writing them any more.
func TestHalfWrittenFilesAreRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, 0, 0))
	old := w.home + "/.registry.yaml.3256767331"
	kept := []string{".registry.yaml.4256767331", ".registry.yaml.mine", ".registry.yaml.broken-2026", "registry.yaml.325"}
	for _, name := range append(kept, filepath.Base(old)) {
		w.write(name, "half")
		if name != kept[0] {
			if err := os.Chtimes(filepath.Join(w.home, name), time.Now().Add(-2*time.Hour), time.Now().Add(-2*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.cycle()
	if _, err := os.Stat(old); err == nil {
		t.Error("it is still there")
	}
	for _, name := range kept {
		if _, err := os.Stat(filepath.Join(w.home, name)); err != nil {
			t.Error(err)
		}
	}
}
