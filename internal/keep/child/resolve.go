package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// Why a command cannot be started. The command line tool exits 127 for ErrNotFound and 126 for ErrNotExecutable, as
// shells do (WD-1).
var (
	ErrNotFound      = errors.New("command not found")
	ErrNotExecutable = errors.New("command not executable")
	ErrBadDir        = errors.New("working directory not usable")
)

// StartError says why a command cannot be started and what may help. It wraps one of the sentinels of this package.
type StartError struct {
	Command string // as the user wrote it
	Err     error  // ErrNotFound, ErrNotExecutable, ErrBadDir
	Detail  string // what was searched or seen
	Hint    string // what to do; may be ""
}

// Error implements error: one line.
func (e *StartError) Error() string {
	s := fmt.Sprintf("%v: %s: %s", e.Err, e.Command, e.Detail)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// ShellStatus is a shell's exit status for a command that cannot be executed: 127 if it was not found, 126 if it is not
// executable. known is false for other errors, after which another try may succeed.
func ShellStatus(err error) (status int, known bool) {
	var why *StartError
	switch {
	case !errors.As(err, &why):
		return 0, false
	case errors.Is(why, ErrNotFound):
		return 127, true
	}
	return 126, true
}

// Unwrap returns the sentinel.
func (e *StartError) Unwrap() error { return e.Err }

// Resolve returns the file that argv0 names: itself if it contains a path separator, taken relative to dir
// (dir "" is our own working directory); otherwise the first executable of that name in the directories of PATH.
// Errors are [*StartError].
func Resolve(argv0, dir string) (path string, err error) {
	if argv0 == "" {
		return "", ErrEmpty
	}
	return resolve(argv0, dir, searchPath(os.Environ()))
}

// searchPath returns the value of PATH in env.
func searchPath(env []string) string {
	path := ""
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok && variable(k) == "PATH" {
			path = v
		}
	}
	return path
}

// checkDir reports an unusable working directory, which a failing spawn would blame on the command.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	switch st, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return &StartError{Command: dir, Err: ErrBadDir, Detail: "no such directory"}
	case err != nil:
		return &StartError{Command: dir, Err: ErrBadDir, Detail: err.Error()}
	case !st.IsDir():
		return &StartError{Command: dir, Err: ErrBadDir, Detail: "not a directory"}
	}
	return nil
}

// notFoundInPath is the error for a bare name.
func notFoundInPath(name, path string) error {
	e := &StartError{Command: name, Err: ErrNotFound}
	dirs := filepath.SplitList(path)
	if len(dirs) == 0 {
		e.Detail, e.Hint = "PATH is empty", "name the command with its directory"
		return e
	}
	e.Detail = "not in PATH: " + searched(dirs)
	if near := closest(name, dirs); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	} else {
		e.Hint = install(name)
	}
	return e
}

// searched names the directories of PATH, each once; of many the first ones.
func searched(dirs []string) string {
	const enough = 120 // bytes
	text, named := "", map[string]bool{}
	left := 0
	for _, d := range dirs {
		switch {
		case named[d]:
			continue
		case left > 0 || text != "" && len(text)+len(d) > enough:
			left++
		default:
			text = strings.TrimPrefix(text+string(filepath.ListSeparator)+d, string(filepath.ListSeparator))
		}
		named[d] = true
	}
	if left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}

// install says where a well-known launcher comes from.
func install(name string) string {
	switch name {
	case "node", "npm", "npx":
		return "is Node.js installed, and its directory in the PATH of the program that starts outlive?"
	case "uv", "uvx":
		return "is uv installed, and its directory in the PATH of the program that starts outlive?"
	case "python", "python3", "pipx":
		return "is Python installed, and its directory in the PATH of the program that starts outlive?"
	}
	return "is it installed? Programs started from a desktop often have a shorter PATH than a shell"
}

// closest returns the executable in dirs with the most similar name, "" if none is close.
func closest(name string, dirs []string) string {
	best, bestAt := "", 2+1
	if len(name) < 4 {
		bestAt = 1 + 1
	}
	for _, d := range dirs {
		entries, err := os.ReadDir(d)
		if err != nil {
			continue
		}
		for _, e := range entries {
			n := e.Name()
			if strings.TrimRight(n, "0123456789.") == name && best == "" && executable(filepath.Join(d, n)) == nil {
				best = n // python → python3, but a real near miss is better
			}
			if at := fileerror.Distance(name, n); at < bestAt && executable(filepath.Join(d, n)) == nil {
				best, bestAt = n, at
			}
		}
	}
	return best
}
