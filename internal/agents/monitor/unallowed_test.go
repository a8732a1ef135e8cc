package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// Qwen Code's files show a command that waits for a permission as one that runs. What runs has a process that is as young.
func TestACommandWithoutAProcess(t *testing.T) {
	t.Parallel()
	const helper = 1500
	chat := `{"sessionId":"q1","cwd":"%[1]s","timestamp":%[2]q,"type":"user","message":{"parts":[{"text":"Check the shop"}]}}
{"sessionId":"q1","cwd":"%[1]s","timestamp":%[3]q,"type":"assistant","message":{"parts":[{"functionCall":{"id":"c1","name":%[4]q,"args":{"command":"make"}}}]}}
`
	for name, tt := range map[string]struct {
		args  []string
		tool  string
		began time.Duration // of a helper, since the call; 0: there is none
		class diagnose.Class
	}{
		"it waits":              {[]string{"qwen"}, "run_shell_command", 0, diagnose.WaitingPermission},
		"beside an MCP server":  {[]string{"qwen"}, "run_shell_command", -time.Minute, diagnose.WaitingPermission},
		"it runs":               {[]string{"qwen"}, "run_shell_command", time.Second, diagnose.AtWork},
		"another tool":          {[]string{"qwen"}, "web_fetch", 0, diagnose.AtWork},
		"nobody could be asked": {[]string{"qwen", "-p", "Check the shop"}, "run_shell_command", 0, diagnose.AtWork},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.opts.Places = agentcli.Places{agentcli.Qwen: filepath.Join(w.home, "qwen")}
			w.declare("", w.agent("shop", "kind: qwen\n"))
			w.process(1001, w.dir("shop"), 2*time.Minute)
			w.args[1001] = tt.args
			called := w.wall
			stamp := func(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
			folder := filepath.Join("qwen", "projects", noWord.ReplaceAllString(w.dir("shop"), "-"), "chats")
			if err := os.MkdirAll(filepath.Join(w.home, folder), 0o700); err != nil {
				t.Fatal(err)
			}
			w.write(filepath.Join(folder, "q1.jsonl"), fmt.Sprintf(chat, inJSON(w.dir("shop")), stamp(called.Add(-time.Second)), stamp(called), tt.tool))
			w.cycle()
			w.pass(3 * time.Minute)
			if tt.began != 0 {
				w.process(helper, w.dir("shop"), w.wall.Sub(called.Add(tt.began)))
				w.parents[helper] = 1001
			}
			if v := w.diagnosis(); v.Class != tt.class {
				t.Errorf("it is called %s, want %s: %s", v.Class, tt.class, v.Details)
			}
		})
	}
}
