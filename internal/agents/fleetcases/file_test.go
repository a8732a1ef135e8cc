package fleetcases

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/files/stateversion"
)

// What is read is what was written; no file is no case; what a newer one has written is refused.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cases.json")
	if got, err := Read(path); err != nil || got != nil {
		t.Fatalf("without a file: %v, %v", got, err)
	}
	want := []Case{{ID: "1", Agent: "machine:b", Class: "machine_gone", Name: "The machine b", Since: time.Now().UTC().Truncate(time.Second), Members: []string{"b/shop"}}, {ID: "2", Over: "it is back", Recovered: true, Withdrawn: true}}
	if err := Write(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for text, is := range map[string]error{`{"version":99}`: stateversion.ErrNewer, `{`: nil} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || is != nil && !errors.Is(err, is) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
