package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/outlive-mcp/outlive/internal/keep/child"
)

// lookLimit limits the number of processes: a launcher has only a few below it.
const lookLimit = 512

// look returns the leader and its living descendants, parents first; of a leader that is no launcher it reads nothing
// else. Processes that end meanwhile or cannot be read are left out, except for the leader.
func look(leader int, stdin, stdout *os.File) ([]process, error) {
	in, err := pipeName(stdin)
	if err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	out, err := pipeName(stdout)
	if err != nil {
		return nil, fmt.Errorf("stdout: %w", err)
	}
	var tree []process
	todo := []process{{pid: leader}}
	for len(todo) > 0 && len(tree) < lookLimit {
		p := todo[0]
		todo = todo[1:]
		if err := p.read(in, out); err != nil {
			if p.pid == leader {
				why := ErrNone
				if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
					why = ErrGone
				}
				return nil, fmt.Errorf("%w: process %d: %w", why, leader, err)
			}
			continue
		}
		tree = append(tree, p)
		if p.pid == leader && !p.isLauncher() {
			return tree, nil
		}
		for _, pid := range child.Children(p.pid) {
			todo = append(todo, process{pid: pid, parent: p.pid})
		}
	}
	return tree, nil
}

// pipeName is the name in /proc of the pipe that f is an end of; both ends have the same name.
func pipeName(f *os.File) (string, error) {
	if f == nil {
		return "", fmt.Errorf("no pipe: %w", os.ErrInvalid)
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&os.ModeNamedPipe == 0 {
		return "", fmt.Errorf("not a pipe: %w", os.ErrInvalid)
	}
	return "pipe:[" + strconv.FormatUint(st.Ino, 10) + "]", nil
}

func (p *process) read(in, out string) error {
	at := "/proc/" + strconv.Itoa(p.pid) + "/"
	cmdline, err := os.ReadFile(at + "cmdline")
	if err != nil {
		return err
	}
	p.argv = splitZero(cmdline)
	environ, err := os.ReadFile(at + "environ")
	if err != nil {
		return err
	}
	p.env = splitZero(environ)
	if p.exe, err = os.Readlink(at + "exe"); err != nil {
		return err
	}
	if p.dir, err = os.Readlink(at + "cwd"); err != nil {
		return err
	}
	p.holds = holds(at+"fd", in, out)
	return nil
}

// holds reports whether the process can read from the pipe in and write to the pipe out.
func holds(dir, in, out string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	reads, writes := false, false
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		name, err := os.Readlink(path)
		if err != nil || name != in && name != out {
			continue
		}
		info, err := os.Lstat(path) // the link's own permissions show how the file was opened
		if err != nil {
			continue
		}
		reads = reads || name == in && info.Mode()&0o400 != 0
		writes = writes || name == out && info.Mode()&0o200 != 0
	}
	return reads && writes
}

func splitZero(b []byte) []string {
	b = bytes.TrimSuffix(b, []byte{0})
	if len(b) == 0 {
		return nil
	}
	return strings.Split(string(b), "\x00")
}
