package watch

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// ignoreLine is one pattern of a .gitignore file.
type ignoreLine struct {
	glob     string // for doublestar
	negated  bool   // "!": matching files are watched nevertheless
	dirOnly  bool   // "name/"
	baseName bool   // no slash: matches the last element at any depth
	literal  bool   // no wildcard
}

// parseIgnore reads the lines of a .gitignore or exclude file (gitignore(5)).
func parseIgnore(text []byte) []ignoreLine {
	var lines []ignoreLine
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if one, ok := parseIgnoreLine(strings.TrimSuffix(string(line), "\r")); ok {
			lines = append(lines, one)
		}
	}
	return lines
}

func parseIgnoreLine(s string) (ignoreLine, bool) {
	if strings.HasPrefix(s, "#") {
		return ignoreLine{}, false
	}
	var l ignoreLine
	s = trimSpaces(s)
	s, l.negated = strings.CutPrefix(s, "!")
	s, l.dirOnly = strings.CutSuffix(s, "/")
	l.baseName = !strings.Contains(s, "/")
	s = strings.TrimPrefix(s, "/")
	if l.literal = !strings.ContainsAny(s, `*?[\`); l.literal {
		l.glob = s
		return l, s != ""
	}
	l.glob = odd.ReplaceAllStringFunc(s, translate)
	if strings.HasSuffix(l.glob, "/**") {
		l.glob += "/*" // "a/**" is not about a itself
	}
	return l, s != ""
}

// odd finds the parts of a pattern that may mean something else to doublestar: braces and classes, but for what is escaped.
var odd = lazyregexp.New(`\\.|[{}]|\[[!^]?\]?(\\.|[^\\\]])*\]`)

// translate writes for doublestar what a part of a pattern means to git.
func translate(part string) string {
	switch part[0] {
	case '\\':
		return part
	case '{', '}':
		return `\` + part
	}
	class, not := part[1:], ""
	if strings.ContainsRune("!^", rune(class[0])) {
		class, not = class[1:], "^/" // git's does not match a slash
	}
	if strings.ContainsRune("]-", rune(class[0])) {
		class = `\` + class // at the beginning it is one of the class
	}
	return "[" + not + class
}

// trimSpaces removes the spaces at the end, except one that a backslash precedes.
func trimSpaces(s string) string {
	keep := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			keep = i + 1
		case s[i] != ' ':
			keep = i + 1
		}
	}
	return s[:keep]
}

// match reports whether the line is about rel, a slash path relative to the ignore file's directory.
func (l *ignoreLine) match(rel string, isDir bool) bool {
	if l.dirOnly && !isDir {
		return false
	}
	if l.baseName {
		rel = rel[strings.LastIndexByte(rel, '/')+1:]
	}
	if l.literal {
		return rel == l.glob
	}
	ok, err := doublestar.Match(l.glob, rel)
	return ok && err == nil // as for git, what is no pattern matches nothing
}

// ignoreState is the result of a list of lines for a path.
type ignoreState uint8

const (
	undecided ignoreState = iota
	ignored               // a line matches
	included              // a line with "!" matches
)

// judge returns the result of the last matching line.
func judge(lines []ignoreLine, rel string, isDir bool) ignoreState {
	for i := len(lines) - 1; i >= 0; i-- {
		switch {
		case !lines[i].match(rel, isDir):
		case lines[i].negated:
			return included
		default:
			return ignored
		}
	}
	return undecided
}

// noiseDirs hold generated, downloaded or compiled files: never a server's own source, and often many.
var noiseDirs = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true, ".bzr": true,
	"node_modules": true, "bower_components": true, ".yarn": true, ".pnpm-store": true, ".parcel-cache": true, ".turbo": true,
	"__pycache__": true, ".venv": true, ".tox": true, ".nox": true, ".eggs": true,
	".mypy_cache": true, ".pytest_cache": true, ".ruff_cache": true, ".hypothesis": true, ".ipynb_checkpoints": true,
	".gradle": true, ".idea": true, ".vs": true, ".direnv": true, ".terraform": true,
}

// noiseNames are patterns of [path.Match] for files that editors and file managers leave beside the real ones.
var noiseNames = []string{
	"*~", "*.bak", "*.tmp", "*.orig", // Emacs, many; "git mergetool"
	".*.sw[a-p]", ".sw[a-p]", "*.sw[op]", // vim
	".#*", "#*#", // Emacs: lock and autosave
	"*___jb_tmp___", "*___jb_old___", // JetBrains
	".goutputstream-*", ".*.kate-swp", "*.kate-swp",
	".nfs*", ".fuse_hidden*", // deleted, but still open
	".DS_Store", "._*", "Thumbs.db", "desktop.ini",
	"*.py[co]",
	".mcp_restart_marker*", // outlive's own, at restart_server
}

// noisyName reports whether a file or directory of this name is never watched, unless a glob spells it out.
func noisyName(name string, isDir bool) bool {
	if isDir {
		return noiseDirs[name]
	}
	return slices.ContainsFunc(noiseNames, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return err == nil && ok
	})
}

// noisy reports whether rel, a slash path, has noise among its elements.
func noisy(rel string, isDir bool) bool {
	for {
		dir, rest, more := strings.Cut(rel, "/")
		if !more {
			return noisyName(rel, isDir)
		}
		if noisyName(dir, true) {
			return true
		}
		rel = rest
	}
}
