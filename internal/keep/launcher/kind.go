package launcher

import (
	"path"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Kind is a launcher, as in its command line: "npx", "uv tool run".
type Kind string

// The known launchers.
const (
	Npx       Kind = "npx"
	NpmExec   Kind = "npm exec"
	Uvx       Kind = "uvx"
	UvToolRun Kind = "uv tool run"
	UvRun     Kind = "uv run"
	PipxRun   Kind = "pipx run"
	PnpmDlx   Kind = "pnpm dlx"
	Bunx      Kind = "bunx"
	YarnDlx   Kind = "yarn dlx"
)

// Is reports whether argv starts a server through a launcher, and through which. A launcher after `env NAME=value`,
// in `sh -c "exec …"`, or started as a script of node or Python counts. One with a script of its own (npx -c) or a
// file of variables (uv run --env-file) does not: its effect cannot be seen on the resulting process.
func Is(argv []string) (Kind, bool) {
	o := parse(argv)
	return o.kind, o.kind != "" && !o.opaque
}

// nested is how many commands may precede the launcher: sh -c "exec env A=b npx".
const nested = 4

// parse parses a launcher's command line. The order's kind is empty if it is not one.
func parse(argv []string) order {
	for range nested {
		if len(argv) == 0 {
			return order{}
		}
		for _, f := range forms {
			if rest, ok := f.match(argv); ok {
				return parseOrder(f.kind, rest)
			}
		}
		inner, ok := behind(argv)
		if !ok {
			return order{}
		}
		argv = inner
	}
	return order{}
}

// form is one form of a launcher's command line: the program's names and the words that must follow.
type form struct {
	kind     Kind
	programs []string
	words    []string
	// before are options that may come between program and words; valuesBefore are those with a value of their own.
	before, valuesBefore []string
}

var forms = []form{
	{kind: Npx, programs: []string{"npx", "npx-cli.js"}},
	{kind: NpmExec, programs: npm, words: []string{"exec"}, before: quiet, valuesBefore: []string{"--prefix"}},
	{kind: NpmExec, programs: npm, words: []string{"x"}, before: quiet, valuesBefore: []string{"--prefix"}},
	{kind: Uvx, programs: []string{"uvx"}},
	{kind: Uvx, programs: uv, words: []string{"tool", "uvx"}, before: uvFlags, valuesBefore: uvValues},
	{kind: UvToolRun, programs: uv, words: []string{"tool", "run"}, before: uvFlags, valuesBefore: uvValues},
	{kind: UvRun, programs: uv, words: []string{"run"}, before: uvFlags, valuesBefore: uvValues},
	{kind: PipxRun, programs: []string{"pipx"}, words: []string{"run"}, before: quiet},
	{kind: PnpmDlx, programs: []string{"pnpm", "pn", "pnpm.cjs", "pnpm.mjs"}, words: []string{"dlx"}, before: quiet},
	{kind: PnpmDlx, programs: []string{"pnpx", "pnx", "pnpx.cjs", "pnpx.mjs"}},
	{kind: Bunx, programs: []string{"bunx"}},
	{kind: Bunx, programs: []string{"bun"}, words: []string{"x"}, before: []string{"--bun"}},
	{kind: YarnDlx, programs: []string{"yarn", "yarnpkg", "yarn.js", "yarn.cjs"}, words: []string{"dlx"}},
}

var (
	npm      = []string{"npm", "npm-cli.js"}
	uv       = []string{"uv"}
	quiet    = []string{"-y", "--yes", "-s", "--silent", "-q", "--quiet", "--verbose"}
	uvFlags  = []string{"-q", "--quiet", "-v", "--verbose", "--offline", "-n", "--no-cache", "--no-progress", "--native-tls", "--no-config"}
	uvValues = []string{"--directory", "--project", "--cache-dir", "--config-file", "--color", "--allow-insecure-host"}
)

// match returns what follows the launcher's own words, with the options before them; ok is false if argv does not
// have this form.
func (f form) match(argv []string) (rest []string, ok bool) {
	if !slices.Contains(f.programs, program(argv[0])) {
		return nil, false
	}
	at, left := 1, f.words
	for len(left) > 0 && at < len(argv) {
		word := argv[at]
		name, _, joined := strings.Cut(word, "=")
		switch {
		case word == left[0]:
			left = left[1:]
		case slices.Contains(f.before, word), joined && slices.Contains(f.valuesBefore, name):
			rest = append(rest, word)
		case slices.Contains(f.valuesBefore, word) && at+1 < len(argv):
			rest = append(rest, word, argv[at+1])
			at++
		default:
			return nil, false
		}
		at++
	}
	if len(left) > 0 {
		return nil, false
	}
	return append(rest, argv[at:]...), true
}

// program is a program's name without its folder and without the suffixes of Windows and npm's native binaries.
func program(word string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(word, `\`, "/")))
	for _, suffix := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

var python = lazyregexp.New(`^(python|pypy)[0-9.]*w?$`)

// isInterpreter reports whether a program runs the script in its first argument.
func isInterpreter(name string) bool {
	return name == "node" || name == "nodejs" || name == "bun" || name == "deno" || name == "corepack" || python.MatchString(name)
}

// behind returns the command that argv, as a wrapper, runs.
func behind(argv []string) (inner []string, ok bool) {
	name := program(argv[0])
	switch {
	case len(argv) < 2:
		return nil, false
	case name == "env":
		return behindEnv(argv[1:])
	case isShell(name) && len(argv) == 3 && argv[1] == "-c":
		words, ok := splitSimple(argv[2])
		if !ok || len(words) < 2 || words[0] != "exec" {
			return nil, false
		}
		return words[1:], true
	case name == "cmd" && strings.EqualFold(argv[1], "/c"):
		return argv[2:], true
	case python.MatchString(name) && argv[1] == "-m":
		return argv[2:], true
	case isInterpreter(name) && argv[1] != "" && argv[1][0] != '-':
		return argv[1:], true
	}
	return nil, false
}

var assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*=`)

func behindEnv(words []string) ([]string, bool) {
	for i, w := range words {
		if !assignment.MatchString(w) {
			return words[i:], !strings.HasPrefix(w, "-")
		}
	}
	return nil, false
}

// title recognises a launcher that has overwritten its argv with a title, as npm does: "npm exec some-package".
func title(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	first, _, titled := strings.Cut(argv[0], " ")
	return titled && slices.Contains([]string{"npm", "npx", "pnpm", "pnpx", "yarn"}, first)
}
