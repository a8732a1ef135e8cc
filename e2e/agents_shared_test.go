package e2e

import (
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// secondPrompt is what the second agent of TestSharedAgents is told to do.
const secondPrompt = "Count the stock"

// TestSharedAgents: a server in the settings of Claude Code and of Codex, wrapped with --shared. Two sessions of the CLI use one
// process of it at the same time; each gets its own answers, the second still does when the first has gone, and without sessions nothing is left.
func TestSharedAgents(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for kind, client := range map[string]string{"claude": "claude-code", "codex": "codex"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			first := startAgent(t, kind, mockmodel.Told, agentSetup{
				headless: true, noHooks: true, server: []string{tools.goserver}, forServer: map[string]string{"OUTLIVE_SHARED_IDLE": "2s"},
				script:  mockmodel.Script{Prompts: []string{agentPrompt, secondPrompt}},
				prepare: func(a *agent) { a.wrapServers(client, "--shared") },
			})
			w := first.w
			u := usage{kind: kind, headless: true, behind: true}
			both := []*exchange{{t: t, u: u, a: first, prompt: agentPrompt}, {t: t, u: u, a: first.another(secondPrompt), prompt: secondPrompt}}
			for _, x := range both {
				x.greet()
			}
			var calls sync.WaitGroup
			for i, value := range []string{"left", "right"} {
				calls.Go(func() {
					if word := both[i].call("look", value, 2*time.Second, patience); word != answered {
						t.Errorf("the call of %s: %s", value, word)
					}
				})
			}
			calls.Wait()
			var looks []string
			for _, line := range w.traces() {
				if strings.Contains(line, "left") || strings.Contains(line, "right") {
					looks = append(looks, strings.Fields(line)[0])
				}
			}
			if !slices.Equal(looks, []string{"look", "look", "look-done", "look-done"}) {
				t.Errorf("the server has not worked on both calls at once: %v", looks)
			}
			if pids := w.starts(); len(pids) != 1 || len(w.daemons()) != 1 {
				t.Errorf("two sessions had the server processes %v and the daemons %v, want one of each; outlive status:\n%s", pids, w.daemons(), w.status())
			}
			both[0].finish()
			if word := both[1].call("look", "alone", 0, patience); word != answered {
				t.Errorf("the call after the first session has ended: %s", word)
			}
			if pids := w.starts(); len(pids) != 1 {
				t.Errorf("server processes %v, want one until the end", pids)
			}
			both[1].finish()
			began := time.Now()
			if !eventually(func() bool { return len(w.processes("")) == 0 }) {
				t.Error("the daemon goes on without sessions")
			}
			t.Logf("with an idle time of 2 s everything is gone %v after the last session", time.Since(began).Round(100*time.Millisecond))
			w.noneLeft(t)
		})
	}
}

// wrapServers puts outlive in front of the servers in the agent's settings, as a user does.
func (a *agent) wrapServers(client string, flags ...string) {
	a.t.Helper()
	cmd := exec.Command(tools.outlive, append([]string{"wrap", "--client", client}, flags...)...)
	cmd.Dir, cmd.Env = a.project, a.cmd.Env
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), ": wrapped") {
		a.t.Fatalf("outlive wrap: %v\n%s", err, out)
	}
}

// finish has the model end the turn, and with it the session of an agent on pipes.
func (x *exchange) finish() {
	x.t.Helper()
	if err := x.a.model.SayTo(x.t.Context(), x.prompt, "Done."); err != nil {
		x.t.Fatal(err)
	}
	x.a.succeeds()
}

// status is what outlive status shows of the session.
func (w *workspace) status() string {
	cmd := exec.Command(tools.outlive, "status")
	cmd.Env = w.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return err.Error() + "\n" + string(out)
	}
	return string(out)
}
