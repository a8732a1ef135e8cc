package agentrun

import (
	"fmt"
	"path/filepath"
	"time"
)

// LogPath is the file of an agent's output when the monitor starts it. Each agent has its own directory, because the
// rotated files' names begin with the file's.
func LogPath(home, agent string) string { return filepath.Join(home, "log", agent, "output.log") }

// keptWait is how long an agent waits for a blocked disk. After that its output passes unkept, and the file says how
// much is missing.
const keptWait = 2 * time.Second

// keepLine adds a line of ours.
func (w *wrapper) keepLine(format string, args ...any) {
	if w.kept != nil {
		_, _ = w.kept.Write(fmt.Appendf(nil, "[outlive] "+time.Now().Format(time.DateTime)+" "+format+"\n", args...))
	}
}

// ending is an exit for people.
func (e Exit) ending() string {
	if e.Signal != "" {
		return "ended by signal: " + e.Signal
	}
	return fmt.Sprintf("ended with exit status %d", e.Code)
}

// awaitRoom waits until what is read next can be kept.
func (p *pump) awaitRoom() {
	if p.kept == nil {
		return
	}
	full := p.kept.Room()
	if full == nil {
		return
	}
	timer := time.NewTimer(keptWait)
	defer timer.Stop()
	select {
	case <-full:
	case <-timer.C:
	}
}
