package catalog

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Server is how one server's entries are shown. Allow, Deny and Rename go by the server's own names and concern tools
// and prompts; resources are shown as they are, because their URIs stand in other places, too. A changed Server is
// another value, never a change of one that Merge was given.
type Server struct {
	// Name is the server's name in the configuration; no two have the same.
	Name string
	// Prefix stands before the names where the Names say so. "": Name.
	Prefix string
	// Allow are globs (*, ?, [a-z], backslash) of what is shown. None: everything. Unlike in paths, * matches a slash.
	Allow []string
	// Deny are globs of what is not shown, even if Allow has it. A glob with a mistake matches nothing in Allow and
	// everything in Deny: too little is noticed, too much is not.
	Deny []string
	// Rename gives entries another name, to which the prefix is added as to any.
	Rename map[string]string
}

func (s Server) prefix() string {
	if s.Prefix == "" {
		return s.Name
	}
	return s.Prefix
}

// base is the name an entry is to have, before the prefix.
func (s Server) base(own string) string {
	if renamed, ok := s.Rename[own]; ok {
		return renamed
	}
	return own
}

// shows reports whether a tool or prompt is shown at all.
func (s Server) shows(own string) bool {
	for _, glob := range s.Deny {
		if matched, err := match(glob, own); matched || err != nil {
			return false
		}
	}
	for _, glob := range s.Allow {
		if matched, err := match(glob, own); matched && err == nil {
			return true
		}
	}
	return len(s.Allow) == 0
}

// match is path.Match without the slash's special part: names of tools are not paths.
func match(glob, name string) (bool, error) {
	const noSlash = "\x01"
	return path.Match(strings.ReplaceAll(glob, "/", noSlash), strings.ReplaceAll(name, "/", noSlash))
}

func (s Server) equal(other Server) bool {
	return s.Name == other.Name && s.Prefix == other.Prefix && slices.Equal(s.Allow, other.Allow) &&
		slices.Equal(s.Deny, other.Deny) && maps.Equal(s.Rename, other.Rename)
}
