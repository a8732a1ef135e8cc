package agentcli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	openCodeSessionsMost = 64              // latest sessions that are read: subagents after all others
	openCodeMessages     = 24              // latest messages of each
	openCodePatience     = 2 * time.Second // time limit for one look
)

// openCodeFiles are OpenCode's files.
type openCodeFiles struct {
	source
	last map[string]openCodeLook // by the path of the database
}

func newOpenCodeFiles(s source) files { return &openCodeFiles{source: s} }

// openCodeLook remembers a database, which is queried only when it has changed.
type openCodeLook struct {
	db, wal  fs.FileInfo // at the last look; nil: it did not exist
	sessions []Session
	fault    error  // what was not read; nil: nothing
	dirs     string // the directories for which the sessions were read
	since    time.Time
}

// sessions returns the sessions of OpenCode in the wanted directories. A session that is in several databases, since one
// is a copy, is taken from where it was last written.
func (r *openCodeFiles) sessions(w *wanted) ([]Session, error) {
	paths, err := r.databases()
	errs, looks := []error{err}, map[string]openCodeLook{}
	var all []Session
	for _, path := range paths {
		look, err := lookOpenCode(path, r.last[path], w)
		looks[path], errs = look, append(errs, err)
		for _, s := range look.sessions {
			i := slices.IndexFunc(all, func(other Session) bool { return other.ID == s.ID })
			switch {
			case i < 0:
				all = append(all, s)
			case all[i].Turn.Sequence < s.Turn.Sequence:
				all[i] = s
			}
		}
	}
	r.last = looks
	return all, errors.Join(errs...)
}

// databases are those in OpenCode's folder, or the one that its variable names. Each channel of its releases has a
// database of its own: opencode.db, opencode-dev.db (its Database.path).
func (r *openCodeFiles) databases() ([]string, error) {
	if info, err := os.Lstat(r.place); err == nil && info.Mode().IsRegular() {
		_, _ = r.list(filepath.Dir(r.place)) // only to have the folder followed
		return []string{r.place}, nil
	}
	f, err := r.list(r.place)
	var paths []string
	for _, name := range f.names {
		if name == "opencode.db" || strings.HasPrefix(name, "opencode-") && filepath.Ext(name) == ".db" {
			paths = append(paths, filepath.Join(r.place, name))
		}
	}
	return paths, err
}

// lookOpenCode returns the sessions of a database, and what of it was not read. The database belongs to a program that
// writes it: it is opened read-only, only during a look, and without waiting for locks.
func lookOpenCode(path string, before openCodeLook, w *wanted) (openCodeLook, error) {
	db, err := os.Lstat(path)
	if err != nil || !db.Mode().IsRegular() {
		if err == nil || missing(err) {
			return openCodeLook{}, nil
		}
		return openCodeLook{}, err
	}
	wal, err := os.Lstat(path + "-wal")
	if err != nil {
		wal = nil // no process has it open
	}
	dirs := strings.Join(w.roots, "\x00")
	since := w.openCodeSince()
	if sameFile(db, before.db) && sameFile(wal, before.wal) && dirs == before.dirs && !before.since.After(since) {
		return before, before.fault
	}
	sessions, err := readOpenCode(path, wal != nil, w)
	if err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
		if !errors.Is(err, errUnread) {
			return before, err
		}
	}
	return openCodeLook{db: db, wal: wal, sessions: sessions, fault: err, dirs: dirs, since: since}, err
}

// openCodeSince is since when a session counts: Since, or the start of a living process. Its latest session may be older
// than Since and still its present one.
func (w *wanted) openCodeSince() time.Time {
	since := w.Since
	for _, p := range w.Processes {
		if p.Kind == OpenCode && !p.Began.IsZero() && p.Began.Before(since) {
			since = p.Began
		}
	}
	return since
}

// isForeign reports an error of a database that is not OpenCode's, or of another generation: it is no evidence. Other
// columns in a table of OpenCode's are an error.
func isForeign(err error) bool {
	return containsAny(err.Error(), "no such table", "not a database")
}

// readOpenCode queries the database. Without a write-ahead log there is no writer, and the file is opened as
// immutable: any other way would create a log next to it.
func readOpenCode(path string, live bool, w *wanted) ([]Session, error) {
	options := url.Values{"mode": {"ro"}, "_pragma": {"query_only(1)", "busy_timeout(200)"}}
	if !live {
		options.Set("immutable", "1")
	}
	place := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath(), RawQuery: options.Encode()}
	db, err := sql.Open("sqlite", place.String())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(context.Background(), openCodePatience)
	defer cancel()
	found, err := openCodeList(ctx, db, w, "session")
	newer, newerErr := openCodeList(ctx, db, w, "session_v2")
	if err := errors.Join(err, newerErr); err != nil && !errors.Is(err, errUnread) {
		return nil, err
	}
	var sessions []Session
	errs := []error{err, newerErr, openCodeUnread(newer, found)}
	for _, s := range found {
		s.File = path
		err := openCodeTurn(ctx, db, &s)
		switch {
		case err == nil:
			sessions = append(sessions, s)
		case !isForeign(err):
			errs = append(errs, err)
		}
	}
	return sessions, errors.Join(errs...)
}

// openCodeUnread is an error if a session of OpenCode 2 is not in OpenCode 1's table, or newer. OpenCode 2 begins with a
// copy of that, and keeps all that follows in tables that are not read.
func openCodeUnread(newer, found []Session) error {
	for _, s := range newer {
		if !slices.ContainsFunc(found, func(old Session) bool { return old.ID == s.ID && old.Turn.Sequence >= s.Turn.Sequence }) {
			return fmt.Errorf("session %s is of OpenCode 2: %w", s.ID, errUnread)
		}
	}
	return nil
}

// openCodeList returns the latest sessions of a table, without their turns.
func openCodeList(ctx context.Context, db *sql.DB, w *wanted, table string) ([]Session, error) {
	var since int64
	if from := w.openCodeSince(); !from.IsZero() {
		since = from.UnixMilli()
	}
	rows, err := db.QueryContext(ctx, `SELECT id, directory, coalesce(parent_id, '') <> '', time_updated FROM `+table+`
		WHERE time_archived IS NULL AND time_updated >= ? ORDER BY 3, time_updated DESC`, since)
	if err != nil {
		if isForeign(err) {
			err = nil
		}
		return nil, err
	}
	defer rows.Close()
	var found []Session
	for rows.Next() {
		s := Session{Kind: OpenCode}
		if err := rows.Scan(&s.ID, &s.Dir, &s.Subagent, &s.Turn.Sequence); err != nil {
			return nil, err
		}
		if s.Dir = filepath.Clean(s.Dir); !filepath.IsAbs(s.Dir) || !w.has(s.Dir) || w.outdated(&s, found) {
			continue
		}
		switch {
		case len(found) < openCodeSessionsMost:
			found = append(found, s)
		case s.Subagent:
			return found, nil // the latest of them were read
		default:
			return found, fmt.Errorf("all but the latest %d sessions: %w", openCodeSessionsMost, errUnread)
		}
	}
	return found, rows.Err()
}

// outdated reports whether a session is older than Since and not the latest of a living process. found are later ones.
func (w *wanted) outdated(s *Session, found []Session) bool {
	at := time.UnixMilli(s.Turn.Sequence)
	return at.Before(w.Since) && (s.Subagent || !w.mayBeOf(OpenCode, s.Dir, at) ||
		slices.ContainsFunc(found, func(later Session) bool { return later.Dir == s.Dir }))
}

// openCodeRows selects the latest messages of a session, each with its parts in order. Long values are cut by the
// database, so that they are not loaded into memory.
const openCodeRows = `
SELECT m.id, m.time_created, m.time_updated,
	coalesce(m.data ->> '$.role', ''), coalesce(m.data ->> '$.finish', ''),
	coalesce(m.data ->> '$.error.name', ''), coalesce(substr(m.data ->> '$.error.data.message', 1, 4096), ''),
	coalesce(CAST(m.data ->> '$.error.data.statusCode' AS REAL), 0), coalesce(CAST(m.data ->> '$.time.completed' AS REAL), 0),
	coalesce(p.id, ''), coalesce(p.time_updated, 0),
	coalesce(p.data ->> '$.type', ''), coalesce(p.data ->> '$.synthetic' OR p.data ->> '$.auto', 0), coalesce(substr(p.data ->> '$.text', -4096), ''),
	coalesce(p.data ->> '$.tool', ''), coalesce(p.data ->> '$.callID', ''), coalesce(p.data ->> '$.state.status', ''),
	coalesce(substr(p.data -> '$.state.input', 1, 65536), ''),
	coalesce(substr(p.data ->> '$.state.output', 1, 65536), '') || coalesce(substr(p.data ->> '$.state.error', 1, 4096), ''),
	coalesce(CAST(p.data ->> '$.state.time.start' AS REAL), 0), coalesce(CAST(p.data ->> '$.state.time.end' AS REAL), 0),
	coalesce(p.data ->> '$.metadata.providerExecuted' OR p.data ->> '$.state.status' = 'error' AND p.data ->> '$.state.metadata.interrupted', 0)
FROM (SELECT id, time_created, time_updated, data FROM message WHERE session_id = ? AND json_valid(data)
	ORDER BY time_created DESC, id DESC LIMIT ?) m
LEFT JOIN part p ON p.message_id = m.id AND json_valid(p.data)
ORDER BY m.time_created, m.id, p.id`

// openCodeTotals selects what a whole session has used.
const openCodeTotals = `
SELECT count(*) FILTER (WHERE data ->> '$.role' = 'user'), coalesce(sum(data ->> '$.cost'), 0),
	coalesce(sum(coalesce(data ->> '$.tokens.input', 0) + coalesce(data ->> '$.tokens.output', 0) + coalesce(data ->> '$.tokens.reasoning', 0)
		+ coalesce(data ->> '$.tokens.cache.read', 0) + coalesce(data ->> '$.tokens.cache.write', 0)), 0)
FROM message WHERE session_id = ? AND json_valid(data)`

func openCodeTurn(ctx context.Context, db *sql.DB, s *Session) error {
	rows, err := db.QueryContext(ctx, openCodeRows, s.ID, openCodeMessages)
	if err != nil {
		return err
	}
	defer rows.Close()
	var o openCodeScript
	o.turn.Sequence = s.Turn.Sequence
	for rows.Next() {
		var r openCodeRow
		if err := r.scan(rows); err != nil {
			continue // a member of an unexpected type
		}
		o.row(&r)
		o.turn.Sequence = max(o.turn.Sequence, r.messageAt, r.partAt)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	o.close()
	s.Turn = o.turn.snapshot()
	s.Status, s.StatusAt = o.turn.status()
	if s.Turn.Open == Question {
		s.Status, s.WaitingFor, s.StatusAt = Waiting, ForQuestion, s.Turn.OpenAt
	}
	var turns, tokens, cost sql.NullFloat64
	if err := db.QueryRowContext(ctx, openCodeTotals, s.ID).Scan(&turns, &cost, &tokens); err == nil {
		s.Turn.Turns, s.Turn.CostUSD, s.Turn.Tokens = int(turns.Float64), max(0, cost.Float64), amount(int64(tokens.Float64))
	}
	return nil
}
