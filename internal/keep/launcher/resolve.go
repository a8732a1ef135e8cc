package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/secret"
)

// Errors of [Resolve] that a caller may want to distinguish. All of them mean: keep using the launcher.
var (
	// ErrUnsupported: this system does not show what other processes have open. It is [errors.ErrUnsupported] itself.
	ErrUnsupported = errors.ErrUnsupported
	// ErrNotLauncher: [Is] does not recognise the command line.
	ErrNotLauncher = errors.New("not a launcher")
	// ErrNoServer: no process below the launcher holds both our pipes; perhaps it has ended.
	ErrNoServer = errors.New("no process behind the launcher holds our pipes")
	// ErrSeveral: more than one process holds both, so that one of them does something for the other.
	ErrSeveral = errors.New("several processes behind the launcher hold our pipes")
	// ErrUnusable: the server's command cannot be read, because it has renamed itself, or its program was deleted or
	// is in an archive, as with yarn dlx, which unpacks nothing and removes its folder when it ends.
	ErrUnusable = errors.New("the command cannot be started again")
)

// Request describes, for [Resolve], a server that runs behind a launcher and is ready.
type Request struct {
	Leader int      // process id of what was started. It must not have been reaped, because the number could be reused.
	Asked  []string // the command line it was started with
	// Env is the environment it was started with. nil: that of the process Leader, which differs if the launcher has
	// replaced itself with another program (exec), as pipx does.
	Env []string
	// Stdin and Stdout are our ends of the server's pipes.
	Stdin, Stdout *os.File
}

// Resolve finds the real command of a server behind a launcher: that of the one process among Leader and its
// descendants that holds both pipes and is neither a launcher nor a shell that waits for one simple command. A server
// may hold the pipes under any descriptor: the official Python SDK moves them away from 0 and 1. It takes a few
// milliseconds and only reads files.
func Resolve(r Request) (Command, error) {
	if _, ok := Is(r.Asked); !ok {
		return Command{}, fmt.Errorf("resolve %q: %w", secret.Line(r.Asked), ErrNotLauncher)
	}
	o := parse(r.Asked)
	tree, err := look(r.Leader, r.Stdin, r.Stdout)
	if err != nil {
		return Command{}, fmt.Errorf("resolve what %s started: %w", o.kind, err)
	}
	server, err := choose(tree)
	if err != nil {
		return Command{}, fmt.Errorf("resolve what %s started: %w", o.kind, err)
	}
	if server.argv, err = server.startable(); err != nil {
		return Command{}, fmt.Errorf("resolve what %s started: %w", o.kind, err)
	}
	given := r.Env
	if given == nil {
		given = tree[0].env
	}
	c := Command{
		Kind: o.kind, Asked: r.Asked, Version: o.version,
		Argv: server.argv, Exe: server.exe, Dir: server.dir, Env: changes(given, server.env),
		Stamps: stampsOf(o, server.dir, server.exe, server.argv),
	}
	if err := c.usable(); err != nil {
		return Command{}, fmt.Errorf("resolve what %s started: %w", o.kind, err)
	}
	return c, nil
}

// process is one process below the launcher, as it was seen.
type process struct {
	pid, parent int
	argv        []string
	titled      bool // argv is a title that the process has set
	exe, dir    string
	env         []string
	holds       bool // it holds both our pipes
}

// choose finds the server. tree begins with the leader, and parents precede their children.
func choose(tree []process) (process, error) {
	wraps := map[int]bool{}
	var found []process
	for i, p := range tree {
		behindOne := i == 0 || wraps[p.parent]
		if behindOne && (title(p.argv) || parse(p.argv).kind != "" || isCover(p.argv)) {
			wraps[p.pid] = true
			continue
		}
		if p.holds {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return process{}, ErrNoServer
	case 1:
		return found[0], nil
	}
	var names []string
	for _, p := range found {
		names = append(names, fmt.Sprintf("%d %s", p.pid, filepath.Base(p.exe)))
	}
	return process{}, fmt.Errorf("%w: %s", ErrSeveral, strings.Join(names, ", "))
}

// startable returns argv with a first word that can be started from any directory and leads to the executable. It
// fails for a process that has renamed itself, because its argv is no command line any more.
func (p process) startable() ([]string, error) {
	if len(p.argv) == 0 || p.titled {
		return nil, fmt.Errorf("process %d has renamed itself: %w", p.pid, ErrUnusable)
	}
	exe, err := os.Stat(p.exe)
	if err != nil {
		return nil, fmt.Errorf("executable of process %d: %w: %w", p.pid, ErrUnusable, err)
	}
	if info, err := os.Stat(p.dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("folder %s of process %d is gone: %w", p.dir, p.pid, ErrUnusable)
	}
	if path, ok := script(p.dir, p.argv); !ok {
		return nil, fmt.Errorf("script %s of process %d is not a file: %w", path, p.pid, ErrUnusable)
	}
	for _, path := range p.candidates() {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, exe) {
			return append([]string{path}, p.argv[1:]...), nil
		}
	}
	if name := filepath.Base(p.argv[0]); !strings.HasPrefix(filepath.Base(p.exe), name) {
		return nil, fmt.Errorf("process %d calls itself %.60q and is %s: %w", p.pid, p.argv[0], p.exe, ErrUnusable)
	}
	return append([]string{p.exe}, p.argv[1:]...), nil
}

// candidates are the paths that the first word of argv may mean. A correct path is kept unresolved: Python finds its
// virtual environment by it.
func (p process) candidates() []string {
	if strings.ContainsRune(p.argv[0], filepath.Separator) {
		return []string{inDir(p.dir, p.argv[0])}
	}
	var paths []string
	if list := asMap(p.env)["PATH"]; list != nil {
		for _, dir := range filepath.SplitList(*list) {
			paths = append(paths, filepath.Join(inDir(p.dir, dir), p.argv[0]))
		}
	}
	return paths
}
