package bridge

import (
	"encoding/json"
	"fmt"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// saved is a bridge as JSON.
type saved struct {
	Mode   Mode
	Core   core
	Legacy *legacySide `json:",omitempty"`
	Modern *modernSide `json:",omitempty"`
}

// Save returns all that the bridge knows but its key, so that another image of the same program can go on with it.
func (b *Bridge) Save() (json.RawMessage, error) {
	out := saved{Mode: b.opts.Mode, Core: b.core}
	switch side := b.side.(type) {
	case *legacySide:
		out.Legacy = side
	case *modernSide:
		out.Modern = side
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("save a bridge: %w", err)
	}
	return text, nil
}

// Restore returns the bridge that was saved. opts must be those it was made with.
func Restore(opts Options, text json.RawMessage) (*Bridge, error) {
	b := New(opts)
	in := saved{}
	switch side := b.side.(type) {
	case *legacySide:
		in.Legacy = side
	case *modernSide:
		in.Modern = side
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("restore a bridge: %w", err)
	}
	if in.Mode != opts.Mode {
		return nil, fmt.Errorf("restore a bridge: it was one for %q, not for %q", in.Mode, opts.Mode)
	}
	b.core = in.Core
	if in.Legacy != nil {
		for _, c := range in.Legacy.Calls {
			c.Method = mcp.Lookup(jsonrpc.AppendQuoted(nil, c.Name))
		}
	}
	if in.Modern != nil {
		for _, t := range in.Modern.Calls {
			t.Method = mcp.Lookup(jsonrpc.AppendQuoted(nil, t.Name))
		}
	}
	return b, nil
}
