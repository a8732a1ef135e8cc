package piv

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

func TestReplaceOverwritesOnlyWhatWasRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := Replace(path, nil, []byte("one")); err != nil {
		t.Fatal(err)
	}
	write(t, path, "two") // by somebody else
	if err := Replace(path, []byte("one"), []byte("three")); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v, want ErrChanged", err)
	}
	if got := read(t, path); got != "two" {
		t.Errorf("%q: somebody else's words are gone", got)
	}
	if err := Replace(path, []byte("two"), []byte("three")); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	hidden, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".f*"))
	if got := read(t, path); got != "three" || len(files) != 1 || len(hidden) != 0 {
		t.Errorf("%q, and %v %v", got, files, hidden)
	}
}

// A reader sees the old text or the new one, never a part.
func TestReplaceIsAtomic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	texts := []string{strings.Repeat("a", 1<<16), strings.Repeat("b", 1<<17)}
	write(t, path, texts[0])
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != texts[0] && string(b) != texts[1] {
				t.Errorf("%d bytes, %v", len(b), err)
				return
			}
		}
	})
	for i := range 40 {
		if err := Replace(path, []byte(texts[i%2]), []byte(texts[(i+1)%2])); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	reader.Wait()
}

// S4 Task 14.
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

func TestAPipeInPlaceOfAFileHoldsNobodyUp(t *testing.T) {
	if _, err := ReadFile(t.TempDir()); !errors.Is(err, ErrBroken) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}
