package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Errors of [Resolve]. All of them mean: start the server as the user asked.
var (
	// ErrNone: the process is no launcher that is known, or this system does not show what it has open.
	ErrNone = errors.New("no launcher")
	// ErrGone: the process has ended. It says nothing of another one.
	ErrGone = errors.New("the process has ended")
	// ErrNoServer: no process behind the launcher holds both our pipes; perhaps it has ended.
	ErrNoServer = errors.New("no process behind the launcher holds our pipes")
	// ErrSeveral: more than one process holds both, so that one of them does something for the other.
	ErrSeveral = errors.New("several processes behind the launcher hold our pipes")
	// ErrUnusable: the server's first word does not lead to its executable: it has renamed itself, or the file is gone.
	ErrUnusable = errors.New("the command cannot be started again")
	// ErrMoved: the server works in another directory than it was started in, and relative paths of its command mean something
	// else there.
	ErrMoved = errors.New("the server has changed its working directory")
)

// Command is what a launcher started, as /proc shows it.
type Command struct {
	Argv []string // Argv[0] is an absolute path
	Dir  string
	env  []string
}

// ours is the prefix of outlive's own variables, which differ at each start.
const ours = "OUTLIVE_"

// Environment is the server's, with outlive's own variables from now in place of those of its start.
func (c Command) Environment(now []string) []string {
	isOurs := func(kv string) bool { return strings.HasPrefix(kv, ours) }
	env := slices.DeleteFunc(slices.Clone(c.env), isOurs)
	return append(env, slices.DeleteFunc(slices.Clone(now), func(kv string) bool { return !isOurs(kv) })...)
}

// Gone reports that the program or its directory does not exist any more, as after a cache was emptied.
func (c Command) Gone() bool {
	program, err := os.Stat(c.Argv[0])
	dir, dirErr := os.Stat(c.Dir)
	return err != nil || dirErr != nil || !program.Mode().IsRegular() || !dir.IsDir()
}

// Resolve finds the server that the launcher in process leader has started: the one process below it that holds the
// other ends of our pipes. The server may hold them under any descriptor: the Python SDK moves them away from 0 and 1.
// The leader must not have been reaped. It takes a few milliseconds and only reads files.
func Resolve(leader int, stdin, stdout *os.File) (Command, error) {
	tree, err := look(leader, stdin, stdout)
	if err != nil {
		return Command{}, err
	}
	server, err := choose(tree)
	if err != nil {
		return Command{}, err
	}
	program, err := server.program()
	if err != nil {
		return Command{}, err
	}
	return Command{Argv: append([]string{program}, server.argv[1:]...), Dir: server.dir, env: server.env}, nil
}

// process is one process of a launcher's tree, as it was seen.
type process struct {
	pid, parent int
	argv        []string
	exe, dir    string
	env         []string
	holds       bool // it holds both our pipes
}

// npmTitle is how npm begins its argv once it runs, whether npx or npm exec started it. A package follows; behind -c, which
// has a script in its place, none does.
const npmTitle = "npm exec "

// deleted is what Linux puts behind the name of an executable that is gone or was replaced, as by an update while it runs.
const deleted = " (deleted)"

// isLauncher recognises npm, by the title that it gives itself, and uv, by its executable.
func (p process) isLauncher() bool {
	return len(p.argv) > 0 && strings.HasPrefix(p.argv[0], npmTitle) || filepath.Base(strings.TrimSuffix(p.exe, deleted)) == "uv"
}

// isNpmShell recognises the shell between npm and the server. It adds nothing that the server's process does not show.
func (p process) isNpmShell(parent process) bool {
	return len(parent.argv) > 0 && strings.HasPrefix(parent.argv[0], npmTitle) && len(p.argv) > 2 && p.argv[0] == "sh" && p.argv[1] == "-c"
}

// choose finds the server. tree begins with the leader, and parents precede their children.
func choose(tree []process) (process, error) {
	if len(tree) == 0 || !tree[0].isLauncher() {
		return process{}, ErrNone
	}
	wraps := map[int]process{}
	var found []process
	for i, p := range tree {
		parent, behindOne := wraps[p.parent]
		if i == 0 || behindOne && (p.isLauncher() || p.isNpmShell(parent)) {
			wraps[p.pid] = p
		} else if p.holds {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return process{}, ErrNoServer
	case 1:
		if parent, ok := wraps[found[0].parent]; ok && parent.dir != found[0].dir {
			return process{}, fmt.Errorf("process %d: %w", found[0].pid, ErrMoved)
		}
		return found[0], nil
	}
	return process{}, fmt.Errorf("%w: %d %s, %d %s", ErrSeveral, found[0].pid, filepath.Base(found[0].exe), found[1].pid, filepath.Base(found[1].exe))
}

// program is the path that the first word of argv means. A symbolic link is kept: Python finds its virtual environment
// by it.
func (p process) program() (string, error) {
	exe, err := os.Stat(p.exe)
	if err != nil || len(p.argv) == 0 {
		return "", fmt.Errorf("executable of process %d: %w", p.pid, ErrUnusable)
	}
	for _, path := range p.candidates() {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, exe) {
			return path, nil
		}
	}
	return "", fmt.Errorf("process %d calls itself %.60q and is %s: %w", p.pid, p.argv[0], p.exe, ErrUnusable)
}

// candidates are the paths that the first word of argv may mean.
func (p process) candidates() (paths []string) {
	inDir := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(p.dir, path)
	}
	if strings.ContainsRune(p.argv[0], filepath.Separator) {
		return []string{inDir(p.argv[0])}
	}
	for _, kv := range p.env {
		if list, ok := strings.CutPrefix(kv, "PATH="); ok {
			for _, dir := range filepath.SplitList(list) {
				paths = append(paths, filepath.Join(inDir(dir), p.argv[0]))
			}
		}
	}
	return paths
}
