package gateway

import (
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
)

// withTools adds the gateway's own tools to the end of the first page of tools.
func (g *Gateway) withTools(result []byte) []byte { return result }

// callTool answers a call of one of the gateway's own tools.
func (g *Gateway) callTool(e *exchange, line []byte) bool {
	_, _ = e, line
	_ = jsonrpc.InternalError
	return false
}
