package agentcli

import (
	"slices"
	"time"
)

// Task is a background task of a session that has not learnt of its end.
type Task struct {
	ID    string
	Tool  string // the tool that started it, such as Bash
	Input string // its command or description, shortened
	At    time.Time
	// Shell says that it is a process below the CLI's. Other tasks, such as subagents, are part of the CLI.
	Shell bool
	// Output is where it writes: a file, or a directory of files; "": unknown.
	Output string
	// WroteAt is when it last wrote there, or was started if it never has. Zero: unknown.
	WroteAt time.Time
	// Left says that the process that ran it has ended: its CLI was resumed and has reported that to the session, but
	// has not called the model.
	Left bool

	ended bool // its end is queued for the model
}

// begun adds a background task. One that is reported again is the same.
func (t *turn) begun(task Task) {
	t.over(task.ID)
	if len(t.Tasks) == openCalls {
		t.Tasks = t.Tasks[1:]
	}
	t.Tasks = append(t.Tasks, task)
}

// over removes a task: the session has learnt of its end, or does not wait for it any more.
func (t *turn) over(id string) {
	t.Tasks = slices.DeleteFunc(t.Tasks, func(task Task) bool { return task.ID == id })
}

// ends records that a task has ended, and that the session is about to be told.
func (t *turn) ends(id string) {
	for i := range t.Tasks {
		t.Tasks[i].ended = t.Tasks[i].ended || t.Tasks[i].ID == id
	}
}

// left records that a task ended with the process that ran it, and that the model was not called.
func (t *turn) left(id string) {
	for i := range t.Tasks {
		t.Tasks[i].Left = t.Tasks[i].Left || t.Tasks[i].ID == id
	}
}

// goesOn removes the tasks of a previous process: the model has learnt of them with its next call.
func (t *turn) goesOn() {
	t.Tasks = slices.DeleteFunc(t.Tasks, func(task Task) bool { return task.Left })
}

// waitedFor returns the tasks whose end the session has not learnt, and is not about to.
func (t *turn) waitedFor() []Task {
	return slices.DeleteFunc(slices.Clone(t.Tasks), func(task Task) bool { return task.ended && !task.Left })
}

// Awaits reports whether the session has nothing to do until the task has ended: its turn is over and was not
// interrupted by a person, or its open call asks for the task's output.
func (s *Session) Awaits(task Task) bool {
	t := s.Turn
	return t.Ended && !t.Interrupted || t.Open == Tool && asksForTask(t.Tool) && t.ToolInput == task.ID
}
