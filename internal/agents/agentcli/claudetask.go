package agentcli

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// claudeLaunched is what Claude Code notes of a call that goes on in the background (2.1.330; recorded: Bash; read in its
// program: the others).
type claudeLaunched struct {
	Shell     string `json:"backgroundTaskId"` // of Bash
	Status    string `json:"status"`           // async_launched, of the others
	Agent     string `json:"agentId"`
	Task      string `json:"taskId"` // of Workflow
	Output    string `json:"outputFile"`
	Directory string `json:"transcriptDir"` // of Workflow
}

var (
	// Nothing else in the record of a shell says where it writes.
	writesTo  = lazyregexp.New(`Output is being written to: (\S+\.output)`)
	taskNamed = lazyregexp.New(`<task-id>([^<]{1,64})</task-id>`)
	taskOver  = lazyregexp.New(`<status>(completed|failed|killed|stopped)</status>`)
	// What a resumed session is told of the tasks of the process before it (recorded: 2.1.330).
	ofRunBefore = lazyregexp.New(`<(?:summary|note)>[^<]*\bprevious (?:session|Claude Code process)\b`)
	// A person has stopped the task, in the CLI's list of them (recorded: 2.1.330).
	stoppedByUser = lazyregexp.New(`<summary>[^<]* was stopped by the user</summary>`)
)

// notification is how a message begins with which the CLI tells the model of a task. Nobody has typed it.
const notification = "<task-notification>"

// launches notes a call that has come back at once because it goes on in the background.
func (c *claudeTranscript) launches(r *claudeRecord, b claudeBlock) {
	var l claudeLaunched
	if r.ToolUseResult == nil || b.IsError || !decode(r.ToolUseResult, &l) {
		return
	}
	task := Task{ID: l.Shell, Shell: true, At: c.when(r.Timestamp.Time)}
	if l.Status == "async_launched" {
		task.Shell, task.ID, task.Output = false, l.Agent+l.Task, l.Output+l.Directory
	}
	if task.ID == "" {
		return
	}
	if m := writesTo.FindStringSubmatch(contentText(b.Content)); task.Shell && m != nil {
		task.Output = m[1]
	}
	if !filepath.IsAbs(task.Output) {
		task.Output = ""
	}
	if i := slices.IndexFunc(c.open, func(open call) bool { return open.id == b.ToolUseID }); i >= 0 {
		task.Tool, task.Input = c.open[i].tool, c.open[i].input
	}
	c.begun(task)
}

// asksAfter forgets a task that the model has ended, or of whose end it was told because it has asked.
func (c *claudeTranscript) asksAfter(b claudeBlock) {
	i := slices.IndexFunc(c.open, func(open call) bool { return open.id == b.ToolUseID })
	if i < 0 || b.IsError {
		return
	}
	tool := c.open[i].tool
	if tool == "KillShell" || tool == "TaskStop" || asksForTask(tool) && taskOver.MatchString(contentText(b.Content)) {
		c.over(c.open[i].input)
	}
}

// asksForTask reports a tool whose call waits for the output of a task.
func asksForTask(tool string) bool {
	return tool == "TaskOutput" || tool == "BashOutput" || tool == "AgentOutputTool"
}

// taskAsked is the task that a call asks for; otherwise where it names none.
func taskAsked(args json.RawMessage, otherwise string) string {
	var named struct {
		Task  string `json:"task_id"`
		Bash  string `json:"bash_id"`
		Shell string `json:"shell_id"`
		Agent string `json:"agentId"`
	}
	decode(args, &named)
	return cmp.Or(named.Task, named.Bash, named.Shell, named.Agent, otherwise)
}

// notified takes the ends of tasks from what the CLI tells the model, and reports whether the model is asked about them. Of tasks that
// the process before it has left behind, a resumed session is told, and its model is not asked until somebody types.
func (c *claudeTranscript) notified(text string) (asked bool) {
	left := ofRunBefore.MatchString(text)
	for _, m := range taskNamed.FindAllStringSubmatch(text) {
		if left {
			c.left(m[1])
		} else {
			c.over(m[1])
		}
	}
	return !left
}

// queued is what waits for the model: a notification is there before the model gets it. A process that is ended by a signal still
// queues one of each task, and then nobody gets it.
func (c *claudeTranscript) queued(r *claudeRecord) {
	var text string
	if json.Unmarshal(r.Content, &text) != nil || !strings.HasPrefix(text, notification) {
		return
	}
	if ofRunBefore.MatchString(text) || stoppedByUser.MatchString(text) {
		c.notified(text)
		return
	}
	for _, m := range taskNamed.FindAllStringSubmatch(text) {
		c.ends(m[1])
	}
}

// lookAtTasks notes when the tasks of a session last wrote something.
func lookAtTasks(s *Session) {
	for i := range s.Turn.Tasks {
		task := &s.Turn.Tasks[i]
		if task.Output == "" {
			continue
		}
		wrote, err := lastWritten(task.Output)
		if err != nil && !os.IsNotExist(err) {
			continue
		}
		if task.WroteAt = task.At; wrote.After(task.At) {
			task.WroteAt = wrote
		}
	}
}

// lastWritten is when a file was last written, or anything directly in a directory. Of a link, what it leads to counts.
func lastWritten(path string) (time.Time, error) {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	last := info.ModTime()
	if !info.IsDir() {
		return last, nil
	}
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, err
}
