package child

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/batchfile"
)

// Spec says what to start.
type Spec struct {
	Argv []string // the command and its arguments; Argv[0] is resolved as [Resolve] says
	Dir  string   // working directory; "": our own
	Env  []string // KEY=value, the whole environment; of equal keys the last counts; nil: our own
	// Inherit passes our descriptors 0, 1 and 2 on and leaves the process in our process group (WD-7). There are no
	// pipes then, and signals go to the process alone, because its group is ours. Without [PrepareToInherit] there is no
	// keeper for it.
	Inherit bool
	// KillMode says which descendants are killed with the process. "": [KillTree]. It has no effect without a keeper.
	KillMode KillMode
}

// KillMode says which descendants of a process are killed with it.
type KillMode string

// Kill modes.
const (
	KillTree  KillMode = "tree"  // all, as far as they can be found
	KillGroup KillMode = "group" // those in its process group: for servers that start daemons on purpose
)

// Status is how a process ended.
type Status struct {
	Code      int           // exit code; 128+N when signal N ended it (WD-1)
	Signalled bool          // a signal ended it
	Signal    string        // the signal's name, "killed", "segmentation fault"; "" when there was none
	Uptime    time.Duration // from the spawn until the exit was noticed
	// MaxRSS is the largest resident memory in bytes; 0 if unknown. On Linux it is at least outlive's own at the spawn,
	// because the kernel counts the time before exec.
	MaxRSS int64
	CPU    time.Duration // user and system time of the process and of the children it waited for
}

// ErrEmpty is returned by [Start] for an empty command line.
var ErrEmpty = errors.New("empty command")

// Process is a started process. Its methods may be called from any goroutine.
type Process struct {
	proc    *os.Process // nil when the keeper is its parent
	pid     int
	inherit bool
	started time.Time
	ours    [3]*os.File

	tree tree // what the operating system needs to reach all of it

	mu     sync.Mutex // signals and reaping exclude each other, since a reaped PID may be reused
	reaped bool
}

// Start spawns the process. Errors wrap [ErrNotFound], [ErrNotExecutable] or [ErrBadDir] where these are the cause;
// their text says what was searched and what may help. After an error onExit is never called.
//
// onExit is called exactly once, from a goroutine of this package, after the leader exited, its descendants were killed
// (without a keeper only the rest of its group; with Inherit none, as the group is ours) and the leader was reaped. It
// may be nil.
func Start(spec Spec, onExit func(Status)) (*Process, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return nil, ErrEmpty
	}
	if err := checkDir(spec.Dir); err != nil {
		return nil, err
	}
	env := spec.Env
	if env == nil {
		env = os.Environ()
	}
	env = lastOfEach(env)
	path, err := resolve(spec.Argv[0], spec.Dir, searchPath(env))
	if err != nil {
		return nil, err
	}
	p := &Process{inherit: spec.Inherit}
	theirs := [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	if !spec.Inherit {
		if theirs, err = p.makePipes(); err != nil {
			return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
		}
		defer closeAll(theirs)
	}
	p.started = time.Now()
	if err := p.start(path, spec, env, theirs); err != nil {
		closeAll(p.ours)
		return nil, explainStart(spec.Argv[0], path, err)
	}
	go func() {
		status := p.end()
		if onExit != nil {
			onExit(status)
		}
	}()
	return p, nil
}

// startDirect spawns the process as our own child.
func (p *Process) startDirect(path string, spec Spec, env []string, theirs [3]*os.File) (err error) {
	attr := &os.ProcAttr{Dir: spec.Dir, Env: env, Files: theirs[:], Sys: p.tree.attributes(spec.Inherit)}
	path, err = batchfile.Program(path, spec.Argv[1:], attr.Sys)
	if err == nil {
		p.proc, err = os.StartProcess(path, spec.Argv, attr)
	}
	if err != nil {
		p.tree.close()
		return err
	}
	p.pid = p.proc.Pid
	p.tree.adopt(p.proc)
	return nil
}

// makePipes makes the three pipes, keeps our ends and returns the child's.
func (p *Process) makePipes() (theirs [3]*os.File, err error) {
	for i, name := range []string{"stdin", "stdout", "stderr"} {
		create := pipe
		if name == "stderr" {
			create = func(string) (r, w *os.File, err error) { return os.Pipe() }
		}
		r, w, err := create(name)
		if err != nil {
			closeAll(theirs)
			closeAll(p.ours)
			return theirs, fmt.Errorf("make %s pipe: %w", name, err)
		}
		theirs[i], p.ours[i] = w, r
		if i == 0 {
			theirs[i], p.ours[i] = r, w
		}
	}
	return theirs, nil
}

// endDirect waits for the end of our own child.
func (p *Process) endDirect() Status {
	p.tree.waitExit(p.proc)
	uptime := time.Since(p.started)

	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.inherit {
		p.tree.killRest(p.pid)
	}
	state, err := p.proc.Wait()
	p.reaped = true
	status := p.status(state, err)
	p.tree.close()
	status.Uptime = uptime
	return status
}

// PID returns the leader's process id.
func (p *Process) PID() int { return p.pid }

// Stdin returns our writing end of the child's standard input; nil with Inherit. The caller closes it.
func (p *Process) Stdin() *os.File { return p.ours[0] }

// Stdout returns our reading end of the child's standard output; nil with Inherit. The caller closes it.
func (p *Process) Stdout() *os.File { return p.ours[1] }

// Stderr returns our reading end of the child's standard error; nil with Inherit. The caller closes it. It uses the
// runtime's poller: Close ends a blocked read.
func (p *Process) Stderr() *os.File { return p.ours[2] }

// Terminate asks the whole group to end: SIGTERM and then SIGCONT, because a stopped process does not handle SIGTERM; on
// Windows CTRL_BREAK. It returns [os.ErrProcessDone] once the process is reaped.
func (p *Process) Terminate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	return p.terminate()
}

// Kill kills the process and everything of its tree that can be reached. It returns [os.ErrProcessDone] once the process
// is reaped; onExit reports the end.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	return p.kill()
}

// Unread returns how many bytes written to Stdin the process has not read. It also works after the process's death,
// while Stdin is open, and then says what was never delivered. ok is false where the operating system does not support
// it, and with Inherit.
func (p *Process) Unread() (n int, ok bool) {
	if p.ours[0] == nil {
		return 0, false
	}
	return unread(p.ours[0])
}

// lastOfEach drops all but the last assignment of each variable. Most programs would use the first.
func lastOfEach(env []string) []string {
	at := make(map[string]int, len(env))
	kept := make([]string, 0, len(env))
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		key = variable(key)
		if i, again := at[key]; again && key != "" {
			kept[i] = kv
			continue
		}
		at[key] = len(kept)
		kept = append(kept, kv)
	}
	return kept
}

func closeAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
