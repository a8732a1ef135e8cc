package gateway

import (
	"strings"
	"sync/atomic"

	"github.com/outlive-mcp/outlive/internal/catalog"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/streamhttp"
)

// mirrors are the tools whose clients must repeat arguments in HTTP headers (x-mcp-header). The loop writes them, the HTTP
// front's goroutines read them.
type mirrors struct {
	of atomic.Pointer[map[string][]streamhttp.ParamHeader]
}

// note looks through the tools that clients of the modern era see now.
func (m *mirrors) note(v *catalog.View) {
	found := map[string][]streamhttp.ParamHeader{}
	for name, item := range v.All(mcp.Tools) {
		if raw := item.Raw(); strings.Contains(raw, "x-mcp-header") {
			tool := []byte(raw)
			if headers := streamhttp.SchemaParamHeaders(jsonrpc.Find(tool, "inputSchema").Of(tool)); headers != nil {
				found[name] = headers
			}
		}
	}
	m.of.Store(&found)
}

// ParamHeaders implements streamhttp.ParamHeaders.
func (h hub) ParamHeaders(tool string) []streamhttp.ParamHeader {
	if all := h.runner.gw.mirrors.of.Load(); all != nil {
		return (*all)[tool]
	}
	return nil
}
