package lazyregexp

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression in Go's syntax, compiled when it is first used. Its methods are those of [regexp.Regexp].
type Pattern struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

// New declares a pattern. It does nothing else, so that the linker can lay out a package-level variable of it as data. A text
// that is not a regular expression panics at its first use; the house tests compile those that are written out.
func New(text string) *Pattern { return &Pattern{text: text} }

// Compiled is the regular expression, for what has no method here.
func (p *Pattern) Compiled() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.text) })
	return p.re
}

// Match reports whether b contains a match.
func (p *Pattern) Match(b []byte) bool { return p.Compiled().Match(b) }

// MatchString reports whether s contains a match.
func (p *Pattern) MatchString(s string) bool { return p.Compiled().MatchString(s) }

// FindString is the first match, or "".
func (p *Pattern) FindString(s string) string { return p.Compiled().FindString(s) }

// FindStringSubmatch is the first match and its groups, or nil.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.Compiled().FindStringSubmatch(s) }

// FindAllStringSubmatch are all matches with their groups.
func (p *Pattern) FindAllStringSubmatch(s string) [][]string {
	return p.Compiled().FindAllStringSubmatch(s, -1)
}

// ReplaceAllString is s with every match replaced by the template, in which ${1} is the first group.
func (p *Pattern) ReplaceAllString(s, template string) string {
	return p.Compiled().ReplaceAllString(s, template)
}

// ReplaceAllStringFunc is s with every match replaced by what replace makes of it.
func (p *Pattern) ReplaceAllStringFunc(s string, replace func(string) string) string {
	return p.Compiled().ReplaceAllStringFunc(s, replace)
}
