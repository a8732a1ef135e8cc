package monitor

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// starts is a declaration of commands that can do everything.
const starts = "start: {cmd: [agent, new, \"{text}\"], resume: [agent, resume, \"{session}\", \"{preamble}\"]}\n"

// declare writes a registry of version 2.
func (w *world) declare(head string, agents ...string) {
	w.t.Helper()
	w.opts.Listen = func(*sql.DB, []string, notify.Applier) ([]Listener, error) { return nil, nil } // see hears
	w.write("registry.yaml", "version: 2\n"+head+"agents:\n"+strings.Join(agents, ""))
}

// agent is a declaration of one whose directory exists; each line of its own.
func (w *world) agent(name, lines string) string {
	w.t.Helper()
	if err := os.MkdirAll(w.dir(name), 0o700); err != nil {
		w.t.Fatal(err)
	}
	text := fmt.Sprintf("  %s:\n    path: %s\n", name, w.dir(name))
	for line := range strings.Lines(lines) {
		text += "    " + line
	}
	return text
}

func (w *world) dir(name string) string { return filepath.Join(w.home, "projects", name) }

// inJSON is a path as it stands within a string of JSON: on Windows it has backslashes.
func inJSON(path string) string { return strings.Trim(strconv.Quote(path), `"`) }

// beats leaves a heartbeat.
func (w *world) beats(name string, state heartbeat.State) {
	w.t.Helper()
	w.says(name, state, "")
}

// says leaves a heartbeat with a note.
func (w *world) says(name string, state heartbeat.State, note string) {
	w.t.Helper()
	if err := heartbeat.Write(BeatDir(w.home), heartbeat.Observation{Agent: name, Wall: w.wall, State: state, Note: note}); err != nil {
		w.t.Fatal(err)
	}
}

// claude is a fake Claude Code: a process in an agent's directory with its own two files.
type claude struct {
	w       *world
	pid     int
	name    string
	session string
}

var noWord = regexp.MustCompile(`[^A-Za-z0-9]`)

// claude starts one. It is at its prompt.
func (w *world) claude(name string, pid int) *claude {
	w.t.Helper()
	w.opts.Places = agentcli.Places{agentcli.Claude: filepath.Join(w.home, "claude")}
	c := &claude{w: w, pid: pid, name: name, session: "s-" + name}
	w.process(pid, w.dir(name), 0)
	w.args[pid] = []string{"claude"}
	c.is("idle", "")
	return c
}

// headless is the same without a terminal: nobody types in it.
func (c *claude) headless() *claude {
	c.w.args[c.pid] = []string{"claude", "-p", "go on"}
	return c
}

// is writes what the session does.
func (c *claude) is(status, waitingFor string) {
	id := c.w.living[c.pid].Identity
	c.file(filepath.Join("sessions", strconv.Itoa(c.pid)+".json"), os.O_TRUNC, fmt.Sprintf(
		`{"pid":%d,"sessionId":%q,"cwd":%q,"procStart":"%d","version":"2.1.330","status":%q,"waitingFor":%q,"statusUpdatedAt":%d,"updatedAt":0}`,
		id.PID, c.session, c.w.dir(c.name), id.Start, status, waitingFor, c.w.wall.UnixMilli()))
}

// writes appends a record to the transcript.
func (c *claude) writes(record string) {
	folder := noWord.ReplaceAllString(c.w.dir(c.name), "-")
	c.file(filepath.Join("projects", folder, c.session+".jsonl"), os.O_APPEND, fmt.Sprintf(`{"timestamp":%q,"sessionId":%q,"cwd":%q,%s}`+"\n",
		c.w.wall.UTC().Format("2006-01-02T15:04:05.000Z"), c.session, c.w.dir(c.name), record))
}

func (c *claude) file(name string, how int, text string) {
	c.w.t.Helper()
	path := filepath.Join(c.w.opts.Places[agentcli.Claude], name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|how, 0o600); err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		c.w.t.Fatal(err)
	}
}

// prompt is a turn that begins, and tool a call that is open then.
func (c *claude) prompt() {
	c.writes(`"type":"user","message":{"role":"user","content":"go on"}`)
	c.is("busy", "")
}

func (c *claude) tool(name, input string) {
	c.writes(fmt.Sprintf(`"type":"assistant","message":{"role":"assistant","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t%d","name":%q,"input":{%s}}]}`,
		c.w.wall.Unix(), name, input))
}

// ends is the end of a turn.
func (c *claude) ends(text string) {
	c.writes(fmt.Sprintf(`"type":"assistant","message":{"role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":%q}]}`, text))
	c.writes(`"type":"system","subtype":"turn_duration"`)
	c.is("idle", "")
}

// reports is what a wrapper around an agent says.
func (w *world) reports(name string, pid int, exit *agentrun.Exit) {
	w.reportsOf(name, pid, false, exit)
}

// reportsOf is the same of a command that works on one prompt and ends, if headless.
func (w *world) reportsOf(name string, pid int, headless bool, exit *agentrun.Exit) {
	w.t.Helper()
	id := process.Identity{PID: pid, Start: uint64(pid)*1000 + 1, Boot: w.boot}
	text := fmt.Sprintf(`{"v":1,"agent":%q,"pid":%d,"start":%d,"boot":%q,"wrapper":{"pid":%d,"start":%d,"boot":%q},"started_at":%q,"headless":%v`,
		name, id.PID, id.Start, id.Boot, pid-1, uint64(pid-1)*1000+1, w.boot, w.wall.Add(-w.living[pid].Age).UTC().Format(time.RFC3339Nano), headless)
	if !w.typed.IsZero() {
		text += fmt.Sprintf(`,"typed_at":%q`, w.typed.UTC().Format(time.RFC3339Nano))
	}
	if w.piped {
		text += `,"piped":true`
	}
	if w.socket != "" {
		text += fmt.Sprintf(`,"socket":%q`, w.socket)
	}
	if len(w.joined) > 0 {
		joined, err := json.Marshal(w.joined)
		if err != nil {
			w.t.Fatal(err)
		}
		text += `,"joined":` + string(joined)
	}
	if exit != nil {
		text += fmt.Sprintf(`,"exit":{"code":%d,"signal":%q,"at":%q}`, exit.Code, exit.Signal, exit.At.UTC().Format(time.RFC3339Nano))
	}
	path := agentrun.Path(w.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text+"}"), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// spends lets time pass in steps, and looks after each; see runLength.
func (w *world) spends(d, step time.Duration) {
	w.t.Helper()
	for left := int(d / step); left > 0; left -= runLength {
		w.cycles(min(left, runLength), func() { w.pass(step) })
	}
}

// press presses a button of the message that was told at an index, by its label, as the one who listens does.
func (w *world) press(at int, label string) string {
	w.t.Helper()
	for _, row := range w.shown[at].Buttons {
		for _, b := range row {
			if strings.HasPrefix(b.Label, label) {
				return w.presses(b.Callback)
			}
		}
	}
	w.t.Fatalf("there is no button %q on %q: %+v", label, w.shown[at].Text.Body, w.shown[at].Buttons)
	return ""
}

func (w *world) presses(c notify.Callback) (answer string) {
	return w.pressesAs(notify.From{Chat: 7, User: 7, Name: "@ann"}, c)
}

func (w *world) pressesAs(from notify.From, c notify.Callback) (answer string) {
	w.t.Helper()
	w.hears(func(to notify.Applier, tx *sql.Tx) (err error) {
		answer, err = to.Press(w.t.Context(), tx, notify.Press{From: from, Callback: c})
		return err
	})
	return answer
}

// replies answers a message with a text.
func (w *world) replies(at int, text string) {
	w.repliesAs(notify.From{Chat: 7, User: 7, Name: "@ann"}, at, text)
}

func (w *world) repliesAs(from notify.From, at int, text string) {
	w.t.Helper()
	from.Thread = w.shown[at].Thread
	w.hears(func(to notify.Applier, tx *sql.Tx) error {
		return to.Reply(w.t.Context(), tx, notify.Reply{From: from, Text: text})
	})
}

// hears gives something to whoever deals with answers, in a transaction, as the listener does.
func (w *world) hears(f func(notify.Applier, *sql.Tx) error) {
	w.t.Helper()
	m, err := Open(w.t.Context(), w.opts)
	if err != nil {
		w.t.Fatal(err)
	}
	err = m.store.do(context.Background(), func(tx *sql.Tx) error { return f(&answers{m}, tx) })
	if err := errors.Join(err, m.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// rungs are the commands that were started, by their first argument.
func (w *world) rungs() []string {
	var list []string
	for _, l := range w.started {
		list = append(list, l.Command[1])
	}
	return list
}
