package serverprobe

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/launcher"
)

// killTime is how long a killed process is waited for.
const killTime = 2 * time.Second

// streamPatience is how long the streams of an ended process are waited for when something else holds them open.
const streamPatience = 250 * time.Millisecond

// process is one start of the server.
type process struct {
	spec    Spec
	proc    *child.Process
	started time.Time
	stdin   *os.File

	answers chan answer
	silent  chan struct{} // closed at the end of stdout
	quiet   chan struct{} // closed at the end of stderr
	gone    chan struct{} // closed when it has ended
	waited  bool          // for its launcher, which installed the server
	status  child.Status  // valid once gone is closed

	mu        sync.Mutex // guards what the readers collect
	noise     int
	noiseLine string
	stderr    []string
}

// startProcess starts the server. What it starts in sessions of its own outlives it, as it would behind a client, so
// that it can be told.
func startProcess(s Spec) (*process, error) {
	p := &process{spec: s, answers: make(chan answer, 1), silent: make(chan struct{}), quiet: make(chan struct{}), gone: make(chan struct{})}
	p.started = time.Now()
	proc, err := child.Start(child.Spec{Argv: s.Argv, Dir: s.Dir, Env: s.Env, KillMode: child.KillGroup}, func(status child.Status) {
		p.status = status
		close(p.gone)
	})
	if err != nil {
		return nil, err
	}
	p.proc, p.stdin = proc, proc.Stdin()
	go p.readOutput(proc.Stdout())
	go p.readErrors(proc.Stderr())
	return p, nil
}

// write sends one line. One that the server does not read fits into the pipe, and one that it cannot read any more shows
// in what it does not answer.
func (p *process) write(line []byte) {
	_, _ = p.stdin.Write(append(slices.Clone(line), '\n'))
}

// end closes the server's stdin and sees it through to its end: after the grace it is asked to go, after another one it
// is killed. A launcher that is installing the server has the time to undo that. It reports whether the closed stdin was
// enough.
func (p *process) end(grace time.Duration) (willing bool) {
	last := grace
	if p.installing() {
		last = max(grace, launcher.UndoTime)
	}
	_ = p.stdin.Close()
	willing = within(p.gone, grace)
	if !willing {
		_ = p.proc.Terminate()
		if !within(p.gone, last) {
			_ = p.proc.Kill()
			within(p.gone, killTime) // one that runs as another user, as behind sudo, lives on
		}
	}
	within(p.silent, streamPatience)
	within(p.quiet, streamPatience)
	_ = p.proc.Stderr().Close() // ends its reader; that of stdout closes what it reads, when it comes to the end
	return willing
}

// installing reports whether the process is a launcher whose server is not there yet. Its stdin must not be closed.
func (p *process) installing() bool {
	return launcher.Installing(p.spec.Argv, p.proc.PID(), p.stdin, p.proc.Stdout())
}

// within waits until a channel is closed, and reports whether it was in time.
func within(closed <-chan struct{}, patience time.Duration) bool {
	select {
	case <-closed:
		return true
	case <-time.After(patience):
		return false
	}
}

// exitText says in brackets how the process ended, once it has.
func (p *process) exitText() string {
	if !within(p.gone, streamPatience) {
		return "" // it closed its stdout and lives on
	}
	if p.status.Signalled {
		return " (signal: " + p.status.Signal + ")"
	}
	return fmt.Sprintf(" (exit status %d)", p.status.Code)
}

// said is what the readers have collected: how many lines on stdout are no messages, the first of them, and the last lines of stderr.
func (p *process) said() (garbage int, first string, stderr []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.noise, p.noiseLine, slices.Clone(p.stderr)
}

// brokenCache is launcher.BrokenCache, once the process has ended.
func (p *process) brokenCache() string {
	within(p.quiet, streamPatience)
	_, _, stderr := p.said()
	return launcher.BrokenCache(stderr)
}
