package gateway

import (
	"strings"
	"sync/atomic"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// headerParams is the modern clients' present view, for the HTTP front's goroutines, which look up the arguments that must be
// repeated in headers (x-mcp-header). So a schema, which may be anything, is parsed by the caller's goroutine, never by
// the loop.
type headerParams struct{ view atomic.Pointer[catalog.View] }

func (m *headerParams) note(v *catalog.View) { m.view.Store(v) }

// ParamHeaders implements streamhttp.ParamHeaders.
func (h hub) ParamHeaders(tool string) []streamhttp.ParamHeader {
	return h.runner.gw.headerParams.of(tool)
}

func (m *headerParams) of(tool string) []streamhttp.ParamHeader {
	view := m.view.Load()
	if view == nil {
		return nil
	}
	item, ok := view.Item(mcp.Tools, tool)
	if !ok || !strings.Contains(item.Raw(), "x-mcp-header") {
		return nil
	}
	raw := []byte(item.Raw())
	return streamhttp.SchemaParamHeaders(jsonrpc.Find(raw, "inputSchema").Of(raw))
}
