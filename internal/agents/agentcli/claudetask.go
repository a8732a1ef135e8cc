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

// claudeLaunched is the result of a call that continues in the background (2.1.330; recorded: Bash; read in its
// program: the others).
type claudeLaunched struct {
	Shell     string `json:"backgroundTaskId"` // for Bash
	Status    string `json:"status"`           // async_launched, for the others
	Agent     string `json:"agentId"`
	Task      string `json:"taskId"` // for Workflow
	Output    string `json:"outputFile"`
	Directory string `json:"transcriptDir"` // for Workflow
}

var (
	// Nothing else in the record of a shell says where its output is.
	writesTo  = lazyregexp.New(`Output is being written to: (\S+\.output)`)
	taskNamed = lazyregexp.New(`<task-id>([^<]{1,64})</task-id>`)
	taskOver  = lazyregexp.New(`<status>(completed|failed|killed|stopped)</status>`)
	// The message to a resumed session about the tasks of the previous process (recorded: 2.1.330).
	ofRunBefore = lazyregexp.New(`<(?:summary|note)>[^<]*\bprevious (?:session|Claude Code process)\b`)
	// A person has stopped the task in the CLI's list of tasks (recorded: 2.1.330).
	stoppedByUser = lazyregexp.New(`<summary>[^<]* was stopped by the user</summary>`)
)

// notification begins the CLI's message to the model about a task. It is not typed by a person.
const notification = "<task-notification>"

// launches records a call that returned at once because it continues in the background.
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

// asksAfter removes a task that the model has ended, or whose end it has learnt by asking.
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

// asksForTask reports whether a tool waits for the output of a task.
func asksForTask(tool string) bool {
	return tool == "TaskOutput" || tool == "BashOutput" || tool == "AgentOutputTool"
}

// taskAsked is the task that a call asks for; otherwise if it names none.
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

// notified handles the CLI's message to the model about the ends of tasks, and reports whether the model is called
// with it. About tasks of the previous process a resumed session is only informed: its model is not called until a
// person types.
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

// queued handles the queue of messages for the model: a notification is there before the model gets it. A process
// that is ended by a signal still queues one for each task, which the model never gets. What a person types during a
// turn is there, too, and may have no other record.
func (c *claudeTranscript) queued(r *claudeRecord) {
	var text string
	if json.Unmarshal(r.Content, &text) != nil {
		return
	}
	if !strings.HasPrefix(text, notification) {
		if r.Operation == "enqueue" && text != "" && !strings.HasPrefix(text, "<") {
			c.typedAlready(r.Timestamp.Time)
			c.ordered = c.ordered || ordersRepetition.MatchString(text)
		}
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

// lookAtTasks finds out when the tasks of a session last wrote something.
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

// lastWritten is when a file, or anything directly in a directory, was last written. Links are followed.
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
