package catalog

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// Filter says which of a server's tools and prompts are shown, by the server's own names. The zero value shows all.
type Filter struct {
	// Allow are globs (*, ?, [a-z], backslash) of what is shown. None: everything. Unlike in paths, * also matches a
	// slash.
	Allow []string
	// Deny are globs of what is hidden, even if Allow matches it. An invalid glob matches nothing in Allow and
	// everything in Deny: showing too little is noticed, showing too much is not.
	Deny []string
}

// Server says how one server's entries are shown. Allow, Deny and Rename refer to the server's own names and apply to
// tools and prompts; resources are shown as they are, because their URIs also occur in other texts. A Server must not
// be changed after it was passed to Merge: a changed one is a new value.
type Server struct {
	// Name is the server's name in the configuration; no two have the same.
	Name string
	// Prefix precedes the names as Names says. "": Name.
	Prefix string
	// Filter says what is shown to anybody.
	Filter
	// Rename gives entries another name, to which the prefix is added as usual.
	Rename map[string]string
}

func (s Server) prefix() string { return cmp.Or(s.Prefix, s.Name) }

// base is an entry's name before the prefix.
func (s Server) base(own string) string {
	if renamed, ok := s.Rename[own]; ok {
		return renamed
	}
	return own
}

// shows reports whether a tool or prompt is shown.
func (f Filter) shows(own string) bool {
	for _, glob := range f.Deny {
		if matched, err := match(glob, own); matched || err != nil {
			return false
		}
	}
	for _, glob := range f.Allow {
		if matched, err := match(glob, own); matched && err == nil {
			return true
		}
	}
	return len(f.Allow) == 0
}

// match is path.Match, except that a slash is an ordinary character: tool names are not paths.
func match(glob, name string) (bool, error) {
	const noSlash = "\x01"
	return path.Match(strings.ReplaceAll(glob, "/", noSlash), strings.ReplaceAll(name, "/", noSlash))
}

func (f Filter) equal(other Filter) bool {
	return slices.Equal(f.Allow, other.Allow) && slices.Equal(f.Deny, other.Deny)
}

func (s Server) equal(other Server) bool {
	return s.Name == other.Name && s.Prefix == other.Prefix && s.Filter.equal(other.Filter) && maps.Equal(s.Rename, other.Rename)
}
