package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// The processes of a CLI that an agent has started in its shell.
const (
	nestedShell = endingPID + 100
	nestedPID   = nestedShell + 1
)

var timestamps = regexp.MustCompile(`"timestamp":"([^"]+)"`)

// shifted is the transcript with all its times later.
func (e *ending) shifted(t *testing.T, by time.Duration) string {
	t.Helper()
	return timestamps.ReplaceAllStringFunc(string(e.text["transcript"]), func(member string) string {
		at, err := time.Parse(time.RFC3339Nano, timestamps.FindStringSubmatch(member)[1])
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`"timestamp":%q`, at.Add(by).Format("2006-01-02T15:04:05.000Z"))
	})
}

// nests lets the agent run a CLI that has come to where the ending is, now. Its process lives.
func (e *ending) nests(t *testing.T, w *world) {
	t.Helper()
	first, last := e.times(t)
	for pid, parent := range map[int]int{nestedShell: endingPID, nestedPID: nestedShell} {
		w.process(pid, w.dir("shop"), last.Sub(first))
		w.parents[pid] = parent
	}
	w.args[nestedShell] = []string{"bash", "-c", "review"}
	text, id := e.shifted(t, w.wall.Sub(last)), e.session()
	text = regexp.MustCompile(`/home/u/shop`).ReplaceAllLiteralString(text, inJSON(w.dir("shop")))
	if e.CLI == "codex" {
		begun := w.wall.Add(first.Sub(last))
		name := filepath.Join("codex", "sessions", begun.Format("2006/01/02"), "rollout-"+begun.Format("2006-01-02T15-04-05")+"-"+id+".jsonl")
		w.file(name, text, w.wall)
		w.args[nestedPID], w.files[nestedPID] = []string{"codex", "exec", "review"}, []string{filepath.Join(w.home, name)}
		return
	}
	w.args[nestedPID] = []string{"claude", "-p", "review"}
	w.file(filepath.Join("claude", "projects", noWord.ReplaceAllString(w.dir("shop"), "-"), id+".jsonl"), text, w.wall)
	state, err := json.Marshal(map[string]any{
		"pid": nestedPID, "sessionId": id, "cwd": w.dir("shop"), "procStart": strconv.Itoa(nestedPID*1000 + 1), "version": "2.1.330", "kind": "interactive",
		"entrypoint": "sdk-cli", "status": map[bool]string{true: "busy", false: "idle"}[e.Signal != ""], "statusUpdatedAt": w.wall.UnixMilli(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.file(nestedState, string(state), w.wall)
}

var nestedState = filepath.Join("claude", "sessions", strconv.Itoa(nestedPID)+".json")

// exits ends that CLI. Claude Code removes its state file, unless it is killed.
func (e *ending) exits(t *testing.T, w *world) {
	t.Helper()
	delete(w.living, nestedPID)
	delete(w.files, nestedPID)
	if e.Signal != "" {
		return
	}
	if err := os.Remove(filepath.Join(w.home, nestedState)); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// hosts is an agent that has come to where the ending is, in its own time.
func (e *ending) hosts(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.opts.Places = agentcli.Places{agentcli.Claude: filepath.Join(w.home, "claude"), agentcli.Codex: filepath.Join(w.home, "codex")}
	first, last := e.times(t)
	w.wall = first
	w.declare("", w.agent("shop", "kind: "+e.CLI+"\nexpect: {attended: 1s}\n"+starts))
	w.args[endingPID] = []string{e.CLI}
	w.process(endingPID, w.dir("shop"), 10*time.Second)
	w.look()
	w.pass(last.Add(time.Second).Sub(first))
	e.lay(t, w, first, last)
	w.look()
	return w
}

// A CLI that an agent has run in its directory, a reviewer, a test or a hook's, never speaks for it, whatever it has come to, as long
// as it lives and after that: nobody is told of the agent, and nothing of it is ended or started.
func TestANestedCLINeverSpeaksForTheAgent(t *testing.T) {
	t.Parallel()
	all := map[string]ending{}
	for _, e := range endings(t) {
		all[e.name] = e
	}
	hosts := map[string]diagnose.Class{
		"claude-runs-a-command": diagnose.AtWork, "codex-runs-a-command": diagnose.AtWork, "claude-finished": diagnose.Idle, "codex-finished": diagnose.Idle,
	}
	nested := []string{
		"claude-print-asks", "claude-print-gave-up-401", "claude-print-gave-up-429", "claude-print-gave-up-529", "claude-print-context", "claude-print-killed",
		"codex-exec-asks", "codex-exec-401", "codex-exec-429", "codex-exec-529", "codex-exec-context", "codex-exec-killed",
	}
	n := 0
	for host, want := range hosts {
		for _, name := range nested {
			for _, seen := range []bool{true, false} {
				if n++; n%scenarioStride != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s in %s, seen alive %v", name, host, seen), func(t *testing.T) {
					t.Parallel()
					own, other := all[host], all[name]
					if own.name == "" || other.name == "" {
						t.Fatal("there is no such ending")
					}
					w := own.hosts(t)
					w.pass(time.Second)
					other.nests(t, w)
					quiet := func(when string) {
						t.Helper()
						for range 6 {
							w.look()
							if len(w.stopped)+len(w.started)+len(w.interrupted)+len(w.said) > 0 {
								t.Fatalf("%s: ended %v, interrupted %v, started %v, said %q", when, w.stopped, w.interrupted, w.rungs(), w.said)
							}
							w.pass(time.Minute)
						}
						if v := w.diagnosis(); v.Class != want {
							t.Errorf("%s: %s (%s), want %s", when, v.Class, v.Details, want)
						}
					}
					if seen {
						quiet("while it lives")
					}
					other.exits(t, w)
					quiet("when it is over")
				})
			}
		}
	}
}

// On Windows orphans keep the number of their parent. The process that has this number now has not started them.
func TestOrphansOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	entry := func(pid, parent int) process.Process {
		return process.Process{Identity: process.Identity{PID: pid, Start: uint64(pid)}, Parent: parent}
	}
	// 20 is the agent, 10 an orphan of the 20 before it.
	s := &sources{table: process.TableOf([]process.Process{entry(40, 30), entry(10, 20), entry(20, 1), entry(30, 20), entry(50, 10)})}
	shop := process.Identity{PID: 20, Start: 20}
	var below []int
	for _, e := range s.descendants(shop) {
		below = append(below, e.PID)
	}
	if !slices.Equal(below, []int{30, 40}) {
		t.Errorf("below the agent: %v", below)
	}
	for pid, want := range map[int]struct {
		below bool
		above []int
	}{20: {true, nil}, 30: {true, []int{20}}, 40: {true, []int{30, 20}}, 10: {false, nil}, 50: {false, []int{10}}} {
		var above []int
		s.anyAbove(pid, process.Identity{}, func(id process.Identity) bool {
			above = append(above, id.PID)
			return false
		})
		if got := s.below(pid, shop); got != want.below || !slices.Equal(above, want.above) {
			t.Errorf("%d: below the agent %v, above it %v; want %v, %v", pid, got, above, want.below, want.above)
		}
	}
}

// A command hangs although what is left of an earlier process with the agent's number is at work.
func TestAnOrphanIsNoWorkOfTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nexpect: {tool: 10m}\n"+starts))
	c := w.claude("shop", 1001).headless()
	c.prompt()
	w.process(900, w.dir("shop"), time.Hour) // older than the 1001
	w.parents[900] = 1001
	w.cycle()
	w.pass(time.Minute)
	c.tool("Bash", `"command":"sleep 1d"`)
	w.process(1003, w.dir("shop"), 0)
	w.parents[1003] = 1001
	for range 24 {
		w.used[900] += 20 * time.Second
		w.spends(30*time.Second, 30*time.Second)
	}
	if !slices.Equal(w.stopped, []int{1003}) || len(w.started) != 0 {
		t.Errorf("stopped %v, started %v, said %q", w.stopped, w.started, w.said)
	}
}

// A session without a process is over where the files name the process of another one; where that is only a guess, both may be the
// agent's.
func TestWhichSessionsAreOver(t *testing.T) {
	t.Parallel()
	id := process.Identity{PID: 5, Start: 50}
	at := agentcli.Turn{LastAt: time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)}
	for name, tt := range map[string]struct {
		first agentcli.Session
		want  []string
	}{
		"named":                     {agentcli.Session{PID: 5, Start: 50}, []string{"first"}},
		"assigned":                  {agentcli.Session{PID: 5, Start: 50, Assigned: true}, []string{"first", "other"}},
		"of a subagent":             {agentcli.Session{PID: 5, Start: 50, Subagent: true}, []string{"first", "other"}},
		"of a process that is gone": {agentcli.Session{PID: 6, Start: 60}, []string{"other"}},
		"without one":               {agentcli.Session{}, []string{"first", "other"}},
	} {
		first, other := tt.first, agentcli.Session{Kind: agentcli.Codex, ID: "other", Dir: "/shop", Turn: at}
		first.Kind, first.ID, first.Dir, first.Turn = agentcli.Codex, "first", "/shop", at
		s := &sources{
			table: process.TableOf([]process.Process{{Identity: id}}), sessions: []agentcli.Session{first, other}, real: map[string]string{"/shop": "/shop"},
		}
		g := &gathering{
			setting: &setting{sources: s}, agent: agent{Project: piv.Project{Path: "/shop"}}, known: known{agentState: agentState{Since: at.LastAt.Add(-time.Hour)}},
			f: &finding{process: id},
		}
		g.agent.Declared = &registry.Agent{}
		own, nested := g.ownSessions(agentcli.Codex)
		var got []string
		for _, v := range own {
			got = append(got, v.ID)
		}
		if !slices.Equal(got, tt.want) || len(nested) > 0 {
			t.Errorf("%s: %v, want %v; nested %d", name, got, tt.want, len(nested))
		}
	}
}

// review is a claude -p that an agent runs; it is at work.
func (c *claude) review() *claude {
	r := &claude{w: c.w, pid: nestedPID, name: c.name, session: "review"}
	c.w.process(nestedPID, c.w.dir(c.name), 0)
	c.w.parents[nestedPID], c.w.args[nestedPID] = c.pid, []string{"claude", "-p", "review"}
	r.prompt()
	return r
}

// A new session is begun when nothing of the agent is at work any more: what it has started in the background is not ended for it.
func TestAFullContextWaitsForAReviewer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nexpect: {attended: 1s}\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	w.pass(time.Minute)
	r := c.review()
	c.writes(`"type":"assistant","error":"invalid_request","isApiErrorMessage":true,"apiErrorStatus":400,` +
		`"message":{"role":"assistant","model":"<synthetic>","stop_reason":"stop_sequence","content":[{"type":"text","text":"Prompt is too long"}]}`)
	c.is("idle", "")
	for range 20 {
		r.tool("Read", fmt.Sprintf(`"file_path":"/f%d"`, w.wall.Unix()))
		w.spends(time.Minute, 20*time.Second)
	}
	if len(w.stopped)+len(w.started)+len(w.said) > 0 {
		t.Fatalf("its reviewer is at work: ended %v, started %v, said %q", w.stopped, w.rungs(), w.said)
	}
	delete(w.living, nestedPID)
	w.spends(2*time.Minute, 20*time.Second)
	if !slices.Equal(w.rungs(), []string{"new"}) || !slices.Equal(w.stopped, []int{1001}) {
		t.Errorf("the reviewer has ended: ended %v, started %v", w.stopped, w.rungs())
	}
}

// A reviewer that outlives its agent is not the agent, and nothing is begun beside it.
func TestAReviewerThatOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nexpect: {attended: 1s}\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	c.tool("Bash", `"command":"claude -p review"`)
	w.cycle()
	c.review()
	w.pass(10 * time.Second)
	w.cycle()
	delete(w.living, 1001)
	w.parents[nestedPID] = 1
	w.spends(time.Minute, 10*time.Second)
	if !slices.Equal(w.rungs(), []string{"resume"}) || !slices.Equal(w.stopped, []int{nestedPID}) {
		t.Errorf("started %v, ended %v; said %q", w.rungs(), w.stopped, w.said)
	}
	if len(w.started) == 1 && w.started[0].Command[2] != "s-shop" {
		t.Errorf("gone on with another session than its own: %q", w.started[0].Command)
	}
}

// A CLI that somebody else's CLI has started in an agent's directory is not the agent.
func TestACLIOfAnotherCLIIsNotTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: codex\n"+starts))
	w.claude("shop", 1001).prompt() // a person's
	w.process(nestedPID, w.dir("shop"), time.Minute)
	w.parents[nestedPID], w.args[nestedPID] = 1001, []string{"codex", "exec", "review"}
	w.cycle()
	if v := w.diagnosis(); v.Class != diagnose.NotWatched {
		t.Errorf("%s (%s)", v.Class, v.Details)
	}
	w.parents[nestedPID] = 1 // started by nobody's CLI: it is the agent
	w.cycle()
	if v := w.diagnosis(); v.Class == diagnose.NotWatched {
		t.Errorf("%s (%s)", v.Class, v.Details)
	}
}

// The hooks of a nested CLI are called in the agent's directory: what they report is not the agent's, while it lives and after that.
func TestHooksOfANestedCLI(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"it lives": false, "it is over": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts))
			c := w.claude("shop", 1001).headless()
			c.prompt()
			c.tool("Bash", `"command":"claude -p review"`)
			w.cycle()
			c.review()
			for _, event := range []string{"UserPromptSubmit", "PermissionRequest"} {
				err := hooks.Drop(hooks.Dir(w.home), hooks.Event{
					Time: w.wall, Vendor: "claude", Name: event, Session: "review", Dir: w.dir("shop"), PID: nestedPID, Tool: "Bash", Input: "rm -r build",
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if gone {
				delete(w.living, nestedPID)
			}
			w.pass(time.Second)
			w.cycle()
			if v := w.diagnosis(); v.Class != diagnose.AtWork || len(w.said) > 0 {
				t.Errorf("%s (%s), said %q", v.Class, v.Details, w.said)
			}
			s, err := openStore(t.Context(), w.opts.withDefaults().Database())
			if err != nil {
				t.Fatal(err)
			}
			states, err := s.agentStates(t.Context())
			if err := errors.Join(err, s.close()); err != nil {
				t.Fatal(err)
			}
			if at := states["shop"].TypedAt; !at.IsZero() {
				t.Errorf("its prompt counts as a person's: typed at %s", at)
			}
		})
	}
}
