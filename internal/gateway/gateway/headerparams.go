package gateway

import (
	"strings"
	"sync"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// headerParams has what modern clients see at present, by view, for the HTTP front's goroutines, which look up the arguments that must be
// repeated in headers (x-mcp-header). So a schema, which may be anything, is parsed by the caller's goroutine, never by
// the loop.
type headerParams struct{ views sync.Map } // of *catalog.View, by name

func (m *headerParams) note(view string, v *catalog.View) { m.views.Store(view, v) }

// keep forgets views that are not configured any more.
func (m *headerParams) keep(views map[string]view) {
	m.views.Range(func(name, _ any) bool {
		if _, known := views[name.(string)]; !known && name != "" {
			m.views.Delete(name)
		}
		return true
	})
}

// ParamHeaders implements streamhttp.Hub. Any goroutine.
func (r *Runner) ParamHeaders(view, tool string) []mcp.ParamHeader {
	return r.gw.headerParams.of(view, tool)
}

func (m *headerParams) of(view, tool string) []mcp.ParamHeader {
	seen, known := m.views.Load(view)
	if !known {
		return nil
	}
	item, ok := seen.(*catalog.View).Item(mcp.Tools, tool)
	if !ok || !strings.Contains(item.Raw(), mcp.HeaderMark) {
		return nil
	}
	raw := []byte(item.Raw())
	schema := jsonrpc.Find(raw, "inputSchema").Of(raw)
	if len(schema) > schemaMost {
		return nil
	}
	headers, _ := mcp.ParamHeaders(schema) // of a tool whose marks break a rule, which clients do not use, none is demanded
	return headers
}

// schemaMost is the longest schema of which headers are demanded, in bytes: it is read at each call. Real ones are far shorter.
const schemaMost = 64 << 10
