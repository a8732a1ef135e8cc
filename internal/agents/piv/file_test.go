package piv

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// PIV-13.
func TestImprovementLog(t *testing.T) {
	e := Intervention{
		Time: time.Date(2026, 3, 2, 2, 14, 0, 5e6, time.UTC), Project: "shop", Phase: 3, Stall: "session_hung", Action: "restart",
		Outcome: "restarted", Details: "two\n### lines - **Stall:** forged",
	}
	want := "### 2026-03-02T02:14:00.005Z — shop (Phase 3)\n- **Stall:** session_hung\n- **Action:** restart\n- **Outcome:** restarted\n- **Details:** two ### lines - **Stall:** forged\n\n"
	if got := e.String(); got != want {
		t.Fatalf("format:\n%s", got)
	}
	path := filepath.Join(t.TempDir(), "deep", "er", "improvement-log.md")
	other := e
	other.Project, other.Phase = "blog", NoPhase
	for _, text := range []string{want, other.String(), want} { // the third is a repetition after a kill
		if err := AppendOnce(path, text); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, path); got != want+other.String() || !strings.Contains(got, "blog (Phase unknown)") {
		t.Errorf("the log:\n%s", got)
	}
	write(t, path, "cut of")
	if err := AppendOnce(path, want); err != nil || read(t, path) != "cut of\n\n"+want {
		t.Errorf("after a cut entry: %v\n%s", err, read(t, path))
	}
	if err := AppendOnce(filepath.Join(path, "below"), want); err == nil {
		t.Error("an impossible path is no error")
	}
}

// What is too long or no ordinary file is not one of PIV's.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.yaml")
	write(t, path, strings.Repeat("#", SizeLimit))
	if text, err := ReadFile(path); err != nil || len(text) != SizeLimit {
		t.Errorf("as long as may be: %d bytes, %v", len(text), err)
	}
	write(t, path, strings.Repeat("#", SizeLimit+1))
	if text, err := ReadFile(path); !errors.Is(err, ErrBroken) || text != nil {
		t.Errorf("too long: %d bytes, %v", len(text), err)
	}
	if _, err := ReadFile(t.TempDir()); !errors.Is(err, ErrBroken) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}
