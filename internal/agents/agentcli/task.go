package agentcli

import (
	"slices"
	"time"
)

// Task is something that a session has left running in the background, and of whose end it was not told.
type Task struct {
	ID    string
	Tool  string // that has started it, such as Bash
	Input string // the command or the errand, shortened
	At    time.Time
	// Shell says that it is a process below the CLI's. Anything else, such as a subagent, is a part of the CLI.
	Shell bool
	// Output is where it writes: a file, or a directory of files; "": unknown.
	Output string
	// WroteAt is when it last wrote there, or was started if it never has. Zero: that cannot be seen.
	WroteAt time.Time
	// Left says that the process that ran it has ended: its CLI was resumed, has said so to the session, and has not asked the model.
	Left bool

	ended bool // its end waits in the queue of what the model is told next
}

// begun notes a task that was left running. One that is told again is the same.
func (t *turn) begun(task Task) {
	t.over(task.ID)
	if len(t.tasks) == openCalls {
		t.tasks = t.tasks[1:]
	}
	t.tasks = append(t.tasks, task)
}

// over forgets a task: the session was told of its end, or does not wait for it any more.
func (t *turn) over(id string) {
	kept := t.tasks[:0:0]
	for _, task := range t.tasks {
		if task.ID != id {
			kept = append(kept, task)
		}
	}
	t.tasks = kept
}

// ends notes that a task has ended, and that the session is about to be told.
func (t *turn) ends(id string) {
	for i := range t.tasks {
		t.tasks[i].ended = t.tasks[i].ended || t.tasks[i].ID == id
	}
}

// left notes that a task has ended with the process that ran it, and that the model was not asked.
func (t *turn) left(id string) {
	for i := range t.tasks {
		t.tasks[i].Left = t.tasks[i].Left || t.tasks[i].ID == id
	}
}

// goesOn forgets the tasks that were left by a process before: the model was told of them with whatever it was asked.
func (t *turn) goesOn() {
	t.tasks = slices.DeleteFunc(t.tasks, func(task Task) bool { return task.Left })
}

// waitedFor are the tasks of whose end the session was not told, and is not about to be.
func (t *turn) waitedFor() []Task {
	return slices.DeleteFunc(slices.Clone(t.tasks), func(task Task) bool { return task.ended && !task.Left })
}

// Awaits reports whether the session has nothing to do until the task has ended: its turn is over, and no person has ended it, or
// the call that is open asks for the task's output.
func (s *Session) Awaits(task Task) bool {
	t := s.Turn
	return t.Ended && !t.Interrupted || t.Open == Tool && asksForTask(t.Tool) && t.ToolInput == task.ID
}
