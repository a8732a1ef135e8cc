package vendors

import "time"

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

// Awaits reports whether the session has nothing to do until the task has ended: its turn is over, and no person has ended it, or
// the call that is open asks for the task's output.
func (s *Session) Awaits(task Task) bool {
	t := s.Turn
	return t.Ended && !t.Interrupted || t.Open == Tool && asksForTask(t.Tool) && t.ToolInput == task.ID
}
