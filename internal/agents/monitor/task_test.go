package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// shellID is the number of the process that a background command runs as.
const shellID = 1500

// leaves is a turn in which a command is left running in the background; its output goes to the file that is returned.
func (c *claude) leaves(command string) (output string) {
	output = filepath.Join(c.w.home, "b1.output")
	c.prompt()
	c.tool("Bash", fmt.Sprintf(`"command":%q,"run_in_background":true`, command))
	id := c.w.wall.Unix()
	c.w.pass(time.Second)
	c.w.process(shellID, c.w.dir(c.name), 0)
	c.w.parents[shellID] = c.pid
	c.writes(fmt.Sprintf(`"type":"user","toolUseResult":{"stdout":"","backgroundTaskId":"b1"},"message":{"role":"user","content":[{"type":"tool_result",`+
		`"tool_use_id":"t%d","content":"Command running in background with ID: b1. Output is being written to: %s. You will be notified when it completes."}]}`, id, inJSON(output)))
	c.w.pass(time.Second)
	c.outputs(output)
	c.ends("I will go on when the tests have ended.")
	c.is("shell", "")
	return output
}

// outputs lets the background command write something now.
func (c *claude) outputs(path string) {
	c.w.t.Helper()
	if err := os.WriteFile(path, []byte("testing\n"), 0o600); err != nil {
		c.w.t.Fatal(err)
	}
	if err := os.Chtimes(path, c.w.wall, c.w.wall); err != nil {
		c.w.t.Fatal(err)
	}
}

// taskWorld is an agent whose turn has ended, and whose background command runs.
func taskWorld(t *testing.T) (w *world, c *claude, output string) {
	w = newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nstart: {resume: [agent, resume, \"{session}\"], nudge: "+noting("heard", "{text}")+"}\n"))
	c = w.claude("shop", 1001)
	w.cycle()
	w.pass(time.Minute)
	output = c.leaves("npm test")
	return w, c, output
}

// A turn that waits for a background task is at rest as long as the task may live; one whose task is dead, and that was not told of
// it, waits for ever. It is told first, and resumed when that does not help.
func TestATurnThatWaitsForADeadTask(t *testing.T) {
	t.Parallel()
	w, _, output := taskWorld(t)
	w.spends(time.Hour, 5*time.Minute)
	if v := w.diagnosis(); v.Class != diagnose.Idle || w.heard("shop") != "" {
		t.Fatalf("its task runs, and it is called %s: %s", v.Class, v.Details)
	}
	delete(w.living, shellID)
	(&claude{w: w}).outputs(output)
	w.spends(4*time.Minute, 30*time.Second)
	if v := w.diagnosis(); v.Class != diagnose.Idle {
		t.Fatalf("its task has only just ended, and it is called %s: %s", v.Class, v.Details)
	}
	w.spends(2*time.Minute, 30*time.Second)
	if v := w.diagnosis(); v.Class != diagnose.TaskDead || !strings.Contains(v.Details, "npm test") {
		t.Fatalf("its task is dead, and it is called %s: %s", v.Class, v.Details)
	}
	if heard := w.heard("shop"); !strings.Contains(heard, "the background task that it waits for is dead") {
		t.Errorf("it was told %q", heard)
	}
	if len(w.started) != 0 {
		t.Fatalf("resumed at once: %v", w.started)
	}
	w.spends(10*time.Minute, 30*time.Second)
	if rungs := strings.Join(w.rungs(), " "); !strings.HasPrefix(rungs, "resume") {
		t.Errorf("nothing helped, and it was started by %q; log: %s", rungs, w.read("improvement-log.md"))
	}
}

// A task that has written nothing for an hour ends now: its CLI needs a moment to tell the model.
func TestATaskThatEndsAfterALongSilence(t *testing.T) {
	t.Parallel()
	w, _, output := taskWorld(t)
	(&claude{w: w}).outputs(output)
	w.spends(time.Hour, 5*time.Minute)
	delete(w.living, shellID)
	w.spends(4*time.Minute, 30*time.Second)
	if v := w.diagnosis(); v.Class != diagnose.Idle {
		t.Fatalf("its task has only just ended, and it is called %s: %s", v.Class, v.Details)
	}
	w.spends(2*time.Minute, 30*time.Second)
	if v := w.diagnosis(); v.Class != diagnose.TaskDead {
		t.Fatalf("its task is dead, and it is called %s: %s", v.Class, v.Details)
	}
}

// The CLI tells the session of the end of its task, and it goes on: nothing was dead, and no person has typed that.
func TestATaskWhoseEndIsTold(t *testing.T) {
	t.Parallel()
	w, c, _ := taskWorld(t)
	w.spends(40*time.Minute, 5*time.Minute)
	delete(w.living, shellID)
	const told = `<task-notification>\n<task-id>b1</task-id>\n<status>failed</status>\n</task-notification>`
	c.writes(`"type":"queue-operation","operation":"enqueue","content":"` + told + `"`)
	c.writes(`"type":"user","origin":{"kind":"task-notification"},"message":{"role":"user","content":"` + told + `"}`)
	w.pass(time.Second)
	c.is("busy", "")
	w.spends(time.Minute, 20*time.Second)
	if v := w.diagnosis(); v.Class != diagnose.AtWork {
		t.Fatalf("told of the end, and called %s: %s", v.Class, v.Details)
	}
	c.ends("The tests have failed.")
	w.spends(time.Hour, 5*time.Minute)
	if v := w.diagnosis(); v.Class != diagnose.Idle || len(w.started) != 0 || w.heard("shop") != "" {
		t.Errorf("at rest, and called %s: %s; told %q, started %v", v.Class, v.Details, w.heard("shop"), w.started)
	}
}

// The process was ended with its task, and somebody has resumed the session without a prompt: the CLI notes that the task has ended and
// does not ask its model. A server of the new process, which is as young as any task, makes no difference. Whoever resumed it has half
// an hour to type.
func TestATaskOfTheProcessBefore(t *testing.T) {
	t.Parallel()
	w, c, _ := taskWorld(t)
	clear(w.living)
	w.pass(time.Second)
	c.pid = 2001
	w.process(2001, w.dir("shop"), 0)
	w.args[2001] = []string{"claude"}
	w.process(2002, w.dir("shop"), 0)
	w.parents[2002] = 2001
	c.is("idle", "")
	const told = `<task-notification>\n<task-id>b1</task-id>\n<status>stopped</status>\n` +
		`<summary>Background shell command didn't finish before the previous session ended</summary>\n</task-notification>`
	c.writes(`"type":"queue-operation","operation":"enqueue","content":"` + told + `"`)
	c.writes(`"type":"user","origin":{"kind":"task-notification"},"message":{"role":"user","content":"` + told + `"}`)
	w.spends(4*time.Minute, 30*time.Second)
	if v := w.diagnosis(); v.Class != diagnose.Idle {
		t.Fatalf("only just resumed, and called %s: %s", v.Class, v.Details)
	}
	w.spends(2*time.Minute, 30*time.Second)
	if v := w.diagnosis(); v.Class != diagnose.TaskDead {
		t.Fatalf("nobody has asked its model, and it is called %s: %s", v.Class, v.Details)
	}
	if heard := w.heard("shop"); !strings.Contains(heard, "the background task that it waits for is dead") {
		t.Errorf("it was told %q", heard)
	}
	w.spends(20*time.Minute, time.Minute)
	if len(w.stopped)+len(w.started) != 0 {
		t.Fatalf("somebody may sit before it: stopped %v, started %v", w.stopped, w.rungs())
	}
	w.spends(15*time.Minute, time.Minute)
	if rungs := strings.Join(w.rungs(), " "); !strings.HasPrefix(rungs, "resume") {
		t.Errorf("nobody has typed, and it was started by %q", rungs)
	}
}

// A person who has typed since, or has ended the turn, knows what the session does.
func TestAPersonWhoHasTypedSince(t *testing.T) {
	t.Parallel()
	w, c, _ := taskWorld(t)
	w.spends(10*time.Minute, time.Minute)
	delete(w.living, shellID)
	c.prompt()
	w.pass(time.Minute)
	c.ends("The server is of no use any more.")
	w.spends(time.Hour, 5*time.Minute)
	if v := w.diagnosis(); v.Class != diagnose.Idle || len(w.started) != 0 || w.heard("shop") != "" {
		t.Errorf("called %s: %s; told %q, started %v", v.Class, v.Details, w.heard("shop"), w.started)
	}
}
