package gateway

import (
	"strings"
	"sync/atomic"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// mirrors is what clients of the modern era see now, for the HTTP front's goroutines: they look there which arguments of a
// tool must be repeated in headers (x-mcp-header). So a schema, which may be anything, is read by the goroutine of the client
// that calls the tool, and never by the loop.
type mirrors struct{ view atomic.Pointer[catalog.View] }

func (m *mirrors) note(v *catalog.View) { m.view.Store(v) }

// ParamHeaders implements streamhttp.ParamHeaders.
func (h hub) ParamHeaders(tool string) []streamhttp.ParamHeader { return h.runner.gw.mirrors.of(tool) }

func (m *mirrors) of(tool string) []streamhttp.ParamHeader {
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
