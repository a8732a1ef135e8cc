package monitor

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/files/stateversion"
)

// schema is of monitor.db. Times are Unix milliseconds; data is JSON.
const schema = `
CREATE TABLE IF NOT EXISTS fact     (name TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sleep    (ended INTEGER NOT NULL, length INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sight    (project TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS recovery (id INTEGER PRIMARY KEY, project TEXT NOT NULL, stall TEXT NOT NULL, phase INTEGER NOT NULL,
	at INTEGER NOT NULL, step TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS recovery_project ON recovery (project, at);
CREATE TABLE IF NOT EXISTS trouble  (id TEXT PRIMARY KEY, agent TEXT NOT NULL, opened INTEGER NOT NULL, resolved INTEGER NOT NULL DEFAULT 0,
	due INTEGER NOT NULL DEFAULT 0, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS wish     (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, agent TEXT NOT NULL, verb TEXT NOT NULL, data TEXT NOT NULL,
	done INTEGER NOT NULL DEFAULT 0, answer TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS ping     (agent TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS journal  (id INTEGER PRIMARY KEY, entry TEXT NOT NULL, written INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS journal_waiting ON journal (id) WHERE written = 0;
`

// forgetAfter is how long what is over is kept.
const forgetAfter = 30 * 24 * time.Hour

// sweepEvery is how often it is looked at.
const sweepEvery = time.Hour

// store is monitor.db.
type store struct {
	db *sql.DB
}

// querier is the database, or one transaction of it.
type querier interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// openStore opens the database, or makes it. Power may fail at any moment: what is committed stays.
func openStore(ctx context.Context, path string) (*store, error) {
	if err := keepPrivate(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	q := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(5000)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?"+q.Encode())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(1) // one writer; and a transaction sees what was written before it
	s := &store{db: db}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return s, nil
}

// migrations bring the database from one version to the next; the first one makes it. The version is SQLite's user_version, 0
// in a new database and in one of an outlive that did not set it, which had the tables of version 1.
var migrations = []string{schema + notify.Schema, verdictSchema}

// migrate brings the database to our version, in one transaction. One of a newer outlive is refused and left as it is.
func (s *store) migrate(ctx context.Context) error {
	version, err := versionOf(ctx, s.db)
	if err != nil || version == len(migrations) {
		return err
	}
	return s.do(ctx, func(tx *sql.Tx) error {
		version, err := versionOf(ctx, tx) // another process may have migrated it meanwhile
		if err != nil {
			return err
		}
		for _, step := range migrations[version:] {
			if _, err := tx.ExecContext(ctx, step); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(migrations)))
		return err
	})
}

// versionOf returns the version of a database, and an error that wraps [stateversion.ErrNewer] for one that is above ours.
func versionOf(ctx context.Context, db querier) (version int, err error) {
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, err
	}
	return version, stateversion.Check("monitor.db in the monitor's home", version, len(migrations))
}

// keepPrivate makes the database's file, so that nobody else can read it before SQLite has written to it, and corrects the
// modes of files that an earlier version has left. SQLite gives the files beside it, -wal and -shm, the mode of the file.
func keepPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	errs := []error{f.Chmod(0o600), f.Close()}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Chmod(path+suffix, 0o600); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *store) close() error { return s.db.Close() }

// do runs f in one transaction: all of it happens, or nothing.
func (s *store) do(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("monitor.db: %w", err)
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("monitor.db: %w", err)
	}
	return nil
}

// forget removes what is long over.
func (s *store) forget(ctx context.Context, now time.Time) error {
	before := now.Add(-forgetAfter).UnixMilli()
	return s.do(ctx, func(tx *sql.Tx) error {
		var errs []error
		for _, q := range []string{
			`DELETE FROM sleep WHERE ended < ?`,
			`DELETE FROM recovery WHERE at < ? AND id NOT IN (SELECT max(id) FROM recovery GROUP BY project)`,
			`DELETE FROM trouble WHERE resolved > 0 AND resolved < ?`,
			`DELETE FROM wish WHERE done > 0 AND done < ? AND id < (SELECT max(id) FROM wish)`, // an id names one request for ever
		} {
			_, err := tx.ExecContext(ctx, q, before)
			errs = append(errs, err)
		}
		week := now.Add(-verdictsKept).UnixMilli()
		for _, q := range []string{
			`DELETE FROM verdict WHERE at < ?1 AND at < (SELECT max(at) FROM verdict AS v WHERE v.agent = verdict.agent AND at < ?1)`,
			`DELETE FROM watched WHERE until < ?1`,
		} {
			_, err := tx.ExecContext(ctx, q, week)
			errs = append(errs, err)
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM journal WHERE written > 0 AND id < (SELECT max(id) FROM journal) - 1000`)
		return errors.Join(append(errs, err)...)
	})
}

// fact reads a named fact into v and reports whether there was one.
func fact(ctx context.Context, db querier, name string, v any) (bool, error) {
	err := db.QueryRowContext(ctx, `SELECT data FROM fact WHERE name = ?`, name).Scan(asJSON{v})
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("monitor.db: %w", err)
	}
	return true, nil
}

func setFact(ctx context.Context, db querier, name string, v any) error {
	_, err := write(ctx, db, `INSERT INTO fact VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET data = excluded.data`, name, asJSON{v})
	return err
}

func (s *store) sleeps(ctx context.Context) ([]Sleep, error) {
	return query(ctx, s.db, `SELECT ended, length FROM sleep ORDER BY ended`, func(r *sql.Rows) (Sleep, error) {
		var ended, length int64
		err := r.Scan(&ended, &length)
		return Sleep{time.UnixMilli(ended), time.Duration(length) * time.Millisecond}, err
	})
}

func (s *store) addSleep(ctx context.Context, p Sleep) error {
	_, err := write(ctx, s.db, `INSERT INTO sleep VALUES (?, ?)`, p.End.UnixMilli(), p.Length.Milliseconds())
	return err
}

// journal queues an entry of the improvement log within tx.
func journal(ctx context.Context, tx *sql.Tx, e piv.Intervention) error {
	_, err := write(ctx, tx, `INSERT INTO journal (entry) VALUES (?)`, e.String())
	return err
}

// writeJournal puts what is queued into the improvement log, in order. Whatever cannot be written waits.
func (s *store) writeJournal(ctx context.Context, path string, checkpoint func(string)) error {
	type line struct {
		id    int64
		entry string
	}
	list, err := query(ctx, s.db, `SELECT id, entry FROM journal WHERE written = 0 ORDER BY id`, func(r *sql.Rows) (l line, err error) {
		return l, r.Scan(&l.id, &l.entry)
	})
	if err != nil {
		return err
	}
	for _, l := range list {
		checkpoint("journal-before")
		if err := piv.AppendOnce(path, l.entry); err != nil {
			return err
		}
		checkpoint("journal-after")
		if _, err := write(ctx, s.db, `UPDATE journal SET written = 1 WHERE id = ?`, l.id); err != nil {
			return err
		}
	}
	return nil
}

// asJSON writes v into a column as JSON, and reads it from there.
type asJSON struct{ v any }

// Value implements [driver.Valuer].
func (j asJSON) Value() (driver.Value, error) {
	data, err := json.Marshal(j.v)
	return string(data), err
}

// Scan implements [sql.Scanner].
func (j asJSON) Scan(data any) error {
	text, is := data.(string)
	if !is {
		return fmt.Errorf("a column of text has %T", data)
	}
	return json.Unmarshal([]byte(text), j.v)
}

// write runs a statement that changes the database. id is of the row that it has inserted.
func write(ctx context.Context, db querier, q string, args ...any) (id int64, err error) {
	res, err := db.ExecContext(ctx, q, args...)
	if err != nil {
		return 0, fmt.Errorf("monitor.db: %w", err)
	}
	return res.LastInsertId()
}

// query collects rows.
func query[T any](ctx context.Context, db querier, q string, scan func(*sql.Rows) (T, error), args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, q, args...)
	if err != nil {
		return nil, fmt.Errorf("monitor.db: %w", err)
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("monitor.db: %w", err)
		}
		list = append(list, v)
	}
	return list, rows.Err()
}
