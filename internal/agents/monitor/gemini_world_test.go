package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// gemini starts a Gemini CLI behind a wrapper, as the process 1001, whose model has just answered with a call.
func (w *world) gemini(name string) {
	w.t.Helper()
	w.opts.Places = agentcli.Places{agentcli.Gemini: filepath.Join(w.home, "gemini")}
	w.process(1000, w.dir(name), time.Minute)
	w.process(1001, w.dir(name), time.Minute)
	w.args[1001] = []string{"node", "/usr/bin/gemini", "-i", "Check the shop"}
	chat := `{"sessionId":"g1","kind":"main"}
{"id":"1","timestamp":%[1]q,"type":"user","content":[{"text":"Check the shop"}]}
{"id":"2","timestamp":%[2]q,"type":"gemini","content":"","thoughts":[],"tokens":{"total":1220}}
`
	stamp := func(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
	if err := os.MkdirAll(filepath.Join(w.home, "gemini", "tmp", "shop", "chats"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join("gemini", "projects.json"), fmt.Sprintf(`{"projects":{"%s":"shop"}}`, inJSON(w.dir(name))))
	w.write(filepath.Join("gemini", "tmp", "shop", "chats", "session-1.jsonl"), fmt.Sprintf(chat, stamp(w.wall.Add(-time.Second)), stamp(w.wall)))
}

// reportIs is what the wrapper of the process 1001 says.
func (w *world) reportIs(name string, change func(*agentrun.Report)) {
	w.t.Helper()
	id := func(pid int) process.Identity {
		return process.Identity{PID: pid, Start: uint64(pid)*1000 + 1, Boot: w.boot}
	}
	r := agentrun.Report{Version: 1, Agent: name, PID: 1001, Start: id(1001).Start, Boot: w.boot, Wrapper: id(1000), StartedAt: w.wall.Add(-time.Minute)}
	change(&r)
	path := agentrun.Path(w.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, mustJSON(r), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// Gemini CLI's title asks for a person before a dialog, and over a command that is silent for 30 s (0.61.0).
func TestATitleOverAQuietCommand(t *testing.T) {
	t.Parallel()
	const helper = 1500
	for name, tt := range map[string]struct {
		began time.Duration // of the helper, since the answer
		class diagnose.Class
	}{
		"a command that runs":                     {time.Second, diagnose.AtWork},
		"an MCP server, or an earlier command":    {-30 * time.Second, diagnose.WaitingPermission},
		"what was started while the dialog is up": {40 * time.Second, diagnose.WaitingPermission},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: gemini\n"+starts))
			w.gemini("shop")
			answered := w.wall
			w.pass(time.Minute)
			w.process(helper, w.dir("shop"), w.wall.Sub(answered.Add(tt.began)))
			w.parents[helper], w.parents[1001] = 1001, 1000
			w.reportIs("shop", func(r *agentrun.Report) {
				r.StartedAt, r.OutputAt = answered.Add(-time.Minute), w.wall
				r.Title, r.TitleState, r.TitleAt = "✋  Action Required (shop)", agentcli.Waiting, answered.Add(33*time.Second)
			})
			w.cycle()
			if v := w.diagnosis(); v.Class != tt.class {
				t.Errorf("it is called %s, want %s: %s", v.Class, tt.class, v.Details)
			}
		})
	}
}

// `gemini -p` writes no error into its session: its output has it, as stream-json, and no exit status says so.
func TestAnErrorThatOnlyTheOutputShows(t *testing.T) {
	t.Parallel()
	const key = `[API Error: {"error":{"message":"{\"error\": {\"code\": 400, \"message\": \"API key not valid. Please pass a valid API key.\"}}","code":400}}]`
	for name, tt := range map[string]struct {
		failed string
		code   int
		class  diagnose.Class
	}{
		"a key that is not valid": {key, 144, diagnose.AuthExpired},
		"a limit":                 {"[API Error: You have exhausted your daily quota on this model.]\nPlease wait and try again later.", 173, diagnose.RateLimited},
		"another CLI's words":     {"unexpected status 401 Unauthorized", 1, diagnose.AuthExpired},
		"no word of it":           {"", 1, diagnose.Crashed},
		"it has gone on":          {key, 0, diagnose.Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: gemini\n"))
			w.gemini("shop")
			w.reportIs("shop", func(r *agentrun.Report) { r.Headless = true })
			w.cycle()
			w.pass(10 * time.Second)
			delete(w.living, 1001)
			w.reportIs("shop", func(r *agentrun.Report) {
				r.StartedAt, r.Headless, r.Failed, r.Exit = w.wall.Add(-70*time.Second), true, tt.failed, &agentrun.Exit{Code: tt.code, At: w.wall}
			})
			w.cycle()
			if v := w.diagnosis(); v.Class != tt.class {
				t.Errorf("it is called %s, want %s: %s", v.Class, tt.class, v.Details)
			}
		})
	}
}
