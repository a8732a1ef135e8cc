package bridge

import (
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Saved is all that a bridge knows but its key, in a form that can be kept as JSON: another image of the same program
// goes on with it. All times are absolute.
type Saved struct {
	Mode   Mode
	Core   core
	Legacy *legacySide `json:",omitempty"`
	Modern *modernSide `json:",omitempty"`
}

// Save returns all that the bridge knows. It shares memory with the bridge.
func (b *Bridge) Save() Saved {
	out := Saved{Mode: b.opts.Mode, Core: b.core}
	switch side := b.side.(type) {
	case *legacySide:
		out.Legacy = side
	case *modernSide:
		out.Modern = side
	}
	return out
}

// Restore returns the bridge that was saved. opts must be those it was made with; the mode is that of what was saved.
func Restore(opts Options, s Saved) *Bridge {
	opts.Mode = s.Mode
	b := New(opts)
	b.core = s.Core
	switch side := b.side.(type) {
	case *legacySide:
		if s.Legacy != nil {
			*side = *s.Legacy
			side.core = &b.core
		}
		for _, c := range side.Calls {
			c.Method = mcp.Lookup(jsonrpc.AppendQuoted(nil, c.Name))
		}
	case *modernSide:
		if s.Modern != nil {
			seal := side.sealer
			*side = *s.Modern
			side.join(&b.core, seal)
		}
		for _, t := range side.Calls {
			t.Method = mcp.Lookup(jsonrpc.AppendQuoted(nil, t.Name))
		}
	}
	return b
}
