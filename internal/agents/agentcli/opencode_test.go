package agentcli

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// openCodeDatabase is the file in which a release of OpenCode keeps its sessions.
const openCodeDatabase = "opencode.db"

// openCodeTables are the tables of OpenCode's sessions, as its migrations make them (packages/core/src/database/schema.gen.ts, 1.18.3). A
// database of the real 1.18.33 has the same columns.
const openCodeTables = `
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text, icon_url text, icon_url_override text,
	icon_color text, time_created integer NOT NULL, time_updated integer NOT NULL, time_initialized integer, sandboxes text NOT NULL, commands text);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text, slug text NOT NULL, directory text NOT NULL,
	path text, title text NOT NULL, version text NOT NULL, share_url text, summary_additions integer, summary_deletions integer,
	summary_files integer, summary_diffs text, metadata text, cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL,
	tokens_output integer DEFAULT 0 NOT NULL, tokens_reasoning integer DEFAULT 0 NOT NULL, tokens_cache_read integer DEFAULT 0 NOT NULL,
	tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, permission text, agent text, model text, time_created integer NOT NULL,
	time_updated integer NOT NULL, time_compacting integer, time_archived integer,
	CONSTRAINT fk_session_project_id_project_id_fk FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL,
	CONSTRAINT fk_message_session_id_session_id_fk FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
	data text NOT NULL, CONSTRAINT fk_part_message_id_message_id_fk FOREIGN KEY (message_id) REFERENCES message(id) ON DELETE CASCADE);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL, time_created integer NOT NULL,
	time_updated integer NOT NULL, data text NOT NULL,
	CONSTRAINT fk_session_message_session_id_session_id_fk FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
CREATE INDEX session_project_idx ON session (project_id);
CREATE INDEX session_workspace_idx ON session (workspace_id);
CREATE INDEX session_parent_idx ON session (parent_id);
CREATE UNIQUE INDEX session_message_session_seq_idx ON session_message (session_id, seq);
INSERT INTO project (id, worktree, time_created, time_updated, sandboxes) VALUES ('global', '/', 0, 0, '[]');`

// openCode is a database that another process has open for writing, as OpenCode does.
type openCode struct {
	t    testing.TB
	path string
	db   *sql.DB
	at   int64
}

// forgetOpenCode has the next look ask the database again.
func forgetOpenCode(r *Reader) {
	for _, f := range r.files {
		if o, is := f.files.(*openCodeFiles); is {
			o.last = nil
		}
	}
}

func newOpenCode(t testing.TB, path string) *openCode {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?_pragma=journal_mode(WAL)&_pragma=synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	o := &openCode{t: t, path: path, db: db, at: time.Now().UnixMilli()}
	o.exec(openCodeTables)
	return o
}

func (o *openCode) exec(query string, args ...any) {
	o.t.Helper()
	if _, err := o.db.Exec(query, args...); err != nil {
		o.t.Fatal(err)
	}
}

func (o *openCode) session(id, dir string) { o.sessionIn("session", id, nil, dir) }

// sessionIn adds a session to the table of a generation of OpenCode. parent is the session that began it, or nil.
func (o *openCode) sessionIn(table, id string, parent any, dir string) {
	o.t.Helper()
	o.exec(`INSERT INTO `+table+` (id, project_id, parent_id, slug, directory, title, version, time_created, time_updated)
		VALUES (?, 'global', ?, ?, ?, 'New session', '1.18.3', ?, ?)`, id, parent, id, dir, o.at, o.at)
}

// message adds a message with its parts, or replaces it.
func (o *openCode) message(session, id, data string, parts ...string) {
	o.t.Helper()
	o.at += 1000
	o.exec(`INSERT OR REPLACE INTO message VALUES (?, ?, coalesce((SELECT time_created FROM message WHERE id = ?), ?), ?, ?)`, id, session, id, o.at, o.at, data)
	o.exec(`DELETE FROM part WHERE message_id = ?`, id)
	for i, part := range parts {
		o.exec(`INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)`, fmt.Sprint(id, "-", i), id, session, o.at, o.at, part)
	}
}

func TestOpenCode(t *testing.T) {
	t.Parallel()
	const (
		user      = `{"role":"user"}`
		assistant = `{"role":"assistant","time":{"created":1},"tokens":{"input":10,"output":5,"cache":{"read":1,"write":2}},"cost":0.25}`
		finished  = `{"role":"assistant","time":{"created":1,"completed":1795266995000},"finish":"stop","tokens":{"input":10,"output":5,"cache":{"read":1,"write":2}},"cost":0.25}`
		running   = `{"type":"tool","callID":"c1","tool":"bash","state":{"status":"running","input":{"command":"make"},"time":{"start":1795266900000}}}`
		completed = `{"type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"make"},"output":"ok","time":{"start":1795266900000,"end":1795266990000}}}`
		start     = `{"type":"step-start"}`
	)
	tests := []struct {
		name  string
		do    func(o *openCode)
		want  string
		moved bool
	}{
		{"a prompt", func(o *openCode) { o.message("s", "m1", user, `{"type":"text","text":"go"}`) }, "model", true},
		{"nothing", func(*openCode) {}, "model", false},
		{"the model answers", func(o *openCode) { o.message("s", "m2", assistant, start) }, "model", true},
		{"a command", func(o *openCode) { o.message("s", "m2", assistant, start, running) }, "tool bash(make)", true},
		{"it returns", func(o *openCode) {
			o.message("s", "m2", assistant, start, completed, `{"type":"step-finish","reason":"tool-calls"}`)
		}, "model", true},
		{"a question", func(o *openCode) {
			o.message("s", "m3", assistant, start, `{"type":"tool","callID":"c2","tool":"question","state":{"status":"running","input":{"questions":[{"question":"Which?"}]}}}`)
		}, "question question(Which?)", true},
		{"what nobody knows", func(o *openCode) {
			o.message("s", "m3", assistant, start, `{"type":7,"state":[]}`, `{"broken`, `{"type":"tool","state":{"status":"running","input":"text","time":{"start":"soon"}}}`)
		}, "tool", true},
		{"the end", func(o *openCode) {
			o.message("s", "m3", finished, start, `{"type":"text","text":"Shall I go on?"}`, `{"type":"step-finish","reason":"stop"}`)
		}, "ended asking", true},
		{"an error", func(o *openCode) {
			o.message("s", "m4", user)
			o.message("s", "m5", `{"role":"assistant","error":{"name":"APIError","data":{"message":"slow down","statusCode":429}}}`)
		}, "ended [rate_limit 429 try 0/0]", true},
		{"aborted", func(o *openCode) {
			o.message("s", "m6", user)
			o.message("s", "m7", `{"role":"assistant","error":{"name":"MessageAbortedError"}}`, start)
		}, "ended interrupted", true},
		{"a message that is not JSON", func(o *openCode) { o.message("s", "m8", `{"role":`) }, "ended interrupted", false},
	}
	w := newWorld(t)
	shop := w.dir("shop")
	o := newOpenCode(t, filepath.Join(w.options.Places[OpenCode], openCodeDatabase))
	o.session("s", shop)
	o.session("elsewhere", w.dir("other"))
	r := NewReader(w.options)
	last := int64(0)
	for _, test := range tests {
		test.do(o)
		sessions, err := r.Sessions(Query{Dirs: []string{shop}})
		if err != nil || len(sessions) != 1 || sessions[0].ID != "s" {
			t.Fatalf("%s: %+v %v", test.name, sessions, err)
		}
		turn := sessions[0].Turn
		if got := reading(turn); got != test.want {
			t.Errorf("%s: %q, wanted %q", test.name, got, test.want)
		}
		if turn.Sequence < last || test.moved != (turn.Sequence > last) {
			t.Errorf("%s: the sequence was %d and is %d", test.name, last, turn.Sequence)
		}
		last = turn.Sequence
	}
	sessions, _ := r.Sessions(Query{Dirs: []string{shop}})
	if turn := sessions[0].Turn; turn.Tokens != 36 || turn.CostUSD != 0.5 || turn.Turns != 3 {
		t.Errorf("%d tokens, $%v, %d turns", turn.Tokens, turn.CostUSD, turn.Turns)
	}
}

// Reading leaves everything as it was: no lock in the writer's way, no file more than before.
func TestOpenCodeIsNotDisturbed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	o := newOpenCode(t, filepath.Join(w.options.Places[OpenCode], openCodeDatabase))
	o.session("s", shop)
	r := NewReader(w.options)
	q := Query{Dirs: []string{shop}}
	if _, err := o.db.Exec(`BEGIN IMMEDIATE`); err != nil { // another process is writing
		t.Fatal(err)
	}
	began := time.Now()
	same(t, "while it writes", w.found(r, q), "opencode s 0")
	tier.Within(t, "a look that must not wait for the writer", time.Since(began), time.Second)
	if err := o.db.Close(); err != nil {
		t.Fatal(err)
	}
	files := func() (names []string) {
		entries, err := os.ReadDir(filepath.Dir(o.path))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if got := files(); len(got) != 1 {
		t.Fatalf("the writer has not cleaned up: %q", got)
	}
	same(t, "after it has ended", w.found(r, q), "opencode s 0")
	same(t, "by a new reader", w.found(NewReader(w.options), q), "opencode s 0")
	if got := files(); len(got) != 1 {
		t.Errorf("files that the look has left: %q", got)
	}
}

func TestOpenCodeThatIsSomethingElse(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(t *testing.T, path string){
		"a text": func(t *testing.T, path string) {
			writeFile(t, path, "this is not a database, and long enough to be looked at closely")
		},
		"empty":        func(t *testing.T, path string) { writeFile(t, path, "") },
		"other tables": func(t *testing.T, path string) { newOpenCode(t, path).exec(`DROP TABLE session`) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.t = t
			make(t, filepath.Join(w.options.Places[OpenCode], openCodeDatabase))
			same(t, name, w.found(NewReader(w.options), Query{Dirs: []string{w.dir("shop")}}))
		})
	}
}

// Each channel of OpenCode's releases has a database of its own, and a variable may name another one.
func TestDatabasesOfOpenCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	q := Query{Dirs: []string{shop}}
	place := w.options.Places[OpenCode]
	release, dev := newOpenCode(t, filepath.Join(place, openCodeDatabase)), newOpenCode(t, filepath.Join(place, "opencode-dev.db"))
	release.session("a", shop)
	dev.session("b", shop)
	r := NewReader(w.options)
	same(t, "two channels", w.found(r, q), "opencode a 0", "opencode b 0")
	dev.message("b", "m1", `{"role":"user"}`)
	for _, name := range []string{"opencode-a.db", "opencode-z.db"} { // read before and after it
		older := newOpenCode(t, filepath.Join(place, name))
		older.at = dev.at - 1
		older.session("b", shop)
	}
	same(t, "with older copies", w.found(r, q), "opencode a 0", "opencode b 0 model")
	for name, file := range map[string]string{"in the folder": "mine.sqlite", "elsewhere": filepath.Join(w.home, "x", "mine.db")} {
		path := file
		if !filepath.IsAbs(path) {
			path = filepath.Join(place, file)
		}
		named := NewReader(Options{Places: DefaultPlaces(w.home, func(variable string) string {
			return map[string]string{"OPENCODE_DB": file}[variable]
		})})
		same(t, name+", before it is made", w.found(named, q))
		newOpenCode(t, path).session("c", shop)
		same(t, name, w.found(named, q), "opencode c 0")
	}
}

// What another schema of the same table would show is not known.
func TestOpenCodeWithOtherColumns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	newOpenCode(t, filepath.Join(w.options.Places[OpenCode], openCodeDatabase)).exec(`DROP TABLE session; CREATE TABLE session (name text)`)
	r := NewReader(w.options)
	for range 2 {
		if sessions, err := r.Sessions(Query{Dirs: []string{w.dir("shop")}}); err == nil || r.Fault(OpenCode) == nil || len(sessions) > 0 {
			t.Errorf("%v, %v", sessions, err)
		}
	}
}

// openCode2Tables are those of OpenCode 2's sessions (its packages/core/src/session/sql.ts, 2.0).
const openCode2Tables = `
DROP TABLE session_message;
CREATE TABLE session_v2 (id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text, fork_session_id text, fork_boundary text,
	slug text NOT NULL, directory text NOT NULL, path text, title text, version text NOT NULL, share_url text, summary_additions integer,
	summary_deletions integer, summary_files integer, summary_diffs text, metadata text, cost real DEFAULT 0 NOT NULL,
	tokens_input integer DEFAULT 0 NOT NULL, tokens_output integer DEFAULT 0 NOT NULL, tokens_reasoning integer DEFAULT 0 NOT NULL,
	tokens_cache_read integer DEFAULT 0 NOT NULL, tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, permission text, agent text, model text,
	time_created integer NOT NULL, time_updated integer NOT NULL, time_idle integer, time_viewed integer, idle_outcome text, time_compacting integer,
	time_archived integer, time_suspended integer, resume_attempts integer DEFAULT 0 NOT NULL,
	CONSTRAINT fk_session_v2_project_id_project_id_fk FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL, time_created integer NOT NULL,
	time_updated integer NOT NULL, data text NOT NULL,
	CONSTRAINT fk_session_message_session_id_session_v2_id_fk FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE);`

// Sessions of OpenCode 2 are not read, and are not silence.
func TestSessionsOfOpenCode2AreUnread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop, other := w.dir("shop"), w.dir("other")
	const newer = "session_v2"
	lives := []Process{{Kind: OpenCode, PID: 7, Start: 70, Dir: shop, Began: time.Now().Add(-100 * time.Hour)}}
	tests := map[string]struct {
		do        func(o *openCode)
		processes []Process
		fault     bool
		want      []string
	}{
		"OpenCode 1":                   {func(o *openCode) { o.session("a", shop) }, nil, false, []string{"a"}},
		"OpenCode 2 beside it":         {func(o *openCode) { o.session("a", shop); o.sessionIn(newer, "b", nil, shop) }, nil, true, []string{"a"}},
		"copied":                       {func(o *openCode) { o.session("a", shop); o.sessionIn(newer, "a", nil, shop) }, nil, false, []string{"a"}},
		"copied, and 1 goes on":        {func(o *openCode) { o.sessionIn(newer, "a", nil, shop); o.at++; o.session("a", shop) }, nil, false, []string{"a"}},
		"copied, and 2 goes on":        {func(o *openCode) { o.session("a", shop); o.at++; o.sessionIn(newer, "a", nil, shop) }, nil, true, []string{"a"}},
		"elsewhere":                    {func(o *openCode) { o.sessionIn(newer, "b", nil, other) }, nil, false, nil},
		"long ago":                     {func(o *openCode) { o.at -= 72 * 3600e3; o.sessionIn(newer, "b", nil, shop) }, nil, false, nil},
		"long ago, and it still lives": {func(o *openCode) { o.at -= 72 * 3600e3; o.sessionIn(newer, "b", nil, shop) }, lives, true, nil},
		"OpenCode 2 alone": {func(o *openCode) {
			o.exec(`DROP TABLE part; DROP TABLE message; DROP TABLE session`)
			o.sessionIn(newer, "b", nil, shop)
		}, nil, true, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), openCodeDatabase)
			o := newOpenCode(t, path)
			o.exec(openCode2Tables)
			test.do(o)
			r := NewReader(Options{Places: Places{OpenCode: path}})
			for range 2 { // the second look is answered from memory
				sessions, err := r.Sessions(Query{Dirs: []string{shop}, Since: time.Now().Add(-48 * time.Hour), Processes: test.processes})
				var ids []string
				for _, s := range sessions {
					ids = append(ids, s.ID)
				}
				if !slices.Equal(ids, test.want) || errors.Is(err, errUnread) != test.fault || errors.Is(r.Fault(OpenCode), errUnread) != test.fault {
					t.Errorf("%q, %v", ids, err)
				}
			}
		})
	}
}
