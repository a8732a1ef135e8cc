package watch

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// selection is the parsed globs: which files are watched, and which directories may hold such files.
type selection struct {
	root    string // absolute slash path
	include []*pattern
	exclude []*pattern
	starts  []string // where looking for files begins, absolute slash paths
}

// pattern is one glob.
type pattern struct {
	base   string   // its literal part, an absolute clean slash path
	glob   string   // the rest, relative to base; "" if it names one file
	levels []string // glob's elements; nil: any depth
}

// newSelection reads globs relative to root. A "!" makes an exclusion, anywhere in the list. A glob that is a directory
// means everything in it.
func newSelection(root string, globs []string) (*selection, error) {
	s := &selection{root: root}
	for _, glob := range globs {
		text, negated := strings.CutPrefix(glob, "!")
		p, err := newPattern(root, text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("glob %q: %w", glob, err)
		case negated:
			s.exclude = append(s.exclude, p)
		default:
			s.include = append(s.include, p)
		}
	}
	if len(s.include) == 0 {
		return nil, errors.New("no glob says what to watch, for example '**/*.py'")
	}
	s.starts = s.findStarts()
	return s, nil
}

func newPattern(root, text string) (*pattern, error) {
	text = filepath.ToSlash(text)
	switch {
	case text == "":
		return nil, errors.New("it is empty")
	case strings.ContainsRune(text, 0):
		return nil, errors.New("it contains a zero byte")
	case !doublestar.ValidatePattern(text):
		return nil, errors.New(`it is malformed: a bracket or brace is not closed, or it ends in "\"`)
	}
	base := root
	if filepath.IsAbs(filepath.FromSlash(text)) {
		volume := filepath.ToSlash(filepath.VolumeName(filepath.FromSlash(text)))
		base, text = volume+"/", strings.TrimLeft(text[len(volume):], "/")
	}
	wantsDir := strings.HasSuffix(text, "/")
	parts := strings.Split(strings.Trim(text, "/"), "/")
	for len(parts) > 0 {
		name, ok := literal(parts[0])
		if !ok {
			break
		}
		base = path.Join(base, name)
		parts = parts[1:]
	}
	if slices.Contains(parts, "..") {
		return nil, errors.New(`".." must stand before the first wildcard`)
	}
	p := &pattern{base: base, glob: path.Join(parts...)}
	if p.glob == "" {
		if st, err := os.Stat(filepath.FromSlash(base)); wantsDir || err == nil && st.IsDir() {
			p.glob = "**"
		}
	} else if wantsDir {
		p.glob += "/**"
	}
	p.levels = levelsOf(p.glob)
	return p, nil
}

// literal returns the name that a glob element without wildcards stands for. "\*" and "[*]" are literal stars.
func literal(element string) (name string, ok bool) {
	var out strings.Builder
	for i := 0; i < len(element); i++ {
		switch c := element[i]; {
		case c == '\\' && i+1 < len(element):
			i++
			out.WriteByte(element[i])
		case c == '[' && i+2 < len(element) && element[i+2] == ']' && !strings.ContainsRune(`!^\`, rune(element[i+1])):
			out.WriteByte(element[i+1])
			i += 2
		case strings.IndexByte(`*?[{}`, c) >= 0:
			return "", false
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), true
}

// quote returns the glob that means exactly this path.
func quote(p string) string {
	var out strings.Builder
	for _, c := range p {
		switch c {
		case '*', '?', '[', '{', '}':
			out.WriteString("[" + string(c) + "]")
		case '\\':
			out.WriteString(`\\`)
		default:
			out.WriteRune(c)
		}
	}
	if strings.HasPrefix(p, "!") {
		return "./" + out.String()
	}
	return out.String()
}

// plainElement is an element of a glob that matches within one directory level, in any combination. The library's other
// elements may not: "{a,*}*" becomes "**", "[!b]" and "[+-0]" match a slash, "0***" matches differently by itself.
var plainElement = lazyregexp.New(`^([^\\*?[\]{}]|\*|\?|\[[^\\[\]!^-]+\]|\{[^\\*?[\]{},]+(,[^\\*?[\]{},]+)*\})+$`)

// levelsOf returns the elements of glob if each is for one directory level or is "**", otherwise nil.
func levelsOf(glob string) []string {
	levels := strings.Split(glob, "/")
	for _, element := range levels {
		if element != "**" && (strings.Contains(element, "**") || !plainElement.MatchString(element)) {
			return nil
		}
	}
	return levels
}

// matches reports whether the file p is one the pattern means.
func (p *pattern) matches(file string) bool {
	if p.glob == "" {
		return file == p.base
	}
	rel, ok := below(p.base, file)
	return ok && doublestar.MatchUnvalidated(p.glob, rel)
}

// mayHold reports whether files matching the pattern can be below dir; onWay says that dir is in the literal part of the
// pattern or above it.
func (p *pattern) mayHold(dir string) (may, onWay bool) {
	if _, above := below(dir, p.base); above || dir == p.base && p.glob != "" {
		return true, true
	}
	rel, ok := below(p.base, dir)
	if !ok || p.glob == "" {
		return false, false
	}
	if p.levels == nil {
		return true, false
	}
	for i, name := range strings.Split(rel, "/") {
		switch {
		case i < len(p.levels) && p.levels[i] == "**":
			return true, false
		case i >= len(p.levels)-1 || !doublestar.MatchUnvalidated(p.levels[i], name):
			return false, false
		}
	}
	return true, false
}

// hasFile reports whether the file p is watched. Its directory must be one that hasDir has.
func (s *selection) hasFile(r *rules, file string) bool {
	if s.excludes(file) {
		return false
	}
	for _, p := range s.include {
		if !p.matches(file) {
			continue
		}
		rel, _ := below(p.base, file)
		if p.glob == "" || !noisy(rel, false) && (r.despite[p] || !r.ignores(file, false)) {
			return true
		}
	}
	return false
}

// hasDir reports whether the directory has to be looked into. The one above it must be such a directory, too.
func (s *selection) hasDir(r *rules, dir string) bool {
	if s.excludes(dir) {
		return false
	}
	for _, p := range s.include {
		may, onWay := p.mayHold(dir)
		if onWay {
			return true
		}
		if !may {
			continue
		}
		rel, _ := below(p.base, dir)
		if !noisy(rel, true) && (r.despite[p] || !r.ignores(dir, true)) {
			return true
		}
	}
	return false
}

// spelledOut reports whether a glob names dir itself or something in it literally.
func (s *selection) spelledOut(dir string) bool {
	return slices.ContainsFunc(s.include, func(p *pattern) bool {
		_, onWay := p.mayHold(dir)
		return onWay
	})
}

func (s *selection) excludes(p string) bool {
	return slices.ContainsFunc(s.exclude, func(e *pattern) bool { return e.matches(p) })
}

// apply decides for each glob whether .gitignore counts. A glob of which the rules would leave nothing, such as
// "dist/**/*.js" where dist is ignored, is taken literally.
func (s *selection) apply(r *rules) {
	for _, p := range s.include {
		last := path.Base(p.glob)
		suffix := last[strings.LastIndexAny(last, `*?]}`)+1:]
		r.despite[p] = p.glob != "" && (r.of(p.base).ignored || r.ignores(path.Join(p.base, "any-name"+suffix), false))
	}
}

// findStarts returns where the search for files begins: the root for globs inside of it, otherwise their literal part.
func (s *selection) findStarts() []string {
	var starts []string
	for _, p := range s.include {
		start := p.base
		if p.glob == "" {
			start = path.Dir(p.base)
		}
		if _, inside := below(s.root, start); inside || start == s.root {
			start = s.root
		}
		if !slices.Contains(starts, start) {
			starts = append(starts, start)
		}
	}
	return starts
}
