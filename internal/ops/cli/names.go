package cli

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// launchers run another program that they are given as an argument; their own name says nothing.
var launchers = map[string]bool{
	"npx": true, "npm": true, "pnpm": true, "yarn": true, "bunx": true, "bun": true, "uvx": true, "uv": true,
	"pipx": true, "node": true, "deno": true, "python": true, "python3": true, "ruby": true, "java": true, "go": true,
	"sh": true, "bash": true, "docker": true, "env": true, "tsx": true, "dotnet": true,
}

var (
	shells        = map[string]bool{"sh": true, "bash": true, "zsh": true, "dash": true}
	codeFlags     = map[string]bool{"-c": true, "-e": true, "--eval": true} // behind which there is code, and no name
	launcherWords = map[string]bool{"exec": true, "run": true, "dlx": true, "tool": true, "x": true}
	unfit         = lazyregexp.New(`[^A-Za-z0-9._-]+`)
	extension     = lazyregexp.New(`\.(js|mjs|cjs|ts|mts|py|jar|exe|rb|sh|go)$`)
	packageAt     = lazyregexp.New(`@[^/@]*$`)
)

// longestName is in bytes: names are those of directories, too.
const longestName = 64

// nameOf makes a short name of a command: what a person would call the server.
func nameOf(argv []string) string {
	pick := argv[0]
	if isURL(pick) {
		pick = hostOf(pick)
	}
	if i := slices.Index(argv, "-c"); i > 0 && i+1 < len(argv) && shells[plainName(argv[0])] {
		words := strings.Fields(argv[i+1])
		if len(words) > 1 && words[0] == "exec" {
			words = words[1:]
		}
		if len(words) > 0 {
			return nameOf(words)
		}
	}
	if launchers[plainName(argv[0])] {
		for i, arg := range argv[1:] {
			if strings.HasPrefix(arg, "-") || launcherWords[arg] || codeFlags[argv[i]] {
				continue
			}
			pick = arg
			break
		}
	}
	name := plainName(pick)
	// "…/server/index.js" and "server/main.py" are called after their directory.
	if name == "index" || name == "main" || name == "__main__" || name == "server" || name == "cli" {
		if dir := filepath.Base(filepath.Dir(filepath.ToSlash(pick))); dir != "." && dir != "/" && dir != "dist" && dir != "src" {
			name = plainName(dir)
		}
	}
	name = cmp.Or(name, "server")
	return name[:min(len(name), longestName)]
}

func plainName(word string) string {
	word = filepath.Base(filepath.ToSlash(word))
	word = packageAt.ReplaceAllString(word, "")
	word = extension.ReplaceAllString(word, "")
	return strings.Trim(unfit.ReplaceAllString(word, "-"), "-.")
}

// checkName says why a name that somebody has given cannot be that of files and directories. An ending such as .js is part of it.
func checkName(name string) error {
	if unfit.MatchString(name) || strings.Trim(name, "-.") != name {
		return fail(exitUsage, "--name %q: use letters, digits, dot, dash and underscore, with no dot or dash at its ends", name)
	}
	return nil
}
