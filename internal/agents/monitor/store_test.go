package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/files/stateversion"
)

// database makes a monitor.db from statements, as another version of outlive would have left it.
func database(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "monitor.db")
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A database of an outlive that wrote no version keeps its content, and gets the version.
func TestAnOlderDatabaseIsMigrated(t *testing.T) {
	path := database(t, schema+notify.Schema, `INSERT INTO fact VALUES ('kept', '"since version 0"')`)
	for range 2 { // the second time there is nothing to do
		s, err := openStore(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		var kept string
		if ok, err := fact(t.Context(), s.db, "kept", &kept); !ok || err != nil || kept != "since version 0" {
			t.Errorf("fact %q, %v, %v", kept, ok, err)
		}
		if version, err := versionOf(t.Context(), s.db); version != len(migrations) || err != nil {
			t.Errorf("version %d, %v, want %d", version, err, len(migrations))
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A database of a newer outlive is refused, and not a byte of it changes.
func TestANewerDatabaseIsRefused(t *testing.T) {
	path := database(t, `CREATE TABLE fact (another_shape INTEGER)`, fmt.Sprintf("PRAGMA user_version = %d", len(migrations)+1))
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(t.Context(), path); !errors.Is(err, stateversion.ErrNewer) {
		t.Errorf("opened: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("it was changed (%v)", err)
	}
}

// A step that fails leaves the database as it was, at its version.
func TestAFailedMigrationChangesNothing(t *testing.T) {
	before := migrations
	t.Cleanup(func() { migrations = before })
	migrations = append(migrations[:1:1], `CREATE TABLE half (a)`, `no SQL`)
	path := database(t, before[0], `PRAGMA user_version = 1`)
	if _, err := openStore(t.Context(), path); err == nil {
		t.Fatal("opened")
	}
	migrations = before
	s, err := openStore(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	var tables int
	if err := s.db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE name = 'half'`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("%d tables of a step that failed, %v", tables, err)
	}
}

// printer is a channel whose messages cannot be changed.
type printer struct{ w *world }

func (p printer) Send(ctx context.Context, m notify.Message) (string, error) { return p.w.Send(ctx, m) }

// An incident that an older outlive has told is not told again, though the newer one knows more to say of it. What is news is told.
func TestAnIncidentOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.Channels, w.opts.Version = map[string]notify.Channel{"telegram": printer{w}}, "2"
	w.declare("", w.agent("shop", "kind: claude\n"+starts+"policy: {crashed: [escalate]}\n"))
	w.claude("shop", 1001).prompt()
	w.cycle()
	clear(w.living)
	w.spends(2*time.Minute, time.Minute)
	if len(w.said) != 1 || !strings.Contains(w.said[0], "crashed") {
		t.Fatalf("said %q", w.said)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(w.opts.Database()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`UPDATE trouble SET data = json_remove(json_set(data, '$.key.episode', 'e'), '$.version', '$.facts.no_nudge', '$.facts.no_replies', '$.facts.no_terminal')`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	w.spends(3*time.Minute, time.Minute)
	if len(w.said) != 1 {
		t.Errorf("it is told again: %q", w.said)
	}
	if facts := w.incidents(); !strings.Contains(facts, `"no_nudge":true`) || !strings.Contains(facts, `"version":"2"`) {
		t.Errorf("what is known of it is not kept: %s", facts)
	}
	w.claude("shop", 1002).prompt()
	w.spends(2*time.Minute, time.Minute)
	if len(w.said) < 2 || !strings.Contains(w.said[len(w.said)-1], "works again") {
		t.Errorf("its end is not told: %q", w.said)
	}
}

// incidents are those of the database, as they are written.
func (w *world) incidents() string {
	w.t.Helper()
	s, err := openStore(w.t.Context(), w.opts.Database())
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := query(w.t.Context(), s.db, `SELECT data FROM trouble`, func(r *sql.Rows) (text string, err error) { return text, r.Scan(&text) })
	if err := errors.Join(err, s.close()); err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(all, "\n")
}
