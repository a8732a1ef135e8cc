package launcher

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Times for a command that may install its server before it starts it.
const (
	// InstallTime is how long an installation is waited for: npm tries for more than a minute before it gives up, and an
	// image may be large.
	InstallTime = 5 * time.Minute
	// UndoTime is how long a launcher may take to end after SIGTERM. npm removes what it has put in place so far, which took
	// it up to 16 s for a hundred packages on a busy machine. One that is killed meanwhile leaves half a package behind.
	UndoTime = 30 * time.Second
)

// Installs returns the name of the command that may install the server before it starts it, such as npx; "" if argv does not.
func Installs(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	name := strings.ToLower(filepath.Base(argv[0]))
	name = strings.TrimSuffix(name, filepath.Ext(name))
	var verbs, valued []string // the verbs that mean so, and the flags before a verb that have a value
	switch name {
	case "npx", "pnpx", "bunx", "uvx":
		return name
	case "cmd", "sh", "bash", "zsh", "env", "wsl": // on Windows npx is no program, and clients are told to start cmd /c npx
		return Installs(behind(argv[1:]))
	case "npm":
		verbs, valued = []string{"exec", "x"}, []string{"--prefix", "--cache", "--registry", "--loglevel", "--userconfig"}
	case "pnpm", "yarn":
		verbs, valued = []string{"dlx"}, []string{"--dir", "-C", "--cwd"}
	case "bun":
		verbs, valued = []string{"x"}, []string{"--cwd", "--config"}
	case "uv":
		verbs, valued = []string{"tool", "run"}, []string{"--directory", "--project", "--config-file", "--cache-dir", "--color"}
	case "pipx", "docker", "podman", "nerdctl":
		verbs, valued = []string{"run"}, []string{"--context", "-c", "--host", "-H", "--config", "--log-level", "-l", "--namespace", "-n", "--url"}
	}
	if !slices.Contains(verbs, verbOf(argv[1:], valued)) {
		return ""
	}
	return name
}

// behind is the command that a shell or the like is given, as words or as one text.
func behind(args []string) []string {
	for i, word := range args {
		switch {
		case strings.HasPrefix(word, "-"), len(word) == 2 && word[0] == '/': // a flag, such as /c
		case strings.Contains(word, "=") && !strings.Contains(word, " "): // a variable
		case i == len(args)-1:
			return strings.Fields(word)
		default:
			return args[i:]
		}
	}
	return nil
}

// verbOf is the first word that is neither a flag nor the value of one of the flags that have one; "": there is none.
func verbOf(args, valued []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(valued, args[i]):
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// Installing reports whether the launcher that argv started as process leader has not started its server. What the system
// does not show counts as such. It takes a few milliseconds and only reads files.
func Installing(argv []string, leader int, stdin, stdout *os.File) bool {
	if Installs(argv) == "" {
		return false
	}
	_, err := Resolve(leader, stdin, stdout)
	return errors.Is(err, ErrNone) || errors.Is(err, ErrGone) || errors.Is(err, ErrNoServer)
}

var (
	// npxCache is a directory that npx has installed one package into.
	npxCache = lazyregexp.New(`(?:\b[A-Za-z]:)?[/\\][^'":]*?[/\\]_npx[/\\][0-9a-f]+`)
	// incomplete is what npm and Node say of one whose installation was ended midway.
	incomplete = lazyregexp.New(`ENOTEMPTY|Cannot find (?:module|package)|MODULE_NOT_FOUND`)
)

// BrokenCache returns the directory of npx's cache that what a server has written to stderr says is incomplete; "": none is.
// npx does not mend it by itself.
func BrokenCache(stderr []string) string {
	if !slices.ContainsFunc(stderr, incomplete.MatchString) {
		return ""
	}
	for _, line := range stderr {
		if dir := npxCache.FindString(line); dir != "" {
			return path.Clean(dir) // that of a URL begins with three slashes
		}
	}
	return ""
}

// CacheHint says what to do about that.
func CacheHint(dir string) string {
	return "npx's copy of the server may be incomplete, as after an installation that was ended midway: remove " + dir + " and start again"
}
