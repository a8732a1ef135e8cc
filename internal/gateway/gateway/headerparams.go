package gateway

import (
	"strings"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// ParamHeaders implements streamhttp.Hub. Any goroutine.
func (r *Runner) ParamHeaders(view, tool string) []mcp.ParamHeader {
	return r.gw.headerParams(view, tool)
}

// headerParams are the arguments of a tool that must be repeated in headers (x-mcp-header). A schema, which may be anything, is parsed by
// the caller's goroutine, never by the loop.
func (g *Gateway) headerParams(view, tool string) []mcp.ParamHeader {
	seen, known := g.current.Load(view)
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
