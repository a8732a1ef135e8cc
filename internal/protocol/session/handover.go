package session

import (
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Saved is a [Session] in a form that can be kept as JSON: another image of the same program goes on with it. What the
// client said is kept byte for byte.
type Saved struct {
	Era         mcp.Era
	InitParams  []byte
	Version     string
	InitResult  []byte
	Initialized bool
	Meta        []byte
	LogLevel    []byte
	Subscribed  [][]byte // raw params of each resources/subscribe
	Listens     []*Listen
	Reading     [mcp.Lists]mcp.Catalog
	Seen        [mcp.Lists]mcp.Catalog
}

// Save returns all that s knows. It shares memory with s.
func (s *Session) Save() Saved {
	out := Saved{
		Era: s.Era, InitParams: s.InitParams, Version: s.Version, InitResult: s.InitResult, Initialized: s.Initialized,
		Meta: s.Meta, LogLevel: s.logLevel, Listens: s.listens,
	}
	for _, sub := range s.subs {
		out.Subscribed = append(out.Subscribed, sub.params)
	}
	for l, w := range s.walks {
		out.Reading[l], out.Seen[l] = w.reading, w.seen
	}
	return out
}

// Restore returns the session that was saved.
func Restore(saved Saved) Session {
	s := Session{
		Era: saved.Era, InitParams: saved.InitParams, Version: saved.Version, InitResult: saved.InitResult,
		Initialized: saved.Initialized, Meta: saved.Meta, logLevel: saved.LogLevel, listens: saved.Listens,
	}
	for _, params := range saved.Subscribed {
		s.Subscribe(params)
	}
	for l := range s.walks {
		s.walks[l] = walk{reading: saved.Reading[l], seen: saved.Seen[l]}
	}
	return s
}
