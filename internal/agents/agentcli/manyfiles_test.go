//go:build !race && !wine

// Thousands of files: one goroutine reads here, so the race detector would find nothing at ten times the cost, and Wine makes a file in 10 ms.

package agentcli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each killed process leaves two files. However many there are, every living session is seen, and files that have not
// changed are not read again.
func TestFiveThousandSessionFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	for pid := 100_000; pid < 105_000; pid++ {
		path := w.claudeState(pid, w.dir("elsewhere"), fmt.Sprint("dead", pid), `"status":"busy"`)
		writeFile(t, strings.TrimSuffix(path, "json")+"0a1b.key", "k")
	}
	q := Query{Dirs: []string{shop}, Since: time.Now().Add(-48 * time.Hour)}
	want := []string{"claude a 9 model", "claude b 999999 model", "claude c 1 model"}
	var states []string
	for pid, id := range map[int]string{1: "c", 9: "a", 999_999: "b"} {
		w.claude(shop, id)
		states = append(states, w.claudeState(pid, shop, id, `"status":"busy"`))
		q.Processes = append(q.Processes, Process{Kind: Claude, PID: pid, Start: uint64(pid) * 10, Dir: shop, Began: time.Now().Add(-time.Hour)})
	}
	for _, path := range states {
		aged(t, path, time.Hour)
	}
	r := NewReader(w.options)
	same(t, "the first look", w.found(r, q), want...)
	for _, path := range states { // as long as before, and written at the same time: whoever reads it again finds something else
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(mustRead(t, path)), `"busy"`, `"idle"`, 1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	sessions, err := r.Sessions(q)
	if err != nil || len(sessions) != 3 || slices.ContainsFunc(sessions, func(s Session) bool { return s.Status != Busy }) {
		t.Errorf("the second look has read files that have not changed: %v %+v", err, sessions)
	}
}

// A folder with more entries than are read is not silently a small one.
func TestFolderWithTooManyEntries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	w.codex(daysAgo(0), shop, "b")
	w.claude(shop, "a")
	folder := filepath.Dir(w.claudeState(70, shop, "a", `"status":"busy"`))
	for n := range listedMost {
		f, err := os.Create(filepath.Join(folder, fmt.Sprint(n, ".key")))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(w.options)
	for range 2 {
		sessions, err := r.Sessions(Query{Dirs: []string{shop}})
		if !errors.Is(err, errUnread) || !strings.Contains(err.Error(), folder) || len(sessions) < 2 {
			t.Errorf("%d sessions, %v", len(sessions), err)
		}
		if !errors.Is(r.Fault(Claude), errUnread) || r.Fault(Codex) != nil {
			t.Errorf("claude: %v, codex: %v", r.Fault(Claude), r.Fault(Codex))
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Sessions(Query{Dirs: []string{shop}}); err != nil || r.Fault(Claude) != nil {
		t.Errorf("once it is gone: %v, %v", err, r.Fault(Claude))
	}
}
